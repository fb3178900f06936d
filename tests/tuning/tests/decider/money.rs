//! The ledger: reservation, settlement, release, and the starts under a small cap.

use tuning::definition::Definition;
use tuning::log::fact::JobEnd::{CapacityError, Completed, MaxRuntime};
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

#[test]
fn a_job_starts_only_if_its_worst_case_fits() {
    let run = check(&capped(random(9, 4), 2), &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd(2 * WORST_CASE));
}

#[test]
fn a_cap_lower_by_one_micro_dollar_starts_one_job_less() {
    let mut definition = capped(random(9, 4), 2);
    definition.cap = definition.cap.map(|cap| cap.minus(MicroUsd(1)));
    check(&definition, &[], &[submitted()], &["start 0-0-1"]);
    assert_eq!(definition.least_cap(), Some(MicroUsd(WORST_CASE)));
}

#[test]
fn a_bill_settles_the_reservation_and_frees_the_rest() {
    let given = [submitted(), logged(10, job(0), 1, 0.5), ended(60, job(0), Completed)];
    let expect = ["trial 0 completed", "start 1-0-1"];
    // The cap of two worst cases pays the bill and a second reservation.
    let definition = capped(random(9, 1), 2);
    let run = check(&definition, &given[..2], &[described(60, job(0), Completed, 50)], &expect);
    assert_eq!(
        (run.state.money.ledger.spent.0, run.state.money.ledger.reserved.0),
        (50 * SECOND, WORST_CASE)
    );
}

#[test]
fn an_end_without_a_bill_keeps_the_reservation() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let run = &mut check(&capped(random(9, 1), 1), &given, &[ended(60, job(0), Completed)], &["bill 0-0-1"]);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd(WORST_CASE));
    // The rest of the cap does not pay another job.
    let expect = ["trial 0 completed", "notice: 100 % of the cap", "ended: CostCap"];
    check_next(run, &[described(60, job(0), Completed, 50)], &expect);
}

#[test]
fn a_missing_bill_is_settled_in_full_after_an_hour() {
    let given = [submitted(), logged(10, job(0), 1, 0.5), ended(60, job(0), Completed)];
    let run = &mut check(&capped(random(9, 1), 1), &given, &[], &[]);
    // The hour begins at the first report of the time after the bill was ordered.
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(60 + 60)));
    check_next(run, &[time_passed(130)], &[]);
    assert_eq!(tuning::decide::deadline(&run.definition, &run.state), Some(at(130 + 3_600)));
    check_next(run, &[time_passed(130 + 3_599)], &[]);
    let expect = ["settle 0-0-1 in full", "trial 0 completed", "notice: 100 % of the cap", "ended: CostCap"];
    check_next(run, &[time_passed(130 + 3_600)], &expect);
    assert_eq!(run.state.money.ledger.spent, MicroUsd(WORST_CASE));
    assert!(run.concluded[0].settled_in_full);
}

#[test]
fn a_bill_after_a_full_settlement_changes_nothing() {
    let (first, second) = (time_passed(130), time_passed(130 + 3_600));
    let given = [submitted(), logged(10, job(0), 1, 0.5), ended(60, job(0), Completed), first, second];
    let run = check(&random(9, 1), &given, &[described(60, job(0), Completed, 50)], &[]);
    assert_eq!(run.state.money.ledger.spent, MicroUsd(WORST_CASE));
}

#[test]
fn without_a_cap_a_bill_above_its_reservation_is_only_published() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [described(9_000, job(0), Completed, 5_000)];
    let expect = ["overrun notice", "trial 0 completed", "start 1-0-1"];
    let run = &mut check(&random(9, 1), &given, &when, &expect);
    assert_eq!(run.state.money.ledger.spent, MicroUsd(5_000 * SECOND));
    // Later excesses are booked, but not published again.
    let again = [described(9_900, job(1), Completed, 5_100)];
    check_next(run, &again, &["trial 1 completed", "start 2-0-1"]);
}

/// P1, "spent + reserved <= cap at every step", where the service bills more than the limits of a job allow.
#[test]
fn p1_the_excess_of_a_bill_raises_the_reservations_of_running_and_later_jobs() {
    let excess = 100 * SECOND;
    let definition = Definition { cap: Some(MicroUsd(4 * WORST_CASE + 3 * excess)), ..random(9, 2) };
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [described(9_000, job(0), Completed, 4_000)];
    let run = &mut check(&definition, &given, &when, &["overrun notice", "trial 0 completed", "start 2-0-1"]);
    let reserved = |run: &Run, trial| run.state.job(job(trial)).unwrap().bill.reservation;
    assert_eq!(reserved(run, 1), MicroUsd(WORST_CASE + excess));
    assert_eq!(reserved(run, 2), MicroUsd(WORST_CASE + excess));
    // The rest of the cap, a worst case, does not pay a raised reservation. A bill within one is no excess.
    let second = [described(9_100, job(1), Completed, 4_000)];
    check_next(run, &second, &["trial 1 completed", "notice: 50 % of the cap"]);
    let third = [described(9_200, job(2), Completed, 3_900)];
    check_next(run, &third, &["trial 2 completed", "start 3-0-1"]);
    assert_eq!(reserved(run, 3), MicroUsd(WORST_CASE + excess));
    assert_eq!(run.state.money.ledger.available(), Some(MicroUsd::ZERO));
}

/// P1, "spent + reserved <= cap at every step": only what is booked may exceed the cap, and nothing starts until it is
/// within the cap again.
#[test]
fn p1_an_excess_above_the_cap_starts_no_job_until_the_sums_are_within_the_cap() {
    let definition = capped(random(9, 2), 2);
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [described(4_000, job(0), Completed, 4_000)];
    let expect = ["overrun notice", "trial 0 completed", "notice: 100 % of the cap"];
    let run = &mut check(&definition, &given, &when, &expect);
    assert_eq!(run.state.money.ledger.standing, Some(MicroUsd(2 * WORST_CASE + 2 * 100 * SECOND)));
    check_next(run, &[described(4_100, job(1), Completed, 3_900)], &["trial 1 completed", "ended: CostCap"]);
    assert_eq!(
        (run.state.money.ledger.spent.0, run.state.money.ledger.standing),
        (7_900 * SECOND, Some(MicroUsd(7_900 * SECOND)))
    );
}

#[test]
fn an_absurd_bill_overflows_no_reservation() {
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let when = [described(9_000, job(0), Completed, u64::MAX)];
    let expect = ["overrun notice", "trial 0 completed", "start 2-0-1"];
    let run = &mut check(&random(9, 2), &given, &when, &expect);
    check_next(run, &[described(9_100, job(1), Completed, 50)], &["trial 1 completed", "start 3-0-1"]);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd(2 * (WORST_CASE + 1_000_000_000_000_000)));
}

#[test]
fn without_a_price_and_a_cap_nothing_is_booked() {
    let mut definition = random(9, 1);
    definition.job.rate = None;
    let run = check(
        &definition,
        &[submitted()],
        &[described(60, job(0), Completed, 50)],
        &["trial 0 completed", "start 1-0-1"],
    );
    assert_eq!(run.state.money.ledger.spent, MicroUsd::ZERO);
}

#[test]
fn a_trial_that_waits_for_money_starts_when_another_bill_frees_it() {
    let definition = capped(random(9, 2), 2);
    let run = &mut check(
        &definition,
        &[submitted()],
        &[described(60, job(0), CapacityError, 1)],
        &["retry after 0-0-1: Capacity, from 90"],
    );
    // One second was billed, so two worst cases no longer fit.
    check_next(run, &[time_passed(90)], &[]);
    check_next(run, &[described(99, job(1), Completed, 9)], &["trial 1 completed", "start 0-0-2"]);
}

#[test]
fn a_waiting_trial_is_not_continued_when_no_job_runs_that_could_free_money() {
    let definition = capped(random(9, 1), 1);
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    check(
        &definition,
        &given,
        &[described(60, job(0), CapacityError, 1)],
        &[
            "retry after 0-0-1: Capacity, from 90",
            "trial 0 stopped: tuning ending",
            "notice: 100 % of the cap",
            "ended: CostCap",
        ],
    );
}

#[test]
fn a_retry_after_a_cut_limit_reserves_a_multiple_of_that_limit() {
    // Five trials with one epoch per second reduce the limit of the next jobs to two minutes.
    let definition = Definition { cap: Some(MicroUsd(6_200 * SECOND)), ..jobs(40, 1) };
    let mut given = vec![submitted()];
    for (trial, bill) in (0..5).zip([1_000, 350, 350, 350, 350]) {
        let begin = i64::from(trial) * 100;
        let epochs = (1..=9).map(|n| logged(begin + n, job(trial), u64::try_from(n).unwrap(), 0.5));
        given.extend(epochs);
        given.push(described(begin + 20, job(trial), Completed, bill));
    }
    // 6,200 - 2,400 - 200 = 3,600 seconds are left, below the 3,900 of a job with the user's limit.
    let expect = ["retry after 5-0-1: RuntimeCutTooShort, from 700", "start 5-0-2"];
    let run = check(&definition, &given, &[described(700, job(5), MaxRuntime, 200)], &expect);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd((2 * 120 + 300) * SECOND));
}

#[test]
fn notices_are_published_at_50_percent_of_the_cap_and_when_no_further_job_fits() {
    let definition = capped(random(9, 1), 4);
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    // Each bill of 3,900 seconds is 25 % of the cap.
    let run = &mut check(
        &definition,
        &given,
        &[described(60, job(0), Completed, 3_900)],
        &["trial 0 completed", "start 1-0-1"],
    );
    let half = ["trial 1 completed", "notice: 50 % of the cap", "start 2-0-1"];
    check_next(run, &[described(70, job(1), Completed, 3_900)], &half);
    assert!(run.state.notices.contains("notice-cap-50"));
    let most = ["trial 2 completed", "start 3-0-1"];
    check_next(run, &[described(80, job(2), Completed, 3_000)], &most);
    let all = ["trial 3 completed", "notice: 100 % of the cap", "ended: CostCap"];
    check_next(run, &[described(90, job(3), Completed, 3_000)], &all);
    assert_eq!(run.state.money.ledger.spent.0, (3_900 + 3_900 + 3_000 + 3_000) * SECOND);
}

/// "At the end of a tuning that ended at its cap the unused part is below max(5 %, one smallest job's worst case)."
#[test]
fn the_rest_of_a_cap_pays_a_job_with_a_shortened_limit() {
    // One trial runs nine epochs of ten seconds. Its bill is 3,900 seconds, and `left` seconds of the cap are left. 300
    // of them are reserved for the end of the next job.
    let after = |left: u64, expect: &[&str]| {
        let cap = Some(MicroUsd(WORST_CASE + left * SECOND));
        let mut given = vec![submitted()];
        given.extend((1..=9).map(|n| logged(n * 10, job(0), u64::try_from(n).unwrap(), 0.5)));
        let when = [described(90, job(0), Completed, 3_900)];
        check(&Definition { cap, ..jobs(40, 1) }, &given, &when, expect)
    };
    // The usual limit is 280 % of 90 seconds after one timed job, and the least useful one 190 % of 70 seconds.
    let start = ["trial 0 completed", "notice: 80 % of the cap", "start 1-0-1"];
    let limit = |run: &Run| run.state.job(job(1)).unwrap().order.limits.max_runtime_seconds;
    assert_eq!(limit(&after(600, &start)), 252);
    let run = after(450, &start);
    assert_eq!((limit(&run), run.state.money.ledger.available()), (150, Some(MicroUsd::ZERO)));
    assert_eq!(limit(&after(433, &start)), 133);
    after(432, &["trial 0 completed", "notice: 100 % of the cap", "ended: CostCap"]);
}

#[test]
fn a_trial_that_waits_for_another_attempt_continues_after_an_overrun() {
    let given = [submitted(), logged(10, job(1), 1, 0.5), described(60, job(0), CapacityError, 0)];
    let when = [described(70, job(1), Completed, 5_000)];
    let run = &mut check(&random(9, 3), &given, &when, &["overrun notice", "trial 1 completed"]);
    assert!(run.state.trials.contains_key(TrialId(0)));
}

#[test]
fn two_descriptions_in_one_delivery_book_one_bill() {
    let bill = described(60, job(0), Completed, 50);
    let given = [submitted(), logged(10, job(0), 1, 0.5)];
    let run = check(&random(1, 1), &given, &[bill.clone(), bill], &["trial 0 completed", "ended: MaxJobs"]);
    assert_eq!(run.state.money.ledger.spent, MicroUsd(50 * SECOND));
}

#[test]
fn longest_within_returns_the_longest_running_time_that_an_amount_pays() {
    let definition = random(9, 1);
    let longest = |amount: u64, least: u64, most: u64| {
        definition.longest_within(MicroUsd(amount), least..=most, ChoiceId(0))
    };
    // 300 seconds are reserved for the end of the job.
    assert_eq!(longest(800 * SECOND, 120, 3_600), Some(500));
    assert_eq!(longest(800 * SECOND - 1, 120, 3_600), Some(499));
    assert_eq!(longest(800 * SECOND, 500, 500), Some(500), "exactly the least time");
    assert_eq!(longest(800 * SECOND, 501, 3_600), None, "less than the least time");
    assert_eq!(longest(9_000 * SECOND, 120, 3_600), Some(3_600), "at most the greatest time");
    assert_eq!(longest(800 * SECOND, 200, 100), None, "never above the user's limit");
}

/// The least limit has a margin of 50 % divided by the number of timed jobs.
#[test]
fn after_five_timed_jobs_the_last_job_needs_110_percent_of_the_usual_time() {
    // Each trial runs nine epochs of 100 seconds and bills 1,100 seconds. 1,300 are left, 300 of them for the end.
    let definition = Definition { cap: Some(MicroUsd((5 * 1_100 + 1_300) * SECOND)), ..jobs(40, 1) };
    let mut given = vec![submitted()];
    for trial in 0..5 {
        let begin = i64::from(trial) * 1_000;
        given.extend((1..=9).map(|n| logged(begin + n * 100, job(trial), u64::try_from(n).unwrap(), 0.5)));
        given.push(described(begin + 901, job(trial), Completed, 1_100));
    }
    let last_bill = given.pop().unwrap();
    let expect = ["trial 4 completed", "notice: 80 % of the cap", "start 5-0-1"];
    let run = check(&definition, &given, &[last_bill], &expect);
    assert_eq!(run.state.results.timings.epoch_ms.len(), 5);
    assert_eq!(run.state.job(job(5)).unwrap().order.limits.max_runtime_seconds, 1_000);
}

/// Without a timed epoch the decider cannot estimate whether the job would finish.
#[test]
fn no_job_is_shortened_to_the_rest_of_a_cap_before_an_epoch_was_timed() {
    let definition = Definition { cap: Some(MicroUsd(WORST_CASE - 1)), ..jobs(40, 1) };
    check(&definition, &[], &[submitted()], &["notice: 100 % of the cap", "ended: CostCap"]);
}
