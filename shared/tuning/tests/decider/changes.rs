//! Limits that are changed while a tuning runs: a new cap, more or fewer jobs at once, a pause.

use tuning::definition::Definition;
use tuning::fact::JobEnd::Completed;
use tuning::fact::{Fact, Recorded};
use tuning::money::MicroUsd;
use tuning::ruling::{EndReason, Ruling};

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

fn changed(seconds: i64, cap: Option<u64>, max_parallel: Option<u32>, paused: Option<bool>) -> Recorded {
    let cap = cap.map(|jobs| MicroUsd(jobs * WORST_CASE));
    recorded(seconds, Fact::LimitsChanged { cap, max_parallel, paused })
}

fn capped_run(worst_cases: u64) -> Run {
    let definition = capped(jobs(100, 4), worst_cases);
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run
}

#[test]
fn a_higher_cap_starts_what_did_not_fit() {
    let mut run = capped_run(2);
    assert_eq!(run.state.running(), 2);
    check_next(&mut run, &[changed(10, Some(3), None, None)], &["start 2-0-1"]);
}

#[test]
fn a_cap_lowered_below_what_is_booked_stops_no_job_and_starts_none() {
    let mut run = capped_run(4);
    run.take(&[logged(5, job(0), 1, 0.1)]);
    check_next(&mut run, &[changed(10, Some(1), None, None)], &[]);
    assert_eq!(run.state.running(), 4);
    // Three bills later one job would fit, and the fourth holds what is left.
    for trial in 0..3 {
        run.take(&[described(20, job(trial), Completed, 10)]);
    }
    assert_eq!(run.state.running(), 1, "its own reservation is the whole cap");
    check_next(&mut run, &[described(60, job(3), Completed, 10)], &["trial 3 completed", "ended: CostCap"]);
}

#[test]
fn fewer_at_once_lets_run_what_runs_and_starts_none_until_there_is_room() {
    let mut run = Run::new(&jobs(100, 4));
    run.take(&[submitted()]);
    check_next(&mut run, &[changed(10, None, Some(2), None)], &[]);
    for trial in 0..2 {
        let expect = [format!("trial {trial} completed")];
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        check_next(
            &mut run,
            &[logged(15, job(trial), 0, 0.1), described(20, job(trial), Completed, 10)],
            &expect,
        );
    }
    check_next(&mut run, &[described(30, job(2), Completed, 10)], &["trial 2 completed", "start 4-0-1"]);
}

#[test]
fn more_at_once_starts_more() {
    let mut run = check(&jobs(100, 1), &[], &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[changed(10, None, Some(3), None)], &["start 1-0-1", "start 2-0-1"]);
}

#[test]
fn a_pause_lets_jobs_run_and_the_tuning_does_not_end_of_it() {
    let mut run = check(&jobs(100, 1), &[], &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[changed(10, None, None, Some(true))], &[]);
    check_next(&mut run, &[described(20, job(0), Completed, 10)], &["trial 0 completed"]);
    check_next(&mut run, &[time_passed(100_000)], &[]);
    check_next(&mut run, &[changed(100_010, None, None, Some(false))], &["start 1-0-1"]);
}

#[test]
fn a_paused_tuning_gives_back_what_the_month_granted() {
    let mut run = Run::new(&granting(jobs(100, 2)));
    run.take(&[submitted()]);
    run.take(&[granted(1, 1, 4)]);
    let rulings = run.take(&[changed(10, None, None, Some(true))]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text, [format!("return 1: {} to 2026-11", 2 * WORST_CASE)]);
}

#[test]
fn of_two_changes_the_later_made_stands_however_they_arrive() {
    let mut run = check(&jobs(100, 1), &[], &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[changed(20, None, Some(1), None)], &[]);
    check_next(&mut run, &[changed(10, None, Some(9), None), changed(20, None, Some(1), None)], &[]);
    assert_eq!(run.state.max_parallel(&run.definition), 1);
    // Another limit, changed before but heard of later, is changed all the same.
    check_next(&mut run, &[changed(15, None, Some(9), Some(true))], &[]);
    assert!(run.state.is_paused() && run.state.max_parallel(&run.definition) == 1);
}

/// Found by the simulator: one job would still have fitted, beside the money that is kept back for the last one.
#[test]
fn people_are_told_that_a_lowered_cap_pays_nothing_more() {
    let definition = Definition { refit: true, ..capped(jobs(100, 4), 5) };
    let mut run = Run::new(&definition);
    let rulings = run.take(&[changed(0, Some(1), None, None), submitted()]);
    assert!(rulings.contains(&Ruling::CapReached { percent: 100 }), "{rulings:?}");
    assert_eq!(rulings.last(), Some(&Ruling::TuningEnded { why: EndReason::CostCap }));
}
