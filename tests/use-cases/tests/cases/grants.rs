//! Grants from a month's cap: a request is answered once, whatever fails, and the grants never exceed the cap.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use port_tests::memory::MemoryTable;
use tuning::log::fact::Fact;
use tuning::log::ruling::{GrantOrder, Order};
use tuning::unit::money::MicroUsd;
use use_cases::perform::{Actuator, CLAIM, Effect, Performed};
use use_cases::ports::table::{Condition, Page, Query, Table, TableError, Write};
use wire::item::{Item, Key};
use wire::stored::{self, ActionStatus, MonthRow};

use crate::support::{Script, Service, TestBus, TestClock, action_row, actuator, now, order};

/// The last second of November 2026.
const NOVEMBER: i64 = 1_796_083_199_000;
const MONTH: &str = "2026-11";

/// The in-memory table with faults. Another tuning takes a dollar of the month directly before each of the next `races`
/// transactions, and another actuator grants four dollars before each of the next `rivals`. The answers to the next `lost` transactions are lost. Before both, the next `overlap` transactions
/// conflict with a concurrent one.
#[derive(Default)]
struct Contended {
    table: MemoryTable,
    races: AtomicU32,
    rivals: AtomicU32,
    overlap: AtomicU32,
    lost: AtomicU32,
    transactions: Mutex<u32>,
}

fn take(counter: &AtomicU32) -> bool {
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
}

impl Table for Contended {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        self.table.get(key).await
    }
    async fn write(&self, write: Write) -> Result<(), TableError> {
        self.table.write(write).await
    }
    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        *self.transactions.lock().unwrap() += 1;
        if take(&self.overlap) {
            return Err(TableError::Throttled);
        }
        if take(&self.races) {
            let stored = self.table.get(&MonthRow::key(MONTH)).await?;
            let mut row = stored.map_or_else(|| MonthRow::new(MONTH), |item| MonthRow::read(&item).unwrap());
            row.granted = row.granted.plus(MicroUsd(1_000_000));
            row.revision += 1;
            self.table.write(Write::Put(row.row(), Condition::Always)).await?;
        }
        if take(&self.rivals) {
            let table = Arc::new(self.table.clone());
            let rival = capped(actuator(&table, &idle()), 10);
            let action = order(&*table, "rival-1", request(1, 1_000_000, 4_000_000));
            assert_eq!(rival.perform("rival-1", &action).await, Ok(Performed::Done(Effect::Other)));
        }
        let done = self.table.transact(writes, token).await;
        if take(&self.lost) { Err(TableError::Unavailable("no answer".to_owned())) } else { done }
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.table.query(query).await
    }
}

/// No action about money calls the training service.
fn idle() -> Service {
    Service::new(&TestClock::at(NOVEMBER), Script::default())
}

fn capped<T: Table>(
    actuator: Actuator<T, Service, TestBus, TestClock>,
    dollars: u64,
) -> Actuator<T, Service, TestBus, TestClock> {
    Actuator { monthly_cap: Some(MicroUsd(dollars * 1_000_000)), ..actuator }
}

fn request(n: u32, least: u64, wanted: u64) -> Order {
    Order::Grant(GrantOrder::Request { n, least: MicroUsd(least), wanted: MicroUsd(wanted) })
}

/// A stack with a monthly cap in dollars.
struct Stack {
    table: Arc<Contended>,
    actuator: Actuator<Contended, Service, TestBus, TestClock>,
    time: TestClock,
}

impl Stack {
    fn new(cap: u64) -> Self {
        let table = Arc::new(Contended::default());
        let service = idle();
        let actuator = capped(actuator(&table, &service), cap);
        let time = service.time;
        Self { table, actuator, time }
    }

    fn order(&self, id: &str, ordered: Order) -> String {
        order(&*self.table, id, ordered)
    }

    /// Requests dollars for tuning `id`. Returns the granted dollars and the reported level.
    fn ask(&self, id: &str, n: u32, least: u64, wanted: u64) -> (u64, Option<u32>) {
        let action = self.order(id, request(n, least * 1_000_000, wanted * 1_000_000));
        assert_eq!(now(self.actuator.perform(id, &action)), Ok(Performed::Done(Effect::Other)));
        self.granted(id, n)
    }

    fn granted(&self, id: &str, n: u32) -> (u64, Option<u32>) {
        let key = Key::new(stored::fact_partition(id), format!("-#granted#{n}"));
        let recorded = stored::fact(&now(self.table.get(&key)).unwrap().unwrap()).unwrap();
        let Fact::BudgetGranted { amount, reached, .. } = recorded.fact else { panic!("{recorded:?}") };
        (amount.0 / 1_000_000, reached)
    }

    /// Returns the dollars granted in a month.
    fn month(&self, month: &str) -> u64 {
        let item = now(self.table.get(&MonthRow::key(month))).unwrap();
        item.map_or(0, |item| MonthRow::read(&item).unwrap().granted.0 / 1_000_000)
    }
}

#[test]
fn requests_are_granted_up_to_the_monthly_cap() {
    let stack = Stack::new(10);
    assert_eq!(stack.ask("a-1", 1, 1, 4), (4, None));
    assert_eq!(stack.ask("b-1", 1, 1, 4), (4, Some(80)));
    assert_eq!(stack.ask("c-1", 1, 2, 4), (2, Some(100)), "exactly the minimum is left");
    // A grant below the minimum is useless to it. The level was reported before.
    assert_eq!(stack.ask("d-1", 1, 1, 4), (0, None));
    assert_eq!(stack.month(MONTH), 10);
}

#[test]
fn each_level_is_reported_once_and_the_last_one_when_a_request_is_denied() {
    let stack = Stack::new(10);
    assert_eq!(stack.ask("a-1", 1, 1, 5), (5, Some(50)));
    assert_eq!(stack.ask("a-1", 2, 1, 1), (1, None));
    assert_eq!(stack.ask("b-1", 1, 5, 5), (0, Some(100)));
    assert_eq!(stack.ask("c-1", 1, 5, 5), (0, None));
    assert_eq!(stack.month(MONTH), 6);
}

#[test]
fn a_request_that_is_performed_twice_is_answered_once() {
    let stack = Stack::new(10);
    // The transaction is performed, but its answer is lost.
    stack.table.lost.store(1, Ordering::Relaxed);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("a-1", Order::Grant(GrantOrder::Request { n: 1, least, wanted }));
    assert!(now(stack.actuator.perform("a-1", &action)).is_err());
    // A month later the action is performed again.
    stack.time.pass(2_592_000_000);
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!((stack.granted("a-1", 1).0, stack.month(MONTH), stack.month("2026-12")), (4, 4, 0));
    assert_eq!(action_row(&*stack.table, "a-1", &action).status, ActionStatus::Done);
}

#[test]
fn concurrent_requests_never_exceed_the_cap() {
    let stack = Stack::new(10);
    stack.table.races.store(3, Ordering::Relaxed);
    // Three other tunings took a dollar each before.
    assert_eq!(stack.ask("a-1", 1, 1, 9), (7, Some(100)));
    assert_eq!((stack.month(MONTH), *stack.table.transactions.lock().unwrap()), (10, 4));
}

/// Each change of a month's row has a new revision, also if the row existed before.
#[test]
fn a_grant_of_another_actuator_at_the_same_time_counts() {
    let stack = Stack::new(10);
    assert_eq!(stack.ask("a-1", 1, 1, 1), (1, None));
    stack.table.rivals.store(1, Ordering::Relaxed);
    assert_eq!(stack.ask("b-1", 1, 1, 9), (5, Some(100)));
    assert_eq!(stack.month(MONTH), 10);
}

#[test]
fn a_request_that_loses_every_race_is_deferred() {
    let stack = Stack::new(100);
    stack.table.races.store(8, Ordering::Relaxed);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("a-1", Order::Grant(GrantOrder::Request { n: 1, least, wanted }));
    let performed = now(stack.actuator.perform("a-1", &action));
    assert!(matches!(performed, Ok(Performed::Deferred(_))), "{performed:?}");
    stack.time.pass(182_000);
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!(stack.granted("a-1", 1).0, 4);
}

/// The tunings first move their unspent grants on, which count for the new month.
#[test]
fn the_first_minutes_of_a_month_grant_nothing() {
    let stack = Stack::new(100);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("a-1", Order::Grant(GrantOrder::Request { n: 1, least, wanted }));
    stack.time.set(NOVEMBER + 179_000);
    assert!(matches!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Deferred(_))));
    stack.time.pass(5_000);
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!(stack.month("2026-12"), 4);
}

/// The table does not say which of two overlapping transactions wins. One request was deferred until its claim expired.
#[test]
fn regression_a_transaction_conflict_on_the_month_is_retried_at_once() {
    let stack = Stack::new(10);
    stack.table.overlap.store(7, Ordering::Relaxed);
    assert_eq!(stack.ask("a-1", 1, 1, 4), (4, None));
    // The number of retries is bounded. After that the sweeper retries.
    stack.table.overlap.store(8, Ordering::Relaxed);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("b-1", Order::Grant(GrantOrder::Request { n: 1, least, wanted }));
    let performed = now(stack.actuator.perform("b-1", &action));
    assert!(matches!(performed, Ok(Performed::Deferred(_))), "{performed:?}");
}

/// The next actuator found the row of a failed action claimed for three minutes.
#[test]
fn regression_a_table_error_releases_the_claim() {
    let stack = Stack::new(10);
    stack.table.lost.store(1, Ordering::Relaxed);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("a-1", Order::Grant(GrantOrder::Request { n: 1, least, wanted }));
    assert!(now(stack.actuator.perform("a-1", &action)).is_err());
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!((stack.granted("a-1", 1).0, stack.month(MONTH)), (4, 4));
}

/// Without the move, November's grants and December's could both be spent in December.
#[test]
fn money_that_moves_on_counts_for_the_next_month_even_above_its_cap() {
    let stack = Stack::new(10);
    assert_eq!(stack.ask("a-1", 1, 1, 8), (8, Some(80)));
    stack.time.set(NOVEMBER + 182_000);
    assert_eq!(stack.ask("b-1", 1, 1, 6), (6, Some(50)));
    let (month, moved_to) = (MONTH.to_owned(), Some("2026-12".to_owned()));
    let amount = MicroUsd(5_000_000);
    let action = stack.order("a-1", Order::Grant(GrantOrder::Return { n: 1, month, amount, moved_to }));
    stack.table.lost.store(1, Ordering::Relaxed);
    assert!(now(stack.actuator.perform("a-1", &action)).is_err());
    stack.time.pass(CLAIM.0);
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!((stack.month(MONTH), stack.month("2026-12")), (3, 11));
    assert_eq!(stack.ask("c-1", 1, 1, 1).0, 0, "December has nothing left");
}

#[test]
fn money_is_returned_once_and_to_its_month() {
    let stack = Stack::new(10);
    assert_eq!(stack.ask("a-1", 1, 1, 8), (8, Some(80)));
    stack.time.set(NOVEMBER + 182_000);
    // December has its own cap.
    assert_eq!(stack.ask("b-1", 1, 1, 9), (9, Some(80)));
    let amount = MicroUsd(5_000_000);
    let action = stack.order(
        "a-1",
        Order::Grant(GrantOrder::Return { n: 1, month: MONTH.to_owned(), amount, moved_to: None }),
    );
    stack.table.lost.store(1, Ordering::Relaxed);
    assert!(now(stack.actuator.perform("a-1", &action)).is_err());
    stack.time.pass(CLAIM.0);
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!((stack.month(MONTH), stack.month("2026-12")), (3, 9));
}
