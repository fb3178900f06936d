//! A job that logs no value of the objective for too long is checked and then stopped.

use tuning::decide::deadline;
use tuning::definition::{Definition, Silence};
use tuning::job::open_silence_check;
use tuning::log::fact::JobEnd::{Completed, Stopped};
use tuning::log::fact::JobPhase::{Interrupted, Training};
use tuning::unit::time::Millis;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

#[test]
fn a_silent_job_is_looked_at_and_stopped_if_its_log_has_no_value() {
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
    let message = "stopped: the log showed no value of the objective metric for 600 s";
    assert_eq!(run.concluded[0].message.as_deref(), Some(message));
}

#[test]
fn a_lost_line_that_the_look_finds_saves_the_job() {
    let definition = silent_for(jobs(9, 1), 600);
    let given = [submitted(), phase(100, job(0), Training), time_passed(700)];
    let found = [logged(650, job(0), 1, 0.5), silence_seen(701, job(0), 100)];
    let continues = "trial 0 continues at rung 0.0, epoch 1: 1 of 1";
    let run = &mut check(&definition, &given, &found, &[continues]);
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
fn silence_does_not_count_while_the_program_does_not_run() {
    let definition = silent_for(jobs(9, 1), 600);
    check(&definition, &[submitted(), started(1, job(0))], &[time_passed(3_000)], &[]);
    let given = [submitted(), phase(100, job(0), Training), phase(200, job(0), Interrupted)];
    let run = &mut check(&definition, &given, &[time_passed(3_000)], &[]);
    // Silence counts from the restart of the program.
    check_next(run, &[phase(3_001, job(0), Training), time_passed(3_600)], &[]);
    check_next(run, &[time_passed(3_601)], &["look at 0-0-1, silent since 3001"]);
}

#[test]
fn facts_that_arrive_hours_late_make_no_job_silent() {
    let definition = silent_for(jobs(9, 2), 600);
    let given = [submitted(), phase(100, job(0), Training)];
    // The sweeper sets the time; the largest time of a fact does not.
    check(&definition, &given, &[phase(9_000, job(1), Training)], &[]);
}

#[test]
fn a_user_can_allow_unlimited_silence() {
    let definition = jobs(9, 1);
    let given = [submitted(), phase(100, job(0), Training)];
    check(&definition, &given, &[time_passed(3_599)], &[]);
}

#[test]
fn the_allowed_silence_is_half_the_runtime_limit_or_ten_timed_epochs() {
    let mut definition = jobs(40, 1);
    definition.silence = Silence::Adaptive;
    definition.job.max_runtime_seconds = 100_000;
    let given = [submitted(), phase(100, job(0), Training)];
    check(&definition, &given, &[time_passed(50_099)], &[]);
    check(&definition, &given, &[time_passed(50_100)], &["look at 0-0-1, silent since 100"]);
    // Five trials of 90 seconds an epoch allow 900 seconds; no startup was timed.
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
    // The user's limit is an upper bound.
    definition.job.max_runtime_seconds = 3_000;
    check(&definition, &given, &[time_passed(6_899)], &[]);
    check(&definition, &given, &[time_passed(6_900)], &["look at 5-0-1, silent since 6000"]);
}

/// Each sweep performs the open looks.
#[test]
fn a_look_is_open_from_its_order_until_its_outcome_or_the_end_of_its_job() {
    let definition = silent_for(random(1, 1), 600);
    let given = [submitted(), phase(100, job(0), Training)];
    let open = |run: &Run| open_silence_check(run.state.job(job(0)).unwrap());
    let run = &mut check(&definition, &given, &[time_passed(699)], &[]);
    assert_eq!(open(run), None);
    check_next(run, &[time_passed(700)], &["look at 0-0-1, silent since 100"]);
    assert_eq!(open(run), Some(at(100)));
    let mut over = run.clone();
    check_next(&mut over, &[ended(710, job(0), Completed)], &["bill 0-0-1"]);
    assert_eq!(open(&over), None);
    check_next(run, &[silence_seen(701, job(0), 100)], &["stop 0-0-1: no objective for 600 s"]);
    assert_eq!(open(run), None);
}

#[test]
fn during_a_look_the_next_silence_is_a_deadline() {
    let definition = silent_for(random(9, 2), 600);
    let given = [submitted(), phase(100, job(0), Training), phase(200, job(1), Training)];
    let run = check(&definition, &given, &[time_passed(700)], &["look at 0-0-1, silent since 100"]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(800)));
}

#[test]
fn a_job_with_an_ordered_stop_is_not_looked_at() {
    // Trials 0 and 2 are in the same bracket.
    let definition = silent_for(jobs(9, 3), 600);
    let given = [submitted(), phase(100, job(2), Training), logged(650, job(0), 1, 0.9), time_passed(740)];
    let late = [logged(130, job(2), 1, 0.1)];
    let out = "trial 2 is out at rung 0.0, epoch 1: 2 of 2";
    check(&definition, &given, &late, &[out, "stop 2-0-1: rung 0"]);
}

#[test]
fn a_refused_job_is_not_looked_at() {
    let definition = silent_for(random(9, 1), 600);
    let when = [refused(5, job(0)), phase(100, job(0), Training), time_passed(900)];
    check(&definition, &[submitted()], &when, &["trial 0 failed: no such role", "start 1-0-1"]);
}

#[test]
fn the_longest_silence_includes_the_usual_startup() {
    let mut run = Run::new(&Definition { silence: Silence::Adaptive, ..jobs(9, 1) });
    run.state.results.timings.epoch_ms = vec![Millis(100_000); 5];
    run.state.results.timings.startup_ms = vec![Millis(50_000); 5];
    run.take(&[submitted()]);
    run.take(&[phase(100, job(0), Training)]);
    let longest = 10 * 100 + 3 * 50;
    assert_eq!(deadline(&run.definition, &run.state), Some(at(100 + longest)));
}
