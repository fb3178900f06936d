//! One log stream: the output of one host in one run, stored line by line and delivered in batches.
//!
//! Lines are stored before they are delivered, so every delivered line is also stored, up to the size limit. While the
//! feed is full, the full pipe blocks the process. Memory holds at most one batch, and one read buffer per pipe. At a
//! shutdown the stream ends even if the feed is not read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::clock;
use super::lines::LineSplitter;
use super::seeded;
use super::stderr_tail::StderrTail;
use tuning::unit::time::Time;

/// How long the first line of a batch waits for further lines.
const BATCH_DELAY: Duration = Duration::from_millis(20);
/// How often a line that is being redrawn is shown before its end.
const REDRAW_DELAY: Duration = Duration::from_millis(200);
const BATCH_LINES_MAX: usize = 1000;
const BATCH_BYTES_MAX: usize = 256 * 1024;
/// The size limit of a stored stream. Later lines are delivered, but not stored.
pub(crate) const STORED_BYTES_MAX: u64 = 32 * 1024 * 1024;
const READ_BUFFER_BYTES: usize = 64 * 1024;
const LOG_GROUP: &str = "/aws/sagemaker/TrainingJobs";
const SUBSCRIPTION_FILTER: &str = "hb-metrics";

/// One stored and delivered line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogEvent {
    pub(crate) id: String,
    pub(crate) timestamp: Time,
    pub(crate) message: String,
}

pub(crate) fn stream_name(job: &str, host: &str, started: Time) -> String {
    format!("{job}/{host}-{started}")
}

/// Returns the ID of a line: the stream's start, the hash of its name, and the line's number. IDs of a stream increase.
pub(crate) fn line_id(stream: &str, started: Time, line: u64) -> String {
    format!("{started:016}{:020}{line:020}", seeded::hash(&[b"stream", stream.as_bytes()]))
}

/// The file of a stream, and the numbers and times of its lines.
#[derive(Debug)]
pub(crate) struct LogStream {
    name: String,
    started: Time,
    path: PathBuf,
    file: Option<File>,
    stored: u64,
    stored_max: u64,
    lines: u64,
    last: Time,
}

impl LogStream {
    /// Opens the file of a new stream in `folder`.
    pub(crate) fn open(folder: &Path, job: &str, host: &str, started: Time) -> io::Result<Self> {
        let path = folder.join(format!("{host}-{started}"));
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let name = stream_name(job, host, started);
        Ok(Self {
            name,
            started,
            path,
            file: Some(file),
            stored: 0,
            stored_max: STORED_BYTES_MAX,
            lines: 0,
            last: Time(0),
        })
    }

    /// Adds ID and time to a line.
    fn event(&mut self, message: String) -> LogEvent {
        self.last = self.last.max(clock::now());
        let id = line_id(&self.name, self.started, self.lines);
        self.lines = self.lines.saturating_add(1);
        LogEvent { id, timestamp: self.last, message }
    }

    /// Appends lines up to the size limit, then a notice. Stores nothing after an error.
    fn store(&mut self, events: &[LogEvent]) -> io::Result<()> {
        let Some(file) = self.file.as_mut() else { return Ok(()) };
        let mut bytes = Vec::new();
        let mut full = false;
        for event in events {
            let before = bytes.len();
            serde_json::to_writer(&mut bytes, event)?;
            bytes.push(b'\n');
            if self.stored.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX)) > self.stored_max {
                bytes.truncate(before);
                full = true;
                break;
            }
        }
        let written = file.write_all(&bytes);
        self.stored = self.stored.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if written.is_err() {
            self.file = None;
        }
        if full && written.is_ok() {
            self.store_notice()?;
        }
        written
    }

    fn store_notice(&mut self) -> io::Result<()> {
        let notice = format!(
            "[hyperband] the log has reached its limit of {} bytes: later lines are not stored",
            self.stored_max
        );
        let event = self.event(notice);
        let Some(mut file) = self.file.take() else { return Ok(()) };
        let mut bytes = serde_json::to_vec(&event)?;
        bytes.push(b'\n');
        file.write_all(&bytes)
    }
}

/// The receivers of lines and errors.
#[derive(Debug, Clone)]
pub(crate) struct Outlets {
    pub(crate) owner: String,
    pub(crate) feed: mpsc::Sender<Vec<u8>>,
    pub(crate) closing: watch::Receiver<bool>,
    /// Receives one error when lines cannot be stored.
    pub(crate) errors: mpsc::UnboundedSender<String>,
}

/// Stores and delivers `notes`, then the lines of both pipes of a host until both are closed. Returns the last lines of
/// `err`.
pub(crate) async fn pump<O, E>(
    out: O,
    err: E,
    stream: LogStream,
    outlets: Outlets,
    notes: Vec<String>,
) -> StderrTail
where
    O: AsyncRead + Unpin,
    E: AsyncRead + Unpin,
{
    let mut batch = Batch { stream: Some(stream), outlets, events: Vec::new(), bytes: 0, due: None };
    for note in notes {
        batch.add(note);
    }
    let (mut out, mut err) = (Pipe::new(out), Pipe::new(err));
    let mut tail = StderrTail::default();
    while out.open || err.open {
        let due = batch.due.unwrap_or_else(Instant::now);
        let redrawn = [out.redrawn, err.redrawn].into_iter().flatten().min();
        tokio::select! {
            () = sleep_until(due), if batch.due.is_some() => batch.flush().await,
            () = sleep_until(redrawn.unwrap_or(due)), if redrawn.is_some() => {
                out.add_unfinished(&mut batch);
                err.add_unfinished(&mut batch);
            }
            () = out.read(), if out.open => out.add_lines(&mut batch, None).await,
            () = err.read(), if err.open => err.add_lines(&mut batch, Some(&mut tail)).await,
        }
    }
    batch.flush().await;
    tail
}

struct Pipe<R> {
    reader: R,
    buffer: Vec<u8>,
    length: usize,
    lines: LineSplitter,
    open: bool,
    /// When the line that is being redrawn is shown.
    redrawn: Option<Instant>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(reader: R) -> Self {
        let buffer = vec![0; READ_BUFFER_BYTES];
        Self { reader, buffer, length: 0, lines: LineSplitter::default(), open: true, redrawn: None }
    }

    /// Reads once. Cancel safe.
    async fn read(&mut self) {
        self.length = self.reader.read(&mut self.buffer).await.unwrap_or(0);
        self.open = self.length > 0;
    }

    /// Adds the read lines to `batch` and, if given, to `tail`.
    async fn add_lines(&mut self, batch: &mut Batch, mut tail: Option<&mut StderrTail>) {
        self.lines.push(self.buffer.get(..self.length).unwrap_or_default());
        while let Some(line) = self.lines.next_line() {
            if let Some(tail) = &mut tail {
                tail.push(&line);
            }
            batch.add(line);
            if batch.is_full() {
                batch.flush().await;
            }
        }
        self.redrawn = if self.open && self.lines.has_redrawn() {
            self.redrawn.or_else(|| Some(Instant::now() + REDRAW_DELAY))
        } else {
            None
        };
        if !self.open
            && let Some(line) = self.lines.last_line()
        {
            if let Some(tail) = tail {
                tail.push(&line);
            }
            batch.add(line);
        }
    }
}

impl<R> Pipe<R> {
    /// Adds the line that is being redrawn, if it is due.
    fn add_unfinished(&mut self, batch: &mut Batch) {
        if self.redrawn.is_some_and(|due| due <= Instant::now()) {
            self.redrawn = None;
            batch.add(self.lines.unfinished());
        }
    }
}

/// Lines that are not yet delivered.
struct Batch {
    /// `None` only while its file is being written.
    stream: Option<LogStream>,
    outlets: Outlets,
    events: Vec<LogEvent>,
    bytes: usize,
    due: Option<Instant>,
}

impl Batch {
    fn add(&mut self, line: String) {
        let Some(stream) = self.stream.as_mut() else { return };
        self.bytes = self.bytes.saturating_add(line.len());
        self.events.push(stream.event(line));
        self.due.get_or_insert_with(|| Instant::now() + BATCH_DELAY);
    }

    fn is_full(&self) -> bool {
        self.events.len() >= BATCH_LINES_MAX || self.bytes >= BATCH_BYTES_MAX
    }

    async fn flush(&mut self) {
        self.due = None;
        self.bytes = 0;
        if self.events.is_empty() {
            return;
        }
        let Some(mut stream) = self.stream.take() else { return };
        let events = std::mem::take(&mut self.events);
        let owner = self.outlets.owner.clone();
        let written = tokio::task::spawn_blocking(move || {
            let stored = stream.store(&events);
            let delivery = delivery(&owner, &stream.name, &events);
            (stream, stored, delivery)
        });
        // Fails only when the runtime shuts down.
        let Ok((stream, stored, delivery)) = written.await else { return };
        if let Err(error) = stored {
            let error = format!("cannot store the log {}: {error}", stream.path.display());
            let _ = self.outlets.errors.send(error);
        }
        self.stream = Some(stream);
        if let Ok(delivery) = delivery {
            self.deliver(delivery).await;
        }
    }

    /// Waits for space in the feed until the service shuts down. After that, undelivered lines are only in the store.
    async fn deliver(&mut self, delivery: Vec<u8>) {
        let feed = self.outlets.feed.clone();
        tokio::select! {
            biased;
            _ = feed.send(delivery) => {}
            _ = self.outlets.closing.wait_for(|closing| *closing) => {}
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'a> {
    message_type: &'static str,
    owner: &'a str,
    log_group: &'static str,
    log_stream: &'a str,
    subscription_filters: [&'static str; 1],
    log_events: &'a [LogEvent],
}

/// Returns a delivery in the form of CloudWatch Logs. Uses gzip without compression, because it stays in this process.
fn delivery(owner: &str, stream: &str, events: &[LogEvent]) -> io::Result<Vec<u8>> {
    let payload = Payload {
        message_type: "DATA_MESSAGE",
        owner,
        log_group: LOG_GROUP,
        log_stream: stream,
        subscription_filters: [SUBSCRIPTION_FILTER],
        log_events: events,
    };
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(&serde_json::to_vec(&payload)?)?;
    let mut body = br#"{"awslogs":{"data":""#.to_vec();
    body.extend(STANDARD.encode(gzip.finish()?).into_bytes());
    body.extend_from_slice(br#""}}"#);
    Ok(body)
}

#[cfg(test)]
#[path = "log_stream/tests.rs"]
mod tests;
