//! The last lines of a host's standard error, for the failure reason of its job. Bounded in memory.

use std::collections::VecDeque;

use super::plain_text::plain_text;

/// The most lines kept: a Python traceback ends with the place, the statement and the error.
const LINES_MAX: usize = 3;
/// The most characters kept, over all lines.
const CHARS_MAX: usize = 300;
/// A longer line is read only up to here.
const LINE_BYTES_READ: usize = 4 * CHARS_MAX;

/// The last lines that a host wrote to its standard error.
#[derive(Debug, Default)]
pub(crate) struct StderrTail {
    lines: VecDeque<String>,
}

impl StderrTail {
    /// Adds a line. Ignores lines without a letter or a digit, such as separators.
    pub(crate) fn push(&mut self, line: &str) {
        // A progress bar rewrites its line with carriage returns. Only its last state is on a terminal.
        let line = line.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
        let line = plain_text(line.get(..line.floor_char_boundary(LINE_BYTES_READ)).unwrap_or_default());
        let line = line.replace('\t', " ");
        if !line.chars().any(char::is_alphanumeric) {
            return;
        }
        if self.lines.len() >= LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line.trim().chars().take(CHARS_MAX).collect());
    }

    /// Returns the lines in the order in which they were written. Drops the oldest ones if all are too long.
    pub(crate) fn text(&self) -> String {
        let mut left = CHARS_MAX;
        let fits = |line: &&String| {
            let rest = left.checked_sub(line.chars().count().saturating_add(1));
            // The last line always fits, since it is cut to the limit.
            let fits = rest.is_some() || left == CHARS_MAX;
            left = rest.unwrap_or(0);
            fits
        };
        let mut kept: Vec<&str> = self.lines.iter().rev().take_while(fits).map(String::as_str).collect();
        kept.reverse();
        kept.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(lines: &[&str]) -> String {
        let mut tail = StderrTail::default();
        for line in lines {
            tail.push(line);
        }
        tail.text()
    }

    #[test]
    fn a_tail_has_the_last_three_lines_without_separators_and_margins() {
        assert_eq!(tail(&[]), "");
        assert_eq!(tail(&["a", "b", "  c", "=====", "\td", " "]), "b\nc\nd");
    }

    #[test]
    fn a_tail_has_no_control_characters() {
        assert_eq!(tail(&["\u{1b}[1;31mError:\u{1b}[0m no\u{7}w\tay\u{9b}"]), "Error: now ay");
        let title = "\u{1b}]0;train\u{7}\u{1b}]8;;file:///x\u{1b}\\ValueError\u{1b}]8;;\u{1b}\\: x";
        assert_eq!(tail(&[title]), "ValueError: x");
        assert_eq!(tail(&["10%|#   |\r90%|### |\r"]), "90%|### |");
        assert_eq!(tail(&["\u{1b}", "\u{1b}[31"]), "");
    }

    #[test]
    fn a_tail_is_bounded_and_keeps_the_last_line() {
        let long = "é".repeat(5_000);
        assert_eq!(tail(&["a", &long]).chars().count(), CHARS_MAX);
        let half = "x".repeat(200);
        assert_eq!(tail(&[&half, &half, "ValueError"]), format!("{half}\nValueError"));
    }
}
