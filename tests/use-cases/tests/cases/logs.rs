//! Reads of logs whose lines are known: which lines reach the decider, and why a log has no value.

use serde_json::{Value, json};
use tuning::log::fact::{Fact, Recorded};
use tuning::log::problem::LogProblem;
use tuning::log::ruling::{Order, ReadOrder};
use use_cases::perform::{Effect, Performed};
use wire::stored;

use crate::performing::{NOW, Stack, is_deferred, job, no_policy, rest_of};

/// When the job of [`rest_of`] was ordered and when it ended.
const ORDERED: i64 = NOW - 900_000;
const ENDED: i64 = NOW - 100_000;

type Lines = Vec<(&'static str, i64, &'static str)>;

/// Returns a stack whose program logs `auc=...`, with these lines in the logs of a job.
fn logged(epoch_pattern: Option<&str>, lines: Lines) -> Stack {
    let stack = Stack::with(|request| {
        request["HyperParameterTuningJobConfig"]["HyperParameterTuningJobObjective"]["MetricName"] =
            json!("auc");
        let algorithm = json!({
            "TrainingImage": "image:1",
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "auc", "Regex": r"auc=([0-9.]+)"}],
        });
        request["TrainingJobDefinition"]["AlgorithmSpecification"] = algorithm;
        request["Controller"] = epoch_pattern.map_or(Value::Null, |pattern| json!({"EpochPattern": pattern}));
    });
    stack.service.lock().lines = lines;
    stack
}

fn facts(stack: &Stack) -> impl Iterator<Item = Recorded> {
    stack.table.rows().into_iter().filter_map(|row| stored::fact(&row).ok())
}

/// Returns the hint about a log without a value, and whether it names the cause.
fn problem(stack: &Stack) -> Option<(String, bool)> {
    facts(stack).find_map(|recorded| match recorded.fact {
        Fact::LogProblemSeen { problem, .. } => match *problem {
            LogProblem::NoValue { hint, is_cause } => Some((hint, is_cause)),
            other => panic!("{other:?}"),
        },
        _ => None,
    })
}

/// Returns the values that the decider receives, in order of their epochs.
fn values(stack: &Stack) -> Vec<(Option<u64>, Option<f64>)> {
    let mut values: Vec<_> = facts(stack)
        .flat_map(|recorded| match recorded.fact {
            Fact::MetricsLogged { lines, .. } => lines,
            _ => Vec::new(),
        })
        .map(|line| (line.index, line.value))
        .collect();
    values.sort_by_key(|(epoch, _)| *epoch);
    values
}

/// Returns a log with more lines than one read takes, between `first` and a last line just before the end of the job.
fn flooded(first: Option<(i64, &'static str)>, last: &'static str) -> Lines {
    let first = first.map(|(at, text)| ("algo-1", at, text));
    let noise = (0..45).map(|n| ("algo-1", ORDERED + n, "loading"));
    first.into_iter().chain(noise).chain([("algo-1", ENDED - 299_000, last)]).collect()
}

const EPOCH: Option<&str> = Some(r"epoch (\d+)");

#[test]
fn the_log_of_a_completed_job_shows_why_it_has_no_value() {
    let own = |text| ("algo-1", ORDERED, text);
    let no_epoch = |lines: u32, first: &str| {
        let hint = format!(
            "{lines} lines match its Regex, but EpochPattern captures no epoch in them or before them: \"{first}\""
        );
        Some((hint, true))
    };
    let other_names = "no line has a similar name; the log has numbers after these names: loss".to_owned();
    let other_host = "the log of host algo-2 has values, but Controller.MetricHost is algo-1".to_owned();
    let letter_case = "the log uses another letter case; begin the pattern with (?i): \"AUC=0.5\"".to_owned();
    let cases = [
        (EPOCH, vec![own("a auc=0.5"), own("b auc=0.6")], no_epoch(2, "a auc=0.5")),
        (EPOCH, vec![own("epoch 1 auc=0.5")], None),
        (None, vec![own("auc=0.5")], None),
        (EPOCH, vec![own("epoch 1 loss=0.5")], Some((other_names, false))),
        (EPOCH, vec![own("AUC=0.5")], Some((letter_case, true))),
        (EPOCH, vec![own("loading"), ("algo-2", ORDERED, "auc=0.5")], Some((other_host, false))),
        // The log was not delivered, so it shows nothing.
        (EPOCH, vec![("algo-2", ORDERED, "auc=0.5")], None),
        (EPOCH, flooded(Some((ORDERED, "a auc=0.5")), "b auc=0.6"), no_epoch(2, "a auc=0.5")),
        (EPOCH, flooded(None, "epoch 9 auc=0.5"), None),
    ];
    for (pattern, lines, expected) in cases {
        let stack = logged(pattern, lines.clone());
        let rest = stack.order(rest_of(0));
        assert_eq!(stack.perform(&rest), Performed::Done(Effect::Other));
        assert_eq!(problem(&stack), expected, "{pattern:?}: {lines:?}");
    }
}

/// The clock of an instance may be behind by nearly an hour.
#[test]
fn the_first_and_the_last_value_of_a_flooded_log_are_read() {
    for refused in [0, 6] {
        let first = (ORDERED - 3_599_000, "epoch 1 auc=0.1");
        let stack = logged(EPOCH, flooded(Some(first), "epoch 9 auc=0.9"));
        let rest = stack.order(rest_of(0));
        stack.service.lock().read = Some(Err(no_policy()));
        for _ in 0..refused {
            assert!(is_deferred(&stack.perform(&rest)));
            stack.service.time.pass(300_000);
        }
        stack.service.lock().read = Some(Ok(1));
        assert_eq!(stack.perform(&rest), Performed::Done(Effect::Other), "after {refused} refusals");
        assert_eq!(values(&stack), [(Some(1), Some(0.1)), (Some(9), Some(0.9))], "after {refused} refusals");
    }
}

/// A batch reads ten pages of a log, and the sweeper forty. What it then has is enough.
#[test]
fn a_batch_leaves_a_long_log_to_the_sweeper_which_reads_as_much_as_it_can() {
    let log_of = |trial| Order::Read(ReadOrder::Log { job: job(trial), streams: 1 });
    for (ordered, fact) in [(rest_of(0), "rest-read#0-0-1"), (log_of(0), "log-read#0-0-1#1")] {
        for (pages, in_a_batch) in [(10, true), (11, false), (40, false), (41, false)] {
            let stack = Stack::new();
            stack.service.lock().read = Some(Ok(pages));
            let action = stack.order(ordered.clone());
            let performed = &stack.handle(&[&action])[0].1;
            assert_eq!(is_deferred(performed), !in_a_batch, "{fact}, {pages} pages: {performed:?}");
            assert_eq!(stack.knows(fact), in_a_batch, "{pages} pages");
            stack.service.time.pass(1_000);
            assert!(stack.perform(&action).is_done(), "{fact}, {pages} pages");
            assert!(stack.knows(fact), "{pages} pages");
        }
    }
}
