//! Bills: a trial arrives at its rung before its bill, each bill is read once more before the tuning ends, and a higher
//! one is booked.

use tuning::decide::deadline;
use tuning::definition::{Definition, Scheduling};
use tuning::log::fact::JobEnd::{self, Completed};
use tuning::log::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::unit::money::MicroUsd;

use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::{Run, bills_confirmed};

/// Returns the run of a tuning whose bills are not confirmed at once, after these facts.
fn unconfirmed(definition: &Definition, given: &[Recorded]) -> Run {
    let mut run = Run::new(definition);
    run.confirms_bills = false;
    run.take(&[submitted()]);
    for fact in given {
        run.take(std::slice::from_ref(fact));
    }
    run
}

/// Returns a tuning of one job at a time that promotes trials from epoch 1 to epoch 3.
fn two_rungs() -> Definition {
    let definition = Definition { strategy: comparing(1, 3, 3), ..jobs(9, 1) };
    promoting(definition, Scheduling::Asynchronous)
}

/// Returns the end of a job whose event shows that it ran.
fn ended_after_run(seconds: i64, job: JobKey, end: JobEnd) -> Recorded {
    let fact = Fact::JobStateChanged {
        job,
        phase: JobPhase::Ended(end),
        started: Some(at(5)),
        ended: Some(at(seconds)),
        message: None,
    };
    recorded(seconds, fact)
}

fn confirmed(seconds: i64, job: JobKey, billed: u64) -> Recorded {
    bills_confirmed(at(seconds), vec![(job, billed)])
}

fn sums(run: &Run) -> (u64, u64) {
    (run.state.money.ledger.spent.0, run.state.money.ledger.reserved.0)
}

/// "A trial's end and its value at the level make its arrival, the bill settles money only."
#[test]
fn a_trial_arrives_at_its_rung_before_its_bill() {
    let mut run = unconfirmed(&two_rungs(), &[logged(20, job(0), 1, 0.5)]);
    let expect = ["bill 0-0-1", "trial 0 waits at rung 0.0, epoch 1", "start 1-0-1 to 3"];
    check_next(&mut run, &[ended_after_run(60, job(0), Completed)], &expect);
    assert_eq!(sums(&run), (0, 2 * WORST_CASE), "the money stays reserved");
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &["bill of 0-0-1: 50 s, 5000"]);
    assert_eq!(sums(&run), (50 * SECOND, WORST_CASE));
}

/// The event does not show whether the job ran, and only the bill can.
#[test]
fn a_trial_whose_end_shows_no_start_waits_for_its_bill() {
    let mut run = unconfirmed(&two_rungs(), &[logged(20, job(0), 1, 0.5)]);
    check_next(&mut run, &[ended(60, job(0), Completed)], &["bill 0-0-1", "start 1-0-1 to 3"]);
    let expect = ["trial 0 waits at rung 0.0, epoch 1"];
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &expect);
}

#[test]
fn a_zero_bill_does_not_settle_a_trial_that_has_arrived() {
    let given = [logged(20, job(0), 1, 0.5), ended_after_run(60, job(0), Completed)];
    let mut run = unconfirmed(&two_rungs(), &given);
    check_next(&mut run, &[described(60, job(0), Completed, 0)], &[]);
    assert_eq!(sums(&run), (0, 2 * WORST_CASE));
}

#[test]
fn the_bill_of_an_arrived_trial_that_never_comes_is_settled_in_full() {
    let given = [logged(20, job(0), 1, 0.5), ended_after_run(60, job(0), Completed), time_passed(130)];
    let mut run = unconfirmed(&two_rungs(), &given);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(130 + 3_600)));
    let best =
        |run: &Run| run.state.results.best.clone().map(|best| (best.job, best.cost, best.settled_in_full));
    assert_eq!(best(&run), Some((job(0), None, false)));
    check_next(&mut run, &[time_passed(130 + 3_600)], &["settle 0-0-1 in full"]);
    assert_eq!(sums(&run), (WORST_CASE, WORST_CASE));
    assert_eq!(best(&run), Some((job(0), Some(MicroUsd(WORST_CASE)), true)));
    assert_eq!(run.state.money.billing, []);
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &[]);
}

/// The trials are over, but the bill frees the money for another job.
#[test]
fn a_tuning_does_not_end_for_its_costs_while_a_bill_is_open() {
    let mut definition = capped(two_rungs(), 1);
    definition.cap = definition.cap.map(|cap| cap.plus(MicroUsd(60 * SECOND)));
    let mut run = unconfirmed(&definition, &[logged(20, job(0), 1, 0.5)]);
    let expect = ["bill 0-0-1", "trial 0 waits at rung 0.0, epoch 1"];
    check_next(&mut run, &[ended_after_run(60, job(0), Completed)], &expect);
    let expect = ["bill of 0-0-1: 50 s, 5000", "start 1-0-1 to 3"];
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &expect);
}

#[test]
fn the_instances_that_an_arrived_trial_keeps_stay_reserved_after_its_bill() {
    let mut definition = two_rungs();
    definition.job.keep_alive_seconds = 600;
    let given = [logged(20, job(0), 1, 0.5), ended_after_run(60, job(0), Completed)];
    let mut run = unconfirmed(&definition, &given);
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &["bill of 0-0-1: 50 s, 5000"]);
    let pool = &run.state.money.pools[0];
    assert_eq!((pool.job, pool.since, pool.reservation.0), (job(0), at(60), 660 * SECOND));
    assert_eq!(sums(&run), (50 * SECOND, WORST_CASE + 2 * 660 * SECOND));
}

/// "Every bill is read once more before the tuning ends."
#[test]
fn a_tuning_ends_once_its_bills_are_confirmed() {
    let mut run = unconfirmed(&random(2, 1), &[logged(20, job(0), 1, 0.5)]);
    let expect = ["trial 0 completed", "start 1-0-1"];
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &expect);
    run.take(&[confirmed(120, job(0), 50), logged(130, job(1), 1, 0.5)]);
    check_next(&mut run, &[described(160, job(1), Completed, 50)], &["trial 1 completed"]);
    assert_eq!(run.state.money.billing.len(), 1);
    check_next(&mut run, &[confirmed(220, job(1), 50)], &["ended: MaxJobs"]);
}

/// "A rise is booked: that it is final is not known."
#[test]
fn a_higher_bill_is_booked_and_must_be_confirmed_too() {
    let given = [logged(20, job(0), 1, 0.5), described(60, job(0), Completed, 50)];
    let mut run = unconfirmed(&random(1, 1), &given);
    check_next(&mut run, &[described(60, job(0), Completed, 70)], &["bill of 0-0-1: 70 s, 7000"]);
    assert_eq!(sums(&run), (70 * SECOND, 0));
    assert_eq!(run.state.results.best.as_ref().unwrap().cost, Some(MicroUsd(70 * SECOND)));
    // A reading that was on its way shows the former bill.
    check_next(&mut run, &[confirmed(120, job(0), 50)], &[]);
    check_next(&mut run, &[confirmed(180, job(0), 70)], &["ended: MaxJobs"]);
}

#[test]
fn a_lower_bill_frees_no_money() {
    let given = [logged(20, job(0), 1, 0.5), described(60, job(0), Completed, 50)];
    let mut run = unconfirmed(&random(1, 1), &given);
    check_next(&mut run, &[described(60, job(0), Completed, 30)], &[]);
    assert_eq!(sums(&run), (50 * SECOND, 0));
}

/// P1, "spent + reserved <= cap at every step": a rise may exceed the cap, and nothing starts until it is within again.
#[test]
fn p1_a_rise_above_the_cap_starts_no_job() {
    let mut definition = capped(random(9, 1), 1);
    definition.cap = definition.cap.map(|cap| cap.plus(MicroUsd(50 * SECOND)));
    let given = [logged(20, job(0), 1, 0.5), described(60, job(0), Completed, 50)];
    let mut run = unconfirmed(&definition, &given);
    assert_eq!(run.state.money.ledger.available(), Some(MicroUsd::ZERO));
    let expect = ["bill of 0-0-1: 70 s, 7000", "notice: 100 % of the cap"];
    check_next(&mut run, &[described(60, job(0), Completed, 70)], &expect);
    assert_eq!(run.state.money.ledger.standing, Some(MicroUsd(WORST_CASE + 70 * SECOND)));
    run.take(&[logged(80, job(1), 1, 0.5)]);
    check_next(&mut run, &[described(90, job(1), Completed, 50)], &["trial 1 completed"]);
}

#[test]
fn a_rise_above_the_reservation_raises_all_reservations() {
    let given = [logged(20, job(0), 1, 0.5), described(60, job(0), Completed, 3_000)];
    let mut run = unconfirmed(&random(9, 1), &given);
    let risen = described(60, job(0), Completed, 4_000);
    check_next(&mut run, &[risen], &["bill of 0-0-1: 4000 s, 400000", "overrun notice"]);
    assert_eq!(run.state.money.ledger.margin, MicroUsd(100 * SECOND));
    assert_eq!(run.state.job(job(1)).unwrap().bill.reservation, MicroUsd(WORST_CASE + 100 * SECOND));
    // The same bill rises once more: only the difference is another excess.
    check_next(&mut run, &[described(60, job(0), Completed, 4_010)], &["bill of 0-0-1: 4010 s, 401000"]);
    assert_eq!(run.state.money.ledger.margin, MicroUsd(110 * SECOND));
}

/// The rise comes while the job still waits for its log.
#[test]
fn a_rise_before_the_conclusion_is_booked_after_it() {
    let mut run = unconfirmed(&random(1, 1), &[]);
    run.answers_reads = false;
    run.take(&[logged(20, job(0), 1, 0.5), described(60, job(0), Completed, 50)]);
    check_next(&mut run, &[described(60, job(0), Completed, 70)], &[]);
    let read = recorded(90, Fact::RestRead { job: job(0) });
    check_next(&mut run, &[read], &["trial 0 completed", "bill of 0-0-1: 70 s, 7000"]);
}

#[test]
fn a_refit_starts_before_the_bills_of_the_search_are_confirmed() {
    let mut definition = random(2, 1);
    definition.refit = true;
    let mut run = unconfirmed(&definition, &[logged(20, job(0), 1, 0.5)]);
    let expect = ["trial 0 completed", "start 1-0-1 to 1 as refit"];
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &expect);
}

/// The sweeper reads a bill once more some time after its first read.
#[test]
fn a_bill_has_the_time_at_which_its_read_was_ordered() {
    let value = logged(20, job(0), 1, 0.5);
    let mut run = unconfirmed(&random(9, 1), &[value.clone(), ended(60, job(0), Completed)]);
    assert_eq!(run.state.job(job(0)).unwrap().bill.read_at(), Some(at(60)));
    run.take(&[described(70, job(0), Completed, 50)]);
    let read_at = |run: &Run| run.state.money.billing.iter().map(|(_, job)| job.bill.read_at()).collect();
    let times: Vec<_> = read_at(&run);
    assert_eq!(times, [Some(at(60))]);
    // This bill came before its read was ordered.
    let times: Vec<_> = read_at(&unconfirmed(&random(9, 1), &[value, described(60, job(0), Completed, 50)]));
    assert_eq!(times, [None]);
}

/// Texts make the most of a job's size, and the state has many jobs that wait for their final bills.
#[test]
fn a_job_that_waits_for_its_final_bill_keeps_no_text() {
    let mut run = unconfirmed(&random(9, 1), &[deferred(1, job(0), 5)]);
    assert!(run.state.job(job(0)).unwrap().deferred.is_some());
    run.take(&[started(6, job(0)), described(60, job(0), JobEnd::AlgorithmError, 50)]);
    assert_eq!(run.concluded[0].message.as_deref(), Some("exit code 1"));
    let texts: Vec<_> =
        run.state.money.billing.iter().map(|(_, job)| (job.message.clone(), job.deferred.clone())).collect();
    assert_eq!(texts, [(None, None)]);
}

/// Lines of the restarted program may be missing, and only the bill or the log shows that all have come.
#[test]
fn a_restarted_trial_whose_log_was_not_read_waits_for_its_bill() {
    let value = |seconds, stream| lines(seconds, job(0), stream, vec![line(seconds, "e", 1, 0.5)]);
    let mut run = unconfirmed(&two_rungs(), &[value(20, "first"), value(30, "second")]);
    let expect = ["bill 0-0-1", "start 1-0-1 to 3"];
    check_next(&mut run, &[ended_after_run(60, job(0), Completed)], &expect);
    let expect = ["trial 0 waits at rung 0.0, epoch 1"];
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &expect);
}
