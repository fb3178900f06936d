//! Applies a user's metric pattern to log lines.
//!
//! Patterns come from users and lines from their programs, so both the compiled size of a pattern and the length of a
//! line are bounded. The worst-case time of a match is proportional to their product, so a large pattern has a smaller
//! maximum line length. The log may contain a printed tab as the four characters `#011`, and users write patterns for
//! either form, so both forms of a line are tried. A line without a number yields no metric line.

use regex::{Captures, Match, Regex};
use tuning::fact::MetricLine;
use tuning::time::Time;

use super::logs::LogEvent;
use crate::request::{PatternError, SMALL_BYTES, compile_measured};

mod cut;

pub use cut::Cut;

/// Maximum length of a line for small patterns, in bytes. Longer lines are skipped. See
/// [`MetricPattern::max_line_bytes`].
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Replacement of a tab in the logs of SageMaker's own containers.
const ESCAPED_TAB: &str = "#011";

/// A compiled metric pattern, with an optional pattern that captures the epoch.
#[derive(Debug, Clone)]
pub struct MetricPattern {
    value: Pattern,
    epoch: Option<Pattern>,
}

/// The result of a pattern for a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Explanation {
    /// The line is longer than [`MetricPattern::max_line_bytes`] and was skipped.
    TooLong,
    /// The pattern does not match.
    NoMatch,
    /// The pattern matches, but the captured text is not a number.
    NotANumber {
        /// The captured text.
        captured: String,
    },
    /// The pattern captured a number.
    Value {
        /// The captured text.
        captured: String,
        /// The number; `None` = NaN or an infinity.
        value: Option<f64>,
        /// The number that the epoch pattern captured, if any.
        index: Option<u64>,
    },
}

impl MetricPattern {
    /// Compiles the metric pattern and the optional epoch pattern.
    pub fn new(metric_regex: &str, epoch_pattern: Option<&str>) -> Result<Self, PatternError> {
        let epoch = epoch_pattern.map(Pattern::new).transpose()?;
        Ok(Self { value: Pattern::new(metric_regex)?, epoch })
    }

    /// Returns the maximum length of a line, in bytes: [`MAX_LINE_BYTES`], or less in proportion to the size of a large
    /// compiled pattern, down to 2 KB.
    pub fn max_line_bytes(&self) -> usize {
        let largest = self.epoch.as_ref().map_or(0, |epoch| epoch.bytes).max(self.value.bytes);
        MAX_LINE_BYTES / (largest / SMALL_BYTES).max(1)
    }

    /// Returns the metric line of a log event, if the pattern captures a number.
    pub fn line(&self, event: &LogEvent) -> Option<MetricLine> {
        self.line_and_cut(event).0
    }

    /// Returns the metric line of a log event, if the pattern captures a number, and the cut, if it captures only a
    /// part of a number.
    pub fn line_and_cut(&self, event: &LogEvent) -> (Option<MetricLine>, Option<Cut>) {
        let (explanation, cut) = self.explain_with_cut(&event.message);
        let line = match explanation {
            Explanation::Value { value, index, .. } => {
                Some(MetricLine { id: event.id.clone(), at: Time(event.timestamp), index, value })
            }
            Explanation::TooLong | Explanation::NoMatch | Explanation::NotANumber { .. } => None,
        };
        (line, cut)
    }

    /// Applies the patterns to a line.
    pub fn explain(&self, line: &str) -> Explanation {
        self.explain_with_cut(line).0
    }

    /// Applies the patterns to a line. Also returns the cut, if the pattern captures only a part of a number.
    pub fn explain_with_cut(&self, line: &str) -> (Explanation, Option<Cut>) {
        if line.len() > self.max_line_bytes() {
            return (Explanation::TooLong, None);
        }
        let (mut captured, mut cut) = (None, None);
        let found = self.value.find(line, |form, group| {
            let number = number_part(group.as_str());
            let value = number.parse::<f64>().ok();
            if captured.is_none() || value.is_some() {
                captured = Some(number.to_owned());
                let blank = group.as_str().len() - group.as_str().trim_start().len();
                let start = group.start() + blank;
                cut = Cut::find(form, start..start + number.len());
            }
            value
        });
        let explanation = match (captured, found) {
            (None, _) => Explanation::NoMatch,
            (Some(captured), None) => Explanation::NotANumber { captured },
            (Some(captured), Some(value)) => {
                let number = |_: &str, group: Match<'_>| number_part(group.as_str()).parse().ok();
                let index = self.epoch.as_ref().and_then(|epoch| epoch.find(line, number));
                let value = Some(value).filter(|value| value.is_finite());
                Explanation::Value { captured, value, index }
            }
        };
        (explanation, cut)
    }
}

/// A compiled pattern and the forms of tabs that it may match.
#[derive(Debug, Clone)]
struct Pattern {
    regex: Regex,
    /// Upper bound of its compiled size, in bytes.
    bytes: usize,
    has_escaped_tabs: bool,
    has_real_tabs: bool,
}

impl Pattern {
    fn new(source: &str) -> Result<Self, PatternError> {
        let has_escaped_tabs = source.contains(ESCAPED_TAB);
        let has_real_tabs = ["\t", "\\t", "\\s", "\\x09"].iter().any(|tab| source.contains(tab));
        let (regex, bytes) = compile_measured(source)?;
        Ok(Self { regex, bytes, has_escaped_tabs, has_real_tabs })
    }

    /// Returns the first value that `read` accepts from the line and the captured text, first in the line itself, then
    /// in its other forms.
    fn find<T>(&self, line: &str, mut read: impl FnMut(&str, Match<'_>) -> Option<T>) -> Option<T> {
        let mut attempt = |line: &str| self.regex.captures(line).and_then(|found| read(line, group(&found)?));
        if let Some(value) = attempt(line) {
            return Some(value);
        }
        if self.has_escaped_tabs
            && line.contains('\t')
            && let Some(value) = attempt(&line.replace('\t', ESCAPED_TAB))
        {
            return Some(value);
        }
        if self.has_real_tabs && line.contains(ESCAPED_TAB) {
            return attempt(&line.replace(ESCAPED_TAB, "\t"));
        }
        None
    }
}

/// Returns the first group that took part in the match; `None` for a pattern without groups.
fn group<'a>(found: &Captures<'a>) -> Option<Match<'a>> {
    found.iter().skip(1).flatten().next()
}

/// Returns the captured text up to an escaped tab. `(\S+)` matches an escaped tab and the next metric; a real tab ends
/// it.
fn number_part(captured: &str) -> &str {
    captured.split(ESCAPED_TAB).next().unwrap_or_default().trim()
}
