//! Warm pools: instances that the service keeps after the end of an on-demand job, so that the next job starts at
//! once.
//!
//! Kept instances cost money until another job takes them or their time ends, and no event reports either. Therefore,
//! the maximum cost of a pool is reserved with its job, and stays reserved when the job is billed. It is settled only
//! when the service reports how long the pool lasted. This module holds the known data of the pools; [`crate::decide`]
//! decides when they are read and released.

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, JobLimits};
use crate::job::Job;
use crate::log::fact::JobKey;
use crate::log::pool::Retained;
use crate::unit::ids::ChoiceId;
use crate::unit::limits::POOL_ALLOWANCE_SECONDS;
use crate::unit::money::MicroUsd;
use crate::unit::time::{Millis, Time};

/// The instances kept after one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// The job.
    pub job: JobKey,
    /// Its instance choice.
    #[serde(default)]
    pub instances: ChoiceId,
    /// The most that keeping the instances can cost; reserved until the cost is known.
    pub reservation: MicroUsd,
    /// When the job ended.
    pub since: Time,
    /// When the time of the pool is over, including an allowance.
    pub until: Time,
    /// Reads ordered so far.
    pub read: u32,
    /// Whether a read has no outcome yet.
    pub reading: bool,
    /// The latest start of a job known when the last read was ordered: that job may have taken the instances.
    pub read_at: Time,
    /// Whether the pool was ordered to be released.
    pub released: bool,
    /// How long the pool lasted; `None` while it is not known to have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Retained>,
}

impl Definition {
    /// Returns the most that keeping its instances can cost after a job with `limits`; `None` when the price is
    /// unknown.
    pub fn pool_worst_case(&self, limits: JobLimits, instances: ChoiceId) -> Option<MicroUsd> {
        match limits.keep_alive_seconds {
            0 => Some(MicroUsd::ZERO),
            seconds => self.job.instances(instances).cost(seconds.saturating_add(POOL_ALLOWANCE_SECONDS)),
        }
    }
}

impl Pool {
    /// Returns the pool of a job that ended at `since`. Keeping its instances costs at most
    /// `reservation`.
    pub fn new(key: JobKey, job: &Job, reservation: MicroUsd, since: Time) -> Self {
        let seconds = job.order.limits.keep_alive_seconds.saturating_add(POOL_ALLOWANCE_SECONDS);
        Self {
            job: key,
            instances: job.order.instances,
            reservation,
            since,
            until: since + Millis::from_seconds(seconds),
            read: 0,
            reading: false,
            read_at: Time::MIN,
            released: false,
            over: None,
        }
    }

    /// Returns the seconds that the pool lasted, if known, and the amount to book; `None` while the pool has not
    /// ended.
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
