//! Wraps the training service: paces the calls whose rate limit all programs of an account share.
//!
//! Each of these calls has a token bucket (the generic cell rate algorithm, ITU-T I.371) in one row of the table. The
//! actuator and the sweeper, and all invocations of both, take their turns from it. A tuning takes only a few turns ahead,
//! so tunings that wait share the rate, however many starts each has ordered. No function polls: a turn is a time to wait for,
//! and a call without one is left to a later sweep.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::lock::Mutex;
use serde_json::Value;
use tuning::time::{Millis, Time};
use wire::stored::{PaceRow, REVISION};

use crate::ports::Timer;
use crate::ports::table::{Condition, Table, TableError, Write};
use crate::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};
use crate::store::StoreError;

/// The rate limit of one call.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// The sort key of its row.
    of: &'static str,
    /// The call, for messages.
    call: &'static str,
    /// Interval between two turns.
    every: Millis,
    /// Number of turns that an idle account may take at once.
    burst: u32,
    /// Number of turns that a tuning may have taken ahead.
    ahead: usize,
    /// Longest wait for a turn. A waiting function uses up one of its concurrent executions, which stops need too, so
    /// only a few may wait at once.
    wait: Millis,
}

/// AWS publishes no rate of `CreateTrainingJob`. Users report throttling from about one call a second, or five
/// processes at once.
const STARTS: Limit = Limit {
    of: "starts",
    call: "CreateTrainingJob",
    every: Millis::from_seconds(1),
    burst: 3,
    ahead: 2,
    wait: Millis::from_seconds(5),
};
/// Half of the account's fixed 5 `FilterLogEvents` a second. The other half belongs to the user's programs.
const LOG_PAGES: Limit = Limit {
    of: "log-pages",
    call: "FilterLogEvents",
    every: Millis(400),
    burst: 1,
    ahead: 1,
    wait: Millis::from_seconds(5),
};

/// Number of lost races for a turn after which a call gets none.
const RACES_MAX: u32 = 32;

/// A training service whose starts and log pages are paced through the table.
#[derive(Debug)]
pub struct Paced<J, T, C> {
    jobs: J,
    table: Arc<T>,
    clock: C,
    starts: Bucket,
    log_pages: Bucket,
}

/// A bucket, and its row as this process knows it. The lock is held while a turn is taken, not during the wait for it.
#[derive(Debug)]
struct Bucket {
    limit: Limit,
    row: Mutex<Option<PaceRow>>,
}

/// The result of one try to take a turn.
enum Taken {
    /// The turn at this time.
    Turn(Time),
    /// None is free soon.
    Nothing,
    /// Another function has changed the row meanwhile.
    LostRace,
}

impl<J, T: Table, C: Timer> Paced<J, T, C> {
    /// Creates a wrapper of `jobs` that keeps its turns in `table`.
    pub fn new(jobs: J, table: Arc<T>, clock: C) -> Self {
        let bucket = |limit| Bucket { limit, row: Mutex::new(None) };
        Self { jobs, table, clock, starts: bucket(STARTS), log_pages: bucket(LOG_PAGES) }
    }

    /// Waits for a turn of `bucket`, for `tuning` if tunings share the turns. Returns [`TrainingJobsError::NoTurn`] if the
    /// wait would be too long.
    async fn turn(&self, bucket: &Bucket, tuning: Option<&str>) -> Result<(), TrainingJobsError> {
        let call = bucket.limit.call;
        for _ in 0..RACES_MAX {
            match self.take(bucket, tuning).await {
                Ok(Taken::Turn(at)) => {
                    self.clock.pause((at - self.clock.now()).max(Millis::ZERO)).await;
                    return Ok(());
                }
                Ok(Taken::Nothing) => return Err(no_turn(call, "all tunings of the stack share its rate")),
                Ok(Taken::LostRace) => {}
                Err(error) => return Err(no_turn(call, &error.to_string())),
            }
        }
        Err(no_turn(call, "too many functions take turns at the same time"))
    }

    async fn take(&self, bucket: &Bucket, tuning: Option<&str>) -> Result<Taken, StoreError> {
        let mut known = bucket.row.lock().await;
        let row = match known.take() {
            Some(row) => row,
            None => match self.table.get(&PaceRow::key(bucket.limit.of)).await? {
                Some(item) => PaceRow::read(&item)?,
                None => PaceRow::new(bucket.limit.of),
            },
        };
        let Some((at, next)) = bucket.limit.next(&row, tuning, self.clock.now()) else {
            *known = Some(row);
            return Ok(Taken::Nothing);
        };
        let condition = match row.revision {
            0 => Condition::NotExists,
            revision => Condition::equals(REVISION, revision),
        };
        match self.table.write(Write::Put(next.row(), condition)).await {
            Ok(()) => {
                *known = Some(next);
                Ok(Taken::Turn(at))
            }
            Err(TableError::Conflict(_)) => Ok(Taken::LostRace),
            Err(error) => Err(error.into()),
        }
    }
}

impl Limit {
    /// Returns the time of the next turn, and the row without it. Returns `None` if that is too far ahead, or if `tuning`
    /// has taken enough turns.
    fn next(&self, row: &PaceRow, tuning: Option<&str>, now: Time) -> Option<(Time, PaceRow)> {
        // Only a function whose clock is ahead takes a later turn.
        let latest = now + self.wait + self.every;
        let free = if row.next > latest { now } else { row.next };
        let mut taken = row.taken.clone();
        taken.retain(|_, turns| {
            turns.retain(|at| *at > now && *at < free);
            !turns.is_empty()
        });
        let free = free.max(now - self.every * self.burst.saturating_sub(1));
        let at = free.max(now);
        if let Some(tuning) = tuning.filter(|_| at > now) {
            let turns = taken.entry(tuning.to_owned()).or_default();
            turns.push(at);
            if turns.len() > self.ahead {
                return None;
            }
        }
        let row = PaceRow { of: row.of.clone(), next: free + self.every, taken, revision: row.revision + 1 };
        (at - now <= self.wait).then_some((at, row))
    }
}

fn no_turn(call: &str, why: &str) -> TrainingJobsError {
    TrainingJobsError::NoTurn(format!("{call} was not sent: {why}. The sweeper retries it"))
}

impl<J: TrainingJobs, T: Table, C: Timer> TrainingJobs for Paced<J, T, C> {
    async fn turn_to_create(&self, tuning: &str) -> Result<(), TrainingJobsError> {
        self.turn(&self.starts, Some(tuning)).await
    }

    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        self.jobs.create(request).await
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.jobs.stop(name).await
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.jobs.release(name).await
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        self.jobs.describe(name).await
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        self.jobs.tags(name).await
    }
}

impl<J: TrainingJobListing + Sync, T: Table, C: Timer> TrainingJobListing for Paced<J, T, C> {
    async fn in_progress(&self, from: Time, page: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        self.jobs.in_progress(from, page).await
    }
}

impl<J: JobLogs, T: Table, C: Timer> JobLogs for Paced<J, T, C> {
    async fn read(
        &self,
        name: &str,
        host: &str,
        from: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        self.turn(&self.log_pages, None).await?;
        self.jobs.read(name, host, from, page).await
    }
}
