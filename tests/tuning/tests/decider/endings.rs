//! The end of a tuning: by a criterion, by the user, at the cap, by failures.

use search::{Domain, Parameter, SamplerKind, Space};
use tuning::decide::deadline;
use tuning::definition::Instances;
use tuning::log::fact::JobEnd::{AlgorithmError, CapacityError, Completed, ServiceError, Stopped};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{Order, Ruling};
use tuning::state::Status;
use tuning::unit::limits::MAX_TRAINING_JOBS;
use tuning::unit::money::Rate;

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
    assert_eq!(run.state.failure(), None, "a stopped tuning has not failed");
}

#[test]
fn a_stop_request_does_not_replace_an_earlier_end_reason() {
    let mut definition = random(9, 1);
    definition.limits.max_runtime_seconds = Some(2);
    let given = [submitted(), logged(1, job(0), 1, 0.95), time_passed(2), stop_requested(3)];
    let when = [described(5, job(0), Stopped, 5)];
    check(&definition, &given, &when, &["trial 0 stopped: tuning ending", "ended: MaxRuntime"]);
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
    let message = failure_message(&run.state.status);
    assert!(message.contains("in 1 attempt: check the Regex"), "{message}");
}

#[test]
fn a_tuning_whose_time_ends_before_the_end_of_a_trial_counts_no_attempt() {
    let mut definition = random(9, 1);
    definition.limits.max_runtime_seconds = Some(500);
    let given = [submitted(), started(1, job(0)), time_passed(500)];
    let expect = ["trial 0 stopped: tuning ending", "ended: Failed"];
    let run = check(&definition, &given, &[described(510, job(0), Stopped, 50)], &expect);
    let message = failure_message(&run.state.status);
    assert!(message.starts_with("no training job logged a value of the objective metric: "), "{message}");
}

/// The pattern of the metric found lines, so the failure of the program is the cause.
#[test]
fn a_tuning_whose_program_logs_no_number_and_fails_ends_with_its_failure() {
    let when = [logged_nan(50, job(0), 1), described(60, job(0), AlgorithmError, 50)];
    let expect = ["trial 0 failed: exit code 1", "ended: Failed"];
    let run = check(&random(1, 1), &[submitted()], &when, &expect);
    assert_eq!(failure_message(&run.state.status), "exit code 1");
}

#[test]
fn regression_a_tuning_whose_values_are_all_nan_does_not_blame_the_regex() {
    let when = [logged_nan(50, job(0), 1), described(60, job(0), Completed, 50)];
    let run = check(&random(1, 1), &[submitted()], &when, &["trial 0 completed", "ended: Failed"]);
    let expect = "no trial ended with a finite value of the objective metric: check the training program, for example its \
                  learning rate";
    assert_eq!(failure_message(&run.state.status), expect);
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

/// Reports show the progress in this number.
#[test]
fn the_planned_jobs_are_those_of_the_limit_or_the_combinations_of_a_grid_and_the_refit() {
    assert_eq!(random(40, 2).planned_jobs(), 40);
    let values = ["2", "4"].map(str::to_owned).to_vec();
    let parameter = Parameter { name: "depth".to_owned(), domain: Domain::Categorical { values } };
    let mut definition = random(40, 2);
    (definition.space, definition.sampler) = (Space::new(vec![parameter]).unwrap(), SamplerKind::Grid);
    assert_eq!(definition.planned_jobs(), 2);
    definition.refit = true;
    assert_eq!(definition.planned_jobs(), 3);
}

/// The user may raise the cap before the starts continue.
#[test]
fn a_paused_tuning_does_not_end_at_its_cap() {
    let given = [submitted(), logged(10, job(0), 1, 0.5), paused(20, true)];
    let expect = ["trial 0 completed", "notice: 100 % of the cap"];
    let run = &mut check(&capped(random(9, 1), 1), &given, &[described(60, job(0), Completed, 50)], &expect);
    check_next(run, &[paused(70, false)], &["ended: CostCap"]);
}

/// The first instance type has no capacity, and the cap does not pay for the second one.
#[test]
fn the_cap_is_reported_as_used_up_where_other_instances_cost_more() {
    let mut definition = capped(random(9, 1), 1);
    let rate = Some(Rate { instance_hour: 2 * SECOND * 3_600, volume_kilo_gib_hour: 0 });
    definition.job.fallbacks = vec![Instances { count: 1, volume_gib: 0, rate }];
    let run = &mut check(&definition, &[], &[submitted()], &["start 0-0-1"]);
    let expect = [
        "retry after 0-0-1: NextInstances, from 20",
        "trial 0 stopped: tuning ending",
        "notice: 100 % of the cap",
        "ended: CostCap",
    ];
    check_next(run, &[described(20, job(0), CapacityError, 0)], &expect);
}
