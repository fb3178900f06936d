//! Warm pools after on-demand jobs: reserved with the job, read when another job may have taken them, released when no
//! job will.

use search::{Domain, Parameter, SamplerKind, Space};
use tuning::decide::{deadline, must_fold_first};
use tuning::definition::Definition;
use tuning::log::fact::JobEnd::{Completed, ServiceError, Stopped};
use tuning::log::fact::JobPhase::Training;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::pool::Retained;
use tuning::log::ruling::{NoticeOrder, Order, Ruling};
use tuning::unit::money::MicroUsd;

use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;

/// The largest cost of a warm pool of 600 s, with a minute of tolerance, in micro-dollars.
const KEPT: u64 = 660 * SECOND;

/// Returns a tuning of `max_jobs` on-demand jobs, one at a time, with warm pools of 600 s.
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

/// Returns the fact that the instances of `job` began to run.
fn running(seconds: i64, job: JobKey) -> Recorded {
    let fact = Fact::JobStateChanged {
        job,
        phase: Training,
        started: Some(at(seconds)),
        ended: None,
        message: None,
    };
    recorded(seconds, fact)
}

/// Returns the facts of a job that logged a value and completed.
fn completed(seconds: i64, job: JobKey, billed: u64) -> Vec<Recorded> {
    vec![logged(seconds - 1, job, 1, 0.5), described(seconds, job, Completed, billed)]
}

fn seen(seconds: i64, job: JobKey, n: u32) -> Recorded {
    recorded(seconds, Fact::PoolSeen { job, n })
}

fn over(seconds: i64, job: JobKey, kept: u64) -> Recorded {
    recorded(seconds, Fact::PoolOver { job, retained: Retained::Seconds(kept) })
}

fn ledger(run: &Run) -> (u64, u64) {
    (run.state.money.ledger.spent.0, run.state.money.ledger.reserved.0)
}

/// "P1 spent + reserved <= cap at every step": a warm pool costs money, so its cost is reserved until it is known.
#[test]
fn p1_the_cost_of_a_warm_pool_is_reserved_with_the_job_and_after_its_bill() {
    let mut run = begun(&keeping(3));
    assert_eq!(ledger(&run), (0, WORST_CASE + KEPT));
    check_next(&mut run, &completed(100, job(0), 90), &["trial 0 completed", "start 1-0-1, with pool"]);
    assert_eq!(ledger(&run), (90 * SECOND, WORST_CASE + 2 * KEPT), "two pools and a job");
    check_next(&mut run, &[running(130, job(1))], &["read pool of 0-0-1: 1"]);
    check_next(&mut run, &[over(131, job(0), 30)], &["pool of 0-0-1: 30 s, 3000"]);
    assert_eq!(ledger(&run), (120 * SECOND, WORST_CASE + KEPT));
}

#[test]
fn regression_the_last_job_keeps_no_pool_and_may_take_the_pool_before_it() {
    let mut run = begun(&keeping(2));
    check_next(&mut run, &completed(100, job(0), 90), &["trial 0 completed", "start 1-0-1"]);
    assert_eq!(ledger(&run), (90 * SECOND, WORST_CASE + KEPT));
    check_next(&mut run, &[running(110, job(1))], &["read pool of 0-0-1: 1"]);
    check_next(&mut run, &[over(111, job(0), 10)], &["pool of 0-0-1: 10 s, 1000"]);
    check_next(&mut run, &completed(300, job(1), 90), &["trial 1 completed", "ended: MaxJobs"]);
    assert_eq!(ledger(&run), (190 * SECOND, 0));
}

#[test]
fn a_pool_is_released_when_the_user_stops_the_tuning_whose_last_job_may_take_it() {
    let mut run = begun(&keeping(2));
    run.take(&completed(100, job(0), 90));
    let expect = ["stop 1-0-1: tuning ending", "release pool of 0-0-1"];
    check_next(&mut run, &[stop_requested(105)], &expect);
}

#[test]
fn a_pool_that_the_last_job_did_not_take_is_released() {
    let mut run = begun(&keeping(2));
    run.take(&completed(100, job(0), 90));
    check_next(&mut run, &[running(110, job(1))], &["read pool of 0-0-1: 1"]);
    check_next(&mut run, &[seen(111, job(0), 1)], &["release pool of 0-0-1"]);
}

#[test]
fn a_tuning_ends_after_all_pools_are_booked() {
    let mut run = begun(&keeping(5));
    check_next(&mut run, &[stop_requested(50)], &["stop 0-0-1: tuning ending"]);
    let expect = ["trial 0 stopped: tuning ending", "release pool of 0-0-1"];
    check_next(&mut run, &[logged(51, job(0), 1, 0.5), described(60, job(0), Stopped, 60)], &expect);
    check_next(&mut run, &[over(70, job(0), 8)], &["pool of 0-0-1: 8 s, 800", "ended: Stopped"]);
}

#[test]
fn an_open_pool_is_read_again_when_a_job_starts_or_its_time_is_over() {
    let mut definition = keeping(9);
    definition.limits.max_parallel = 2;
    let mut run = begun(&definition);
    run.take(&completed(100, job(0), 90));
    check_next(&mut run, &[running(130, job(1))], &["read pool of 0-0-1: 1"]);
    check_next(&mut run, &[seen(131, job(0), 1)], &[]);
    check_next(&mut run, &[running(140, job(2))], &["read pool of 0-0-1: 2"]);
    check_next(&mut run, &[seen(141, job(0), 2)], &[]);
    check_next(&mut run, &[time_passed(759)], &[]);
    assert_eq!(deadline(&definition, &run.state), Some(at(760)));
    check_next(&mut run, &[time_passed(760)], &["read pool of 0-0-1: 3, last"]);
    check_next(&mut run, &[over(761, job(0), 600)], &["pool of 0-0-1: 600 s, 60000"]);
}

/// The row of a job takes the cost of its pool, and is written when the job is concluded.
#[test]
fn the_pool_of_a_job_whose_last_lines_are_missing_is_booked_after_its_conclusion() {
    let mut definition = keeping(9);
    definition.limits.max_parallel = 2;
    let mut run = Run::new(&definition);
    run.answers_reads = false;
    run.take(&[submitted()]);
    run.take(&[logged(90, job(0), 1, 0.5), described(100, job(0), Completed, 90)]);
    check_next(&mut run, &[running(101, job(1))], &["read pool of 0-0-1: 1"]);
    check_next(&mut run, &[over(102, job(0), 1)], &[]);
    let rest_read = recorded(103, Fact::RestRead { job: job(0) });
    check_next(&mut run, &[rest_read], &["trial 0 completed", "pool of 0-0-1: 1 s, 100"]);
}

#[test]
fn a_pool_without_an_answer_is_booked_in_full_after_an_hour() {
    let mut definition = keeping(9);
    definition.limits.max_parallel = 2;
    let mut run = begun(&definition);
    run.take(&completed(100, job(0), 90));
    run.take(&[time_passed(760)]);
    let before = ledger(&run);
    assert_eq!(deadline(&definition, &run.state), Some(at(4_360)));
    check_next(&mut run, &[time_passed(4_359)], &[]);
    check_next(&mut run, &[time_passed(4_360)], &[&format!("pool of 0-0-1: unknown, {KEPT}")]);
    assert_eq!(ledger(&run), (before.0 + KEPT, before.1 - KEPT));
    check_next(&mut run, &[over(4_400, job(0), 600)], &[]);
}

#[test]
fn the_pool_of_a_deleted_job_is_booked_in_full() {
    let mut run = begun(&keeping(2));
    run.take(&completed(100, job(0), 90));
    let gone = recorded(110, Fact::PoolOver { job: job(0), retained: Retained::Unknown });
    check_next(&mut run, &[gone], &[&format!("pool of 0-0-1: unknown, {KEPT}")]);
}

#[test]
fn a_job_without_instances_keeps_no_pool() {
    let mut run = begun(&keeping(5));
    run.take(&[logged(1, job(0), 1, 0.5)]);
    let mut other = begun(&keeping(5));
    check_next(
        &mut other,
        &[refused(100, job(0))],
        &["trial 0 failed: no such role", "start 1-0-1, with pool"],
    );
    assert!(other.state.money.pools.is_empty());
    let nothing = described(100, job(1), Stopped, 0);
    check_next(&mut other, &[nothing], &["trial 1 stopped outside", "start 2-0-1, with pool"]);
    assert_eq!(ledger(&other), (0, WORST_CASE + KEPT));
}

/// The reservation of idle instances must not block a job.
#[test]
fn a_pool_is_released_when_a_job_needs_its_money() {
    let mut definition = keeping(9);
    definition.cap = Some(MicroUsd(WORST_CASE + KEPT + 50 * SECOND));
    let mut run = begun(&definition);
    let expect = ["trial 0 completed", "release pool of 0-0-1"];
    check_next(&mut run, &completed(100, job(0), 90), &expect);
    check_next(&mut run, &[over(101, job(0), 1)], &["pool of 0-0-1: 1 s, 100", "start 1-0-1"]);
    assert!(run.state.money.ledger.within_cap());
}

#[test]
fn a_job_starts_without_a_pool_when_the_cap_does_not_pay_for_it() {
    let mut definition = keeping(9);
    definition.cap = Some(MicroUsd(WORST_CASE + KEPT - 1));
    let mut run = Run::new(&definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    assert_eq!(ledger(&run), (0, WORST_CASE));
}

#[test]
fn a_paused_tuning_keeps_no_pools() {
    let mut run = begun(&keeping(9));
    run.take(&[paused(10, true)]);
    check_next(&mut run, &completed(100, job(0), 90), &["trial 0 completed", "release pool of 0-0-1"]);
    check_next(&mut run, &[paused(101, false)], &["start 1-0-1, with pool"]);
}

#[test]
fn pools_above_the_parallel_limit_are_released_oldest_first() {
    let mut definition = keeping(20);
    definition.limits.max_parallel = 2;
    let mut run = begun(&definition);
    run.take(&completed(100, job(0), 90));
    run.take(&completed(110, job(1), 90));
    let expect = ["trial 2 completed", "start 4-0-1, with pool", "release pool of 0-0-1"];
    check_next(&mut run, &completed(120, job(2), 10), &expect);
}

#[test]
fn a_bill_above_the_worst_case_of_the_job_is_an_overrun_despite_the_pool_reservation() {
    let mut run = begun(&keeping(9));
    let rulings = run.take(&completed(5_000, job(0), 3_901));
    assert!(rulings.contains(&Ruling::Order(Order::Notice(NoticeOrder::OverrunSeen))), "{rulings:?}");
}

#[test]
fn after_a_denied_grant_jobs_start_without_pools() {
    let mut run = Run::new(&granting(keeping(9)));
    let asks = format!("ask 1: {0} to {0}", WORST_CASE + KEPT);
    check_next(&mut run, &[submitted()], &[&asks]);
    run.take(&[granted_amount(1, 1, 0)]);
    let asks = format!("ask 2: {WORST_CASE} to {WORST_CASE}");
    check_next(&mut run, &[time_passed(301)], &[&asks]);
    check_next(&mut run, &[granted_amount(302, 2, WORST_CASE)], &["start 0-0-1"]);
}

/// The trial itself takes the instances again after its wait. Without money from the month, no job does.
#[test]
fn a_pool_is_kept_for_a_waiting_trial_and_released_when_only_the_money_of_the_month_is_missing() {
    let mut run = Run::new(&granting(keeping(9)));
    run.take(&[submitted()]);
    check_next(&mut run, &[granted_amount(1, 1, WORST_CASE + KEPT)], &["start 0-0-1, with pool"]);
    let ask = format!("ask 2: {0} to {0}", 90 * SECOND + KEPT);
    let expect = ["retry after 0-0-1: ServiceError, from 130", &ask];
    check_next(&mut run, &[described(100, job(0), ServiceError, 90)], &expect);
    check_next(&mut run, &[granted_amount(101, 2, 0)], &[]);
    check_next(&mut run, &[time_passed(129)], &[]);
    check_next(&mut run, &[time_passed(130)], &["release pool of 0-0-1"]);
}

/// No other job would take it, and its time would be billed.
#[test]
fn regression_the_last_combination_of_a_grid_keeps_no_instances() {
    let mut definition = keeping(9);
    let values = ["2", "4"].map(str::to_owned).to_vec();
    let depth = Parameter { name: "depth".to_owned(), domain: Domain::Categorical { values } };
    (definition.space, definition.sampler) = (Space::new(vec![depth]).unwrap(), SamplerKind::Grid);
    let mut run = Run::new(&definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1, with pool"]);
    check_next(&mut run, &completed(100, job(0), 90), &["trial 0 completed", "start 1-0-1"]);
    // The retry of the last combination keeps none either.
    run.take(&[running(110, job(1)), over(111, job(0), 10)]);
    run.take(&[described(200, job(1), ServiceError, 80)]);
    check_next(&mut run, &[time_passed(230)], &["start 1-0-2"]);
    check_next(&mut run, &completed(300, attempt(1, 2), 60), &["trial 1 completed", "ended: MaxJobs"]);
}

/// The second combination may take the instances of the first, the third none.
#[test]
fn a_pool_is_released_once_each_combination_of_a_grid_has_a_job() {
    let mut definition = keeping(9);
    definition.limits.max_parallel = 2;
    let values = ["2", "4", "6"].map(str::to_owned).to_vec();
    let depth = Parameter { name: "depth".to_owned(), domain: Domain::Categorical { values } };
    (definition.space, definition.sampler) = (Space::new(vec![depth]).unwrap(), SamplerKind::Grid);
    let mut run = Run::new(&definition);
    check_next(&mut run, &[submitted()], &["start 0-0-1, with pool", "start 1-0-1, with pool"]);
    check_next(&mut run, &completed(100, job(0), 90), &["trial 0 completed", "start 2-0-1"]);
    run.take(&[running(110, job(2)), over(111, job(0), 10)]);
    let expect = ["trial 1 completed", "release pool of 1-0-1"];
    check_next(&mut run, &completed(120, job(1), 110), &expect);
}

#[test]
fn a_pool_is_released_for_its_money_while_another_job_runs() {
    let mut definition = keeping(9);
    definition.limits.max_parallel = 2;
    definition.cap = Some(MicroUsd(2 * (WORST_CASE + KEPT) + 50 * SECOND));
    let mut run = begun(&definition);
    let expect = ["trial 0 completed", "release pool of 0-0-1"];
    check_next(&mut run, &completed(100, job(0), 90), &expect);
    check_next(&mut run, &[over(101, job(0), 1)], &["pool of 0-0-1: 1 s, 100", "start 2-0-1"]);
}

/// No job could take the money of the pool, but the next one may take its instances.
#[test]
fn a_pool_is_kept_at_the_cap_while_all_slots_are_in_use() {
    let mut definition = keeping(9);
    definition.cap = Some(MicroUsd(WORST_CASE + 2 * KEPT + 90 * SECOND));
    let mut run = begun(&definition);
    check_next(&mut run, &completed(100, job(0), 90), &["trial 0 completed", "start 1-0-1, with pool"]);
    check_next(&mut run, &[time_passed(110)], &[]);
}

#[test]
fn a_released_pool_is_not_read_and_waits_for_its_end() {
    let mut definition = keeping(20);
    definition.limits.max_parallel = 2;
    let mut run = begun(&definition);
    for number in 0..2 {
        run.take(&completed(100, job(number), 90));
    }
    let expect = ["trial 2 completed", "start 4-0-1, with pool", "release pool of 0-0-1"];
    check_next(&mut run, &completed(120, job(2), 10), &expect);
    let expect = ["read pool of 1-0-1: 1", "read pool of 2-0-1: 1"];
    check_next(&mut run, &[running(130, job(3))], &expect);
    run.take(&[over(131, job(1), 30), over(131, job(2), 10)]);
    let settled = 100 + 660 + 3_600;
    let pools = run.state.money.pools.iter().map(|pool| pool.job).collect::<Vec<_>>();
    assert_eq!(pools, [job(0)]);
    // Job 3 is gone at the end of its longest life, before the pool is settled. Job 4 is only ordered.
    let running = 130 + 3_600 + 120 + 180;
    assert_eq!(deadline(&definition, &run.state), Some(at(running)));
    assert_eq!(must_fold_first(&definition, &run.state, at(settled - 1)), []);
    assert_eq!(must_fold_first(&definition, &run.state, at(settled)), [job(0)]);
}

/// No job comes after it that could take the instances.
#[test]
fn a_retried_refit_keeps_no_pool() {
    let mut definition = Definition { refit: true, ..keeping(9) };
    definition.limits.target = Some(0.7);
    let mut run = begun(&definition);
    run.take(&[logged(10, job(0), 3, 0.75), described(20, job(0), Completed, 10)]);
    run.take(&[over(21, job(0), 1)]);
    let expect = ["retry after 1-0-1: ServiceError, from 60"];
    check_next(&mut run, &[described(30, job(1), ServiceError, 5)], &expect);
    check_next(&mut run, &[time_passed(60)], &["start 1-0-2 to 3 as refit"]);
}
