//! The end of a tuning: by a criterion, by the user, at the cap, by failures.

use search::{Domain, Parameter, SamplerKind, Space};
use tuning::decide::deadline;
use tuning::definition::{Definition, Limits, Scheduling};
use tuning::fact::JobEnd::{AlgorithmError, Completed, ServiceError, Stopped};
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::limits::MAX_TRAINING_JOBS;
use tuning::ruling::{EndReason, Order, Ruling};
use tuning::state::Status;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

fn failure_message(status: &Status) -> String {
    if let Status::Ended { why: EndReason::Failed(message), .. } = status {
        message.clone()
    } else {
        panic!("{status:?}")
    }
}

#[test]
fn a_tuning_ends_when_all_its_jobs_are_over() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [described(60, job(0), Completed, 50)];
    check(&random(1, 1), &given, &when, &["trial 0 completed", "ended: MaxJobs"]);
}

#[test]
fn a_tuning_ends_when_no_job_runs_and_no_further_job_fits_the_cap() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [described(60, job(0), Completed, 50)];
    let expect = ["trial 0 completed", "notice: 100 % of the cap", "ended: CostCap"];
    check(&capped(random(9, 1), 1), &given, &when, &expect);
}

#[test]
fn reaching_the_target_stops_all_jobs() {
    let mut definition = random(9, 2);
    definition.limits.target = Some(0.9);
    let run = &mut check(&definition, &[submitted()], &[logged(10, job(0), 1, 0.89)], &[]);
    let expect = ["ending: Target", "stop 0-0-1: tuning ending", "stop 1-0-1: tuning ending"];
    check_next(run, &[logged(11, job(0), 2, 0.9)], &expect);
    check_next(run, &[described(20, job(0), Stopped, 9)], &["trial 0 stopped: tuning ending"]);
    check_next(
        run,
        &[described(20, job(1), Stopped, 9)],
        &["trial 1 stopped: tuning ending", "ended: Target"],
    );
}

#[test]
fn too_many_trials_without_improvement_end_the_tuning() {
    let mut definition = random(9, 1);
    definition.limits.not_improving = Some(2);
    let run = &mut check(
        &definition,
        &[submitted(), logged(1, job(0), 1, 0.5)],
        &[described(2, job(0), Completed, 1)],
        &["trial 0 completed", "start 1-0-1"],
    );
    check_next(
        run,
        &[logged(3, job(1), 1, 0.4), described(4, job(1), Completed, 1)],
        &["trial 1 completed", "start 2-0-1"],
    );
    // An equal value does not improve the objective.
    check_next(
        run,
        &[logged(5, job(2), 1, 0.5), described(6, job(2), Completed, 1)],
        &["trial 2 completed", "ending: NotImproving", "ended: NotImproving"],
    );
}

#[test]
fn the_maximum_runtime_is_a_deadline_and_ends_the_tuning() {
    let mut definition = random(9, 1);
    definition.limits.max_runtime_seconds = Some(500);
    let run = &mut check(&definition, &[submitted()], &[logged(10, job(0), 1, 0.5)], &[]);
    assert_eq!(deadline(&definition, &run.state), Some(at(500)));
    check_next(run, &[time_passed(500)], &["ending: MaxRuntime", "stop 0-0-1: tuning ending"]);
    check_next(
        run,
        &[described(510, job(0), Stopped, 50)],
        &["trial 0 stopped: tuning ending", "ended: MaxRuntime"],
    );
}

#[test]
fn a_stop_request_stops_accepted_and_unaccepted_jobs() {
    let given = [submitted(), started(1, job(0))];
    let run = &mut check(
        &random(9, 2),
        &given,
        &[stop_requested(5)],
        &["stop 0-0-1: tuning ending", "stop 1-0-1: tuning ending"],
    );
    check_next(run, &[never_started(6, job(1))], &["trial 1 never started"]);
    check_next(run, &[ended(7, job(0), Stopped)], &["bill 0-0-1"]);
    check_next(
        run,
        &[described(7, job(0), Stopped, 5)],
        &["trial 0 stopped: tuning ending", "ended: Stopped"],
    );
    check_next(run, &[stop_requested(9)], &[]);
}

#[test]
fn a_stop_request_does_not_replace_an_earlier_end_reason() {
    let mut definition = random(9, 1);
    definition.limits.target = Some(0.9);
    let given = [submitted(), logged(1, job(0), 1, 0.95), stop_requested(2)];
    let when = [described(5, job(0), Stopped, 5)];
    check(&definition, &given, &when, &["trial 0 stopped: tuning ending", "ended: Target"]);
}

#[test]
fn a_stop_request_before_the_submission_ends_the_tuning_without_a_job() {
    check(&random(9, 1), &[stop_requested(1)], &[submitted()], &["ended: Stopped"]);
}

#[test]
fn a_stop_request_finishes_waiting_trials() {
    let given = [submitted(), described(60, job(0), ServiceError, 0)];
    let expect = ["stop 1-0-1: tuning ending", "trial 0 failed: the training job failed without a reason"];
    let run = &mut check(&random(9, 1), &given, &[stop_requested(61)], &expect);
    let expect = ["trial 1 stopped: tuning ending", "ended: Stopped"];
    check_next(run, &[described(62, job(1), Stopped, 1)], &expect);
}

#[test]
fn five_trials_without_a_value_fail_the_tuning_with_a_hint_about_the_regex() {
    let mut given = vec![submitted()];
    given.extend((0..4).map(|n| described(i64::from(n) + 1, job(n), Completed, 1)));
    let when = [described(9, job(4), Completed, 1)];
    let run = check(&random(9, 1), &given, &when, &["trial 4 completed", "ending: Failed", "ended: Failed"]);
    assert!(failure_message(&run.state.status).contains("check the Regex of the metric"));
}

/// Returns the fact that the program of a job failed with `message`.
fn failed(seconds: i64, job: JobKey, message: &str) -> Recorded {
    let mut recorded = described(seconds, job, AlgorithmError, 1);
    let Fact::JobDescribed { message: written, .. } = &mut recorded.fact else { panic!("{recorded:?}") };
    *written = Some(message.to_owned());
    recorded
}

#[test]
fn five_failed_trials_fail_the_tuning_with_the_last_failure() {
    let mut given = vec![submitted()];
    given.extend(["a", "b", "c", "d"].iter().zip(0..).map(|(why, n)| failed(i64::from(n) + 1, job(n), why)));
    let when = [failed(9, job(4), "e")];
    let run = check(&random(9, 1), &given, &when, &["trial 4 failed: e", "ending: Failed", "ended: Failed"]);
    assert!(failure_message(&run.state.status).contains("Last failure: e"));
}

#[test]
fn three_first_trials_that_fail_for_one_cause_fail_the_tuning() {
    let text =
        |port: u32| format!("AlgorithmError: import xgboost\nbind: port {port} is in use, exit code: 1");
    let given =
        [submitted(), failed(1, job(0), &text(8_001)), failed(2, job(1), &text(8_002)), time_passed(3)];
    let expect = [&format!("trial 2 failed: {}", text(9))[..], "ending: Failed", "ended: Failed"];
    let run = check(&random(9, 1), &given, &[failed(4, job(2), &text(9))], &expect);
    assert_eq!(
        failure_message(&run.state.status),
        "the first 3 training jobs failed for the same reason: exit code 1, bind: port 8001 is in use"
    );
    // P5: a tuning of a release without this rule keeps its rules.
    let random = random(9, 1);
    let older = Definition { limits: Limits { first_failures: 0, ..random.limits.clone() }, ..random };
    let expect = [expect[0], "start 3-0-1"];
    check(&older, &given, &[failed(4, job(2), &text(9))], &expect);
}

#[test]
fn first_failures_count_only_if_the_program_failed_in_each_ended_trial() {
    let silent = |n| described(1, job(n), Completed, 1);
    let service = described(1, attempt(0, 1), ServiceError, 0);
    for other in
        [failed(1, job(0), "b"), silent(0), described(1, job(0), Stopped, 1), refused(1, job(0)), service]
    {
        let mut run = Run::new(&random(9, 1));
        run.take(&[submitted()]);
        run.take(std::slice::from_ref(&other));
        for trial in 1..4 {
            run.take(&[failed(i64::from(trial) + 1, job(trial), "a")]);
        }
        assert_eq!(run.state.status, Status::Active, "{other:?}");
    }
}

/// A promoted trial with a value waited at its rung, and the tuning failed for the trials that had failed before.
#[test]
fn regression_first_failures_do_not_fail_a_tuning_with_a_trial_that_waits_at_a_rung() {
    for value in [Some(0.5), None] {
        let mut run = Run::new(&promoting(jobs(40, 4), Scheduling::Asynchronous));
        run.take(&[submitted()]);
        for trial in 1..4 {
            run.take(&[failed(i64::from(trial), job(trial), "out of memory")]);
        }
        assert_eq!(run.state.status, Status::Active, "trial 0 runs");
        let line = value.map_or_else(|| logged_nan(5, job(0), 1), |value| logged(5, job(0), 1, value));
        run.take(&[line, described(9, job(0), Completed, 9)]);
        assert_eq!(run.state.status, Status::Active, "{value:?}");
    }
}

#[test]
fn jobs_without_a_failure_reason_have_no_common_cause() {
    let mut run = Run::new(&random(9, 1));
    run.take(&[submitted()]);
    for trial in 0..4 {
        let mut silent = failed(i64::from(trial) + 1, job(trial), "");
        let Fact::JobDescribed { message, .. } = &mut silent.fact else { panic!("{silent:?}") };
        *message = None;
        run.take(&[silent]);
    }
    assert_eq!(run.state.status, Status::Active);
}

/// Of many parallel trials, some fail for their hyperparameters before a good one logs its first value.
#[test]
fn failures_of_parallel_trials_wait_for_the_first_trials() {
    let given: Vec<_> = std::iter::once(submitted())
        .chain((1..4).map(|n| failed(i64::from(n), job(n), "no memory")))
        .collect();
    let run = &mut check(&random(99, 4), &given, &[started(5, job(0))], &[]);
    assert_eq!(run.state.failures.causes.len(), 1);
    let mut fails = Run::new(&random(99, 4));
    for fact in &given {
        fails.take(std::slice::from_ref(fact));
    }
    fails.take(&[failed(6, job(0), "no memory")]);
    assert!(matches!(&fails.state.status, Status::Ending(EndReason::Failed(why)) if why.contains("first 4")));
    // A value shows that the program works.
    run.take(&[logged(6, job(0), 1, 0.5)]);
    run.take(&[failed(7, job(0), "no memory")]);
    assert_eq!(run.state.status, Status::Active);
}

#[test]
fn failures_after_a_success_do_not_fail_the_tuning() {
    let mut given = vec![submitted(), logged(1, job(0), 1, 0.5)];
    given.extend((0..8).map(|n| described(i64::from(n) + 1, job(n), AlgorithmError, 1)));
    let when = [described(90, job(8), AlgorithmError, 1)];
    check(&random(9, 1), &given, &when, &["trial 8 failed: exit code 1", "ended: MaxJobs"]);
}

#[test]
fn a_tuning_that_ends_without_a_value_fails() {
    let when = [described(60, job(0), Completed, 50)];
    let run = check(&random(1, 1), &[submitted()], &when, &["trial 0 completed", "ended: Failed"]);
    assert!(failure_message(&run.state.status).contains("Regex"));
}

#[test]
fn an_ended_tuning_decides_nothing_and_has_no_deadline() {
    let given = [submitted(), logged(10, job(0), 1, 0.5), described(60, job(0), Completed, 50)];
    let late = [logged(70, job(0), 2, 0.9), started(71, job(0)), time_passed(80)];
    let run = check(&random(1, 1), &given, &late, &[]);
    assert_eq!(deadline(&run.definition, &run.state), None);
}

/// Every state that waits only for time has a deadline, and the decider rules at that time.
#[test]
fn a_waiting_tuning_proceeds_at_its_deadline() {
    let value = logged(1, job(0), 1, 0.5);
    let over = described(60, job(0), ServiceError, 0);
    let mut timed = random(9, 1);
    timed.limits.max_runtime_seconds = Some(900);
    let states = [
        (random(1, 1), vec![value.clone(), ended(60, job(0), Completed), time_passed(130)]),
        (random(9, 1), vec![deferred(1, job(0), 70), never_started(2, job(0))]),
        (capped(random(9, 2), 1), vec![deferred(1, job(0), 70), over]),
        (timed, vec![value]),
    ];
    for (definition, facts) in states {
        let run = &mut check(&definition, &[submitted()], &[], &[]);
        for fact in &facts {
            run.take(std::slice::from_ref(fact));
        }
        let at = deadline(&definition, &run.state).expect("a waiting tuning has a deadline");
        let seconds = (at - CREATED).as_seconds();
        assert_eq!(run.take(&[time_passed(seconds - 1)]), [], "before {seconds}");
        assert_ne!(run.take(&[time_passed(seconds)]), [], "at {seconds}");
    }
}

/// Completed trials without a value point to a wrong metric definition, even when other trials failed.
#[test]
fn completed_trials_without_a_value_give_a_hint_about_the_regex_despite_failures() {
    let mut given = vec![submitted()];
    given.extend((0..4).map(|n| described(i64::from(n) + 1, job(n), Completed, 1)));
    let when = [described(9, job(4), AlgorithmError, 1)];
    let expect = ["trial 4 failed: exit code 1", "ending: Failed", "ended: Failed"];
    let run = check(&random(9, 1), &given, &when, &expect);
    assert!(failure_message(&run.state.status).contains("check the Regex of the metric"));
}

#[test]
fn an_expired_hold_does_not_keep_a_tuning_open_at_its_cap() {
    let given = [submitted(), deferred(1, job(0), 90), logged(10, job(0), 1, 0.5)];
    let when = [described(90, job(0), Completed, 50)];
    let expect = ["trial 0 completed", "notice: 100 % of the cap", "ended: CostCap"];
    check(&capped(random(9, 1), 1), &given, &when, &expect);
}

#[test]
fn a_tuning_without_further_jobs_waits_for_running_jobs() {
    let given = [submitted(), logged(1, job(0), 1, 0.5)];
    check(&random(2, 2), &given, &[described(60, job(0), Completed, 50)], &["trial 0 completed"]);
}

/// A retry of a grid does not replace a combination.
#[test]
fn a_grid_trains_each_combination_once_although_one_is_retried() {
    let values =
        |values: &[&str]| Domain::Categorical { values: values.iter().map(|v| (*v).to_owned()).collect() };
    let parameter = Parameter { name: "depth".to_owned(), domain: values(&["2", "4"]) };
    let mut definition = random(MAX_TRAINING_JOBS, 1);
    (definition.space, definition.sampler) = (Space::new(vec![parameter]).unwrap(), SamplerKind::Grid);
    let run = &mut Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[described(60, job(0), ServiceError, 0)]);
    let completed = |seconds, job| [logged(seconds - 1, job, 1, 0.5), described(seconds, job, Completed, 50)];
    check_next(run, &completed(200, job(1)), &["trial 1 completed", "start 0-0-2"]);
    check_next(run, &completed(300, attempt(0, 2)), &["trial 0 completed", "ended: MaxJobs"]);
    let depths = run.rulings.iter().filter_map(|ruling| match ruling {
        Ruling::Order(Order::Start { configuration, .. }) => configuration.get("depth"),
        _ => None,
    });
    assert_eq!(depths.collect::<Vec<_>>(), ["2", "4", "2"]);
}
