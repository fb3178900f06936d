//! The ledger: `spent + reserved <= cap`, always.
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
}

impl Ledger {
    /// An empty ledger under `cap`.
    pub fn new(cap: Option<MicroUsd>) -> Self {
        Self { cap, spent: MicroUsd::ZERO, reserved: MicroUsd::ZERO, overrun: false }
    }

    /// What may still be reserved; `None` = unlimited.
    pub fn available(&self) -> Option<MicroUsd> {
        self.cap.map(|cap| cap.minus(self.spent).minus(self.reserved))
    }

    /// Whether `amount` more may be reserved.
    pub fn fits(&self, amount: MicroUsd) -> bool {
        if crate::planted!(CapWithoutReservations) {
            return self.cap.is_none_or(|cap| amount <= cap.minus(self.spent));
        }
        self.available().is_none_or(|available| amount <= available)
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

    /// Whether the books are within the cap.
    pub fn within_cap(&self) -> bool {
        self.cap.is_none_or(|cap| self.spent.plus(self.reserved) <= cap)
    }
}
