//! The command line of the simulator, and the command that repeats one history.

use std::ops::Range;

use clap::builder::RangedU64ValueParser;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use simulator::{Run, encode, shrink};

/// The name that `--planted` takes to list all planted bugs.
const LIST: &str = "list";

/// Printed at the end of `--help`.
const AFTER_HELP: &str = "\
The last line of the output is `N histories, E events, V violations`.
Exit code: 0 when V is 0, 1 when V is above 0, 2 when the command line is invalid.

Examples:
  cargo run --release -p simulator -- --seeds 0..1000 --jobs 2
  cargo run --release -p simulator -- --seeds 17..18 --trace
  cargo run --release -p simulator -- --exhaustive 2 --seconds 600
  cargo run --release -p simulator -- --history \\
    '{\"seed\":7,\"plan\":{\"rates\":{\"StreamLost\":0.3}},\"cases\":[{\"name\":\"sim0\"}]}'";

/// Plays whole tunings in virtual time while faults strike, and checks the promises P1 to P8 at every commit.
#[derive(Debug, Clone, PartialEq, Parser)]
#[command(name = "simulator", after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Play the histories of the seeds A to B-1; each is drawn from its seed
    #[arg(long, value_name = "A..B", value_parser = seeds, conflicts_with = "history")]
    seeds: Option<Range<u64>>,
    /// Play one history with all its parameters, as a failure prints it
    #[arg(long, value_name = "JSON", value_parser = history)]
    history: Option<Box<Run>>,
    /// Instead of histories, visit every world of a small tuning that at most N faults reach, each at any place
    #[arg(long, value_name = "N", value_parser = at_least(0), conflicts_with_all = ["seeds", "history"])]
    pub(crate) exhaustive: Option<u32>,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least(1))]
    pub(crate) jobs: u32,
    /// Start no further history after S seconds
    #[arg(long, value_name = "S", value_parser = at_least(1))]
    pub(crate) seconds: Option<u32>,
    /// Print a line for everything that happens
    #[arg(long)]
    pub(crate) trace: bool,
    /// Print how often each fault, rule and end occurred
    #[arg(long)]
    pub(crate) report: bool,
    /// Do not search for a smaller history that fails in the same way
    #[arg(long, overrides_with = "shrink_runs")]
    no_shrink: bool,
    /// Number of histories to try when searching for a smaller one; 0 = none
    #[arg(long, value_name = "N", default_value_t = shrink::RUNS)]
    #[arg(value_parser = at_least(0), overrides_with = "no_shrink")]
    shrink_runs: u32,
    /// Turn on a planted bug; `list` prints their names. Needs cargo's `--features planted`
    #[arg(long, value_name = "NAME")]
    pub(crate) planted: Option<String>,
}

/// The histories to play.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Runs {
    /// Drawn from these seeds.
    Seeds(Range<u64>),
    /// This history only.
    One(Box<Run>),
}

impl Runs {
    /// Returns the number of histories.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Seeds(seeds) => seeds.end - seeds.start,
            Self::One(_) => 1,
        }
    }

    /// Returns the history with this index; the first has index 0.
    pub(crate) fn get(&self, index: u64) -> Run {
        match self {
            Self::Seeds(seeds) => Run::drawn(seeds.start + index),
            Self::One(run) => Run::clone(run),
        }
    }
}

impl Arguments {
    /// Parses a command line whose first item is the name of the program.
    pub(crate) fn read(line: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let arguments = Self::try_parse_from(line)?;
        let plays =
            arguments.seeds.is_some() || arguments.history.is_some() || arguments.exhaustive.is_some();
        if !plays && !arguments.lists_planted() {
            let message = "missing --seeds A..B, --history JSON or --exhaustive N";
            return Err(Self::command().error(ErrorKind::MissingRequiredArgument, message));
        }
        Ok(arguments)
    }

    /// Returns whether only the names of the planted bugs are to be printed.
    pub(crate) fn lists_planted(&self) -> bool {
        self.planted.as_deref() == Some(LIST)
    }

    /// Returns the histories to play.
    pub(crate) fn runs(&self) -> Runs {
        match (&self.history, &self.seeds) {
            (Some(run), _) => Runs::One(run.clone()),
            (None, Some(seeds)) => Runs::Seeds(seeds.clone()),
            (None, None) => Runs::Seeds(0..0),
        }
    }

    /// Returns the number of histories to try when shrinking a failure; 0 = do not shrink.
    pub(crate) fn shrink_runs(&self) -> u32 {
        if self.no_shrink { 0 } else { self.shrink_runs }
    }
}

fn at_least(least: u64) -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(least..)
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    let range = range.filter(|range| !range.is_empty());
    range.ok_or_else(|| "expected A..B with A below B, for example 0..100".to_owned())
}

fn history(text: &str) -> Result<Box<Run>, String> {
    encode::parse(text).map(Box::new)
}

/// Returns the command that plays this history again.
pub(crate) fn command(run: &Run, planted: Option<&str>) -> String {
    let (features, planted) = match planted {
        Some(name) => (" --features planted", format!(" --planted {name}")),
        None => ("", String::new()),
    };
    let history = encode::text(run).replace('\'', r"'\''");
    format!("cargo run --release -p simulator{features} -- --history '{history}'{planted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Arguments, clap::Error> {
        Arguments::read(std::iter::once("simulator".to_owned()).chain(arguments))
    }

    fn given(line: &str) -> Result<Arguments, clap::Error> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    /// Splits a command as a shell does: words, single quotes, and a backslash before a quote.
    fn words(command: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        let mut letters = command.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\'' => quoted = !quoted,
                '\\' if !quoted => word.extend(letters.next()),
                ' ' if !quoted => words.push(std::mem::take(&mut word)),
                _ => word.push(letter),
            }
        }
        words.push(word);
        words
    }

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_printed_command_gives_the_same_run() {
        for seed in 0..300 {
            let mut run = Run::drawn(seed);
            // A quote must survive the shell.
            run.cases[0].request["TrainingJobDefinition"]["Environment"] = serde_json::json!({"WHO": "it's"});
            let words = words(&command(&run, Some("RingIgnored")));
            let arguments = words.into_iter().skip_while(|word| word != "--").skip(1);
            let parsed = parse(arguments).expect("a command line");
            assert_eq!(parsed.planted.as_deref(), Some("RingIgnored"));
            assert_eq!(parsed.runs(), Runs::One(Box::new(run)), "seed {seed}");
        }
    }

    #[test]
    fn options_are_read_from_the_command_line() {
        let parsed = given("--seeds 3..5 --jobs 2 --seconds 60 --report --no-shrink").expect("valid options");
        assert_eq!((parsed.jobs, parsed.seconds, parsed.shrink_runs()), (2, Some(60), 0));
        assert!(parsed.report && !parsed.trace);
        assert_eq!((parsed.runs().len(), parsed.runs().get(1)), (2, Run::drawn(4)));
    }

    #[test]
    fn defaults_are_one_thread_and_the_usual_number_of_shrink_runs() {
        let parsed = given("--seeds 3..5").expect("valid options");
        assert_eq!((parsed.jobs, parsed.seconds, parsed.shrink_runs()), (1, None, shrink::RUNS));
    }

    #[test]
    fn the_last_of_two_shrink_options_counts() {
        let runs = |line: &str| given(line).expect("valid options").shrink_runs();
        assert_eq!(runs("--seeds 1..2 --no-shrink --shrink-runs 7"), 7);
        assert_eq!(runs("--seeds 1..2 --shrink-runs 7 --no-shrink"), 0);
        assert_eq!(runs("--seeds 1..2 --shrink-runs 0"), 0);
    }

    #[test]
    fn the_list_of_planted_bugs_needs_no_history() {
        assert!(given("--planted list").expect("valid options").lists_planted());
        assert!(given("--planted RingIgnored").is_err());
    }

    #[test]
    fn an_invalid_command_line_is_refused_with_its_reason() {
        let invalid = [
            ("", "missing --seeds A..B, --history JSON or --exhaustive N"),
            ("--seeds", "a value is required for '--seeds <A..B>'"),
            (
                "--seeds 5..5",
                "invalid value '5..5' for '--seeds <A..B>': expected A..B with A below B, for example 0..100",
            ),
            ("--seeds 1..2 --seed 3", "unexpected argument '--seed'"),
            ("--seeds 1..2 --jobs 0", "invalid value '0' for '--jobs <N>': 0 is not in 1.."),
            ("--seeds 1..2 --seconds x", "invalid value 'x' for '--seconds <S>': invalid digit"),
            ("--seeds 1..2 --shrink-runs 4294967296", "out of range integral type conversion attempted"),
            ("--seeds 1..2 --seeds 3..4", "'--seeds <A..B>' cannot be used multiple times"),
            (
                "--seeds 1..2 --history {\"seed\":1,\"cases\":[]}",
                "'--seeds <A..B>' cannot be used with '--history <JSON>'",
            ),
            ("--history {\"seed\":1,\"cases\":[{}]}", "missing field `name` at line 1 column 21"),
            ("--history {\"seed\":1,\"plan\":{\"shard\":2},\"cases\":[]}", "unknown field shard"),
        ];
        for (line, reason) in invalid {
            let error = given(line).expect_err(line);
            assert!(error.to_string().contains(reason), "{line}: {error}");
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn the_history_example_of_the_help_is_valid() {
        let help = given("--seeds 1..2 --help").expect_err("the help");
        assert_eq!((help.kind(), help.exit_code()), (ErrorKind::DisplayHelp, 0));
        let help = help.to_string();
        let (_, history) = help.split_once("--history \\\n").expect("an example");
        let parsed = parse(["--history".to_owned(), words(history.trim()).remove(0)]).expect("valid options");
        assert_eq!(parsed.runs().get(0).seed, 7);
    }
}
