//! Lack of capacity: it fails no trial and counts as no training job. Starts wait for one probe at a time, and a tuning
//! ends for lack of capacity only after its wait.
//!
//! The checker drops a lack when any later fact shows instances. It never expects a longer wait than the decider has.

use std::collections::BTreeMap;

use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::log::reasons::TrialEnd;

use super::{Book, JobBook, Money};

/// Least time between a job that got no instances and the next probe, in ms.
const PROBE_MS: i64 = 30_000;
/// How long a tuning waits for capacity unless its request says so, in ms.
const WAIT_MS: i64 = 86_400_000;
/// How long a lack lasts before it is published, in ms.
const NOTICE_MS: i64 = 600_000;

/// What the books know about capacity.
#[derive(Debug, Default)]
pub(super) struct Capacity {
    /// When a job of each cluster size last got no instances, and no fact has shown any since, in ms.
    failed_at: BTreeMap<Option<u32>, i64>,
}

impl JobBook {
    /// Records what a fact shows about the job's instances.
    pub(super) fn record_instances(&mut self, recorded: &Recorded) {
        let at = recorded.at;
        let shown = match &recorded.fact {
            Fact::JobStateChanged { phase: JobPhase::Interrupted, started, .. } => {
                self.interrupted_at = self.interrupted_at.max(Some(at.0));
                *started
            }
            Fact::JobStateChanged {
                phase: JobPhase::Downloading | JobPhase::Training | JobPhase::Uploading,
                started,
                ..
            } => Some(at).max(*started),
            // Such a job had its instances up to its end.
            Fact::JobStateChanged {
                phase: JobPhase::Ended(JobEnd::Completed | JobEnd::AlgorithmError | JobEnd::MaxRuntime),
                started: Some(_),
                ended,
                ..
            } => *ended,
            Fact::JobStateChanged { started, .. } => *started,
            Fact::JobDescribed {
                end: JobEnd::Completed | JobEnd::AlgorithmError | JobEnd::MaxRuntime,
                started: Some(_),
                ended: Some(ended),
                ..
            } => Some(*ended),
            Fact::JobDescribed { started, billable_seconds, .. } => {
                started.or((*billable_seconds > 0).then_some(at))
            }
            Fact::MetricsLogged { lines, .. } => lines.iter().map(|line| line.at).max(),
            _ => None,
        };
        self.instances_at = self.instances_at.max(shown.map(|time| time.0));
    }

    /// Returns whether the job does not count as a training job: it never started, or it got no instances and cost
    /// nothing.
    pub(super) fn is_uncounted(&self) -> bool {
        let spared = matches!(self.end, Some(JobEnd::CapacityError | JobEnd::MaxWait | JobEnd::Stopped));
        self.money == Money::Released
            || (spared && self.money == Money::Spent(0) && self.instances_at.is_none())
    }
}

impl Book {
    /// Applies a fact about job `key`, which is in its books already.
    pub(super) fn capacity_fact(&mut self, key: JobKey, ended_before: bool) {
        let Some(job) = self.jobs.get(&key) else { return };
        let size = self.case.size_of(job.launch.instances);
        self.capacity.failed_at.retain(|of, at| *of != size || job.instances_at < Some(*at));
        let falls_back = self.falls_back(key.trial) && !job.launch.on_demand;
        let lacks = match job.end {
            Some(JobEnd::CapacityError) => true,
            Some(JobEnd::MaxWait) => !falls_back,
            _ => false,
        };
        if lacks && !ended_before && job.end_seen {
            let choice = job.launch.instances;
            self.mark_short(choice);
            if self.all_short(choice) {
                self.capacity.failed_at.insert(size, self.launches.now());
            }
        }
    }

    /// Checks the start of job `key` while jobs get no instances.
    pub(super) fn check_capacity_of_start(&self, key: JobKey) -> Result<(), String> {
        let size = |job: &JobBook| self.case.size_of(job.launch.instances);
        let own = self.jobs.get(&key).and_then(size);
        let Some(failed_at) = self.capacity.failed_at.get(&own) else { return Ok(()) };
        let pending =
            |job: &JobBook| !job.end_seen && job.instances_at <= job.interrupted_at && size(job) == own;
        let others = self.jobs.iter().filter(|(other, job)| **other != key && pending(job)).count();
        let quiet_ms = self.launches.now() - failed_at;
        (others == 0 && quiet_ms >= PROBE_MS).then_some(()).ok_or_else(|| {
            format!(
                "Capacity: job {key} was ordered {quiet_ms} ms after a job got no instances, while {others} jobs wait \
                 for theirs"
            )
        })
    }

    /// Checks that no trial is called failed because its job got no instances.
    pub(super) fn check_blameless(&self, job: Option<JobKey>, how: &TrialEnd) -> Result<(), String> {
        let end = job.and_then(|key| self.jobs.get(&key)).and_then(|job| job.end);
        let lacked = matches!(end, Some(JobEnd::CapacityError | JobEnd::MaxWait));
        (!lacked || !matches!(how, TrialEnd::Failed(_)))
            .then_some(())
            .ok_or_else(|| format!("Capacity: the trial of {job:?} failed for lack of capacity: {how:?}"))
    }

    /// Checks that no job has had instances for at least this long, in ms.
    fn lacks_for(&self, least: i64) -> Result<(), String> {
        let now = self.launches.now();
        let newest = self.jobs.values().filter_map(|job| job.instances_at).max();
        newest.is_none_or(|at| now - at >= least).then_some(()).ok_or_else(|| {
            format!("Capacity: at {now} a job had instances at {newest:?}, less than {least} ms ago")
        })
    }

    /// Checks the notice that no job gets instances.
    pub(super) fn check_capacity_notice(&self) -> Result<(), String> {
        self.lacks_for(NOTICE_MS)
    }

    /// Checks that a tuning ends for lack of capacity only after its wait.
    pub(super) fn check_no_capacity(&self) -> Result<(), String> {
        let seconds = self.case.choices.max_capacity_wait_seconds;
        let wait = seconds.map_or(WAIT_MS, |seconds| i64::try_from(seconds).unwrap_or(i64::MAX) * 1_000);
        self.lacks_for(wait)
    }
}
