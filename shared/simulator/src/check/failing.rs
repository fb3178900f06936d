//! Failed tunings: a tuning fails only if its programs show that it cannot succeed, and never while a job could still
//! show the opposite.
//!
//! Uses the real logs and states of the training service. docs/DESIGN.md defines the necessary numbers.

use std::collections::BTreeSet;

use tuning::log::fact::JobEnd;
use tuning::log::reasons::{EndReason, StopWhy};
use tuning::unit::ids::TrialId;

use super::{Book, JobBook};
use crate::fault::Kind;
use crate::world::World;
use crate::world::training::Job;

/// Trials without a line of the objective, and trials in a row without a finite value, after which a tuning may fail.
const TRIALS_WITHOUT_LINE: usize = 6;
const TRIALS_WITHOUT_VALUE: usize = 20;
/// Refused starts in a row after which a tuning may fail.
const REFUSALS: usize = 5;

/// Returns whether the metric host of a job logged a line that `fits`.
fn logged(job: &Job, fits: impl Fn(&str) -> bool) -> bool {
    let counted = job.streams.iter().filter(|stream| stream.name.contains("/algo-1-"));
    counted.flat_map(|stream| &stream.lines).any(|line| line.message.contains("auc=") && fits(&line.message))
}

fn is_finite(line: &str) -> bool {
    !line.contains("auc=nan")
}

impl JobBook {
    /// Returns whether a quota blocks its start.
    fn is_limited(&self) -> bool {
        self.limited
    }

    /// Returns whether the decider may never know all its lines.
    pub(super) fn has_unknown_lines(&self) -> bool {
        self.settled_in_full || self.is_forgotten || self.log_given_up.is_some()
    }
}

impl Book {
    /// Returns whether the trial with the best value counts in a child: neither failed nor diverged after that value.
    pub(crate) fn has_good_trial(&self) -> bool {
        let Some(best) = &self.replica.results.best else { return false };
        let mut of_trial = self.jobs.iter().filter(|(key, _)| key.trial == best.job.trial);
        of_trial.all(|(_, job)| {
            let may_diverge = matches!(job.stop_why, Some(StopWhy::Diverged { .. } | StopWhy::Rung { .. }));
            !job.failed && !may_diverge
        })
    }

    /// Returns the trials of the search that have ended.
    fn ended_trials(&self) -> impl Iterator<Item = TrialId> {
        let ended = self.trials.iter().filter(|(trial, book)| book.finished && self.refit != Some(**trial));
        ended.map(|(trial, _)| *trial)
    }
}

impl World {
    /// Checks that a tuning that begins to fail cannot succeed.
    pub(crate) fn check_failing(&mut self, id: &str, message: &str) {
        let Some(book) = self.check.books.get(id) else { return };
        if message.contains("promise") {
            return;
        }
        let live = |job: &&Job| {
            let open = book.jobs.get(&job.key).is_some_and(|book| !book.concluded && !book.is_limited());
            open && !job.is_ended() && !job.deleted && job.now.started.is_some()
        };
        let mut wrong = Vec::new();
        if let Some(job) = self.training.of(id).find(live) {
            wrong.push(format!("P3: {id} failed while its job {} runs: {message}", job.now.name));
        }
        // Lines of these jobs may be unknown for good.
        let unknown = self
            .training
            .of(id)
            .any(|job| job.deleted || book.jobs.get(&job.key).is_some_and(JobBook::has_unknown_lines));
        let refused = book.jobs.values().filter(|job| job.no_retry && !job.created).count();
        let by_quota = message.contains("a quota of the account");
        if !unknown && !by_quota && refused < REFUSALS {
            let any_line = self.training.of(id).any(|job| logged(job, |_| true));
            let needed = if any_line { TRIALS_WITHOUT_VALUE } else { TRIALS_WITHOUT_LINE };
            let needed = needed * book.case.choices.definitions as usize;
            let with_value: BTreeSet<TrialId> =
                self.training.of(id).filter(|job| logged(job, is_finite)).map(|job| job.key.trial).collect();
            let without = book.ended_trials().filter(|trial| !with_value.contains(trial)).count();
            if without < needed {
                wrong.push(format!(
                    "P3: {id} failed after {without} trials without a finite value, {needed} are needed: {message}"
                ));
            }
        }
        for message in wrong {
            self.check.violation(self.now, &message);
        }
    }

    /// Checks that a tuning that used up its jobs, money or time failed only because no job logged a finite value.
    pub(crate) fn check_nothing_succeeded(&mut self, id: &str) {
        let Some(book) = self.check.books.get(id) else { return };
        if matches!(book.ending, Some(EndReason::Failed(_))) {
            return;
        }
        // The log of a failed program is read at once, and a read that lags misses its last lines.
        let lags = self.faults.can_strike(Kind::LogReadLag);
        let known = |job: &&Job| {
            let missed = |own: &JobBook| lags && own.end == Some(JobEnd::AlgorithmError);
            let own = book.jobs.get(&job.key);
            !job.deleted && own.is_some_and(|own| !own.has_unknown_lines() && !missed(own))
        };
        let with_value = self.training.of(id).filter(known).find(|job| logged(job, is_finite));
        if let Some(job) = with_value {
            let message = format!("P3: {id} failed, but job {} logged a finite value", job.now.name);
            self.check.violation(self.now, &message);
        }
    }
}
