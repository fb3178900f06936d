//! Conversion of log lines to epochs: captured or counted, in any order, duplicated, across restarts.

use tuning::change::fold::fold;
use tuning::definition::{Definition, EpochRule};
use tuning::log::fact::{Fact, JobKey, JobPhase, MetricLine, Recorded};
use tuning::state::State;
use tuning::step::advance;
use tuning::unit::epochs::Epochs;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// Delivers `facts` one at a time and checks the curve of trial 0.
#[track_caller]
pub(crate) fn check_curve(definition: &Definition, facts: &[Recorded], expect: &[(u32, f64)]) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for fact in facts {
        run.take(std::slice::from_ref(fact));
    }
    assert_eq!(run.curve(0), expect);
    run
}

pub(crate) fn captured(base: u32, per_attempt: bool) -> Definition {
    Definition {
        epochs: EpochRule { captured: true, base, per_attempt, is_base_assumed: false },
        ..random(1, 1)
    }
}

fn counted() -> Definition {
    ranked(random(1, 1))
}

/// A line without an epoch. Its ID is its second.
pub(crate) fn plain(second: i64, value: f64) -> MetricLine {
    MetricLine { index: None, ..line(second, &format!("{second:05}"), 0, value) }
}

pub(crate) fn of(stream: &str, list: Vec<MetricLine>) -> Recorded {
    let seconds = list.last().map_or(0, |line| (line.at - CREATED).as_seconds());
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
    assert_eq!(run.state.trials[&TrialId(0)].last_value(1), None);
}

#[test]
fn an_index_beyond_all_resources_is_not_an_epoch() {
    let list = vec![line(1, "x", 20_001, 0.1), line(2, "y", u64::MAX, 0.2)];
    check_curve(&captured(1, false), &[of("a", list)], &[]);
}

#[test]
fn the_first_value_of_an_epoch_is_kept() {
    let list = vec![line(1, "x", 1, 0.1), line(2, "y", 1, 0.9)];
    let run = check_curve(&captured(1, false), &[of("a", list)], &[(1, 0.1)]);
    assert_eq!(run.state.search.incumbent.as_ref().map(|best| best.value), Some(0.1));
}

#[test]
fn an_absolute_index_keeps_its_meaning_after_a_restart() {
    let facts =
        [of("a", vec![line(1, "x", 1, 0.1), line(2, "y", 2, 0.2)]), of("b", vec![line(9, "x", 3, 0.3)])];
    check_curve(&captured(1, false), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3)]);
}

#[test]
fn an_index_that_restarts_continues_from_the_proven_checkpoint() {
    let first: Vec<_> = (0..4)
        .map(|n| line(n, "x", u64::try_from(n).unwrap(), f64::from(i32::try_from(n).unwrap())))
        .collect();
    // The first line repeats the value of epoch 3: the attempt resumed after epoch 2.
    let second = vec![line(10, "x", 0, 2.0), line(11, "x", 1, 3.0), line(12, "x", 2, 4.0)];
    let curve = [(1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0), (5, 4.0)];
    check_curve(&captured(0, true), &[of("a", first), of("b", second)], &curve);
}

#[test]
fn an_unproven_restart_counts_from_the_first_epoch() {
    let facts =
        [of("a", vec![line(1, "x", 0, 0.1), line(2, "y", 1, 0.2)]), of("b", vec![line(9, "x", 0, 0.7)])];
    check_curve(&captured(0, true), &facts, &[(1, 0.1), (2, 0.2)]);
}

#[test]
fn a_value_of_two_epochs_proves_no_checkpoint() {
    let facts =
        [of("a", vec![line(1, "x", 0, 0.5), line(2, "y", 1, 0.5)]), of("b", vec![line(9, "x", 0, 0.5)])];
    let run = check_curve(&captured(0, true), &facts, &[(1, 0.5), (2, 0.5)]);
    assert_eq!(run.state.trials[&TrialId(0)].streams[1].offset, Epochs(0));
}

#[test]
fn without_an_index_the_epoch_is_the_rank_of_the_line() {
    let facts = [of("a", vec![plain(1, 0.1), plain(2, 0.2)]), of("a", vec![plain(3, 0.3)])];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3)]);
}

#[test]
fn lines_in_any_order_get_the_same_ranks() {
    let batches =
        [vec![plain(1, 0.1), plain(2, 0.9)], vec![plain(3, 0.3)], vec![plain(4, 0.4), plain(5, 0.5)]];
    let curve = [(1, 0.1), (2, 0.9), (3, 0.3), (4, 0.4), (5, 0.5)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let facts = order.map(|n: usize| of("a", batches[n].clone()));
        let run = check_curve(&counted(), &facts, &curve);
        let best = run.state.search.incumbent.as_ref().unwrap();
        assert_eq!((best.resource, best.value), (Epochs(2), 0.9), "{order:?}");
        assert_eq!(
            run.state.trials[&TrialId(0)].streams[0].span,
            Some(((at(1), Epochs(1)), (at(5), Epochs(5)))),
            "{order:?}"
        );
    }
}

#[test]
fn lines_with_equal_times_rank_by_id() {
    let list = vec![line(1, "b", 0, 0.2), line(1, "a", 0, 0.1), line(1, "c", 0, 0.3)];
    check_curve(&counted(), &[of("a", list)], &[(1, 0.1), (2, 0.2), (3, 0.3)]);
}

#[test]
fn a_line_in_two_facts_counts_once() {
    let facts = [of("a", vec![plain(1, 0.1), plain(2, 0.2)]), of("a", vec![plain(2, 0.2), plain(3, 0.3)])];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3)]);
}

#[test]
fn ranks_in_a_new_stream_continue_from_the_proven_checkpoint() {
    let facts = [
        of("a", vec![plain(1, 0.1), plain(2, 0.2), plain(3, 0.3)]),
        of("b", vec![plain(10, 0.3), plain(11, 0.4)]),
    ];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]);
}

#[test]
fn streams_above_the_limit_are_ignored() {
    let facts: Vec<_> = (0..70).map(|n| of(&format!("{n}"), vec![plain(n, 0.5)])).collect();
    let run = check_curve(&counted(), &facts, &[(1, 0.5)]);
    assert_eq!(run.state.trials[&TrialId(0)].streams.len(), 64);
}

#[test]
fn the_largest_valid_index_is_the_last_resource() {
    let list = vec![line(1, "x", 20_000, 0.1), line(2, "y", 20_001, 0.2)];
    check_curve(&captured(1, false), &[of("a", list)], &[(20_000, 0.1)]);
}

/// "The state of all running trials stays bounded": 200,000 lines over all jobs at once.
#[test]
fn each_of_a_hundred_parallel_jobs_keeps_two_thousand_ranked_lines() {
    let mut definition = ranked(random(100, 100));
    let kept = |definition: &Definition| {
        let mut state = State::new(definition);
        advance(definition, &mut state, 1, &[submitted()]);
        for n in 0..5 {
            let batch = (0..500).map(|i| plain(n * 500 + i, 0.5)).collect();
            advance(definition, &mut state, 2, &[of("a", batch)]);
        }
        state.trials[&TrialId(0)].resource()
    };
    assert_eq!(kept(&definition), Epochs(2_000));
    definition.limits.max_parallel = 80;
    assert_eq!(kept(&definition), Epochs(2_500));
}

#[test]
fn a_ranked_line_beyond_all_resources_is_not_an_epoch() {
    let definition = ranked(random(9, 1));
    let mut state = State::new(&definition);
    advance(&definition, &mut state, 1, &[submitted()]);
    for n in 0..41 {
        let batch = (0..500).map(|i| plain(n * 500 + i, 0.5)).collect();
        fold(&definition, &mut state, &of("a", batch));
    }
    assert_eq!(state.trials[&TrialId(0)].resource(), Epochs(20_000));
}

#[test]
fn the_last_value_is_the_value_of_the_line_with_the_latest_time() {
    let last = |facts: &[Recorded]| {
        let mut run = Run::new(&captured(1, false));
        run.take(&[submitted()]);
        run.take(facts);
        run.state.trials[&TrialId(0)].last_value(1)
    };
    let (early, late) = (of("a", vec![line(1, "x", 1, 0.1)]), of("a", vec![line(2, "x", 2, 0.2)]));
    assert_eq!(last(&[early.clone(), late.clone()]), Some(0.2));
    assert_eq!(last(&[late, early]), Some(0.2));
    // With equal times the line with the greater ID is later.
    let (first, second) = (of("a", vec![line(1, "a", 1, 0.1)]), of("a", vec![line(1, "b", 2, 0.2)]));
    assert_eq!(last(&[first.clone(), second.clone()]), Some(0.2));
    assert_eq!(last(&[second, first]), Some(0.2));
}

#[test]
fn a_nan_value_fills_its_epoch_and_sets_no_incumbent() {
    let mut run = Run::new(&captured(1, false));
    run.take(&[submitted()]);
    run.take(&[logged_nan(5, job(0), 1)]);
    assert_eq!(run.state.trials[&TrialId(0)].curve.get(&Epochs(1)), Some(&None));
    assert_eq!(run.state.search.incumbent, None);
}

#[test]
fn an_equal_value_does_not_replace_the_incumbent() {
    let mut run = Run::new(&random(9, 2));
    run.take(&[submitted()]);
    run.take(&[logged(1, job(1), 2, 0.5), logged(2, job(0), 1, 0.5)]);
    let best = run.state.search.incumbent.as_ref().unwrap();
    assert_eq!((best.trial, best.resource), (TrialId(1), Epochs(2)));
}

#[test]
fn the_span_of_a_stream_covers_its_first_to_its_last_epoch() {
    let spans = |list: Vec<MetricLine>| {
        let mut run = Run::new(&captured(1, false));
        run.take(&[submitted()]);
        run.take(&[of("a", list)]);
        run.state.trials[&TrialId(0)].streams[0].span
    };
    let (one, two, three) = (line(5, "x", 1, 0.1), line(7, "y", 2, 0.2), line(9, "z", 3, 0.3));
    let expect = Some(((at(5), Epochs(1)), (at(9), Epochs(3))));
    assert_eq!(spans(vec![one.clone(), two.clone(), three.clone()]), expect);
    assert_eq!(spans(vec![three, one, two]), expect);
    // The span has the earliest time of the first epoch and the latest time of the last epoch.
    assert_eq!(
        spans(vec![line(6, "x", 1, 0.1), line(5, "w", 1, 0.1), line(8, "y", 1, 0.1)]),
        Some(((at(5), Epochs(1)), (at(8), Epochs(1))))
    );
}

#[test]
fn moved_lines_of_another_trial_do_not_change_the_incumbent() {
    let definition = ranked(random(9, 2));
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    let of_trial_1 = |list| lines(9, job(1), "b", list);
    run.take(&[of("a", vec![plain(1, 0.1), plain(2, 0.9)]), of_trial_1(vec![plain(5, 0.9), plain(6, 0.2)])]);
    run.take(&[of_trial_1(vec![plain(4, 0.3)])]);
    let best = run.state.search.incumbent.as_ref().unwrap();
    assert_eq!((best.trial, best.resource), (TrialId(0), Epochs(2)));
}

#[test]
fn with_captured_epochs_a_line_without_an_index_opens_no_stream() {
    let none = MetricLine { index: None, ..line(9, "x", 0, 0.1) };
    let facts = [of("a", vec![line(1, "x", 0, 0.1)]), of("b", vec![none])];
    let run = check_curve(&captured(0, true), &facts, &[(1, 0.1)]);
    assert_eq!(run.state.trials[&TrialId(0)].streams.len(), 1);
}

#[test]
fn an_absolute_index_gets_no_offset() {
    // The second stream begins with the value of epoch 1. Its epochs are still the captured ones.
    let facts =
        [of("a", vec![line(1, "x", 1, 0.1), line(2, "y", 2, 0.2)]), of("b", vec![line(9, "x", 3, 0.1)])];
    let run = check_curve(&captured(1, false), &facts, &[(1, 0.1), (2, 0.2), (3, 0.1)]);
    assert_eq!(run.state.trials[&TrialId(0)].streams[1].offset, Epochs(0));
}

/// A value without an epoch, after an unproven restart, can still be the best.
#[test]
fn the_best_value_without_an_epoch_is_reported_at_the_last_epoch_of_the_trial() {
    let facts = [of("a", vec![plain(1, 0.1), plain(2, 0.2)]), of("b", vec![plain(20, 0.8)])];
    let run = check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2)]);
    let best = run.state.search.incumbent.as_ref().unwrap();
    assert_eq!((best.value, best.resource), (0.8, Epochs(2)));
}

/// With absolute indices a second value of an epoch never becomes the best.
#[test]
fn a_later_value_of_an_epoch_is_never_the_best() {
    let facts = [of("a", vec![line(1, "x", 1, 0.1)]), of("b", vec![line(2, "y", 1, 0.9)])];
    let run = check_curve(&captured(1, false), &facts, &[(1, 0.1)]);
    assert_eq!(run.state.search.incumbent.as_ref().map(|best| best.value), Some(0.1));
}

#[test]
fn lines_of_an_attempt_that_was_never_ordered_are_ignored() {
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
    assert_eq!(run.state, before, "the time does not change either");
}

#[test]
fn phases_are_ordered_by_time_in_any_order_of_arrival() {
    let phases = [
        phase(1, job(0), JobPhase::Starting),
        phase(5, job(0), JobPhase::Training),
        phase(5, job(0), JobPhase::Interrupted),
        phase(9, job(0), JobPhase::Uploading),
    ];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 1, 3, 0], [1, 3, 0, 2]] {
        let mut run = Run::new(&random(1, 1));
        run.take(&[submitted()]);
        run.take(&order.map(|n: usize| phases[n].clone()));
        assert_eq!(run.state.job(job(0)).unwrap().phase(), JobPhase::Uploading, "{order:?}");
    }
}

/// "After a gap or a restart the stream is read again before a stop is decided on a rank."
#[test]
fn after_a_restart_a_rank_is_judged_only_after_the_stored_log_was_read() {
    let definition = ranked(jobs(4, 4));
    let given = [submitted(), of("a", vec![plain(1, 0.1)]), of("b", vec![plain(20, 0.3), plain(21, 0.4)])];
    let mut run = check(&definition, &given, &[], &[]);
    // The third line of the second stream has rank 3. That is epoch 3 only if no earlier line was lost.
    check_next(&mut run, &[of("b", vec![plain(22, 0.5)])], &["read log 0-0-1"]);
    check_next(&mut run, &[of("b", vec![plain(23, 0.6)])], &[]);
    let read = recorded(30, Fact::LogRead { job: job(0), streams: 2 });
    check_next(&mut run, std::slice::from_ref(&read), &["trial 0 continues at rung 0.1, epoch 3: 1 of 1"]);
    check_next(&mut run, &[read], &[]);
}

#[test]
fn a_trial_with_one_stream_is_judged_without_reading_its_log_again() {
    let given = [submitted(), of("a", vec![plain(1, 0.1)])];
    let expect = ["trial 0 continues at rung 0.1, epoch 3: 1 of 1"];
    check(&ranked(jobs(4, 4)), &given, &[of("a", vec![plain(2, 0.2), plain(3, 0.3)])], &expect);
}

#[test]
fn captured_epochs_are_judged_after_a_restart_without_reading_the_log_again() {
    let given = [submitted(), of("a", vec![line(1, "x", 1, 0.1)])];
    let expect = ["trial 0 continues at rung 0.1, epoch 3: 1 of 1"];
    check(&jobs(4, 4), &given, &[of("b", vec![line(9, "x", 3, 0.3)])], &expect);
}

/// The program reads the log of a job before it records the bill.
#[test]
fn a_closed_job_is_judged_without_reading_its_log_again() {
    let streams = [of("a", vec![plain(1, 0.1)]), of("b", vec![plain(20, 0.3), plain(21, 0.4)])];
    let given = [submitted(), streams[0].clone(), streams[1].clone()];
    let when =
        [of("b", vec![plain(22, 0.5)]), described(60, job(0), tuning::log::fact::JobEnd::Completed, 50)];
    let expect = ["trial 0 continues at rung 0.1, epoch 3: 1 of 1", "trial 0 completed", "start 4-0-1"];
    check(&ranked(jobs(9, 4)), &given, &when, &expect);
}

/// Each restart needs one read of the log.
#[test]
fn a_second_restart_needs_a_second_log_read() {
    let definition = ranked(jobs(4, 4));
    let given = [submitted(), of("a", vec![plain(1, 0.1)]), of("b", vec![plain(20, 0.3), plain(21, 0.4)])];
    let mut run = check(&definition, &given, &[of("b", vec![plain(22, 0.5)])], &["read log 0-0-1"]);
    check_next(&mut run, &[of("c", vec![plain(40, 0.7)])], &["read log 0-0-1"]);
    // A read from before the second restart does not suffice.
    check_next(&mut run, &[recorded(41, Fact::LogRead { job: job(0), streams: 2 })], &[]);
    let expect = ["trial 0 continues at rung 0.1, epoch 3: 1 of 1"];
    check_next(&mut run, &[recorded(42, Fact::LogRead { job: job(0), streams: 3 })], &expect);
}

/// [`Run::take`] checks that the step is recorded.
#[test]
fn a_new_stream_without_a_valid_epoch_is_recorded() {
    let late = vec![line(50, "x", 1, 0.1)];
    let run = check_curve(
        &captured(1, false),
        &[of("a", late), of("b", vec![line(9, "x", 20_001, 0.9)])],
        &[(1, 0.1)],
    );
    assert_eq!(run.state.trials[&TrialId(0)].streams.len(), 2);
}

#[test]
fn an_earlier_line_of_the_first_epoch_moves_the_span_back() {
    let facts = [of("a", vec![line(10, "x", 1, 0.1)]), of("a", vec![line(5, "y", 1, 0.1)])];
    let run = check_curve(&captured(1, false), &facts, &[(1, 0.1)]);
    assert_eq!(
        run.state.trials[&TrialId(0)].streams[0].span,
        Some(((at(5), Epochs(1)), (at(10), Epochs(1))))
    );
}

#[test]
fn before_any_restart_a_value_without_an_epoch_is_not_the_best() {
    let facts = [of("a", vec![line(1, "x", 1, 0.1), line(2, "y", 0, 0.9)])];
    let run = check_curve(&captured(1, true), &facts, &[(1, 0.1)]);
    assert_eq!(run.state.search.incumbent.as_ref().map(|best| best.value), Some(0.1));
}

#[test]
fn an_unproven_restart_stores_no_proof() {
    let facts = [of("a", vec![plain(1, 0.1), plain(2, 0.2)]), of("b", vec![plain(20, 0.8)])];
    let run = check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2)]);
    let stream = &run.state.trials[&TrialId(0)].streams[1];
    assert_eq!((stream.offset, stream.proof.clone()), (Epochs(0), None));
}

/// Late lines show that the stream repeated the value by chance: more lines precede it than its epoch allows.
#[test]
fn a_proof_that_late_lines_contradict_is_dropped() {
    let facts = [
        of("a", vec![plain(1, 1.0), plain(2, 2.0), plain(3, 3.0)]),
        of("b", vec![plain(22, 2.0), plain(23, 9.0)]),
        of("b", vec![plain(21, 5.0)]),
        of("b", vec![plain(20, 6.0)]),
    ];
    let run = check_curve(&counted(), &facts, &[(1, 1.0), (2, 2.0), (3, 3.0), (4, 9.0)]);
    assert_eq!(run.state.trials[&TrialId(0)].streams[1].offset, Epochs(0));
}

#[test]
fn with_counted_epochs_a_captured_index_is_ignored() {
    let indexed = MetricLine { index: Some(9), ..plain(20, 0.3) };
    let facts =
        [of("a", vec![plain(1, 0.1), plain(2, 0.2), plain(3, 0.3)]), of("b", vec![indexed, plain(21, 0.4)])];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]);
}

#[test]
fn a_late_line_of_an_earlier_stream_does_not_replace_a_value() {
    let facts = [
        of("a", vec![plain(1, 0.1), plain(2, 0.2)]),
        of("b", vec![plain(20, 0.5), plain(21, 0.6), plain(22, 0.7)]),
        of("a", vec![plain(3, 0.3)]),
    ];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.7)]);
}

#[test]
fn with_absolute_indices_a_repeated_value_moves_no_line() {
    let mut run = check(
        &hyperband(),
        &[],
        &[submitted()],
        &["start 0-0-1", "start 1-0-1", "start 2-0-1", "start 3-0-1"],
    );
    run.take(&[lines(10, job(1), "first", vec![line(10, "1", 1, 0.1), line(11, "2", 2, 0.5)])]);
    // The next stream begins at epoch 1 with the value of epoch 2, by chance.
    run.take(&[lines(20, job(1), "second", vec![line(20, "1", 1, 0.5), line(21, "3", 3, 0.7)])]);
    assert_eq!(run.curve(1), [(1, 0.1), (2, 0.5), (3, 0.7)]);
}
