//! From log lines to epochs: captured or counted, in any order, twice, over restarts.

use tuning::definition::{Definition, EpochRule};
use tuning::fact::{Fact, JobKey, JobPhase, MetricLine, Recorded};

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// The curve of trial 0 after `facts`, one at a time.
#[track_caller]
fn check_curve(definition: &Definition, facts: &[Recorded], expect: &[(u32, f64)]) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for fact in facts {
        run.take(std::slice::from_ref(fact));
    }
    assert_eq!(run.curve(0), expect);
    run
}

fn captured(base: u32, per_attempt: bool) -> Definition {
    Definition { epochs: EpochRule { captured: true, base, per_attempt }, ..random(1, 1) }
}

fn counted() -> Definition {
    ranked(random(1, 1))
}

/// A line without an epoch: its second is its id too.
fn plain(second: i64, value: f64) -> MetricLine {
    MetricLine { index: None, ..line(second, &format!("{second:05}"), 0, value) }
}

fn of(stream: &str, list: Vec<MetricLine>) -> Recorded {
    let seconds = list.last().map_or(0, |line| (line.at - CREATED) / 1_000);
    lines(seconds, job(0), stream, list)
}

#[test]
fn a_captured_index_counts_from_its_base() {
    let fact = lines(9, job(0), "a", vec![line(1, "x", 1, 0.1), line(2, "y", 2, 0.2)]);
    check_curve(&captured(1, false), std::slice::from_ref(&fact), &[(1, 0.1), (2, 0.2)]);
    check_curve(&captured(0, false), &[fact], &[(2, 0.1), (3, 0.2)]);
}

#[test]
fn an_index_below_its_base_or_absent_is_not_an_epoch() {
    let list = vec![line(1, "x", 0, 0.1), MetricLine { index: None, ..line(2, "y", 0, 0.2) }];
    let run = check_curve(&captured(1, false), &[of("a", list)], &[]);
    assert_eq!(run.state.trials[&0].last_line.as_ref().map(|line| line.2), Some(Some(0.2)));
}

#[test]
fn an_index_beyond_all_resources_is_not_an_epoch() {
    let list = vec![line(1, "x", 20_001, 0.1), line(2, "y", u64::MAX, 0.2)];
    check_curve(&captured(1, false), &[of("a", list)], &[]);
}

#[test]
fn the_first_value_of_an_epoch_stands() {
    let list = vec![line(1, "x", 1, 0.1), line(2, "y", 1, 0.9)];
    let run = check_curve(&captured(1, false), &[of("a", list)], &[(1, 0.1)]);
    assert_eq!(run.state.incumbent.as_ref().map(|best| best.value), Some(0.1));
}

#[test]
fn an_absolute_index_means_the_same_after_a_restart() {
    let facts =
        [of("a", vec![line(1, "x", 1, 0.1), line(2, "y", 2, 0.2)]), of("b", vec![line(9, "x", 3, 0.3)])];
    check_curve(&captured(1, false), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3)]);
}

#[test]
fn an_index_that_starts_again_goes_on_from_the_proven_checkpoint() {
    let first: Vec<_> = (0..4)
        .map(|n| line(n, "x", u64::try_from(n).unwrap(), f64::from(i32::try_from(n).unwrap())))
        .collect();
    // It repeats the value of epoch 3, and so began after epoch 2.
    let second = vec![line(10, "x", 0, 2.0), line(11, "x", 1, 3.0), line(12, "x", 2, 4.0)];
    let curve = [(1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0), (5, 4.0)];
    check_curve(&captured(0, true), &[of("a", first), of("b", second)], &curve);
}

#[test]
fn an_unproven_restart_counts_from_the_start_and_so_too_little() {
    let facts =
        [of("a", vec![line(1, "x", 0, 0.1), line(2, "y", 1, 0.2)]), of("b", vec![line(9, "x", 0, 0.7)])];
    check_curve(&captured(0, true), &facts, &[(1, 0.1), (2, 0.2)]);
}

#[test]
fn a_value_that_two_epochs_share_proves_nothing() {
    let facts =
        [of("a", vec![line(1, "x", 0, 0.5), line(2, "y", 1, 0.5)]), of("b", vec![line(9, "x", 0, 0.5)])];
    let run = check_curve(&captured(0, true), &facts, &[(1, 0.5), (2, 0.5)]);
    assert_eq!(run.state.trials[&0].streams[1].offset, 0);
}

#[test]
fn without_an_index_the_epoch_is_the_rank_of_the_line() {
    let facts = [of("a", vec![plain(1, 0.1), plain(2, 0.2)]), of("a", vec![plain(3, 0.3)])];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3)]);
}

#[test]
fn lines_out_of_order_come_to_the_same_ranks() {
    let batches =
        [vec![plain(1, 0.1), plain(2, 0.9)], vec![plain(3, 0.3)], vec![plain(4, 0.4), plain(5, 0.5)]];
    let curve = [(1, 0.1), (2, 0.9), (3, 0.3), (4, 0.4), (5, 0.5)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let facts = order.map(|n: usize| of("a", batches[n].clone()));
        let run = check_curve(&counted(), &facts, &curve);
        let best = run.state.incumbent.as_ref().unwrap();
        assert_eq!((best.resource, best.value), (2, 0.9), "{order:?}");
        assert_eq!(run.state.trials[&0].streams[0].span, Some(((at(1), 1), (at(5), 5))), "{order:?}");
    }
}

#[test]
fn lines_of_one_time_rank_by_id() {
    let list = vec![line(1, "b", 0, 0.2), line(1, "a", 0, 0.1), line(1, "c", 0, 0.3)];
    check_curve(&counted(), &[of("a", list)], &[(1, 0.1), (2, 0.2), (3, 0.3)]);
}

#[test]
fn a_line_told_twice_in_another_fact_counts_once() {
    let facts = [of("a", vec![plain(1, 0.1), plain(2, 0.2)]), of("a", vec![plain(2, 0.2), plain(3, 0.3)])];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3)]);
}

#[test]
fn ranks_in_a_new_stream_go_on_from_the_proven_checkpoint() {
    let facts = [
        of("a", vec![plain(1, 0.1), plain(2, 0.2), plain(3, 0.3)]),
        of("b", vec![plain(10, 0.3), plain(11, 0.4)]),
    ];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]);
}

#[test]
fn more_streams_than_are_remembered_are_left_out() {
    let facts: Vec<_> = (0..70).map(|n| of(&format!("{n}"), vec![plain(n, 0.5)])).collect();
    let run = check_curve(&counted(), &facts, &[(1, 0.5)]);
    assert_eq!(run.state.trials[&0].streams.len(), 64);
}

#[test]
fn lines_of_an_attempt_that_was_never_ordered_are_nobody_s() {
    let fact = lines(9, JobKey { attempt: 2, ..job(0) }, "a", vec![line(1, "x", 1, 0.1)]);
    check_curve(&captured(1, false), &[fact], &[]);
}

#[test]
fn facts_of_unknown_jobs_change_nothing() {
    let mut run = Run::new(&random(1, 1));
    run.take(&[submitted()]);
    let before = run.state.clone();
    let others = [logged(5, job(7), 1, 0.5), started(6, job(7)), phase(7, job(7), JobPhase::Training)];
    assert_eq!(run.take(&others), []);
    assert_eq!(run.state, before, "not even the time");
}

#[test]
fn phases_are_ordered_by_time_however_they_arrive() {
    let told = [
        phase(1, job(0), JobPhase::Starting),
        phase(5, job(0), JobPhase::Training),
        phase(5, job(0), JobPhase::Interrupted),
        phase(9, job(0), JobPhase::Uploading),
    ];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 1, 3, 0], [1, 3, 0, 2]] {
        let mut run = Run::new(&random(1, 1));
        run.take(&[submitted()]);
        run.take(&order.map(|n: usize| told[n].clone()));
        assert_eq!(run.state.job(job(0)).unwrap().phase, JobPhase::Uploading, "{order:?}");
    }
}

/// "After a gap or a restart the stream is read again before a stop is decided on a rank."
#[test]
fn after_a_restart_a_rank_is_judged_only_when_the_stored_log_was_read() {
    let definition = ranked(jobs(4, 4));
    let given = [submitted(), of("a", vec![plain(1, 0.1)]), of("b", vec![plain(20, 0.3), plain(21, 0.4)])];
    let mut run = check(&definition, &given, &[], &[]);
    // Three lines in the second stream: by their rank epoch 3, if none before them was lost.
    check_next(&mut run, &[of("b", vec![plain(22, 0.5)])], &["read log 0-0-1"]);
    check_next(&mut run, &[of("b", vec![plain(23, 0.6)])], &[]);
    let read = recorded(30, Fact::LogRead { job: job(0), streams: 2 });
    check_next(&mut run, std::slice::from_ref(&read), &["trial 0 goes on at rung 0.1, epoch 3: 1 of 1"]);
    check_next(&mut run, &[read], &[]);
}
