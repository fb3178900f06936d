//! Failed training jobs by cause, as Describe shows them.

use tuning::log::fact::{Fact, JobEnd, JobPhase};
use use_cases::describe::{Place, describe};
use wire::describe::FailureCause;

use super::world::{World, now};

/// Ends the trial's job by a failure with this reason.
fn fails(world: &mut World, trial: u32, reason: &str) {
    let (job, message) = (world.job(trial), Some(reason.to_owned()));
    let phase = JobPhase::Ended(JobEnd::AlgorithmError);
    world.fact(Fact::JobStateChanged { job, phase, started: None, ended: None, message });
    world.billed(trial, JobEnd::AlgorithmError, 5);
}

fn failures(world: &World) -> Vec<FailureCause> {
    let place = Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:api");
    now(describe(&world.store, &place, &world.id)).unwrap().unwrap().controller.failures
}

#[test]
fn describe_groups_failed_jobs_by_cause_with_an_example() {
    let mut world = World::new(12);
    world.phase(0, JobPhase::Training);
    world.logged(0, &[(1, 0.5)]);
    assert_eq!(failures(&world), []);
    fails(&mut world, 1, "AlgorithmError: no memory, exit code: 137");
    for trial in 2..4 {
        fails(&mut world, trial, &format!("AlgorithmError: a\nbind: port 80{trial} is in use, exit code: 1"));
    }
    let example = |count, reason: &str, trial| FailureCause {
        count,
        reason: reason.to_owned(),
        training_job_name: Some(format!("{}-{trial}-0-1", world.id)),
    };
    let expected =
        [example(2, "exit code 1, bind: port 802 is in use", 2), example(1, "exit code 137, no memory", 1)];
    assert_eq!(failures(&world), expected);
    for (trial, letter) in (4..).zip('a'..='e') {
        fails(&mut world, trial, &format!("AlgorithmError: {letter}, exit code: 1"));
    }
    let shown = failures(&world);
    let rest = FailureCause { count: 2, reason: "other causes".to_owned(), training_job_name: None };
    assert_eq!((shown.len(), shown.last()), (6, Some(&rest)));
}
