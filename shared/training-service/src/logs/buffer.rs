//! A bounded buffer of log lines that wait to be written, oldest first.
//!
//! Lines that are being written count against the bound until they are settled. Each stream keeps its order.

use std::collections::{BTreeMap, VecDeque};

use wire::events::logs::LogEvent;

/// The bytes that CloudWatch Logs counts for each line in addition to its text.
const LINE_OVERHEAD_BYTES: usize = 26;

/// Returns the bytes that a line counts.
pub(super) fn size(line: &LogEvent) -> usize {
    line.message.len().saturating_add(LINE_OVERHEAD_BYTES)
}

/// Lines of one stream that were pushed together.
#[derive(Debug)]
struct Chunk {
    stream: String,
    lines: Vec<LogEvent>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct Buffer {
    waiting: VecDeque<Chunk>,
    /// Bytes of the lines that wait or are being written.
    bytes: usize,
    bytes_max: usize,
    /// Lines dropped since the last [`Buffer::take_dropped`].
    dropped: usize,
    ended: bool,
}

impl Buffer {
    /// Creates a buffer of at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, bytes_max, dropped: 0, ended: false }
    }

    /// Adds lines. Drops the oldest waiting lines while the buffer is too large.
    pub(super) fn push(&mut self, stream: String, lines: Vec<LogEvent>) {
        let bytes = lines.iter().map(size).sum();
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push_back(Chunk { stream, lines, bytes });
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            self.dropped = self.dropped.saturating_add(oldest.lines.len());
        }
    }

    /// Takes all waiting lines, by stream. Settle each stream with [`Buffer::give_back`].
    pub(super) fn take(&mut self) -> BTreeMap<String, Vec<LogEvent>> {
        let mut streams: BTreeMap<String, Vec<LogEvent>> = BTreeMap::new();
        for chunk in self.waiting.drain(..) {
            streams.entry(chunk.stream).or_default().extend(chunk.lines);
        }
        streams
    }

    /// Settles the taken lines of a stream. `left` wait again, in front of newer lines. The others, of `settled_bytes`,
    /// leave the buffer; `dropped` of them were refused.
    pub(super) fn give_back(
        &mut self,
        stream: String,
        left: Vec<LogEvent>,
        settled_bytes: usize,
        dropped: usize,
    ) {
        self.bytes = self.bytes.saturating_sub(settled_bytes);
        self.dropped = self.dropped.saturating_add(dropped);
        if !left.is_empty() {
            let bytes = left.iter().map(size).sum();
            // Their bytes are still counted. They are older than the stream's waiting lines.
            self.waiting.push_front(Chunk { stream, lines: left, bytes });
        }
    }

    /// Returns the number of lines dropped since the last call.
    pub(super) fn take_dropped(&mut self) -> usize {
        std::mem::take(&mut self.dropped)
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Returns whether the feed has ended and no line waits.
    pub(super) fn is_done(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<LogEvent> {
        let line = |text: &&str| LogEvent { id: "1".to_owned(), timestamp: 1, message: (*text).to_owned() };
        texts.iter().map(line).collect()
    }

    fn texts(taken: &BTreeMap<String, Vec<LogEvent>>, stream: &str) -> Vec<String> {
        taken.get(stream).into_iter().flatten().map(|line| line.message.clone()).collect()
    }

    #[test]
    fn returned_lines_come_before_newer_lines() {
        let mut buffer = Buffer::new(10_000);
        buffer.push("a".to_owned(), lines(&["1", "2"]));
        buffer.push("b".to_owned(), lines(&["x"]));
        buffer.push("a".to_owned(), lines(&["3"]));
        let taken = buffer.take();
        assert_eq!(
            (texts(&taken, "a"), texts(&taken, "b")),
            (vec!["1".into(), "2".into(), "3".into()], vec!["x".to_owned()])
        );
        buffer.push("a".to_owned(), lines(&["4"]));
        buffer.give_back("a".to_owned(), lines(&["2", "3"]), 27, 0);
        buffer.give_back("b".to_owned(), Vec::new(), 27, 0);
        assert_eq!(texts(&buffer.take(), "a"), ["2", "3", "4"]);
        assert_eq!(buffer.take_dropped(), 0);
    }

    #[test]
    fn the_oldest_lines_are_dropped_first_and_counted_once() {
        // Room for three lines of one letter.
        let mut buffer = Buffer::new(3 * 27);
        buffer.push("a".to_owned(), lines(&["1", "2"]));
        buffer.push("b".to_owned(), lines(&["x"]));
        assert_eq!(buffer.take_dropped(), 0);
        buffer.push("a".to_owned(), lines(&["3"]));
        assert_eq!((buffer.take_dropped(), buffer.take_dropped()), (2, 0));
        let taken = buffer.take();
        assert_eq!((texts(&taken, "a"), texts(&taken, "b")), (vec!["3".to_owned()], vec!["x".to_owned()]));
    }

    #[test]
    fn lines_being_written_count_until_they_are_settled() {
        let mut buffer = Buffer::new(2 * 27);
        buffer.push("a".to_owned(), lines(&["1", "2"]));
        let taken = buffer.take();
        buffer.push("a".to_owned(), lines(&["3"]));
        assert_eq!(buffer.take_dropped(), 1, "no room for the line");
        assert!(taken["a"].len() == 2 && buffer.take().is_empty());
        buffer.give_back("a".to_owned(), Vec::new(), 2 * 27, 1);
        assert_eq!(buffer.take_dropped(), 1, "one line was refused");
        buffer.push("a".to_owned(), lines(&["4", "5"]));
        assert_eq!(
            (texts(&buffer.take(), "a"), buffer.take_dropped()),
            (vec!["4".to_owned(), "5".to_owned()], 0)
        );
    }

    #[test]
    fn the_buffer_is_done_when_the_feed_has_ended_and_no_line_waits() {
        let mut buffer = Buffer::new(1_000);
        buffer.push("a".to_owned(), lines(&["1"]));
        assert!(!buffer.is_done());
        buffer.end();
        assert!(!buffer.is_done());
        let _ = buffer.take();
        buffer.give_back("a".to_owned(), lines(&["1"]), 0, 0);
        assert!(!buffer.is_done());
        let _ = buffer.take();
        buffer.give_back("a".to_owned(), Vec::new(), 27, 0);
        assert!(buffer.is_done());
    }
}
