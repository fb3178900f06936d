//! The money that one tuning holds from the stack's monthly cap.
//!
//! The monthly cap is one row for the whole stack. A tuning requests an amount from it, and can reserve only what was
//! granted. Tunings therefore need no coordination with each other, and the decider stays a pure function: a grant is a
//! fact. A grant counts for the month in which it was given. When that month ends, unspent money moves to the next
//! month, so that money counts for the month in which it is spent. Amounts are kept by month, so that unused money
//! returns to its own month; [`crate::money::ledger::Ledger::granted`] is their sum.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Span};
use serde::{Deserialize, Serialize};

use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// Returns the month (UTC) of a time, such as `2026-11`.
///
/// ```
/// use tuning::money::grants::month_of;
/// use tuning::unit::time::Time;
/// assert_eq!(month_of(Time(1_793_491_199_999)), "2026-10");
/// assert_eq!(month_of(Time(1_793_491_200_000)), "2026-11");
/// ```
pub fn month_of(time: Time) -> String {
    let date = date_of(time);
    format!("{:04}-{:02}", date.year(), date.month())
}

/// Returns when the month of a time ends.
pub fn month_end(time: Time) -> Time {
    let next = date_of(time).last_of_month().saturating_add(Span::new().days(1));
    let since = next.at(0, 0, 0, 0).duration_since(EPOCH);
    Time(since.as_millis().try_into().unwrap_or(i64::MAX))
}

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Returns the date in UTC. A time outside the years -9999 to 9999 is that year's end.
fn date_of(time: Time) -> Date {
    EPOCH.saturating_add(SignedDuration::from_millis(time.0)).date()
}

/// The money that a tuning holds of the monthly caps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grants {
    /// The number of requests so far.
    pub asked: u32,
    /// The number of the request that has no answer yet.
    pub open: Option<u32>,
    /// Granted money without what was returned, by month.
    pub by_month: BTreeMap<String, MicroUsd>,
    /// The number of returns so far.
    pub returned: u32,
    /// The numbers of the returns that are not known to be booked.
    pub returns: BTreeSet<u32>,
    /// Set while the month had nothing left at the last request.
    pub denied: Option<Denied>,
    /// Levels of monthly caps (month, percent) that its grants reached and whose notice was not ordered yet.
    pub unpublished: BTreeSet<(String, u32)>,
    /// Levels of monthly caps whose notice was ordered.
    pub published: BTreeSet<(String, u32)>,
}

/// The monthly cap had nothing left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// The first denial since the last grant.
    pub since: Time,
    /// When the next request may be made.
    pub retry_at: Time,
}

impl Grants {
    /// Returns all money held.
    pub fn total(&self) -> MicroUsd {
        self.by_month.values().fold(MicroUsd::ZERO, |sum, amount| sum.plus(*amount))
    }

    /// Returns whether every request was answered and every return booked.
    pub fn is_settled(&self) -> bool {
        self.open.is_none() && self.returns.is_empty()
    }

    pub(crate) fn ask(&mut self, n: u32) {
        self.asked = n;
        self.open = Some(n);
    }

    pub(crate) fn order_return(&mut self, n: u32, month: &str, amount: MicroUsd, moved_to: Option<&str>) {
        self.returned = n;
        self.returns.insert(n);
        if let Some(granted) = self.by_month.get_mut(month) {
            *granted = granted.minus(amount);
        }
        if let Some(month) = moved_to {
            let granted = self.by_month.entry(month.to_owned()).or_default();
            *granted = granted.plus(amount);
        }
    }

    /// Returns the latest month before `month` whose money is not wholly spent, with the rest. `unspent` is the rest of all
    /// months. Money of the earliest month is spent first.
    pub(crate) fn unspent_before(&self, month: &str, mut unspent: MicroUsd) -> Option<(&String, MicroUsd)> {
        for (of, granted) in self.by_month.iter().rev() {
            let rest = unspent.min(*granted);
            if of.as_str() < month && rest > MicroUsd::ZERO {
                return Some((of, rest));
            }
            unspent = unspent.minus(*granted);
        }
        None
    }

    pub(crate) fn mark_published(&mut self, month: &str, percent: u32) {
        let level = (month.to_owned(), percent);
        self.unpublished.remove(&level);
        self.published.insert(level);
    }
}
