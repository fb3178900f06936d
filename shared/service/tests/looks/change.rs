//! Limits that are changed while a tuning runs.

use service::change::{ChangeError, change};
use service::lookup::LookupError;
use service::memory::MemoryTable;
use service::record;
use tuning::fact::{Fact, JobEnd, JobPhase};
use tuning::money::MicroUsd;

use crate::world::{World, now, request};

/// The order is taken, and its fact handed to the decider as the stream would.
fn changed(world: &mut World, body: &str) -> Result<(), ChangeError> {
    now(change(&world.store, "t", body.as_bytes(), world.now))?;
    world.catch_up();
    Ok(())
}

#[test]
fn a_change_is_in_force_when_the_decider_has_heard_of_it() {
    let mut world = World::new(9);
    changed(&mut world, r#"{"MaxCostUsd": 2000.5, "MaxParallelTrainingJobs": 3, "paused": true}"#).unwrap();
    let state = world.state();
    assert_eq!(state.ledger.cap, Some(MicroUsd(2_000_500_000)));
    assert!(state.is_paused());
    assert_eq!(state.changes.max_parallel.as_ref().map(|change| change.value), Some(3));
    // The same again, from an earlier time, changes nothing.
    world.now -= 500;
    changed(&mut world, r#"{"paused": false}"#).unwrap();
    assert!(world.state().is_paused());
}

/// Found by the simulator (seed 6092): the record of the later change was lost on its way.
#[test]
fn a_lower_cap_ends_nothing_if_it_was_raised_again_before_anybody_decided() {
    let mut world = World::new(9);
    let low =
        world.recorded(Fact::LimitsChanged { cap: Some(MicroUsd(1)), max_parallel: None, paused: None });
    let high = Fact::LimitsChanged { cap: Some(MicroUsd(900_000_000)), max_parallel: None, paused: None };
    let high = world.recorded(high);
    for fact in [&low, &high] {
        now(record::put(&*world.store.table, &world.id, fact)).unwrap();
    }
    world.hears(&[low]);
    assert_eq!(world.state().ledger.cap, Some(MicroUsd(900_000_000)));
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_stored() {
    let mut world = World::new(2);
    let before = world.state();
    let refused = |world: &mut World, body: &str| match changed(world, body) {
        Err(ChangeError::Refused(error)) => error.message,
        other => panic!("{other:?}"),
    };
    assert!(refused(&mut world, r#"{"MaxParallelTrainingJobs": 0}"#).contains("from 1 to 100"));
    assert!(refused(&mut world, "{}").contains("changes nothing"));
    assert_eq!(world.state(), before);
    let unknown = now(change(&world.store, "other", br#"{"paused": true}"#, 0));
    assert!(matches!(unknown, Err(ChangeError::Lookup(LookupError::NotFound(_)))), "{unknown:?}");
}

#[test]
fn without_a_price_no_cap_can_be_set() {
    let mut body = request("t", 2);
    body["Controller"].as_object_mut().unwrap().retain(|name, _| name == "EpochPattern");
    let mut world = World::of(MemoryTable::new(), &body);
    let Err(ChangeError::Refused(error)) = changed(&mut world, r#"{"MaxCostUsd": 5}"#) else { panic!() };
    assert!(error.message.contains("needs the price of instance type 'ml.m5.large'"), "{error}");
    changed(&mut world, r#"{"paused": true}"#).unwrap();
}

#[test]
fn where_lines_are_counted_no_more_jobs_at_once_than_their_lines_can_be_kept() {
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
fn a_tuning_that_is_over_is_not_changed() {
    let mut world = World::new(1);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(9, 0.5)]);
    world.billed(0, JobEnd::Completed, 5);
    world.fact(Fact::TimePassed);
    let over = changed(&mut world, r#"{"paused": true}"#);
    assert!(matches!(over, Err(ChangeError::Lookup(LookupError::AlreadyEnded(_)))), "{over:?}");
}

#[test]
fn describe_shows_what_is_in_force() {
    let mut world = World::new(2);
    changed(&mut world, r#"{"MaxParallelTrainingJobs": 7, "paused": true}"#).unwrap();
    let place =
        service::describe::Place { partition: "aws".into(), region: "us-east-1".into(), account: "1".into() };
    let shown = now(service::describe::describe(&world.store, &place, &world.id)).unwrap().unwrap();
    let controller = &shown["Controller"];
    assert_eq!((&controller["Paused"], &controller["MaxParallelTrainingJobs"]), (&true.into(), &7.into()));
}
