//! The rules that a tuning was asked to follow, from the choices of its request. The stored definition of the tuning is
//! made by the code under test, so it is no evidence.

use crate::case::{Case, Epochs, Rungs};

/// `MaxDivergedEpochs` where the request does not set it, as documented.
const MAX_DIVERGED_EPOCHS: u32 = 3;

impl Case {
    /// Returns the maximum number of training jobs that count. A grid has a job for each combination and for the refit,
    /// and as many retries.
    pub(super) fn counted_jobs(&self) -> u32 {
        if self.choices.grid { 2 * (self.max_jobs + u32::from(self.choices.refit)) } else { self.max_jobs }
    }

    /// Returns whether a rung promotes only after all its trials have ended.
    pub(super) fn closes_rungs(&self) -> bool {
        self.promotes() && self.choices.rungs == Rungs::Synchronous
    }

    /// Returns whether each log line has the number of its epoch.
    pub(super) fn has_epoch_numbers(&self) -> bool {
        self.epochs != Epochs::Ranked
    }

    /// Returns the maximum number of instances that run at once.
    pub(super) fn max_instances(&self) -> Option<u32> {
        self.asked_number("max_instances").and_then(|most| u32::try_from(most).ok())
    }

    /// Returns the running-time limit of the tuning, in seconds.
    pub(super) fn max_runtime_seconds(&self) -> Option<i64> {
        self.asked_number("max_runtime").and_then(|seconds| i64::try_from(seconds).ok())
    }

    /// Returns after how many epochs in a row without a finite value a trial is stopped; 0 = never.
    pub(super) fn max_diverged_epochs(&self) -> u32 {
        let given = self.asked_number("max_diverged").and_then(|epochs| u32::try_from(epochs).ok());
        given.unwrap_or(MAX_DIVERGED_EPOCHS)
    }

    /// Returns how long a job is billed before its limit counts, as far as its reservation pays for it, in seconds.
    pub(super) fn startup_seconds(&self) -> i64 {
        self.asked_number("startup_allowance")
            .map_or(60, |seconds| i64::try_from(seconds).unwrap_or(i64::MAX))
    }

    /// Returns how long a job may upload its model, as far as its reservation pays for it, in seconds.
    pub(super) fn upload_seconds(&self) -> i64 {
        self.asked_number("upload_allowance")
            .map_or(120, |seconds| i64::try_from(seconds).unwrap_or(i64::MAX))
    }

    fn asked_number(&self, name: &str) -> Option<u64> {
        self.choices.extra.iter().find(|(key, _)| *key == name)?.1.as_u64()
    }
}
