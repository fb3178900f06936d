//! The ledger: keeps `spent + reserved <= cap` at all times, and both within what was granted.
//!
//! A job's worst case is reserved before the job is ordered. The reservation is freed only when the bill is known, or
//! when it is certain that the job never started. The ledger holds sums; the amounts of single jobs are kept with the
//! jobs.
//!
//! A service that bills more than the limits of a job allow breaks the assumption behind its worst case. The bill is
//! booked in full. Since other jobs can have the same excess, it is added to every reservation: of running jobs at
//! once, and of later jobs when they are quoted.

use serde::{Deserialize, Serialize};

use crate::unit::money::MicroUsd;

/// The sums of a tuning's money.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The hard cap; `None` = unlimited.
    pub cap: Option<MicroUsd>,
    /// Settled bills.
    pub spent: MicroUsd,
    /// Worst cases of jobs and warm pools whose bill is not known.
    pub reserved: MicroUsd,
    /// The largest excess of a bill above the worst case of its job. Every reservation contains it.
    pub margin: MicroUsd,
    /// The sum of `spent` and `reserved` while that is above the cap or the grants, because the cap was lowered or a
    /// bill was above its reservation: the sum stands, but it cannot grow.
    pub standing: Option<MicroUsd>,
    /// Granted from the month's cap, without what was returned; `None` = the stack has no such cap.
    pub granted: Option<MicroUsd>,
}

impl Ledger {
    /// Returns an empty ledger under `cap`. With `grants`, only granted money can be reserved.
    pub fn new(cap: Option<MicroUsd>, grants: bool) -> Self {
        Self { cap, granted: grants.then_some(MicroUsd::ZERO), ..Self::default() }
    }

    /// Returns the sum of what is spent and what is reserved.
    fn total(&self) -> MicroUsd {
        self.spent.plus(self.reserved)
    }

    /// Returns whether a bill was above its reservation.
    pub fn has_overrun(&self) -> bool {
        self.margin > MicroUsd::ZERO
    }

    /// Returns how much can still be reserved under the cap; `None` = unlimited.
    pub fn available(&self) -> Option<MicroUsd> {
        self.cap.map(|cap| cap.minus(self.total()))
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
        if crate::planted!(CapHalfUsed) {
            let half = |cap: MicroUsd| MicroUsd(cap.0 / 2).minus(self.total());
            return self.cap.is_none_or(|cap| amount <= half(cap));
        }
        self.available().is_none_or(|available| amount <= available)
    }

    /// Returns whether the cap allows `amount` more once all reservations are free.
    pub fn can_ever_fit(&self, amount: MicroUsd) -> bool {
        self.cap.is_none_or(|cap| amount <= cap.minus(self.spent))
    }

    /// Returns the granted money that is neither spent nor reserved; `None` = there are no grants.
    pub fn unused(&self) -> Option<MicroUsd> {
        self.granted.map(|granted| granted.minus(self.total()))
    }

    /// Returns the grant without which `amount` more cannot be reserved; 0 without grants. After a bill above its
    /// reservation, it includes what is already spent or reserved beyond the grants.
    pub fn missing(&self, amount: MicroUsd) -> MicroUsd {
        self.granted.map_or(MicroUsd::ZERO, |granted| self.total().plus(amount).minus(granted))
    }

    /// Changes the cap. Amounts already spent and reserved stand, even above it.
    pub fn change_cap(&mut self, cap: MicroUsd) {
        self.cap = Some(cap);
        self.record_standing();
    }

    /// Reserves `amount`; the caller has checked that it fits.
    pub fn reserve(&mut self, amount: MicroUsd) {
        self.reserved = self.reserved.plus(amount);
    }

    /// Raises a reservation by `amount` after a bill above its own, even above the cap.
    pub(crate) fn raise(&mut self, amount: MicroUsd) {
        self.reserved = self.reserved.plus(amount);
        self.record_standing();
    }

    pub(crate) fn settle(&mut self, reservation: MicroUsd, bill: MicroUsd) {
        self.reserved = self.reserved.minus(reservation);
        self.spent = self.spent.plus(bill);
        self.record_standing();
    }

    /// Frees the reservation of a job that never started.
    pub fn release(&mut self, reservation: MicroUsd) {
        self.reserved = self.reserved.minus(reservation);
        self.record_standing();
    }

    /// Returns the least of cap and grants; `None` = unlimited.
    fn bound(&self) -> Option<MicroUsd> {
        self.cap.into_iter().chain(self.granted).min()
    }

    fn record_standing(&mut self) {
        let total = self.total();
        self.standing = self.bound().and_then(|bound| (total > bound).then_some(total));
    }

    /// Returns whether the sums are within the cap and the grants, or stand above them.
    pub fn within_cap(&self) -> bool {
        let total = self.total();
        let stands = self.standing.is_some_and(|standing| total <= standing);
        stands || self.bound().is_none_or(|bound| total <= bound)
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
    fn a_bill_replaces_its_reservation() {
        let mut ledger = ledger(100, 0, 0);
        ledger.reserve(MicroUsd(40));
        ledger.reserve(MicroUsd(40));
        ledger.settle(MicroUsd(40), MicroUsd(40));
        assert_eq!((ledger.spent, ledger.reserved), (MicroUsd(40), MicroUsd(40)));
        ledger.release(MicroUsd(40));
        assert_eq!((ledger.spent, ledger.reserved), (MicroUsd(40), MicroUsd::ZERO));
    }

    #[test]
    fn a_bill_above_its_reservation_stands_until_the_sums_are_within_the_cap_again() {
        let mut ledger = ledger(100, 0, 100);
        ledger.settle(MicroUsd(40), MicroUsd(43));
        ledger.raise(MicroUsd(3));
        assert_eq!(ledger.standing, Some(MicroUsd(106)));
        assert!(ledger.within_cap() && !ledger.fits(MicroUsd(1)));
        ledger.settle(MicroUsd(63), MicroUsd(30));
        assert_eq!(ledger.standing, None);
        assert!(ledger.fits(MicroUsd(27)) && !ledger.fits(MicroUsd(28)));
        ledger.reserve(MicroUsd(28));
        assert!(!ledger.within_cap());
    }

    #[test]
    fn the_next_grant_pays_what_was_booked_beyond_the_grants() {
        let mut ledger = Ledger::new(None, true);
        ledger.granted = Some(MicroUsd(50));
        ledger.reserve(MicroUsd(50));
        ledger.settle(MicroUsd(50), MicroUsd(60));
        assert!(ledger.within_cap() && !ledger.fits(MicroUsd(1)));
        assert_eq!(ledger.missing(MicroUsd(20)), MicroUsd(30));
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
