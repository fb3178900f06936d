//! Tests the metric patterns of a request on a log, line by line, as the service does.
//!
//! Keeps only the matches of each pattern and the lines that a hint can quote, not the complete log. Assumes the log of
//! one job, oldest line first. In a log with the newest line first, epochs decrease.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use tuning::log::problem::LogProblem;
use wire::algorithm::Metric;
use wire::events::logs::{Cut, Explanation, Hints, MetricPattern};
use wire::notice::Notice;
use wire::request::Request;

use crate::text::short;
use crate::warning::{Code, Warning};

const NAME_CHARACTERS: usize = 60;
const LINE_CHARACTERS: usize = 120;
/// Number of equal values that shows that the objective does not change.
const CONSTANT_LINES: u64 = 10;

/// Maximum bytes to keep of a line. Longer lines cannot contain a metric.
const LINE_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Findings {
    /// The training job definition whose patterns read the log; `None` if it has no name.
    pub(super) definition: Option<String>,
    pub(super) lines: u64,
    pub(super) metrics: Vec<Found>,
    objective: String,
    /// Number of the first epoch (`EpochBase`). `None` if the request has no `EpochPattern`.
    base: Option<u32>,
    /// Whether that number is only assumed. Then a tuning takes the first epoch from the log.
    is_base_assumed: bool,
    /// Whether the strategy compares values of several epochs.
    compares_epochs: bool,
}

#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) regex: String,
    pattern: MetricPattern,
    /// Lines with a value.
    pub(super) matched: u64,
    /// First value, as captured.
    pub(super) first: Option<String>,
    pub(super) last: Option<String>,
    /// Lines whose value is NaN or infinite.
    pub(super) not_finite: u64,
    /// Number of lines whose captured text is not a number, and the first such text.
    pub(super) not_a_number: (u64, Option<String>),
    /// The first line in which the pattern captures only a part of a number.
    pub(super) cut: Option<Cut>,
    /// Lines that are too long to be matched.
    pub(super) too_long: u64,
    /// The last state of the first line that is redrawn and counts once.
    pub(super) redrawn: Option<String>,
    /// The first line with several values.
    pub(super) several: Option<String>,
    /// The first line that shows several epochs.
    pub(super) late: Option<String>,
    /// Whether all values are equal.
    is_constant: bool,
    /// The epoch that the last line without a value began.
    begun: Option<u64>,
    pub(super) epochs: Epochs,
    /// Why the pattern may have found nothing. `None` if it found a value.
    pub(super) hint: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// The first value of each epoch, as captured.
    seen: BTreeMap<u64, String>,
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
    /// Lines that repeat the epoch of an earlier line.
    pub(super) repeated: u64,
    /// Lines with a lower epoch than the previous line: a restart, or a log in another order.
    pub(super) decreased: u64,
    /// Lines with a value but no epoch.
    pub(super) without: u64,
    /// Lines that repeat an epoch with another value.
    pub(super) repeated_otherwise: u64,
}

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
                    "the group of the pattern captures '{captured}', which is not a number; put parentheses around the \
                     number only"
                ),
                None => hints.about(&one.name, &one.regex),
            });
        }
    }
    let objective = request.objective_metric().to_owned();
    let definition = crate::plan::uncapped(request).ok();
    let rule = definition.map(|definition| definition.epochs).filter(|epochs| epochs.captured);
    Ok(Findings {
        definition: request.own_name().map(str::to_owned),
        lines,
        metrics: found,
        objective,
        base: rule.map(|epochs| epochs.base),
        is_base_assumed: rule.is_some_and(|epochs| epochs.is_base_assumed),
        compares_epochs: request.strategy().compares_trials(),
    })
}

/// Reads at most [`LINE_BYTES_MAX`] bytes of the next line. Returns whether there was a line.
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

/// Returns the metric definitions of the request, and the built-in pattern of the objective if it has no definition.
fn patterns(request: &Request) -> Vec<Found> {
    let given = request.metric_patterns();
    let mut named: Vec<(String, String)> =
        given.map(|(name, regex)| (name.to_owned(), regex.to_owned())).collect();
    let objective = request.objective_metric();
    if !named.iter().any(|(name, _)| name == objective)
        && let Some(regex) = request.built_in_metric().map(Metric::pattern)
    {
        named.push((objective.to_owned(), regex));
    }
    // All patterns of a valid request compile.
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
            cut: None,
            too_long: 0,
            redrawn: None,
            several: None,
            late: None,
            is_constant: true,
            begun: None,
            epochs: Epochs::default(),
            hint: None,
        }
    }

    fn take(&mut self, line: &str) {
        let reading = self.pattern.read(line);
        self.cut = self.cut.take().or(reading.cut);
        self.redrawn = self.redrawn.take().or(reading.redrawn);
        if reading.has_several {
            self.several.get_or_insert_with(|| line.to_owned());
        }
        if reading.shown.len() > 1 {
            self.late.get_or_insert_with(|| line.to_owned());
        }
        for explanation in reading.shown {
            self.take_one(explanation);
        }
        self.begun = reading.epoch.or(self.begun);
    }

    fn take_one(&mut self, explanation: Explanation) {
        match explanation {
            Explanation::TooLong => self.too_long += 1,
            Explanation::NoMatch => {}
            Explanation::NotANumber { captured } => {
                self.not_a_number.0 += 1;
                self.not_a_number.1.get_or_insert_with(|| short(&captured, 60));
            }
            Explanation::Value { captured, value, index } => {
                self.matched += 1;
                self.not_finite += u64::from(value.is_none());
                self.is_constant &= self.last.as_ref().is_none_or(|last| *last == captured);
                self.first.get_or_insert_with(|| captured.clone());
                self.last = Some(captured.clone());
                // A value without an epoch has that of the line before it that began one.
                self.begun = self.begun.filter(|_| index.is_none());
                self.epochs.take(index.or(self.begun), captured);
            }
        }
    }
}

impl Found {
    fn line_warnings(&self, has_epochs: bool) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn =
            |code, problem: &LogProblem| warnings.push(Warning::of_notice(code, Notice::of_problem(problem)));
        if let Some(cut) = self.cut.as_ref().filter(|cut| cut.is_epoch) {
            let (captured, whole, line) = (cut.captured.clone(), cut.whole.clone(), cut.excerpt());
            warn(Code::EpochCutInLog, &LogProblem::NumberCut { captured, whole, line, is_epoch: true });
        }
        if let Some(line) = &self.redrawn {
            warn(Code::LineRedrawn, &LogProblem::Redrawn { line: short(line.trim(), LINE_CHARACTERS) });
        }
        if let Some(line) = &self.late {
            warnings.push(Warning::new(
                Code::LineEndsLate,
                format!(
                    "A line of the log shows several epochs: \"{}\". SageMaker delivers a line when it ends, so on a \
                     stack these epochs arrive together, too late to stop a trial.",
                    short(line.trim(), LINE_CHARACTERS)
                ),
                "End the line after every epoch. A run on this machine reads such a line while it is redrawn.",
            ));
        }
        if let Some(line) = &self.several {
            warnings.push(Warning::new(
                Code::SeveralValuesInLine,
                format!(
                    "A line of the log has several values of '{}', and the last one counts: \"{}\".",
                    short(&self.name, NAME_CHARACTERS),
                    short(line.trim(), LINE_CHARACTERS)
                ),
                "Add text to the Regex that stands only before the value to compare.",
            ));
        }
        let is_cut = self.cut.as_ref().is_some_and(|cut| cut.is_epoch);
        if has_epochs && self.epochs.repeated_otherwise > 0 && !is_cut {
            warnings.push(Warning::new(
                Code::EpochRepeated,
                format!(
                    "Lines repeat an epoch with another value ({} in all): the first value of an epoch counts.",
                    self.epochs.repeated_otherwise
                ),
                "Print the objective once per epoch, or add text to the Regex that only this line has.",
            ));
        }
        if self.matched >= CONSTANT_LINES && self.is_constant {
            warnings.push(Warning::of_notice(Code::ObjectiveConstant, Notice::constant()));
        }
        warnings
    }
}

impl Epochs {
    fn take(&mut self, index: Option<u64>, captured: String) {
        let Some(index) = index else {
            self.without += 1;
            return;
        };
        self.decreased += u64::from(self.last.is_some_and(|last| index < last));
        self.repeated += u64::from(self.seen.contains_key(&index));
        self.repeated_otherwise += u64::from(self.seen.get(&index).is_some_and(|first| *first != captured));
        self.seen.entry(index).or_insert(captured);
        self.first.get_or_insert(index);
        self.last = Some(index);
    }

    /// Returns how many epochs between the lowest and the highest have no line.
    pub(super) fn missing(&self) -> u64 {
        let (Some(least), Some(greatest)) = (self.seen.keys().next(), self.seen.keys().next_back()) else {
            return 0;
        };
        (greatest - least)
            .saturating_add(1)
            .saturating_sub(u64::try_from(self.seen.len()).unwrap_or(u64::MAX))
    }

    pub(super) fn first_missing(&self) -> Option<u64> {
        let pairs = self.seen.keys().zip(self.seen.keys().skip(1));
        pairs.filter(|(one, next)| **next > **one + 1).map(|(one, _)| one + 1).next()
    }
}

impl Findings {
    /// Returns whether the request captures epochs from the lines.
    pub(super) fn captures(&self) -> bool {
        self.base.is_some()
    }

    /// Returns the problems with the objective that the log shows.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let found = self.of_objective().into_iter();
        found.map(|warning| warning.of_definition(self.definition.as_deref())).collect()
    }

    fn of_objective(&self) -> Vec<Warning> {
        let Some(found) = self.metrics.iter().find(|found| found.name == self.objective) else {
            return Vec::new();
        };
        if found.matched == 0 {
            let hint = found.hint.clone().unwrap_or_default();
            let other = match self.definition {
                Some(_) => " If the log is of another definition, name it with --definition.",
                None => "",
            };
            return vec![Warning::new(
                Code::ObjectiveNotInLog,
                format!(
                    "None of the {} lines of the log has a value of the objective '{}': the tuning could not compare \
                     its trials.",
                    self.lines, found.name
                ),
                format!("Correct the Regex or the output of the program: {hint}.{other}"),
            )];
        }
        let lines = found.line_warnings(self.base.is_some());
        self.epoch_warning(found).into_iter().chain(self.single_value(found)).chain(lines).collect()
    }

    fn epoch_warning(&self, found: &Found) -> Option<Warning> {
        let base = self.base?;
        let epochs = &found.epochs;
        if epochs.without == found.matched {
            return Some(Warning::new(
                Code::EpochNotInLog,
                format!(
                    "EpochPattern captures no epoch in the lines with '{}': all values would be ignored.",
                    found.name
                ),
                "Change EpochPattern so that its group captures a whole number from the same line, or remove it.",
            ));
        }
        let least = epochs.seen.keys().next().copied()?;
        let (first, wanted) = (u64::from(base), u64::from(base.saturating_sub(1)));
        if self.is_base_assumed && epochs.first == Some(0) {
            return None;
        }
        if least < first {
            return Some(Warning::new(
                Code::EpochBelowBase,
                format!(
                    "The log counts epochs from {least}, but the request from {first}: the first epoch would be lost."
                ),
                format!("Set Controller.EpochBase to {wanted}."),
            ));
        }
        Warning::when(
            base == 0 && least == 1 && epochs.decreased == 0,
            Code::EpochAboveBase,
            "The log counts epochs from 1, but the request from 0: each epoch would count as the next one.",
            "Set Controller.EpochBase to 1.",
        )
    }

    /// Warns of an objective that is logged once: Hyperband compares intermediate values.
    fn single_value(&self, found: &Found) -> Option<Warning> {
        Warning::when(
            self.compares_epochs && found.matched == 1 && self.lines > 1,
            Code::ObjectiveOnceInLog,
            format!(
                "Only one line of the log has a value of '{}': Hyperband cannot stop bad trials early.",
                found.name
            ),
            "Print the objective after every epoch, or use Strategy Random.",
        )
    }
}
