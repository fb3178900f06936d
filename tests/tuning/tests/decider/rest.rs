//! The rest of an ended job's log: which jobs wait for it before they are concluded.

use tuning::decide::deadline;
use tuning::definition::{Definition, Scheduling};
use tuning::log::fact::Fact;
use tuning::log::fact::JobEnd::{AlgorithmError, CapacityError, Completed, ServiceError, Stopped};
use tuning::log::fact::{JobKey, JobPhase, Recorded};
use tuning::log::ruling::{Order, ReadOrder, Ruling};

use crate::epochs::captured;
use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;

/// Returns a tuning of one job at a time whose logs are not read at once, after these facts.
fn unread(given: &[Recorded]) -> Run {
    let mut run = Run::new(&jobs(9, 1));
    run.answers_reads = false;
    run.take(&[submitted()]);
    run.take(given);
    run
}

fn rest_read(seconds: i64, job: JobKey) -> Recorded {
    recorded(seconds, Fact::RestRead { job })
}

/// Returns whether the last ordered read may be made at once.
fn at_once(run: &Run) -> Option<bool> {
    run.rulings.iter().rev().find_map(|ruling| match ruling {
        Ruling::Order(Order::Read(ReadOrder::Rest { at_once, .. })) => Some(*at_once),
        _ => None,
    })
}

/// Returns the lines of trial 0 for these epochs, in one fact.
fn epochs(epochs: impl Iterator<Item = u64>) -> Recorded {
    let values = epochs
        .map(|epoch| line(40, &format!("{epoch}"), epoch, 0.1 * f64::from(u32::try_from(epoch).unwrap())));
    lines(40, job(0), "stream", values.collect())
}

#[test]
fn a_completed_job_whose_epochs_are_all_known_is_concluded_by_its_bill() {
    let mut run = unread(&[epochs(1..=9)]);
    check_next(&mut run, &[ended(60, job(0), Completed)], &["bill 0-0-1", "start 1-0-1"]);
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &["trial 0 completed"]);
}

/// The lost line can have the best value.
#[test]
fn a_completed_job_with_a_lost_line_waits_for_the_rest_of_its_log() {
    let mut run = unread(&[epochs((1..=9).filter(|epoch| *epoch != 5))]);
    let expect = ["bill 0-0-1", "read rest 0-0-1", "start 1-0-1"];
    check_next(&mut run, &[ended(60, job(0), Completed)], &expect);
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &[]);
    check_next(&mut run, &[epochs(5..=5)], &["trial 0 completed"]);
}

#[test]
fn any_other_job_that_ran_waits_for_the_rest_of_its_log() {
    let mut run = unread(&[epochs(1..=3)]);
    let expect = ["bill 0-0-1", "read rest 0-0-1", "start 1-0-1"];
    check_next(&mut run, &[ended(60, job(0), Completed)], &expect);
    assert_eq!(at_once(&run), Some(false));
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &[]);
    let mut delivered = run.clone();
    check_next(&mut run, &[logged(50, job(0), 8, 0.8), rest_read(95, job(0))], &["trial 0 completed"]);
    assert_eq!(run.concluded[0].last_value, Some(0.8));
    // A late delivery of its other lines is as good.
    check_next(&mut delivered, &[epochs(4..=9)], &["trial 0 completed"]);
    assert_eq!(delivered.concluded[0].last_value, Some(0.1 * 9.0));
}

/// The last values of such trials decide nothing, so lines of the last seconds may be missing.
#[test]
fn the_log_of_a_failed_or_stopped_trial_is_read_at_once() {
    let mut run = unread(&[logged(10, job(0), 3, 0.5)]);
    run.take(&[ended(60, job(0), AlgorithmError)]);
    assert_eq!(at_once(&run), Some(true));
    let mut run = unread(&[stop_requested(20), logged(10, job(0), 3, 0.5)]);
    run.take(&[ended(60, job(0), Stopped)]);
    assert_eq!(at_once(&run), Some(true));
}

#[test]
fn a_job_that_never_ran_has_no_log() {
    let mut run = unread(&[ended(60, job(0), CapacityError)]);
    let expect = ["retry after 0-0-1: Capacity, from 90"];
    check_next(&mut run, &[described(60, job(0), CapacityError, 0)], &expect);
    assert_eq!(at_once(&run), None);
}

#[test]
fn after_an_hour_a_job_is_concluded_without_its_log() {
    let mut run = unread(&[logged(10, job(0), 3, 0.5)]);
    run.take(&[ended(60, job(0), Completed), described(60, job(0), Completed, 50)]);
    assert_eq!(deadline(&run.definition, &run.state), Some(at(120)), "the hour begins with a reported time");
    check_next(&mut run, &[time_passed(120)], &[]);
    check_next(&mut run, &[time_passed(3_719)], &[]);
    check_next(&mut run, &[time_passed(3_720)], &["trial 0 completed"]);
}

/// Returns a tuning whose trials train to epoch 4 first, and whose programs count their epochs from each start. Logs are
/// not read at once.
fn counting_from_each_start() -> Run {
    let definition = Definition { epochs: captured(1, true).epochs, ..jobs(9, 1) };
    let definition = Definition { strategy: comparing(4, 9, 2), ..definition };
    let mut run = Run::new(&promoting(definition, Scheduling::Asynchronous));
    run.answers_reads = false;
    run.take(&[submitted()]);
    run
}

/// Only the whole log shows the epochs of the lines of such a program.
#[test]
fn after_an_hour_a_trial_without_its_whole_log_arrives_with_its_known_values() {
    let mut run = counting_from_each_start();
    run.take(&[epochs([1, 2, 4].into_iter())]);
    run.take(&[ended(60, job(0), Completed), described(60, job(0), Completed, 50)]);
    run.take(&[time_passed(120)]);
    let expect = ["trial 0 waits at rung 0.0, epoch 4"];
    check_next(&mut run, &[time_passed(3_720)], &expect);
    assert_eq!(run.state.search.cohorts[0].rungs[0].arrivals, [(TrialId(0), Some(0.1 * 4.0))]);
}

#[test]
fn a_late_line_completes_the_log_of_a_first_job_that_counts_from_its_start() {
    let mut run = counting_from_each_start();
    run.take(&[epochs([1, 2, 4].into_iter())]);
    check_next(&mut run, &[epochs(3..=3)], &[]);
    check_next(&mut run, &[ended(60, job(0), Completed)], &["bill 0-0-1", "start 1-0-1 to 9"]);
    let expect = ["trial 0 waits at rung 0.0, epoch 4"];
    check_next(&mut run, &[described(60, job(0), Completed, 50)], &expect);
}

/// It may have logged a further value before it failed.
#[test]
fn a_failed_job_waits_for_the_rest_of_its_log_although_all_its_epochs_are_known() {
    let mut run = unread(&[epochs(1..=9)]);
    let expect = ["bill 0-0-1", "read rest 0-0-1", "start 1-0-1"];
    check_next(&mut run, &[ended(60, job(0), AlgorithmError)], &expect);
}

#[test]
fn a_job_has_a_log_if_an_event_showed_its_instances() {
    let mut run = unread(&[phase(10, job(0), JobPhase::Training)]);
    let expect = ["bill 0-0-1", "read rest 0-0-1", "start 1-0-1"];
    check_next(&mut run, &[ended(60, job(0), Completed)], &expect);
}

#[test]
fn lines_of_an_earlier_attempt_are_not_the_log_of_an_attempt_that_never_ran() {
    let mut run = unread(&[logged(10, job(0), 3, 0.5)]);
    run.take(&[paused(20, true)]);
    run.take(&[described(60, job(0), ServiceError, 9)]);
    run.take(&[rest_read(61, job(0))]);
    check_next(&mut run, &[paused(95, false)], &["start 0-0-2"]);
    let expect = ["retry after 0-0-2: Capacity, from 150"];
    check_next(&mut run, &[described(120, attempt(0, 2), CapacityError, 0)], &expect);
}
