//! Why a pattern may find nothing: the lines that come near it.
//!
//! Holds one line for each name that has a number behind it, so that a log of any length takes little memory. A hint
//! that names a cause rests on a change of the pattern or of a line that was tried and found something.

use std::collections::BTreeMap;

use regex::Regex;
use wire::events::logs::{Explanation, MetricPattern};

use crate::closest::closest;
use crate::text::short;

/// Names that are kept.
const NAMES_MAX: usize = 500;
/// Longest line that is kept.
const LINE_BYTES_MAX: usize = 4_096;
const SHOWN_CHARACTERS: usize = 100;
/// A name with a number behind it.
const NAMED: &str = r#"([A-Za-z_][A-Za-z0-9_:./@-]*)['"]?\s*[=:]\s*[-+]?\.?[0-9]"#;
/// What colours a terminal.
const COLOUR: &str = r"\x1b\[[0-9;]*[A-Za-z]";

/// What hints are made of.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// Name with a number, and the first line that has it.
    lines: BTreeMap<String, String>,
    any: bool,
    named: Option<Regex>,
}

impl Hints {
    /// Takes a line of the log.
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

    /// What may be wrong with a pattern that matched nothing.
    pub(super) fn about(&self, metric: &str, regex: &str) -> String {
        if !self.any {
            return "the log has no lines".to_owned();
        }
        self.cause(regex).or_else(|| self.near(metric)).unwrap_or_else(|| {
            let names: Vec<&str> = self.lines.keys().map(String::as_str).take(8).collect();
            if names.is_empty() {
                "no line has a name with a number behind it; is this the log of the training program?"
                    .to_owned()
            } else {
                format!("no line has anything like it; numbers stand behind: {}", names.join(", "))
            }
        })
    }

    /// A change with which the pattern finds a value.
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
                "the pattern has a space where the log has a tab (CloudWatch shows it as #011); write (?:\\t|#011): {}",
                shown(line)
            ));
        }
        if let Some(line) = with(regex, &|line| colour.replace_all(line, "").into_owned()) {
            return Some(format!(
                "the log has colour codes of a terminal inside the text; turn colours off in the program: {}",
                shown(line)
            ));
        }
        if let Some(line) = with(&format!("(?i){regex}"), &same) {
            return Some(format!(
                "the log writes it in other letter case; begin the pattern with (?i): {}",
                shown(line)
            ));
        }
        let open = regex.strip_prefix('^')?;
        with(open, &same).map(|line| {
            format!("lines begin with something else; leave out the ^ of the pattern: {}", shown(line))
        })
    }

    /// Lines with a name like the metric's.
    fn near(&self, metric: &str) -> Option<String> {
        let measure = metric.rsplit(':').next().unwrap_or(metric);
        let name = closest(measure, self.lines.keys().map(String::as_str)).into_iter().next()?;
        let line = self.lines.get(name)?;
        Some(format!("the pattern does not fit the lines with '{name}': {}", shown(line)))
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
            (r"\] validation-auc:([0-9.]+)", "[3]\tvalidation-auc:0.5", "a space where the log has a tab"),
            (r"\] validation-auc:([0-9.]+)", "[3]#011validation-auc:0.5", "a space where the log has a tab"),
            ("auc=([0-9.]+)", "auc=\x1b[32m0.5\x1b[0m loss=1", "colour codes"),
            ("auc=([0-9.]+)", "AUC=0.5", "letter case"),
            ("^auc=([0-9.]+)", "2026-01-01 auc=0.5", "leave out the ^"),
            ("auc = ([0-9.]+)", "val_auc=0.5", "does not fit the lines with 'val_auc': \"val_auc=0.5\""),
            ("auc=([0-9.]+)", "precision=0.5", "numbers stand behind: precision"),
            ("auc=([0-9.]+)", "nothing at all", "is this the log of the training program?"),
        ] {
            let hint = about(regex, line);
            assert!(hint.contains(expected), "{regex} on {line}: {hint}");
        }
        assert_eq!(Hints::default().about("auc", "auc=(.)"), "the log has no lines");
    }

    #[test]
    fn the_patterns_of_this_file_compile() {
        for pattern in [NAMED, COLOUR] {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn a_log_of_any_length_takes_little_memory() {
        let mut hints = Hints::default();
        for number in 0..NAMES_MAX * 2 {
            hints.take(&format!("name{number}=1"));
        }
        hints.take(&"x=1 ".repeat(LINE_BYTES_MAX));
        assert_eq!(hints.lines.len(), NAMES_MAX);
    }
}
