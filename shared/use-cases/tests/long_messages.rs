//! Messages of the training service have any length. Stored messages are cut to fit a row, because otherwise the table
//! would refuse the outcome on every retry.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use tuning::definition::JobLimits;
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::limits::MAX_MESSAGE_CHARS;
use tuning::money::MicroUsd;
use tuning::ruling::{Launch, Order};
use use_cases::decide::Decider;
use use_cases::memory::MemoryTable;
use use_cases::perform::{Actuator, Effect, Performed};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};
use use_cases::ports::{Bus, BusError, Clock, Timer};
use use_cases::store::Store;
use use_cases::sweep::{Limits, Sweeper};
use wire::item::Item;
use wire::request::{PriceAnswer, Request};
use wire::stored::{self, ActionRow, Head};

const CREATED: i64 = 1_788_990_000_000;
const NOW: i64 = 1_789_000_000_000;
const JOB: JobKey = JobKey::new(0, 0, 1);

/// Answers every call with a message larger than a row.
#[derive(Debug, Clone, Default)]
struct Wordy {
    /// Time waited so far, in ms.
    waited: Arc<AtomicI64>,
}

fn words() -> String {
    "no ".repeat(150_000)
}

impl Clock for Wordy {
    fn now(&self) -> i64 {
        NOW + self.waited.load(Ordering::Relaxed)
    }
}

impl Timer for Wordy {
    async fn pause(&self, ms: i64) {
        self.waited.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Bus for Wordy {
    async fn publish(&self, _: &str, _: &Value) -> Result<(), BusError> {
        Ok(())
    }
}

impl TrainingJobs for Wordy {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        Err(TrainingJobsError::Refused { code: "ValidationException".to_owned(), message: words() })
    }

    async fn stop(&self, _: &str) -> Result<(), TrainingJobsError> {
        Err(TrainingJobsError::LimitExceeded(words()))
    }

    async fn release(&self, _: &str) -> Result<(), TrainingJobsError> {
        Err(TrainingJobsError::LimitExceeded(words()))
    }
    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        Ok(Description {
            name: name.to_owned(),
            status: "Failed".to_owned(),
            secondary_status: "Failed".to_owned(),
            created: NOW - 1_000_000,
            started: Some(NOW - 900_000),
            ended: Some(NOW - 800_000),
            modified: NOW - 800_000,
            billable_seconds: Some(100),
            failure_reason: Some(words()),
            interruptions: 0,
            warm_pool: None,
        })
    }

    async fn tags(&self, _: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        Ok(BTreeMap::new())
    }
}

impl JobLogs for Wordy {
    async fn read(
        &self,
        _: &str,
        _: &str,
        _: i64,
        _: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        Ok(Paged { items: Vec::new(), next: None })
    }
}

/// Futures of the in-memory table are ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a future must not wait here"),
    }
}

impl TrainingJobListing for Wordy {
    async fn in_progress(&self, _: i64, _: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        Ok(Paged { items: Vec::new(), next: None })
    }
}

/// Returns a table with a tuning, and the actuator of its actions.
fn world() -> (MemoryTable, Actuator<MemoryTable, Wordy, Wordy, Wordy>, String) {
    let body =
        include_bytes!("../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json");
    let request = Request::parse(body).expect("the sample is a request");
    let prices = PriceAnswer::uniform(&request, 461_000, 0);
    let definition = request.definition(CREATED, "3fa1c2", &prices).expect("a definition");
    let (table, id) = (MemoryTable::new(), definition.id());
    put(&table, stored::meta_row(&definition, &request.body().to_string()));
    put(&table, Head::first(CREATED).row(&id));
    put(&table, stored::active_row(&id));
    let wordy = Wordy::default();
    let actuator = Actuator {
        store: Arc::new(Store::new(Arc::new(table.clone()))),
        jobs: wordy.clone(),
        bus: wordy.clone(),
        clock: wordy,
        stack: "prod".to_owned(),
        log_lag_ms: 0,
        claim_ms: 180_000,
        defer_ms: 1_000,
        abandoned_ms: 60_000,
        place: use_cases::describe::Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:f"),
        monthly_cap: None,
    };
    (table, actuator, id)
}

fn put(table: &MemoryTable, row: Item) {
    now(table.write(Write::Put(row, Condition::Always))).expect("the row is stored");
}

/// Performs `order`. Returns the result and the stored fact.
fn perform(order: Order) -> (Performed, Fact) {
    let (table, actuator, id) = world();
    let action = order.action();
    put(&table, ActionRow::pending(order).row(&id));
    let performed = now(actuator.perform(&id, &action)).expect("the table accepts the outcome");
    let fact = table.rows().iter().find_map(|row| stored::fact(row).ok()).expect("a fact");
    (performed, fact.fact)
}

#[track_caller]
fn check_cut(message: &str) {
    assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
}

#[test]
fn a_long_refusal_is_recorded() {
    let start = Order::StartOrdered {
        job: JOB,
        bracket: tuning::ids::BracketId(0),
        configuration: search::Configuration::default(),
        limits: JobLimits { max_runtime_seconds: 600, max_wait_seconds: Some(900), keep_alive_seconds: 0 },
        reservation: MicroUsd(1),
        round: 0,
        launch: Launch::default(),
    };
    let (performed, fact) = perform(start);
    let Fact::StartRefused { message, .. } = fact else { panic!("{performed:?}") };
    assert_eq!(performed, Performed::Done(Effect::Refused(message.clone())));
    check_cut(&message);
}

#[test]
fn a_long_reason_to_defer_is_recorded() {
    let stop = Order::StopOrdered { job: JOB, why: tuning::ruling::StopWhy::TuningEnding };
    let (performed, fact) = perform(stop);
    let Fact::ActionDeferred { reason, .. } = fact else { panic!("{performed:?}") };
    assert!(matches!(performed, Performed::Deferred(_)), "{performed:?}");
    check_cut(&reason);
}

#[test]
fn a_long_failure_reason_is_recorded() {
    let (performed, fact) = perform(Order::BillOrdered { job: JOB });
    let Fact::JobDescribed { message, .. } = fact else { panic!("{performed:?}") };
    assert_eq!(performed, Performed::Done(Effect::Other));
    check_cut(&message.expect("a message"));
}

#[test]
fn a_long_failure_reason_found_by_the_sweeper_is_recorded() {
    let (table, actuator, id) = world();
    let store = Arc::clone(&actuator.store);
    let facts = [Fact::TuningSubmitted, Fact::JobStarted { job: JOB }];
    for (number, fact) in facts.into_iter().enumerate() {
        let recorded = Recorded { key: number.to_string(), at: CREATED, fact };
        now(Decider { store: Arc::clone(&store) }.decide(&id, &[recorded], false)).expect("a step");
    }
    let sweeper = Sweeper::new(actuator, Limits::CLOUD, "one".to_owned());
    let swept = now(sweeper.sweep()).expect("a sweep");
    assert_eq!(swept.last_error, None);
    let found = table.rows().iter().filter_map(|row| stored::fact(row).ok()).find_map(|recorded| {
        match recorded.fact {
            Fact::JobStateChanged { message, .. } => message,
            _ => None,
        }
    });
    check_cut(&found.expect("a message found by the sweeper"));
}
