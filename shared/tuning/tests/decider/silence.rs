//! A job that emits no value of the objective for too long is looked at, and then ended.

use tuning::decide::deadline;
use tuning::definition::Silence;
use tuning::fact::JobEnd::{Completed, Stopped};
use tuning::fact::JobPhase::{Interrupted, Training};

use crate::support::build::*;
use crate::support::{check, check_next};

#[test]
fn a_silent_job_is_looked_at_and_stopped_only_when_its_log_holds_nothing() {
    let definition = silent_for(jobs(1, 1), 600);
    let given = [submitted(), phase(100, job(0), Training)];
    let run = &mut check(&definition, &given, &[time_passed(699)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(700)));
    check_next(run, &[time_passed(700)], &["look at 0-0-1, silent since 100"]);
    check_next(run, &[time_passed(800)], &[]);
    let expect = ["stop 0-0-1: no objective for 600 s"];
    check_next(run, &[silence_seen(801, job(0), 100)], &expect);
    let expect = ["trial 0 stopped: no objective for 600 s", "ended: Failed"];
    check_next(run, &[described(820, job(0), Stopped, 700)], &expect);
    let message = "stopped: no value of the objective metric for 600 s";
    assert_eq!(run.concluded[0].message.as_deref(), Some(message));
}

#[test]
fn a_line_that_was_lost_and_is_found_by_the_look_saves_the_job() {
    let definition = silent_for(jobs(9, 1), 600);
    let given = [submitted(), phase(100, job(0), Training), time_passed(700)];
    let found = [logged(650, job(0), 1, 0.5), silence_seen(701, job(0), 100)];
    let goes_on = "trial 0 goes on at rung 0.0, epoch 1: 1 of 1";
    let run = &mut check(&definition, &given, &found, &[goes_on]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(650 + 600)));
    check_next(run, &[time_passed(1_250)], &["look at 0-0-1, silent since 650"]);
    check_next(run, &[silence_seen(1_251, job(0), 650)], &["stop 0-0-1: no objective for 600 s"]);
}

#[test]
fn a_value_that_is_not_a_number_is_a_sign_of_life() {
    let definition = silent_for(random(9, 1), 600);
    let given = [submitted(), phase(100, job(0), Training), logged_nan(500, job(0), 1)];
    check(&definition, &given, &[time_passed(1_099)], &[]);
    check(&definition, &given, &[time_passed(1_100)], &["look at 0-0-1, silent since 500"]);
}

#[test]
fn the_silence_of_a_job_whose_program_does_not_run_does_not_count() {
    let definition = silent_for(jobs(9, 1), 600);
    check(&definition, &[submitted(), started(1, job(0))], &[time_passed(3_000)], &[]);
    let given = [submitted(), phase(100, job(0), Training), phase(200, job(0), Interrupted)];
    let run = &mut check(&definition, &given, &[time_passed(3_000)], &[]);
    // It counts from when the program runs again.
    check_next(run, &[phase(3_001, job(0), Training), time_passed(3_600)], &[]);
    check_next(run, &[time_passed(3_601)], &["look at 0-0-1, silent since 3001"]);
}

#[test]
fn facts_that_come_hours_late_make_no_job_silent() {
    let definition = silent_for(jobs(9, 2), 600);
    let given = [submitted(), phase(100, job(0), Training)];
    // Time is what the sweeper tells, not the greatest time on a fact.
    check(&definition, &given, &[phase(9_000, job(1), Training)], &[]);
}

#[test]
fn silence_is_allowed_for_ever_where_the_user_says_so() {
    let definition = jobs(9, 1);
    let given = [submitted(), phase(100, job(0), Training)];
    check(&definition, &given, &[time_passed(3_599)], &[]);
}

#[test]
fn half_of_the_limit_is_allowed_while_nothing_was_timed_and_ten_epochs_after() {
    let mut definition = jobs(40, 1);
    definition.silence = Silence::Adaptive;
    definition.job.max_runtime_seconds = 100_000;
    let given = [submitted(), phase(100, job(0), Training)];
    check(&definition, &given, &[time_passed(50_099)], &[]);
    check(&definition, &given, &[time_passed(50_100)], &["look at 0-0-1, silent since 100"]);
    // Five trials of 90 seconds an epoch: 900 seconds and three start-ups (of none that was seen).
    let mut given = vec![submitted()];
    for trial in 0..5 {
        let begin = i64::from(trial) * 1_000;
        let epochs = (1..=9).map(|n| logged(begin + n * 90, job(trial), u64::try_from(n).unwrap(), 0.5));
        given.extend(epochs);
        given.push(described(begin + 900, job(trial), Completed, 800));
    }
    given.push(phase(6_000, job(5), Training));
    check(&definition, &given, &[time_passed(6_899)], &[]);
    check(&definition, &given, &[time_passed(6_900)], &["look at 5-0-1, silent since 6000"]);
    // The user's limit bounds it all.
    definition.job.max_runtime_seconds = 3_000;
    check(&definition, &given, &[time_passed(6_899)], &[]);
    check(&definition, &given, &[time_passed(6_900)], &["look at 5-0-1, silent since 6000"]);
}
