//! Splits what a process prints into lines, in bounded memory.
//!
//! A line ends at a line feed; a longer line than [`LINE_BYTES_MAX`] is cut into pieces; what is no UTF-8 is replaced.
//! Empty lines are left out, as CloudWatch leaves them out.

/// Longest line, as in CloudWatch Logs.
pub(crate) const LINE_BYTES_MAX: usize = 256 * 1024;

/// The part of a stream that is no whole line yet.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    buffer: Vec<u8>,
    /// Bytes at the start of the buffer that were given out.
    taken: usize,
    /// Bytes after `taken` that are known to hold no line feed.
    searched: usize,
}

impl LineSplitter {
    /// Adds what was read. Take all lines out before adding more, or memory grows.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line (or full piece of one) without its end.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        loop {
            let rest = self.buffer.get(self.taken..)?;
            let unseen = rest.get(self.searched..)?;
            let end = unseen.iter().position(|byte| *byte == b'\n').map(|at| at + self.searched);
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
            if !line.is_empty() {
                return Some(line);
            }
        }
    }

    /// What is left when the stream ends.
    pub(crate) fn last_line(&mut self) -> Option<String> {
        let line = text(self.buffer.get(self.taken..)?);
        self.buffer.clear();
        self.taken = 0;
        self.searched = 0;
        (!line.is_empty()).then_some(line)
    }
}

/// Where to cut a line that is too long: not inside a character.
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
    fn lines_are_found_across_chunks_and_empty_ones_left_out() {
        assert_eq!(split(&[b"on", b"e\r\n\ntwo\nthr", b"ee"]), ["one", "two", "three"]);
        assert_eq!(split(&[b"\xff\n"]), ["\u{fffd}"]);
        assert_eq!(split(&[b""]), Vec::<String>::new());
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = "é".repeat(LINE_BYTES_MAX);
        let chunks: Vec<&[u8]> = line.as_bytes().chunks(65_537).collect();
        let pieces = split(&chunks);
        assert!(pieces.iter().all(|piece| piece.len() <= LINE_BYTES_MAX && !piece.contains('\u{fffd}')));
        assert_eq!(pieces.concat(), line);
    }

    #[test]
    fn a_line_of_exactly_the_longest_length_stays_whole() {
        let line = [vec![b'x'; LINE_BYTES_MAX], b"\nnext\n".to_vec()].concat();
        let lengths: Vec<usize> = split(&[&line]).iter().map(String::len).collect();
        assert_eq!(lengths, [LINE_BYTES_MAX, 4]);
    }
}
