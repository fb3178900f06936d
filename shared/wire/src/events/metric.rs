//! Applies a user's metric pattern to log lines.
//!
//! A line shows what a terminal would show (`screen.rs`): the last state of a redrawn line counts, and colors are not
//! text. With an epoch pattern, a redrawn line has a value for each epoch that it showed. In a plain line, the last
//! match counts, with the nearest epoch before it.
//!
//! Patterns come from users and lines from their programs, so both the compiled size of a pattern and the length of a
//! line are bounded. The worst-case time of a match is proportional to their product. A large pattern therefore has a
//! smaller maximum line length, and tries fewer matches and fewer states of a line. The log may contain a printed tab
//! as the four characters `#011`. Users write patterns for either form, so this module tries both forms of a line. A
//! line without a number yields no metric line.

use std::borrow::Cow;

use regex::{Captures, Match, Regex};
use tuning::log::fact::MetricLine;
use tuning::log::problem::LogProblem;
use tuning::unit::time::Time;

use super::surplus::EpochSource;
use crate::request::{PatternError, SMALL_BYTES, compile_measured, shortened};

mod cut;
mod hint;
mod screen;

pub use cut::Cut;
pub use hint::Hints;
pub use screen::{UNFINISHED, visible};

/// Maximum length of a line for small patterns, in bytes. Longer lines are skipped. See
/// [`MetricPattern::max_line_bytes`].
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Replacement of a tab in the logs of SageMaker's own containers.
const ESCAPED_TAB: &str = "#011";
/// Maximum number of matches of a small pattern in a line. The last of them counts.
const MATCHES_MAX: usize = 1_000;
/// Maximum length of all states of a redrawn line together, in lines of the maximum length.
const STATES_MAX: usize = 16;

/// A compiled metric pattern, with an optional pattern that captures the epoch.
#[derive(Debug, Clone)]
pub struct MetricPattern {
    value: Pattern,
    epoch: Option<Pattern>,
}

/// The result of a pattern for a line, or for a state of a redrawn line.
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

/// All that a log line shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// What counts: the last value; with an epoch pattern, the last value of each epoch that a redrawn line shows.
    pub shown: Vec<Explanation>,
    /// The epoch, if no value of this line has it.
    pub epoch: Option<u64>,
    /// The first number of which a pattern captures only a part.
    pub cut: Option<Cut>,
    /// The last state of a redrawn line whose values differ, if no pattern captures the epoch.
    pub redrawn: Option<String>,
    /// Whether a plain line has several values.
    pub has_several: bool,
}

impl Reading {
    /// Returns the problems that the line shows.
    pub fn problems(&self) -> impl Iterator<Item = LogProblem> {
        let cut = self.cut.as_ref().map(|cut| LogProblem::NumberCut {
            captured: shortened(&cut.captured),
            whole: shortened(&cut.whole),
            line: cut.excerpt(),
            is_epoch: cut.is_epoch,
        });
        let redrawn = self.redrawn.as_ref().map(|line| LogProblem::Redrawn { line: shortened(line.trim()) });
        cut.into_iter().chain(redrawn)
    }

    /// Returns the metric lines of the log event that was read. Several ones share its ID, with their number.
    pub fn lines(&self, id: &str, at: Time) -> Vec<MetricLine> {
        let values = self.shown.iter().filter_map(|shown| match shown {
            Explanation::Value { value, index, .. } => Some((*value, *index)),
            Explanation::TooLong | Explanation::NoMatch | Explanation::NotANumber { .. } => None,
        });
        let is_one = values.clone().count() == 1;
        let own_id = |number| if is_one { id.to_owned() } else { format!("{id}.{number:05}") };
        let line = |(number, (value, index))| MetricLine { id: own_id(number), at, index, value };
        values.enumerate().map(line).collect()
    }
}

impl MetricPattern {
    /// Compiles the metric pattern and the optional epoch pattern.
    pub fn new(metric_regex: &str, epoch_pattern: Option<&str>) -> Result<Self, PatternError> {
        let epoch = epoch_pattern.map(Pattern::new).transpose()?;
        Ok(Self { value: Pattern::new(metric_regex)?, epoch })
    }

    /// Returns where the epoch of a line comes from.
    pub fn epoch_source(&self) -> EpochSource {
        if self.epoch.is_some() { EpochSource::Captured } else { EpochSource::Rank }
    }

    /// Returns the maximum length of a line, in bytes: [`MAX_LINE_BYTES`], or less in proportion to the size of a large
    /// compiled pattern, down to 2 KB.
    pub fn max_line_bytes(&self) -> usize {
        MAX_LINE_BYTES / self.small_patterns()
    }

    /// Returns how many small patterns are as large as the larger pattern.
    fn small_patterns(&self) -> usize {
        let largest = self.epoch.as_ref().map_or(0, |epoch| epoch.bytes).max(self.value.bytes);
        (largest / SMALL_BYTES).max(1)
    }

    /// Returns what counts of a line, of a redrawn line the last value.
    pub fn explain(&self, line: &str) -> Explanation {
        self.read(line).shown.pop().unwrap_or(Explanation::NoMatch)
    }

    /// Reads a line, as a terminal shows it.
    pub fn read(&self, line: &str) -> Reading {
        let mut reader = Reader {
            pattern: self,
            bytes_left: self.max_line_bytes().saturating_mul(STATES_MAX),
            epoch: None,
            held: None,
            last: None,
            problem: None,
            reading: Reading { shown: Vec::new(), epoch: None, cut: None, redrawn: None, has_several: false },
        };
        let goes_on = screen::states(line, |state| reader.take(&state));
        reader.finish(goes_on)
    }
}

/// Reads the states of a line, oldest first.
struct Reader<'a> {
    pattern: &'a MetricPattern,
    bytes_left: usize,
    /// The epoch that the line shows.
    epoch: Option<u64>,
    /// The last value of that epoch.
    held: Option<Explanation>,
    /// The text of the last value.
    last: Option<String>,
    /// Why a state has no value.
    problem: Option<Explanation>,
    reading: Reading,
}

impl Reader<'_> {
    /// Reads a state. Returns whether another one may follow.
    fn take(&mut self, text: &str) -> bool {
        let MetricPattern { value, epoch } = self.pattern;
        self.bytes_left = self.bytes_left.saturating_sub(text.len().max(1));
        if text.len() > self.pattern.max_line_bytes() {
            self.problem.get_or_insert(Explanation::TooLong);
            return self.bytes_left > 0;
        }
        let matches_max = (MATCHES_MAX / self.pattern.small_patterns()).max(1);
        let found = value.last_number(text, matches_max);
        let shown = epoch.as_ref().and_then(|epoch| epoch.index(text, found.as_ref(), matches_max));
        if let Some((index, cut)) = shown {
            self.reading.cut = self.reading.cut.take().or(cut);
            self.begin(index);
        }
        if let Some(found) = found {
            self.reading.cut = self.reading.cut.take().or(found.cut);
            self.reading.has_several |= found.has_several;
            self.show(text, found.captured);
        }
        self.bytes_left > 0
    }

    /// A new epoch ends the epoch before it.
    fn begin(&mut self, index: u64) {
        if self.epoch.is_some_and(|epoch| epoch != index) {
            self.reading.shown.extend(self.held.take());
        }
        self.epoch = Some(index);
    }

    fn show(&mut self, text: &str, captured: String) {
        let Ok(value) = captured.parse::<f64>() else {
            self.problem.get_or_insert(Explanation::NotANumber { captured });
            return;
        };
        if self.pattern.epoch.is_none() && self.last.as_ref().is_some_and(|last| *last != captured) {
            self.reading.redrawn = Some(text.to_owned());
        }
        self.last = Some(captured.clone());
        let value = Some(value).filter(|value| value.is_finite());
        self.held = Some(Explanation::Value { captured, value, index: self.epoch });
    }

    /// The end of the line ends its epoch.
    fn finish(mut self, goes_on: bool) -> Reading {
        let has_value = self.held.is_some();
        self.reading.shown.extend(self.held.take().filter(|_| !goes_on));
        self.reading.epoch = self.epoch.filter(|_| !has_value);
        if self.reading.shown.is_empty() {
            self.reading.shown.push(self.problem.unwrap_or(Explanation::NoMatch));
        }
        self.reading
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

/// The last match of a metric pattern in a text.
struct Found<'a> {
    captured: String,
    /// The form of the text that matched.
    form: Cow<'a, str>,
    /// Where the number begins in this form.
    at: usize,
    cut: Option<Cut>,
    has_several: bool,
}

impl Pattern {
    fn new(source: &str) -> Result<Self, PatternError> {
        let has_escaped_tabs = source.contains(ESCAPED_TAB);
        let has_real_tabs = ["\t", "\\t", "\\s", "\\x09"].iter().any(|tab| source.contains(tab));
        let (regex, bytes) = compile_measured(source)?;
        Ok(Self { regex, bytes, has_escaped_tabs, has_real_tabs })
    }

    /// Returns the forms of a text: itself, then with the other form of its tabs.
    fn forms<'a>(&self, text: &'a str) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
        let escaped = (self.has_escaped_tabs && text.contains('\t')).then(|| text.replace('\t', ESCAPED_TAB));
        let real =
            (self.has_real_tabs && text.contains(ESCAPED_TAB)).then(|| text.replace(ESCAPED_TAB, "\t"));
        [Some(Cow::Borrowed(text)), escaped.map(Cow::Owned), real.map(Cow::Owned)].into_iter().flatten()
    }

    /// Returns the last number that the pattern captures, else the first other text. A match that begins inside a word
    /// counts only if no other match has a number.
    fn last_number<'a>(&self, text: &'a str, matches_max: usize) -> Option<Found<'a>> {
        let mut other = None;
        for form in self.forms(text) {
            let mut number: Option<(&str, usize, bool)> = None;
            let mut has_several = false;
            for (part, at, in_word) in self.matches(&form).take(matches_max) {
                if part.parse::<f64>().is_ok() {
                    match number {
                        // Such as that of `val_loss` for the pattern `loss: (.*)`.
                        Some((_, _, false)) if in_word => continue,
                        Some((earlier, _, was_in_word)) if was_in_word == in_word => {
                            has_several |= earlier != part;
                        }
                        Some(_) => has_several = false,
                        None => {}
                    }
                    number = Some((part, at, in_word));
                } else if other.is_none() {
                    other = Some((part.to_owned(), Cut::find(&form, at..at + part.len(), false)));
                }
            }
            if let Some((part, at, _)) = number {
                let captured = part.to_owned();
                let cut = Cut::find(&form, at..at + part.len(), false);
                return Some(Found { captured, form, at, cut, has_several });
            }
        }
        other.map(|(captured, cut)| Found {
            captured,
            form: Cow::Borrowed(text),
            at: 0,
            cut,
            has_several: false,
        })
    }

    /// Returns the epoch that the pattern captures: the nearest one before the value, else the first one after it. Without
    /// a value, the last one.
    fn index(&self, text: &str, value: Option<&Found<'_>>, matches_max: usize) -> Option<(u64, Option<Cut>)> {
        // The places in another form of the text are other ones.
        let in_form = value.map(|value| (&*value.form, value.at));
        let forms = self.forms(text).map(|form| (form, usize::MAX));
        let same = in_form.map(|(form, at)| (Cow::Borrowed(form), at));
        for (form, value_at) in same.into_iter().chain(forms) {
            let mut nearest: Option<(u64, &str, usize)> = None;
            for (part, at, _) in self.matches(&form).take(matches_max) {
                let Some(index) = whole_number(part) else { continue };
                if at > value_at && nearest.is_some() {
                    break;
                }
                nearest = Some((index, part, at));
            }
            if let Some((index, part, at)) = nearest {
                return Some((index, Cut::find(&form, at..at + part.len(), true)));
            }
        }
        None
    }

    /// Returns the captured text of each match, its place, and whether the match begins inside a word.
    fn matches<'a>(&'a self, form: &'a str) -> impl Iterator<Item = (&'a str, usize, bool)> {
        let continues = |letter: char| letter.is_alphanumeric() || letter == '_';
        self.regex.captures_iter(form).filter_map(move |found| {
            let start = found.get_match().start();
            let before = form.get(..start).and_then(|before| before.chars().next_back());
            let first = form.get(start..).and_then(|rest| rest.chars().next());
            let in_word = before.is_some_and(continues) && first.is_some_and(continues);
            let group = group(&found)?;
            let number = number_part(group.as_str());
            let blank = group.as_str().len() - group.as_str().trim_start().len();
            Some((number, group.start() + blank, in_word))
        })
    }
}

/// Returns the whole number of an epoch, also if it is logged as `2.0`.
fn whole_number(text: &str) -> Option<u64> {
    let digits = text
        .split_once('.')
        .map_or(text, |(whole, rest)| if rest.bytes().all(|digit| digit == b'0') { whole } else { text });
    digits.parse().ok()
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
