//! A training service whose answers lag behind what it does: what does not show yet is neither refused nor free.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use serde_json::Value;
use service::memory::MemoryTable;
use service::perform::{Actuator, Effect, Performed};
use service::ports::table::{Condition, Table, Write};
use service::ports::training::{Description, JobLogs, LogLine, Paged, TrainingJobs, TrainingJobsError};
use service::ports::{Bus, BusError, Clock};
use service::store::Store;
use tuning::definition::JobLimits;
use tuning::fact::JobKey;
use tuning::money::MicroUsd;
use tuning::ruling::{Launch, Ruling};
use wire::request::{PriceAnswer, Request};
use wire::stored::{self, ActionRow, ActionStatus, Head};

const NOW: i64 = 1_789_000_000_000;
const ABANDONED_MS: i64 = 60_000;
const JOB: JobKey = JobKey { trial: 0, rung: 0, attempt: 1 };

/// A job under our name is there already.
#[derive(Clone)]
struct Lagging {
    now: i64,
    /// None: no job of that name shows.
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

/// Futures of the table in memory are ready at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// A table with a tuning and `ruling`, whose claim before this try, if there was one, was good until `earlier`.
fn ordered(ruling: Ruling, earlier: Option<i64>) -> (MemoryTable, String, String) {
    let request = Request::parse(include_bytes!(
        "../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json"
    ))
    .unwrap();
    let prices = PriceAnswer::uniform(&request, 461_000, 0);
    let definition = request.definition(NOW - 10_000_000, "3fa1c2", &prices).unwrap();
    let (table, id) = (MemoryTable::new(), definition.id());
    let action = ruling.action().unwrap();
    let mut row = ActionRow::pending(action.clone(), ruling);
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
        place: service::describe::Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:f"),
        monthly_cap: None,
    };
    now(actuator.perform(id, action)).unwrap()
}

fn start_of_one_job() -> Ruling {
    Ruling::StartOrdered {
        job: JOB,
        bracket: 0,
        configuration: search::Configuration::default(),
        limits: JobLimits { max_runtime_seconds: 600, max_wait_seconds: Some(900), keep_alive_seconds: 0 },
        reservation: MicroUsd(1),
        round: 0,
        launch: Launch::default(),
    }
}

/// Tags of the job, absent while nothing of it shows.
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
fn a_job_that_may_be_ours_is_not_refused_before_its_tags_had_time_to_show() {
    let (recent, long_ago) = (Some(NOW - 1), Some(NOW - ABANDONED_MS));
    let stack = [("hyperband:stack", "prod")];
    for tags in [&[][..], &stack[..], &[("team", "example")][..]] {
        let waits = start(tags, recent);
        assert!(matches!(waits, Performed::PutOff(_)), "{tags:?}: {waits:?}");
        assert!(is_refused(&start(tags, long_ago)), "{tags:?}: nobody's tags take so long");
        assert!(is_refused(&start(tags, None)), "{tags:?}: nothing of ours was sent before");
    }
    // Marked by another stack, it is certainly not ours.
    assert!(is_refused(&start(&[("hyperband:stack", "dev")], recent)));
}

/// Each look renewed the claim, so that the look before was always recent and the answer never came.
#[test]
fn regression_looking_again_does_not_put_off_the_end_of_looking() {
    let first = NOW - 1;
    for tags in [Some(&[][..]), None] {
        let job = ordered(start_of_one_job(), Some(first));
        for seconds in (0..60).step_by(20) {
            let look = perform(&job, at(NOW + seconds * 1_000, tags));
            assert!(matches!(look, Performed::PutOff(_)), "{tags:?} after {seconds} s: {look:?}");
        }
        let end = perform(&job, at(first + ABANDONED_MS, tags));
        // Foreign tags: it is not ours. Nothing there, though its name is taken: it was ours, and somebody has deleted it.
        assert_eq!(is_refused(&end), tags.is_some(), "{end:?}");
        assert!(matches!(end, Performed::Done(_)), "{tags:?}: {end:?}");
    }
}

#[test]
fn a_job_is_taken_for_ours_as_soon_as_its_tags_show() {
    let job = ordered(start_of_one_job(), Some(NOW - 1));
    assert!(matches!(perform(&job, at(NOW, Some(&[]))), Performed::PutOff(_)));
    let ours = [("hyperband:stack", "prod"), ("hyperband:tuning", &job.1), ("hyperband:decision", "0-0-1")];
    assert_eq!(perform(&job, at(NOW + 20_000, Some(&ours))), Performed::Done(Effect::Started));
}

#[test]
fn a_job_that_has_run_costs_something_although_nothing_of_it_shows_yet() {
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
        perform(&ordered(Ruling::BillOrdered { job: JOB }, None), service)
    };
    assert!(matches!(bill("Completed", None), Performed::PutOff(_)));
    assert!(matches!(bill("Failed", Some("AlgorithmError: exit code 1")), Performed::PutOff(_)));
    // Stopped while it waited for instances, or never given any: it costs nothing.
    assert_eq!(bill("Stopped", None), Performed::Done(Effect::Other));
    assert_eq!(bill("Failed", Some("CapacityError: no capacity")), Performed::Done(Effect::Other));
}
