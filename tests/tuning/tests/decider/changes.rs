//! Changes of limits while a tuning runs: the cap, the number of parallel jobs, a pause.

use tuning::definition::Definition;
use tuning::log::fact::JobEnd::Completed;
use tuning::log::fact::{Fact, Recorded};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{NoticeOrder, Order, Ruling};
use tuning::unit::money::MicroUsd;

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
fn a_higher_cap_starts_the_jobs_that_did_not_fit() {
    let mut run = capped_run(2);
    assert_eq!(run.state.running(), 2);
    check_next(&mut run, &[changed(10, Some(3), None, None)], &["start 2-0-1"]);
}

#[test]
fn a_cap_below_the_booked_amount_stops_no_job_and_starts_none() {
    let mut run = capped_run(4);
    run.take(&[logged(5, job(0), 1, 0.1)]);
    check_next(&mut run, &[changed(10, Some(1), None, None)], &[]);
    assert_eq!(run.state.running(), 4);
    // After three bills no further job fits beside the reservation of the fourth.
    for trial in 0..3 {
        run.take(&[described(20, job(trial), Completed, 10)]);
    }
    assert_eq!(run.state.running(), 1, "the last job reserves the whole cap");
    check_next(&mut run, &[described(60, job(3), Completed, 10)], &["trial 3 completed", "ended: CostCap"]);
}

#[test]
fn a_lower_parallel_limit_stops_no_job_and_delays_new_starts() {
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
fn a_higher_parallel_limit_starts_more_jobs() {
    let mut run = check(&jobs(100, 1), &[], &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[changed(10, None, Some(3), None)], &["start 1-0-1", "start 2-0-1"]);
}

#[test]
fn a_pause_keeps_running_jobs_and_does_not_end_the_tuning() {
    let mut run = check(&jobs(100, 1), &[], &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[changed(10, None, None, Some(true))], &[]);
    check_next(&mut run, &[described(20, job(0), Completed, 10)], &["trial 0 completed"]);
    check_next(&mut run, &[time_passed(100_000)], &[]);
    check_next(&mut run, &[changed(100_010, None, None, Some(false))], &["start 1-0-1"]);
}

#[test]
fn a_paused_tuning_returns_its_unused_grant() {
    let mut run = Run::new(&granting(jobs(100, 2)));
    run.take(&[submitted()]);
    run.take(&[granted(1, 1, 4)]);
    let rulings = run.take(&[changed(10, None, None, Some(true))]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text, [format!("return 1: {} to 2026-11", 2 * WORST_CASE)]);
}

#[test]
fn the_later_change_of_a_limit_applies_in_any_order_of_arrival() {
    let mut run = check(&jobs(100, 1), &[], &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[changed(20, None, Some(1), None)], &[]);
    check_next(&mut run, &[changed(10, None, Some(9), None), changed(20, None, Some(1), None)], &[]);
    assert_eq!(run.state.max_parallel(&run.definition), 1);
    // An earlier change of a different limit still applies when it arrives later.
    check_next(&mut run, &[changed(15, None, Some(9), Some(true))], &[]);
    assert!(run.state.is_paused() && run.state.max_parallel(&run.definition) == 1);
}

/// Found by the simulator: one job would still have fitted besides the money reserved for the refit job.
#[test]
fn a_lowered_cap_that_pays_no_further_job_publishes_a_notice() {
    let definition = Definition { refit: true, ..capped(jobs(100, 4), 5) };
    let mut run = Run::new(&definition);
    let rulings = run.take(&[changed(0, Some(1), None, None), submitted()]);
    assert!(
        rulings.contains(&Ruling::Order(Order::Notice(NoticeOrder::CapReached { percent: 100 }))),
        "{rulings:?}"
    );
    assert_eq!(
        rulings.last(),
        Some(&Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why: EndReason::CostCap })))
    );
}

/// A change of the cap must be recorded, although the pause follows. [`Run::take`] checks that the state changes only in a step.
#[test]
fn a_request_can_change_the_cap_and_pause_at_once() {
    let mut run = capped_run(2);
    check_next(&mut run, &[changed(10, Some(3), None, Some(true))], &[]);
    assert_eq!(run.state.money.ledger.cap, Some(MicroUsd(3 * WORST_CASE)));
    check_next(&mut run, &[changed(20, None, None, Some(false))], &["start 2-0-1"]);
}
