//! Checkpoints of a trial. All its jobs use the same prefix, so a job finds the checkpoints of earlier jobs. Faults
//! delete them, or leave only an older one.

use super::World;
use super::training::Owner;
use crate::fault::Kind;

impl World {
    /// Saves a checkpoint at the current epoch.
    pub(super) fn save_checkpoint(&mut self, index: usize) {
        let job = &mut self.training.jobs[index];
        job.checkpoint = job.epoch;
        self.training.checkpoints.entry(job.checkpoints_at.clone()).or_default().push(job.epoch);
    }

    /// Loads the latest checkpoint of the trial for a job that starts.
    pub(super) fn find_checkpoint(&mut self, index: usize) {
        let job = &mut self.training.jobs[index];
        let begins = job.streams.is_empty() && job.owner == Owner::Ours;
        let Some(saved) = self.training.checkpoints.get_mut(&job.checkpoints_at).filter(|_| begins) else {
            return;
        };
        if !saved.is_empty() && self.faults.strikes(Kind::CheckpointLost) {
            saved.clear();
        }
        if saved.len() > 1 && self.faults.strikes(Kind::CheckpointOld) {
            saved.truncate(job.dice.index(saved.len() - 1) + 1);
        }
        job.checkpoint = saved.last().copied().unwrap_or(0);
    }
}
