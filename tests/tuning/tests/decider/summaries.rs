//! The summary of a concluded job: its values, its curve and its cost; and the counters of AMT.

use tuning::definition::Objective;
use tuning::log::fact::JobEnd::{
    AlgorithmError, CapacityError, Completed, MaxRuntime, MaxWait, ServiceError, Stopped,
};
use tuning::log::fact::{Fact, JobEnd};
use tuning::log::ruling::{Booking, Ruling};
use tuning::trial::summary::JobSummary;
use tuning::unit::epochs::Epochs;
use tuning::unit::money::MicroUsd;

use crate::support::build::*;
use crate::support::run::Run;

fn concluded(
    definition: &tuning::definition::Definition,
    facts: &[tuning::log::fact::Recorded],
) -> Vec<JobSummary> {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for fact in facts {
        run.take(std::slice::from_ref(fact));
    }
    run.concluded
}

#[test]
fn a_summary_has_the_last_and_the_best_value() {
    let facts = [
        logged(10, job(0), 1, 0.4),
        logged(11, job(0), 2, 0.9),
        logged(12, job(0), 3, 0.6),
        described(60, job(0), Completed, 50),
    ];
    for (objective, best) in [(Objective::Maximize, 0.9), (Objective::Minimize, 0.4)] {
        let mut definition = random(1, 1);
        definition.objective = objective;
        let summary = &concluded(&definition, &facts)[0];
        assert_eq!((summary.last_value, summary.best_value), (Some(0.6), Some(best)), "{objective:?}");
        assert_eq!(summary.curve, [(Epochs(1), Some(0.4)), (Epochs(2), Some(0.9)), (Epochs(3), Some(0.6))]);
        assert_eq!(
            (summary.billable_seconds, summary.cost.map(|cost| cost.0)),
            (Some(50), Some(50 * SECOND))
        );
        assert!(summary.concluded && !summary.settled_in_full && !summary.never_started);
    }
}

#[test]
fn a_summary_has_the_metrics_that_were_seen_first_and_at_most_forty() {
    let metrics = |seconds, values| recorded(seconds, Fact::FinalMetricsSeen { job: job(0), values });
    let many = (0..50).map(|place| (place, f64::from(place))).collect();
    let facts = [metrics(50, many), metrics(55, vec![(0, 9.0)]), described(60, job(0), Completed, 50)];
    let summary = &concluded(&random(1, 1), &facts)[0];
    assert_eq!((summary.metrics.len(), summary.metrics[0], summary.metrics[39]), (40, (0, 0.0), (39, 39.0)));
}

#[test]
fn a_bill_can_be_confirmed_before_it_is_booked() {
    let confirmed = recorded(55, Fact::BillsConfirmed { bills: vec![(job(0), 50)] });
    let mut run = Run::new(&random(1, 1));
    run.confirms_bills = false;
    for fact in [submitted(), confirmed, described(60, job(0), Completed, 50)] {
        run.take(&[fact]);
    }
    assert!(run.state.is_ended(), "no bill is read once more");
}

#[test]
fn a_long_curve_is_thinned_evenly_and_keeps_its_ends() {
    // Of 450 epochs, the curve keeps every third and the last.
    let epochs: Vec<_> = (1..=450).map(|epoch| line(10, &format!("{epoch:05}"), epoch, 0.5)).collect();
    let facts = [lines(10, job(0), "a", epochs), described(60, job(0), Completed, 50)];
    let summary = &concluded(&random(1, 1), &facts)[0];
    let epochs: Vec<u32> = summary.curve.iter().map(|point| point.0.0).collect();
    let mut expect: Vec<u32> = (1..=450).step_by(3).collect();
    expect.push(450);
    assert_eq!(epochs, expect);
}

#[test]
fn a_curve_of_two_hundred_points_is_not_thinned() {
    let epochs: Vec<_> = (1..=200).map(|epoch| line(10, &format!("{epoch:05}"), epoch, 0.5)).collect();
    let facts = [lines(10, job(0), "a", epochs), described(60, job(0), Completed, 50)];
    assert_eq!(concluded(&random(1, 1), &facts)[0].curve.len(), 200);
}

#[test]
fn a_refused_or_cancelled_job_never_started() {
    let facts = [refused(5, job(0)), never_started(6, job(1))];
    let summaries = concluded(&random(2, 1), &facts);
    assert!(summaries[0].never_started && summaries[1].never_started);
    assert_eq!(summaries[0].message.as_deref(), Some("no such role"));
}

#[test]
fn an_attempt_without_values_does_not_take_the_value_of_the_attempt_before_it() {
    let facts = [
        logged(1, job(0), 1, 0.5),
        described(60, job(0), ServiceError, 9),
        described(95, job(1), Completed, 9),
        described(99, attempt(0, 2), Completed, 9),
    ];
    let summaries = concluded(&random(3, 1), &facts);
    let values: Vec<_> = summaries.iter().map(|job| (job.job, job.last_value)).collect();
    assert_eq!(values, [(job(0), Some(0.5)), (job(1), None), (attempt(0, 2), None)]);
}

#[test]
fn the_best_job_has_the_best_last_value_and_the_first_job_wins_a_tie() {
    let facts = [
        logged(1, job(0), 1, 0.9),
        logged(2, job(0), 2, 0.3),
        described(9, job(0), Completed, 9),
        logged(11, job(1), 1, 0.5),
        described(19, job(1), Completed, 9),
        logged(21, job(2), 1, 0.5),
        described(29, job(2), Completed, 9),
        described(39, job(3), Completed, 9),
    ];
    for (objective, best) in [(Objective::Maximize, 1), (Objective::Minimize, 0)] {
        let mut definition = random(4, 1);
        definition.objective = objective;
        let mut run = Run::new(&definition);
        run.take(&[submitted()]);
        for fact in &facts {
            run.take(std::slice::from_ref(fact));
        }
        let best_job = run.state.results.best.as_ref().unwrap();
        assert_eq!(best_job.job, job(best), "{objective:?}");
        assert!(best_job.concluded, "its last value is final");
        let counters = run.state.results.counters;
        assert_eq!((counters.objective_succeeded, counters.objective_failed), (3, 1));
    }
}

/// AMT's counters: completed, stopped, retryable error, non-retryable error.
#[test]
fn every_end_is_counted_once_by_the_counter_of_amt() {
    let count = |end: JobEnd| {
        let mut definition = random(1, 1);
        definition.settings.max_interruptions = 0;
        let mut run = Run::new(&definition);
        run.take(&[submitted()]);
        run.take(&[described(9, job(0), end, 5)]);
        let counters = run.state.results.counters;
        [counters.completed, counters.stopped, counters.retryable_error, counters.non_retryable_error]
    };
    assert_eq!(count(Completed), [1, 0, 0, 0]);
    assert_eq!(count(Stopped), [0, 1, 0, 0]);
    assert_eq!(count(MaxRuntime), [0, 1, 0, 0]);
    assert_eq!(count(MaxWait), [0, 1, 0, 0]);
    assert_eq!(count(CapacityError), [0, 0, 1, 0]);
    assert_eq!(count(ServiceError), [0, 0, 1, 0]);
    assert_eq!(count(AlgorithmError), [0, 0, 0, 1]);
}

#[test]
fn a_refused_job_counts_as_a_non_retryable_error_and_a_cancelled_job_does_not_count() {
    let mut run = Run::new(&random(2, 1));
    run.take(&[submitted()]);
    run.take(&[refused(5, job(0))]);
    assert_eq!(run.state.results.counters.non_retryable_error, 1);
    run.take(&[never_started(6, job(1))]);
    assert_eq!(
        (run.state.results.counters.non_retryable_error, run.state.results.counters.objective_failed),
        (1, 1)
    );
}

#[test]
fn a_long_message_is_cut_to_a_thousand_characters() {
    let message = "\u{e4}".repeat(1_200);
    let fact = recorded(5, Fact::StartRefused { job: job(0), message, name_is_foreign: false });
    let summary = &concluded(&random(1, 1), &[fact])[0];
    assert_eq!(summary.message.as_ref().map(|text| text.chars().count()), Some(1_000));
}

#[test]
fn the_bookings_after_the_conclusion_of_a_job_are_in_its_summary() {
    let summary = &concluded(&random(1, 1), &[described(60, job(0), Completed, 50)])[0];
    let booked = |booking| {
        let mut booked = summary.clone();
        booked.book(&Ruling::Booking(booking));
        booked
    };
    let risen = booked(Booking::BillBooked { job: job(0), seconds: 70, amount: MicroUsd(7_000) });
    assert_eq!((risen.billable_seconds, risen.cost), (Some(70), Some(MicroUsd(7_000))));
    let in_full = booked(Booking::SettledInFull { job: job(0), amount: MicroUsd(WORST_CASE) });
    assert_eq!((in_full.settled_in_full, in_full.cost), (true, Some(MicroUsd(WORST_CASE))));
    let kept = booked(Booking::PoolClosed { job: job(0), seconds: Some(30), amount: MicroUsd(3_000) });
    assert_eq!((kept.retained_seconds, kept.retained_cost), (Some(30), Some(MicroUsd(3_000))));
    assert_eq!(kept.cost, Some(MicroUsd(50 * SECOND)), "the job itself costs the same");
}

/// The lines are those of another job with the same name.
#[test]
fn a_job_that_never_started_has_no_value_although_lines_of_its_name_were_logged() {
    let message = "the name is in use".to_owned();
    let foreign = recorded(5, Fact::StartRefused { job: job(0), message, name_is_foreign: true });
    let summary = &concluded(&random(1, 1), &[logged(1, job(0), 1, 0.5), foreign])[0];
    assert_eq!((summary.never_started, summary.last_value), (true, None));
}

#[test]
fn a_further_attempt_has_the_value_that_it_logged_last() {
    let facts = [
        logged(1, job(0), 1, 0.5),
        described(60, job(0), ServiceError, 9),
        described(95, job(1), Completed, 9),
        lines(97, attempt(0, 2), "algo-2", vec![line(97, "e00002", 2, 0.7)]),
        described(99, attempt(0, 2), Completed, 9),
    ];
    let summaries = concluded(&random(3, 1), &facts);
    assert_eq!(summaries.last().map(|job| (job.job, job.last_value)), Some((attempt(0, 2), Some(0.7))));
}
