//! Kept prices: asked for once a day, never made up.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use service::memory::MemoryTable;
use service::ports::{Clock, Prices, PricesError};
use service::prices::{FRESH_MS, KeptPrices, STALE_MS};

/// Futures of the table in memory are ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

#[derive(Clone, Default)]
struct At(Arc<AtomicI64>);

impl Clock for At {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

type Told = Result<Option<u64>, PricesError>;

/// A price list that answers as it is told, and counts.
#[derive(Default, Clone)]
struct List {
    answer: Arc<Mutex<Option<Told>>>,
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

fn open() -> (KeptPrices<MemoryTable, List, At>, List, At) {
    let (list, clock) = (List::default(), At::default());
    clock.0.store(1_790_000_000_000, Ordering::Relaxed);
    let table = Arc::new(MemoryTable::default());
    (KeptPrices { table, list: list.clone(), clock: clock.clone() }, list, clock)
}

fn unavailable() -> Result<Option<u64>, PricesError> {
    Err(PricesError::Unavailable("timed out".to_owned()))
}

#[test]
fn a_price_is_asked_for_once_a_day() {
    let (prices, list, clock) = open();
    list.says(Ok(Some(115_000)));
    for _ in 0..3 {
        assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(115_000)));
    }
    assert_eq!(list.asked(), 1);
    list.says(Ok(Some(120_000)));
    clock.0.fetch_add(FRESH_MS - 1, Ordering::Relaxed);
    assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(115_000)));
    clock.0.fetch_add(1, Ordering::Relaxed);
    assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(120_000)));
    assert_eq!(now(prices.volume_kilo_gib_hour()), Ok(Some(120_000)), "each price is kept by itself");
    assert_eq!(list.asked(), 3);
}

#[test]
fn an_old_price_stands_in_for_a_week_while_the_list_is_silent() {
    let (prices, list, clock) = open();
    list.says(Ok(Some(115_000)));
    now(prices.instance_hour("ml.m5.large")).unwrap();
    list.says(unavailable());
    clock.0.fetch_add(STALE_MS - 1, Ordering::Relaxed);
    assert_eq!(now(prices.instance_hour("ml.m5.large")), Ok(Some(115_000)));
    clock.0.fetch_add(1, Ordering::Relaxed);
    assert_eq!(now(prices.instance_hour("ml.m5.large")), unavailable());
}

#[test]
fn what_the_list_does_not_know_is_unknown_and_asked_again() {
    let (prices, list, clock) = open();
    list.says(Ok(None));
    assert_eq!(now(prices.instance_hour("ml.m9.large")), Ok(None));
    list.says(Ok(Some(1)));
    assert_eq!(now(prices.instance_hour("ml.m9.large")), Ok(Some(1)));
    // It was taken off the list: what it once cost is no price.
    list.says(Ok(None));
    clock.0.fetch_add(FRESH_MS, Ordering::Relaxed);
    assert_eq!(now(prices.instance_hour("ml.m9.large")), Ok(None));
}
