//! Money out of the stack's month's cap, as one tuning holds it.
//!
//! The month's cap is one row for the whole stack; a tuning asks it for an amount, and only what was granted may be
//! reserved. So tunings need not agree with one another, and the decider stays a pure function: a grant is a fact. A
//! grant counts for the month in which it was given, whenever it is spent. Amounts here are kept by month, so that what
//! is given back goes where it came from; [`crate::ledger::Ledger::granted`] is their sum.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::money::MicroUsd;

/// What a tuning holds of the months' caps.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grants {
    /// How often it asked.
    pub asked: u32,
    /// The asking that has no answer yet.
    pub open: Option<u32>,
    /// Granted less given back, by month.
    pub by_month: BTreeMap<String, MicroUsd>,
    /// How often it gave back.
    pub returned: u32,
    /// Returns that are not known to be booked.
    pub returns: BTreeSet<u32>,
    /// That the month had nothing left when last asked.
    pub denied: Option<Denied>,
    /// Shares of months' caps (month, percent) that its grants reached and nobody was told of yet.
    pub reached: BTreeSet<(String, u32)>,
    /// Those of which people were told.
    pub told: BTreeSet<(String, u32)>,
}

/// The month's cap had nothing left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// When that was first so, since the last grant, ms.
    pub since: i64,
    /// It is asked again then, ms.
    pub retry_at: i64,
}

impl Grants {
    /// All that is held.
    pub fn total(&self) -> MicroUsd {
        self.by_month.values().fold(MicroUsd::ZERO, |sum, amount| sum.plus(*amount))
    }

    /// Whether every asking was answered and every return booked.
    pub fn is_settled(&self) -> bool {
        self.open.is_none() && self.returns.is_empty()
    }

    pub(crate) fn ask(&mut self, n: u32) {
        self.asked = n;
        self.open = Some(n);
    }

    pub(crate) fn give_back(&mut self, n: u32, month: &str, amount: MicroUsd) {
        self.returned = n;
        self.returns.insert(n);
        if let Some(held) = self.by_month.get_mut(month) {
            *held = held.minus(amount);
        }
    }

    pub(crate) fn told(&mut self, month: &str, percent: u32) {
        let level = (month.to_owned(), percent);
        self.reached.remove(&level);
        self.told.insert(level);
    }
}
