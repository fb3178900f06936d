//! The target of the objective. Other trials stop only if the program of a trial logged a value that reaches the
//! target. The tuning ends for the target only after such a trial has trained to its end.

use tuning::log::fact::JobKey;
use tuning::log::reasons::StopWhy;
use tuning::unit::ids::{ChoiceId, TrialId};

use super::Book;
use crate::world::World;
use crate::world::training::Job;

impl World {
    /// Returns whether the program of a trial has logged a value that reaches the target of its tuning.
    fn reached_target(&self, id: &str, trial: TrialId) -> bool {
        let Some(book) = self.check.books.get(id) else { return false };
        let choices = &book.case.choices;
        let target = choices.extra.iter().find(|(key, _)| *key == "target");
        let Some(target) = target.and_then(|(_, value)| value.as_f64()) else { return false };
        let reaches = |value: f64| if choices.maximize { value >= target } else { value <= target };
        let mut jobs = self.training.of(id).filter(|job| job.key.trial == trial);
        jobs.any(|job| {
            let mut epochs = job.logged.into_iter().flat_map(|(first, last)| first..=last);
            epochs.any(|epoch| job.program.value(epoch).is_some_and(reaches))
        })
    }

    /// Checks that a trial for which others stop, or which is promoted for it, reached the target.
    pub(crate) fn check_finalist(&mut self, id: &str, trial: TrialId) {
        if !self.reached_target(id, trial) {
            let message = format!(
                "Target: trial {trial} of {id} counts as the one that reached the target, but did not"
            );
            self.check.violation(self.now, &message);
        }
    }

    /// Checks a trial that the cap or a quota does not allow to continue: with one cluster size, it reached the target.
    pub(crate) fn check_out_of_reach(&mut self, id: &str, trial: TrialId) {
        let has_sizes = |book: &Book| book.case.size_of(ChoiceId(0)).is_some();
        if !self.check.books.get(id).is_some_and(has_sizes) {
            self.check_finalist(id, trial);
        }
    }

    /// Checks that the trial that reached the target is not stopped for the target or at a rung.
    pub(crate) fn check_stop_for_target(&mut self, id: &str, key: JobKey, finalist: TrialId) {
        self.check_finalist(id, finalist);
        if key.trial == finalist {
            let message =
                format!("Target: job {key} of {id} was stopped although its own trial reached the target");
            self.check.violation(self.now, &message);
        }
    }

    /// Checks that a trial that reached the target has trained to its end, as long as its limits allowed.
    pub(crate) fn check_target_ending(&mut self, id: &str) {
        let ran_to_its_end = |job: &&Job| {
            let over = job.now.status == "Completed" || job.now.secondary_status == "MaxRuntimeExceeded";
            let book = self.check.books.get(id).and_then(|book| book.jobs.get(&job.key));
            let last = self.last_epoch(id, job.key).is_some_and(|last| {
                let stopped = book.is_some_and(|book| book.stop_why == Some(StopWhy::MaxResource));
                stopped && job.logged.is_some_and(|(_, at)| at >= last)
            });
            // A program that ignores its rung may train all epochs in one job.
            let most = self.check.books.get(id).and_then(|book| book.case.choices.hyperband);
            let all = job.logged.is_some_and(|(_, at)| most.is_some_and(|(_, most, _)| at >= most));
            // The clock of the controller ends a job like its limit.
            let by_clock =
                book.is_some_and(|book| matches!(book.stop_why, Some(StopWhy::ReservationUsed { .. })));
            // A deleted job may have ended before.
            over || by_clock || last || all || job.deleted
        };
        let mut ended = self.training.of(id).filter(ran_to_its_end);
        if !ended.any(|job| self.reached_target(id, job.key.trial)) {
            let message =
                format!("Target: {id} ended, but no trial that reached the target trained to its end");
            self.check.violation(self.now, &message);
        }
    }
}
