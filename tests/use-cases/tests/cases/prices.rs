//! Stored prices: looked up once a day, never invented.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use port_tests::memory::MemoryTable;
use use_cases::ports::{Prices, PricesError};
use use_cases::prices::{FRESH, KeptPrices, OwnerPrices, STALE, WithOwnerPrices};

use crate::support::{TestClock, now};

type Answer = Result<Option<u64>, PricesError>;

/// A price list with scripted answers that counts its calls.
#[derive(Default, Clone)]
struct List {
    answer: Arc<Mutex<Option<Answer>>>,
    asked: Arc<AtomicU32>,
}

impl List {
    fn says(&self, answer: Result<Option<u64>, PricesError>) {
        *self.answer.lock().unwrap() = Some(answer);
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Prices for List {
    async fn instance_hour(&self, _instance_type: &str) -> Result<Option<u64>, PricesError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.answer.lock().unwrap().clone().unwrap()
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        self.instance_hour("volume").await
    }
}

fn open() -> (KeptPrices<MemoryTable, List, TestClock>, List, TestClock) {
    let (list, clock) = (List::default(), TestClock::at(1_790_000_000_000));
    let table = Arc::new(MemoryTable::default());
    (KeptPrices { table, list: list.clone(), clock: clock.clone() }, list, clock)
}

fn unavailable() -> Result<Option<u64>, PricesError> {
    Err(PricesError::Unavailable("timed out".to_owned()))
}

#[test]
fn a_price_is_looked_up_once_a_day() {
    let (prices, list, clock) = open();
    list.says(Ok(Some(115_000)));
    for _ in 0..3 {
        assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(115_000)));
    }
    assert_eq!(list.asked(), 1);
    list.says(Ok(Some(120_000)));
    clock.pass(FRESH.0 - 1);
    assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(115_000)));
    clock.pass(1);
    assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(120_000)));
    assert_eq!(now(prices.volume_kilo_gib_hour()), Ok(Some(120_000)), "each price is stored separately");
    assert_eq!(list.asked(), 3);
}

#[test]
fn a_stored_price_is_used_for_a_week_while_the_list_is_unavailable() {
    let (prices, list, clock) = open();
    list.says(Ok(Some(115_000)));
    now(prices.instance_hour("ml.m5.large")).unwrap();
    list.says(unavailable());
    clock.pass(STALE.0 - 1);
    assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(115_000)));
    clock.pass(1);
    assert_eq!(now(prices.instance_hour("ml.m5.large")), unavailable());
}

#[test]
fn an_unknown_price_is_looked_up_again() {
    let (prices, list, clock) = open();
    list.says(Ok(None));
    assert_eq!(now(prices.instance_hour("ml.m9.large")), Ok(None));
    list.says(Ok(Some(1)));
    assert_eq!(now(prices.instance_hour("ml.m9.large")), Ok(Some(1)));
    // The price was removed from the list, so its old value is not a price any more.
    list.says(Ok(None));
    clock.pass(FRESH.0);
    assert_eq!(now(prices.instance_hour("ml.m9.large")), Ok(None));
}

#[test]
fn the_owners_prices_replace_listed_ones_and_the_factor_applies_to_the_others() {
    let list = List::default();
    list.says(Ok(Some(100_001)));
    let owner = OwnerPrices::read("ml.m5.large=0.08,volume=0.14", "0.72").unwrap();
    let prices = WithOwnerPrices { owner, list: list.clone() };
    assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(80_000)));
    assert_eq!(now(prices.volume_kilo_gib_hour()), Ok(Some(208_334)));
    assert_eq!(list.asked(), 0, "the owner's prices need no price list");
    // Rounded up, so that no reservation is below the price.
    assert_eq!(now(prices.instance_hour("ml.g5.xlarge")), Ok(Some(72_001)));
    list.says(Ok(None));
    assert_eq!(now(prices.instance_hour("ml.g5.xlarge")), Ok(None));
    list.says(unavailable());
    assert_eq!(now(prices.instance_hour("ml.g5.xlarge")), unavailable());
}

/// No public trace of the usage type of training volumes was found, and a missing price refused every request.
#[test]
fn a_volume_that_the_list_lacks_has_a_conservative_price_that_the_owner_can_change() {
    let list = List::default();
    list.says(Ok(None));
    let prices = WithOwnerPrices { owner: OwnerPrices::default(), list: list.clone() };
    // 0.30 USD per GB and month of 28 days.
    assert_eq!(now(prices.volume_kilo_gib_hour()), Ok(Some(446_429)));
    list.says(Ok(Some(7)));
    assert_eq!(now(prices.volume_kilo_gib_hour()), Ok(Some(7)));
    list.says(unavailable());
    assert_eq!(now(prices.volume_kilo_gib_hour()), unavailable());
    let owner = OwnerPrices::read("volume=0.14", "").unwrap();
    assert_eq!(now(WithOwnerPrices { owner, list }.volume_kilo_gib_hour()), Ok(Some(208_334)));
}

#[test]
fn invalid_owner_prices_are_refused() {
    for (prices, factor) in [
        ("ml.m5.large", ""),
        ("ml.m5.large=", ""),
        ("ml.m5.large=0", ""),
        ("ml.m5.large=-1", ""),
        ("m5.large=1", ""),
        ("", "0"),
        ("", "-1"),
        ("", "10.000001"),
        ("", "half"),
    ] {
        assert_eq!(OwnerPrices::read(prices, factor), None, "{prices:?} {factor:?}");
    }
}
