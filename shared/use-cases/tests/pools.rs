//! Actions about kept instances: the actuator polls and releases them, and relies only on answers of the training
//! service.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use tuning::fact::{Fact, JobKey};
use tuning::pool::Retained;
use tuning::ruling::Order;
use use_cases::memory::MemoryTable;
use use_cases::perform::{Actuator, CLAIM_MS, Effect, LOG_LAG_MS, Performed};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::training::{
    Description, JobLogs, LogLine, Paged, TrainingJobs, TrainingJobsError, WarmPool,
};
use use_cases::ports::{Bus, BusError, Clock, Prices, PricesError};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use wire::names::training_job_name;
use wire::sample::{request as request_named, with};
use wire::stored::{self, ActionRow, ActionStatus};

const BEGIN: i64 = 1_790_000_000_000;
const JOB: JobKey = JobKey::new(0, 0, 1);
/// When the job ended.
const ENDED: i64 = BEGIN + 60_000;
/// Instances are kept for 600 s, and for at most a minute longer.
const OVER: i64 = ENDED + 660_000;

#[derive(Clone)]
struct Time(Arc<AtomicI64>);

impl Clock for Time {
    fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A service with one job: its answers, and the calls it received.
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
        Poll::Pending => panic!("a future must not wait here"),
    }
}

fn request() -> Value {
    let config = json!({
        "Strategy": "Random",
        "StrategyConfig": null,
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 1},
    });
    let resources = json!({"ResourceConfig": {"KeepAlivePeriodInSeconds": 600}});
    with(
        request_named("t"),
        json!({"HyperParameterTuningJobConfig": config, "TrainingJobDefinition": resources}),
    )
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
            place: use_cases::describe::Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:f"),
            monthly_cap: None,
        };
        time.0.store(ENDED + 1_000, Ordering::Relaxed);
        Self { table, actuator, service, time, id }
    }

    /// Sets the warm pool that the service returns from now on.
    fn keeps(&self, pool: Option<(&str, Option<u64>)>) {
        *self.service.described.lock().unwrap() = Ok(ended(&self.id, pool));
    }

    fn order(&self, order: Order) -> String {
        let action = order.action();
        let row = ActionRow::pending(order).row(&self.id);
        now(self.table.write(Write::Put(row, Condition::NotExists))).unwrap();
        action
    }

    /// Performs the action when it is due. Returns its result, status and facts.
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

    /// Reads the pool for the first time, or with `last` until its end.
    fn read(&self, last: bool) -> (Performed, ActionStatus, Vec<Fact>) {
        let action = self.order(Order::PoolReadOrdered { job: JOB, n: 1, last });
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

/// Checks that an action was deferred for this reason.
fn assert_deferred(outcome: &(Performed, ActionStatus, Vec<Fact>), why: &str) {
    let (performed, status, facts) = outcome;
    let Some(Fact::ActionDeferred { reason, .. }) = facts.last() else { panic!("{facts:?}") };
    assert_eq!((performed, *status), (&Performed::Deferred(reason.clone()), ActionStatus::Pending));
    assert!(reason.contains(why), "{reason}");
    assert!(facts.iter().all(|fact| matches!(fact, Fact::ActionDeferred { .. })), "{facts:?}");
}

#[test]
fn a_kept_pool_is_reported_once_and_the_last_read_waits_for_its_end() {
    let world = World::new();
    world.keeps(Some(("Available", None)));
    assert_eq!(world.read(false), done(vec![Fact::PoolSeen { job: JOB, n: 1 }]));
    let world = World::new();
    world.keeps(Some(("Available", None)));
    assert_deferred(&world.read(true), "still kept");
    world.keeps(Some(("Terminated", Some(600))));
    let (performed, status, facts) = world.perform("pool-0-0-1-1");
    assert_eq!((performed, status), (Performed::Done(Effect::Other), ActionStatus::Done));
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::PoolOver { .. })).count(), 1);
    assert!(facts.contains(&over(600)));
    assert_eq!(world.calls(), ["describe", "describe"]);
}

#[test]
fn a_pool_is_over_when_its_seconds_are_known() {
    for status in ["Reused", "Terminated"] {
        let world = World::new();
        world.keeps(Some((status, Some(17))));
        assert_eq!(world.read(false), done(vec![over(17)]), "{status}");
        // While the seconds are missing, the pool may still cost more.
        let world = World::new();
        world.keeps(Some((status, None)));
        assert_eq!(world.read(false), done(vec![Fact::PoolSeen { job: JOB, n: 1 }]), "{status}");
        let world = World::new();
        world.keeps(Some((status, None)));
        assert_deferred(&world.read(true), "still kept");
    }
    // The service may show the job's release of its instances late. An unknown status is not an end.
    for status in ["InUse", "Draining"] {
        let world = World::new();
        world.keeps(Some((status, None)));
        assert_eq!(world.read(false), done(vec![Fact::PoolSeen { job: JOB, n: 1 }]), "{status}");
    }
}

#[test]
fn an_invisible_pool_is_over_only_after_its_maximum_lifetime() {
    let world = World::new();
    assert_eq!(world.read(false), done(vec![Fact::PoolSeen { job: JOB, n: 1 }]));
    let at = |time: i64| {
        let world = World::new();
        // `perform` runs five seconds later.
        world.time.0.store(time - 5_000, Ordering::Relaxed);
        world.read(true)
    };
    assert_deferred(&at(OVER - 1), "still kept");
    assert_eq!(at(OVER), done(vec![over(0)]));
}

#[test]
fn the_retention_time_of_a_deleted_job_is_unknown() {
    let world = World::new();
    *world.service.described.lock().unwrap() = Err(TrainingJobsError::NotFound("gone".to_owned()));
    assert_eq!(world.read(false), done(vec![Fact::PoolOver { job: JOB, retained: Retained::Unknown }]));
    let world = World::new();
    *world.service.described.lock().unwrap() = Err(TrainingJobsError::NotFound("gone".to_owned()));
    let action = world.order(Order::PoolReleaseOrdered { job: JOB });
    let unknown = Fact::PoolOver { job: JOB, retained: Retained::Unknown };
    assert_eq!(world.perform(&action), done(vec![unknown]));
    assert_eq!(world.calls(), ["describe"], "there are no instances to release");
}

#[test]
fn a_release_is_done_when_the_instances_are_released() {
    let world = World::new();
    world.keeps(Some(("Available", None)));
    let action = world.order(Order::PoolReleaseOrdered { job: JOB });
    assert_deferred(&world.perform(&action), "being released");
    assert_eq!(world.calls(), ["describe", "release"]);
    // The service is slow, so the release is sent again.
    assert_deferred(&world.perform(&action), "being released");
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
fn reused_instances_are_not_released() {
    let world = World::new();
    world.keeps(Some(("Reused", Some(3))));
    let action = world.order(Order::PoolReleaseOrdered { job: JOB });
    assert_eq!(world.perform(&action), done(vec![over(3)]));
    assert_eq!(world.calls(), ["describe"]);
}

#[test]
fn an_error_defers_the_action_and_frees_no_money() {
    let refused =
        TrainingJobsError::Refused { code: "ValidationException".to_owned(), message: "not kept".to_owned() };
    let errors = [
        (TrainingJobsError::Throttled, "throttles requests"),
        (TrainingJobsError::Unavailable("no answer".to_owned()), "no answer"),
        (refused, "not kept"),
    ];
    for (error, why) in errors {
        for last in [false, true] {
            let world = World::new();
            *world.service.described.lock().unwrap() = Err(error.clone());
            assert_deferred(&world.read(last), why);
        }
        let world = World::new();
        world.keeps(Some(("Available", None)));
        *world.service.released.lock().unwrap() = Err(error);
        let action = world.order(Order::PoolReleaseOrdered { job: JOB });
        assert_deferred(&world.perform(&action), why);
        // The maximum lifetime ends the pool anyway.
        world.keeps(Some(("Terminated", Some(600))));
        assert!(world.perform(&action).2.contains(&over(600)));
    }
}
