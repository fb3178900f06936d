//! The command-line options and their help.

#![expect(clippy::doc_markdown, reason = "clap prints these docs as help, with the backticks")]

mod change;
mod cost;
mod doctor;
mod examples;
mod export;
mod extend;
mod init;
mod listen;
mod logs;
mod named_command;
mod place;
mod processes;
mod serve;
mod simulate;
#[cfg(feature = "aws")]
mod training_service;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use examples::{
    AUDIT_EXAMPLES, CHANGE_EXAMPLES, CHECK_EXAMPLES, DELETE_EXAMPLES, DESCRIBE_EXAMPLES, DOCTOR_EXAMPLES,
    EXAMPLES, EXPLAIN_EXAMPLES, INIT_EXAMPLES, LIST_EXAMPLES, MODEL_EXAMPLES, PLAN_EXAMPLES, REPLAY_EXAMPLES,
    REPORT_EXAMPLES, RESUME_EXAMPLES, RUN_EXAMPLES, SIMULATE_EXAMPLES, STOP_EXAMPLES, SUBMIT_EXAMPLES,
    WATCH_EXAMPLES,
};

use crate::request::channels::Channel;
use crate::request::tries::Try;

pub(crate) use crate::output::Output;
pub(crate) use change::Change;
pub(crate) use cost::{Cost, Month};
pub(crate) use doctor::Doctor;
pub(crate) use export::{Export, Format};
pub(crate) use extend::Extend;
pub(crate) use init::{Goal, Init};
pub(crate) use listen::Listen;
pub(crate) use logs::Logs;
pub(crate) use named_command::NamedCommand;
pub(crate) use place::{RemotePlace, Source, Where, folder_option};
pub(crate) use processes::{Limits, Processes, warn_of_idle_devices};
pub(crate) use serve::{Proxy, Serve};
pub(crate) use simulate::Simulate;
#[cfg(feature = "aws")]
pub(crate) use training_service::TrainingService;

/// Default data directory.
pub(crate) const DATA_DIR: &str = ".hyperband";
/// Default time between two requests of `watch`, in seconds.
const INTERVAL_DEFAULT: &str = "2";

/// Tunes hyperparameters with Hyperband under a hard cost cap.
#[derive(Debug, Parser)]
#[command(name = "hyperband", version, about, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    /// The command to perform.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a request with comments, from parameter ranges and a training log
    #[command(after_help = INIT_EXAMPLES)]
    Init(Init),
    /// Run a tuning on this machine
    #[command(after_help = RUN_EXAMPLES, override_usage = "hyperband run [OPTIONS] <REQUEST> -- <COMMAND>...")]
    Run(Run),
    /// Continue an interrupted tuning of this machine with its recorded command line
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(Named<Place>),
    /// Start a tuning from the results of an ended one, with the same request
    #[command(after_help = extend::EXAMPLES)]
    Extend(Extend),
    /// Show the brackets, training jobs, cost and time of a request without starting anything
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Plan),
    /// Simulate tunings of a request in virtual time against recorded learning curves
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(Simulate),
    /// Validate a request, test its metric patterns on a log, and warn of likely problems
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
    /// Submit a request to a deployed stack
    #[command(after_help = SUBMIT_EXAMPLES)]
    Submit(Submit),
    /// List the tunings of a stack or a data directory, newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(List),
    /// Show a tuning: best training job, cost, brackets, and all training jobs
    #[command(after_help = DESCRIBE_EXAMPLES)]
    Describe(Named<Source>),
    /// Follow a tuning until it ends
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(Watch),
    /// Show the location of the best model, or copy the model
    #[command(after_help = MODEL_EXAMPLES)]
    Model(Model),
    /// Print the log of a training job
    #[command(after_help = logs::EXAMPLES)]
    Logs(Logs),
    /// Explain every decision about a trial
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Compare booked costs with bills, for the jobs of a tuning or for a stack in a month
    #[command(after_help = cost::EXAMPLES)]
    Cost(Cost),
    /// Change the cost cap or parallelism of a running tuning, or pause and resume it
    #[command(after_help = CHANGE_EXAMPLES)]
    Change(Change),
    /// Stop a tuning, or all tunings
    #[command(after_help = STOP_EXAMPLES)]
    Stop(Stop),
    /// Delete an ended tuning; its models and checkpoints stay
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(Delete),
    /// Repeat all decisions from the recorded facts and compare them with the recorded decisions
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(Named<Source>),
    /// Check the stored rows of tunings: cap, bills, orders, steps and rungs, computed anew
    #[command(after_help = AUDIT_EXAMPLES)]
    Audit(Audit),
    /// Write a report of a tuning as one self-contained HTML file
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Report),
    /// Write the trials of a tuning as CSV or JSON lines, for tables and other tools
    #[command(after_help = export::EXAMPLES)]
    Export(Export),
    /// Test the assumptions about AWS in a real account
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(Box<Doctor>),
    /// Serve the HTTP API on this machine, and run several tunings at once
    #[command(after_help = serve::SERVE_EXAMPLES)]
    Serve(Serve),
    /// Serve the HTTP API of a deployed stack on this machine, and sign each request
    #[command(after_help = serve::PROXY_EXAMPLES)]
    Proxy(Proxy),
    /// Serve SageMaker's training-job API on this machine; training jobs are local processes
    #[cfg(feature = "aws")]
    #[command(after_help = training_service::EXAMPLES)]
    TrainingService(TrainingService),
    /// Print a completion script for a shell
    Completions {
        /// Shell to complete in
        shell: Shell,
    },
}

/// A data directory.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Folder of the table, the training jobs and their checkpoints
    #[arg(long = "data-dir", value_name = "DIR", default_value = DATA_DIR, value_hint = ValueHint::DirPath)]
    #[arg(value_parser = folder_parser())]
    pub(crate) data_dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// JSON file with a CreateHyperParameterTuningJob request, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    #[command(flatten)]
    pub(crate) place: RemotePlace,
    /// Name of the tuning; replaces HyperParameterTuningJobName of the request
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Configuration to try first, after the request's initial configurations, for example lr=0.1,depth=6; repeatable
    #[arg(long = "try", value_name = "NAME=VALUE,...", value_parser = str::parse::<Try>)]
    pub(crate) tries: Vec<Try>,
    /// Ended tuning from whose results this one starts, or a file of results with the suffix .csv or .jsonl; repeatable.
    /// It follows the parents in the request and has their WarmStartType. Without any, the type is
    /// IdenticalDataAndAlgorithm
    #[arg(long = "parent", value_name = "NAME|FILE")]
    pub(crate) parents: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// Follow the tuning until it ends
    #[arg(long)]
    pub(crate) watch: bool,
    /// Seconds between two updates with --watch, at least 0.1
    #[arg(long, value_name = "S", default_value = INTERVAL_DEFAULT, value_parser = parse_interval)]
    pub(crate) interval: Duration,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Name of the tuning
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: Source,
    /// Seconds between two updates, at least 0.1
    #[arg(long, value_name = "S", default_value = INTERVAL_DEFAULT, value_parser = parse_interval)]
    pub(crate) interval: Duration,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// JSON file with a CreateHyperParameterTuningJob request, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    /// Training program and its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Name of the tuning; replaces HyperParameterTuningJobName of the request
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Before the run, delete the tuning of this name; if it was interrupted, stop it first. Its models and checkpoints
    /// stay
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Continue an interrupted tuning even if COMMAND or its folder has changed
    #[arg(long)]
    pub(crate) command_changed: bool,
    /// Configuration to try first, after the request's initial configurations, for example lr=0.1,depth=6; repeatable
    #[arg(long = "try", value_name = "NAME=VALUE,...", value_parser = str::parse::<Try>)]
    pub(crate) tries: Vec<Try>,
    /// Ended tuning from whose results this one starts, or a file of results with the suffix .csv or .jsonl; repeatable.
    /// It follows the parents in the request and has their WarmStartType. Without any, the type is
    /// IdenticalDataAndAlgorithm
    #[arg(long = "parent", value_name = "NAME|FILE")]
    pub(crate) parents: Vec<String>,
    /// Data of an input channel on this machine, for example train=data/train; replaces the data in the request;
    /// repeatable
    #[arg(long = "channel", value_name = "NAME=PATH", value_parser = str::parse::<Channel>)]
    pub(crate) channels: Vec<Channel>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) processes: Processes,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// JSON file with a CreateHyperParameterTuningJob request, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    /// Seconds from the start of a training job to its first epoch
    #[arg(long, value_name = "S", default_value = "180", value_parser = parse_seconds)]
    pub(crate) startup_seconds: Milliseconds,
    /// Seconds per epoch; required for the expected time and cost
    #[arg(long, value_name = "E", value_parser = parse_seconds)]
    pub(crate) epoch_seconds: Option<Milliseconds>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// JSON file with a CreateHyperParameterTuningJob request, or `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    /// Log of a training job to test the metric patterns on, or `-` for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) log: Option<PathBuf>,
    /// DefinitionName of the training job, if the request has several definitions [default: the first]
    #[arg(long, value_name = "NAME", requires = "log")]
    pub(crate) definition: Option<String>,
    /// Validate for a deployed stack, as `submit` does, without the defaults of this machine
    #[arg(long)]
    pub(crate) stack: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) place: Source,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// A command about one tuning. `P` locates the tuning.
#[derive(Debug, Args)]
pub(crate) struct Named<P: Args> {
    /// Name of the tuning
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: P,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Name of the tuning [default: all tunings]
    pub(crate) name: Option<String>,
    /// Exported table, as DynamoDB JSON: a row a line, uncompressed
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["data_dir", "endpoint"])]
    pub(crate) rows: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: Source,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Model {
    /// New folder to copy the model to
    #[arg(short = 'o', long = "to", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) to: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tuning: Named<Source>,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) tuning: Named<Source>,
    /// Number of the trial, or the name of one of its training jobs
    pub(crate) trial: String,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["name", "all"])))]
pub(crate) struct Stop {
    /// Name of the tuning
    pub(crate) name: Option<String>,
    /// Stop every active tuning, after a confirmation
    #[arg(long)]
    pub(crate) all: bool,
    /// Skip the confirmation; required with --all outside a terminal
    #[arg(long, requires = "all", conflicts_with = "name")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) place: Source,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Skip the confirmation; required outside a terminal
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) tuning: Named<Source>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Name of the tuning
    pub(crate) name: String,
    /// File to write, or `-` for standard output [default: NAME.html]
    #[arg(short = 'o', long = "file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: Source,
    /// Output format of the result line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

fn folder_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let file = path.exists() && !path.is_dir();
        if file { Err(format!("{} is a file: expected a folder", path.display())) } else { Ok(path) }
    })
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let Milliseconds(length) = parse_seconds(text)?;
    if length < 100 {
        Err("expected at least 0.1 seconds".to_owned())
    } else {
        Ok(Duration::from_millis(length))
    }
}

/// A duration in milliseconds. Options give it in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Milliseconds(pub(crate) u64);

/// Parses seconds. Reads the decimal digits, so that no floating-point error changes the value.
fn parse_seconds(text: &str) -> Result<Milliseconds, String> {
    const SECONDS_MAX: u64 = 2_419_200;
    let expected = || {
        format!(
            "expected seconds up to {SECONDS_MAX} (28 days), with at most 3 decimals, for example 90 or 0.25"
        )
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return Err(expected());
    }
    let read = |text: &str| text.parse::<u64>().map_err(|_| expected());
    let milliseconds = read(whole)?.saturating_mul(1_000).saturating_add(read(&format!("{fraction:0<3}"))?);
    if milliseconds <= SECONDS_MAX * 1_000 { Ok(Milliseconds(milliseconds)) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_clap_definitions_are_valid() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn arguments_after_two_dashes_are_the_training_command() {
        let parsed =
            Arguments::try_parse_from(["hyperband", "run", "r.json", "--", "sh", "--name", "x"]).unwrap();
        let Command::Run(run) = parsed.command else { panic!("run") };
        assert_eq!(run.command, ["sh", "--name", "x"]);
        assert_eq!(run.name, None);
        assert_eq!(run.place.data_dir, PathBuf::from(DATA_DIR));
    }

    #[test]
    fn seconds_may_have_a_fraction() {
        for (text, expected) in [("90", 90_000), ("0.25", 250), ("1.5", 1_500), ("2419200", 2_419_200_000)] {
            assert_eq!(parse_seconds(text), Ok(Milliseconds(expected)), "{text}");
        }
        for text in ["", ".5", "1.", "-1", "1e3", "0.0001", "2419200.001", "99999999999999999999", "1.-5"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_rejected() {
        for arguments in
            [["--spot-interruptions", "-1"], ["--spot-interruptions", "inf"], ["--grace-seconds", "-1"]]
        {
            let line = ["hyperband", "run", "r.json", arguments[0], arguments[1], "--", "true"];
            assert!(Arguments::try_parse_from(line).is_err(), "{arguments:?}");
        }
    }
}
