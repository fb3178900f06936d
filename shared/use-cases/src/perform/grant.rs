//! Moves money between a month's cap and a tuning.
//!
//! One transaction writes the rows of the months and the fact for the tuning. A request is therefore answered once,
//! however often it is performed, and money is never lost between the two. Concurrent tunings race for the revision of
//! the row.

use tuning::log::fact::{Fact, Recorded};
use tuning::money::grants::month_of;
use tuning::unit::limits::CAP_LEVELS;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;
use wire::names::digest;
use wire::stored::{self, MonthRow, REVISION};

use super::{Actuator, Outcome};
use crate::ports::table::{Condition, Table, TableError, Write};
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, Timer};
use crate::store::StoreError;

/// Number of tries after lost races before the action is deferred.
const RACES_MAX: usize = 8;
/// No money is granted so early in a month: a sweep lets the tunings move their unspent grants on, and these count for
/// the new month's cap.
const TURN: Millis = Millis::from_seconds(180);
/// Index of the fact in the transaction. The rows of months follow.
const FACT_WRITE: usize = 0;

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    /// Grants `wanted`. If the month has less left, grants what is left if that is at least `least`, and otherwise
    /// nothing.
    pub(super) async fn grant(
        &self,
        id: &str,
        n: u32,
        least: MicroUsd,
        wanted: MicroUsd,
    ) -> Result<Outcome, StoreError> {
        let now = self.clock.now();
        let month = month_of(now);
        if self.monthly_cap.is_some() && month_of(now - TURN) != month {
            return Ok(Outcome::Later("the unspent grants of the last month move on first".to_owned()));
        }
        for _ in 0..RACES_MAX {
            let (mut row, unchanged) = self.month(&month).await?;
            let left = self.monthly_cap.map_or(wanted, |cap| row.left(cap));
            let amount = if left < least { MicroUsd::ZERO } else { wanted.min(left) };
            row.granted = row.granted.plus(amount);
            let level = self.monthly_cap.map_or(0, |cap| level(row.granted, cap, left < least));
            let reached = (level > row.reached).then_some(level);
            row.reached = row.reached.max(level);
            let fact = Fact::BudgetGranted { n, month: row.month.clone(), amount, reached };
            let fact = self.fact(format!("granted#{n}"), fact);
            if self.book(id, vec![(row, unchanged)], &fact).await? {
                return Ok(Outcome::Done(Vec::new()));
            }
        }
        Ok(busy())
    }

    /// Returns `amount` to the cap of the first month, and counts it for the second one, even above that month's cap:
    /// the tuning holds the money, and running jobs spend it there.
    pub(super) async fn return_grant(
        &self,
        id: &str,
        n: u32,
        (month, moved_to): (&str, Option<&str>),
        amount: MicroUsd,
    ) -> Result<Outcome, StoreError> {
        for _ in 0..RACES_MAX {
            let (mut row, unchanged) = self.month(month).await?;
            row.granted = row.granted.minus(amount);
            let mut rows = vec![(row, unchanged)];
            if let Some(month) = moved_to {
                let (mut row, unchanged) = self.month(month).await?;
                row.granted = row.granted.plus(amount);
                rows.push((row, unchanged));
            }
            let fact = self.fact(format!("returned#{n}"), Fact::GrantReturned { n });
            if self.book(id, rows, &fact).await? {
                return Ok(Outcome::Done(Vec::new()));
            }
        }
        Ok(busy())
    }

    /// Returns the row of a month, and the condition that it has not changed.
    async fn month(&self, month: &str) -> Result<(MonthRow, Condition), StoreError> {
        Ok(match self.store.table.get(&MonthRow::key(month)).await? {
            Some(item) => {
                let row = MonthRow::read(&item)?;
                let unchanged = Condition::equals(REVISION, row.revision);
                (row, unchanged)
            }
            None => (MonthRow::new(month), Condition::NotExists),
        })
    }

    /// Stores changed rows of months and the resulting fact in one transaction, unless the fact is known. Returns `false`
    /// if a row has changed meanwhile.
    async fn book(
        &self,
        id: &str,
        rows: Vec<(MonthRow, Condition)>,
        fact: &Recorded,
    ) -> Result<bool, StoreError> {
        let mut writes = vec![Write::Put(stored::fact_row(id, fact), Condition::NotExists)];
        for (mut row, unchanged) in rows {
            row.revision += 1;
            writes.push(Write::Put(row.row(), unchanged));
        }
        let token = digest(format!("{id} {writes:?}").as_bytes());
        match self.store.table.transact(writes, &token).await {
            Ok(()) => Ok(true),
            Err(TableError::Conflict(failed)) if failed.contains(&FACT_WRITE) => Ok(true),
            // Overlapping transactions are throttled without a hint which one came first. The next try reads the row
            // again.
            Err(TableError::Conflict(_) | TableError::Throttled) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn busy() -> Outcome {
    Outcome::Later("too many tunings request money from this month's cap at the same time".to_owned())
}

/// Returns the level of `cap` that `granted` reaches. It is the highest level if a request was denied.
fn level(granted: MicroUsd, cap: MicroUsd, denied: bool) -> u32 {
    let [lower, upper, all] = CAP_LEVELS;
    let beyond = |percent: u32| u128::from(granted.0) * 100 >= u128::from(cap.0) * u128::from(percent);
    match () {
        () if denied || beyond(all) => all,
        () if beyond(upper) => upper,
        () if beyond(lower) => lower,
        () => 0,
    }
}
