//! What the actuator does about instances that are kept after a job: it asks, it lets them go, and it believes only what
//! the training service says.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use service::memory::MemoryTable;
use service::perform::{Actuator, CLAIM_MS, Effect, LOG_LAG_MS, Performed};
use service::ports::table::{Condition, Table, Write};
use service::ports::training::{
    Description, JobLogs, LogLine, Paged, TrainingJobs, TrainingJobsError, WarmPool,
};
use service::ports::{Bus, BusError, Clock, Prices, PricesError};
use service::store::Store;
use service::submit::{Guardrails, Submit};
use tuning::fact::{Fact, JobKey};
use tuning::pool::Retained;
use tuning::ruling::Ruling;
use wire::names::training_job_name;
use wire::stored::{self, ActionRow, ActionStatus};

const BEGIN: i64 = 1_790_000_000_000;
const JOB: JobKey = JobKey { trial: 0, rung: 0, attempt: 1 };
/// When the job ended.
const ENDED: i64 = BEGIN + 60_000;
/// What it keeps is kept for 600 s, and a minute more at most.
const OVER: i64 = ENDED + 660_000;

#[derive(Clone)]
struct Time(Arc<AtomicI64>);

impl Clock for Time {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A service with one job: what it answers, and what it was asked.
#[derive(Clone)]
struct Service {
    described: Arc<Mutex<Result<Description, TrainingJobsError>>>,
    released: Arc<Mutex<Result<(), TrainingJobsError>>>,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Service {
    fn called(&self, call: &str, name: &str) {
        self.calls.lock().unwrap().push(format!("{call} {name}"));
    }
}

impl TrainingJobs for Service {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        unreachable!()
    }
    async fn stop(&self, _: &str) -> Result<(), TrainingJobsError> {
        unreachable!()
    }
    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.called("release", name);
        self.released.lock().unwrap().clone()
    }
    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        self.called("describe", name);
        self.described.lock().unwrap().clone()
    }
    async fn tags(&self, _: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        unreachable!()
    }
}

impl JobLogs for Service {
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

struct NoPrices;

impl Prices for NoPrices {
    async fn instance_hour(&self, _: &str) -> Result<Option<u64>, PricesError> {
        Ok(Some(115_000))
    }
    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        Ok(Some(0))
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn request() -> Value {
    json!({
        "HyperParameterTuningJobName": "t",
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "auc"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 1},
            "ParameterRanges": {"ContinuousParameterRanges": [{"Name": "lr", "MinValue": "0.1", "MaxValue": "1"}]}
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "TrainingImage": "image", "TrainingInputMode": "File",
                "MetricDefinitions": [{"Name": "auc", "Regex": "auc=(\\S+)"}]
            },
            "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
            "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
            "ResourceConfig": {
                "InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1, "KeepAlivePeriodInSeconds": 600
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 600}
        },
        "Controller": {"MaxCostUsd": 10}
    })
}

/// An actuator, and a tuning whose first job has ended.
struct World {
    table: MemoryTable,
    actuator: Actuator<MemoryTable, Service, NoBus, Time>,
    service: Service,
    time: Time,
    id: String,
}

impl World {
    fn new() -> Self {
        let table = MemoryTable::new();
        let store = Arc::new(Store::new(Arc::new(table.clone())));
        let time = Time(Arc::new(AtomicI64::new(BEGIN)));
        let (store_of, clock) = (Arc::clone(&store), time.clone());
        let submit = Submit {
            store: store_of,
            prices: NoPrices,
            clock,
            monthly_cap: None,
            guardrails: Guardrails::default(),
        };
        let id = now(submit.submit(request().to_string().as_bytes())).unwrap().id();
        let service = Service {
            described: Arc::new(Mutex::new(Ok(ended(&id, None)))),
            released: Arc::new(Mutex::new(Ok(()))),
            calls: Arc::default(),
        };
        let actuator = Actuator {
            store,
            jobs: service.clone(),
            bus: NoBus,
            clock: time.clone(),
            stack: "stack".to_owned(),
            log_lag_ms: LOG_LAG_MS,
            claim_ms: CLAIM_MS,
            defer_ms: 1_000,
            abandoned_ms: 60_000,
            monthly_cap: None,
        };
        time.0.store(ENDED + 1_000, Ordering::Relaxed);
        Self { table, actuator, service, time, id }
    }

    /// What the service says from now on of what is kept.
    fn keeps(&self, pool: Option<(&str, Option<u64>)>) {
        *self.service.described.lock().unwrap() = Ok(ended(&self.id, pool));
    }

    fn order(&self, ruling: Ruling) -> String {
        let action = ruling.action().unwrap();
        let row = ActionRow::pending(action.clone(), ruling).row(&self.id);
        now(self.table.write(Write::Put(row, Condition::NotExists))).unwrap();
        action
    }

    /// Performs the action once it is time; what is then known of it.
    fn perform(&self, action: &str) -> (Performed, ActionStatus, Vec<Fact>) {
        self.time.0.fetch_add(5_000, Ordering::Relaxed);
        let performed = now(self.actuator.perform(&self.id, action)).unwrap();
        let row = now(self.table.get(&stored::action_key(&self.id, action))).unwrap().unwrap();
        let partition = stored::fact_partition(&self.id);
        let rows = self.table.rows().into_iter().filter(|row| row.key.pk == partition);
        let facts = rows.map(|row| stored::fact(&row).unwrap().fact);
        let facts = facts.filter(|fact| fact.job() == Some(JOB)).collect();
        (performed, ActionRow::read(&row).unwrap().status, facts)
    }

    /// A first reading, or with `last` one that does not end before they are gone.
    fn read(&self, last: bool) -> (Performed, ActionStatus, Vec<Fact>) {
        let action = self.order(Ruling::PoolReadOrdered { job: JOB, n: 1, last });
        self.perform(&action)
    }

    fn calls(&self) -> Vec<String> {
        let name = training_job_name(&self.id, JOB);
        let calls = std::mem::take(&mut *self.service.calls.lock().unwrap());
        calls.into_iter().map(|call| call.strip_suffix(&format!(" {name}")).unwrap().to_owned()).collect()
    }
}

fn ended(id: &str, pool: Option<(&str, Option<u64>)>) -> Description {
    let pool = pool.map(|(status, seconds)| (status.to_owned(), seconds));
    Description {
        name: training_job_name(id, JOB),
        status: "Completed".to_owned(),
        secondary_status: "Completed".to_owned(),
        created: BEGIN,
        started: Some(BEGIN),
        ended: Some(ENDED),
        modified: ENDED,
        billable_seconds: Some(60),
        failure_reason: None,
        interruptions: 0,
        warm_pool: pool.map(|(status, retained_seconds)| WarmPool { status, retained_seconds }),
    }
}

fn done(facts: Vec<Fact>) -> (Performed, ActionStatus, Vec<Fact>) {
    (Performed::Done(Effect::Other), ActionStatus::Done, facts)
}

fn over(seconds: u64) -> Fact {
    Fact::PoolOver { job: JOB, retained: Retained::Seconds(seconds) }
}

/// It was put off for this reason.
fn put_off(outcome: &(Performed, ActionStatus, Vec<Fact>), why: &str) {
    let (performed, status, facts) = outcome;
    let Some(Fact::ActionDeferred { reason, .. }) = facts.last() else { panic!("{facts:?}") };
    assert_eq!((performed, *status), (&Performed::PutOff(reason.clone()), ActionStatus::Pending));
    assert!(reason.contains(why), "{reason}");
    assert!(facts.iter().all(|fact| matches!(fact, Fact::ActionDeferred { .. })), "{facts:?}");
}

#[test]
fn what_is_still_kept_is_seen_once_and_at_last_waited_for() {
    let world = World::new();
    world.keeps(Some(("Available", None)));
    assert_eq!(world.read(false), done(vec![Fact::PoolSeen { job: JOB, n: 1 }]));
    let world = World::new();
    world.keeps(Some(("Available", None)));
    put_off(&world.read(true), "still kept");
    world.keeps(Some(("Terminated", Some(600))));
    let (performed, status, facts) = world.perform("pool-0-0-1-1");
    assert_eq!((performed, status), (Performed::Done(Effect::Other), ActionStatus::Done));
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::PoolOver { .. })).count(), 1);
    assert!(facts.contains(&over(600)));
    assert_eq!(world.calls(), ["describe", "describe"]);
}

#[test]
fn what_is_kept_no_more_is_over_as_soon_as_its_seconds_are_told() {
    for status in ["Reused", "Terminated"] {
        let world = World::new();
        world.keeps(Some((status, Some(17))));
        assert_eq!(world.read(false), done(vec![over(17)]), "{status}");
        // Without them it may yet cost more than nothing.
        let world = World::new();
        world.keeps(Some((status, None)));
        assert_eq!(world.read(false), done(vec![Fact::PoolSeen { job: JOB, n: 1 }]), "{status}");
        let world = World::new();
        world.keeps(Some((status, None)));
        put_off(&world.read(true), "still kept");
    }
    // The service says late that the job has let go of them; one that this version does not know is no end.
    for status in ["InUse", "Draining"] {
        let world = World::new();
        world.keeps(Some((status, None)));
        assert_eq!(world.read(false), done(vec![Fact::PoolSeen { job: JOB, n: 1 }]), "{status}");
    }
}

#[test]
fn a_pool_that_does_not_show_is_believed_gone_only_after_its_time() {
    let world = World::new();
    assert_eq!(world.read(false), done(vec![Fact::PoolSeen { job: JOB, n: 1 }]));
    let at = |time: i64| {
        let world = World::new();
        // A perform is five seconds later.
        world.time.0.store(time - 5_000, Ordering::Relaxed);
        world.read(true)
    };
    put_off(&at(OVER - 1), "still kept");
    assert_eq!(at(OVER), done(vec![over(0)]));
}

#[test]
fn a_job_that_was_deleted_can_tell_nobody() {
    let world = World::new();
    *world.service.described.lock().unwrap() = Err(TrainingJobsError::NotFound("gone".to_owned()));
    assert_eq!(world.read(false), done(vec![Fact::PoolOver { job: JOB, retained: Retained::Unknown }]));
    let world = World::new();
    *world.service.described.lock().unwrap() = Err(TrainingJobsError::NotFound("gone".to_owned()));
    let action = world.order(Ruling::PoolReleaseOrdered { job: JOB });
    let unknown = Fact::PoolOver { job: JOB, retained: Retained::Unknown };
    assert_eq!(world.perform(&action), done(vec![unknown]));
    assert_eq!(world.calls(), ["describe"], "there is nothing to release");
}

#[test]
fn a_release_is_done_when_they_are_gone_and_not_before() {
    let world = World::new();
    world.keeps(Some(("Available", None)));
    let action = world.order(Ruling::PoolReleaseOrdered { job: JOB });
    put_off(&world.perform(&action), "being let go");
    assert_eq!(world.calls(), ["describe", "release"]);
    // The service is slow: it is told again.
    put_off(&world.perform(&action), "being let go");
    assert_eq!(world.calls(), ["describe", "release"]);
    world.keeps(Some(("Terminated", Some(9))));
    let (performed, status, facts) = world.perform(&action);
    assert_eq!(
        (performed, status, facts.contains(&over(9))),
        (Performed::Done(Effect::Other), ActionStatus::Done, true)
    );
    assert_eq!(world.calls(), ["describe"]);
}

#[test]
fn what_another_job_took_first_is_not_released() {
    let world = World::new();
    world.keeps(Some(("Reused", Some(3))));
    let action = world.order(Ruling::PoolReleaseOrdered { job: JOB });
    assert_eq!(world.perform(&action), done(vec![over(3)]));
    assert_eq!(world.calls(), ["describe"]);
}

#[test]
fn trouble_of_any_kind_puts_it_off_and_frees_nothing() {
    let refused =
        TrainingJobsError::Refused { code: "ValidationException".to_owned(), message: "not kept".to_owned() };
    let errors = [
        (TrainingJobsError::Throttled, "throttling"),
        (TrainingJobsError::Unavailable("no answer".to_owned()), "no answer"),
        (refused, "not kept"),
    ];
    for (error, why) in errors {
        for last in [false, true] {
            let world = World::new();
            *world.service.described.lock().unwrap() = Err(error.clone());
            put_off(&world.read(last), why);
        }
        let world = World::new();
        world.keeps(Some(("Available", None)));
        *world.service.released.lock().unwrap() = Err(error);
        let action = world.order(Ruling::PoolReleaseOrdered { job: JOB });
        put_off(&world.perform(&action), why);
        // Its time ends it all the same.
        world.keeps(Some(("Terminated", Some(600))));
        assert!(world.perform(&action).2.contains(&over(600)));
    }
}
