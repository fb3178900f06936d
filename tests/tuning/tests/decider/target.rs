//! The target of the objective: the trial that reached it trains to its end, and nothing else does.

use tuning::definition::{Definition, Scheduling};
use tuning::log::fact::Fact;
use tuning::log::fact::JobEnd::{AlgorithmError, Completed, MaxRuntime, ServiceError, Stopped};
use tuning::state::Status;
use tuning::unit::ids::TrialId;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};
use crate::waits::{done, on, two_rungs};

fn aiming(definition: Definition, target: f64) -> Definition {
    let mut definition = definition;
    definition.limits.target = Some(target);
    definition
}

/// A single lucky epoch stopped the trial that reached the target, and in 8 of 10 tunings no trial had trained to its end.
#[test]
fn regression_the_trial_that_reached_the_target_trains_to_its_end() {
    let definition = aiming(jobs(9, 2), 0.9);
    let given = [submitted(), logged(10, job(0), 1, 0.89), logged(11, job(1), 1, 0.5)];
    let expect = ["stop 1-0-1: trial 0 reached the target"];
    let run = &mut check(&definition, &given, &[logged(12, job(0), 2, 0.9)], &expect);
    check_next(run, &[described(20, job(1), Stopped, 9)], &["trial 1 stopped: trial 0 reached the target"]);
    // Worse values afterwards stop it at no rung, and the tuning ends whatever its last value is.
    check_next(run, &[logged(30, job(0), 3, 0.1), logged(90, job(0), 9, 0.2)], &[]);
    let expect = ["trial 0 completed", "ending: Target", "ended: Target"];
    check_next(run, &[described(99, job(0), Completed, 90)], &expect);
}

/// The first value of an epoch counts. A later one ended the tuning for the target, with a best value below it.
#[test]
fn regression_a_later_value_of_an_epoch_does_not_reach_the_target() {
    let given = [submitted(), logged(10, job(0), 1, 0.5), logged(11, job(1), 1, 0.4)];
    let run = &mut check(&aiming(random(9, 2), 0.9), &given, &[logged(12, job(0), 1, 0.95)], &[]);
    check_next(run, &[logged(13, job(0), 2, 0.91)], &["stop 1-0-1: trial 0 reached the target"]);
}

#[test]
fn the_search_goes_on_if_the_trial_that_reached_the_target_fails() {
    for (end, expect) in
        [(AlgorithmError, "trial 0 failed: exit code 1"), (Stopped, "trial 0 stopped outside")]
    {
        let given = [submitted(), logged(12, job(0), 2, 0.95), described(20, job(1), Stopped, 9)];
        let starts = [expect, "start 2-0-1", "start 3-0-1"];
        let run = &mut check(&aiming(random(9, 2), 0.9), &given, &[described(30, job(0), end, 25)], &starts);
        // Another trial can reach it, although the best value stands.
        let expect = ["stop 2-0-1: trial 3 reached the target"];
        check_next(run, &[logged(40, job(3), 1, 0.91)], &expect);
        check_next(
            run,
            &[described(41, job(2), Stopped, 9)],
            &["trial 2 stopped: trial 3 reached the target"],
        );
        let expect = ["trial 3 completed", "ending: Target", "ended: Target"];
        check_next(run, &[described(50, job(3), Completed, 30)], &expect);
    }
}

#[test]
fn the_time_limit_of_its_job_is_the_end_of_the_trial() {
    let given = [submitted(), logged(12, job(0), 2, 0.95)];
    let expect = ["trial 0 ran out of time", "ending: Target", "ended: Target"];
    check(&aiming(random(9, 1), 0.9), &given, &[described(30, job(0), MaxRuntime, 25)], &expect);
}

/// A trial that is being stopped cannot train to its end.
#[test]
fn a_trial_that_is_stopped_does_not_end_the_search_by_reaching_the_target() {
    let stop = recorded(5, Fact::JobStopRequested { job: job(0) });
    let given = [submitted(), logged(1, job(0), 1, 0.5), stop];
    let run = &mut check(&aiming(random(9, 2), 0.9), &given, &[logged(6, job(0), 2, 0.95)], &[]);
    let expect = ["trial 0 stopped: requested", "start 2-0-1"];
    check_next(run, &[described(30, job(0), Stopped, 25)], &expect);
}

/// Plays a tuning with promotion whose first trial reaches the target at its first rung, where others are better.
#[test]
fn with_promotion_the_trial_that_reached_the_target_is_promoted_to_its_end_whatever_its_rank() {
    for scheduling in [Scheduling::Asynchronous, Scheduling::Synchronous] {
        let mut definition = aiming(promoting(jobs(99, 2), scheduling), 0.9);
        definition.strategy = comparing(2, 18, 3);
        let definition = promoting(definition, scheduling);
        let run = &mut check(&definition, &[submitted()], &[], &[]);
        run.take(&[logged(1, job(1), 2, 0.6), described(9, job(1), Completed, 9)]);
        // Trial 0 reaches the target at epoch 1, and is worse than trial 1 at the level of its rung.
        let other = run.state.jobs().map(|(key, _, _)| key).find(|key| key.trial.0 != 0).unwrap();
        let rulings = run.take(&[logged(10, job(0), 1, 0.95), logged(11, job(0), 2, 0.3)]);
        assert_eq!(rulings.len(), 1, "{rulings:?}");
        run.take(&[described(12, other, Stopped, 3)]);
        let mut at = 20;
        for (rung, level) in [(1, 6_u64), (2, 18)] {
            let key = at_rung(0, rung - 1, rung);
            run.take(&[described(at, key, Completed, 9)]);
            let next = at_rung(0, rung, rung + 1);
            let running: Vec<_> = run.state.jobs().map(|(key, _, _)| key).collect();
            assert_eq!(running, [next], "{scheduling:?}: only the promoted trial runs");
            run.take(&[logged(at + 1, next, level, 0.2)]);
            at += 10;
        }
        let last = at_rung(0, 2, 3);
        let rulings = run.take(&[described(at, last, Completed, 9)]);
        let rendered: Vec<String> = rulings.iter().map(crate::support::render::render).collect();
        assert_eq!(rendered.first().map(String::as_str), Some("trial 0 completed"), "{rendered:?}");
        assert_eq!(rendered.last().map(String::as_str), Some("ended: Target"), "{rendered:?}");
    }
}

/// Such a trial has no value to promote it with: the promotion broke an invariant, and the tuning failed.
#[test]
fn regression_with_promotion_the_search_goes_on_if_the_trial_that_reached_the_target_diverges() {
    for scheduling in [Scheduling::Asynchronous, Scheduling::Synchronous] {
        let mut definition = aiming(promoting(jobs(99, 1), scheduling), 0.9);
        definition.strategy = comparing(6, 18, 3);
        let definition = promoting(definition, scheduling);
        let run = &mut check(&definition, &[submitted()], &[], &[]);
        run.take(&[logged(1, job(0), 1, 0.95)]);
        assert_eq!(run.state.finalist, Some(TrialId(0)));
        run.take(&[logged_nan(2, job(0), 4), logged_nan(3, job(0), 5), logged_nan(4, job(0), 6)]);
        run.take(&[described(9, job(0), Completed, 9)]);
        assert_eq!((run.state.finalist, &run.state.status), (None, &Status::Active), "{scheduling:?}");
        let running: Vec<_> = run.state.jobs().map(|(key, _, _)| key).collect();
        assert_eq!(running, [job(1)], "{scheduling:?}: a new trial runs");
    }
}

/// One line beyond the last epoch ended this trial as one past its level, and the search used up all jobs.
#[test]
fn regression_with_promotion_the_trial_that_reached_the_target_ends_the_tuning_if_it_trains_on() {
    let mut definition = aiming(promoting(jobs(99, 1), Scheduling::Asynchronous), 0.9);
    definition.strategy = comparing(6, 18, 3);
    let definition = promoting(definition, Scheduling::Asynchronous);
    let run = &mut check(&definition, &[submitted()], &[], &[]);
    run.take(&[logged(1, job(0), 1, 0.95), logged(2, job(0), 6, 0.9), described(9, job(0), Completed, 9)]);
    let last = at_rung(0, 1, 2);
    check_next(run, &[logged(20, last, 18, 0.9), logged(21, last, 19, 0.9)], &["stop 0-1-2: max resource"]);
    let rulings = run.take(&[described(30, last, Stopped, 9)]);
    let rendered: Vec<String> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(rendered.last().map(String::as_str), Some("ended: Target"), "{rendered:?}");
}

/// Nothing starts while the trial waits for another attempt.
#[test]
fn a_retry_of_the_trial_that_reached_the_target_goes_ahead() {
    let given = [submitted(), logged(12, job(0), 2, 0.95), described(20, job(1), Stopped, 9)];
    let when = [described(30, job(0), ServiceError, 25)];
    let expect = ["retry after 0-0-1: ServiceError, from 60"];
    let run = &mut check(&aiming(random(9, 2), 0.9), &given, &when, &expect);
    check_next(run, &[time_passed(90)], &["start 0-0-2"]);
}

#[test]
fn a_trial_whose_stop_was_requested_or_whose_job_has_failed_cannot_reach_the_target() {
    let stop = recorded(5, Fact::JobStopRequested { job: job(0) });
    let reached = Some(TrialId(0));
    for (before, expect) in
        [(seen(5, job(0)), reached), (stop, None), (ended(5, job(0), AlgorithmError), None)]
    {
        let given = [submitted(), logged(1, job(0), 1, 0.5)];
        let mut run = check(&aiming(random(9, 1), 0.9), &given, &[], &[]);
        // Both facts come in one delivery.
        run.take(&[before.clone(), logged(4, job(0), 2, 0.95)]);
        assert_eq!(run.state.finalist, expect, "{before:?}");
    }
}

/// Returns a paused tuning whose trial 0 reached the target and waits at its rung, behind trial 2. Trials 1, 3 and 4 are being
/// stopped.
fn paused_with_finalist() -> Run {
    let definition = aiming(two_rungs(100, Scheduling::Synchronous), 0.9);
    let mut run = check(&definition, &[submitted()], &[], &[]);
    run.take(&done(10, on(2, 0), 4, 0.6));
    run.take(&[logged(20, job(0), 1, 0.95), paused(21, true)]);
    let expect = ["trial 0 waits at rung 0.0, epoch 4"];
    check_next(&mut run, &[logged(30, job(0), 4, 0.3), described(31, job(0), Completed, 9)], &expect);
    run
}

#[test]
fn the_trial_that_reached_the_target_waits_although_its_rung_closes_without_it() {
    let run = &mut paused_with_finalist();
    let expect = ["trial 0 promoted from rung 0.0 to 9: 2 of 2, best 2", "start 0-1-2 to 9"];
    check_next(run, &[paused(40, false)], &expect);
}

#[test]
fn a_stop_request_ends_the_waiting_trial_that_reached_the_target_at_once() {
    let run = &mut paused_with_finalist();
    let expect = ["trial 0 stopped: tuning ending", "trial 2 stopped: tuning ending"];
    check_next(run, &[stop_requested(40)], &expect);
}
