//! A user's metric pattern, tried on log lines.
//!
//! Patterns come from users and lines from their programs, so both are bounded: compiled size and line length. Matching
//! takes time in proportion to the product of the two at worst, so a large pattern is tried on shorter lines. A tab that
//! a program prints may stand in the log as the four characters `#011` and patterns are written for either, so a line is
//! tried in both forms. What has no number gives no line.

use regex::{Captures, Regex};
use tuning::fact::MetricLine;

use super::logs::LogEvent;
use crate::request::{PatternError, SMALL_BYTES, compile_measured};

/// Longest line that is looked at, in bytes; no metric stands in a longer one. See [`MetricPattern::max_line_bytes`].
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// What a tab becomes in the log of SageMaker's own containers.
const ESCAPED_TAB: &str = "#011";

/// A compiled metric pattern, with the pattern that captures the epoch if there is one.
#[derive(Debug, Clone)]
pub struct MetricPattern {
    value: Pattern,
    epoch: Option<Pattern>,
}

/// What a pattern makes of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Explanation {
    /// The line is longer than [`MetricPattern::max_line_bytes`] and was not tried.
    TooLong,
    /// The pattern does not match.
    NoMatch,
    /// It matches, but what it captured is no number.
    NotANumber {
        /// What it captured.
        captured: String,
    },
    /// A value.
    Value {
        /// What the pattern captured.
        captured: String,
        /// As a number; `None` = NaN or an infinity.
        value: Option<f64>,
        /// What the epoch pattern captured, if it did.
        index: Option<u64>,
    },
}

impl MetricPattern {
    /// Compiles the metric's pattern and, if there is one, the epoch's.
    pub fn new(metric_regex: &str, epoch_pattern: Option<&str>) -> Result<Self, PatternError> {
        let epoch = epoch_pattern.map(Pattern::new).transpose()?;
        Ok(Self { value: Pattern::new(metric_regex)?, epoch })
    }

    /// Longest line that is looked at, in bytes: [`MAX_LINE_BYTES`], less in proportion for patterns that are large when
    /// compiled, down to 2 KB for the largest.
    pub fn max_line_bytes(&self) -> usize {
        let largest = self.epoch.as_ref().map_or(0, |epoch| epoch.bytes).max(self.value.bytes);
        MAX_LINE_BYTES / (largest / SMALL_BYTES).max(1)
    }

    /// The metric in a log event, if there is one.
    pub fn line(&self, event: &LogEvent) -> Option<MetricLine> {
        match self.explain(&event.message) {
            Explanation::Value { value, index, .. } => {
                Some(MetricLine { id: event.id.clone(), at: event.timestamp, index, value })
            }
            Explanation::TooLong | Explanation::NoMatch | Explanation::NotANumber { .. } => None,
        }
    }

    /// What the patterns make of a line.
    pub fn explain(&self, line: &str) -> Explanation {
        if line.len() > self.max_line_bytes() {
            return Explanation::TooLong;
        }
        let mut captured = None;
        let found = self.value.find(line, |text| {
            let number = number_part(text);
            let value = number.parse::<f64>().ok();
            if captured.is_none() || value.is_some() {
                captured = Some(number.to_owned());
            }
            value
        });
        match (captured, found) {
            (None, _) => Explanation::NoMatch,
            (Some(captured), None) => Explanation::NotANumber { captured },
            (Some(captured), Some(value)) => {
                let index =
                    self.epoch.as_ref().and_then(|epoch| epoch.find(line, |t| number_part(t).parse().ok()));
                let value = Some(value).filter(|value| value.is_finite());
                Explanation::Value { captured, value, index }
            }
        }
    }
}

/// A pattern and the forms of a line that it is tried on.
#[derive(Debug, Clone)]
struct Pattern {
    regex: Regex,
    /// What it needs when compiled, at most.
    bytes: usize,
    wants_escaped_tabs: bool,
    wants_real_tabs: bool,
}

impl Pattern {
    fn new(source: &str) -> Result<Self, PatternError> {
        let wants_escaped_tabs = source.contains(ESCAPED_TAB);
        let wants_real_tabs = ["\t", "\\t", "\\s", "\\x09"].iter().any(|tab| source.contains(tab));
        let (regex, bytes) = compile_measured(source)?;
        Ok(Self { regex, bytes, wants_escaped_tabs, wants_real_tabs })
    }

    /// The first value that `read` gives for what is captured in the line, as it is and then in its other forms.
    fn find<T>(&self, line: &str, mut read: impl FnMut(&str) -> Option<T>) -> Option<T> {
        let mut attempt = |line: &str| self.regex.captures(line).and_then(|found| read(group(&found)?));
        if let Some(value) = attempt(line) {
            return Some(value);
        }
        if self.wants_escaped_tabs
            && line.contains('\t')
            && let Some(value) = attempt(&line.replace('\t', ESCAPED_TAB))
        {
            return Some(value);
        }
        if self.wants_real_tabs && line.contains(ESCAPED_TAB) {
            return attempt(&line.replace(ESCAPED_TAB, "\t"));
        }
        None
    }
}

/// The first group that took part in the match; a pattern without groups never gives a value.
fn group<'a>(found: &Captures<'a>) -> Option<&'a str> {
    found.iter().skip(1).flatten().next().map(|group| group.as_str())
}

/// `(\S+)` runs on through an escaped tab into the next metric; a real tab would have ended it.
fn number_part(captured: &str) -> &str {
    captured.split(ESCAPED_TAB).next().unwrap_or_default().trim()
}
