//! Training jobs whose end never arrives, as their descriptions show them.

use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase};
use tuning::log::reasons::StopWhy;
use use_cases::describe::{Place, jobs, jobs_after, training_job};
use wire::describe::TrainingJobSummary;

use super::world::{World, now};

const DAY: i64 = 86_400_000;

/// Returns the description of `job`, and its status and secondary status as `DescribeTrainingJob` has them.
fn shown(world: &World, job: JobKey) -> (TrainingJobSummary, [String; 2]) {
    let place = Place::of_arn("");
    let found = now(training_job(&world.store, &world.id, job)).unwrap().unwrap();
    let described = found.described(&place, "prod");
    let of = |member: &str| described[member].as_str().unwrap().to_owned();
    (found.detail(&place).job, [of("TrainingJobStatus"), of("SecondaryStatus")])
}

/// Such a job was in progress for ever, so a stop of it was accepted.
#[test]
fn regression_a_concluded_job_without_a_known_end_has_failed_or_is_stopped() {
    let mut world = World::new(3);
    let (vanished, stopped, completed) = (world.job(0), world.job(1), world.job(2));
    for trial in 0..3 {
        world.phase(trial, JobPhase::Training);
        world.logged(trial, &[(1, 0.5)]);
    }
    world.fact(Fact::JobStopRequested { job: stopped });
    let before = [vanished, stopped, completed].map(|job| shown(&world, job).1);
    assert_eq!(before[0], ["InProgress", "Training"]);
    assert_eq!(before[1], ["Stopping", "Stopping"]);
    world.billed(2, JobEnd::Completed, 5);
    // No sign of the other two arrives, so they are settled in full.
    for _ in 0..5 {
        world.now += DAY;
        world.fact(Fact::TimePassed);
    }
    assert_eq!(world.state().jobs().count(), 0);
    let expected = [
        (vanished, "Failed", "Failed", Some(StopWhy::ReservationUsed { seconds: 0 })),
        (stopped, "Stopped", "Failed", Some(StopWhy::Requested)),
        (completed, "Completed", "Succeeded", None),
    ];
    let listed = now(jobs(&world.store, &Place::of_arn(""), &world.id)).unwrap().unwrap();
    let page = now(jobs_after(&world.store, &Place::of_arn(""), &world.id, None, false, 9)).unwrap().unwrap();
    for ((job, status, objective, stop), entry) in expected.into_iter().zip(&listed) {
        let (summary, statuses) = shown(&world, job);
        assert_eq!(&summary, entry);
        assert!(page.jobs.contains(&(job, summary)));
        assert_eq!(statuses, [status, status], "{job}");
        assert_eq!((&*entry.status, &*entry.controller.state), (status, status), "{job}");
        assert_eq!(entry.objective_status, objective, "{job}");
        assert_eq!(entry.controller.stop_reason, stop.map(use_cases::describe::stop_word));
        assert!(entry.final_objective.is_some(), "its last value is shown");
    }
}
