//! Options of training processes and limits of a request, which several commands share.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;

use super::NamedCommand;
use crate::failure::Failure;
use crate::output::print_err;
use crate::run::devices::Devices;

/// How training processes are started, interrupted and stopped.
#[derive(Debug, Clone, Args)]
pub(crate) struct Processes {
    /// Maximum number of parallel training processes; further training jobs wait [default: no limit; with `serve`, one
    /// for each GPU of --devices, or else for each processor core]
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<NonZeroU32>,
    /// GPUs that the training processes share, for example 0,1,2,3, or `auto` to ask nvidia-smi. Each process finds its
    /// own GPUs in CUDA_VISIBLE_DEVICES
    #[arg(long, value_name = "LIST")]
    pub(crate) devices: Option<Devices>,
    /// Training program of the definition NAME, where the request has TrainingJobDefinitions, for example
    /// small='python3 small.py'; repeatable. Other definitions run COMMAND, which finds the name in SM_DEFINITION_NAME
    #[arg(long = "command", value_name = "NAME=COMMAND", value_parser = str::parse::<NamedCommand>)]
    pub(crate) commands: Vec<NamedCommand>,
    /// Add the hyperparameters to COMMAND as options, such as --lr 0.1, as SageMaker's training toolkit does
    #[arg(long)]
    pub(crate) pass_args: bool,
    /// Interrupt spot jobs at random, RATE times per job and hour on average, to test checkpoints
    #[arg(long, value_name = "RATE", default_value_t = 0.0, hide_default_value = true, value_parser = parse_rate)]
    pub(crate) spot_interruptions: f64,
    /// Seconds between SIGTERM and SIGKILL of a training process
    #[arg(long, value_name = "N", default_value = "120", value_parser = parse_grace_seconds)]
    pub(crate) grace_seconds: Duration,
}

impl Processes {
    /// Returns the names of the devices; none without `--devices`.
    pub(crate) fn device_names(&self) -> Result<Vec<String>, Failure> {
        self.devices.as_ref().map_or(Ok(Vec::new()), Devices::names)
    }
}

/// Warns if an equal share for each slot leaves devices idle.
pub(crate) fn warn_of_idle_devices(devices: usize, slots: NonZeroU32) {
    let slots = usize::try_from(slots.get()).unwrap_or(usize::MAX).min(devices);
    let (each, idle) = (devices.checked_div(slots).unwrap_or(0), devices.checked_rem(slots).unwrap_or(0));
    if idle > 0 {
        print_err(&format!(
            "warning: GPUs that stay idle: {idle} of {devices}, because each of {slots} processes gets {each}; set --slots to a \
             number that divides {devices}\n"
        ));
    }
}

/// The limits of a request that the command line replaces.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Limits {
    /// Start at most N training jobs; replaces MaxNumberOfTrainingJobs
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroU32>,
    /// End the tuning after this time, for example 30m or 8h, at least 2m; replaces ResourceLimits.MaxRuntimeInSeconds
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) max_time: Option<Duration>,
    /// Spend at most USD dollars; replaces Controller.MaxCostUsd. On this machine the request needs
    /// Controller.InstancePricesUsdPerHour too
    #[arg(long, value_name = "USD", value_parser = parse_usd)]
    pub(crate) max_cost: Option<f64>,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "expected interruptions per job and hour, for example 0.5".to_owned())
}

pub(super) fn parse_usd(text: &str) -> Result<f64, String> {
    let usd = text.parse::<f64>().ok().filter(|usd| usd.is_finite() && *usd > 0.0);
    usd.ok_or_else(|| "expected dollars above 0, for example 5".to_owned())
}

pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time of at least 2m, such as 30m, 8h or 2d".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(expected)?;
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(expected()),
    };
    let time = number.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
    time.filter(|time| *time >= 120).map(Duration::from_secs).ok_or_else(expected)
}

fn parse_grace_seconds(text: &str) -> Result<Duration, String> {
    const GRACE_SECONDS_MAX: u64 = 3_600;
    let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds <= GRACE_SECONDS_MAX);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("expected whole seconds from 0 to {GRACE_SECONDS_MAX}"))
}
