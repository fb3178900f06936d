//! Warm pools: instances that the training service keeps after an on-demand job. They are kept until another job of the
//! tuning takes them, a call releases them, or the keep-alive period ends. No event is sent. Describe shows the pool,
//! possibly with a lag like the rest of the job.

use use_cases::ports::training::{Description, TrainingJobsError, WarmPool};

use super::World;
use super::training::{Kept, Owner, Training};

/// Longest time that released instances are still kept, in ms.
const LINGERS_MS_MAX: i64 = 30_000;

impl Kept {
    /// Returns the billed time, in whole seconds.
    fn seconds(&self) -> i64 {
        (self.until - self.since + 999).div_euclid(1_000)
    }
}

impl Training {
    /// Keeps the instances of an ended job for its keep-alive period.
    pub(super) fn keep(&mut self, index: usize, now: i64) {
        let job = &self.jobs[index];
        if job.keep_ms > 0 && job.now.started.is_some() && !job.deleted {
            self.kept.insert(index, Kept { since: now, until: now + job.keep_ms, taken_by: None });
        }
    }

    /// Returns whether instances are still kept after a job.
    pub(crate) fn keeps(&self, index: usize, now: i64) -> bool {
        self.kept.get(&index).is_some_and(|kept| kept.until > now)
    }

    /// Gives a starting job the instances that have been kept longest for jobs like it.
    pub(super) fn take(&mut self, index: usize, now: i64) {
        let job = &self.jobs[index];
        if job.max_wait_ms.is_some() {
            return;
        }
        let (case, choice) = (job.case, job.choice);
        let jobs = &self.jobs;
        let alike = self.kept.iter_mut().filter(|(index, kept)| {
            let other = &jobs[**index];
            kept.until > now && other.case == case && other.choice == choice
        });
        if let Some((_, kept)) = alike.min_by_key(|(index, kept)| (kept.since, **index)) {
            (kept.until, kept.taken_by) = (now, Some(index));
        }
    }

    /// Returns the pool of a job as Describe showed it at `as_of` (ms).
    fn warm_pool(&self, index: usize, as_of: i64) -> Option<WarmPool> {
        let kept = self.kept.get(&index).filter(|kept| kept.since <= as_of)?;
        let status = match kept.taken_by {
            _ if kept.until > as_of => "Available",
            Some(other) if self.jobs[other].is_ended() => "Reused",
            Some(_) => "InUse",
            None => "Terminated",
        };
        let retained_seconds = (kept.until <= as_of).then(|| u64::try_from(kept.seconds()).unwrap_or(0));
        Some(WarmPool { status: status.to_owned(), retained_seconds })
    }

    /// Returns the seconds for which a job's instances are kept; for a running job, the longest.
    pub(crate) fn kept_seconds(&self, index: usize) -> i64 {
        let job = &self.jobs[index];
        let worst = if job.is_ended() { 0 } else { job.keep_ms.div_euclid(1_000) };
        self.kept.get(&index).map_or(worst, Kept::seconds)
    }
}

impl World {
    pub(super) fn with_warm_pool(&self, index: usize, as_of: i64, seen: Description) -> Description {
        Description { warm_pool: self.training.warm_pool(index, as_of), ..seen }
    }

    /// `UpdateTrainingJob` with `KeepAlivePeriodInSeconds` 0.
    pub(crate) fn release_job(&mut self, name: &str) -> Result<(), TrainingJobsError> {
        let index = self.training.find(name, self.now)?;
        if self.training.jobs[index].owner != Owner::Ours {
            self.check.violation(
                self.now,
                &format!("P7: the pool after {name}, a job of another stack, was released"),
            );
        }
        if !self.training.keeps(index, self.now) {
            return Err(TrainingJobsError::Refused {
                code: "ValidationException".to_owned(),
                message: format!("job {name} has no warm pool"),
            });
        }
        let lingers = self.dice.between(0, LINGERS_MS_MAX);
        if let Some(kept) = self.training.kept.get_mut(&index) {
            kept.until = kept.until.min(self.now + lingers);
        }
        Ok(())
    }

    /// Returns the cost, or the worst-case cost, of keeping the instances of a tuning's jobs, in micro-dollars.
    pub(crate) fn kept_cost(&self, id: &str, counts: impl Fn(&super::training::Job) -> bool) -> u64 {
        let jobs = self.training.jobs.iter().enumerate().filter(|(_, job)| job.id == id && counts(job));
        jobs.map(|(index, job)| self.cases[job.case].cost(job.choice, self.training.kept_seconds(index)))
            .sum()
    }
}
