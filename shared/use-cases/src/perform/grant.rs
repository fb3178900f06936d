//! Moves money between a month's cap and a tuning.
//!
//! One transaction writes the row of the month and the fact for the tuning. A request is therefore answered once,
//! however often it is performed, and money is never lost between the two. Concurrent tunings race for the revision of
//! the row.

use tuning::fact::{Fact, Recorded};
use tuning::limits::CAP_LEVELS;
use tuning::money::MicroUsd;
use wire::names::digest;
use wire::stored::{self, MonthRow, REVISION, month_of};

use super::{Actuator, Outcome};
use crate::ports::table::{Condition, Table, TableError, Write};
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, Clock};
use crate::store::StoreError;

/// Number of tries after lost races before the action is deferred.
const RACES_MAX: usize = 8;
/// Index of the fact in the transaction. The row of the month is at index 0.
const FACT_WRITE: usize = 1;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// Grants `wanted`. If the month has less left, grants what is left if that is at least `least`, and otherwise
    /// nothing.
    pub(super) async fn grant(
        &self,
        id: &str,
        n: u32,
        least: MicroUsd,
        wanted: MicroUsd,
    ) -> Result<Outcome, StoreError> {
        let month = month_of(self.clock.now());
        let answer = |row: &mut MonthRow| {
            let left = self.monthly_cap.map_or(wanted, |cap| row.left(cap));
            let amount = if left < least { MicroUsd::ZERO } else { wanted.min(left) };
            row.granted = row.granted.plus(amount);
            let level = self.monthly_cap.map_or(0, |cap| level(row.granted, cap, left < least));
            let reached = (level > row.reached).then_some(level);
            row.reached = row.reached.max(level);
            let fact = Fact::BudgetGranted { n, month: row.month.clone(), amount, reached };
            self.fact(format!("granted#{n}"), fact)
        };
        self.book(id, &month, answer).await
    }

    /// Returns `amount` to the cap of `month`.
    pub(super) async fn return_grant(
        &self,
        id: &str,
        n: u32,
        month: &str,
        amount: MicroUsd,
    ) -> Result<Outcome, StoreError> {
        let answer = |row: &mut MonthRow| {
            row.granted = row.granted.minus(amount);
            self.fact(format!("returned#{n}"), Fact::GrantReturned { n })
        };
        self.book(id, month, answer).await
    }

    /// Applies `change` to the row of the month and stores the resulting fact in the same transaction, unless the fact
    /// is known.
    async fn book(
        &self,
        id: &str,
        month: &str,
        change: impl Fn(&mut MonthRow) -> Recorded,
    ) -> Result<Outcome, StoreError> {
        for _ in 0..RACES_MAX {
            let stored = self.store.table.get(&MonthRow::key(month)).await?;
            let mut row = match &stored {
                Some(item) => MonthRow::read(item)?,
                None => MonthRow::new(month),
            };
            let condition = match &stored {
                Some(_) => Condition::equals(REVISION, row.revision),
                None => Condition::NotExists,
            };
            let fact = change(&mut row);
            row.revision += 1;
            let token = digest(format!("{id} {} {month} {} {fact:?}", fact.key, row.revision).as_bytes());
            let writes = vec![
                Write::Put(row.row(), condition),
                Write::Put(stored::fact_row(id, &fact), Condition::NotExists),
            ];
            match self.store.table.transact(writes, &token).await {
                Ok(()) => return Ok(Outcome::Done(Vec::new())),
                Err(TableError::Conflict(failed)) if failed.contains(&FACT_WRITE) => {
                    return Ok(Outcome::Done(Vec::new()));
                }
                // Overlapping transactions are throttled without a hint which one came first. The next try reads the
                // row again.
                Err(TableError::Conflict(_) | TableError::Throttled) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Outcome::Later("too many tunings request money from this month's cap at the same time".to_owned()))
    }
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
