//! The warm pools of the simulated service: how long instances are kept, and which job takes them.

use std::collections::BTreeMap;

use tuning::log::fact::JobKey;

/// The warm pool of one job. Times are in ms.
#[derive(Debug, Clone, Copy)]
struct Kept {
    since: i64,
    until: i64,
}

/// The warm pools of all jobs.
#[derive(Debug, Default)]
pub(crate) struct Pools(BTreeMap<JobKey, Kept>);

impl Pools {
    /// Keeps the instances of an ended job for `seconds`.
    pub(crate) fn keep(&mut self, job: JobKey, now: i64, seconds: u64) {
        let until = now + i64::try_from(seconds).unwrap() * 1_000;
        self.0.insert(job, Kept { since: now, until });
    }

    /// Gives the longest-kept instances to a starting job.
    pub(crate) fn take(&mut self, now: i64) {
        let free = self.0.iter_mut().filter(|(_, kept)| kept.until > now);
        if let Some((_, kept)) = free.min_by_key(|(job, kept)| (kept.since, **job)) {
            kept.until = now;
        }
    }

    /// Releases the instances kept after `job`.
    pub(crate) fn release(&mut self, job: JobKey, now: i64) {
        if let Some(kept) = self.0.get_mut(&job) {
            kept.until = kept.until.min(now);
        }
    }

    /// Returns the seconds for which instances were kept after `job`: 0 without a pool, `None` while the pool is open.
    pub(crate) fn retained(&self, job: JobKey, now: i64) -> Option<u64> {
        let Some(kept) = self.0.get(&job) else { return Some(0) };
        (kept.until <= now).then(|| u64::try_from(kept.until - kept.since).unwrap().div_ceil(1_000))
    }

    /// Returns the end of the pool of `job`, in ms.
    pub(crate) fn until(&self, job: JobKey) -> i64 {
        self.0.get(&job).map_or(0, |kept| kept.until)
    }

    /// Returns the seconds for which instances were kept, over all jobs.
    pub(crate) fn seconds(&self) -> u64 {
        self.0.values().map(|kept| u64::try_from(kept.until - kept.since).unwrap().div_ceil(1_000)).sum()
    }
}
