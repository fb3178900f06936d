//! The content of an entry, before the trail adds its step and its time.

use tuning::log::fact::JobKey;
use wire::explain::{Comparison, Entry, EpochValue, Kind};

use super::words;

/// The content of an entry about one fact or ruling.
pub(super) struct NewEntry {
    pub(super) kind: Kind,
    pub(super) says: String,
    pub(super) job: Option<JobKey>,
    pub(super) rung: Option<Box<Comparison>>,
    pub(super) late: Vec<EpochValue>,
}

impl NewEntry {
    pub(super) fn new(kind: Kind, job: Option<JobKey>, says: String) -> Self {
        Self { kind, says, job, rung: None, late: Vec::new() }
    }

    /// Returns whether late values continue the last entry, so that many late lines become one entry. Only sentences
    /// that follow from their values alone are merged, because the merged sentence is built from the values.
    pub(super) fn continues(&self, last: &Entry, step: Option<u64>) -> bool {
        let plain = |says: &str, values: &[EpochValue]| !values.is_empty() && says == words::late(values);
        last.step.is_some() == step.is_some()
            && plain(&last.says, &last.late_values)
            && plain(&self.says, &self.late)
    }
}
