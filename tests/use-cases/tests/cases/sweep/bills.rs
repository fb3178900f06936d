//! Booked bills: each is read once more, a minute later or after that, and a higher one is booked.

use std::sync::Arc;

use serde_json::json;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};
use tuning::state::State;
use tuning::unit::time::{Millis, Time};
use use_cases::decide::Decider;
use use_cases::store::Store;
use use_cases::sweep::{CallKind, Limits, Rate};
use wire::names::training_job_name;

use super::world::{HOUR, MINUTE, World, now, request, unpaced};

fn state(world: &World, id: &str) -> State {
    (*now(Store::new(Arc::new(world.clone())).load(id)).unwrap().unwrap().state).clone()
}

/// A tuning that goes on waits this long for further bills, in ms.
const BATCH_WAIT: i64 = 10 * MINUTE;

/// Ends a job with this bill.
fn end(world: &World, id: &str, job: JobKey, billable_seconds: u64) {
    world.lock().jobs.get_mut(&training_job_name(id, job)).unwrap().status = "Completed";
    let at = Time(world.lock().now);
    let ended = Fact::JobStateChanged {
        job,
        phase: JobPhase::Ended(JobEnd::Completed),
        started: Some(at),
        ended: Some(at),
        message: None,
    };
    let described = Fact::JobDescribed {
        job,
        end: JobEnd::Completed,
        started: Some(at),
        ended: Some(at),
        billable_seconds,
        message: None,
        interruptions: 0,
    };
    for (key, fact) in [("ended", ended), ("described", described), ("read", Fact::RestRead { job })] {
        world.decide(id, &[Recorded { key: format!("{key}#{job}"), at, fact }]);
    }
}

/// Creates a tuning whose first `count` jobs have completed, with these billed seconds. The service bills 60 s.
fn billed(count: usize, billable_seconds: u64) -> (World, String, Vec<JobKey>) {
    let world = World::new();
    let parallel = u32::try_from(count).unwrap() + 1;
    let id = world.running("t", parallel);
    let jobs: Vec<JobKey> = world.live(&id).into_iter().take(count).collect();
    for job in &jobs {
        end(&world, &id, *job, billable_seconds);
    }
    assert_eq!(state(&world, &id).money.billing.len(), count);
    world.calls();
    (world, id, jobs)
}

/// Returns the names of the described jobs, without those that still run.
fn described(world: &World, id: &str, jobs: &[JobKey]) -> Vec<String> {
    let names: Vec<String> = jobs.iter().map(|job| training_job_name(id, *job)).collect();
    let calls = world.calls().into_iter().filter(|call| call.sort == CallKind::Describe);
    calls.map(|call| call.name).filter(|name| names.contains(name)).collect()
}

/// Returns the limits of a sweep that describes so many jobs.
fn describing(per_sweep: u32) -> Limits {
    let mut limits = unpaced();
    limits.calls.describe = Rate { per_sweep, every_ms: Millis(0) };
    limits
}

#[test]
fn a_booked_bill_is_read_once_more_after_a_while() {
    let (world, id, jobs) = billed(2, 60);
    world.sweep(unpaced());
    assert_eq!(described(&world, &id, &jobs), [] as [&str; 0], "too early");
    world.pass(BATCH_WAIT);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 2);
    assert_eq!(described(&world, &id, &jobs).len(), 2);
    world.decide(&id, &[]);
    assert_eq!(state(&world, &id).money.billing, []);
    world.pass(BATCH_WAIT);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 0, "once");
}

/// "A rise is booked."
#[test]
fn a_higher_bill_is_booked_and_read_again() {
    let (world, id, jobs) = billed(1, 40);
    world.pass(BATCH_WAIT);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 0);
    world.decide(&id, &[]);
    let (_, job) = &state(&world, &id).money.billing[0];
    assert_eq!(job.bill.seconds(), Some(60));
    let row = world.row_of_job(&id, jobs[0]);
    assert_eq!((row.billable_seconds, row.cost), (Some(60), job.bill.amount()));
    world.pass(MINUTE);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 1);
    world.decide(&id, &[]);
    assert_eq!(state(&world, &id).money.billing, []);
}

/// The stream record of the higher bill is late, and later readings fail until the wait is over. Found by seed
/// 1795428611764 of the simulator.
#[test]
fn regression_a_stored_higher_bill_is_not_overruled_when_the_wait_is_over() {
    let (world, id, _) = billed(1, 40);
    world.pass(BATCH_WAIT);
    world.sweep(unpaced());
    world.lock().jobs.values_mut().for_each(|job| job.is_unreadable = true);
    world.pass(HOUR);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 0);
    world.decide(&id, &[]);
    let (_, job) = &state(&world, &id).money.billing[0];
    assert_eq!(job.bill.seconds(), Some(60));
    world.pass(MINUTE);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 1);
}

/// The stream record of the higher bill was late, and the record of an earlier confirmation of the lower bill came first.
/// Found by seed 700416625 of the simulator.
#[test]
fn regression_a_stored_higher_bill_is_booked_before_a_confirmation() {
    let (world, id, jobs) = billed(1, 40);
    world.pass(BATCH_WAIT);
    world.sweep(unpaced());
    let fact = Fact::BillsConfirmed { bills: vec![(jobs[0], 40)] };
    let confirmed = Recorded { key: "bills".to_owned(), at: Time(world.lock().now), fact };
    let store = Arc::new(Store::new(Arc::new(world.clone())));
    now(Decider { store }.decide(&id, &[confirmed], false)).unwrap();
    let bills = state(&world, &id).money.billing.into_iter().map(|(_, job)| job.bill.seconds());
    assert_eq!(bills.collect::<Vec<_>>(), [Some(60)], "and the job stays until this bill is confirmed");
}

/// Each fact costs a step.
#[test]
fn the_bills_of_a_tuning_that_goes_on_are_read_together() {
    let (few, _, _) = billed(19, 60);
    few.pass(MINUTE);
    assert_eq!(few.sweep(unpaced()).settled.confirmed, 0);
    few.pass(BATCH_WAIT);
    assert_eq!(few.sweep(unpaced()).settled.confirmed, 19);
    let (many, _, _) = billed(20, 60);
    many.pass(MINUTE);
    assert_eq!(many.sweep(unpaced()).settled.confirmed, 20);
}

#[test]
fn the_last_bills_are_read_after_a_minute() {
    let world = World::new();
    let mut body = request("t", 1);
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(1);
    let id = world.submit_request(&body);
    let job = world.live(&id)[0];
    world.create_job(&training_job_name(&id, job), "ours");
    end(&world, &id, job, 60);
    assert!(!state(&world, &id).is_ended());
    world.pass(MINUTE - 1);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 0, "too early");
    world.pass(1);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 1);
    world.decide(&id, &[]);
    assert!(state(&world, &id).is_ended());
}

#[test]
fn the_bill_of_a_deleted_job_is_confirmed() {
    let (world, id, jobs) = billed(1, 60);
    world.lock().jobs.remove(&training_job_name(&id, jobs[0]));
    world.pass(BATCH_WAIT);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 1);
}

#[test]
fn a_bill_that_cannot_be_read_for_an_hour_is_confirmed() {
    let (world, id, _) = billed(1, 60);
    world.lock().jobs.values_mut().for_each(|job| job.is_unreadable = true);
    world.pass(BATCH_WAIT);
    let swept = world.sweep(unpaced());
    assert_eq!((swept.settled.confirmed, state(&world, &id).money.billing.len()), (0, 1));
    world.pass(HOUR);
    assert_eq!(world.sweep(unpaced()).settled.confirmed, 1);
}

#[test]
fn the_next_sweep_reads_the_bills_for_which_one_has_no_calls() {
    let (world, id, jobs) = billed(5, 60);
    world.pass(BATCH_WAIT);
    let first = world.sweep(describing(3));
    assert!(first.left > 0 && described(&world, &id, &jobs).len() <= 3, "{first:?}");
    for _ in 0..4 {
        world.decide(&id, &[]);
        world.pass(MINUTE);
        world.sweep(describing(3));
    }
    world.decide(&id, &[]);
    let open = state(&world, &id).money.billing.iter().filter(|(job, _)| jobs.contains(job)).count();
    assert_eq!(open, 0);
}
