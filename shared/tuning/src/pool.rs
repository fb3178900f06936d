//! Warm pools: instances that the service keeps after the end of a job on demand, so that the next one starts at once.
//!
//! Kept instances cost money until another job takes them or their time is over, and no event tells of either. So what a
//! pool can cost is reserved with its job, stays reserved when the job is billed, and is settled only when the service
//! was read to say how long it was kept. Here is what is known of the pools of one tuning; when they are read and
//! released: [`crate::decide`].

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, JobLimits};
use crate::fact::JobKey;
use crate::limits::POOL_ALLOWANCE_SECONDS;
use crate::money::MicroUsd;

/// The instances kept after one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// The job.
    pub job: JobKey,
    /// Which of the request's choices of instances it ran on.
    #[serde(default)]
    pub instances: u32,
    /// What keeping them may cost, reserved until it is known.
    pub reservation: MicroUsd,
    /// When its job ended, ms.
    pub since: i64,
    /// When its time is over, ms, an allowance included.
    pub until: i64,
    /// Readings ordered so far.
    pub read: u32,
    /// Whether one is on its way.
    pub reading: bool,
    /// The latest start of a job that was known when it was last ordered to be read: that job may have taken the
    /// instances.
    pub read_at: i64,
    /// Whether it was ordered to be released.
    pub released: bool,
    /// What the service said in the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Retained>,
}

/// How long instances were kept, in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Retained {
    /// So many seconds.
    Seconds(u64),
    /// Nobody can tell any more: the job was deleted.
    Unknown,
}

impl Definition {
    /// The most that keeping the instances of choice `index` after a job with `limits` can cost.
    pub fn pool_worst_case(&self, limits: JobLimits, index: u32) -> Option<MicroUsd> {
        match limits.keep_alive_seconds {
            0 => Some(MicroUsd::ZERO),
            seconds => self.job.instances(index).cost(seconds.saturating_add(POOL_ALLOWANCE_SECONDS)),
        }
    }
}

impl Pool {
    /// The pool of a job that ended at `since`, ms.
    pub fn new(
        job: JobKey,
        (instances, reservation): (u32, MicroUsd),
        limits: JobLimits,
        since: i64,
    ) -> Self {
        let seconds = limits.keep_alive_seconds.saturating_add(POOL_ALLOWANCE_SECONDS);
        let length = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        Self {
            job,
            instances,
            reservation,
            since,
            until: since.saturating_add(length),
            read: 0,
            reading: false,
            read_at: i64::MIN,
            released: false,
            over: None,
        }
    }

    /// What it cost, once it is over: its seconds, if they are known, and the amount to book.
    pub fn bill(&self, definition: &Definition) -> Option<(Option<u64>, MicroUsd)> {
        Some(match self.over? {
            Retained::Seconds(seconds) => {
                let cost = definition.job.instances(self.instances).cost(seconds);
                (Some(seconds), cost.unwrap_or(MicroUsd::ZERO))
            }
            Retained::Unknown => (None, self.reservation),
        })
    }
}
