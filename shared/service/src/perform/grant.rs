//! Moves money between a month's cap and a tuning.
//!
//! The month's row and the fact that tells the tuning are written in one transaction: an asking is answered once, however
//! often it is performed, and no money is ever in neither place. Tunings that ask at once race for the row's revision.

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

/// How often a lost race is run again before the action is put off.
const RACES_MAX: usize = 8;
/// The writes of the transaction: the month's row and the fact.
const FACT_WRITE: usize = 1;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// Grants what is `wanted`, or as much as this month has left if that is `least` or more, or else nothing.
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
            let left = if tuning::planted!(GrantAboveCap) { wanted } else { left };
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

    /// Gives `amount` back to `month`.
    pub(super) async fn give_back(
        &self,
        id: &str,
        n: u32,
        month: &str,
        amount: MicroUsd,
    ) -> Result<Outcome, StoreError> {
        let answer = |row: &mut MonthRow| {
            if !tuning::planted!(ReturnNotBooked) {
                row.granted = row.granted.minus(amount);
            }
            self.fact(format!("returned#{n}"), Fact::GrantReturned { n })
        };
        self.book(id, month, answer).await
    }

    /// Changes the month's row by `change` and puts the fact it gives, both or neither, unless the fact is there.
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
            let unless_known =
                if tuning::planted!(GrantAnsweredTwice) { Condition::Always } else { Condition::NotExists };
            let writes =
                vec![Write::Put(row.row(), condition), Write::Put(stored::fact_row(id, &fact), unless_known)];
            match self.store.table.transact(writes, &token).await {
                Ok(()) => return Ok(Outcome::Done(Vec::new())),
                Err(TableError::Conflict(failed)) if failed.contains(&FACT_WRITE) => {
                    return Ok(Outcome::Done(Vec::new()));
                }
                // Two transactions that overlap on a row are told so, not which came first. The next try reads the row anew.
                Err(TableError::Conflict(_) | TableError::Throttled) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Outcome::Later("many tunings ask for money of this month".to_owned()))
    }
}

/// The level of `cap` that `granted` reaches; the highest when there was not enough for an asking.
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
