//! Actions about kept instances: the actuator polls and releases them, and relies only on answers of the training
//! service.

use std::sync::Arc;

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobKey};
use tuning::log::pool::Retained;
use tuning::log::ruling::{Order, PoolOrder};
use tuning::unit::time::Time;
use use_cases::perform::{Actuator, Effect, LOG_LAG, Performed};
use use_cases::ports::training::{Description, TrainingJobsError, WarmPool};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use wire::names::training_job_name;
use wire::sample;
use wire::stored::{self, ActionStatus};

use crate::support::{
    PriceList, Script, Service, TestBus, TestClock, action_row, actuator, description, not_found, now, order,
};

const BEGIN: i64 = 1_790_000_000_000;
const JOB: JobKey = JobKey::new(0, 0, 1);
/// When the job ended.
const ENDED: i64 = BEGIN + 60_000;
/// Instances are kept for 600 s, and for at most a minute longer.
const OVER: i64 = ENDED + 660_000;

fn request() -> Value {
    let config = json!({
        "Strategy": "Random",
        "StrategyConfig": null,
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 1},
    });
    let resources = json!({"ResourceConfig": {"KeepAlivePeriodInSeconds": 600}});
    sample::with(
        sample::request("t"),
        json!({"HyperParameterTuningJobConfig": config, "TrainingJobDefinition": resources}),
    )
}

/// An actuator, and a tuning whose first job has ended.
struct World {
    table: MemoryTable,
    actuator: Actuator<MemoryTable, Service, TestBus, TestClock>,
    service: Service,
    time: TestClock,
    id: String,
}

impl World {
    fn new() -> Self {
        let table = MemoryTable::new();
        let shared = Arc::new(table.clone());
        let time = TestClock::at(BEGIN);
        let submit = Submit {
            other_tunings: None,
            store: Arc::new(Store::new(Arc::clone(&shared))),
            prices: PriceList::new(),
            clock: time.clone(),
            monthly_cap: None,
            guardrails: Guardrails::default(),
        };
        let id = now(submit.submit(request().to_string().as_bytes())).unwrap().id();
        let script =
            Script { describe: Some(Ok(ended(&id, None))), release: Some(Ok(())), ..Script::default() };
        let service = Service::new(&time, script);
        let actuator =
            Actuator { stack: "stack".to_owned(), log_lag_ms: LOG_LAG, ..actuator(&shared, &service) };
        time.set(ENDED + 1_000);
        Self { table, actuator, service, time, id }
    }

    /// Sets the warm pool that the service returns from now on.
    fn keeps(&self, pool: Option<(&str, Option<u64>)>) {
        self.service.lock().describe = Some(Ok(ended(&self.id, pool)));
    }

    fn order(&self, ordered: Order) -> String {
        order(&self.table, &self.id, ordered)
    }

    /// Performs the action when it is due. Returns its result, status and facts.
    fn perform(&self, action: &str) -> (Performed, ActionStatus, Vec<Fact>) {
        self.time.pass(5_000);
        let performed = now(self.actuator.perform(&self.id, action)).unwrap();
        let status = action_row(&self.table, &self.id, action).status;
        let partition = stored::fact_partition(&self.id);
        let rows = self.table.rows().into_iter().filter(|row| row.key.pk == partition);
        let facts = rows.map(|row| stored::fact(&row).unwrap().fact);
        let facts = facts.filter(|fact| fact.job() == Some(JOB)).collect();
        (performed, status, facts)
    }

    /// Reads the pool for the first time, or with `last` until its end.
    fn read(&self, last: bool) -> (Performed, ActionStatus, Vec<Fact>) {
        let action = self.order(Order::Pool(PoolOrder::Read { job: JOB, n: 1, last }));
        self.perform(&action)
    }

    fn calls(&self) -> Vec<&'static str> {
        let name = training_job_name(&self.id, JOB);
        let calls = self.service.calls();
        assert!(calls.iter().all(|(_, job)| *job == name), "{calls:?}");
        calls.into_iter().map(|(call, _)| call).collect()
    }
}

fn ended(id: &str, pool: Option<(&str, Option<u64>)>) -> Description {
    let pool =
        pool.map(|(status, retained_seconds)| WarmPool { status: status.to_owned(), retained_seconds });
    Description {
        started: Some(Time(BEGIN)),
        ended: Some(Time(ENDED)),
        modified: Time(ENDED),
        billable_seconds: Some(60),
        warm_pool: pool,
        ..description(&training_job_name(id, JOB), "Completed", BEGIN)
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
        world.time.set(time - 5_000);
        world.read(true)
    };
    assert_deferred(&at(OVER - 1), "still kept");
    assert_eq!(at(OVER), done(vec![over(0)]));
}

#[test]
fn the_retention_time_of_a_deleted_job_is_unknown() {
    let world = World::new();
    world.service.lock().describe = Some(Err(not_found("gone")));
    assert_eq!(world.read(false), done(vec![Fact::PoolOver { job: JOB, retained: Retained::Unknown }]));
    let world = World::new();
    world.service.lock().describe = Some(Err(not_found("gone")));
    let action = world.order(Order::Pool(PoolOrder::Release { job: JOB }));
    let unknown = Fact::PoolOver { job: JOB, retained: Retained::Unknown };
    assert_eq!(world.perform(&action), done(vec![unknown]));
    assert_eq!(world.calls(), ["describe"], "there are no instances to release");
}

#[test]
fn a_release_is_done_when_the_instances_are_released() {
    let world = World::new();
    world.keeps(Some(("Available", None)));
    let action = world.order(Order::Pool(PoolOrder::Release { job: JOB }));
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
    let action = world.order(Order::Pool(PoolOrder::Release { job: JOB }));
    assert_eq!(world.perform(&action), done(vec![over(3)]));
    assert_eq!(world.calls(), ["describe"]);
}

#[test]
fn an_error_defers_the_action_and_frees_no_money() {
    let refused =
        TrainingJobsError::Refused { code: "ValidationException".to_owned(), message: "not kept".to_owned() };
    let errors = [
        (TrainingJobsError::Throttled, "a rate limit of the account"),
        (TrainingJobsError::Unavailable("no answer".to_owned()), "no answer"),
        (refused, "not kept"),
    ];
    for (error, why) in errors {
        for last in [false, true] {
            let world = World::new();
            world.service.lock().describe = Some(Err(error.clone()));
            assert_deferred(&world.read(last), why);
        }
        let world = World::new();
        world.keeps(Some(("Available", None)));
        world.service.lock().release = Some(Err(error));
        let action = world.order(Order::Pool(PoolOrder::Release { job: JOB }));
        assert_deferred(&world.perform(&action), why);
        // The maximum lifetime ends the pool anyway.
        world.keeps(Some(("Terminated", Some(600))));
        assert!(world.perform(&action).2.contains(&over(600)));
    }
}
