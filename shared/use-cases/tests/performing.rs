//! The order of a batch, and actions that meet a quota, an ended job, a long log or a late bill.
#![expect(clippy::unwrap_used, reason = "a panic in a helper fails its test")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use tuning::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::ruling::{Order, StopWhy};
use use_cases::decide::Decider;
use use_cases::memory::MemoryTable;
use use_cases::perform::{Acts, Actuator, Effect, Performed};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::training::{Description, JobLogs, LogLine, Paged, TrainingJobs, TrainingJobsError};
use use_cases::ports::{Bus, BusError, Clock};
use use_cases::store::Store;
use wire::events::stream::{RecordKind, encode_payload, encode_record};
use wire::request::{PriceAnswer, Request};
use wire::stored::{self, ActionRow, ActionStatus, Head};

const NOW: i64 = 1_789_000_000_000;

/// A training service with scripted answers.
#[derive(Debug)]
struct Inner {
    now: i64,
    calls: Vec<&'static str>,
    create: Result<(), TrainingJobsError>,
    stop: Result<(), TrainingJobsError>,
    description: Description,
    log_pages: usize,
    /// Number of further log pages that it returns.
    pages_left: usize,
    /// How long a log page takes, in ms.
    page_ms: i64,
    /// Whether the role may read logs.
    logs_allowed: bool,
}

#[derive(Debug, Clone)]
struct Scripted(Arc<Mutex<Inner>>);

impl Scripted {
    fn new() -> Self {
        let description = Description {
            name: "job".to_owned(),
            status: "Completed".to_owned(),
            secondary_status: "Completed".to_owned(),
            created: NOW - 900_000,
            started: Some(NOW - 800_000),
            ended: Some(NOW - 100_000),
            modified: NOW - 100_000,
            billable_seconds: Some(700),
            failure_reason: None,
            interruptions: 0,
            warm_pool: None,
        };
        Self(Arc::new(Mutex::new(Inner {
            now: NOW,
            calls: Vec::new(),
            create: Ok(()),
            stop: Ok(()),
            description,
            log_pages: 1,
            pages_left: usize::MAX,
            page_ms: 0,
            logs_allowed: true,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    fn record_call(&self, call: &'static str) -> MutexGuard<'_, Inner> {
        let mut inner = self.lock();
        inner.calls.push(call);
        inner
    }

    /// Returns the calls since the last call of this method, without consecutive repetitions.
    fn calls(&self) -> Vec<&'static str> {
        let mut calls = std::mem::take(&mut self.lock().calls);
        calls.dedup();
        calls
    }
}

impl Clock for Scripted {
    fn now(&self) -> i64 {
        self.lock().now
    }
}

impl Bus for Scripted {
    async fn publish(&self, _: &str, _: &Value) -> Result<(), BusError> {
        Ok(())
    }
}

impl TrainingJobs for Scripted {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        self.record_call("create").create.clone()
    }

    async fn stop(&self, _: &str) -> Result<(), TrainingJobsError> {
        self.record_call("stop").stop.clone()
    }

    async fn release(&self, _: &str) -> Result<(), TrainingJobsError> {
        Ok(())
    }

    async fn describe(&self, _: &str) -> Result<Description, TrainingJobsError> {
        Ok(self.record_call("describe").description.clone())
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        Err(TrainingJobsError::NotFound(name.to_owned()))
    }
}

impl JobLogs for Scripted {
    async fn read(
        &self,
        _: &str,
        _: &str,
        _: i64,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        let mut inner = self.record_call("read");
        if !inner.logs_allowed {
            return Err(TrainingJobsError::Refused {
                code: "AccessDeniedException".to_owned(),
                message: "no policy allows logs:FilterLogEvents".to_owned(),
            });
        }
        inner.pages_left = inner.pages_left.checked_sub(1).ok_or(TrainingJobsError::Throttled)?;
        inner.now += inner.page_ms;
        let next = page.map_or(0, |page| page.parse().unwrap()) + 1;
        Ok(Paged { items: Vec::new(), next: (next < inner.log_pages).then(|| next.to_string()) })
    }
}

/// Futures of the in-memory table are ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a future must not wait here"),
    }
}

/// One tuning, and the actuator of its actions.
struct Stack {
    table: MemoryTable,
    service: Scripted,
    actuator: Actuator<MemoryTable, Scripted, Scripted, Scripted>,
    id: String,
}

impl Stack {
    fn new() -> Self {
        let request = Request::parse(include_bytes!(
            "../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json"
        ))
        .unwrap();
        let prices = PriceAnswer::uniform(&request, 461_000, 0);
        let definition = request.definition(NOW - 10_000_000, "3fa1c2", &prices).unwrap();
        let (table, id, service) = (MemoryTable::new(), definition.id(), Scripted::new());
        let meta = stored::meta_row(&definition, &request.body().to_string());
        for row in [meta, Head::first(NOW).row(&id)] {
            now(table.write(Write::Put(row, Condition::Always))).unwrap();
        }
        let actuator = Actuator {
            store: Arc::new(Store::new(Arc::new(table.clone()))),
            jobs: service.clone(),
            bus: service.clone(),
            clock: service.clone(),
            stack: "prod".to_owned(),
            log_lag_ms: 0,
            claim_ms: 180_000,
            defer_ms: 1_000,
            abandoned_ms: 60_000,
            place: use_cases::describe::Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:f"),
            monthly_cap: None,
        };
        Self { table, service, actuator, id }
    }

    /// Gives these facts to the decider, which stores its orders in the table.
    fn decide(&self, facts: Vec<Fact>) {
        let recorded = |(n, fact): (usize, Fact)| Recorded { key: format!("{n}"), at: NOW, fact };
        let facts: Vec<_> = facts.into_iter().enumerate().map(recorded).collect();
        let store = Arc::new(Store::new(Arc::new(self.table.clone())));
        now(Decider { store }.decide(&self.id, &facts, false)).unwrap();
    }

    fn put(&self, row: &ActionRow) {
        now(self.table.write(Write::Put(row.row(&self.id), Condition::Always))).unwrap();
    }

    fn order(&self, order: Order) -> String {
        let action = order.action();
        self.put(&ActionRow::pending(order));
        action
    }

    fn row(&self, action: &str) -> ActionRow {
        let item = now(self.table.get(&stored::action_key(&self.id, action))).unwrap();
        ActionRow::read(&item.unwrap()).unwrap()
    }

    fn perform(&self, action: &str) -> Performed {
        now(self.actuator.perform(&self.id, action)).unwrap()
    }

    /// Performs a batch of new rows of these actions. Returns the results in the order of execution.
    fn handle(&self, actions: &[&str]) -> Vec<(String, Performed)> {
        let record = |(n, action): (u64, &&str)| {
            let row = self.row(action).row(&self.id);
            encode_record(n, RecordKind::Insert, &row.key, Some(&row))
        };
        let event = encode_payload((1..).zip(actions).map(record));
        let mut acts = Acts::default();
        now(self.actuator.handle(&event, || true, &mut acts));
        acts.parts.into_iter().map(|part| (part.done.action, part.done.performed.unwrap())).collect()
    }

    /// Returns whether a fact with this key is stored.
    fn knows(&self, key: &str) -> bool {
        self.table.rows().iter().any(|row| row.key.pk.starts_with("F#") && row.key.sk.ends_with(key))
    }
}

fn job(trial: u32) -> JobKey {
    JobKey::new(trial, 0, 1)
}

fn stop_of(trial: u32) -> Order {
    Order::StopOrdered { job: job(trial), why: StopWhy::TuningEnding }
}

fn is_deferred(performed: &Performed) -> bool {
    matches!(performed, Performed::Deferred(_))
}

/// A stop waited until the logs before it were read, up to two hundred pages each.
#[test]
fn regression_stops_and_starts_do_not_wait_for_logs() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.service.lock().log_pages = 60;
    let bill = stack.order(Order::BillOrdered { job: job(7) });
    let stop = stack.order(stop_of(8));
    let performed = stack.handle(&[&bill, "start-0-0-1", &stop]);
    assert_eq!(stack.service.calls(), ["stop", "create", "describe", "read"]);
    let [(first, stopped), (second, started), (third, billed)] = &performed[..] else {
        panic!("{performed:?}")
    };
    assert_eq!([first, second, third], [&stop, "start-0-0-1", &bill]);
    assert!(matches!(stopped, Performed::Done(Effect::Stopped { .. })), "{stopped:?}");
    assert_eq!(started, &Performed::Done(Effect::Started));
    // A few pages were read. The sweeper, which does not delay a stop, reads all.
    assert!(is_deferred(billed), "{billed:?}");
    stack.service.lock().now += 1_000;
    assert_eq!(stack.perform(&bill), Performed::Done(Effect::Other));
    assert!(stack.knows("described#7-0-1"));
}

#[test]
fn a_batch_starts_no_log_read_after_its_time() {
    let stack = Stack::new();
    (stack.service.lock().log_pages, stack.service.lock().page_ms) = (9, 2_000);
    let bills = [1, 2].map(|trial| stack.order(Order::BillOrdered { job: job(trial) }));
    let performed = stack.handle(&[&bills[0], &bills[1]]);
    assert_eq!(performed[0].1, Performed::Done(Effect::Other));
    assert!(is_deferred(&performed[1].1), "{performed:?}");
    // The action has no claim.
    assert_eq!(stack.row(&bills[1]).tries, 0);
}

#[test]
fn a_stop_in_the_same_batch_cancels_the_start() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    let stop = stack.order(stop_of(0));
    stack.service.lock().stop = Err(TrainingJobsError::NotFound("job".to_owned()));
    let performed = stack.handle(&["start-0-0-1", &stop]);
    assert_eq!(stack.service.calls(), ["stop"], "it was cancelled: {performed:?}");
    assert!(stack.knows("never-started#0-0-1"));
}

/// A start's second try left its claim behind, and the job could not be cancelled for four minutes.
#[test]
fn regression_a_start_blocked_by_a_quota_can_be_cancelled_at_once() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.service.lock().create = Err(TrainingJobsError::LimitExceeded("ml.m5.large".to_owned()));
    for _ in 0..3 {
        assert!(is_deferred(&stack.perform("start-0-0-1")));
        stack.service.lock().now += 10_000;
    }
    assert_eq!((stack.row("start-0-0-1").tries, stack.row("start-0-0-1").claimed_until), (3, 0));
    stack.service.lock().stop = Err(TrainingJobsError::NotFound("job".to_owned()));
    let stop = stack.order(stop_of(0));
    assert_eq!(stack.perform(&stop), Performed::Done(Effect::Other));
    assert_eq!(stack.row("start-0-0-1").status, ActionStatus::Cancelled);
}

/// An open request of an earlier try stays open, whatever a later try returns.
#[test]
fn a_start_that_may_have_been_sent_is_not_cancelled_after_a_later_quota_error() {
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    let claimed_until = NOW + 180_000;
    for answer in [
        TrainingJobsError::Unavailable("no answer".to_owned()),
        TrainingJobsError::LimitExceeded("ml.m5.large".to_owned()),
    ] {
        stack.service.lock().create = Err(answer);
        assert!(is_deferred(&stack.perform("start-0-0-1")));
        assert_eq!(stack.row("start-0-0-1").claimed_until, claimed_until);
        stack.service.lock().now += 10_000;
    }
    stack.service.lock().stop = Err(TrainingJobsError::NotFound("job".to_owned()));
    let stop = stack.order(stop_of(0));
    assert!(is_deferred(&stack.perform(&stop)));
}

/// An event reported that we had stopped a job that had ended by itself, and the stop was counted.
#[test]
fn regression_a_job_that_ended_by_itself_is_not_reported_as_stopped() {
    let stack = Stack::new();
    stack.service.lock().stop = Err(TrainingJobsError::AlreadyEnded("job".to_owned()));
    let stop = stack.order(stop_of(0));
    assert_eq!(stack.perform(&stop), Performed::Done(Effect::Other));
    // The decider waits for this fact, whatever its cause.
    assert!(stack.knows("stop-accepted#0-0-1"));
}

/// Each try began at the first page and was throttled before the last; after an hour the whole reservation was booked.
#[test]
fn regression_a_long_log_does_not_delay_a_known_bill_forever() {
    let stack = Stack::new();
    let bill = stack.order(Order::BillOrdered { job: job(0) });
    stack.service.lock().log_pages = 80;
    let tries = (1..=7).map(|_| {
        stack.service.lock().pages_left = 50;
        stack.service.lock().now += 300_000;
        stack.perform(&bill)
    });
    let tries: Vec<_> = tries.collect();
    assert!(tries.iter().take(6).all(is_deferred), "{tries:?}");
    assert_eq!(tries.last(), Some(&Performed::Done(Effect::LogCut)));
    assert!(stack.knows("described#0-0-1"));
    // A log without any readable page delays the bill, because it may be short.
    let other = stack.order(Order::BillOrdered { job: job(1) });
    stack.service.lock().pages_left = 0;
    for _ in 0..8 {
        assert!(is_deferred(&stack.perform(&other)));
        stack.service.lock().now += 300_000;
    }
    (stack.service.lock().pages_left, stack.service.lock().log_pages) = (2, 1);
    assert_eq!(stack.perform(&other), Performed::Done(Effect::Other), "the whole log was read");
}

/// A refused read of the log concluded the job at once, and the lines of a lost delivery never reached the decider.
#[test]
fn regression_a_bill_waits_for_a_log_whose_read_was_refused() {
    let stack = Stack::new();
    let bill = stack.order(Order::BillOrdered { job: job(0) });
    stack.service.lock().logs_allowed = false;
    assert!(is_deferred(&stack.perform(&bill)));
    stack.service.lock().logs_allowed = true;
    stack.service.lock().now += 300_000;
    assert_eq!(stack.perform(&bill), Performed::Done(Effect::Other));
    // A role that never may read logs does not delay the bill forever.
    let other = stack.order(Order::BillOrdered { job: job(1) });
    stack.service.lock().logs_allowed = false;
    let tries: Vec<_> = (1..=7)
        .map(|_| {
            stack.service.lock().now += 300_000;
            stack.perform(&other)
        })
        .collect();
    assert!(tries.iter().take(6).all(is_deferred), "{tries:?}");
    assert_eq!(tries.last(), Some(&Performed::Done(Effect::LogCut)));
}

/// A bill of zero, which the decider rejected, used up the key of the fact. The whole reservation was booked.
#[test]
fn regression_a_zero_bill_of_a_job_that_ran_is_read_again() {
    let never = |service: &Scripted| {
        let mut inner = service.lock();
        let description = &mut inner.description;
        (description.status, description.secondary_status) = ("Stopped".to_owned(), "Stopped".to_owned());
        (description.started, description.billable_seconds) = (None, None);
    };
    let started = Fact::JobStateChanged {
        job: job(0),
        phase: JobPhase::Training,
        started: Some(NOW - 800_000),
        ended: None,
        message: None,
    };
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.decide(vec![Fact::JobStarted { job: job(0) }, started]);
    never(&stack.service);
    let bill = stack.order(Order::BillOrdered { job: job(0) });
    assert!(is_deferred(&stack.perform(&bill)));
    assert!(!stack.knows("described#0-0-1"));
    (stack.service.lock().description, stack.service.lock().now) =
        (Scripted::new().lock().description.clone(), NOW + 1_000);
    assert_eq!(stack.perform(&bill), Performed::Done(Effect::Other));
    assert!(stack.knows("described#0-0-1"));
    // A job that was never seen to run costs nothing.
    let stack = Stack::new();
    stack.decide(vec![Fact::TuningSubmitted]);
    stack.decide(vec![Fact::JobStarted { job: job(0) }]);
    never(&stack.service);
    let bill = stack.order(Order::BillOrdered { job: job(0) });
    assert_eq!(stack.perform(&bill), Performed::Done(Effect::Other));
    assert!(stack.knows("described#0-0-1"));
}
