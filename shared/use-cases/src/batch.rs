//! The result of a batch of stream records, part by part.
//!
//! Only records that a retry may complete are delivered again. Records that are unreadable or failed permanently are
//! reported and not retried, because they would block their shard. The stream only triggers work: the row is in the
//! table, and the sweeper makes a decider read it from there.
//!
//! The caller owns the batch while it is processed. If the caller stops the processing at its deadline, it still has
//! the results so far, and reports the rest for another delivery.

use serde_json::Value;
use wire::events::stream;

use crate::store::StoreError;

/// A batch. Each part belongs to one tuning. `D` is the result of a part.
#[derive(Debug)]
pub struct Batch<D> {
    /// The parts, in the order in which they are processed.
    pub parts: Vec<Part<D>>,
    /// Records that can never be read.
    pub unreadable: Vec<Unreadable>,
}

/// Records that are processed together.
#[derive(Debug)]
pub struct Part<D> {
    /// ID of the tuning.
    pub tuning: String,
    /// Sequence numbers of the records in the shard.
    pub sequences: Vec<String>,
    /// How far the part was processed.
    pub progress: Progress,
    /// The result.
    pub done: D,
}

/// How far a part was processed.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// Not started, or not finished in time.
    Open,
    /// Done.
    Done,
    /// Failed.
    Failed(StoreError),
}

/// An unreadable record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its sequence number in the shard, if readable.
    pub sequence: Option<String>,
    /// Its tuning, if readable.
    pub tuning: Option<String>,
    /// The parse error.
    pub reason: String,
}

impl<D> Default for Batch<D> {
    fn default() -> Self {
        Self { parts: Vec::new(), unreadable: Vec::new() }
    }
}

impl<D: Default> Part<D> {
    pub(crate) fn new(tuning: &str) -> Self {
        Self {
            tuning: tuning.to_owned(),
            sequences: Vec::new(),
            progress: Progress::Open,
            done: D::default(),
        }
    }
}

impl<D> Batch<D> {
    /// Returns the sequence numbers of the records to deliver again.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        let again = self.parts.iter().filter(|part| match &part.progress {
            Progress::Open => true,
            Progress::Done => false,
            Progress::Failed(error) => !error.is_permanent(),
        });
        again.flat_map(|part| part.sequences.iter().map(String::as_str))
    }

    /// Returns Lambda's response: the records to deliver again.
    pub fn answer(&self) -> Value {
        stream::batch_response(self.failed())
    }
}
