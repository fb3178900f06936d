//! The ledger: `spent + reserved <= cap`, always, and no more than was granted where money comes in grants.
//!
//! A job's worst case is reserved before it is ordered and freed only when its bill is known (or when it is certain that
//! it never started). Amounts of single jobs are kept with the jobs; here are the sums.

use serde::{Deserialize, Serialize};

use crate::money::MicroUsd;

/// Sums of a tuning's money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Hard cap; `None` = unlimited.
    pub cap: Option<MicroUsd>,
    /// Settled bills.
    pub spent: MicroUsd,
    /// Worst cases of jobs whose bill is not known.
    pub reserved: MicroUsd,
    /// Whether a bill was above its reservation: then no further job is ordered.
    pub overrun: bool,
    /// Granted out of the stack's month's cap, less what was given back; `None` = there is no such cap.
    #[serde(default)]
    pub granted: Option<MicroUsd>,
}

impl Ledger {
    /// An empty ledger under `cap`; with `grants`, only what is granted may be reserved.
    pub fn new(cap: Option<MicroUsd>, grants: bool) -> Self {
        let granted = grants.then_some(MicroUsd::ZERO);
        Self { cap, spent: MicroUsd::ZERO, reserved: MicroUsd::ZERO, overrun: false, granted }
    }

    /// What may still be reserved; `None` = unlimited.
    pub fn available(&self) -> Option<MicroUsd> {
        self.cap.map(|cap| cap.minus(self.spent).minus(self.reserved))
    }

    /// Whether `amount` more may be reserved: cap and grants allow it.
    pub fn fits(&self, amount: MicroUsd) -> bool {
        self.fits_cap(amount) && self.unused().is_none_or(|unused| amount <= unused)
    }

    /// Whether the cap allows `amount` more, whatever is granted.
    pub fn fits_cap(&self, amount: MicroUsd) -> bool {
        self.available().is_none_or(|available| amount <= available)
    }

    /// What is granted and neither spent nor reserved; `None` = money does not come in grants.
    pub fn unused(&self) -> Option<MicroUsd> {
        self.granted.map(|granted| granted.minus(self.spent).minus(self.reserved))
    }

    /// Reserves `amount` (which the caller knows to fit).
    pub fn reserve(&mut self, amount: MicroUsd) {
        self.reserved = self.reserved.plus(amount);
    }

    /// Frees a reservation and books the bill that took its place.
    pub fn settle(&mut self, reservation: MicroUsd, bill: MicroUsd) {
        self.reserved = self.reserved.minus(reservation);
        self.spent = self.spent.plus(bill);
        if bill > reservation {
            self.overrun = true;
        }
    }

    /// Frees the reservation of a job that never started.
    pub fn release(&mut self, reservation: MicroUsd) {
        self.reserved = self.reserved.minus(reservation);
    }

    /// Whether the books are within the cap and the grants.
    pub fn within_cap(&self) -> bool {
        let total = self.spent.plus(self.reserved);
        let within = |bound: Option<MicroUsd>| bound.is_none_or(|bound| total <= bound);
        within(self.cap) && within(self.granted)
    }
}
