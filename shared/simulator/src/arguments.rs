//! The command line: what may be asked for, and the command that asks for one history again.

use std::ops::Range;

use simulator::{Run, encode, shrink};

/// The text of `--help`.
pub(crate) const HELP: &str = "\
The fault simulator: whole histories of tunings in virtual time, with everything going wrong that can.

usage: simulator --seeds A..B [options]
       simulator --history JSON [options]

  --seeds A..B       the histories of the seeds A to B-1, everything drawn from the seed
  --history JSON     one history with all its parameters, as a failure prints it
  --jobs N           threads (default 1)
  --seconds S        begin no further history after S seconds
  --trace            print a line for everything that happens
  --report           print how often each fault, ruling and end came about
  --no-shrink        do not look for a smaller history that fails in the same way
  --shrink-runs N    histories tried for that (default 400)
  --planted NAME     with a bug that is planted (needs cargo's --features planted); 'list' names them
  --help             this text

The last line is `N histories, E events, V violations`. Exit code: 0 when V is 0, 1 when it is not, 2 when the command
line is wrong.

examples:
  cargo run --release -p simulator -- --seeds 0..1000 --jobs 2
  cargo run --release -p simulator -- --seeds 17..18 --trace
  cargo run --release -p simulator -- --history '{\"seed\":7,\"plan\":{\"rates\":{\"StreamLost\":0.3}},\"cases\":[{\"name\":\"sim0\"}]}'
";

/// What was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arguments {
    /// The histories.
    pub(crate) runs: Runs,
    /// Threads.
    pub(crate) jobs: u64,
    /// No further history is begun after so many seconds.
    pub(crate) seconds: Option<u64>,
    /// Whether a trace is wanted.
    pub(crate) trace: bool,
    /// Whether the report is wanted.
    pub(crate) report: bool,
    /// Histories tried to make a failing one smaller; 0 = none.
    pub(crate) shrink_runs: u32,
    /// Name of the bug that is planted.
    pub(crate) planted: Option<String>,
}

/// Which histories.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Runs {
    /// Drawn from seeds.
    Seeds(Range<u64>),
    /// This one.
    One(Box<Run>),
}

impl Runs {
    /// How many.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Seeds(seeds) => seeds.end - seeds.start,
            Self::One(_) => 1,
        }
    }

    /// One of them, from 0.
    pub(crate) fn get(&self, index: u64) -> Run {
        match self {
            Self::Seeds(seeds) => Run::drawn(seeds.start + index),
            Self::One(run) => Run::clone(run),
        }
    }
}

/// Reads the command line; `None` = the help was asked for.
pub(crate) fn parse(given: impl IntoIterator<Item = String>) -> Result<Option<Arguments>, String> {
    let mut runs = None;
    let mut parsed = Arguments {
        runs: Runs::Seeds(0..0),
        jobs: 1,
        seconds: None,
        trace: false,
        report: false,
        shrink_runs: shrink::RUNS,
        planted: None,
    };
    let mut given = given.into_iter();
    while let Some(argument) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{argument} needs a value"));
        let chosen = match argument.as_str() {
            "--help" | "-h" => return Ok(None),
            "--seeds" => Runs::Seeds(seeds(&value()?)?),
            "--history" => {
                let run =
                    encode::parse(&value()?).map_err(|why| format!("--history cannot be read: {why}"))?;
                Runs::One(Box::new(run))
            }
            other => {
                match other {
                    "--jobs" => parsed.jobs = number(&argument, &value()?, 1)?.into(),
                    "--seconds" => parsed.seconds = Some(number(&argument, &value()?, 1)?.into()),
                    "--trace" => parsed.trace = true,
                    "--report" => parsed.report = true,
                    "--no-shrink" => parsed.shrink_runs = 0,
                    "--shrink-runs" => parsed.shrink_runs = number(&argument, &value()?, 0)?,
                    "--planted" => parsed.planted = Some(value()?),
                    _ => return Err(format!("unknown argument {argument}")),
                }
                continue;
            }
        };
        if runs.replace(chosen).is_some() {
            return Err("--seeds and --history are given once, and not both".to_owned());
        }
    }
    let listed = parsed.planted.as_deref() == Some("list");
    match runs {
        Some(runs) => parsed.runs = runs,
        None if listed => {}
        None => return Err("--seeds A..B or --history JSON is missing".to_owned()),
    }
    Ok(Some(parsed))
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range
        .filter(|range| !range.is_empty())
        .ok_or_else(|| format!("--seeds {text} is not A..B with A below B"))
}

fn number(argument: &str, text: &str, least: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{argument} {text} is not a whole number of at least {least}"))
}

/// The command that makes this history again.
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

    fn given(line: &str) -> Result<Option<Arguments>, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    /// What a shell makes of a command: words, single quotes, and a backslash before a quote.
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
    fn a_printed_command_gives_the_same_run() {
        for seed in 0..300 {
            let mut run = Run::drawn(seed);
            // A quote must survive the shell.
            run.cases[0].request["TrainingJobDefinition"]["Environment"] = serde_json::json!({"WHO": "it's"});
            let words = words(&command(&run, Some("RingIgnored")));
            let arguments = words.into_iter().skip_while(|word| word != "--").skip(1);
            let parsed = parse(arguments).expect("a command line").expect("a run");
            assert_eq!(parsed.planted.as_deref(), Some("RingIgnored"));
            assert_eq!(parsed.runs, Runs::One(Box::new(run)), "seed {seed}");
        }
    }

    #[test]
    fn the_usual_command_line() {
        let parsed = given("--seeds 3..5 --jobs 2 --report --no-shrink").expect("right").expect("no help");
        assert_eq!((parsed.runs.len(), parsed.jobs, parsed.report, parsed.shrink_runs), (2, 2, true, 0));
        assert_eq!(parsed.runs.get(1), Run::drawn(4));
        assert_eq!(given("--seeds 1..2 --help"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = [
            ("", "--seeds A..B or --history JSON is missing"),
            ("--seeds", "--seeds needs a value"),
            ("--seeds 5..5", "--seeds 5..5 is not A..B with A below B"),
            ("--seeds 1..2 --seed 3", "unknown argument --seed"),
            ("--seeds 1..2 --jobs 0", "--jobs 0 is not a whole number of at least 1"),
            ("--seeds 1..2 --seeds 3..4", "--seeds and --history are given once, and not both"),
            (
                "--history {\"seed\":1,\"cases\":[{}]}",
                "--history cannot be read: missing field `name` at line 1 column 21",
            ),
            (
                "--history {\"seed\":1,\"plan\":{\"shard\":2},\"cases\":[]}",
                "--history cannot be read: unknown field shard",
            ),
        ];
        for (line, message) in wrong {
            assert_eq!(given(line), Err(message.to_owned()), "{line}");
        }
    }

    #[test]
    fn the_example_of_the_help_is_right() {
        let line = HELP.lines().rfind(|line| line.contains("--history '")).expect("an example");
        let words = words(line.trim());
        assert!(parse(words.into_iter().skip_while(|word| word != "--").skip(1)).is_ok());
    }
}
