//! Money between a month's cap and tunings: an asking is answered once, whatever happens, and never above the cap.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use service::memory::MemoryTable;
use service::perform::{Actuator, CLAIM_MS, Effect, LOG_LAG_MS, Performed};
use service::ports::table::{Condition, Page, Query, Table, TableError, Write};
use service::ports::training::{Description, JobLogs, LogLine, Paged, TrainingJobs, TrainingJobsError};
use service::ports::{Bus, BusError, Clock};
use service::store::Store;
use tuning::fact::Fact;
use tuning::money::MicroUsd;
use tuning::ruling::Ruling;
use wire::item::{Item, Key};
use wire::stored::{self, ActionRow, ActionStatus, MonthRow};

/// The last second of November 2026.
const NOVEMBER: i64 = 1_796_083_199_000;
const MONTH: &str = "2026-11";

#[derive(Clone, Default)]
struct Time(Arc<AtomicI64>);

impl Clock for Time {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// No action about money asks the training service.
struct NoJobs;

impl TrainingJobs for NoJobs {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        unreachable!()
    }
    async fn stop(&self, _: &str) -> Result<(), TrainingJobsError> {
        unreachable!()
    }
    async fn release(&self, _: &str) -> Result<(), TrainingJobsError> {
        unreachable!()
    }
    async fn describe(&self, _: &str) -> Result<Description, TrainingJobsError> {
        unreachable!()
    }
    async fn tags(&self, _: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        unreachable!()
    }
}

impl JobLogs for NoJobs {
    async fn read(
        &self,
        _: &str,
        _: &str,
        _: i64,
        _: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        unreachable!()
    }
}

struct NoBus;

impl Bus for NoBus {
    async fn publish(&self, _: &str, _: &Value) -> Result<(), BusError> {
        unreachable!()
    }
}

/// The table in memory; another tuning takes a dollar of the month just before each of the next `races` transactions, and
/// the answers to the next `lost` transactions are lost; before both, `overlap` of them meet another one on their way.
#[derive(Default)]
struct Contended {
    table: MemoryTable,
    races: AtomicU32,
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
        let done = self.table.transact(writes, token).await;
        if take(&self.lost) { Err(TableError::Unavailable("no answer".to_owned())) } else { done }
    }
    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        self.table.query(query).await
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// A stack with a month's cap in dollars.
struct Stack {
    table: Arc<Contended>,
    actuator: Actuator<Contended, NoJobs, NoBus, Time>,
    time: Time,
}

impl Stack {
    fn new(cap: u64) -> Self {
        let table = Arc::new(Contended::default());
        let time = Time::default();
        time.0.store(NOVEMBER, Ordering::Relaxed);
        let actuator = Actuator {
            store: Arc::new(Store::new(Arc::clone(&table))),
            jobs: NoJobs,
            bus: NoBus,
            clock: time.clone(),
            stack: "stack".to_owned(),
            log_lag_ms: LOG_LAG_MS,
            claim_ms: CLAIM_MS,
            defer_ms: 1_000,
            abandoned_ms: 60_000,
            place: service::describe::Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:f"),
            monthly_cap: Some(MicroUsd(cap * 1_000_000)),
        };
        Self { table, actuator, time }
    }

    fn order(&self, id: &str, ruling: Ruling) -> String {
        let action = ruling.action().unwrap();
        let row = ActionRow::pending(action.clone(), ruling).row(id);
        now(self.table.write(Write::Put(row, Condition::NotExists))).unwrap();
        action
    }

    /// Tuning `id` asks for dollars; what it is told: the amount in dollars, and the level that was reached.
    fn ask(&self, id: &str, n: u32, least: u64, wanted: u64) -> (u64, Option<u32>) {
        let dollars = |n: u64| MicroUsd(n * 1_000_000);
        let ruling = Ruling::GrantOrdered { n, least: dollars(least), wanted: dollars(wanted) };
        let action = self.order(id, ruling);
        assert_eq!(now(self.actuator.perform(id, &action)), Ok(Performed::Done(Effect::Other)));
        self.granted(id, n)
    }

    fn granted(&self, id: &str, n: u32) -> (u64, Option<u32>) {
        let key = Key::new(stored::fact_partition(id), format!("-#granted#{n}"));
        let recorded = stored::fact(&now(self.table.get(&key)).unwrap().unwrap()).unwrap();
        let Fact::BudgetGranted { amount, reached, .. } = recorded.fact else { panic!("{recorded:?}") };
        (amount.0 / 1_000_000, reached)
    }

    /// Dollars granted of a month.
    fn month(&self, month: &str) -> u64 {
        let item = now(self.table.get(&MonthRow::key(month))).unwrap();
        item.map_or(0, |item| MonthRow::read(&item).unwrap().granted.0 / 1_000_000)
    }
}

#[test]
fn tunings_are_granted_what_they_want_until_the_cap_then_what_is_left_then_nothing() {
    let stack = Stack::new(10);
    assert_eq!(stack.ask("a-1", 1, 1, 4), (4, None));
    assert_eq!(stack.ask("b-1", 1, 1, 4), (4, Some(80)));
    assert_eq!(stack.ask("c-1", 1, 1, 4), (2, Some(100)));
    // Less than it needs is of no use to it; the level was told before.
    assert_eq!(stack.ask("d-1", 1, 1, 4), (0, None));
    assert_eq!(stack.month(MONTH), 10);
}

#[test]
fn a_level_is_reported_once_and_the_last_one_when_somebody_is_denied() {
    let stack = Stack::new(10);
    assert_eq!(stack.ask("a-1", 1, 1, 5), (5, Some(50)));
    assert_eq!(stack.ask("a-1", 2, 1, 1), (1, None));
    assert_eq!(stack.ask("b-1", 1, 5, 5), (0, Some(100)));
    assert_eq!(stack.ask("c-1", 1, 5, 5), (0, None));
    assert_eq!(stack.month(MONTH), 6);
}

#[test]
fn an_asking_that_is_performed_twice_is_answered_once() {
    let stack = Stack::new(10);
    // The transaction is done, its answer is lost.
    stack.table.lost.store(1, Ordering::Relaxed);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("a-1", Ruling::GrantOrdered { n: 1, least, wanted });
    assert!(now(stack.actuator.perform("a-1", &action)).is_err());
    // A month later somebody takes it up again.
    stack.time.0.fetch_add(2_592_000_000, Ordering::Relaxed);
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!((stack.granted("a-1", 1).0, stack.month(MONTH), stack.month("2026-12")), (4, 4, 0));
    let row = now(stack.table.get(&stored::action_key("a-1", &action))).unwrap().unwrap();
    assert_eq!(ActionRow::read(&row).unwrap().status, ActionStatus::Done);
}

#[test]
fn those_who_ask_at_once_never_get_more_than_there_is() {
    let stack = Stack::new(10);
    stack.table.races.store(3, Ordering::Relaxed);
    // Three others were first, with a dollar each.
    assert_eq!(stack.ask("a-1", 1, 1, 9), (7, Some(100)));
    assert_eq!((stack.month(MONTH), *stack.table.transactions.lock().unwrap()), (10, 4));
}

#[test]
fn an_asking_that_always_loses_is_put_off_not_given_up() {
    let stack = Stack::new(100);
    stack.table.races.store(8, Ordering::Relaxed);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("a-1", Ruling::GrantOrdered { n: 1, least, wanted });
    let performed = now(stack.actuator.perform("a-1", &action));
    assert!(matches!(performed, Ok(Performed::PutOff(_))), "{performed:?}");
    stack.time.0.fetch_add(1_000, Ordering::Relaxed);
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!(stack.granted("a-1", 1).0, 4);
}

/// The table tells the two that meet only that they do. One was put off until its claim was over, and the money with it.
#[test]
fn regression_of_two_transactions_that_overlap_on_a_month_the_second_is_tried_again_at_once() {
    let stack = Stack::new(10);
    stack.table.overlap.store(7, Ordering::Relaxed);
    assert_eq!(stack.ask("a-1", 1, 1, 4), (4, None));
    // Not for ever: then the sweeper has its turn.
    stack.table.overlap.store(8, Ordering::Relaxed);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("b-1", Ruling::GrantOrdered { n: 1, least, wanted });
    let performed = now(stack.actuator.perform("b-1", &action));
    assert!(matches!(performed, Ok(Performed::PutOff(_))), "{performed:?}");
}

/// Whoever got the record next found it claimed by nobody for three minutes.
#[test]
fn regression_a_table_that_fails_leaves_no_claim_behind() {
    let stack = Stack::new(10);
    stack.table.lost.store(1, Ordering::Relaxed);
    let (least, wanted) = (MicroUsd(1), MicroUsd(4_000_000));
    let action = stack.order("a-1", Ruling::GrantOrdered { n: 1, least, wanted });
    assert!(now(stack.actuator.perform("a-1", &action)).is_err());
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!((stack.granted("a-1", 1).0, stack.month(MONTH)), (4, 4));
}

#[test]
fn money_goes_back_once_and_to_the_month_it_came_from() {
    let stack = Stack::new(10);
    assert_eq!(stack.ask("a-1", 1, 1, 8), (8, Some(80)));
    stack.time.0.store(NOVEMBER + 2_000, Ordering::Relaxed);
    // December has a cap of its own.
    assert_eq!(stack.ask("b-1", 1, 1, 9), (9, Some(80)));
    let amount = MicroUsd(5_000_000);
    let action = stack.order("a-1", Ruling::ReturnOrdered { n: 1, month: MONTH.to_owned(), amount });
    stack.table.lost.store(1, Ordering::Relaxed);
    assert!(now(stack.actuator.perform("a-1", &action)).is_err());
    stack.time.0.fetch_add(CLAIM_MS, Ordering::Relaxed);
    assert_eq!(now(stack.actuator.perform("a-1", &action)), Ok(Performed::Done(Effect::Other)));
    assert_eq!((stack.month(MONTH), stack.month("2026-12")), (3, 9));
}
