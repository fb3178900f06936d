//! A training service with stale answers: a job that is not visible yet is neither refused nor free of charge.
#![expect(clippy::unwrap_used, reason = "a panic in a helper fails its test")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use tuning::definition::JobLimits;
use tuning::fact::JobKey;
use tuning::money::MicroUsd;
use tuning::ruling::{Launch, Order};
use use_cases::memory::MemoryTable;
use use_cases::perform::{Actuator, Effect, Performed};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::training::{Description, JobLogs, LogLine, Paged, TrainingJobs, TrainingJobsError};
use use_cases::ports::{Bus, BusError, Clock};
use use_cases::store::Store;
use wire::request::{PriceAnswer, Request};
use wire::stored::{self, ActionRow, ActionStatus, Head};

const NOW: i64 = 1_789_000_000_000;
const ABANDONED_MS: i64 = 60_000;
const JOB: JobKey = JobKey::new(0, 0, 1);

/// A service with a job under our name.
#[derive(Clone)]
struct Lagging {
    now: i64,
    /// `None`: the job is not visible.
    tags: Option<BTreeMap<String, String>>,
    description: Arc<Mutex<Option<Description>>>,
}

impl Clock for Lagging {
    fn now(&self) -> i64 {
        self.now
    }
}

impl Bus for Lagging {
    async fn publish(&self, _: &str, _: &Value) -> Result<(), BusError> {
        Ok(())
    }
}

impl TrainingJobs for Lagging {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        Err(TrainingJobsError::NameTaken("it exists".to_owned()))
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        Err(TrainingJobsError::NotFound(name.to_owned()))
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        Err(TrainingJobsError::NotFound(name.to_owned()))
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let description = self.description.lock().unwrap().clone();
        description.ok_or_else(|| TrainingJobsError::NotFound(name.to_owned()))
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        self.tags.clone().ok_or_else(|| TrainingJobsError::NotFound(name.to_owned()))
    }
}

impl JobLogs for Lagging {
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

/// Returns a table with a tuning and `ruling`. A previous try, if any, had a claim until `earlier`.
fn ordered(order: Order, earlier: Option<i64>) -> (MemoryTable, String, String) {
    let request = Request::parse(include_bytes!(
        "../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json"
    ))
    .unwrap();
    let prices = PriceAnswer::uniform(&request, 461_000, 0);
    let definition = request.definition(NOW - 10_000_000, "3fa1c2", &prices).unwrap();
    let (table, id) = (MemoryTable::new(), definition.id());
    let action = order.action();
    let mut row = ActionRow::pending(order);
    if let Some(until) = earlier {
        (row.status, row.claimed_until, row.tries) = (ActionStatus::Performing, until, 1);
    }
    for row in
        [stored::meta_row(&definition, &request.body().to_string()), Head::first(NOW).row(&id), row.row(&id)]
    {
        now(table.write(Write::Put(row, Condition::Always))).unwrap();
    }
    (table, id, action)
}

fn perform((table, id, action): &(MemoryTable, String, String), service: Lagging) -> Performed {
    let actuator = Actuator {
        store: Arc::new(Store::new(Arc::new(table.clone()))),
        jobs: service.clone(),
        bus: service.clone(),
        clock: service,
        stack: "prod".to_owned(),
        log_lag_ms: 0,
        claim_ms: 180_000,
        defer_ms: 1_000,
        abandoned_ms: ABANDONED_MS,
        place: use_cases::describe::Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:f"),
        monthly_cap: None,
    };
    now(actuator.perform(id, action)).unwrap()
}

fn start_of_one_job() -> Order {
    Order::StartOrdered {
        job: JOB,
        bracket: tuning::ids::BracketId(0),
        configuration: search::Configuration::default(),
        limits: JobLimits { max_runtime_seconds: 600, max_wait_seconds: Some(900), keep_alive_seconds: 0 },
        reservation: MicroUsd(1),
        round: 0,
        launch: Launch::default(),
    }
}

/// Returns a service at `now` with the job's tags. `None` while the job is invisible.
fn at(now: i64, tags: Option<&[(&str, &str)]>) -> Lagging {
    let tags =
        tags.map(|tags| tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
    Lagging { now, tags, description: Arc::default() }
}

fn start(tags: &[(&str, &str)], earlier: Option<i64>) -> Performed {
    perform(&ordered(start_of_one_job(), earlier), at(NOW, Some(tags)))
}

fn is_refused(performed: &Performed) -> bool {
    matches!(performed, Performed::Done(Effect::Refused(_)))
}

#[test]
fn a_possibly_own_job_is_not_refused_until_its_tags_must_be_visible() {
    let (recent, long_ago) = (Some(NOW - 1), Some(NOW - ABANDONED_MS));
    let stack = [("hyperband:stack", "prod")];
    for tags in [&[][..], &stack[..], &[("team", "example")][..]] {
        let waits = start(tags, recent);
        assert!(matches!(waits, Performed::Deferred(_)), "{tags:?}: {waits:?}");
        assert!(is_refused(&start(tags, long_ago)), "{tags:?}: tags are visible after this time");
        assert!(is_refused(&start(tags, None)), "{tags:?}: we sent no create before");
    }
    // Another stack's tag proves that it is not ours.
    assert!(is_refused(&start(&[("hyperband:stack", "dev")], recent)));
}

/// Each check renewed the claim. The previous try was therefore always recent, and the checks never ended.
#[test]
fn regression_repeated_checks_do_not_extend_the_wait() {
    let first = NOW - 1;
    for tags in [Some(&[][..]), None] {
        let job = ordered(start_of_one_job(), Some(first));
        for seconds in (0..60).step_by(20) {
            let look = perform(&job, at(NOW + seconds * 1_000, tags));
            assert!(matches!(look, Performed::Deferred(_)), "{tags:?} after {seconds} s: {look:?}");
        }
        let end = perform(&job, at(first + ABANDONED_MS, tags));
        // With foreign tags, it is not ours. Without a visible job but with a taken name, it was ours and was deleted.
        assert_eq!(is_refused(&end), tags.is_some(), "{end:?}");
        assert!(matches!(end, Performed::Done(_)), "{tags:?}: {end:?}");
    }
}

#[test]
fn a_job_is_adopted_as_soon_as_its_tags_are_visible() {
    let job = ordered(start_of_one_job(), Some(NOW - 1));
    assert!(matches!(perform(&job, at(NOW, Some(&[]))), Performed::Deferred(_)));
    let ours = [("hyperband:stack", "prod"), ("hyperband:tuning", &job.1), ("hyperband:decision", "0-0-1")];
    assert_eq!(perform(&job, at(NOW + 20_000, Some(&ours))), Performed::Done(Effect::Started));
}

#[test]
fn a_job_that_has_run_is_not_free_while_its_bill_is_invisible() {
    let bill = |status: &str, reason: Option<&str>| {
        let description = Description {
            name: "job".to_owned(),
            status: status.to_owned(),
            secondary_status: status.to_owned(),
            created: NOW - 900_000,
            started: None,
            ended: Some(NOW - 100_000),
            modified: NOW - 100_000,
            billable_seconds: None,
            failure_reason: reason.map(str::to_owned),
            interruptions: 0,
            warm_pool: None,
        };
        let description = Arc::new(Mutex::new(Some(description)));
        let service = Lagging { now: NOW, tags: None, description };
        perform(&ordered(Order::BillOrdered { job: JOB }, None), service)
    };
    assert!(matches!(bill("Completed", None), Performed::Deferred(_)));
    assert!(matches!(bill("Failed", Some("AlgorithmError: exit code 1")), Performed::Deferred(_)));
    // A job that was stopped while it waited for instances, or never got any, costs nothing.
    assert_eq!(bill("Stopped", None), Performed::Done(Effect::Other));
    assert_eq!(bill("Failed", Some("CapacityError: no capacity")), Performed::Done(Effect::Other));
}
