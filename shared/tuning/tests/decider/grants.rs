//! Money out of the stack's month's cap: asked for before a job starts, given back when it is not used.

use tuning::decide::deadline;
use tuning::definition::Definition;
use tuning::fact::JobEnd::{CapacityError, Completed, Stopped};
use tuning::fact::{Fact, Recorded};
use tuning::money::MicroUsd;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

const J: u64 = WORST_CASE;

#[test]
fn nothing_starts_before_money_is_granted_and_all_free_slots_are_asked_for() {
    let definition = granting(random(9, 4));
    let ask = format!("ask 1: {J} to {}", 4 * J);
    let run = &mut check(&definition, &[], &[submitted()], &[&ask]);
    // Less than was wanted starts as many as it pays; what is missing is asked for.
    let ask = format!("ask 2: {} to {}", J / 2, 2 * J - J / 2);
    let expect = ["start 0-0-1", "start 1-0-1", &ask];
    check_next(run, &[granted_amount(1, 1, 2 * J + J / 2)], &expect);
    assert_eq!(run.state.ledger.granted, Some(MicroUsd(2 * J + J / 2)));
}

#[test]
fn no_more_is_asked_for_than_the_tuning_s_own_cap_allows() {
    let definition = granting(capped(random(9, 4), 2));
    let ask = format!("ask 1: {J} to {}", 2 * J);
    check(&definition, &[], &[submitted()], &[&ask]);
}

#[test]
fn no_more_is_asked_for_than_the_jobs_left_can_use() {
    let ask = format!("ask 1: {J} to {J}");
    check(&granting(random(1, 4)), &[], &[submitted()], &[&ask]);
}

#[test]
fn an_answer_counts_once_and_only_for_the_asking_that_is_open() {
    let definition = granting(random(9, 1));
    let run = &mut check(&definition, &[submitted()], &[granted(1, 1, 1)], &["start 0-0-1"]);
    check_next(run, &[granted(1, 1, 1), granted(2, 2, 5)], &[]);
    assert_eq!(run.state.ledger.granted, Some(MicroUsd(J)));
}

#[test]
fn a_grant_is_used_again_after_a_bill() {
    let definition = granting(random(9, 1));
    let given = [submitted(), granted(1, 1, 1), logged(10, job(0), 1, 0.5)];
    let ask = format!("ask 2: {} to {}", 50 * SECOND, 50 * SECOND);
    let run = &mut check(
        &definition,
        &given,
        &[described(60, job(0), Completed, 50)],
        &["trial 0 completed", &ask],
    );
    check_next(run, &[granted_amount(61, 2, 50 * SECOND)], &["start 1-0-1"]);
    assert_eq!(run.state.ledger.unused(), Some(MicroUsd::ZERO));
}

#[test]
fn at_the_end_what_is_unused_goes_back_and_the_end_waits_for_it() {
    let definition = granting(random(1, 1));
    let given = [submitted(), granted(1, 1, 1), logged(10, job(0), 1, 0.5)];
    let back = format!("return 1: {} to 2026-11", J - 50 * SECOND);
    let run = &mut check(
        &definition,
        &given,
        &[described(60, job(0), Completed, 50)],
        &["trial 0 completed", &back],
    );
    check_next(run, &[returned(61, 1)], &["ended: MaxJobs"]);
    assert_eq!(run.state.ledger.granted, Some(MicroUsd(50 * SECOND)));
}

#[test]
fn money_goes_back_to_the_month_it_came_from_the_latest_first() {
    let definition = granting(random(2, 2));
    let december =
        Fact::BudgetGranted { n: 2, month: "2026-12".to_owned(), amount: MicroUsd(J), reached: None };
    let given = [
        submitted(),
        granted(1, 1, 1),
        recorded(2, december),
        logged(10, job(0), 1, 0.5),
        described(60, job(0), Completed, 50),
    ];
    // Of both months' money 100 seconds are spent.
    let run = &mut check(
        &definition,
        &given,
        &[returned(61, 1), described(70, job(1), Completed, 50)],
        &["trial 1 completed", &format!("return 2: {} to 2026-12", 50 * SECOND)],
    );
    check_next(run, &[returned(71, 2)], &[&format!("return 3: {} to 2026-11", J - 100 * SECOND)]);
    check_next(run, &[returned(72, 3)], &["ended: MaxJobs"]);
}

#[test]
fn a_stopped_tuning_waits_for_the_answer_so_that_no_money_is_lost() {
    let definition = granting(random(9, 1));
    let run = &mut check(&definition, &[submitted()], &[stop_requested(5)], &[]);
    check_next(run, &[granted(6, 1, 1)], &[&format!("return 1: {J} to 2026-11")]);
    check_next(run, &[returned(7, 1)], &["ended: Stopped"]);
}

#[test]
fn a_month_without_money_is_asked_again_and_after_an_hour_the_tuning_ends() {
    let definition = granting(random(9, 1));
    let run = &mut check(&definition, &[submitted()], &[granted(1, 1, 0)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(301)));
    let ask = |n: u32| format!("ask {n}: {J} to {J}");
    check_next(run, &[time_passed(301)], &[&ask(2)]);
    check_next(run, &[granted(302, 2, 0)], &[]);
    check_next(run, &[time_passed(602)], &[&ask(3)]);
    check_next(run, &[granted(603, 3, 0)], &[]);
    let expect = ["ending: CostCap", "ended: CostCap"];
    check_next(run, &[time_passed(3_601)], &expect);
}

#[test]
fn a_month_without_money_does_not_end_a_tuning_that_still_runs() {
    let definition = granting(random(9, 2));
    let given = [submitted(), granted(1, 1, 1), granted(2, 2, 0), logged(10, job(0), 1, 0.5)];
    let run = &mut check(&definition, &given, &[time_passed(290)], &[]);
    let ask = format!("ask 3: {J} to {J}");
    check_next(run, &[time_passed(302)], &[&ask]);
    check_next(run, &[granted(303, 3, 0)], &[]);
    // What its own job leaves is asked to be made up, at the next time.
    check_next(run, &[described(400, job(0), Completed, 50)], &["trial 0 completed"]);
    let ask = format!("ask 4: {} to {}", 50 * SECOND, J + 50 * SECOND);
    check_next(run, &[time_passed(603)], &[&ask]);
    check_next(run, &[granted_amount(604, 4, 50 * SECOND)], &["start 1-0-1", &format!("ask 5: {J} to {J}")]);
}

#[test]
fn people_are_told_of_a_month_s_level_once() {
    let definition = granting(random(9, 1));
    let month = "2026-11".to_owned();
    let fact = Fact::BudgetGranted { n: 1, month, amount: MicroUsd(J), reached: Some(80) };
    let expect = ["tell of 80 % of 2026-11", "start 0-0-1"];
    let run = &mut check(&definition, &[submitted()], &[recorded(1, fact)], &expect);
    assert!(run.state.notices.contains("notice-month-2026-11-80"));
    let given = Fact::NoticeGiven { notice: "notice-month-2026-11-80".to_owned() };
    check_next(run, &[recorded(2, given)], &[]);
    assert!(run.state.notices.is_empty());
}

#[test]
fn a_tuning_that_can_start_nothing_for_long_gives_back_what_it_does_not_use() {
    let definition = granting(random(9, 1));
    let given = [submitted(), granted(1, 1, 1)];
    // Half an hour is long, nine minutes are not. No action is put off for more than five.
    let run = &mut check(&definition, &given, &[deferred(5, job(0), 305)], &[]);
    check_next(run, &[deferred(304, job(0), 604)], &[]);
    check_next(&mut run.clone(), &[never_started(604, job(0))], &["trial 0 never started", "start 1-0-1"]);
    check_next(run, &[deferred(603, job(0), 903), deferred(902, job(0), 1_202)], &[]);
    let expect = ["trial 0 never started", &format!("return 1: {J} to 2026-11")];
    check_next(run, &[never_started(903, job(0))], &expect);
    check_next(run, &[returned(904, 1)], &[]);
    check_next(run, &[time_passed(1_202)], &[&format!("ask 2: {J} to {J}")]);
    check_next(run, &[granted(1_203, 2, 1)], &["start 1-0-1"]);
}

#[test]
fn an_overrun_of_the_grant_is_told_and_the_tuning_ends() {
    let definition = granting(random(9, 1));
    let given = [submitted(), granted(1, 1, 1), logged(10, job(0), 1, 0.5)];
    let expect = ["tell of the overrun", "trial 0 completed", "ended: CostCap"];
    check(&definition, &given, &[described(9_000, job(0), Completed, 5_000)], &expect);
}

#[test]
fn what_is_held_far_above_the_need_of_all_slots_goes_back() {
    // Two slots need two worst cases; what is left after two starts may be twice that and no more.
    let definition = granting(random(9, 2));
    let starts = ["start 0-0-1", "start 1-0-1"];
    check(&definition, &[submitted()], &[granted(1, 1, 2 + 4)], &starts);
    let back = format!("return 1: {} to 2026-11", 2 * J + 1);
    let expect = [starts[0], starts[1], &back];
    let run = &mut check(&definition, &[submitted()], &[granted_amount(1, 1, 6 * J + 1)], &expect);
    check_next(run, &[returned(2, 1)], &[]);
    assert_eq!(run.state.ledger.unused(), Some(MicroUsd(2 * J)), "what is needed stays");
}

#[test]
fn starts_are_held_for_long_after_ten_minutes_in_which_nothing_ran() {
    let definition = granting(random(9, 1));
    let given = [submitted(), granted(1, 1, 2), deferred(5, job(0), 305), deferred(300, job(0), 600)];
    let run = &mut check(&definition, &given, &[time_passed(604)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(605)));
    let back = format!("return 1: {J} to 2026-11");
    check_next(run, &[time_passed(605)], &[&back]);
    // Had a job run meanwhile they would not be.
    let definition = granting(random(9, 2));
    let given = [submitted(), granted(1, 1, 3), deferred(5, job(0), 305), started(250, job(1))];
    let run = &mut check(&definition, &given, &[deferred(300, job(0), 600), time_passed(900)], &[]);
    assert_eq!(run.state.held, None);
}

#[test]
fn a_tuning_whose_trials_all_wait_for_long_gives_back_what_it_does_not_use() {
    let definition = Definition { max_interruptions: 6, ..granting(random(9, 1)) };
    let run = &mut check(&definition, &[submitted()], &[granted(1, 1, 1)], &["start 0-0-1"]);
    let mut long = run.clone();
    // One second was billed: no job fits until the month gives it, and it gives nothing.
    let ask = format!("ask 2: {SECOND} to {SECOND}");
    let when = [described(60, job(0), CapacityError, 1)];
    check_next(run, &when, &["retry after 0-0-1: Capacity, from 90", &ask]);
    check_next(run, &[granted(61, 2, 0)], &[]);
    // The sixth wait is sixteen minutes.
    long.state.trials.get_mut(&0).unwrap().retries = 5;
    check_next(&mut long, &when, &["retry after 0-0-1: Capacity, from 1020", &ask]);
    check_next(&mut long.clone(), &[granted(420, 2, 0)], &[]);
    let back = format!("return 1: {} to 2026-11", J - SECOND);
    check_next(&mut long, &[granted(419, 2, 0)], &[&back]);
}

fn paused(seconds: i64, paused: bool) -> Recorded {
    recorded(seconds, Fact::LimitsChanged { cap: None, max_parallel: None, paused: Some(paused) })
}

#[test]
fn one_that_is_paused_ends_although_the_month_has_no_money() {
    let mut definition = granting(random(9, 2));
    definition.limits.target = Some(0.7);
    let given = [submitted(), granted(1, 1, 1), granted(2, 2, 0), paused(5, true)];
    let expect = ["ending: Target", "stop 0-0-1: tuning ending"];
    let run = &mut check(&definition, &given, &[logged(10, job(0), 1, 0.8)], &expect);
    let back = format!("return 1: {} to 2026-11", J - 50 * SECOND);
    let expect = ["trial 0 stopped: tuning ending", &back];
    check_next(run, &[described(60, job(0), Stopped, 50)], &expect);
    check_next(run, &[returned(61, 1)], &["ended: Target"]);
}

#[test]
fn so_does_one_whose_asking_is_open_when_it_is_paused_and_stopped() {
    let definition = granting(random(9, 1));
    let run = &mut check(&definition, &[submitted(), paused(2, true)], &[stop_requested(5)], &[]);
    check_next(run, &[granted(6, 1, 0)], &["ended: Stopped"]);
}

/// The target is reached, and the best configuration is being trained once more: one worst case was granted for it.
fn training_once_more() -> Run {
    let mut definition = Definition { refit: true, ..granting(jobs(100, 1)) };
    definition.limits.target = Some(0.7);
    let mut run = Run::new(&definition);
    let given = [granted(1, 1, 2), logged(10, job(0), 3, 0.75), described(20, job(0), Stopped, 10)];
    run.take(&[submitted()]);
    for fact in given {
        run.take(&[fact]);
    }
    assert_eq!(run.state.refit, Some(job(1)), "{:?}", run.rulings);
    run
}

#[test]
fn the_last_job_is_waited_for_no_longer_than_an_hour_either() {
    let mut run = training_once_more();
    // While it waits nothing is kept: it asks again.
    run.take(&[returned(21, 1)]);
    let back = format!("return 2: {} to 2026-11", J - SECOND);
    let expect = ["retry after 1-0-1: Capacity, from 60", &back];
    check_next(&mut run, &[described(30, job(1), CapacityError, 1)], &expect);
    check_next(&mut run, &[returned(31, 2)], &[]);
    let ask = |n: u32| format!("ask {n}: {J} to {J}");
    check_next(&mut run, &[time_passed(60)], &[&ask(2)]);
    check_next(&mut run, &[granted(61, 2, 0)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(361)));
    check_next(&mut run, &[time_passed(361)], &[&ask(3)]);
    check_next(&mut run, &[granted(362, 3, 0)], &[]);
    let expect = ["trial 1 failed: no further attempt after 1", "ended: Target"];
    check_next(&mut run, &[time_passed(3_661)], &expect);
}
