//! Lines that wait to be written, oldest first, within a bound.
//!
//! What is being written counts until it is settled. Must never give out a stream's lines in another order than they
//! came.

use std::collections::{BTreeMap, VecDeque};

use wire::events::logs::LogEvent;

/// What CloudWatch Logs counts for a line beside its text.
const LINE_OVERHEAD_BYTES: usize = 26;

/// What a line counts.
pub(super) fn size(line: &LogEvent) -> usize {
    line.message.len().saturating_add(LINE_OVERHEAD_BYTES)
}

/// Lines of one stream that came together.
#[derive(Debug)]
struct Chunk {
    stream: String,
    lines: Vec<LogEvent>,
    bytes: usize,
}

/// The lines.
#[derive(Debug)]
pub(super) struct Buffer {
    waiting: VecDeque<Chunk>,
    bytes: usize,
    bytes_max: usize,
    lost: usize,
    ended: bool,
}

impl Buffer {
    /// Of at most `bytes_max`.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, bytes_max, lost: 0, ended: false }
    }

    /// Takes lines in; the oldest go where there is no room.
    pub(super) fn push(&mut self, stream: String, lines: Vec<LogEvent>) {
        let bytes = lines.iter().map(size).sum();
        self.bytes = self.bytes.saturating_add(bytes);
        self.waiting.push_back(Chunk { stream, lines, bytes });
        while self.bytes > self.bytes_max
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(oldest.bytes);
            self.lost = self.lost.saturating_add(oldest.lines.len());
        }
    }

    /// Everything that waits, by stream; [`Buffer::give_back`] settles each.
    pub(super) fn take(&mut self) -> BTreeMap<String, Vec<LogEvent>> {
        let mut streams: BTreeMap<String, Vec<LogEvent>> = BTreeMap::new();
        for chunk in self.waiting.drain(..) {
            streams.entry(chunk.stream).or_default().extend(chunk.lines);
        }
        streams
    }

    /// What became of the lines of a stream: some are left, so many bytes of others are out of the way, and so many
    /// lines of these for nothing.
    pub(super) fn give_back(
        &mut self,
        stream: String,
        left: Vec<LogEvent>,
        settled_bytes: usize,
        lost: usize,
    ) {
        self.bytes = self.bytes.saturating_sub(settled_bytes);
        self.lost = self.lost.saturating_add(lost);
        if !left.is_empty() {
            let bytes = left.iter().map(size).sum();
            // Already counted, and older than whatever of this stream has come since.
            self.waiting.push_front(Chunk { stream, lines: left, bytes });
        }
    }

    /// How many lines went since the last time this was asked.
    pub(super) fn take_lost(&mut self) -> usize {
        std::mem::take(&mut self.lost)
    }

    /// No more will come.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether nothing waits and no more will come.
    pub(super) fn is_over(&self) -> bool {
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
    fn what_is_given_back_comes_before_what_came_since() {
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
        assert_eq!(buffer.take_lost(), 0);
    }

    #[test]
    fn the_oldest_go_first_and_are_counted_once() {
        // Room for three lines of one letter.
        let mut buffer = Buffer::new(3 * 27);
        buffer.push("a".to_owned(), lines(&["1", "2"]));
        buffer.push("b".to_owned(), lines(&["x"]));
        assert_eq!(buffer.take_lost(), 0);
        buffer.push("a".to_owned(), lines(&["3"]));
        assert_eq!((buffer.take_lost(), buffer.take_lost()), (2, 0));
        let taken = buffer.take();
        assert_eq!((texts(&taken, "a"), texts(&taken, "b")), (vec!["3".to_owned()], vec!["x".to_owned()]));
    }

    #[test]
    fn what_is_being_written_takes_room_until_it_is_settled() {
        let mut buffer = Buffer::new(2 * 27);
        buffer.push("a".to_owned(), lines(&["1", "2"]));
        let taken = buffer.take();
        buffer.push("a".to_owned(), lines(&["3"]));
        assert_eq!(buffer.take_lost(), 1, "there was no room for it");
        assert!(taken["a"].len() == 2 && buffer.take().is_empty());
        buffer.give_back("a".to_owned(), Vec::new(), 2 * 27, 1);
        assert_eq!(buffer.take_lost(), 1, "one that was not taken");
        buffer.push("a".to_owned(), lines(&["4", "5"]));
        assert_eq!(
            (texts(&buffer.take(), "a"), buffer.take_lost()),
            (vec!["4".to_owned(), "5".to_owned()], 0)
        );
    }

    #[test]
    fn it_is_over_when_nothing_waits_and_nothing_comes() {
        let mut buffer = Buffer::new(1_000);
        buffer.push("a".to_owned(), lines(&["1"]));
        assert!(!buffer.is_over());
        buffer.end();
        assert!(!buffer.is_over());
        let _ = buffer.take();
        buffer.give_back("a".to_owned(), lines(&["1"]), 0, 0);
        assert!(!buffer.is_over());
        let _ = buffer.take();
        buffer.give_back("a".to_owned(), Vec::new(), 27, 0);
        assert!(buffer.is_over());
    }
}
