//! Splits the output of a process into lines, in bounded memory.
//!
//! A line ends at a line feed. A line longer than [`LINE_BYTES_MAX`] is split, and invalid UTF-8 is replaced. Empty
//! lines are dropped, as in CloudWatch Logs. A line that is redrawn by carriage returns, like a progress bar, can be
//! shown before its end.

use wire::events::logs::UNFINISHED;

/// The longest line, as in CloudWatch Logs.
pub(crate) const LINE_BYTES_MAX: usize = 256 * 1024;

/// Collects bytes and returns complete lines.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    buffer: Vec<u8>,
    /// The number of bytes at the start of the buffer that were returned.
    taken: usize,
    /// The number of bytes after `taken` without a line feed.
    searched: usize,
    /// The number of bytes after `taken` that were shown before the end of their line.
    shown: usize,
}

impl LineSplitter {
    /// Adds bytes. Take all lines before the next call, or the buffer grows.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete line, or full piece of a long line, without its line end.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        loop {
            let rest = self.buffer.get(self.taken..)?;
            let unsearched = rest.get(self.searched..)?;
            let end = unsearched.iter().position(|byte| *byte == b'\n').map(|at| at + self.searched);
            let (length, skip) = match end {
                Some(end) if end <= LINE_BYTES_MAX => (end, 1),
                _ if rest.len() > LINE_BYTES_MAX => (cut(rest), 0),
                _ => {
                    self.searched = rest.len();
                    return None;
                }
            };
            let line = text(rest.get(..length)?);
            self.taken += length + skip;
            self.searched = 0;
            self.shown = 0;
            if !line.is_empty() {
                return Some(line);
            }
        }
    }

    /// Returns whether the incomplete line was redrawn, and has text that was not shown.
    pub(crate) fn has_redrawn(&self) -> bool {
        let rest = self.buffer.get(self.taken..).unwrap_or_default();
        rest.len() > self.shown && rest.contains(&b'\r')
    }

    /// Returns the incomplete line, with [`UNFINISHED`] as its end. Its last state begins the next piece of the line.
    pub(crate) fn unfinished(&mut self) -> String {
        let rest = self.buffer.get(self.taken..).unwrap_or_default();
        let last = rest.iter().rposition(|byte| *byte != b'\r').unwrap_or_default();
        let state = rest.get(..last).unwrap_or_default().iter().rposition(|byte| *byte == b'\r');
        let line = format!("{}{UNFINISHED}", text(rest));
        self.taken += state.unwrap_or_default();
        self.shown = self.buffer.len().saturating_sub(self.taken);
        self.searched = self.shown;
        line
    }

    /// Returns the rest at the end of the stream.
    pub(crate) fn last_line(&mut self) -> Option<String> {
        let line = text(self.buffer.get(self.taken..)?);
        self.buffer.clear();
        self.taken = 0;
        self.searched = 0;
        self.shown = 0;
        (!line.is_empty()).then_some(line)
    }
}

/// Returns where to split a line that is too long, but not inside a character.
fn cut(line: &[u8]) -> usize {
    let inside = |at: usize| line.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (0..4).map(|back| LINE_BYTES_MAX - back).find(|at| !inside(*at)).unwrap_or(LINE_BYTES_MAX)
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<String> {
        let mut splitter = LineSplitter::default();
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.push(chunk);
            while let Some(line) = splitter.next_line() {
                lines.push(line);
            }
        }
        lines.extend(splitter.last_line());
        lines
    }

    #[test]
    fn lines_span_chunks_and_empty_lines_are_dropped() {
        assert_eq!(split(&[b"on", b"e\r\n\ntwo\nthr", b"ee"]), ["one", "two", "three"]);
        assert_eq!(split(&[b"\xff\n"]), ["\u{fffd}"]);
        assert_eq!(split(&[b""]), Vec::<String>::new());
    }

    #[test]
    fn a_redrawn_line_is_shown_before_its_end_and_continues_with_its_last_state() {
        let mut splitter = LineSplitter::default();
        splitter.push(b"one\n\r1/3");
        assert_eq!(splitter.next_line().as_deref(), Some("one"));
        assert_eq!(splitter.next_line(), None);
        assert!(splitter.has_redrawn());
        assert_eq!(splitter.unfinished(), "\r1/3\r…");
        assert!(!splitter.has_redrawn(), "nothing new");
        splitter.push(b"\r2/3\r");
        assert_eq!(splitter.next_line(), None);
        assert_eq!(splitter.unfinished(), "\r1/3\r2/3\r…");
        splitter.push(b"3/3\nnext\n");
        assert_eq!(splitter.next_line().as_deref(), Some("\r2/3\r3/3"));
        assert_eq!(splitter.next_line().as_deref(), Some("next"));
        splitter.push(b"plain");
        assert!(!splitter.has_redrawn(), "a line without a carriage return waits for its end");
    }

    #[test]
    fn a_long_line_is_split_between_characters() {
        let line = "é".repeat(LINE_BYTES_MAX);
        let chunks: Vec<&[u8]> = line.as_bytes().chunks(65_537).collect();
        let pieces = split(&chunks);
        assert!(pieces.iter().all(|piece| piece.len() <= LINE_BYTES_MAX && !piece.contains('\u{fffd}')));
        assert_eq!(pieces.concat(), line);
    }

    #[test]
    fn a_line_of_the_longest_length_is_not_split() {
        let line = [vec![b'x'; LINE_BYTES_MAX], b"\nnext\n".to_vec()].concat();
        let lengths: Vec<usize> = split(&[&line]).iter().map(String::len).collect();
        assert_eq!(lengths, [LINE_BYTES_MAX, 4]);
    }
}
