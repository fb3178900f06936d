//! Prints the lines of a log.

use local::training::plain_text;
use serde_json::json;
use tuning::unit::time::Time;
use wire::describe::{TrainingJobSummary, TuningJob};
use wire::events::timestamp::format_utc;

use crate::arguments::{Logs, Output};
use crate::output::{json_line, write_out};
use crate::page::Page;

/// Prints lines as text or as JSON.
#[derive(Debug)]
pub(super) struct Printer {
    output: Output,
    job: String,
    /// Whether text names the host of each line.
    names_hosts: bool,
    lines: u64,
}

impl Printer {
    /// Returns a printer of the log of `job`. Text names the hosts if the job can have several.
    pub(super) fn new(page: &Page, job: &TrainingJobSummary, options: &Logs) -> Self {
        let names_hosts = options.host.is_none() && has_hosts(&page.described);
        Self { output: options.output, job: job.name.clone(), names_hosts, lines: 0 }
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Prints a line. Returns false if standard output is closed.
    #[must_use]
    pub(super) fn print(&mut self, host: &str, at: Time, message: &str) -> bool {
        self.lines = self.lines.saturating_add(1);
        write_out(&match self.output {
            Output::Json => json_line(
                &json!({"job": self.job, "host": host, "timestamp": format_utc(at), "line": message}),
            ),
            Output::Text => text_line(self.names_hosts, host, message),
        })
    }
}

/// Returns whether jobs of a tuning can have several hosts.
pub(super) fn has_hosts(described: &TuningJob) -> bool {
    let one = described.request.definition["ResourceConfig"]["InstanceCount"].as_u64() == Some(1);
    !one || !described.controller.costs.cluster_sizes.is_empty()
}

pub(super) fn text_line(names_host: bool, host: &str, message: &str) -> String {
    let host = if names_host { format!("{host}  ") } else { String::new() };
    format!("{host}{}\n", plain(message))
}

/// Removes the terminal's escape sequences and control characters except tabs.
fn plain(message: &str) -> String {
    // A progress bar rewrites its line.
    plain_text(&message.trim_end_matches(['\r', '\n']).replace(['\r', '\n'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cannot_change_the_terminal() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\t10%\r20%\u{7}\r\n"), "red\t10% 20%");
        assert_eq!(plain("\u{1b}]0;title\u{7}a\u{9b}2Jb\nc"), "ab c");
    }
}
