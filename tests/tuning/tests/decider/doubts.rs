//! Doubts that a tuning can succeed: failures of some configurations end no tuning whose other trials may work.

use tuning::definition::{Definition, Scheduling};
use tuning::log::fact::JobEnd::{AlgorithmError, Completed, ServiceError, Stopped};
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::problem::LogProblem;
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{Order, Ruling};
use tuning::rules::doubt;
use tuning::state::Status;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// Returns the fact that the program of a job failed with `message`.
fn failed(seconds: i64, job: JobKey, message: &str) -> Recorded {
    let mut recorded = described(seconds, job, AlgorithmError, 1);
    let Fact::JobDescribed { message: written, .. } = &mut recorded.fact else { panic!("{recorded:?}") };
    *written = Some(message.to_owned());
    recorded
}

/// Ends the running job of each trial in `trials`, and returns the rulings of the last end.
fn end_each(
    run: &mut Run,
    trials: std::ops::Range<u32>,
    end: impl Fn(i64, JobKey) -> Recorded,
) -> Vec<Ruling> {
    trials.fold(Vec::new(), |_, trial| run.take(&[end(10 + i64::from(trial), job(trial))]))
}

fn begun(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    run
}

fn message(run: &Run) -> String {
    match &run.state.status {
        Status::Ended { why: EndReason::Failed(message), .. } => message.clone(),
        other => panic!("{other:?}"),
    }
}

fn started(rulings: &[Ruling]) -> Vec<u32> {
    let trial = |ruling: &Ruling| match ruling {
        Ruling::Order(Order::Start { job, .. }) => Some(job.trial.0),
        _ => None,
    };
    rulings.iter().filter_map(trial).collect()
}

/// A program that cannot succeed ends the tuning after at most `MaxParallelTrainingJobs` + 5 jobs.
#[test]
fn a_program_that_cannot_succeed_ends_the_tuning_after_its_parallel_jobs_and_five_more() {
    for parallel in [1, 4, 8] {
        let mut run = begun(&random(99, parallel));
        let mut trial = 0;
        while !run.state.is_ended() {
            run.take(&[failed(
                10 + i64::from(trial),
                job(trial),
                "ModuleNotFoundError: No module named 'x'",
            )]);
            trial += 1;
        }
        assert_eq!(trial, parallel + 5);
        assert_eq!(
            message(&run),
            format!(
                "the first {trial} training jobs failed for the same reason: ModuleNotFoundError: No module named 'x'"
            )
        );
    }
}

#[test]
fn the_failure_of_a_single_training_job_is_its_cause() {
    let mut run = begun(&random(1, 1));
    run.take(&[failed(10, job(0), "ModuleNotFoundError: No module named 'x'")]);
    assert_eq!(message(&run), "the first training job failed: ModuleNotFoundError: No module named 'x'");
}

/// Configurations that fail fast free their slots before a good job has logged its first epoch. With 60 % failing
/// configurations, 8 of 8 tunings failed.
#[test]
fn regression_fast_failures_do_not_end_a_tuning_whose_other_jobs_run() {
    let mut run = begun(&random(99, 4));
    let rulings = end_each(&mut run, 1..7, |at, job| failed(at, job, "CUDA out of memory"));
    assert!(started(&rulings).is_empty(), "new trials wait for trial 0");
    assert_eq!(run.state.status, Status::Active);
    assert!(doubt(&run.definition, &run.state).unwrap().contains("CUDA out of memory"));
    end_each(&mut run, 7..9, |at, job| failed(at, job, "CUDA out of memory"));
    assert_eq!(run.state.status, Status::Active, "trial 0 has neither ended nor logged a value");
    // Its first value shows that the program works.
    assert_eq!(started(&run.take(&[logged(100, job(0), 1, 0.5)])), [9, 10, 11]);
    // From then on, failures only count as bad trials.
    end_each(&mut run, 9..28, |at, job| failed(at + 100, job, "CUDA out of memory"));
    assert_eq!((run.state.status.clone(), run.state.running()), (Status::Active, 4));
}

/// The same for values that are not finite: the program works, but these configurations diverge.
#[test]
fn regression_diverging_configurations_do_not_end_a_tuning_before_twenty_in_a_row() {
    let mut run = begun(&random(99, 2));
    for trial in 0..19 {
        run.take(&[logged_nan(trial * 9 + 1, job(u32::try_from(trial).unwrap()), 1)]);
        run.take(&[described(trial * 9 + 5, job(u32::try_from(trial).unwrap()), Completed, 4)]);
    }
    assert_eq!((run.state.status.clone(), run.state.running()), (Status::Active, 2));
    run.take(&[logged(900, job(19), 1, 0.5), described(901, job(19), Completed, 9)]);
    assert_eq!(
        run.state.results.fruitless.trials, 0,
        "the first finite value of a trial starts the count again"
    );
}

#[test]
fn twenty_trials_in_a_row_without_a_finite_value_end_the_tuning_once_no_job_runs() {
    for first in [logged_nan(1, job(0), 1), logged(1, job(0), 1, 0.5)] {
        let mut run = begun(&random(99, 2));
        run.take(&[first]);
        let rulings = end_each(&mut run, 1..21, |at, job| failed(at, job, "AccessDenied: the data"));
        assert!(started(&rulings).is_empty());
        assert_eq!((run.state.status.clone(), run.state.running()), (Status::Active, 1), "trial 0 runs");
        let mut works = run.clone();
        let later = logged(80, job(0), 2, 0.6);
        if run.state.search.incumbent.is_none() {
            assert_eq!(started(&works.take(&[later])), [21], "trial 0 has its first finite value");
        }
        run.take(&[described(90, job(0), Completed, 80)]);
        assert!(
            message(&run).contains("trials in a row ended without a finite value of the objective metric")
        );
        assert!(message(&run).ends_with("Last failure: AccessDenied: the data"));
    }
}

#[test]
fn completed_trials_without_a_line_give_a_hint_about_the_regex() {
    for last in [Completed, AlgorithmError] {
        let mut run = begun(&random(9, 1));
        end_each(&mut run, 0..5, |at, job| described(at, job, Completed, 1));
        let expect = if last == Completed { "trial 5 completed" } else { "trial 5 failed: exit code 1" };
        check_next(&mut run, &[described(90, job(5), last, 1)], &[expect, "ending: Failed", "ended: Failed"]);
        assert!(message(&run).contains("check the Regex of the metric"));
    }
}

#[test]
fn failures_of_several_causes_end_the_tuning_with_the_last_one() {
    let mut run = begun(&random(9, 1));
    for (why, trial) in ["a", "b", "c", "d", "e", "f"].iter().zip(0..) {
        run.take(&[failed(i64::from(trial) + 1, job(trial), why)]);
    }
    assert!(message(&run).contains("Last failure: f"));
}

/// The jobs had ended, and their bills had not arrived. Their slots were filled again.
#[test]
fn regression_jobs_that_ended_count_before_they_are_concluded() {
    for end in [AlgorithmError, Completed] {
        let mut run = begun(&random(99, 3));
        for second in 1..40 {
            let running: Vec<JobKey> =
                run.state.jobs().filter(|(_, _, job)| job.end().is_none()).map(|(key, _, _)| key).collect();
            for key in running {
                run.take(&[ended(second, key, end)]);
            }
        }
        assert_eq!(run.state.results.launched, 3 + 5, "{end:?}");
    }
}

/// Causes differ in numbers from job to job.
#[test]
fn failures_of_one_cause_are_reported_as_such() {
    let text =
        |port: u32| format!("AlgorithmError: import xgboost\nbind: port {port} is in use, exit code: 1");
    let mut run = begun(&random(9, 1));
    end_each(&mut run, 0..6, |at, job| failed(at, job, &text(8_000 + job.trial.0)));
    assert_eq!(
        message(&run),
        "the first 6 training jobs failed for the same reason: exit code 1, bind: port 8000 is in use"
    );
}

#[test]
fn five_refused_starts_in_a_row_hold_new_trials_and_fail_the_tuning_once_no_job_runs() {
    let mut run = begun(&random(99, 2));
    let rulings = end_each(&mut run, 1..6, refused);
    assert_eq!((started(&rulings), run.state.status.clone()), (vec![], Status::Active), "trial 0 runs");
    let mut works = run.clone();
    assert_eq!(
        started(&works.take(&[logged(50, job(0), 1, 0.5), described(60, job(0), Completed, 9)])),
        [6, 7]
    );
    let mut fails = begun(&random(99, 1));
    end_each(&mut fails, 0..5, refused);
    assert!(message(&fails).contains("refused 5 training jobs in a row. Last error: no such role"));
}

/// The first try of a job shows nothing about the program if the service failed.
#[test]
fn a_trial_that_waits_for_a_further_attempt_can_still_show_that_the_program_works() {
    let mut run = begun(&random(99, 2));
    run.take(&[described(5, job(0), ServiceError, 0)]);
    end_each(&mut run, 1..8, |at, job| failed(at, job, "out of memory"));
    assert_eq!((run.state.status.clone(), run.state.running()), (Status::Active, 0));
    let rulings = run.take(&[time_passed(60)]);
    assert_eq!(started(&rulings), [0]);
}

/// A quota can block a start for a day.
#[test]
fn a_job_that_a_quota_blocks_does_not_keep_a_tuning_open() {
    let mut run = begun(&random(99, 2));
    let mut blocked = deferred(1, job(0), 60);
    if let Fact::ActionDeferred { quota_exceeded, .. } = &mut blocked.fact {
        *quota_exceeded = true;
    }
    run.take(&[blocked]);
    // The start of trial 1 was sent before.
    run.take(&[started_job(2, 1)]);
    let mut trial = 1;
    while run.state.status == Status::Active && trial < 99 {
        run.take(&[failed(100 + i64::from(trial), job(trial), "out of memory")]);
        trial += 1;
    }
    assert_eq!(trial, 7);
    check_next(&mut run, &[never_started(400, job(0))], &["trial 0 never started", "ended: Failed"]);
}

fn started_job(seconds: i64, trial: u32) -> Recorded {
    recorded(seconds, Fact::JobStarted { job: job(trial) })
}

/// A promoted trial with a value waited at its rung, and the tuning failed for the trials that had failed before.
#[test]
fn regression_failures_do_not_end_a_tuning_with_a_trial_that_waits_to_be_promoted() {
    let mut run = begun(&promoting(jobs(99, 4), Scheduling::Asynchronous));
    run.take(&[logged(5, job(0), 1, 0.5), described(9, job(0), Completed, 9)]);
    end_each(&mut run, 1..40, |at, job| failed(at, job, "out of memory"));
    assert_eq!(run.state.status, Status::Active);
    let at_work: Vec<_> = run.state.jobs().map(|(key, _, _)| key).collect();
    assert_eq!(at_work, [at_rung(0, 1, 2)], "only the promoted trial runs");
}

#[test]
fn failures_after_a_stop_by_a_user_keep_the_reason_of_the_end() {
    let given = [submitted(), logged(1, job(0), 1, 0.5), stop_requested(2)];
    let when = [described(5, job(0), Stopped, 5)];
    check(&random(9, 1), &given, &when, &["trial 0 stopped: tuning ending", "ended: Stopped"]);
}

/// The exit code alone does not show that the failures have one reason.
#[test]
fn failures_with_a_bare_exit_code_are_not_reported_as_one_reason() {
    let mut run = begun(&random(9, 1));
    end_each(&mut run, 0..6, |at, job| described(at, job, AlgorithmError, 1));
    assert_eq!(message(&run), "no training job succeeded after 6 attempts. Last failure: exit code 1");
}

#[test]
fn only_failed_and_refused_jobs_have_a_cause_of_failure() {
    let mut run = begun(&random(99, 4));
    run.take(&[logged(5, job(0), 1, 0.5), described(6, job(0), Completed, 5)]);
    run.take(&[described(7, job(1), Stopped, 5)]);
    run.take(&[never_started(8, job(2))]);
    assert_eq!(run.state.results.failures.causes, []);
    run.take(&[failed(9, job(3), "out of memory"), refused(10, job(4))]);
    let causes: Vec<_> =
        run.state.results.failures.causes.iter().map(|cause| (cause.reason.as_str(), cause.job)).collect();
    assert_eq!(causes, [("out of memory", job(3)), ("no such role", job(4))]);
}

/// Two trials are enough where the log shows why they have no value.
#[test]
fn a_tuning_whose_log_shows_why_values_are_missing_fails_early_with_that_reason() {
    let mut run = begun(&random(99, 1));
    let hint = "the Regex matches no line".to_owned();
    let problem = Box::new(LogProblem::NoValue { hint: hint.clone(), is_cause: true });
    run.take(&[recorded(5, Fact::LogProblemSeen { job: job(0), problem })]);
    end_each(&mut run, 0..2, |seconds, job| described(seconds, job, Completed, 1));
    let expect = "no training job logged a value of the objective metric in 2 attempts";
    assert_eq!(message(&run), format!("{expect}: {hint} (log of trial 0)"));
}
