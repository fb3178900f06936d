//! Hints why a metric pattern finds no value in a log.
//!
//! Keeps one line for each name that is followed by a number, so memory use does not depend on the length of the log. A
//! hint names a cause only if the corresponding change of the pattern or the line makes the pattern match.

use std::collections::{BTreeMap, BTreeSet};

use super::{Explanation, MetricPattern, visible};
use crate::closest;
use crate::request::shortened;
use regex::Regex;

/// Maximum number of names to keep.
const NAMES_MAX: usize = 500;
/// Longer lines are not kept.
const LINE_BYTES_MAX: usize = 4_096;
/// Regex of a name that is followed by a number.
const NAMED: &str = r#"([A-Za-z_][A-Za-z0-9_:./@-]*)['"]?\s*[=:]\s*[-+]?\.?[0-9]"#;

/// The lines that hints are based on.
#[derive(Debug, Default)]
pub struct Hints {
    /// The first line of each name that is followed by a number.
    lines: BTreeMap<String, String>,
    /// The length of the longest line, in bytes.
    longest: usize,
    any: bool,
    named: Option<Regex>,
}

impl Hints {
    /// Adds a line of the log.
    pub fn take(&mut self, line: &str) {
        self.any = true;
        self.longest = self.longest.max(line.len());
        if line.len() > LINE_BYTES_MAX || self.lines.len() >= NAMES_MAX {
            return;
        }
        if self.named.is_none() {
            self.named = Regex::new(NAMED).ok();
        }
        let Some(named) = &self.named else { return };
        let line = &visible(line);
        for found in named.captures_iter(line) {
            let name = found.get(1).map_or("", |name| name.as_str());
            if !self.lines.contains_key(name) {
                self.lines.insert(name.to_owned(), line.to_owned());
            }
        }
    }

    /// Returns why the pattern may have matched nothing.
    pub fn about(&self, metric: &str, regex: &str) -> String {
        if !self.any {
            return "the log is empty".to_owned();
        }
        if let Some(cause) = self.near_miss(metric, regex) {
            return cause;
        }
        let names: Vec<&str> = self.lines.keys().map(String::as_str).take(8).collect();
        match (names.is_empty(), self.too_long(regex)) {
            (true, Some(too_long)) => too_long,
            (true, None) => {
                "no line has a name followed by a number; check that this is the log of the training program"
                    .to_owned()
            }
            (false, too_long) => {
                let names = names.join(", ");
                let also = too_long.map(|too_long| format!("; {too_long}")).unwrap_or_default();
                format!("no line has a similar name; the log has numbers after these names: {names}{also}")
            }
        }
    }

    /// Returns why the pattern has matched nothing, if the log shows it: a change that makes the pattern find a value, or a
    /// similar name.
    pub fn near_miss(&self, metric: &str, regex: &str) -> Option<String> {
        self.cause(regex).or_else(|| self.near(metric))
    }

    /// Returns a change that makes the pattern find a value.
    fn cause(&self, regex: &str) -> Option<String> {
        let spaced = |line: &str| line.replace('\t', " ").replace("#011", " ");
        let lines = || self.lines.values().map(String::as_str);
        let with = |regex: &str, change: &dyn Fn(&str) -> String| {
            let pattern = MetricPattern::new(regex, None).ok()?;
            lines().find(|line| matches!(pattern.explain(&change(line)), Explanation::Value { .. }))
        };
        let same = |line: &str| line.to_owned();
        if let Some(line) = with(regex, &spaced) {
            return Some(format!(
                "the pattern has a space where the log has a tab (CloudWatch shows it as #011); use (?:\\t|#011) for \
                 the tab: {}",
                quoted(line)
            ));
        }
        if let Some(line) = with(&format!("(?i){regex}"), &same) {
            return Some(format!(
                "the log uses another letter case; begin the pattern with (?i): {}",
                quoted(line)
            ));
        }
        let open = regex.strip_prefix('^')?;
        with(open, &same).map(|line| {
            format!("the lines begin with other text; remove the ^ from the pattern: {}", quoted(line))
        })
    }

    /// Returns that a line was too long for the pattern, if one was.
    fn too_long(&self, regex: &str) -> Option<String> {
        let most = MetricPattern::new(regex, None).ok()?.max_line_bytes();
        (self.longest > most).then(|| {
            let length = self.longest;
            format!("a line has {length} bytes and the pattern reads lines of up to {most}; log the metric on a short line")
        })
    }

    /// Returns a line with a name similar to the metric.
    fn near(&self, metric: &str) -> Option<String> {
        let measure = metric.rsplit(':').next().unwrap_or(metric);
        let names = || self.lines.keys().map(String::as_str);
        let has_words = |name: &&str| {
            let (own, other) = (words(measure), words(name));
            own.is_subset(&other) || other.is_subset(&own)
        };
        let name = closest(measure, names()).into_iter().next().or_else(|| names().find(has_words))?;
        let line = self.lines.get(name)?;
        Some(format!("the pattern does not match the lines with '{name}': {}", quoted(line)))
    }
}

/// Returns the words of a name, in lower case.
fn words(name: &str) -> BTreeSet<String> {
    let words = name.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn quoted(line: &str) -> String {
    format!("\"{}\"", shortened(line.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(regex: &str, line: &str) -> String {
        let mut hints = Hints::default();
        hints.take("loading 3 files");
        hints.take(line);
        hints.about("validation:auc", regex)
    }

    #[test]
    fn a_hint_names_the_cause() {
        for (regex, line, expected) in [
            (r"\] validation-auc:([-+.\w]*\w)", "[3]\tvalidation-auc:0.5", "a space where the log has a tab"),
            (
                r"\] validation-auc:([-+.\w]*\w)",
                "[3]#011validation-auc:0.5",
                "a space where the log has a tab",
            ),
            (r"auc=([-+.\w]*\w)", "AUC=0.5", "letter case"),
            (r"^auc=([-+.\w]*\w)", "2026-01-01 auc=0.5", "remove the ^"),
            (
                r"auc = ([-+.\w]*\w)",
                "val_auc=0.5",
                "does not match the lines with 'val_auc': \"val_auc=0.5\"",
            ),
            (r"auc=([-+.\w]*\w)", "auc_of_the_test_set=0.5", "lines with 'auc_of_the_test_set'"),
            (r"auc=([-+.\w]*\w)", "precision=0.5", "numbers after these names: precision"),
            (r"auc=([-+.\w]*\w)", "nothing at all", "check that this is the log of the training program"),
        ] {
            let hint = about(regex, line);
            assert!(hint.contains(expected), "{regex} on {line}: {hint}");
        }
        assert_eq!(Hints::default().about("auc", "auc=(.)"), "the log is empty");
    }

    #[test]
    fn regression_a_line_that_is_too_long_for_the_pattern_is_the_cause() {
        let line = format!("{{\"auc\": 0.5, \"weights\": \"{}\"}}", "1".repeat(100_000));
        let hint = about(r"auc.*?([-+.\w]*\w)", &line);
        assert!(hint.contains("bytes and the pattern reads lines of up to"), "{hint}");
    }

    #[test]
    fn the_constant_pattern_compiles() {
        assert!(Regex::new(NAMED).is_ok());
    }

    #[test]
    fn long_logs_and_long_lines_use_bounded_memory() {
        let mut hints = Hints::default();
        for number in 0..NAMES_MAX * 2 {
            hints.take(&format!("name{number}=1"));
        }
        hints.take(&"x=1 ".repeat(LINE_BYTES_MAX));
        assert_eq!(hints.lines.len(), NAMES_MAX);
    }
}
