//! Checks of promotion that need data of both sides: the epoch limit and the real log of a job, and the rulings.

use tuning::log::fact::JobKey;
use tuning::log::reasons::{StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, Order, Ruling, SearchRuling};

use super::World;
use super::program::Program;
use super::training::Job;
use crate::case::Epochs;
use crate::check::judged::DIVERGED_EPOCHS;
use crate::fault::Kind;

/// Returns whether a ruling's value is the logged one. A value that is not finite counts as missing.
fn same(logged: Option<f64>, ruled: Option<f64>) -> bool {
    logged.filter(|value| value.is_finite()).map(f64::to_bits) == ruled.map(f64::to_bits)
}

impl World {
    /// Checks the epoch limit and the checkpoint prefix of a job that was just created. Returns the violations.
    pub(super) fn wrong_requests(&self, index: usize) -> Vec<String> {
        let job = &self.training.jobs[index];
        let (name, case) = (&job.now.name, &self.cases[job.case]);
        let mut wrong = Vec::new();
        let book = self.check.books.get(&job.id).and_then(|book| book.jobs.get(&job.key));
        let largest = case.choices.hyperband.map(|(_, max, _)| max);
        // Without rungs no job has a limit.
        let level = book.and_then(|book| book.level).or(largest).filter(|_| largest.is_some());
        if job.epoch_limit != level {
            wrong.push(format!(
                "P6: job {name} has the epoch limit {:?}, its level is {level:?}",
                job.epoch_limit
            ));
        }
        for other in self.training.of(&job.id) {
            let one_trial = other.key.trial == job.key.trial;
            if one_trial != (other.checkpoints_at == job.checkpoints_at) {
                let (here, there) = (&job.checkpoints_at, &other.checkpoints_at);
                wrong.push(format!(
                    "P6: job {name} has its checkpoints at {here}, job {} has them at {there}",
                    other.key
                ));
                break;
            }
        }
        wrong
    }

    /// Checks a ruling of a tuning with promotion. Returns a violation.
    pub(super) fn wrong_promotion_ruling(&mut self, id: &str, ruling: &Ruling) -> Option<String> {
        match ruling {
            Ruling::Search(SearchRuling::RungReached { job, trial, .. }) => {
                let mut jobs = self.training.of(id).filter(|other| other.key.trial == *trial);
                let last = jobs.by_ref().max_by_key(|other| other.key.attempt)?;
                let (right, wrong) = self.wrong_rung_value(last, ruling);
                let unreported = job.and_then(|job| self.unreported_repeat(id, job));
                self.check.count_judgement(right);
                wrong.or(unreported)
            }
            Ruling::Attempt(AttemptRuling::AttemptAwaited { job, .. }) => self.unreported_repeat(id, *job),
            Ruling::Attempt(AttemptRuling::TrialFinished { job: Some(job), how, .. }) => {
                self.unreported_repeat(id, *job).or_else(|| self.missing_wait(id, *job, how))
            }
            Ruling::Attempt(AttemptRuling::ResourceRepeated { job, had, from }) => {
                self.wrong_repeat(id, *job, had.0, from.0)
            }
            Ruling::Order(Order::Stop { job, why: StopWhy::PastLevel { level }, .. }) => {
                let job = self.training.of(id).find(|other| other.key == *job)?;
                let beyond = job.logged.is_some_and(|(_, last)| last > level.0);
                let right = beyond && job.epoch_limit == Some(level.0);
                (!right).then(|| {
                    let (name, logged) = (&job.now.name, job.logged);
                    format!(
                        "P6: job {name} was stopped for training beyond level {level}, but its epoch \
                            limit is {:?} and it logged {logged:?}",
                        job.epoch_limit
                    )
                })
            }
            _ => None,
        }
    }

    /// Returns whether all log lines of the job must be known when it is concluded.
    fn is_read(&self, job: &Job) -> bool {
        let unread = self.check.may_lack_lines(&job.id, job.key);
        !unread && !job.deleted && !self.faults.can_strike(Kind::LogReadLag)
    }

    /// Like [`Self::is_read`], but for all jobs of its trial.
    fn is_all_read(&self, job: &Job) -> bool {
        let mut jobs = self.training.of(&job.id).filter(|other| other.key.trial == job.key.trial);
        jobs.all(|other| self.is_read(other))
    }

    /// Checks the value with which a trial waits. Returns whether it is the value that its program logged at that
    /// epoch, and a violation.
    fn wrong_rung_value(&self, last: &Job, ruling: &Ruling) -> (bool, Option<String>) {
        let Ruling::Search(SearchRuling::RungReached { trial, level, resource, value, .. }) = ruling else {
            return (true, None);
        };
        let (level, resource) = (level.0, resource.0);
        let program = &last.program;
        let shown = |epoch: u32| {
            let mut jobs = self.training.of(&last.id).filter(|other| other.key.trial == *trial);
            jobs.any(|job| job.logged.is_some_and(|(first, last)| first <= epoch && epoch <= last))
        };
        let right = same(program.value(resource), *value);
        let wrong = |why: String| {
            Some(format!("P6: trial {trial} waits with the value {value:?} of epoch {resource}: {why}"))
        };
        let completed = last.now.status == "Completed";
        // A trial whose value at the level is a glitch waits with the one before, however its job ended.
        if resource < level && !completed && !shown(level) {
            return (right, wrong(format!("this is below its level {level}, and its job did not complete")));
        }
        let furthest = last.logged.map(|(_, furthest)| furthest);
        if self.cases[last.case].epochs == Epochs::Absolute {
            if !right || !shown(resource) {
                return (
                    right,
                    wrong(format!("its program logged {:?} in that epoch", program.value(resource))),
                );
            }
            // A job that starts again from an older checkpoint may complete before the epochs of an earlier job.
            let jobs = self.training.of(&last.id).filter(|other| other.key.trial == *trial);
            let furthest = jobs.filter_map(|job| job.logged).map(|(_, furthest)| furthest).max();
            let arrives = furthest.map(|furthest| arrives_with(program, furthest));
            let early = resource < level && self.is_all_read(last) && arrives != Some(resource);
            return (right, early.then(|| wrong(format!("its jobs logged up to {furthest:?}"))).flatten());
        }
        // When a job completes exactly at its level, the epochs of its lines are known. Those of an earlier job that
        // failed on the way to this level are not, and its lines enter no curve.
        let expected = arrives_with(program, level);
        // A row of values that are not finite must be all its own.
        let is_finite = program.value(expected).is_some_and(f64::is_finite);
        let row_start = expected.saturating_sub(if is_finite { 0 } else { DIVERGED_EPOCHS - 1 });
        let is_own = last.logged.is_some_and(|(first, _)| first <= row_start);
        if completed && furthest == Some(level) && is_own && self.is_all_read(last) {
            let exact = right && resource == expected;
            return (
                right,
                (!exact).then(|| wrong(format!("its job completed exactly at level {level}"))).flatten(),
            );
        }
        // Otherwise a later value can stand for an earlier one, and an earlier one for a glitch. Where lines are missing,
        // or the program ended before its level, any logged value is possible.
        let is_known = furthest >= Some(level) && is_own && self.is_all_read(last);
        let from = if is_known { expected } else { 1 };
        let any = (from..=program.epochs.max(level))
            .any(|epoch| shown(epoch) && same(program.value(epoch), *value));
        (
            right,
            (!any)
                .then(|| wrong(format!("its program never logged this value in epoch {from} or later")))
                .flatten(),
        )
    }

    /// Checks a concluded job. Returns a violation if it repeated epochs of its trial and no ruling reported that.
    fn unreported_repeat(&self, id: &str, key: JobKey) -> Option<String> {
        let job = self.training.of(id).find(|job| job.key == key)?;
        let book = self.check.books.get(id)?;
        let reported = book.jobs.get(&key)?.repeats_from;
        let had = book.jobs.get(&key)?.promoted_with;
        let (first, _) = job.logged?;
        let absolute = self.cases[job.case].epochs == Epochs::Absolute;
        // A line at the epoch that it was promoted with can show the old value again.
        // The log of a job is not read where all epochs of the trial are known, or become known before the read. There
        // a lost or late line can hide the repeat.
        let hides = self.faults.can_strike(Kind::LogLost) || self.faults.can_strike(Kind::LogDelayed);
        let shown = book.jobs.get(&key)?.rest_read || !hides;
        let due = absolute && first < had && reported.is_none() && shown && self.is_read(job);
        due.then(|| {
            format!(
                "P6: job {key} of {id} started at epoch {} instead of {had}, and no ruling reported that",
                first - 1
            )
        })
    }

    /// Checks the report that a job repeats epochs of its trial. Returns a violation if it does not.
    fn wrong_repeat(&self, id: &str, key: JobKey, had: u32, from: u32) -> Option<String> {
        let job = self.training.of(id).find(|job| job.key == key)?;
        let absolute = self.cases[job.case].epochs == Epochs::Absolute;
        // Lines that are counted per attempt are placed by the epoch limit, which this program ignores.
        if !absolute && job.program.ignores_epochs {
            return None;
        }
        let first = job.logged.map(|(first, _)| first);
        let began = first.is_some_and(|first| first <= had);
        let right = began && (!absolute || first.is_some_and(|first| first <= from + 1));
        (!right).then(|| {
            format!(
                "P6: job {key} of {id} was reported to start at epoch {from} instead of {had}, but its \
                    first logged epoch is {first:?}"
            )
        })
    }

    /// Checks the end of a trial. Returns a violation if its job completed with a value, so that the trial should wait
    /// at its rung.
    fn missing_wait(&self, id: &str, key: JobKey, how: &TrialEnd) -> Option<String> {
        let job = self.training.of(id).find(|job| job.key == key)?;
        let book = self.check.books.get(id)?;
        // The trial of a job that a user stops is never promoted, also if the job completes before that.
        let stopped = book.jobs.get(&key).is_some_and(|job| job.stop_requested);
        let over = stopped || book.ending.is_some() || book.ended.is_some() || book.is_for_the_last_rung(key);
        let due = *how == TrialEnd::Completed
            && self.cases[job.case].promotes()
            && !over
            && self.is_read(job)
            && job.logged.is_some();
        due.then(|| {
            format!("P6: job {key} of {id} completed with a value, but its trial ended instead of waiting")
        })
    }
}

/// Returns the epoch whose value counts for a trial whose job ended after epoch `last`, at or below its level: the last
/// one with a finite value, or `last` if the trial has diverged.
fn arrives_with(program: &Program, last: u32) -> u32 {
    let is_finite = |epoch: &u32| program.value(*epoch).is_some_and(f64::is_finite);
    let after = last.saturating_sub(DIVERGED_EPOCHS);
    (after + 1..=last).rev().find(is_finite).unwrap_or(last)
}
