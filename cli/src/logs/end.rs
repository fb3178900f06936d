//! The end of the log of a training job, for the live page: its last lines as text, in bounded memory.

use std::collections::VecDeque;

use api_client::Stack;
use local::training::{JobRecords, LoggedLine};
use wire::describe::{TrainingJobSummary, TuningJob};

use super::printer::{has_hosts, text_line};
use super::{cloud, local as folder};
use crate::failure::Failure;

/// The maximum number of lines.
const LINES_MAX: usize = 200;
/// The maximum number of bytes.
const BYTES_MAX: usize = 64 * 1024;

/// The last lines of a log.
#[derive(Debug)]
pub(super) struct End {
    names_hosts: bool,
    lines: VecDeque<String>,
    bytes: usize,
}

impl End {
    fn of(described: &TuningJob) -> Self {
        Self { names_hosts: has_hosts(described), lines: VecDeque::new(), bytes: 0 }
    }

    /// Adds the next line, and drops the first ones beyond the limits. Cuts only a line that is too long alone.
    pub(super) fn push(&mut self, line: &LoggedLine) {
        let mut text = text_line(self.names_hosts, &line.host, &line.message);
        if text.len() > BYTES_MAX {
            text.truncate(text.floor_char_boundary(BYTES_MAX - 1));
            text.push('\n');
        }
        self.bytes = self.bytes.saturating_add(text.len());
        self.lines.push_back(text);
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let dropped = self.lines.pop_front().unwrap_or_default();
            self.bytes = self.bytes.saturating_sub(dropped.len());
        }
    }

    fn text(self) -> String {
        self.lines.into_iter().collect()
    }
}

/// Returns the end of the log of the job `name` in a data directory. Empty without a line.
pub(crate) async fn of_folder(
    records: &JobRecords,
    described: &TuningJob,
    name: &str,
) -> Result<String, Failure> {
    Ok(folder::read_end(records, name, End::of(described)).await?.text())
}

/// Returns the end of the log of `job` of a stack. Empty without a line.
pub(crate) async fn of_stack(
    stack: &Stack,
    described: &TuningJob,
    job: &TrainingJobSummary,
) -> Result<String, Failure> {
    let mut end = End::of(described);
    let lines = cloud::last_lines(stack, job, (LINES_MAX, BYTES_MAX)).await?;
    for line in &lines {
        end.push(line);
    }
    Ok(end.text())
}

#[cfg(test)]
mod tests {
    use tuning::unit::time::Time;

    use super::*;

    fn text(messages: impl Iterator<Item = String>) -> String {
        let mut end = End { names_hosts: false, lines: VecDeque::new(), bytes: 0 };
        for message in messages {
            end.push(&LoggedLine { host: "algo-1".to_owned(), timestamp: Time(0), message });
        }
        end.text()
    }

    #[test]
    fn the_end_has_the_last_whole_lines_within_both_limits() {
        let lines: Vec<String> = text((0..1_000).map(|n| n.to_string())).lines().map(str::to_owned).collect();
        assert_eq!((lines.len(), lines[0].as_str(), lines[199].as_str()), (200, "800", "999"));
        let long = text((0..100).map(|n| format!("{n:03}{}", "x".repeat(996))));
        assert!(
            long.len() == 65_000 && long.starts_with("035x") && long.contains("\n099x"),
            "{}",
            long.len()
        );
    }

    #[test]
    fn a_line_above_the_limit_is_cut_between_characters() {
        let cut = text(["first".to_owned(), "é".repeat(40_000)].into_iter());
        assert_eq!(cut, "é".repeat(BYTES_MAX / 2 - 1) + "\n");
        assert_eq!(text(["é".repeat(40_000), "last".to_owned()].into_iter()), "last\n");
    }
}
