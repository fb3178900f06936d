//! The command line: what can be typed, and its help.

#![expect(clippy::doc_markdown, reason = "these docs are the help, where backticks would be shown")]

mod change;
mod doctor;
mod examples;
mod place;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, PathBufValueParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use training_service::{EVENT_SOURCE, LOG_GROUP};

use examples::{
    CHANGE_EXAMPLES, CHECK_EXAMPLES, COST_EXAMPLES, DESCRIBE_EXAMPLES, DOCTOR_EXAMPLES, EXAMPLES,
    EXPLAIN_EXAMPLES, LIST_EXAMPLES, PLAN_EXAMPLES, REPLAY_EXAMPLES, REPORT_EXAMPLES, RUN_EXAMPLES,
    STOP_EXAMPLES, SUBMIT_EXAMPLES, TRAINING_SERVICE_EXAMPLES, WATCH_EXAMPLES,
};

pub(crate) use change::Change;
pub(crate) use doctor::Doctor;
pub(crate) use place::{ENDPOINT_VARIABLE, RemotePlace, Source, Where};

/// Where everything is kept unless told otherwise.
pub(crate) const DATA_DIR: &str = ".hyperband";
/// Least seconds between two looks at an endpoint.
const INTERVAL_DEFAULT: &str = "2";

/// Tunes hyperparameters with Hyperband under a hard cost cap.
#[derive(Debug, Parser)]
#[command(name = "hyperband", version, about, after_help = EXAMPLES, max_term_width = 100)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a whole tuning on this machine
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Show what a request comes to: brackets, training jobs, cost and time; starts nothing
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(Plan),
    /// Check a request, try its metric patterns on a log, and warn of what will hurt
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
    /// Submit a request to a deployed stack
    #[command(after_help = SUBMIT_EXAMPLES)]
    Submit(Submit),
    /// List the tunings of a stack or of a data directory, newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(List),
    /// Show a tuning: best job, money, brackets, every training job
    #[command(after_help = DESCRIBE_EXAMPLES)]
    Describe(Named<Source>),
    /// Follow a tuning to its end
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(Watch),
    /// Explain a trial: every decision about it, with the numbers it rests on
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Set what a tuning has booked against what its training jobs are billed
    #[command(after_help = COST_EXAMPLES)]
    Cost(Named<Place>),
    /// Change the limits of a tuning that runs: its cost cap, its jobs at once, a pause
    #[command(after_help = CHANGE_EXAMPLES)]
    Change(Change),
    /// Order a tuning, or all of them, to stop
    #[command(after_help = STOP_EXAMPLES)]
    Stop(Stop),
    /// Decide everything anew from the recorded facts and compare with what was decided
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(Named<Place>),
    /// Write a report of a tuning: one HTML file that needs nothing else
    #[command(after_help = REPORT_EXAMPLES)]
    Report(Report),
    /// Check in a real account what could be tried nowhere else: yes or no for each assumption
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(Doctor),
    /// Serve SageMaker's training-job operations on this machine, jobs as processes
    #[command(after_help = TRAINING_SERVICE_EXAMPLES)]
    TrainingService(TrainingService),
    /// Print a script that completes this command line in a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Where the tunings are.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Folder with the table, the training jobs and their checkpoints
    #[arg(long = "data-dir", value_name = "DIR", default_value = DATA_DIR, value_hint = ValueHint::DirPath)]
    #[arg(value_parser = folder())]
    pub(crate) data_dir: PathBuf,
}

/// `submit`.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// File with the JSON of CreateHyperParameterTuningJob, `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    #[command(flatten)]
    pub(crate) place: RemotePlace,
    /// Name of the tuning, in place of the request's HyperParameterTuningJobName
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Follow it to its end
    #[arg(long)]
    pub(crate) watch: bool,
    /// Least seconds between two looks, with --watch
    #[arg(long, value_name = "S", default_value = INTERVAL_DEFAULT, value_parser = interval)]
    pub(crate) interval: Duration,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// `watch`.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Name of the tuning
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: Source,
    /// Least seconds between two looks
    #[arg(long, value_name = "S", default_value = INTERVAL_DEFAULT, value_parser = interval)]
    pub(crate) interval: Duration,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// `run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// File with the JSON of CreateHyperParameterTuningJob, `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    /// Program that trains, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Name of the tuning, in place of the request's HyperParameterTuningJobName
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Interrupt spot jobs at random, so often per job and hour, to try how training goes on from its checkpoints
    #[arg(long, value_name = "RATE", default_value_t = 0.0, hide_default_value = true, value_parser = rate)]
    pub(crate) spot_interruptions: f64,
    /// Seconds that a training process may take to end after SIGTERM
    #[arg(long, value_name = "N", default_value = "120", value_parser = seconds)]
    pub(crate) grace_seconds: Duration,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// `training-service`.
#[derive(Debug, Args)]
pub(crate) struct TrainingService {
    /// Program that trains, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8321")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) place: Place,
    /// Event bus that is told of each change of a job's state; without it, none is
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, value_parser = endpoint)]
    pub(crate) events_endpoint: Option<String>,
    /// CloudWatch Logs that is sent what the jobs print; without it, that is in the folder alone
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, value_parser = endpoint)]
    pub(crate) logs_endpoint: Option<String>,
    /// Source of the events
    #[arg(long, value_name = "NAME", default_value = EVENT_SOURCE, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) event_source: String,
    /// Log group; made if there is none
    #[arg(long, value_name = "NAME", default_value = LOG_GROUP, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) log_group: String,
    /// Interrupt spot jobs at random, so often per job and hour, to try how training goes on from its checkpoints
    #[arg(long, value_name = "RATE", default_value_t = 0.0, hide_default_value = true, value_parser = rate)]
    pub(crate) spot_interruptions: f64,
    /// Seconds that a training process may take to end after SIGTERM
    #[arg(long, value_name = "N", default_value = "120", value_parser = seconds)]
    pub(crate) grace_seconds: Duration,
    /// How the address is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// `plan`.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// File with the JSON of CreateHyperParameterTuningJob, `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    /// Seconds from the start of a training job to its first epoch
    #[arg(long, value_name = "S", default_value = "180", value_parser = milliseconds)]
    pub(crate) startup_seconds: Milliseconds,
    /// Seconds that an epoch takes; without it, no time and no expected cost are shown
    #[arg(long, value_name = "E", value_parser = milliseconds)]
    pub(crate) epoch_seconds: Option<Milliseconds>,
    /// How the plan is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// `check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// File with the JSON of CreateHyperParameterTuningJob, `-` for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) request: PathBuf,
    /// Log of a training job on which the metric patterns are tried, `-` for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) log: Option<PathBuf>,
    /// How the findings are printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) place: Source,
    /// How the list is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// A command about one tuning, at a place of the kind `P`.
#[derive(Debug, Args)]
pub(crate) struct Named<P: Args> {
    /// Name of the tuning
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: P,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) tuning: Named<Place>,
    /// The trial: its number, or the name of one of its training jobs
    pub(crate) trial: String,
}

/// `stop`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["name", "all"])))]
pub(crate) struct Stop {
    /// Name of the tuning
    pub(crate) name: Option<String>,
    /// Every tuning that is not over; asks first
    #[arg(long)]
    pub(crate) all: bool,
    /// Do not ask; needed with --all where there is no terminal to ask on
    #[arg(long, requires = "all", conflicts_with = "name")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) place: Source,
    /// How the answer is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,
}

/// `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Name of the tuning
    pub(crate) name: String,
    /// File to write, `-` for standard output
    #[arg(short = 'o', long = "output", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// The form of an answer on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

fn folder() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        let file = path.exists() && !path.is_dir();
        if file { Err(format!("{} is not a folder", path.display())) } else { Ok(path) }
    })
}

fn interval(text: &str) -> Result<Duration, String> {
    let Milliseconds(length) = milliseconds(text)?;
    if length < 100 {
        Err("at least 0.1 seconds are wanted".to_owned())
    } else {
        Ok(Duration::from_millis(length))
    }
}

fn endpoint(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(text.to_owned()),
        _ => Err("an address such as http://127.0.0.1:4566 is wanted".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "a number of interruptions per job and hour is wanted, such as 0.5".to_owned())
}

fn seconds(text: &str) -> Result<Duration, String> {
    const GRACE_SECONDS_MAX: u64 = 3_600;
    let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds <= GRACE_SECONDS_MAX);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("whole seconds up to {GRACE_SECONDS_MAX} are wanted"))
}

/// A length of time given in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Milliseconds(pub(crate) u64);

/// Read by its digits, so that what is typed is what is counted.
fn milliseconds(text: &str) -> Result<Milliseconds, String> {
    const SECONDS_MAX: u64 = 2_419_200;
    let wanted = || format!("seconds up to {SECONDS_MAX} (28 days) are wanted, such as 90 or 0.25");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 3 {
        return Err(wanted());
    }
    let read = |text: &str| text.parse::<u64>().map_err(|_| wanted());
    let milliseconds = read(whole)?.saturating_mul(1_000).saturating_add(read(&format!("{fraction:0<3}"))?);
    if milliseconds <= SECONDS_MAX * 1_000 { Ok(Milliseconds(milliseconds)) } else { Err(wanted()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_after_two_dashes_is_the_command() {
        let parsed =
            Arguments::try_parse_from(["hyperband", "run", "r.json", "--", "sh", "--name", "x"]).unwrap();
        let Command::Run(run) = parsed.command else { panic!("run") };
        assert_eq!(run.command, ["sh", "--name", "x"]);
        assert_eq!(run.name, None);
        assert_eq!(run.place.data_dir, PathBuf::from(DATA_DIR));
    }

    #[test]
    fn an_endpoint_has_a_scheme_and_a_host() {
        for good in ["http://127.0.0.1:4566", "https://events.us-east-1.amazonaws.com"] {
            assert_eq!(endpoint(good), Ok(good.to_owned()));
        }
        for bad in ["", "127.0.0.1:4566", "http://", "http:///x", "ftp://host"] {
            assert!(endpoint(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn seconds_may_have_a_fraction() {
        for (text, expected) in [("90", 90_000), ("0.25", 250), ("1.5", 1_500), ("2419200", 2_419_200_000)] {
            assert_eq!(milliseconds(text), Ok(Milliseconds(expected)), "{text}");
        }
        for text in ["", ".5", "1.", "-1", "1e3", "0.0001", "2419200.001", "99999999999999999999", "1.-5"] {
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for arguments in
            [["--spot-interruptions", "-1"], ["--spot-interruptions", "inf"], ["--grace-seconds", "-1"]]
        {
            let line = ["hyperband", "run", "r.json", arguments[0], arguments[1], "--", "true"];
            assert!(Arguments::try_parse_from(line).is_err(), "{arguments:?}");
        }
    }
}
