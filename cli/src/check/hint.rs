//! Hints why a metric pattern finds no value in a log.
//!
//! Keeps one line for each name that is followed by a number, so memory use does not depend on the length of the log. A
//! hint names a cause only if the corresponding change of the pattern or the line makes the pattern match.

use std::collections::BTreeMap;

use regex::Regex;
use wire::events::logs::{Explanation, MetricPattern};

use crate::closest::closest;
use crate::text::short;

/// Maximum number of names to keep.
const NAMES_MAX: usize = 500;
/// Longer lines are not kept.
const LINE_BYTES_MAX: usize = 4_096;
const SHOWN_CHARACTERS: usize = 100;
/// Regex of a name that is followed by a number.
const NAMED: &str = r#"([A-Za-z_][A-Za-z0-9_:./@-]*)['"]?\s*[=:]\s*[-+]?\.?[0-9]"#;
/// Regex of a terminal color code.
const COLOUR: &str = r"\x1b\[[0-9;]*[A-Za-z]";

/// The lines that hints are based on.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// The first line of each name that is followed by a number.
    lines: BTreeMap<String, String>,
    any: bool,
    named: Option<Regex>,
}

impl Hints {
    /// Adds a line of the log.
    pub(super) fn take(&mut self, line: &str) {
        self.any = true;
        if line.len() > LINE_BYTES_MAX || self.lines.len() >= NAMES_MAX {
            return;
        }
        if self.named.is_none() {
            self.named = Regex::new(NAMED).ok();
        }
        let Some(named) = &self.named else { return };
        for found in named.captures_iter(line) {
            let name = found.get(1).map_or("", |name| name.as_str());
            if !self.lines.contains_key(name) {
                self.lines.insert(name.to_owned(), line.to_owned());
            }
        }
    }

    /// Returns why the pattern may have matched nothing.
    pub(super) fn about(&self, metric: &str, regex: &str) -> String {
        if !self.any {
            return "the log is empty".to_owned();
        }
        self.cause(regex).or_else(|| self.near(metric)).unwrap_or_else(|| {
            let names: Vec<&str> = self.lines.keys().map(String::as_str).take(8).collect();
            if names.is_empty() {
                "no line has a name followed by a number; check that this is the log of the training program"
                    .to_owned()
            } else {
                format!(
                    "no line has a similar name; the log has numbers after these names: {}",
                    names.join(", ")
                )
            }
        })
    }

    /// Returns a change that makes the pattern find a value.
    fn cause(&self, regex: &str) -> Option<String> {
        let colour = Regex::new(COLOUR).ok()?;
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
                shown(line)
            ));
        }
        if let Some(line) = with(regex, &|line| colour.replace_all(line, "").into_owned()) {
            return Some(format!(
                "the log has terminal color codes inside the text; turn colors off in the training program: {}",
                shown(line)
            ));
        }
        if let Some(line) = with(&format!("(?i){regex}"), &same) {
            return Some(format!(
                "the log uses another letter case; begin the pattern with (?i): {}",
                shown(line)
            ));
        }
        let open = regex.strip_prefix('^')?;
        with(open, &same).map(|line| {
            format!("the lines begin with other text; remove the ^ from the pattern: {}", shown(line))
        })
    }

    /// Returns a line with a name similar to the metric.
    fn near(&self, metric: &str) -> Option<String> {
        let measure = metric.rsplit(':').next().unwrap_or(metric);
        let name = closest(measure, self.lines.keys().map(String::as_str)).into_iter().next()?;
        let line = self.lines.get(name)?;
        Some(format!("the pattern does not match the lines with '{name}': {}", shown(line)))
    }
}

fn shown(line: &str) -> String {
    format!("\"{}\"", short(line.trim(), SHOWN_CHARACTERS))
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
            (r"auc=([-+.\w]*\w)", "auc=\x1b[32m0.5\x1b[0m loss=1", "color codes"),
            (r"auc=([-+.\w]*\w)", "AUC=0.5", "letter case"),
            (r"^auc=([-+.\w]*\w)", "2026-01-01 auc=0.5", "remove the ^"),
            (
                r"auc = ([-+.\w]*\w)",
                "val_auc=0.5",
                "does not match the lines with 'val_auc': \"val_auc=0.5\"",
            ),
            (r"auc=([-+.\w]*\w)", "precision=0.5", "numbers after these names: precision"),
            (r"auc=([-+.\w]*\w)", "nothing at all", "check that this is the log of the training program"),
        ] {
            let hint = about(regex, line);
            assert!(hint.contains(expected), "{regex} on {line}: {hint}");
        }
        assert_eq!(Hints::default().about("auc", "auc=(.)"), "the log is empty");
    }

    #[test]
    fn the_constant_patterns_compile() {
        for pattern in [NAMED, COLOUR] {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
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
