//! `hyperband init`: writes a request with comments, from parameter ranges and a training log.
//!
//! On a terminal, asks for the settings that the command line lacks. Never writes an invalid request, and overwrites a
//! file only with `--force`.

mod goal;
mod questions;
mod range;
mod sample;
mod text;

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::Path;

use crate::arguments::{self, Goal};
use crate::check::{Checked, for_this_machine, log_table, read_log};
use crate::failure::{Exit, Failure};
use crate::output::{print_err, print_out_raw};
use crate::request;
use crate::text::{clean, quoted};
use crate::warning;
use questions::{Question, Questions};
use sample::Sample;

pub(crate) use range::Range;

/// Maximum length of a tuning's name.
const NAME_CHARACTERS: usize = 32;
const JOBS: u64 = 30;
const PARALLEL: u32 = 4;
/// A common number of epochs, three times divisible by Hyperband's reduction factor.
const MAX_RESOURCE: u32 = 27;

/// The content of the request.
#[derive(Debug)]
struct Draft {
    name: String,
    ranges: Vec<Range>,
    metric: String,
    /// `None` for the built-in pattern.
    regex: Option<String>,
    /// Other metrics of the log, with their patterns.
    others: Vec<(String, String)>,
    goal: Goal,
    epoch_pattern: Option<String>,
    epoch_base: u32,
    max_resource: u32,
    resource_hyperparameter: Option<String>,
    jobs: u32,
    parallel: u32,
}

/// Performs `hyperband init`.
pub(crate) fn init(options: &arguments::Init) -> Result<Exit, Failure> {
    let is_file = options.file != Path::new("-");
    if is_file && !options.force && options.file.exists() {
        return Err(exists(&options.file));
    }
    let sample = options.log.as_deref().map(Sample::read).transpose()?;
    let draft = complete(options, sample.as_ref(), &mut questions::of_terminal())?;
    let text = text::write(&draft);
    let invalid = |error| Failure::invalid_request(&error);
    let body = request::parse(&options.file, text.as_bytes()).map_err(invalid)?;
    let request = for_this_machine(body.clone()).map_err(invalid)?;
    let found = options.log.as_deref().map(|path| read_log(&request, path)).transpose()?;
    let checked = Checked::examine(request, found, body);
    if is_file {
        write(options, &text)?;
    } else {
        print_out_raw(&text);
    }
    let table = checked.log.as_ref().map(log_table).unwrap_or_default();
    let mut report = table.trim_start().to_owned();
    report.push_str(&summary(&draft, options));
    report.push_str(&warning::text(&checked.warnings));
    if is_file {
        report.push_str(&next_commands(options));
        print_out_raw(&report);
    } else {
        print_err(&report);
    }
    Ok(Exit::Done)
}

fn exists(file: &Path) -> Failure {
    Failure::usage(format!("{} already exists", file.display()))
        .hint("add --force to overwrite it, or name another file with -o")
}

fn write(options: &arguments::Init, text: &str) -> Result<(), Failure> {
    let file = &options.file;
    let opened = if options.force {
        OpenOptions::new().write(true).create(true).truncate(true).open(file)
    } else {
        File::create_new(file)
    };
    match opened.and_then(|mut opened| opened.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(file)),
        Err(error) => Err(Failure::file("cannot write", file, &error)),
    }
}

fn summary(draft: &Draft, options: &arguments::Init) -> String {
    let goal = match draft.goal {
        Goal::Maximize => "maximize",
        Goal::Minimize => "minimize",
    };
    let from_log = match (options.max_resource, &options.log) {
        (None, Some(_)) => ", as in the log; --max-resource sets another number",
        (Some(_), _) | (None, None) => "",
    };
    let pattern = |pattern: &Option<String>, none: &str| pattern.clone().unwrap_or_else(|| none.to_owned());
    let lines = [
        ("metric", format!("{goal} {}", draft.metric)),
        ("value", pattern(&draft.regex, "lines such as NAME=0.5 or NAME: 0.5")),
        ("epoch", pattern(&draft.epoch_pattern, "each line with the value counts as one epoch")),
        ("training", format!("{} epochs{from_log}", draft.max_resource)),
        ("jobs", format!("{}, {} at once", draft.jobs, draft.parallel)),
    ];
    let lines = lines.map(|(label, line)| format!("{label:<9} {}\n", clean(&line)));
    lines.concat()
}

fn next_commands(options: &arguments::Init) -> String {
    let file = quoted(&options.file.to_string_lossy());
    let log =
        options.log.as_ref().map_or_else(|| "training.log".to_owned(), |log| quoted(&log.to_string_lossy()));
    format!(
        "\nwrote {file}; next:\n\n  hyperband check {file} --log {log}\n  hyperband run {file} -- COMMAND\n\nCOMMAND finds \
         the hyperparameter NAME in $SM_HP_NAME. To get it as an option, write --pass-args before --, or {{NAME}} in \
         COMMAND.\n"
    )
}

/// Completes the options: by the log, by answers, and by defaults.
fn complete(
    options: &arguments::Init,
    sample: Option<&Sample>,
    questions: &mut Questions<impl BufRead>,
) -> Result<Draft, Failure> {
    let is_guided = options.ranges.is_empty() && questions.is_terminal();
    let ranges = ranges(options, questions)?;
    let (metric, regex) = metric(options, sample, questions)?;
    let goal = if let Some(goal) = options.goal.or_else(|| goal::guess(&metric)) {
        goal
    } else {
        let text = format!("Is a greater or a smaller {metric} better? (maximize or minimize)");
        let option = "--goal maximize or --goal minimize";
        questions.ask(Question { option, text: &text, default: None }, parse_goal)?
    };
    let pattern = regex.clone().unwrap_or_else(|| wire::request::default_regex(&metric));
    let epochs = sample.and_then(|sample| sample.epochs(&pattern, options.epoch_pattern.as_deref()));
    let suggested = epochs.as_ref().map(|epochs| epochs.count.to_string());
    let suggested = suggested.or_else(|| questions.is_terminal().then(|| MAX_RESOURCE.to_string()));
    let max_resource = if let Some(given) = options.max_resource {
        given
    } else {
        let text = "Number of epochs of a full training";
        let option = "--max-resource N (the epochs of a full training)";
        questions.ask(Question { option, text, default: suggested.as_deref() }, parse_count)?
    };
    let mut number = |given: Option<u32>, option: &str, text: &str, default: u32| match given {
        Some(given) => Ok(given),
        None if is_guided => {
            questions.ask(Question { option, text, default: Some(&default.to_string()) }, parse_count)
        }
        None => Ok(default),
    };
    let configurations = ranges.iter().try_fold(1_u64, |all, range| Some(all.saturating_mul(range.count()?)));
    let most = u32::try_from(configurations.unwrap_or(JOBS).min(JOBS)).unwrap_or(1);
    let jobs = number(options.jobs, "--jobs N", "Number of training jobs in total", most)?;
    let at_once = PARALLEL.min(jobs);
    let parallel = number(options.parallel, "--parallel N", "Number of training jobs at once", at_once)?;
    let others = sample.map_or_else(Vec::new, |sample| sample.others(&metric, &pattern));
    Ok(Draft {
        others,
        name: options.name.clone().unwrap_or_else(default_name),
        ranges,
        metric,
        regex,
        goal,
        epoch_base: epochs.as_ref().map_or(1, |epochs| epochs.base),
        epoch_pattern: options.epoch_pattern.clone().or_else(|| epochs?.pattern),
        max_resource,
        resource_hyperparameter: options.resource_hyperparameter.clone(),
        jobs,
        parallel,
    })
}

fn ranges(options: &arguments::Init, questions: &mut Questions<impl BufRead>) -> Result<Vec<Range>, Failure> {
    let mut ranges = options.ranges.clone();
    if !ranges.is_empty() {
        return Ok(ranges);
    }
    let option = "RANGE (a hyperparameter to tune, for example lr=log:1e-5..1e-1)";
    let text =
        "Hyperparameter to tune, for example lr=log:1e-5..1e-1, depth=int:2..10 or act=choice:relu,tanh";
    ranges.push(questions.ask(Question { option, text, default: None }, str::parse)?);
    loop {
        let text = "Another hyperparameter, or an empty line to continue";
        let parse = |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some) };
        match questions.ask(Question { option, text, default: None }, parse)? {
            Some(range) => ranges.push(range),
            None => return Ok(ranges),
        }
    }
}

/// Returns the name of the metric, and its pattern unless the built-in one is used.
fn metric(
    options: &arguments::Init,
    sample: Option<&Sample>,
    questions: &mut Questions<impl BufRead>,
) -> Result<(String, Option<String>), Failure> {
    let proposed = sample.map(Sample::metrics).unwrap_or_default();
    let metric = if let Some(given) = &options.metric {
        given.clone()
    } else {
        let mut text = "Name of the metric to optimize".to_owned();
        if let [_, others @ ..] = proposed.as_slice()
            && !others.is_empty()
        {
            text = format!("{text} (the log also has {})", others.join(", "));
        }
        let question = Question { option: "--metric NAME", text: &text, default: proposed.first().copied() };
        questions.ask(question, |text| {
            if text.is_empty() {
                Err("expected a name, for example accuracy".to_owned())
            } else {
                Ok(text.to_owned())
            }
        })?
    };
    if options.metric_pattern.is_some() {
        return Ok((metric, options.metric_pattern.clone()));
    }
    let Some(sample) = sample else { return Ok((metric, None)) };
    let pattern = sample.pattern(&metric).ok_or_else(|| {
        let near = wire::closest(&metric, proposed.iter().copied());
        let names = if near.is_empty() { proposed.clone() } else { near };
        let hint =
            if names.is_empty() { String::new() } else { format!(" (the log has {})", names.join(", ")) };
        Failure::usage(format!("the log has no number after '{metric}'{hint}"))
            .hint("set --metric to a name of the log, or add --metric-pattern REGEX")
    })?;
    Ok((metric, Some(pattern)))
}

fn parse_goal(text: &str) -> Result<Goal, String> {
    match text.to_lowercase().as_str() {
        "maximize" | "max" | "greater" => Ok(Goal::Maximize),
        "minimize" | "min" | "smaller" => Ok(Goal::Minimize),
        _ => Err("expected maximize or minimize".to_owned()),
    }
}

fn parse_count(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number above 0".to_owned())
}

/// Returns the name of the current folder with the characters that a tuning's name allows.
fn default_name() -> String {
    let folder = std::env::current_dir().ok();
    let folder = folder.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    tuning_name(&folder.unwrap_or_default())
}

fn tuning_name(text: &str) -> String {
    let parts = text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join("-");
    let name: String = joined.chars().take(NAME_CHARACTERS).collect();
    let name = name.trim_end_matches('-');
    if name.is_empty() { "tuning".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    use clap::Parser;

    /// Returns the draft of a command line with answers at a terminal.
    fn drafted(line: &str, answers: &str) -> Result<Draft, Failure> {
        let words = ["hyperband", "init"].into_iter().chain(line.split_whitespace());
        let parsed = arguments::Arguments::try_parse_from(words).unwrap();
        let arguments::Command::Init(options) = parsed.command else { panic!("init") };
        complete(&options, None, &mut Questions { input: Some(answers.as_bytes()) })
    }

    #[test]
    fn a_terminal_answers_one_question_after_the_other() {
        let answers = "lr=1\nlr=log:1e-5..1e-1\nact=choice:relu,tanh\n\nspeed\nup\nmaximize\n\n\n2\n";
        let draft = drafted("", answers).unwrap();
        assert_eq!((draft.ranges.len(), draft.metric.as_str(), draft.goal), (2, "speed", Goal::Maximize));
        assert_eq!((draft.max_resource, draft.jobs, draft.parallel), (27, 30, 2));
    }

    #[test]
    fn options_replace_questions() {
        let draft = drafted("depth=int:1..3 --metric loss --max-resource 9", "").unwrap();
        assert_eq!((draft.goal, draft.jobs, draft.parallel), (Goal::Minimize, 3, 3));
        let draft = drafted("lr=0.1..0.5 --goal minimize", "speed\n9\n").unwrap();
        assert_eq!((draft.metric.as_str(), draft.max_resource, draft.jobs), ("speed", 9, 30));
        assert!(drafted("lr=0.1..0.5 --metric loss", "").is_err(), "the input ended");
    }

    #[test]
    fn a_folder_becomes_a_valid_name() {
        for (folder, expected) in [
            ("my_project (2)", "my-project-2"),
            ("", "tuning"),
            (".tmp", "tmp"),
            ("---", "tuning"),
            ("a123456789012345678901234567890 b", "a123456789012345678901234567890"),
        ] {
            assert_eq!(tuning_name(folder), expected, "{folder}");
        }
    }
}
