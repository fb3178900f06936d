//! Paces the calls whose rate limit all programs of an account share.
//!
//! Each of these calls has a token bucket (the generic cell rate algorithm, ITU-T I.371) in one row of the table. The
//! actuator and the sweeper, and all invocations of both, take their turns from it. A tuning takes only a few turns
//! ahead. Waiting tunings therefore share the rate, however many starts each has ordered. No function polls: a turn is
//! a point in time, and the call waits until then. A call without a turn is left to a later sweep.

use futures_util::lock::Mutex;
use tuning::unit::time::{Millis, Time};
use wire::stored::{PaceRow, REVISION};

use crate::ports::Timer;
use crate::ports::table::{Condition, Table, TableError, Write};
use crate::store::StoreError;

#[derive(Debug, Clone, Copy)]
struct Limit {
    /// The sort key of its row.
    of: &'static str,
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
/// processes at once. The interval is longer than a second, because calls do not arrive as regularly as they are sent.
const STARTS: Limit =
    Limit { of: "starts", every: Millis(1_250), burst: 3, ahead: 2, wait: Millis::from_seconds(5) };
/// Half of the account's fixed 5 `FilterLogEvents` a second. The other half belongs to the user's programs.
const LOG_PAGES: Limit =
    Limit { of: "log-pages", every: Millis(400), burst: 1, ahead: 1, wait: Millis::from_seconds(5) };

/// Number of lost races for a turn after which a call gets none.
const RACES_MAX: u32 = 32;

/// The buckets of a stack.
#[derive(Debug)]
pub struct Pace {
    pub(crate) starts: Bucket,
    pub(crate) log_pages: Bucket,
}

impl Default for Pace {
    fn default() -> Self {
        let bucket = |limit| Bucket { limit, row: Mutex::new(None) };
        Self { starts: bucket(STARTS), log_pages: bucket(LOG_PAGES) }
    }
}

/// A bucket, and its row as this process knows it. The lock is held while a turn is taken, not during the wait for it.
#[derive(Debug)]
pub(crate) struct Bucket {
    limit: Limit,
    row: Mutex<Option<PaceRow>>,
}

/// The result of one try to take a turn.
enum Taken {
    Turn(Time),
    /// None is free soon.
    Nothing,
    /// Another function has changed the row meanwhile.
    LostRace,
}

impl Bucket {
    /// Waits for a turn, for `tuning` if tunings share the turns. Returns `false` if none comes soon.
    pub(crate) async fn turn(
        &self,
        table: &impl Table,
        clock: &impl Timer,
        tuning: Option<&str>,
    ) -> Result<bool, StoreError> {
        for _ in 0..RACES_MAX {
            match self.take(table, tuning, clock.now()).await? {
                Taken::Turn(at) => {
                    clock.pause((at - clock.now()).max(Millis::ZERO)).await;
                    return Ok(true);
                }
                Taken::Nothing => return Ok(false),
                Taken::LostRace => {}
            }
        }
        Ok(false)
    }

    async fn take(&self, table: &impl Table, tuning: Option<&str>, now: Time) -> Result<Taken, StoreError> {
        let mut known = self.row.lock().await;
        let row = match known.take() {
            Some(row) => row,
            None => match table.get(&PaceRow::key(self.limit.of)).await? {
                Some(item) => PaceRow::read(&item)?,
                None => PaceRow::new(self.limit.of),
            },
        };
        let Some((at, next)) = self.limit.next(&row, tuning, now) else {
            *known = Some(row);
            return Ok(Taken::Nothing);
        };
        let condition = match row.revision {
            0 => Condition::NotExists,
            revision => Condition::equals(REVISION, revision),
        };
        match table.write(Write::Put(next.row(), condition)).await {
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
