//! Checkpoints of a trial: all its jobs are sent the same prefix, so one finds what another has saved. Now and then they
//! are lost, or only an older one is found.

use super::World;
use super::training::Owner;
use crate::fault::Kind;

impl World {
    /// The program saves where it is.
    pub(super) fn save_checkpoint(&mut self, index: usize) {
        let job = &mut self.training.jobs[index];
        job.checkpoint = job.epoch;
        self.training.checkpoints.entry(job.checkpoints_at.clone()).or_default().push(job.epoch);
    }

    /// A job that begins finds what the jobs of its trial have saved before it.
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
