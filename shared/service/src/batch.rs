//! What became of a batch of stream records, part by part.
//!
//! Delivered again is what another try may bring about. What cannot be read, or failed for good, is told of and not tried again:
//! it would hold up its shard. The stream only wakes; the row is in the table, and the sweeper has it taken up from there.
//!
//! The caller holds it while the batch is worked on: whoever stops that in the middle, because the time is over, still has
//! what was done, and answers the rest to be delivered again.

use serde_json::Value;
use wire::events::stream;

use crate::store::StoreError;

/// A batch, whose parts each concern one tuning. `D` is what is known of a part that was worked on.
#[derive(Debug)]
pub struct Batch<D> {
    /// The parts, in the order in which they are worked on.
    pub parts: Vec<Part<D>>,
    /// Records that cannot be read, now or later.
    pub unreadable: Vec<Unreadable>,
}

/// Records that are done together.
#[derive(Debug)]
pub struct Part<D> {
    /// The tuning.
    pub tuning: String,
    /// Their places in the shard.
    pub sequences: Vec<String>,
    /// How far it came.
    pub progress: Progress,
    /// What came of it.
    pub done: D,
}

/// How far a part came.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It was not begun, or not brought to its end in time.
    Open,
    /// It is done.
    Done,
    /// It failed.
    Failed(StoreError),
}

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its place in the shard, if even that can be read.
    pub sequence: Option<String>,
    /// Its tuning, if that can be read.
    pub tuning: Option<String>,
    /// What is wrong.
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
    /// The places in the shard of the records that are to be delivered again.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        let again = self.parts.iter().filter(|part| match &part.progress {
            Progress::Open => true,
            Progress::Done => false,
            Progress::Failed(error) => !error.is_for_good(),
        });
        again.flat_map(|part| part.sequences.iter().map(String::as_str))
    }

    /// Lambda's answer: which records are to be delivered again.
    pub fn answer(&self) -> Value {
        stream::batch_response(self.failed())
    }
}
