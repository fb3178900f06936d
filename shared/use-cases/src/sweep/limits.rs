//! The limits of one sweep: how many calls of each kind, how fast, and for how long.
//!
//! The training service's own rate limits are low and apply to the whole account (2 `ListTrainingJobs` a second). A
//! sweep uses at most half of them, since the user's own programs need the rest. [`crate::pace`] paces starts and pages
//! of logs.

use tuning::unit::time::Millis;

/// The limits of one kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Most calls in one sweep.
    pub per_sweep: u32,
    /// Minimum interval between two calls.
    pub every_ms: Millis,
}

/// The kinds of calls that are counted and paced separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
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

/// A value for each kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerCallKind<V> {
    /// See [`CallKind::Describe`].
    pub describe: V,
    /// See [`CallKind::Tags`].
    pub tags: V,
    /// See [`CallKind::List`].
    pub list: V,
    /// See [`CallKind::Log`].
    pub log: V,
    /// See [`CallKind::Create`].
    pub create: V,
    /// See [`CallKind::Stop`].
    pub stop: V,
}

impl<V> PerCallKind<V> {
    /// Returns the value for `kind`.
    pub fn of(&mut self, kind: CallKind) -> &mut V {
        match kind {
            CallKind::Describe => &mut self.describe,
            CallKind::Tags => &mut self.tags,
            CallKind::List => &mut self.list,
            CallKind::Log => &mut self.log,
            CallKind::Create => &mut self.create,
            CallKind::Stop => &mut self.stop,
        }
    }
}

/// After which time without a sign of life a job is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// From this time on in every sweep: the checks are what reads its log.
    After(Millis),
    /// The log is delivered, so a check only repairs what was lost. The first check is due when the line of the next epoch
    /// is late. The time between two checks doubles, up to 15 minutes.
    Delivered,
}

/// The limits of one sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limits of the calls of the training service.
    pub calls: PerCallKind<Rate>,
    /// No operation starts later than this after the beginning of the sweep. Less than the function's time
    /// limit.
    pub time_ms: Millis,
    /// Duration of the lease if the sweep dies. More than the function's time limit.
    pub lease_ms: Millis,
    /// Which jobs count as silent.
    pub silence: Silence,
    /// How long ended tunings are kept; `None` = until a user deletes them.
    pub retention: Option<Millis>,
}

impl Limits {
    /// The limits in the cloud: one sweep a minute, in a function with a time limit of 90 seconds.
    pub const CLOUD: Self = Self {
        calls: PerCallKind {
            describe: Rate { per_sweep: 250, every_ms: Millis(200) },
            tags: Rate { per_sweep: 100, every_ms: Millis(200) },
            list: Rate { per_sweep: 30, every_ms: Millis(1_000) },
            log: Rate { per_sweep: 150, every_ms: Millis::ZERO },
            create: Rate { per_sweep: 50, every_ms: Millis::ZERO },
            stop: Rate { per_sweep: 250, every_ms: Millis(200) },
        },
        time_ms: Millis::from_seconds(60),
        lease_ms: Millis::from_seconds(120),
        silence: Silence::After(Millis::from_seconds(120)),
        retention: None,
    };
}
