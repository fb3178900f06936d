//! The ledger: keeps `spent + reserved <= cap` at all times, and both within what was granted.
//!
//! A job's worst case is reserved before the job is ordered. The reservation is freed only when the bill is known, or
//! when it is certain that the job never started. The ledger holds sums; the amounts of single jobs are kept with the
//! jobs.

use serde::{Deserialize, Serialize};

use crate::money::MicroUsd;

/// The sums of a tuning's money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The hard cap; `None` = unlimited.
    pub cap: Option<MicroUsd>,
    /// Settled bills.
    pub spent: MicroUsd,
    /// Worst cases of jobs and warm pools whose bill is not known.
    pub reserved: MicroUsd,
    /// Whether a bill was above its reservation: then no further job is ordered.
    pub overrun: bool,
    /// The sum of `spent` and `reserved` when the cap was lowered below it: it stands, but no more is reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<MicroUsd>,
    /// Granted from the month's cap, without what was returned; `None` = the stack has no such cap.
    #[serde(default)]
    pub granted: Option<MicroUsd>,
}

impl Ledger {
    /// Returns an empty ledger under `cap`. With `grants`, only granted money can be reserved.
    pub fn new(cap: Option<MicroUsd>, grants: bool) -> Self {
        let granted = grants.then_some(MicroUsd::ZERO);
        Self { cap, spent: MicroUsd::ZERO, reserved: MicroUsd::ZERO, overrun: false, standing: None, granted }
    }

    /// Returns how much can still be reserved under the cap; `None` = unlimited.
    pub fn available(&self) -> Option<MicroUsd> {
        self.cap.map(|cap| cap.minus(self.spent).minus(self.reserved))
    }

    /// Returns whether cap and grants allow `amount` more.
    pub fn fits(&self, amount: MicroUsd) -> bool {
        self.fits_cap(amount) && self.unused().is_none_or(|unused| amount <= unused)
    }

    /// Returns whether the cap alone allows `amount` more.
    pub fn fits_cap(&self, amount: MicroUsd) -> bool {
        if crate::planted!(CapWithoutReservations) {
            return self.cap.is_none_or(|cap| amount <= cap.minus(self.spent));
        }
        self.available().is_none_or(|available| amount <= available)
    }

    /// Returns the granted money that is neither spent nor reserved; `None` = there are no grants.
    pub fn unused(&self) -> Option<MicroUsd> {
        self.granted.map(|granted| granted.minus(self.spent).minus(self.reserved))
    }

    /// Changes the cap. Amounts already spent and reserved stand, even above it.
    pub fn change_cap(&mut self, cap: MicroUsd) {
        let total = self.spent.plus(self.reserved);
        self.cap = Some(cap);
        self.standing = (total > cap).then_some(total);
    }

    /// Reserves `amount`; the caller has checked that it fits.
    pub fn reserve(&mut self, amount: MicroUsd) {
        self.reserved = self.reserved.plus(amount);
    }

    /// Frees a reservation and books its bill.
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

    /// Returns whether the sums are within the cap and the grants.
    pub fn within_cap(&self) -> bool {
        let total = self.spent.plus(self.reserved);
        let within = |bound: Option<MicroUsd>| bound.is_none_or(|bound| total <= bound);
        let stands = self.standing.is_some_and(|standing| total <= standing);
        (within(self.cap) || stands) && within(self.granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(cap: u64, spent: u64, reserved: u64) -> Ledger {
        Ledger {
            spent: MicroUsd(spent),
            reserved: MicroUsd(reserved),
            ..Ledger::new(Some(MicroUsd(cap)), false)
        }
    }

    #[test]
    fn only_the_rest_of_the_cap_can_be_reserved() {
        let ledger = ledger(100, 30, 50);
        assert_eq!(ledger.available(), Some(MicroUsd(20)));
        assert!(ledger.fits(MicroUsd(20)));
        assert!(!ledger.fits(MicroUsd(21)));
    }

    #[test]
    fn every_amount_fits_without_a_cap() {
        let ledger = Ledger::new(None, false);
        assert_eq!(ledger.available(), None);
        assert!(ledger.fits(MicroUsd(u64::MAX)) && ledger.within_cap());
    }

    #[test]
    fn a_bill_replaces_its_reservation() {
        let mut ledger = ledger(100, 0, 0);
        ledger.reserve(MicroUsd(40));
        ledger.reserve(MicroUsd(40));
        ledger.settle(MicroUsd(40), MicroUsd(40));
        assert_eq!((ledger.spent, ledger.reserved, ledger.overrun), (MicroUsd(40), MicroUsd(40), false));
        ledger.release(MicroUsd(40));
        assert_eq!((ledger.spent, ledger.reserved), (MicroUsd(40), MicroUsd::ZERO));
    }

    #[test]
    fn a_bill_above_its_reservation_is_an_overrun() {
        let mut ledger = ledger(100, 0, 40);
        ledger.settle(MicroUsd(40), MicroUsd(41));
        assert_eq!((ledger.spent, ledger.overrun), (MicroUsd(41), true));
    }

    #[test]
    fn a_lowered_cap_keeps_booked_amounts_and_allows_no_more() {
        let mut ledger = ledger(100, 30, 50);
        ledger.change_cap(MicroUsd(60));
        assert!(ledger.within_cap() && !ledger.fits(MicroUsd(1)));
        ledger.settle(MicroUsd(50), MicroUsd(20));
        assert!(ledger.fits(MicroUsd(10)) && !ledger.fits(MicroUsd(11)));
        ledger.change_cap(MicroUsd(200));
        assert!(ledger.fits(MicroUsd(150)) && ledger.standing.is_none());
    }

    #[test]
    fn the_sums_may_reach_but_not_exceed_the_cap() {
        assert!(ledger(100, 50, 50).within_cap());
        assert!(!ledger(100, 50, 51).within_cap());
    }
}
