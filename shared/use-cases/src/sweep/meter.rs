//! Wraps the training service for a sweep: counts and paces calls, and refuses them when the sweep's limit is reached.
//!
//! A refusal is the error `Throttled`, so the operation is deferred as if the service itself had throttled it. This is
//! rare, because a sweep waits for its turn before it starts an operation. No call is made after the sweep's deadline:
//! a function that was frozen does nothing more after it resumes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::limits::{CallKind, PerCallKind, Rate};
use crate::ports::Timer;
use crate::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};
use tuning::unit::time::{Millis, Time};

/// A training service with counted and paced calls.
#[derive(Debug)]
pub struct Metered<J, C> {
    jobs: J,
    clock: C,
    meter: Mutex<Meter>,
}

#[derive(Debug, Default)]
struct Meter {
    gauges: PerCallKind<Gauge>,
    until: Time,
}

#[derive(Debug, Clone, Copy, Default)]
struct Gauge {
    left: u32,
    used: u32,
    every_ms: Millis,
    next: Time,
}

enum Turn {
    Now,
    In(Millis),
    Never,
}

impl<J, C: Timer> Metered<J, C> {
    pub(super) fn new(jobs: J, clock: C) -> Self {
        Self { jobs, clock, meter: Mutex::default() }
    }

    /// Begins a sweep that must end at `until`. The first call of each kind waits too, because the time of the last
    /// call of the previous sweep, perhaps in another process, is unknown.
    pub(super) fn begin(&self, mut rates: PerCallKind<Rate>, now: Time, until: Time) {
        let mut gauge = |kind| {
            let Rate { per_sweep, every_ms } = *rates.of(kind);
            Gauge { left: per_sweep, used: 0, every_ms, next: now + every_ms }
        };
        let gauges = PerCallKind {
            describe: gauge(CallKind::Describe),
            tags: gauge(CallKind::Tags),
            list: gauge(CallKind::List),
            log: gauge(CallKind::Log),
            create: gauge(CallKind::Create),
            stop: gauge(CallKind::Stop),
        };
        *self.lock() = Meter { gauges, until };
    }

    /// Waits until a call of kind `kind` may be made. Returns `false` if this sweep may not make it.
    pub(super) async fn turn(&self, kind: CallKind) -> bool {
        loop {
            let turn = self.lock().turn(kind, self.clock.now());
            match turn {
                Turn::Now => return true,
                Turn::Never => return false,
                Turn::In(ms) => self.clock.pause(ms).await,
            }
        }
    }

    /// Returns whether this sweep may make more calls of kind `kind`.
    pub(super) fn has(&self, kind: CallKind) -> bool {
        *self.left().of(kind) > 0
    }

    /// Returns the number of calls that this sweep may still make.
    pub(super) fn left(&self) -> PerCallKind<u32> {
        self.counts(|gauge| gauge.left)
    }

    /// Returns the number of calls made in this sweep.
    pub(super) fn used(&self) -> PerCallKind<u32> {
        self.counts(|gauge| gauge.used)
    }

    fn counts(&self, count: fn(Gauge) -> u32) -> PerCallKind<u32> {
        let gauges = self.lock().gauges;
        PerCallKind {
            describe: count(gauges.describe),
            tags: count(gauges.tags),
            list: count(gauges.list),
            log: count(gauges.log),
            create: count(gauges.create),
            stop: count(gauges.stop),
        }
    }

    async fn spend(&self, kind: CallKind) -> Result<&J, TrainingJobsError> {
        loop {
            let turn = self.lock().take_turn(kind, self.clock.now());
            match turn {
                Turn::Now => return Ok(&self.jobs),
                Turn::Never => return Err(TrainingJobsError::Throttled),
                Turn::In(ms) => self.clock.pause(ms).await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Meter> {
        // No code panics while it holds the lock.
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter {
    fn turn(&mut self, kind: CallKind, now: Time) -> Turn {
        let until = self.until;
        let Gauge { left, next, .. } = *self.gauges.of(kind);
        if left == 0 || now.max(next) >= until {
            Turn::Never
        } else if next > now {
            Turn::In(next - now)
        } else {
            Turn::Now
        }
    }

    /// Like [`Self::turn`], but counts the call if it may be made now. Several calls may wait for their turns at once.
    fn take_turn(&mut self, kind: CallKind, now: Time) -> Turn {
        let turn = self.turn(kind, now);
        if matches!(turn, Turn::Now) {
            let gauge = self.gauges.of(kind);
            gauge.left = gauge.left.saturating_sub(1);
            gauge.used = gauge.used.saturating_add(1);
            gauge.next = now + gauge.every_ms;
        }
        turn
    }
}

impl<J: TrainingJobs, C: Timer> TrainingJobs for Metered<J, C> {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        self.spend(CallKind::Create).await?.create(request).await
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.spend(CallKind::Stop).await?.stop(name).await
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.spend(CallKind::Stop).await?.release(name).await
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        self.spend(CallKind::Describe).await?.describe(name).await
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        self.spend(CallKind::Tags).await?.tags(name).await
    }
}

impl<J: TrainingJobListing + Sync, C: Timer> TrainingJobListing for Metered<J, C> {
    async fn in_progress(&self, from: Time, page: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        self.spend(CallKind::List).await?.in_progress(from, page).await
    }
}

impl<J: JobLogs, C: Timer> JobLogs for Metered<J, C> {
    async fn read(
        &self,
        name: &str,
        host: &str,
        from: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        self.spend(CallKind::Log).await?.read(name, host, from, page).await
    }
}
