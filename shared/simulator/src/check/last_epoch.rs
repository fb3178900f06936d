//! The last epoch. After it, a job may save its model for as long as jobs of its tuning are known to need, or as its
//! limits allow. The job is stopped earlier only if it continues to train, or if the user stops the tuning. Once the
//! faults are over, a job that does not end is stopped soon after that time.

use tuning::log::fact::JobKey;
use tuning::log::reasons::{EndReason, StopWhy};

use crate::case::Epochs;
use crate::plan::MINUTE;
use crate::world::World;
use crate::world::training::Job;

use super::silence::signs_of_life;

/// The shortest grace, in ms, by the clock of the decider.
const LEAST_GRACE_MS: i64 = 2 * MINUTE;
/// The number of completed jobs whose tails must be known.
const TAILS_NEEDED: usize = 5;
/// A job may take so many times the longest known tail.
const TAIL_FACTOR: i64 = 3;
/// Tolerance, in ms: the service may report times in whole seconds.
const BLUR_MS: i64 = 3 * 1_000;
/// Longest time from the end of the grace to the order to stop, in ms.
const PATIENCE_MS: i64 = 15 * MINUTE;

impl World {
    /// Returns the last epoch that a job of this tuning is asked to train.
    pub(super) fn last_epoch(&self, id: &str, key: JobKey) -> Option<u32> {
        let book = self.check.books.get(id)?;
        let level = book.jobs.get(&key).and_then(|job| job.level);
        level.or(book.case.choices.hyperband.map(|(_, most, _)| most))
    }

    /// Returns whether a job has logged its last epoch: then its program ends by itself.
    pub(super) fn has_all_epochs(&self, job: &Job) -> bool {
        let last = self.last_epoch(&job.id, job.key);
        job.logged.is_some_and(|(_, at)| last.is_some_and(|last| at >= last))
    }

    /// Returns the longest tail that counts, in ms, of jobs to all epochs (`last`) or to a lower rung.
    pub(super) fn longest_tail(&self, id: &str, last: bool) -> i64 {
        self.tails(id, |job| self.is_last(id, job.key) == last).last().copied().unwrap_or(0)
    }

    /// Returns whether the tail of another job says how long that of `key` may be: both are to train all epochs or to a
    /// lower rung, and have the same training job definition.
    fn is_alike(&self, id: &str, key: JobKey, other: &Job) -> bool {
        let definition =
            |key: JobKey| self.check.books.get(id).map(|book| book.case.definition_of(key.trial));
        self.is_last(id, key) == self.is_last(id, other.key) && definition(key) == definition(other.key)
    }

    /// Returns whether a job was to train all epochs.
    fn is_last(&self, id: &str, key: JobKey) -> bool {
        let most = self.check.books.get(id).and_then(|book| book.case.choices.hyperband);
        most.is_none_or(|(_, most, _)| self.last_epoch(id, key).is_none_or(|level| level >= most))
    }

    /// Returns the tails that count, in ms, shortest first: the times from the last line to the end of all completed jobs
    /// of a tuning, three times those that a limit cut, and those that were stopped.
    fn tails(&self, id: &str, counts: impl Fn(&Job) -> bool) -> Vec<i64> {
        let most = self.check.books.get(id).and_then(|book| book.case.choices.hyperband);
        let is_within =
            |job: &Job| job.logged.is_some_and(|(_, at)| most.is_some_and(|(_, most, _)| at <= most));
        let tail = |job: &Job| {
            let tail = job.now.ended?.0 - signs_of_life(job).last()?;
            match job.now.secondary_status.as_str() {
                "Completed" => Some(tail),
                "MaxRuntimeExceeded" if self.has_all_epochs(job) => Some(TAIL_FACTOR * tail),
                "Stopped" if self.has_all_epochs(job) && is_within(job) => Some(tail),
                _ => None,
            }
        };
        let jobs = self.training.of(id).filter(|job| counts(job));
        let mut tails: Vec<i64> = jobs.filter_map(tail).collect();
        tails.sort_unstable();
        tails
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
        let read = book.replica.trials.get(key.trial).is_some_and(|trial| trial.resource().0 >= last);
        if why == StopWhy::TuningEnding && !read {
            return;
        }
        let beyond = jobs.iter().any(|job| job.logged.is_some_and(|(_, at)| at > last));
        let since = jobs.iter().map(|job| job.furthest_at).min().unwrap_or(self.now);
        // The decider knows at least so many tails, of whichever jobs.
        let tails = self.tails(id, |other| self.is_alike(id, key, other));
        let known = tails.get(TAILS_NEEDED - 1).copied();
        let shortest = known.map_or(i64::MAX, |tail| (TAIL_FACTOR * (tail - BLUR_MS)).max(LEAST_GRACE_MS));
        if !beyond && self.now - since < shortest.saturating_sub(self.plan.skew_ms_max) {
            let message = format!(
                "LastEpoch: job {key} of {id} was stopped ({why:?}) {} ms after its last epoch; the known tails are {tails:?}",
                self.now - since
            );
            self.check.violation(self.now, &message);
        }
    }

    /// Checks that a job that does not end after its last epoch was ordered to stop. Called once no process of a faulty
    /// time can be left.
    pub(crate) fn watch_last_epoch(&mut self) {
        let calm_from = self.start + self.plan.outages_end();
        let mut wrong = Vec::new();
        for job in
            self.training.jobs.iter().filter(|job| !job.deleted && job.now.secondary_status == "Training")
        {
            let (Some(last), Some(book)) = (self.last_epoch(&job.id, job.key), self.check.books.get(&job.id))
            else {
                continue;
            };
            let stops = book.jobs.get(&job.key).is_none_or(|job| job.stop_ordered || job.concluded);
            let trial = book.replica.trials.get(job.key.trial);
            let read = trial.is_some_and(|trial| trial.resource().0 >= last);
            // Before the decider knows enough tails, the limits of the job are its only bound.
            let is_known = |other: &&Job| {
                let book = book.jobs.get(&other.key);
                other.logged.is_some() && book.is_some_and(|book| book.concluded && !book.settled_in_full)
            };
            let is_alike = |other: &Job| self.is_alike(&job.id, job.key, other);
            let completed =
                self.training.of(&job.id).filter(|other| is_alike(other) && other.now.status == "Completed");
            let known_at = |other: &Job| self.check.deadlines.concluded_at(&job.id, other.key);
            let mut known: Vec<i64> = completed.filter(is_known).filter_map(known_at).collect();
            known.sort_unstable();
            let Some(known_at) = known.get(TAILS_NEEDED - 1) else { continue };
            if stops || !read || book.refit == Some(job.key.trial) {
                continue;
            }
            let longest = self.tails(&job.id, is_alike).last().copied().unwrap_or(0);
            let grace = (TAIL_FACTOR * longest).max(LEAST_GRACE_MS);
            let since = signs_of_life(job).last().map_or(self.now, |at| *at).max(calm_from).max(*known_at);
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
