//! The last epoch: a job that has trained it may save its model. It is stopped only after a grace, or if it trains on, or
//! if the user stops the tuning; and once the faults are over, a job that does not end is stopped soon.

use tuning::fact::JobKey;
use tuning::ruling::{EndReason, StopWhy};

use crate::case::Epochs;
use crate::plan::MINUTE;
use crate::world::World;
use crate::world::training::Job;

use super::silence::signs_of_life;

/// The shortest grace, in ms, by the clock of the decider.
const LEAST_GRACE_MS: i64 = 2 * MINUTE;
/// The longest grace while no epoch is timed, in ms.
const GRACE_UNTIMED_MS: i64 = 10 * MINUTE;
/// The longest grace otherwise: three epochs of the slowest program, which takes twice the usual time, and a margin.
const LONGEST_GRACE_EPOCHS: i64 = 12;
/// Longest time from the end of the grace to the order to stop, in ms.
const PATIENCE_MS: i64 = 15 * MINUTE;

impl World {
    /// Returns the last epoch that a job of this tuning is asked to train.
    fn last_epoch(&self, id: &str, key: JobKey) -> Option<u32> {
        let book = self.check.books.get(id)?;
        let level = book.jobs.get(&key).and_then(|job| job.level);
        level.or(book.case.choices.hyperband.map(|(_, most, _)| most))
    }

    /// Checks an order to stop a job because of its last epoch, or because the tuning ends.
    pub(crate) fn check_last_epoch(&mut self, id: &str, key: JobKey, why: StopWhy) {
        let (Some(last), Some(book)) = (self.last_epoch(id, key), self.check.books.get(id)) else { return };
        // Where lines do not contain the epoch, an interruption or a lost line can shift the count.
        let counted = book.case.choices.epochs == Epochs::Absolute;
        if !counted || book.ending == Some(EndReason::Stopped) || book.refit == Some(key.trial) {
            return;
        }
        let reached = |job: &&Job| job.key.trial == key.trial && job.logged.is_some_and(|(_, at)| at >= last);
        let jobs: Vec<_> = self.training.of(id).filter(reached).collect();
        // While the tuning ends, a job is stopped if the decider has not read its last epoch.
        let read = book.replica.trials.get(&key.trial).is_some_and(|trial| trial.resource().0 >= last);
        if why == StopWhy::TuningEnding && !read {
            return;
        }
        let beyond = jobs.iter().any(|job| job.logged.is_some_and(|(_, at)| at > last));
        let since = jobs.iter().map(|job| job.furthest_at).min().unwrap_or(self.now);
        if !beyond && self.now - since < LEAST_GRACE_MS - self.plan.skew_ms_max {
            let message = format!(
                "LastEpoch: job {key} of {id} was stopped ({why:?}) {} ms after its last epoch",
                self.now - since
            );
            self.check.violation(self.now, &message);
        }
    }

    /// Checks that a job that does not end after its last epoch was ordered to stop. Called once no process of a faulty
    /// time can be left.
    pub(crate) fn watch_last_epoch(&mut self) {
        let calm_from = self.start + self.plan.outages_end();
        let grace = GRACE_UNTIMED_MS.max(LONGEST_GRACE_EPOCHS * self.plan.epoch_ms);
        let mut wrong = Vec::new();
        for job in
            self.training.jobs.iter().filter(|job| !job.deleted && job.now.secondary_status == "Training")
        {
            let (Some(last), Some(book)) = (self.last_epoch(&job.id, job.key), self.check.books.get(&job.id))
            else {
                continue;
            };
            let stops = book.jobs.get(&job.key).is_none_or(|job| job.stop_ordered || job.concluded);
            let trial = book.replica.trials.get(&job.key.trial);
            let read = trial.is_some_and(|trial| trial.resource().0 >= last);
            if stops || !read || book.case.promotes() || book.refit == Some(job.key.trial) {
                continue;
            }
            let since = signs_of_life(job).last().map_or(self.now, |at| *at).max(calm_from);
            if self.now - since > grace + PATIENCE_MS {
                let minutes = (self.now - since) / MINUTE;
                wrong.push(format!(
                    "LastEpoch: job {} trained its last epoch {minutes} min ago",
                    job.now.name
                ));
            }
        }
        for message in wrong {
            self.check.violation(self.now, &message);
        }
    }
}
