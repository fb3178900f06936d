//! The training service as a sweep sees it: calls are counted, paced, and refused when the sweep has had its share.
//!
//! A refusal is the error `Throttled`, so that what is under way is put off as it would be by the service itself. A sweep
//! asks for its turn before it begins something, so that this is rare. Must never let a call through after the sweep's
//! deadline: a function that was frozen does nothing more when it thaws.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::limits::{PerSort, Rate, Sort};
use crate::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};
use crate::ports::{Millis, Timer};

/// A training service with a meter.
#[derive(Debug)]
pub struct Metered<J, C> {
    jobs: J,
    clock: C,
    meter: Mutex<Meter>,
}

#[derive(Debug, Default)]
struct Meter {
    gauges: PerSort<Gauge>,
    until: Millis,
    refused: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Gauge {
    left: u32,
    used: u32,
    every_ms: Millis,
    next: Millis,
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

    /// A sweep begins that must be over at `until`. Its first call of each sort waits too: nobody knows when the sweep
    /// before it, perhaps in another process, made its last.
    pub(super) fn begin(&self, mut rates: PerSort<Rate>, now: Millis, until: Millis) {
        let mut gauge = |sort| {
            let Rate { per_sweep, every_ms } = *rates.of(sort);
            Gauge { left: per_sweep, used: 0, every_ms, next: now.saturating_add(every_ms) }
        };
        let gauges = PerSort {
            describe: gauge(Sort::Describe),
            tags: gauge(Sort::Tags),
            list: gauge(Sort::List),
            log: gauge(Sort::Log),
            create: gauge(Sort::Create),
            stop: gauge(Sort::Stop),
        };
        *self.lock() = Meter { gauges, until, refused: false };
    }

    /// Waits until a call of sort `sort` may be made; `false` if it may not in this sweep.
    pub(super) async fn turn(&self, sort: Sort) -> bool {
        loop {
            let turn = self.lock().turn(sort, self.clock.now());
            match turn {
                Turn::Now => return true,
                Turn::Never => return false,
                Turn::In(ms) => self.clock.pause(ms).await,
            }
        }
    }

    /// Whether calls of sort `sort` are left in this sweep.
    pub(super) fn has(&self, sort: Sort) -> bool {
        self.lock().gauges.of(sort).left > 0
    }

    /// Whether a call was refused here since this was last asked.
    pub(super) fn take_refused(&self) -> bool {
        std::mem::take(&mut self.lock().refused)
    }

    /// Calls made in this sweep.
    pub(super) fn used(&self) -> PerSort<u32> {
        let gauges = self.lock().gauges;
        PerSort {
            describe: gauges.describe.used,
            tags: gauges.tags.used,
            list: gauges.list.used,
            log: gauges.log.used,
            create: gauges.create.used,
            stop: gauges.stop.used,
        }
    }

    async fn spend(&self, sort: Sort) -> Result<&J, TrainingJobsError> {
        if !self.turn(sort).await {
            self.lock().refused = true;
            return Err(TrainingJobsError::Throttled);
        }
        let now = self.clock.now();
        let mut meter = self.lock();
        let gauge = meter.gauges.of(sort);
        gauge.left = gauge.left.saturating_sub(1);
        gauge.used = gauge.used.saturating_add(1);
        gauge.next = now.saturating_add(gauge.every_ms);
        drop(meter);
        Ok(&self.jobs)
    }

    fn lock(&self) -> MutexGuard<'_, Meter> {
        // Nothing panics while it is held.
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter {
    fn turn(&mut self, sort: Sort, now: Millis) -> Turn {
        let until = self.until;
        let Gauge { left, next, .. } = *self.gauges.of(sort);
        if left == 0 || now.max(next) >= until {
            Turn::Never
        } else if next > now {
            Turn::In(next - now)
        } else {
            Turn::Now
        }
    }
}

impl<J: TrainingJobs, C: Timer> TrainingJobs for Metered<J, C> {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        self.spend(Sort::Create).await?.create(request).await
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.spend(Sort::Stop).await?.stop(name).await
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.spend(Sort::Stop).await?.release(name).await
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        self.spend(Sort::Describe).await?.describe(name).await
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        self.spend(Sort::Tags).await?.tags(name).await
    }
}

impl<J: TrainingJobListing + Sync, C: Timer> TrainingJobListing for Metered<J, C> {
    async fn in_progress(
        &self,
        from: Millis,
        page: Option<&str>,
    ) -> Result<Paged<Listed>, TrainingJobsError> {
        self.spend(Sort::List).await?.in_progress(from, page).await
    }
}

impl<J: JobLogs, C: Timer> JobLogs for Metered<J, C> {
    async fn read(
        &self,
        name: &str,
        host: &str,
        from: Millis,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        self.spend(Sort::Log).await?.read(name, host, from, page).await
    }
}
