//! Instances that the service keeps after jobs, as they really are: how long, and who takes them.

use std::collections::BTreeMap;

use tuning::fact::JobKey;

/// The instances kept after one job, times in ms.
#[derive(Debug, Clone, Copy)]
struct Kept {
    since: i64,
    until: i64,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Pools(BTreeMap<JobKey, Kept>);

impl Pools {
    /// A job has ended; its instances are kept for `seconds`.
    pub(crate) fn keep(&mut self, job: JobKey, now: i64, seconds: u64) {
        let until = now + i64::try_from(seconds).unwrap() * 1_000;
        self.0.insert(job, Kept { since: now, until });
    }

    /// A job begins: it takes the instances that have been kept longest.
    pub(crate) fn take(&mut self, now: i64) {
        let free = self.0.iter_mut().filter(|(_, kept)| kept.until > now);
        if let Some((_, kept)) = free.min_by_key(|(job, kept)| (kept.since, **job)) {
            kept.until = now;
        }
    }

    /// They are let go.
    pub(crate) fn release(&mut self, job: JobKey, now: i64) {
        if let Some(kept) = self.0.get_mut(&job) {
            kept.until = kept.until.min(now);
        }
    }

    /// For how long they were kept, once they are no more; nothing of a job that never had any.
    pub(crate) fn retained(&self, job: JobKey, now: i64) -> Option<u64> {
        let Some(kept) = self.0.get(&job) else { return Some(0) };
        (kept.until <= now).then(|| u64::try_from(kept.until - kept.since).unwrap().div_ceil(1_000))
    }

    /// When they are kept no more.
    pub(crate) fn until(&self, job: JobKey) -> i64 {
        self.0.get(&job).map_or(0, |kept| kept.until)
    }

    /// Seconds for which instances were kept, over all jobs.
    pub(crate) fn seconds(&self) -> u64 {
        self.0.values().map(|kept| u64::try_from(kept.until - kept.since).unwrap().div_ceil(1_000)).sum()
    }
}
