//! What one invocation has to tell, and the text that it makes of it: its lines, and one line of metrics at most.

use crate::line::Entry;
use crate::metrics::{Metric, Metrics};

/// Most lines of one invocation; what is beyond is counted.
const LINES_MAX: usize = 50;
/// Ignored deliveries are written once so many have gathered, unless something else is written before.
const CARRIED_MAX: u64 = 100;

/// What an invocation has to tell.
#[derive(Debug, Default)]
pub struct Report {
    entries: Vec<Entry>,
    left_out: usize,
    metrics: Metrics,
    carried: Metrics,
}

impl Report {
    /// Tells something.
    pub fn log(&mut self, entry: Entry) {
        if self.entries.len() < LINES_MAX {
            self.entries.push(entry);
        } else {
            self.left_out += 1;
        }
    }

    /// Counts `value`, or notes a time; nothing if it is zero.
    pub fn add(&mut self, metric: Metric, value: impl TryInto<u64>) {
        self.metrics.add(metric, value.try_into().unwrap_or(0));
    }

    /// Counts something that is no reason to write a line.
    pub fn carry(&mut self, metric: Metric) {
        self.carried.add(metric, 1);
    }

    /// What was counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

/// Makes text of the reports of one process, one after the other.
#[derive(Debug)]
pub struct Teller {
    function: &'static str,
    stack: String,
    /// Counted in former invocations and not written yet.
    carried: Metrics,
    carried_count: u64,
}

impl Teller {
    /// A teller for `function` of stack `stack`.
    pub fn new(function: &'static str, stack: &str) -> Self {
        Self { function, stack: stack.to_owned(), carried: Metrics::default(), carried_count: 0 }
    }

    /// The lines of a report, each with its end; `at` in ms since the epoch.
    pub fn text(&mut self, mut report: Report, request: &str, at: i64) -> String {
        self.carried_count += u64::from(!report.carried.is_empty());
        self.carried.add_all(std::mem::take(&mut report.carried));
        if report.left_out > 0 {
            report.entries.push(Entry::warn(&format!("{} more lines were left out", report.left_out)));
        }
        let mut lines: Vec<String> =
            report.entries.iter().map(|entry| entry.line(self.function, Some(request), at)).collect();
        if !report.metrics.is_empty() || !lines.is_empty() || self.carried_count >= CARRIED_MAX {
            report.metrics.add_all(std::mem::take(&mut self.carried));
            self.carried_count = 0;
        }
        if !report.metrics.is_empty() {
            lines.push(report.metrics.line(&self.stack, at));
        }
        lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{EVENTS_IGNORED, FACTS_RECORDED};

    fn ignored() -> Report {
        let mut report = Report::default();
        report.carry(EVENTS_IGNORED);
        report
    }

    #[test]
    fn what_is_ignored_is_written_with_something_else_or_by_the_hundred() {
        let mut teller = Teller::new("job-logs", "prod");
        assert_eq!(teller.text(ignored(), "r", 0), "");
        assert_eq!(teller.text(ignored(), "r", 0), "");
        let mut report = Report::default();
        report.add(FACTS_RECORDED, 1_usize);
        let text = teller.text(report, "r", 0);
        assert!(text.starts_with(r#"{"EventsIgnored":2,"FactsRecorded":1,"Stack":"prod","#), "{text}");
        let written: Vec<usize> = (1..=200).filter(|_| !teller.text(ignored(), "r", 0).is_empty()).collect();
        assert_eq!(written, [100, 200]);
        assert_eq!(teller.text(Report::default(), "r", 0), "");
    }

    #[test]
    fn many_lines_are_cut_and_counted() {
        let mut report = Report::default();
        for _ in 0..LINES_MAX + 7 {
            report.log(Entry::info("x"));
        }
        let text = Teller::new("f", "s").text(report, "r", 0);
        assert_eq!(text.lines().count(), LINES_MAX + 1);
        assert!(
            text.lines().last().is_some_and(|line| line.contains("7 more lines were left out")),
            "{text}"
        );
    }
}
