//! Reads stored log streams page by page, in bounded memory.
//!
//! Expects the format of [`super::log_stream`]: one JSON object per line, with times that never decrease within a
//! stream. Skips an incomplete last line, which a killed controller can leave. A page token is
//! `<stream digits>:<byte offset>`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use use_cases::ports::training::{LogLine, Paged};

use super::job_log;
use super::log_stream::{LogEvent, stream_name};
use tuning::unit::time::Time;

/// The maximum number of lines of a page.
const PAGE_LINES_MAX: usize = 10_000;
/// A page ends with the line that reaches this size.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Why a page could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    BadToken,
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads one page of the lines of all streams of `host` with a time of at least `from`, oldest stream first.
pub(crate) fn read(
    folder: &Path,
    job: &str,
    host: &str,
    from: Time,
    page: Option<&str>,
) -> Result<Paged<LogLine>, ReadError> {
    let streams = streams(folder, host)?;
    let (first, offset) = match page {
        None => (Time::MIN, None),
        Some(token) => parse_token(token).ok_or(ReadError::BadToken)?,
    };
    let mut found = Page { items: Vec::new(), bytes: 0 };
    for started in streams.into_iter().filter(|started| *started >= first) {
        let mut file = File::open(folder.join(format!("{host}-{started}")))?;
        let start = match offset {
            Some(offset) if started == first => offset,
            _ => seek_time(&mut file, from)?,
        };
        let stream = stream_name(job, host, started);
        if let Some(next) = found.fill(file, start, &stream, from)? {
            return Ok(Paged { items: found.items, next: Some(format!("{started}:{next}")) });
        }
    }
    Ok(Paged { items: found.items, next: None })
}

fn parse_token(token: &str) -> Option<(Time, Option<u64>)> {
    let (stream, offset) = token.split_once(':')?;
    Some((Time(stream.parse().ok()?), Some(offset.parse().ok()?)))
}

/// Returns the start times of the streams of `host`, oldest first.
fn streams(folder: &Path, host: &str) -> io::Result<Vec<Time>> {
    let of_host = job_log::streams(folder)?.into_iter().filter(|(of, ..)| of == host);
    let mut found: Vec<Time> = of_host.map(|(_, started, _)| started).collect();
    found.sort_unstable();
    Ok(found)
}

struct Page {
    items: Vec<LogLine>,
    bytes: usize,
}

impl Page {
    /// Adds lines from offset `start`. Returns the offset of the next line when the page is full.
    fn fill(&mut self, mut file: File, start: u64, stream: &str, from: Time) -> io::Result<Option<u64>> {
        file.seek(SeekFrom::Start(start))?;
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let mut offset = start;
        let mut line = Vec::new();
        loop {
            if self.items.len() >= PAGE_LINES_MAX || self.bytes >= PAGE_BYTES_MAX {
                return Ok(Some(offset));
            }
            line.clear();
            let length = reader.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                return Ok(None);
            }
            offset = offset.saturating_add(u64::try_from(length).unwrap_or(0));
            if let Ok(event) = serde_json::from_slice::<LogEvent>(&line)
                && event.timestamp >= from
            {
                self.bytes = self.bytes.saturating_add(event.message.len());
                let LogEvent { id, timestamp, message } = event;
                self.items.push(LogLine { stream: stream.to_owned(), id, timestamp, message });
            }
        }
    }
}

/// Finds, by bisection, the offset of a line before which all lines are older than `from`.
fn seek_time(file: &mut File, from: Time) -> io::Result<u64> {
    let (mut low, mut high) = (0_u64, file.metadata()?.len());
    // Below this size, reading is as fast as another step.
    while high.saturating_sub(low) > 64 * 1024 {
        let middle = low + (high - low) / 2;
        match line_after(file, middle)? {
            Some((start, end, time)) if time < from && end <= high => low = end.max(start),
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Returns start, end and time of the first complete line that starts after `offset`.
fn line_after(file: &mut File, offset: u64) -> io::Result<Option<(u64, u64, Time)>> {
    file.seek(SeekFrom::Start(offset))?;
    let mut reader = BufReader::new(&mut *file);
    let mut line = Vec::new();
    let skipped = u64::try_from(reader.read_until(b'\n', &mut line)?).unwrap_or(0);
    line.clear();
    let length = u64::try_from(reader.read_until(b'\n', &mut line)?).unwrap_or(0);
    let start = offset.saturating_add(skipped);
    let event = serde_json::from_slice::<LogEvent>(&line).ok();
    Ok(event.map(|event| (start, start.saturating_add(length), event.timestamp)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tuning::unit::time::Millis;

    use super::*;

    fn write(folder: &Path, started: Time, lines: u32, torn: bool) {
        let mut text = String::new();
        for line in 0..lines {
            let message = format!("{line} {}", "x".repeat(40));
            let event = LogEvent {
                id: format!("{line:09}"),
                timestamp: started + Millis(i64::from(line / 7)),
                message,
            };
            text.push_str(&serde_json::to_string(&event).unwrap());
            text.push('\n');
        }
        if torn {
            text.push_str(r#"{"id":"9","timest"#);
        }
        fs::write(folder.join(format!("algo-1-{started}")), text).unwrap();
    }

    fn all(folder: &Path, from: Time) -> (Vec<LogLine>, usize) {
        let (mut lines, mut pages, mut next) = (Vec::new(), 0, None::<String>);
        loop {
            let page = read(folder, "job", "algo-1", from, next.as_deref()).unwrap();
            assert!(page.items.len() <= PAGE_LINES_MAX);
            lines.extend(page.items);
            pages += 1;
            next = page.next;
            if next.is_none() {
                return (lines, pages);
            }
        }
    }

    #[test]
    fn pages_have_every_complete_line_once_in_order() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), Time(1_000_000), 25_000, true);
        write(folder.path(), Time(2_000_000), 3, false);
        fs::write(folder.path().join("algo-11-3000000"), "{}").unwrap();
        let (lines, pages) = all(folder.path(), Time(0));
        assert_eq!((lines.len(), pages), (25_003, 3));
        assert!(lines.is_sorted_by_key(|line| (line.stream.clone(), line.timestamp, line.id.clone())));
        assert_eq!(lines.last().unwrap().stream, "job/algo-1-2000000");
    }

    #[test]
    fn reading_starts_at_any_given_time() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), Time(1_000_000), 25_000, false);
        for from in [0, 1_000_000, 1_000_001, 1_001_234, 1_003_571, 1_003_572] {
            let expected = (0..25_000).filter(|line| 1_000_000 + i64::from(line / 7) >= from).count();
            assert_eq!(all(folder.path(), Time(from)).0.len(), expected, "from {from}");
        }
    }

    #[test]
    fn a_missing_log_is_an_empty_page_and_a_bad_token_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(&folder.path().join("none"), "job", "algo-1", Time(0), None).unwrap().items.is_empty());
        assert!(matches!(read(folder.path(), "job", "algo-1", Time(0), Some("x")), Err(ReadError::BadToken)));
    }
}
