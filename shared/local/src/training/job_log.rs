//! Follows the stored log of one job, over all its hosts and runs, in bounded memory.
//!
//! Changes nothing and takes no lock, so it also works while the job runs and in a read-only folder. Lines are in the
//! order of their times, except those that are stored after later lines of another host were read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tuning::unit::time::Time;

use super::log_stream::LogEvent;

/// The maximum number of lines of a batch.
const BATCH_LINES_MAX: usize = 1_000;
/// A batch ends with the line that reaches this size.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// How much of a stream is read for the end of a log. It has room for the longest line (256 KiB), whose JSON can
/// have six bytes for each byte.
const END_BYTES: u64 = 2 * 1024 * 1024;

/// A line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedLine {
    /// The host that wrote it, for example `algo-1`.
    pub host: String,
    /// When it was written.
    pub timestamp: Time,
    /// The text.
    pub message: String,
}

/// The log of a job, from its first line on.
#[derive(Debug)]
pub struct JobLog {
    folder: PathBuf,
    host: Option<String>,
    /// By host and start.
    streams: BTreeMap<(String, Time), Stream>,
}

impl JobLog {
    /// Returns the log in `folder`, of one host or of all.
    pub(crate) fn at(folder: PathBuf, host: Option<&str>) -> Self {
        Self { folder, host: host.map(ToOwned::to_owned), streams: BTreeMap::new() }
    }

    /// Returns the next lines; none if no further line is stored. A later call may then return new lines. Blocks.
    pub fn next_lines(&mut self) -> io::Result<Vec<LoggedLine>> {
        self.open_new_streams()?;
        let (mut lines, mut bytes) = (Vec::new(), 0_usize);
        while lines.len() < BATCH_LINES_MAX && bytes < BATCH_BYTES_MAX {
            let mut first: Option<(Time, &String, &mut Stream)> = None;
            for ((host, _), stream) in &mut self.streams {
                let Some(timestamp) = stream.peek()? else { continue };
                if first.as_ref().is_none_or(|(earliest, ..)| timestamp < *earliest) {
                    first = Some((timestamp, host, stream));
                }
            }
            let Some((timestamp, host, stream)) = first else { break };
            let Some(LogEvent { message, .. }) = stream.next.take() else { break };
            bytes = bytes.saturating_add(message.len());
            lines.push(LoggedLine { host: host.clone(), timestamp, message });
        }
        Ok(lines)
    }

    /// Skips the lines of each stored stream before its last 512 KiB. Call it before the first read. Blocks.
    pub fn skip_to_end(&mut self) -> io::Result<()> {
        self.open_new_streams()?;
        self.streams.values_mut().try_for_each(Stream::skip_to_end)
    }

    fn open_new_streams(&mut self) -> io::Result<()> {
        for (host, started, path) in streams(&self.folder)? {
            let is_wanted = self.host.as_ref().is_none_or(|wanted| *wanted == host);
            if is_wanted && !self.streams.contains_key(&(host.clone(), started)) {
                let reader = BufReader::new(File::open(path)?);
                self.streams.insert((host, started), Stream { reader, line: Vec::new(), next: None });
            }
        }
        Ok(())
    }
}

/// Returns the files in a folder of logs, each with its host and start.
pub(crate) fn streams(folder: &Path) -> io::Result<Vec<(String, Time, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.rsplit_once('-'));
        let parts = name.and_then(|(host, started)| Some((host.to_owned(), Time(started.parse().ok()?))));
        found.extend(parts.map(|(host, started)| (host, started, path)));
    }
    Ok(found)
}

/// The log of one host in one run.
#[derive(Debug)]
struct Stream {
    reader: BufReader<File>,
    /// The begin of a line that is not complete yet.
    line: Vec<u8>,
    /// The next line, if it was read.
    next: Option<LogEvent>,
}

impl Stream {
    fn skip_to_end(&mut self) -> io::Result<()> {
        let length = self.reader.get_ref().metadata()?.len();
        if let Some(start) = length.checked_sub(END_BYTES).filter(|start| *start > 0) {
            self.reader.seek(SeekFrom::Start(start))?;
            // The first line there may lack its begin.
            self.reader.skip_until(b'\n')?;
        }
        Ok(())
    }

    /// Reads the next line, if there is one, and returns its time.
    fn peek(&mut self) -> io::Result<Option<Time>> {
        while self.next.is_none() {
            self.reader.read_until(b'\n', &mut self.line)?;
            if self.line.last() != Some(&b'\n') {
                return Ok(None);
            }
            // A damaged line is skipped.
            self.next = serde_json::from_slice(&self.line).ok();
            self.line.clear();
        }
        Ok(self.next.as_ref().map(|event| event.timestamp))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn append(folder: &Path, name: &str, text: &str) {
        let mut file = File::options().create(true).append(true).open(folder.join(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn event(at: i64, message: &str) -> String {
        let event = LogEvent { id: "1".to_owned(), timestamp: Time(at), message: message.to_owned() };
        serde_json::to_string(&event).unwrap() + "\n"
    }

    fn read(log: &mut JobLog) -> Vec<String> {
        let lines = log.next_lines().unwrap();
        lines.into_iter().map(|line| format!("{} {}", line.host, line.message)).collect()
    }

    #[test]
    fn lines_of_all_hosts_and_runs_are_in_the_order_of_their_times() {
        let folder = tempfile::tempdir().unwrap();
        append(folder.path(), "algo-1-1000", &(event(1_001, "a") + &event(1_005, "d")));
        append(folder.path(), "algo-2-1000", &(event(1_002, "b") + &event(1_002, "c")));
        append(folder.path(), "algo-1-2000", &event(2_001, "e"));
        append(folder.path(), "other", "text");
        let mut log = JobLog::at(folder.path().to_owned(), None);
        assert_eq!(read(&mut log), ["algo-1 a", "algo-2 b", "algo-2 c", "algo-1 d", "algo-1 e"]);
        assert_eq!(read(&mut log), Vec::<String>::new());
        let mut one = JobLog::at(folder.path().to_owned(), Some("algo-2"));
        assert_eq!(read(&mut one), ["algo-2 b", "algo-2 c"]);
    }

    #[test]
    fn new_lines_and_new_streams_follow_and_a_torn_line_waits_for_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = JobLog::at(folder.path().join("logs"), None);
        assert_eq!(read(&mut log), Vec::<String>::new());
        let folder = folder.path().join("logs");
        fs::create_dir(&folder).unwrap();
        let (begin, end) = (&event(2, "b")[..9], &event(2, "b")[9..]);
        append(&folder, "algo-1-1", &(event(1, "a") + begin));
        assert_eq!(read(&mut log), ["algo-1 a"]);
        assert_eq!(read(&mut log), Vec::<String>::new());
        append(&folder, "algo-1-1", end);
        append(&folder, "algo-1-5", &format!("damaged\n{}", event(6, "c")));
        assert_eq!(read(&mut log), ["algo-1 b", "algo-1 c"]);
    }

    #[test]
    fn the_end_of_a_log_begins_with_a_whole_line_in_each_long_stream() {
        let folder = tempfile::tempdir().unwrap();
        let message = |at: i64| format!("{at:06}{}", "x".repeat(1_000));
        let text: String = (0..8_000).map(|at| event(at, &message(at))).collect();
        append(folder.path(), "algo-1-1", &text);
        append(folder.path(), "algo-2-1", &(event(0, "first") + &event(7_999, "last")));
        let mut log = JobLog::at(folder.path().to_owned(), None);
        log.skip_to_end().unwrap();
        let batches = std::iter::repeat_with(|| read(&mut log)).take_while(|lines| !lines.is_empty());
        let lines: Vec<String> = batches.flatten().collect();
        assert!(lines.len() > 1_600 && lines.len() < 2_400, "{}", lines.len());
        assert_eq!(lines[0], "algo-2 first");
        let first: i64 = lines[1][7..13].parse().unwrap();
        let (last, rest) = lines[1..].split_last().unwrap();
        assert_eq!(last, "algo-2 last");
        for (line, at) in rest.iter().zip(first..) {
            assert_eq!(*line, format!("algo-1 {}", message(at)));
        }
    }

    #[test]
    fn a_long_log_is_read_in_batches() {
        let folder = tempfile::tempdir().unwrap();
        let text: String = (0..2_500).map(|at| event(at, "x")).collect();
        append(folder.path(), "algo-1-1", &text);
        let mut log = JobLog::at(folder.path().to_owned(), None);
        let counts: Vec<usize> = (0..4).map(|_| log.next_lines().unwrap().len()).collect();
        assert_eq!(counts, [1_000, 1_000, 500, 0]);
    }
}
