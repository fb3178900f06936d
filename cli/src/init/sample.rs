//! Proposes metrics and patterns from the log of one training run.
//!
//! Proposes a pattern only if it finds values in the log. Prefers a short pattern if it finds the same values as a
//! strict one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use regex::{Regex, escape};
use wire::events::logs::{Explanation, MetricPattern, visible};
use wire::request::{NUMBER_PATTERN, compile_pattern, default_regex};

use super::goal;
use crate::arguments::Goal;
use crate::failure::Failure;

/// Maximum bytes to read of a log.
const BYTES_MAX: u64 = 16 << 20;
/// Longer lines have no metric.
const LINE_BYTES_MAX: usize = 4_096;
/// Maximum number of metrics beside the objective: a request has at most 40.
const METRICS_MAX: usize = 39;
/// Maximum number of names to keep.
const NAMES_MAX: usize = 200;
/// A name with a number after `=` or `:`, as in `loss=0.5`, `loss: 0.5` and `"loss": 0.5`.
const NAMED: &str = r#"([A-Za-z_][\w./@-]*)["']?\s*[=:]\s*["']?[-+]?\.?[0-9]"#;
/// A name with a decimal number after a space, as in `acc 0.9`.
const SPACED: &str = r"([A-Za-z_][\w./@-]*)\s+[-+]?(?:[0-9]*\.[0-9]|[0-9]+e-?[0-9])";
/// Words of numbers that are no metrics.
const OTHERS: &str = "\
    epoch epochs step steps iter iters iteration iterations round batch time seconds sec s ms elapsed \
    eta lr learning rate seed size total version port gpu mem memory samples speed throughput";
/// Patterns of an epoch, the best first.
const EPOCHS: &[&str] = &[
    r"epoch=(\d+)",
    r"epoch (\d+)",
    r"Epoch (\d+)",
    r"epoch: (\d+)",
    r"Epoch: (\d+)",
    r#""epoch": (\d+)"#,
    r#""epoch":(\d+)"#,
    r"(?i)\bepochs?\W{0,4}(\d+)",
    r"^\[(\d+)\]",
    r"\[(\d+)\]",
    r"(?i)\b(?:round|iteration|iter|step)s?\W{0,4}(\d+)",
];

#[derive(Debug)]
pub(super) struct Sample {
    lines: Vec<String>,
    /// Names with a number, in the order of the log.
    names: Vec<Name>,
}

#[derive(Debug)]
struct Name {
    text: String,
    /// Whether only a space separates the name from its number.
    spaced: bool,
}

/// The epochs of a metric's lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Epochs {
    /// The pattern. `None` if the lines have no epoch.
    pub(super) pattern: Option<String>,
    /// The index of the first epoch.
    pub(super) base: u32,
    /// The number of epochs of the training.
    pub(super) count: u32,
}

impl Sample {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
        read.map_err(|error| Failure::file("cannot read the log", path, &error))?;
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let lines = text.lines().filter(|line| line.len() <= LINE_BYTES_MAX).map(visible);
        let lines: Vec<String> = lines.collect();
        let mut names: Vec<Name> = Vec::new();
        for (pattern, spaced) in [(NAMED, false), (SPACED, true)] {
            let pattern = Regex::new(pattern)?;
            for found in lines.iter().flat_map(|line| pattern.captures_iter(line)) {
                let name = found.get(1).map_or("", |name| name.as_str());
                if names.len() < NAMES_MAX && names.iter().all(|known| known.text != name) {
                    names.push(Name { text: name.to_owned(), spaced });
                }
            }
        }
        Ok(Self { lines, names })
    }

    /// Returns the names that may be metrics, the best proposal first.
    pub(super) fn metrics(&self) -> Vec<&str> {
        let mut metrics: Vec<&str> = self.names.iter().map(|name| name.text.as_str()).collect();
        metrics.retain(|name| {
            goal::guess(name).is_some()
                || !goal::words(name).iter().any(|word| OTHERS.split(' ').any(|other| other == word))
        });
        // The sort is stable, so equal names keep the order of the log.
        metrics.sort_by_key(|name| {
            let goal = goal::guess(name);
            (goal.is_none(), !goal::is_validation(name), goal == Some(Goal::Minimize))
        });
        metrics
    }

    /// Returns a pattern that reads the values of a metric; `None` if the log has none.
    pub(super) fn pattern(&self, metric: &str) -> Option<String> {
        let known = self.names.iter().find(|name| name.text == metric);
        let strict = if known.is_some_and(|name| name.spaced) {
            format!(r"(?:^|[^\w./-]){}\s+{NUMBER_PATTERN}", escape(metric))
        } else {
            default_regex(metric)
        };
        let values = self.values(&strict);
        let first = self.lines.iter().zip(&values).find(|(_, value)| value.is_some())?.0;
        // On another line, a short pattern would read the value of a longer name.
        let ends_longer = |name: &Name| name.text != metric && name.text.ends_with(metric);
        let is_last = self.names.iter().any(ends_longer);
        let short = short(metric, first).filter(|short| !is_last && self.values(short) == values);
        Some(short.unwrap_or(strict))
    }

    /// Returns the other metrics of the log with their patterns: names with a value at least half as often as `metric`,
    /// which `pattern` reads.
    pub(super) fn others(&self, metric: &str, pattern: &str) -> Vec<(String, String)> {
        let count = |pattern: &str| self.values(pattern).iter().flatten().count();
        let least = count(pattern).div_ceil(2).max(1);
        let names = self.metrics().into_iter().filter(|name| *name != metric);
        let read = names.filter_map(|name| Some((name.to_owned(), self.pattern(name)?)));
        read.filter(|(_, pattern)| count(pattern) >= least).take(METRICS_MAX).collect()
    }

    /// Returns the value that a pattern captures in each line.
    fn values(&self, pattern: &str) -> Vec<Option<String>> {
        let Ok(pattern) = MetricPattern::new(pattern, None) else { return Vec::new() };
        let value = |line: &String| match pattern.explain(line) {
            Explanation::Value { captured, .. } => Some(captured),
            Explanation::TooLong | Explanation::NoMatch | Explanation::NotANumber { .. } => None,
        };
        self.lines.iter().map(value).collect()
    }

    /// Returns the epochs in the lines that `metric`, a pattern, reads. `given` is the pattern of the epoch, if known.
    pub(super) fn epochs(&self, metric: &str, given: Option<&str>) -> Option<Epochs> {
        let values = self.values(metric);
        let lines: Vec<&str> = self
            .lines
            .iter()
            .zip(&values)
            .filter_map(|(line, value)| value.as_ref().map(|_| line.as_str()))
            .collect();
        let counted = u32::try_from(lines.len()).ok().filter(|count| *count > 0)?;
        let candidates = given.map_or_else(|| EPOCHS.to_vec(), |given| vec![given]);
        let found = candidates.into_iter().filter_map(|pattern| Some((pattern, captured(pattern, &lines)?)));
        let rises = |(_, epochs): &(&str, Vec<u32>)| epochs.is_sorted() && epochs.first() != epochs.last();
        let single = lines.len() == 1;
        let Some((pattern, epochs)) = found.into_iter().find(|found| single || rises(found)) else {
            return Some(Epochs { pattern: None, base: 1, count: counted });
        };
        let (least, most) = (epochs.iter().min().copied()?, epochs.iter().max().copied()?);
        let base = u32::from(least > 0);
        let total = pattern.replace(r"(\d+)", r"\d+\s*(?:/|of)\s*(\d+)");
        let total = captured(&total, &lines).and_then(|totals| totals.into_iter().max());
        let count = total.unwrap_or(most.saturating_add(1).saturating_sub(base));
        Some(Epochs { pattern: Some(pattern.to_owned()), base, count })
    }
}

/// Returns a pattern with the text between the metric and its number as in `line`.
fn short(metric: &str, line: &str) -> Option<String> {
    let between = format!(r#"("?{})(["']?\s*[=:]?\s*["']?)[-+.\d]"#, escape(metric));
    let found = Regex::new(&between).ok()?.captures(line)?;
    let (name, between) = (found.get(1)?.as_str(), found.get(2)?.as_str());
    // A log of CloudWatch has another text for a tab.
    let between = escape(between).replace('\t', r"\s+");
    Some(format!("{}{between}{NUMBER_PATTERN}", escape(name)))
}

/// Returns the number that a pattern captures in each line; `None` unless it does so in all of them.
fn captured(pattern: &str, lines: &[&str]) -> Option<Vec<u32>> {
    let pattern = compile_pattern(pattern).ok()?;
    lines.iter().map(|line| pattern.captures(line)?.get(1)?.as_str().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the best metric, its pattern, the pattern of the epoch, its base and the number of epochs.
    fn proposal(log: &str) -> (String, String, Option<String>, u32, u32) {
        let sample = Sample::parse(log).unwrap();
        let metric = sample.metrics().first().map(|name| (*name).to_owned()).unwrap();
        let pattern = sample.pattern(&metric).unwrap();
        let Epochs { pattern: epoch, base, count } = sample.epochs(&pattern, None).unwrap();
        (metric, pattern, epoch, base, count)
    }

    fn expected(
        metric: &str,
        pattern: &str,
        epoch: &str,
        base: u32,
        count: u32,
    ) -> (String, String, Option<String>, u32, u32) {
        let number = format!("{pattern}{NUMBER_PATTERN}");
        (metric.to_owned(), number, Some(epoch.to_owned()).filter(|epoch| !epoch.is_empty()), base, count)
    }

    #[test]
    fn common_logs_get_patterns() {
        for (log, expected) in [
            (
                "start\nepoch 1 val_accuracy=0.90 loss: 0.3\nepoch 3 val_accuracy=0.91 loss: 0.2\n",
                expected("val_accuracy", "val_accuracy=", r"epoch (\d+)", 1, 3),
            ),
            (
                "[0]\ttrain-rmse:0.4\tvalidation-rmse:0.5\n[5]\ttrain-rmse:0.2\tvalidation-rmse:0.31\n",
                expected("validation-rmse", "validation\\-rmse:", r"^\[(\d+)\]", 0, 6),
            ),
            (
                "Epoch 1/10 [====] acc 0.8\nEpoch 2/10 [====] acc 0.9\n",
                expected("acc", "acc ", r"Epoch (\d+)", 1, 10),
            ),
            (
                "{\"epoch\": 0, \"val_loss\": 3e-1, \"loss\": 1}\n{\"epoch\": 1, \"val_loss\": 2e-1, \"loss\": 1}\n",
                expected("val_loss", "\"val_loss\": ", r#""epoch": (\d+)"#, 0, 2),
            ),
            (
                "Epoch [1/5], Step [100/600], Loss: 0.5\nEpoch [2/5], Step [100/600], Loss: 0.4\n",
                expected("Loss", "Loss: ", r"(?i)\bepochs?\W{0,4}(\d+)", 1, 5),
            ),
            ("INFO:root:loss=0.5\nINFO:root:loss=0.4\n", expected("loss", "loss=", "", 1, 2)),
            (
                "2026-01-01 12:30:45 step 10 reward 1.5\n2026-01-01 12:30:46 step 20 reward 2.5\n",
                expected("reward", "reward ", r"(?i)\b(?:round|iteration|iter|step)s?\W{0,4}(\d+)", 1, 20),
            ),
        ] {
            assert_eq!(proposal(log), expected, "{log}");
        }
    }

    #[test]
    fn a_pattern_does_not_read_a_longer_name() {
        let sample = Sample::parse("val_loss=2 loss=1\nval_loss=3 loss=2\n").unwrap();
        assert_eq!(sample.metrics(), ["val_loss", "loss"]);
        assert_eq!(sample.pattern("loss"), Some(default_regex("loss")));
        assert_eq!(sample.pattern("accuracy"), None);
        assert!(Sample::parse("nothing\n").unwrap().metrics().is_empty());
    }

    #[test]
    fn numbers_that_are_no_metrics_are_not_proposed() {
        let log = "lr=0.1 batch_size: 32 time=3 speed 1.5 custom=2 top_accuracy=0.5\n";
        assert_eq!(Sample::parse(log).unwrap().metrics(), ["top_accuracy", "custom"]);
    }

    #[test]
    fn the_constant_patterns_compile() {
        for pattern in EPOCHS.iter().chain(&[NAMED, SPACED]) {
            assert!(compile_pattern(pattern).is_ok(), "{pattern}");
        }
    }
}
