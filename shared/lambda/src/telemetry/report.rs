//! The report of one invocation: its log lines, and at most one line of metrics.

use crate::telemetry::line::Entry;
use crate::telemetry::metrics::{Metric, Metrics};
use tuning::unit::time::Time;

/// Maximum log lines of one invocation; further lines are only counted.
const LINES_MAX: usize = 50;
/// Ignored deliveries are written with the next line, or when this many have accumulated.
const CARRIED_MAX: u64 = 100;

/// The log entries and metrics of one invocation.
#[derive(Debug, Default)]
pub struct Report {
    entries: Vec<Entry>,
    dropped: usize,
    metrics: Metrics,
    carried: Metrics,
}

impl Report {
    /// Adds a log entry.
    pub fn log(&mut self, entry: Entry) {
        if self.entries.len() < LINES_MAX {
            self.entries.push(entry);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds `value` to a count, or records a time. Ignores zero.
    pub fn add(&mut self, metric: Metric, value: impl TryInto<u64>) {
        self.metrics.add(metric, value.try_into().unwrap_or(0));
    }

    /// Increments a count that does not cause a line by itself.
    pub fn carry(&mut self, metric: Metric) {
        self.carried.add(metric, 1);
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

/// Formats the reports of one process, in order.
#[derive(Debug)]
pub struct LogWriter {
    function: &'static str,
    stack: String,
    /// Counts of earlier invocations that are not written yet.
    carried: Metrics,
    carried_count: u64,
}

impl LogWriter {
    /// Creates a writer for `function` of stack `stack`.
    pub fn new(function: &'static str, stack: &str) -> Self {
        Self { function, stack: stack.to_owned(), carried: Metrics::default(), carried_count: 0 }
    }

    /// Returns the lines of a report, each with a line end..
    pub fn text(&mut self, mut report: Report, request: &str, at: Time) -> String {
        self.carried_count += u64::from(!report.carried.is_empty());
        self.carried.add_all(std::mem::take(&mut report.carried));
        if report.dropped > 0 {
            report.entries.push(Entry::warn(&format!("{} more lines were dropped", report.dropped)));
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
    use crate::telemetry::metrics::{EVENTS_IGNORED, FACTS_RECORDED};

    fn ignored() -> Report {
        let mut report = Report::default();
        report.carry(EVENTS_IGNORED);
        report
    }

    #[test]
    fn ignored_deliveries_are_written_with_the_next_line_or_every_hundred() {
        let mut writer = LogWriter::new("job-logs", "prod");
        assert_eq!(writer.text(ignored(), "r", Time(0)), "");
        assert_eq!(writer.text(ignored(), "r", Time(0)), "");
        let mut report = Report::default();
        report.add(FACTS_RECORDED, 1_usize);
        let text = writer.text(report, "r", Time(0));
        assert!(text.starts_with(r#"{"EventsIgnored":2,"FactsRecorded":1,"Stack":"prod","#), "{text}");
        let written: Vec<usize> =
            (1..=200).filter(|_| !writer.text(ignored(), "r", Time(0)).is_empty()).collect();
        assert_eq!(written, [100, 200]);
        assert_eq!(writer.text(Report::default(), "r", Time(0)), "");
    }

    #[test]
    fn excess_lines_are_dropped_and_counted() {
        let mut report = Report::default();
        for _ in 0..LINES_MAX + 7 {
            report.log(Entry::info("x"));
        }
        let text = LogWriter::new("f", "s").text(report, "r", Time(0));
        assert_eq!(text.lines().count(), LINES_MAX + 1);
        assert!(text.lines().last().is_some_and(|line| line.contains("7 more lines were dropped")), "{text}");
    }
}
