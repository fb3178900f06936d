//! Warm pools: instances that the training service keeps after a job on demand, until another of its tuning takes them,
//! they are let go, or their time is over. Nobody is told; who asks is told how it was a while ago, as with all of a job.

use service::ports::training::{Description, TrainingJobsError, WarmPool};

use super::World;
use super::training::{Owner, Training};

/// How long what was let go is still there at most, ms.
const LINGERS_MS_MAX: i64 = 30_000;

/// The instances kept after one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    since: i64,
    /// When they are kept no more.
    until: i64,
    /// The job that has taken them.
    taken_by: Option<usize>,
}

impl Kept {
    /// Whole seconds for which they are billed.
    fn seconds(&self) -> i64 {
        (self.until - self.since + 999).div_euclid(1_000)
    }
}

impl Training {
    /// A job has ended that had instances: they are kept for as long as it asked for.
    pub(super) fn keep(&mut self, index: usize, now: i64) {
        let job = &self.jobs[index];
        if job.keep_ms > 0 && job.now.started.is_some() && !job.deleted {
            self.kept.insert(index, Kept { since: now, until: now + job.keep_ms, taken_by: None });
        }
    }

    /// Whether instances are still kept after a job.
    pub(crate) fn keeps(&self, index: usize, now: i64) -> bool {
        self.kept.get(&index).is_some_and(|kept| kept.until > now)
    }

    /// A job gets its instances: those that have been kept longest for jobs like it.
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

    /// What a description made at `as_of` tells of the instances kept after a job.
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

    /// Seconds for which a job's instances are or may be kept.
    pub(crate) fn kept_seconds(&self, index: usize) -> i64 {
        let job = &self.jobs[index];
        let worst = if job.is_ended() { 0 } else { job.keep_ms.div_euclid(1_000) };
        self.kept.get(&index).map_or(worst, Kept::seconds)
    }
}

impl World {
    pub(super) fn tell_warm_pool(&self, index: usize, as_of: i64, seen: Description) -> Description {
        Description { warm_pool: self.training.warm_pool(index, as_of), ..seen }
    }

    /// `UpdateTrainingJob` with `KeepAlivePeriodInSeconds` 0.
    pub(crate) fn release_job(&mut self, name: &str) -> Result<(), TrainingJobsError> {
        let index = self.training.find(name, self.now)?;
        if self.training.jobs[index].owner != Owner::Ours {
            self.check.violation(self.now, &format!("P7: what is kept after {name} is not ours to let go"));
        }
        if !self.training.keeps(index, self.now) {
            return Err(TrainingJobsError::Refused {
                code: "ValidationException".to_owned(),
                message: format!("no instances are kept after {name}"),
            });
        }
        let lingers = self.dice.between(0, LINGERS_MS_MAX);
        if let Some(kept) = self.training.kept.get_mut(&index) {
            kept.until = kept.until.min(self.now + lingers);
        }
        Ok(())
    }

    /// What keeping the instances of a tuning's jobs costs or may cost, micro-dollars.
    pub(crate) fn kept_cost(&self, id: &str, counts: impl Fn(&super::training::Job) -> bool) -> u64 {
        let jobs = self.training.jobs.iter().enumerate().filter(|(_, job)| job.id == id && counts(job));
        jobs.map(|(index, job)| self.cases[job.case].cost(job.choice, self.training.kept_seconds(index)))
            .sum()
    }
}
