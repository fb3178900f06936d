//! What one sweep may do: how many calls of each sort, how fast, and for how long.
//!
//! The training service's own rates are low and hold for the whole account (`CreateTrainingJob` about one a second,
//! `ListTrainingJobs` two), and the user's own programs need their part of them.

use crate::ports::Millis;

/// Calls of one sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// At most so many in one sweep.
    pub per_sweep: u32,
    /// At least so long from one to the next, ms.
    pub every_ms: Millis,
}

/// The sorts of calls that are counted and paced apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// `DescribeTrainingJob`.
    Describe,
    /// `ListTags`.
    Tags,
    /// One page of `ListTrainingJobs`.
    List,
    /// One page of a job's log.
    Log,
    /// `CreateTrainingJob`.
    Create,
    /// `StopTrainingJob`.
    Stop,
}

/// Something for each sort of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerSort<V> {
    /// See [`Sort::Describe`].
    pub describe: V,
    /// See [`Sort::Tags`].
    pub tags: V,
    /// See [`Sort::List`].
    pub list: V,
    /// See [`Sort::Log`].
    pub log: V,
    /// See [`Sort::Create`].
    pub create: V,
    /// See [`Sort::Stop`].
    pub stop: V,
}

impl<V> PerSort<V> {
    /// What there is for `sort`.
    pub fn of(&mut self, sort: Sort) -> &mut V {
        match sort {
            Sort::Describe => &mut self.describe,
            Sort::Tags => &mut self.tags,
            Sort::List => &mut self.list,
            Sort::Log => &mut self.log,
            Sort::Create => &mut self.create,
            Sort::Stop => &mut self.stop,
        }
    }
}

/// What one sweep may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Its calls.
    pub calls: PerSort<Rate>,
    /// Nothing is begun later than so long after its beginning, ms: less than the function's time limit.
    pub time_ms: Millis,
    /// How long its lease lasts if it dies, ms: more than the function's time limit.
    pub lease_ms: Millis,
    /// A job that shows no sign of life for so long is looked at, ms.
    pub silence_ms: Millis,
}

impl Limits {
    /// In the cloud: a sweep a minute, in a function that may take a minute and a half.
    pub const CLOUD: Self = Self {
        calls: PerSort {
            describe: Rate { per_sweep: 250, every_ms: 200 },
            tags: Rate { per_sweep: 100, every_ms: 200 },
            list: Rate { per_sweep: 30, every_ms: 500 },
            log: Rate { per_sweep: 300, every_ms: 200 },
            create: Rate { per_sweep: 50, every_ms: 1_000 },
            stop: Rate { per_sweep: 250, every_ms: 200 },
        },
        time_ms: 60_000,
        lease_ms: 120_000,
        silence_ms: 120_000,
    };
}
