//! Grants from the monthly cap of the stack: requested before a job starts, returned when unused.

use tuning::decide::deadline;
use tuning::definition::Definition;
use tuning::log::fact::Fact;
use tuning::log::fact::JobEnd::{Completed, ServiceError};
use tuning::money::grants::month_of;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

const J: u64 = WORST_CASE;

#[test]
fn a_job_starts_after_a_grant_and_the_request_covers_all_free_slots() {
    let definition = granting(random(9, 4));
    let ask = format!("ask 1: {J} to {}", 4 * J);
    let run = &mut check(&definition, &[], &[submitted()], &[&ask]);
    // A partial grant starts the jobs that it pays. The decider requests the missing amount.
    let ask = format!("ask 2: {} to {}", J / 2, 2 * J - J / 2);
    let expect = ["start 0-0-1", "start 1-0-1", &ask];
    check_next(run, &[granted_amount(1, 1, 2 * J + J / 2)], &expect);
    assert_eq!(run.state.money.ledger.granted, Some(MicroUsd(2 * J + J / 2)));
}

#[test]
fn a_request_stays_within_the_cap_of_the_tuning() {
    let definition = granting(capped(random(9, 4), 2));
    let ask = format!("ask 1: {J} to {}", 2 * J);
    check(&definition, &[], &[submitted()], &[&ask]);
}

#[test]
fn a_request_covers_only_the_remaining_jobs() {
    let ask = format!("ask 1: {J} to {J}");
    check(&granting(random(1, 4)), &[], &[submitted()], &[&ask]);
}

#[test]
fn a_grant_counts_once_and_only_for_the_open_request() {
    let definition = granting(random(9, 1));
    let run = &mut check(&definition, &[submitted()], &[granted(1, 1, 1)], &["start 0-0-1"]);
    check_next(run, &[granted(1, 1, 1), granted(2, 2, 5)], &[]);
    assert_eq!(run.state.money.ledger.granted, Some(MicroUsd(J)));
}

#[test]
fn the_rest_of_a_grant_is_reused_after_a_bill() {
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
    assert_eq!(run.state.money.ledger.unused(), Some(MicroUsd::ZERO));
}

#[test]
fn a_tuning_returns_its_unused_grant_before_it_ends() {
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
    assert_eq!(run.state.money.ledger.granted, Some(MicroUsd(50 * SECOND)));
}

#[test]
fn a_return_goes_to_the_month_of_the_grant_latest_month_first() {
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
    // The two jobs spend 100 seconds together.
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
fn a_stopped_tuning_waits_for_the_grant_and_returns_it() {
    let definition = granting(random(9, 1));
    let run = &mut check(&definition, &[submitted()], &[stop_requested(5)], &[]);
    check_next(run, &[granted(6, 1, 1)], &[&format!("return 1: {J} to 2026-11")]);
    check_next(run, &[returned(7, 1)], &["ended: Stopped"]);
}

#[test]
fn an_empty_month_is_asked_again_and_ends_the_tuning_after_an_hour() {
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
fn an_empty_month_does_not_end_a_tuning_with_running_jobs() {
    let definition = granting(random(9, 2));
    let given = [submitted(), granted(1, 1, 1), granted(2, 2, 0), logged(10, job(0), 1, 0.5)];
    let run = &mut check(&definition, &given, &[time_passed(290)], &[]);
    let ask = format!("ask 3: {J} to {J}");
    check_next(run, &[time_passed(302)], &[&ask]);
    check_next(run, &[granted(303, 3, 0)], &[]);
    // At the next deadline the decider requests the amount that the rest of the grant does not cover.
    check_next(run, &[described(400, job(0), Completed, 50)], &["trial 0 completed"]);
    let ask = format!("ask 4: {} to {}", 50 * SECOND, J + 50 * SECOND);
    check_next(run, &[time_passed(603)], &[&ask]);
    check_next(run, &[granted_amount(604, 4, 50 * SECOND)], &["start 1-0-1", &format!("ask 5: {J} to {J}")]);
}

#[test]
fn a_level_of_the_monthly_cap_is_published_once() {
    let definition = granting(random(9, 1));
    let month = "2026-11".to_owned();
    let fact = Fact::BudgetGranted { n: 1, month, amount: MicroUsd(J), reached: Some(80) };
    let expect = ["notice: 80 % of 2026-11", "start 0-0-1"];
    let run = &mut check(&definition, &[submitted()], &[recorded(1, fact)], &expect);
    assert!(run.state.notices.contains("notice-month-2026-11-80"));
    let given = Fact::NoticeGiven { notice: "notice-month-2026-11-80".to_owned() };
    check_next(run, &[recorded(2, given)], &[]);
    assert!(run.state.notices.is_empty());
}

#[test]
fn a_tuning_with_long_deferred_starts_returns_its_unused_grant() {
    let definition = granting(random(9, 1));
    let given = [submitted(), granted(1, 1, 1)];
    // The decider returns the grant when starts were deferred for ten minutes. One deferral lasts at most five minutes.
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
fn after_an_overrun_of_the_grant_the_next_request_includes_the_excess() {
    let definition = granting(random(9, 1));
    let given = [submitted(), granted(1, 1, 1), logged(10, job(0), 1, 0.5)];
    // The job cost 100 seconds more than its grant, and the next one may do so too.
    let asked = J + 2 * 100 * SECOND;
    let expect = ["overrun notice", "trial 0 completed", &format!("ask 2: {asked} to {asked}")];
    let run = &mut check(&definition, &given, &[described(9_000, job(0), Completed, 4_000)], &expect);
    check_next(run, &[granted_amount(9_001, 2, asked)], &["start 1-0-1"]);
}

#[test]
fn a_grant_far_above_the_need_of_all_slots_is_returned() {
    // Two slots need two worst cases. Up to twice the need may stay unused; above that, only the need stays.
    let definition = granting(random(9, 2));
    let starts = ["start 0-0-1", "start 1-0-1"];
    check(&definition, &[submitted()], &[granted(1, 1, 2 + 4)], &starts);
    let back = format!("return 1: {} to 2026-11", 2 * J + 1);
    let expect = [starts[0], starts[1], &back];
    let run = &mut check(&definition, &[submitted()], &[granted_amount(1, 1, 6 * J + 1)], &expect);
    check_next(run, &[returned(2, 1)], &[]);
    assert_eq!(run.state.money.ledger.unused(), Some(MicroUsd(2 * J)), "the tuning keeps the needed amount");
}

#[test]
fn starts_count_as_held_long_after_ten_minutes_without_a_running_job() {
    let definition = granting(random(9, 1));
    let given = [submitted(), granted(1, 1, 2), deferred(5, job(0), 305), deferred(300, job(0), 600)];
    let run = &mut check(&definition, &given, &[time_passed(604)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(605)));
    let back = format!("return 1: {J} to 2026-11");
    check_next(run, &[time_passed(605)], &[&back]);
    // A running job resets the hold.
    let definition = granting(random(9, 2));
    let given = [submitted(), granted(1, 1, 3), deferred(5, job(0), 305), started(250, job(1))];
    let run = &mut check(&definition, &given, &[deferred(300, job(0), 600), time_passed(900)], &[]);
    assert_eq!(run.state.capacity.deferral, None);
}

#[test]
fn a_tuning_whose_trials_all_wait_long_returns_its_unused_grant() {
    let definition = set(granting(random(9, 1)), |settings| settings.max_interruptions = 6);
    let run = &mut check(&definition, &[submitted()], &[granted(1, 1, 1)], &["start 0-0-1"]);
    let mut long = run.clone();
    // One second was billed, so no job fits until the month grants that second. The month grants nothing.
    let ask = format!("ask 2: {SECOND} to {SECOND}");
    let when = [described(60, job(0), ServiceError, 1)];
    check_next(run, &when, &["retry after 0-0-1: ServiceError, from 90", &ask]);
    check_next(run, &[granted(61, 2, 0)], &[]);
    // The sixth wait lasts sixteen minutes.
    long.state.trials.get_mut(TrialId(0)).unwrap().retries = 5;
    check_next(&mut long, &when, &["retry after 0-0-1: ServiceError, from 1020", &ask]);
    check_next(&mut long.clone(), &[granted(420, 2, 0)], &[]);
    let back = format!("return 1: {} to 2026-11", J - SECOND);
    check_next(&mut long, &[granted(419, 2, 0)], &[&back]);
}

#[test]
fn a_paused_tuning_ends_although_the_month_is_empty() {
    let mut definition = granting(random(9, 2));
    definition.limits.target = Some(0.7);
    let given = [submitted(), granted(1, 1, 1), granted(2, 2, 0), paused(5, true)];
    let run = &mut check(&definition, &given, &[logged(10, job(0), 1, 0.8)], &[]);
    let back = format!("return 1: {} to 2026-11", J - 50 * SECOND);
    let expect = ["trial 0 completed", "ending: Target", &back];
    check_next(run, &[described(60, job(0), Completed, 50)], &expect);
    check_next(run, &[returned(61, 1)], &["ended: Target"]);
}

#[test]
fn a_paused_tuning_that_is_stopped_with_an_open_request_ends_after_the_answer() {
    let definition = granting(random(9, 1));
    let run = &mut check(&definition, &[submitted(), paused(2, true)], &[stop_requested(5)], &[]);
    check_next(run, &[granted(6, 1, 0)], &["ended: Stopped"]);
}

/// Returns a run that reached its target and trains the best configuration again, with a grant of one worst case.
fn run_in_refit() -> Run {
    let mut definition = Definition { refit: true, ..granting(jobs(100, 1)) };
    definition.limits.target = Some(0.7);
    let mut run = Run::new(&definition);
    let given = [granted(1, 1, 2), logged(10, job(0), 3, 0.75), described(20, job(0), Completed, 10)];
    run.take(&[submitted()]);
    for fact in given {
        run.take(&[fact]);
    }
    assert_eq!(run.state.refit, Some(job(1)), "{:?}", run.rulings);
    run
}

#[test]
fn a_refit_job_waits_at_most_an_hour_for_a_grant() {
    let mut run = run_in_refit();
    // The tuning keeps no grant while it waits, and requests a new one to retry.
    run.take(&[returned(21, 1)]);
    let back = format!("return 2: {} to 2026-11", J - SECOND);
    let expect = ["retry after 1-0-1: ServiceError, from 60", &back];
    check_next(&mut run, &[described(30, job(1), ServiceError, 1)], &expect);
    check_next(&mut run, &[returned(31, 2)], &[]);
    let ask = |n: u32| format!("ask {n}: {J} to {J}");
    check_next(&mut run, &[time_passed(60)], &[&ask(2)]);
    check_next(&mut run, &[granted(61, 2, 0)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(361)));
    check_next(&mut run, &[time_passed(361)], &[&ask(3)]);
    check_next(&mut run, &[granted(362, 3, 0)], &[]);
    let expect = ["trial 1 failed: the training job failed without a reason", "ended: Target"];
    check_next(&mut run, &[time_passed(3_661)], &expect);
}

/// A month ends while a job runs. Its money is spent in the next month, so it counts there.
#[test]
fn the_unspent_part_of_a_grant_moves_on_at_the_turn_of_the_month() {
    let turn = (month_end_of_created() - CREATED).0 / 1_000;
    let grant = |n: u32, amount: u64| Fact::BudgetGranted {
        n,
        month: month_of(CREATED),
        amount: MicroUsd(amount),
        reached: None,
    };
    let definition = granting(random(2, 1));
    let given = [
        recorded(turn - 100, Fact::TuningSubmitted),
        recorded(turn - 99, grant(1, J)),
        logged(turn - 90, job(0), 1, 0.5),
        described(turn - 60, job(0), Completed, 30),
        recorded(turn - 59, grant(2, 30 * SECOND)),
        logged(turn - 50, job(1), 1, 0.5),
    ];
    let run = &mut check(&definition, &given, &[], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(turn)));
    let (from, to) = (month_of(CREATED), month_of(at(turn)));
    assert_ne!(from, to);
    let moved = format!("move 1: {J} from {from} to {to}");
    check_next(run, &[time_passed(turn)], &[&moved]);
    assert_eq!(run.state.money.ledger.granted, Some(MicroUsd(J + 30 * SECOND)), "the tuning still holds it");
    // What it does not use returns to the month that it counts for.
    let back = format!("return 2: {} to {to}", J - 50 * SECOND);
    check_next(
        run,
        &[returned(turn + 1, 1), described(turn + 2, job(1), Completed, 50)],
        &["trial 1 completed", &back],
    );
    assert_eq!(run.state.money.grants.by_month[&from], MicroUsd(30 * SECOND));
    assert_eq!(run.state.money.grants.by_month[&to], MicroUsd(50 * SECOND));
}

fn month_end_of_created() -> Time {
    let days = (0..40).map(|day| at(day * 86_400)).find(|time| month_of(*time) != month_of(CREATED)).unwrap();
    Time(days.0 - days.0.rem_euclid(86_400_000))
}

#[test]
fn the_end_of_the_wait_for_an_empty_month_is_a_deadline() {
    let definition = granting(random(9, 1));
    let run = &mut check(&definition, &[submitted()], &[granted(1, 1, 0)], &[]);
    check_next(run, &[time_passed(3_500)], &[&format!("ask 2: {J} to {J}")]);
    // The next request would be later.
    check_next(run, &[granted(3_510, 2, 0)], &[]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(3_601)));
}
