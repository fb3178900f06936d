//! The metric patterns of a request tried on a log, line by line, as the service tries them.
//!
//! Holds what each pattern found, not the log: of it, only the lines that a hint may show. Assumes one job's log in its
//! order; a log that is exported with the newest line first shows epochs that fall.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};

use serde_json::Value;
use wire::algorithm::Metric;
use wire::events::logs::{Explanation, MetricPattern};
use wire::request::Request;

use crate::check::hint::Hints;
use crate::warning::Warning;

/// Longest line that is kept in memory; what is longer holds no metric.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What was found in a log.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) lines: u64,
    pub(super) metrics: Vec<Found>,
    /// Name of the objective.
    objective: String,
    /// Index of the first epoch, where epochs are captured.
    base: Option<u32>,
    is_hyperband: bool,
}

/// What one pattern found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) regex: String,
    pattern: MetricPattern,
    /// Lines with a value.
    pub(super) matched: u64,
    /// First and last value, as captured.
    pub(super) first: Option<String>,
    pub(super) last: Option<String>,
    /// Lines whose value is NaN or an infinity.
    pub(super) not_finite: u64,
    /// Lines of which something was captured that is no number, and the first such thing.
    pub(super) not_a_number: (u64, Option<String>),
    /// Lines too long to be looked at.
    pub(super) too_long: u64,
    pub(super) epochs: Epochs,
    /// What may be wrong where nothing was found.
    pub(super) hint: Option<String>,
}

/// The epochs of the lines of one metric.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    seen: BTreeSet<u64>,
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
    /// Lines with an epoch that a line before had.
    pub(super) repeated: u64,
    /// Lines with an epoch below that of the line before: a restart, or a log in another order.
    pub(super) fell: u64,
    /// Lines with a value and without an epoch.
    pub(super) without: u64,
}

/// Tries the patterns of `request` on a log.
pub(super) fn read(request: &Request, mut log: impl BufRead) -> io::Result<Findings> {
    let mut found = patterns(request);
    let mut hints = Hints::default();
    let mut lines = 0;
    let mut line = Vec::new();
    while next(&mut log, &mut line)? {
        lines += 1;
        let text = String::from_utf8_lossy(&line);
        for one in &mut found {
            one.take(&text);
        }
        hints.take(&text);
    }
    for one in &mut found {
        if one.matched == 0 {
            one.hint = Some(match &one.not_a_number.1 {
                Some(captured) => format!(
                    "the pattern matches, but its group captures '{captured}', which is no number; put the number alone in \
                     parentheses"
                ),
                None => hints.about(&one.name, &one.regex),
            });
        }
    }
    let objective = request.objective_metric().to_owned();
    let definition = crate::plan::uncapped(request).ok();
    let base = definition.map(|definition| definition.epochs).filter(|epochs| epochs.captured);
    Ok(Findings {
        lines,
        metrics: found,
        objective,
        base: base.map(|epochs| epochs.base),
        is_hyperband: request.is_hyperband(),
    })
}

/// The next line, at most [`LINE_BYTES_MAX`] of it; whether there is one.
fn next(log: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if log.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else {
        log.skip_until(b'\n')?;
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(true)
}

/// The definitions of the request; of a built-in algorithm without any, its metrics; the objective in any case.
fn patterns(request: &Request) -> Vec<Found> {
    let text =
        |definition: &Value, member: &str| definition.get(member).and_then(Value::as_str).map(str::to_owned);
    let given = request.metric_definitions().iter();
    let mut named: Vec<(String, String)> =
        given.filter_map(|one| Some((text(one, "Name")?, text(one, "Regex")?))).collect();
    let objective = request.objective_metric();
    if !named.iter().any(|(name, _)| name == objective)
        && let Some(regex) = request.built_in_metric().map(Metric::pattern)
    {
        named.push((objective.to_owned(), regex));
    }
    // A valid request has only patterns that compile.
    let compiled = named.into_iter().filter_map(|(name, regex)| {
        let pattern = MetricPattern::new(&regex, request.epoch_pattern()).ok()?;
        Some(Found::new(name, regex, pattern))
    });
    compiled.collect()
}

impl Found {
    fn new(name: String, regex: String, pattern: MetricPattern) -> Self {
        Self {
            name,
            regex,
            pattern,
            matched: 0,
            first: None,
            last: None,
            not_finite: 0,
            not_a_number: (0, None),
            too_long: 0,
            epochs: Epochs::default(),
            hint: None,
        }
    }

    fn take(&mut self, line: &str) {
        match self.pattern.explain(line) {
            Explanation::TooLong => self.too_long += 1,
            Explanation::NoMatch => {}
            Explanation::NotANumber { captured } => {
                self.not_a_number.0 += 1;
                self.not_a_number.1.get_or_insert_with(|| crate::text::short(&captured, 60));
            }
            Explanation::Value { captured, value, index } => {
                self.matched += 1;
                self.not_finite += u64::from(value.is_none());
                self.first.get_or_insert_with(|| captured.clone());
                self.last = Some(captured);
                self.epochs.take(index);
            }
        }
    }
}

impl Epochs {
    fn take(&mut self, index: Option<u64>) {
        let Some(index) = index else {
            self.without += 1;
            return;
        };
        self.fell += u64::from(self.last.is_some_and(|last| index < last));
        self.repeated += u64::from(!self.seen.insert(index));
        self.first.get_or_insert(index);
        self.last = Some(index);
    }

    /// Epochs between the least and the greatest that no line has.
    pub(super) fn missing(&self) -> u64 {
        let (Some(least), Some(greatest)) = (self.seen.first(), self.seen.last()) else { return 0 };
        (greatest - least)
            .saturating_add(1)
            .saturating_sub(u64::try_from(self.seen.len()).unwrap_or(u64::MAX))
    }

    /// The least epoch that no line has, of those missing.
    pub(super) fn first_missing(&self) -> Option<u64> {
        let pairs = self.seen.iter().zip(self.seen.iter().skip(1));
        pairs.filter(|(one, next)| **next > **one + 1).map(|(one, _)| one + 1).next()
    }
}

impl Findings {
    /// Whether epochs are captured from the lines.
    pub(super) fn captures(&self) -> bool {
        self.base.is_some()
    }

    /// What the log shows to be wrong with the objective.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let Some(found) = self.metrics.iter().find(|found| found.name == self.objective) else {
            return Vec::new();
        };
        if found.matched == 0 {
            let hint = found.hint.clone().unwrap_or_default();
            return vec![Warning::new(
                "ObjectiveNotInLog",
                format!("The objective '{}' is in none of the {} lines of the log.", found.name, self.lines),
                format!("Hint: {hint}."),
            )];
        }
        self.epoch_warning(found).into_iter().chain(self.single_value(found)).collect()
    }

    fn epoch_warning(&self, found: &Found) -> Option<Warning> {
        let base = self.base?;
        let epochs = &found.epochs;
        if epochs.without == found.matched {
            return Some(Warning::new(
                "EpochNotInLog",
                format!(
                    "EpochPattern captures no epoch in any line with '{}': none of its values would count.",
                    found.name
                ),
                "Change EpochPattern so that its group captures a whole number from the same line, or leave it out.",
            ));
        }
        let least = epochs.seen.first().copied()?;
        let (first, wanted) = (u64::from(base), u64::from(base.saturating_sub(1)));
        if least < first {
            return Some(Warning::new(
                "EpochBelowBase",
                format!(
                    "The log counts epochs from {least}, the request from {first}: the first epoch would be lost."
                ),
                format!("Give Controller.EpochBase {wanted}."),
            ));
        }
        (base == 0 && least == 1 && epochs.fell == 0).then(|| {
            Warning::new(
                "EpochAboveBase",
                "The log counts epochs from 1, the request from 0: each epoch would count as the next one.",
                "Give Controller.EpochBase 1.",
            )
        })
    }

    /// A program that prints its objective once gives Hyperband nothing to compare.
    fn single_value(&self, found: &Found) -> Option<Warning> {
        (self.is_hyperband && found.matched == 1 && self.lines > 1).then(|| {
            Warning::new(
                "ObjectiveOnceInLog",
                format!("'{}' is in one line of the log only.", found.name),
                "Hyperband compares values of each epoch: print the objective once an epoch, or use Strategy Random.",
            )
        })
    }
}
