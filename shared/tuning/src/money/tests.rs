//! Compares every operation of money with the same one on unbounded integers, for random amounts and for all combinations
//! of the amounts at its bounds.

use num_bigint::BigUint;
use proptest::prelude::*;

use crate::money::ledger::Ledger;
use crate::unit::money::{MicroUsd, Rate};

/// Amounts around 0, the least unit of text, the units of time, 32 bits and 64 bits.
const BOUNDS: [u64; 16] = [
    0,
    1,
    2,
    99,
    100,
    101,
    3_599,
    3_600,
    999_999,
    1_000_000,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    u64::MAX / 2,
    u64::MAX / 2 + 1,
    u64::MAX - 1,
    u64::MAX,
];

fn exact(amount: MicroUsd) -> BigUint {
    BigUint::from(amount.0)
}

/// Returns the amount, or the largest one.
fn bounded(amount: &BigUint) -> MicroUsd {
    MicroUsd(u64::try_from(amount).unwrap_or(u64::MAX))
}

fn less(a: &BigUint, b: &BigUint) -> BigUint {
    if a > b { a - b } else { BigUint::ZERO }
}

fn check_pair(a: MicroUsd, b: MicroUsd) {
    assert_eq!(a.plus(b), bounded(&(exact(a) + exact(b))), "{a:?} + {b:?}");
    assert_eq!(a.minus(b), bounded(&less(&exact(a), &exact(b))), "{a:?} - {b:?}");
    let shares = u32::try_from(b.0).unwrap_or(u32::MAX);
    let share = if shares == 0 { exact(a) } else { exact(a) / shares };
    assert_eq!(a.shared_by(shares), bounded(&share), "{a:?} / {shares}");
    let all = exact(a.shared_by(shares)) * shares.max(1);
    assert!(all <= exact(a) && exact(a) < all + shares.max(1), "{a:?} / {shares} loses more than its rest");
}

/// The text of an amount is the next ten-thousandth of a dollar, never less.
fn check_text(amount: MicroUsd) {
    let text = amount.to_string();
    let (whole, rest) = text.split_once('.').expect("a point");
    let shown = whole.parse::<BigUint>().expect("dollars") * 1_000_000_u32
        + rest.parse::<BigUint>().expect("four decimals") * 100_u32;
    assert!(
        rest.len() == 4 && shown >= exact(amount) && shown < exact(amount) + 100_u32,
        "{amount:?}: {text}"
    );
}

/// A cost is the exact fraction, rounded up to a micro-dollar.
fn check_cost(rate: Rate, seconds: u64, instances: u32, volume_gib: u32) {
    let milli =
        BigUint::from(rate.instance_hour) * 1_000_u32 + BigUint::from(rate.volume_kilo_gib_hour) * volume_gib;
    let product = milli * instances * seconds;
    let parts = BigUint::from(3_600_000_u32);
    let cost = (&product + &parts - 1_u32) / &parts;
    let context = format!("{rate:?}, {seconds} s, {instances} instances, {volume_gib} GiB");
    assert_eq!(rate.cost(seconds, instances, volume_gib), bounded(&cost), "{context}");
}

#[test]
fn every_operation_is_exact_at_its_bounds() {
    for a in BOUNDS {
        check_text(MicroUsd(a));
        for b in BOUNDS {
            check_pair(MicroUsd(a), MicroUsd(b));
        }
    }
    let counts = [0, 1, 2, 100, u32::MAX];
    for (instance_hour, volume_kilo_gib_hour) in BOUNDS.iter().flat_map(|a| BOUNDS.map(|b| (*a, b))) {
        let rate = Rate { instance_hour, volume_kilo_gib_hour };
        for seconds in BOUNDS {
            for (instances, volume_gib) in counts.iter().flat_map(|a| counts.map(|b| (*a, b))) {
                check_cost(rate, seconds, instances, volume_gib);
            }
        }
    }
}

/// What can happen to a ledger. An index counts the open reservations, and begins again after the last one.
#[derive(Debug, Clone, Copy)]
enum Operation {
    /// Reserves an amount if it fits.
    Reserve(u64),
    /// Books a bill for a reservation.
    Settle(usize, u64),
    /// Frees a reservation.
    Release(usize),
    /// Raises a reservation.
    Raise(usize, u64),
    /// Changes the cap.
    Cap(u64),
    /// Grants an amount, if the month has a cap.
    Grant(u64),
}

impl Operation {
    fn amount(self) -> MicroUsd {
        MicroUsd(match self {
            Self::Reserve(amount)
            | Self::Settle(_, amount)
            | Self::Raise(_, amount)
            | Self::Cap(amount)
            | Self::Grant(amount) => amount,
            Self::Release(_) => 1,
        })
    }
}

/// The same money as single amounts.
#[derive(Debug, Default)]
struct Model {
    cap: Option<BigUint>,
    granted: Option<BigUint>,
    bills: Vec<BigUint>,
    open: Vec<MicroUsd>,
}

impl Model {
    fn spent(&self) -> BigUint {
        self.bills.iter().sum()
    }

    fn reserved(&self) -> BigUint {
        self.open.iter().map(|amount| exact(*amount)).sum()
    }

    fn total(&self) -> BigUint {
        self.spent() + self.reserved()
    }

    /// Returns whether a sum is within the cap and the grants.
    fn allows(&self, sum: &BigUint) -> bool {
        self.cap.iter().chain(&self.granted).all(|bound| sum <= bound)
    }

    fn taken(&mut self, index: usize) -> Option<MicroUsd> {
        let index = index.checked_rem(self.open.len())?;
        Some(self.open.swap_remove(index))
    }

    /// Makes the operation here and in the ledger. Returns whether the ledger records a sum above its bound with it.
    fn perform(&mut self, ledger: &mut Ledger, operation: Operation) -> bool {
        match operation {
            Operation::Reserve(amount) => {
                let amount = MicroUsd(amount);
                let sum = self.total() + exact(amount);
                let fits = self.allows(&sum) || amount == MicroUsd::ZERO;
                assert_eq!(ledger.fits(amount), fits, "{amount:?}, {ledger:?}");
                if fits {
                    ledger.reserve(amount);
                    self.open.push(amount);
                }
                return false;
            }
            Operation::Settle(index, bill) => {
                let Some(reservation) = self.taken(index) else { return false };
                ledger.settle(reservation, MicroUsd(bill));
                self.bills.push(BigUint::from(bill));
            }
            Operation::Release(index) => {
                let Some(reservation) = self.taken(index) else { return false };
                ledger.release(reservation);
            }
            Operation::Raise(index, amount) => {
                let Some(reservation) = self.taken(index) else { return false };
                ledger.raise(MicroUsd(amount));
                self.open.push(bounded(&(exact(reservation) + amount)));
            }
            Operation::Cap(cap) => {
                ledger.change_cap(MicroUsd(cap));
                self.cap = Some(BigUint::from(cap));
            }
            Operation::Grant(amount) => {
                let Some(granted) = &self.granted else { return false };
                let granted = bounded(&(granted + amount));
                ledger.granted = Some(granted);
                self.granted = Some(exact(granted));
                return false;
            }
        }
        true
    }

    fn check(&self, ledger: &Ledger, amount: MicroUsd) {
        let total = self.total();
        assert_eq!((exact(ledger.spent), exact(ledger.reserved)), (self.spent(), self.reserved()));
        let left =
            |bound: &Option<BigUint>, used: &BigUint| bound.as_ref().map(|bound| bounded(&less(bound, used)));
        assert_eq!(ledger.available(), left(&self.cap, &total));
        assert_eq!(ledger.unused(), left(&self.granted, &total));
        let at_end = left(&self.cap, &self.spent());
        assert_eq!(ledger.can_ever_fit(amount), at_end.is_none_or(|left| amount <= left));
        let fits_cap = self.cap.as_ref().is_none_or(|cap| exact(amount) <= less(cap, &total));
        assert_eq!(ledger.fits_cap(amount), fits_cap);
        assert!(self.granted.is_some() || ledger.missing(amount) == MicroUsd::ZERO);
        let sum = &total + exact(amount);
        if let Some(granted) = self.granted.as_ref().filter(|_| sum <= BigUint::from(u64::MAX)) {
            assert_eq!(ledger.missing(amount), bounded(&less(&sum, granted)));
        }
        assert!(ledger.within_cap(), "a sum above its bound stands");
    }
}

/// Performs the operations on a ledger and on the model, and compares them after each. Ends at a sum that no ledger can
/// contain: it counts as the largest amount, above every cap.
fn perform(cap: Option<u64>, granted: Option<u64>, operations: &[Operation]) {
    let mut ledger = Ledger::new(cap.map(MicroUsd), granted.is_some());
    ledger.granted = granted.map(MicroUsd);
    let mut model =
        Model { cap: cap.map(BigUint::from), granted: granted.map(BigUint::from), ..Model::default() };
    for operation in operations {
        let before = model.total();
        let records = model.perform(&mut ledger, *operation);
        let total = model.total();
        if total > BigUint::from(u64::MAX) {
            assert!(ledger.spent.plus(ledger.reserved) == MicroUsd(u64::MAX));
            return;
        }
        if let Operation::Reserve(_) = operation {
            let sum = ledger.spent.plus(ledger.reserved);
            let is_within = ledger.cap.iter().chain(&ledger.granted).all(|bound| sum <= *bound);
            assert!(total == before || is_within, "P1: a reservation is within cap and grants");
        }
        if records {
            let standing = (!model.allows(&total)).then(|| bounded(&total));
            assert_eq!(ledger.standing, standing);
        }
        model.check(&ledger, operation.amount());
    }
}

/// P1: spent + reserved <= cap at every step. A reservation and three operations of any kind, with amounts around a cap of
/// 2 and around the largest amount, in every order.
#[test]
fn every_short_sequence_is_exact() {
    for (cap, amounts) in [(2, [0, 1, 2, 3]), (u64::MAX, [0, 1, u64::MAX - 1, u64::MAX])] {
        let of_amount = |amount| {
            let first =
                [Operation::Reserve(amount), Operation::Settle(0, amount), Operation::Raise(0, amount)];
            first.into_iter().chain([Operation::Cap(amount), Operation::Grant(amount)])
        };
        let all: Vec<Operation> =
            amounts.into_iter().flat_map(of_amount).chain([Operation::Release(0)]).collect();
        for (cap, granted) in [(Some(cap), None), (Some(cap), Some(cap - 1)), (None, Some(cap)), (None, None)]
        {
            for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
                for c in &all {
                    perform(cap, granted, &[Operation::Reserve(1), a, b, *c]);
                }
            }
        }
    }
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_u64, 0..2_000_000_u64, any::<u64>(), proptest::sample::select(BOUNDS.to_vec())]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => amount().prop_map(Operation::Reserve),
        2 => (any::<usize>(), amount()).prop_map(|(index, bill)| Operation::Settle(index, bill)),
        1 => any::<usize>().prop_map(Operation::Release),
        1 => (any::<usize>(), amount()).prop_map(|(index, amount)| Operation::Raise(index, amount)),
        1 => amount().prop_map(Operation::Cap),
        1 => amount().prop_map(Operation::Grant),
    ]
}

proptest! {
    #[test]
    fn any_amounts_are_exact(a: u64, b: u64, seconds in amount(), instances: u32, volume_gib: u32) {
        check_pair(MicroUsd(a), MicroUsd(b));
        check_text(MicroUsd(a));
        check_cost(Rate { instance_hour: a, volume_kilo_gib_hour: b }, seconds, instances, volume_gib);
    }

    #[test]
    fn any_sequence_is_exact(
        cap in proptest::option::of(amount()),
        granted in proptest::option::of(amount()),
        operations in proptest::collection::vec(operation(), 0..60),
    ) {
        perform(cap, granted, &operations);
    }
}
