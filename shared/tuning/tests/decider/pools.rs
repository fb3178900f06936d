//! Instances kept after jobs on demand: reserved with the job, read when another may have taken them, released when none
//! will.

use tuning::definition::Definition;
use tuning::fact::JobEnd::{Completed, Stopped};
use tuning::fact::JobPhase::Training;
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::money::MicroUsd;
use tuning::pool::Retained;
use tuning::ruling::Ruling;

use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;

/// Kept for 600 s, and a minute more at most.
const KEPT: u64 = 660 * SECOND;

/// `max_jobs` jobs on demand, one at a time, whose instances are kept for 600 s.
fn keeping(max_jobs: u32) -> Definition {
    let mut definition = random(max_jobs, 1);
    definition.job.keep_alive_seconds = 600;
    definition
}

fn begun(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    run
}

/// The instances of `job` began to run.
fn runs(seconds: i64, job: JobKey) -> Recorded {
    let fact = Fact::JobStateChanged {
        job,
        phase: Training,
        started: Some(at(seconds)),
        ended: None,
        message: None,
    };
    recorded(seconds, fact)
}

/// It showed a value and ended well.
fn well(seconds: i64, job: JobKey, billed: u64) -> Vec<Recorded> {
    vec![logged(seconds - 1, job, 1, 0.5), described(seconds, job, Completed, billed)]
}

fn seen(seconds: i64, job: JobKey, n: u32) -> Recorded {
    recorded(seconds, Fact::PoolSeen { job, n })
}

fn over(seconds: i64, job: JobKey, kept: u64) -> Recorded {
    recorded(seconds, Fact::PoolOver { job, retained: Retained::Seconds(kept) })
}

fn books(run: &Run) -> (u64, u64) {
    (run.state.ledger.spent.0, run.state.ledger.reserved.0)
}

/// "P1 spent + reserved <= cap at every step": what is kept costs, so it is reserved until it is known.
#[test]
fn p1_what_keeping_may_cost_is_reserved_with_the_job_and_after_its_bill() {
    let mut run = begun(&keeping(3));
    assert_eq!(books(&run), (0, WORST_CASE + KEPT));
    check_next(&mut run, &well(100, job(0), 90), &["trial 0 completed", "start 1-0-1, kept"]);
    assert_eq!(books(&run), (90 * SECOND, WORST_CASE + 2 * KEPT), "its own, the other's, and what is kept");
    check_next(&mut run, &[runs(130, job(1))], &["look 1 at what is kept after 0-0-1"]);
    check_next(&mut run, &[over(131, job(0), 30)], &["kept after 0-0-1: 30 s, 3000"]);
    assert_eq!(books(&run), (120 * SECOND, WORST_CASE + KEPT));
}

#[test]
fn after_the_last_job_nothing_is_kept_and_what_was_is_let_go() {
    let mut run = begun(&keeping(2));
    let expect = ["trial 0 completed", "start 1-0-1", "release what is kept after 0-0-1"];
    check_next(&mut run, &well(100, job(0), 90), &expect);
    assert_eq!(books(&run), (90 * SECOND, WORST_CASE + KEPT));
    check_next(&mut run, &[over(110, job(0), 10)], &["kept after 0-0-1: 10 s, 1000"]);
    check_next(&mut run, &well(300, job(1), 90), &["trial 1 completed", "ended: MaxJobs"]);
    assert_eq!(books(&run), (190 * SECOND, 0));
}

#[test]
fn a_tuning_ends_only_when_all_that_is_kept_is_booked() {
    let mut run = begun(&keeping(5));
    check_next(&mut run, &[stop_requested(50)], &["stop 0-0-1: tuning ending"]);
    let expect = ["trial 0 stopped: tuning ending", "release what is kept after 0-0-1"];
    check_next(&mut run, &[logged(51, job(0), 1, 0.5), described(60, job(0), Stopped, 60)], &expect);
    check_next(&mut run, &[over(70, job(0), 8)], &["kept after 0-0-1: 8 s, 800", "ended: Stopped"]);
}

#[test]
fn what_is_still_there_is_looked_at_again_when_another_job_begins_or_its_time_is_over() {
    let mut definition = keeping(9);
    definition.limits.max_parallel = 2;
    let mut run = begun(&definition);
    run.take(&well(100, job(0), 90));
    check_next(&mut run, &[runs(130, job(1))], &["look 1 at what is kept after 0-0-1"]);
    check_next(&mut run, &[seen(131, job(0), 1)], &[]);
    check_next(&mut run, &[runs(140, job(2))], &["look 2 at what is kept after 0-0-1"]);
    check_next(&mut run, &[seen(141, job(0), 2)], &[]);
    check_next(&mut run, &[time_passed(759)], &[]);
    assert_eq!(tuning::decide::deadline(&definition, &run.state), Some(at(760)));
    check_next(&mut run, &[time_passed(760)], &["look 3 at what is kept after 0-0-1, until it is gone"]);
    check_next(&mut run, &[over(761, job(0), 600)], &["kept after 0-0-1: 600 s, 60000"]);
}

#[test]
fn an_hour_after_its_time_what_nobody_knows_of_is_booked_in_full() {
    let mut definition = keeping(9);
    definition.limits.max_parallel = 2;
    let mut run = begun(&definition);
    run.take(&well(100, job(0), 90));
    run.take(&[time_passed(760)]);
    let before = books(&run);
    assert_eq!(tuning::decide::deadline(&definition, &run.state), Some(at(4_360)));
    check_next(&mut run, &[time_passed(4_359)], &[]);
    check_next(&mut run, &[time_passed(4_360)], &[&format!("kept after 0-0-1: unknown, {KEPT}")]);
    assert_eq!(books(&run), (before.0 + KEPT, before.1 - KEPT));
    check_next(&mut run, &[over(4_400, job(0), 600)], &[]);
}

#[test]
fn a_job_that_was_deleted_with_what_it_kept_is_booked_in_full() {
    let mut run = begun(&keeping(2));
    run.take(&well(100, job(0), 90));
    let gone = recorded(110, Fact::PoolOver { job: job(0), retained: Retained::Unknown });
    check_next(&mut run, &[gone], &[&format!("kept after 0-0-1: unknown, {KEPT}")]);
}

#[test]
fn a_job_that_never_had_instances_keeps_none() {
    let mut run = begun(&keeping(5));
    run.take(&[logged(1, job(0), 1, 0.5)]);
    let mut other = begun(&keeping(5));
    check_next(&mut other, &[refused(100, job(0))], &["trial 0 failed: no such role", "start 1-0-1, kept"]);
    assert!(other.state.pools.is_empty());
    let nothing = described(100, job(1), Stopped, 0);
    check_next(&mut other, &[nothing], &["trial 1 stopped outside", "start 2-0-1, kept"]);
    assert_eq!(books(&other), (0, WORST_CASE + KEPT));
}

/// What is reserved for idle instances must not keep a job from starting.
#[test]
fn what_a_job_lacks_is_taken_from_what_is_kept() {
    let mut definition = keeping(9);
    definition.cap = Some(MicroUsd(WORST_CASE + KEPT + 50 * SECOND));
    let mut run = begun(&definition);
    let expect = ["trial 0 completed", "release what is kept after 0-0-1"];
    check_next(&mut run, &well(100, job(0), 90), &expect);
    check_next(&mut run, &[over(101, job(0), 1)], &["kept after 0-0-1: 1 s, 100", "start 1-0-1"]);
    assert!(run.state.ledger.within_cap());
}

#[test]
fn where_the_cap_does_not_pay_for_keeping_a_job_starts_without() {
    let mut definition = keeping(9);
    definition.cap = Some(MicroUsd(WORST_CASE + KEPT - 1));
    let mut run = Run::new(&definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    assert_eq!(books(&run), (0, WORST_CASE));
}

#[test]
fn while_a_tuning_is_paused_nothing_is_kept() {
    let mut run = begun(&keeping(9));
    let pause = |seconds, paused| {
        recorded(seconds, Fact::LimitsChanged { cap: None, max_parallel: None, paused: Some(paused) })
    };
    run.take(&[pause(10, true)]);
    check_next(&mut run, &well(100, job(0), 90), &["trial 0 completed", "release what is kept after 0-0-1"]);
    check_next(&mut run, &[pause(101, false)], &["start 1-0-1, kept"]);
}

#[test]
fn more_than_the_jobs_at_once_can_take_is_let_go_the_oldest_first() {
    let mut definition = keeping(20);
    definition.limits.max_parallel = 2;
    let mut run = begun(&definition);
    run.take(&well(100, job(0), 90));
    run.take(&well(110, job(1), 90));
    let expect = ["trial 2 completed", "start 4-0-1, kept", "release what is kept after 0-0-1"];
    check_next(&mut run, &well(120, job(2), 10), &expect);
}

#[test]
fn a_bill_above_what_the_job_itself_could_cost_is_an_overrun_though_keeping_was_reserved() {
    let mut run = begun(&keeping(9));
    let rulings = run.take(&well(5_000, job(0), 3_901));
    assert!(rulings.contains(&Ruling::OverrunSeen), "{rulings:?}");
}

#[test]
fn where_a_grant_was_denied_nothing_is_kept() {
    let mut run = Run::new(&granting(keeping(9)));
    let asks = format!("ask 1: {0} to {0}", WORST_CASE + KEPT);
    check_next(&mut run, &[submitted()], &[&asks]);
    run.take(&[granted_amount(1, 1, 0)]);
    let asks = format!("ask 2: {WORST_CASE} to {WORST_CASE}");
    check_next(&mut run, &[time_passed(301)], &[&asks]);
    check_next(&mut run, &[granted_amount(302, 2, WORST_CASE)], &["start 0-0-1"]);
}
