//! Changes of limits while a tuning runs.

use port_tests::memory::MemoryTable;
use serde_json::json;
use tuning::log::fact::{Fact, JobEnd, JobPhase};
use tuning::state::Status;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::change::{ChangeError, change};
use use_cases::lookup::LookupError;
use use_cases::record;

use super::world::{World, now, request};

/// Stores a change and delivers its fact to the decider, like the stream.
fn changed(world: &mut World, body: &str) -> Result<(), ChangeError> {
    now(change(&world.store, "t", body.as_bytes(), Time(world.now)))?;
    world.catch_up();
    Ok(())
}

#[test]
fn a_change_takes_effect_with_the_decider_s_next_step() {
    let mut world = World::new(9);
    changed(&mut world, r#"{"MaxCostUsd": 2000.5, "MaxParallelTrainingJobs": 3, "paused": true}"#).unwrap();
    let state = world.state();
    assert_eq!(state.money.ledger.cap, Some(MicroUsd(2_000_500_000)));
    assert!(state.is_paused());
    assert_eq!(state.changes.max_parallel.as_ref().map(|change| change.value), Some(3));
    // An older change with the same content has no effect.
    world.now -= 500;
    changed(&mut world, r#"{"paused": false}"#).unwrap();
    assert!(world.state().is_paused());
}

/// Found by the simulator (seed 6092): the stream record of the later change was lost.
#[test]
fn a_lowered_cap_that_was_raised_before_the_next_step_does_not_end_the_tuning() {
    let mut world = World::new(9);
    let low =
        world.recorded(Fact::LimitsChanged { cap: Some(MicroUsd(1)), max_parallel: None, paused: None });
    let high = Fact::LimitsChanged { cap: Some(MicroUsd(900_000_000)), max_parallel: None, paused: None };
    let high = world.recorded(high);
    for fact in [&low, &high] {
        now(record::put(&*world.store.table, &world.id, fact)).unwrap();
    }
    world.hears(&[low]);
    assert_eq!(world.state().money.ledger.cap, Some(MicroUsd(900_000_000)));
}

/// The stream was hours late: the bill of the last job arrived before the raised cap, although both were stored, and the
/// tuning ended at its old cap. Found by seed 1795400006852 of the simulator.
#[test]
fn regression_a_tuning_does_not_end_at_a_cap_that_a_stored_change_has_raised() {
    let mut body = request("t", 9);
    // Pays for one job.
    body["Controller"]["MaxCostUsd"] = json!(9.5);
    let mut world = World::of(MemoryTable::new(), &body);
    world.phase(0, JobPhase::Training);
    let bill = Fact::JobDescribed {
        job: world.job(0),
        end: JobEnd::Completed,
        started: Some(Time(world.now)),
        ended: Some(Time(world.now + 600_000)),
        billable_seconds: 600,
        message: None,
        interruptions: 0,
    };
    let bill = world.recorded(bill);
    let read = world.recorded(Fact::RestRead { job: world.job(0) });
    let high = Fact::LimitsChanged { cap: Some(MicroUsd(900_000_000)), max_parallel: None, paused: None };
    let high = world.recorded(high);
    now(record::put(&*world.store.table, &world.id, &high)).unwrap();
    let confirmed = world.recorded(Fact::BillsConfirmed { bills: vec![(world.job(0), 600)] });
    world.hears(&[bill, read, confirmed]);
    assert_eq!(world.state().status, Status::Active);
    assert_eq!(world.state().money.ledger.cap, Some(MicroUsd(900_000_000)));
}

#[test]
fn an_invalid_change_is_refused_and_not_stored() {
    let mut world = World::new(2);
    let before = world.state();
    let refused = |world: &mut World, body: &str| match changed(world, body) {
        Err(ChangeError::Refused(error)) => error.message,
        other => panic!("{other:?}"),
    };
    assert!(refused(&mut world, r#"{"MaxParallelTrainingJobs": 0}"#).contains("from 1 to 1000"));
    assert!(refused(&mut world, "{}").contains("changes nothing"));
    assert_eq!(world.state(), before);
    let unknown = now(change(&world.store, "other", br#"{"paused": true}"#, Time(0)));
    assert!(matches!(unknown, Err(ChangeError::Lookup(LookupError::NotFound(_)))), "{unknown:?}");
}

#[test]
fn a_cap_requires_a_price() {
    let mut body = request("t", 2);
    body["Controller"].as_object_mut().unwrap().retain(|name, _| name == "EpochPattern");
    let mut world = World::of(MemoryTable::new(), &body);
    let Err(ChangeError::Refused(error)) = changed(&mut world, r#"{"MaxCostUsd": 5}"#) else { panic!() };
    assert!(error.message.contains("needs the price of instance type 'ml.m5.large'"), "{error}");
    changed(&mut world, r#"{"paused": true}"#).unwrap();
}

#[test]
fn without_an_epoch_pattern_parallel_jobs_are_bounded_by_the_lines_kept() {
    let mut body = request("t", 2);
    body["Controller"].as_object_mut().unwrap().remove("EpochPattern");
    body["HyperParameterTuningJobConfig"]["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"] =
        20_000.into();
    let mut world = World::of(MemoryTable::new(), &body);
    changed(&mut world, r#"{"MaxParallelTrainingJobs": 10}"#).unwrap();
    let Err(ChangeError::Refused(error)) = changed(&mut world, r#"{"MaxParallelTrainingJobs": 11}"#) else {
        panic!()
    };
    assert!(error.message.contains("EpochPattern"), "{error}");
}

#[test]
fn an_ended_tuning_cannot_be_changed() {
    let mut world = World::new(1);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(9, 0.5)]);
    world.billed(0, JobEnd::Completed, 5);
    world.fact(Fact::TimePassed);
    let over = changed(&mut world, r#"{"paused": true}"#);
    assert!(matches!(over, Err(ChangeError::Lookup(LookupError::AlreadyEnded(_)))), "{over:?}");
}

#[test]
fn describe_shows_the_changed_limits() {
    let mut world = World::new(2);
    changed(&mut world, r#"{"MaxParallelTrainingJobs": 7, "paused": true}"#).unwrap();
    let place = use_cases::describe::Place::of_arn("arn:aws:lambda:us-east-1:1:function:f");
    let shown = now(use_cases::describe::describe(&world.store, &place, &world.id)).unwrap().unwrap();
    assert_eq!(
        (shown.controller.totals.paused, shown.controller.max_parallel_training_jobs),
        (true, Some(7))
    );
    assert_eq!(shown.controller.totals.paused_since_ms, Some(world.now));
    world.now += 5_000;
    changed(&mut world, r#"{"paused": false}"#).unwrap();
    let shown = now(use_cases::describe::describe(&world.store, &place, &world.id)).unwrap().unwrap();
    let totals = shown.controller.totals;
    assert_eq!((totals.paused, totals.paused_since_ms), (false, None));
}

#[test]
fn describe_shows_that_a_tuning_waits_for_capacity() {
    let mut world = World::new(1);
    let since = world.now + 1_000;
    world.billed(0, JobEnd::CapacityError, 0);
    let place = use_cases::describe::Place::of_arn("arn:aws:lambda:us-east-1:1:function:f");
    let described =
        |world: &World| now(use_cases::describe::describe(&world.store, &place, &world.id)).unwrap().unwrap();
    let shown = described(&world);
    let waiting = shown.controller.waiting_for.unwrap();
    assert_eq!((waiting.reason.as_str(), waiting.since_ms), ("Capacity", since));
    assert_eq!(waiting.next_attempt_ms, Some(since + 30_000));
    assert_eq!(
        (shown.controller.totals.training_jobs_launched, shown.base.status.as_str()),
        (0, "InProgress")
    );
    // The wait is a day unless the request says otherwise.
    world.now += 86_400_000;
    world.fact(Fact::TimePassed);
    let shown = described(&world);
    assert_eq!(shown.base.status, "Failed", "{shown:?}");
    assert_eq!(shown.controller.totals.end_reason.as_deref(), Some("NoCapacity"));
    assert!(shown.failure_reason.is_some_and(|reason| reason.contains("MaxCapacityWaitSeconds")));
    assert_eq!(shown.controller.waiting_for, None);
}
