//! From log lines to epochs: captured or counted, in any order, twice, over restarts.

use tuning::definition::{Definition, EpochRule};
use tuning::fact::{Fact, JobKey, JobPhase, MetricLine, Recorded};
use tuning::fold::fold;
use tuning::state::State;
use tuning::step::advance;

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
fn the_largest_index_is_the_last_resource() {
    let list = vec![line(1, "x", 20_000, 0.1), line(2, "y", 20_001, 0.2)];
    check_curve(&captured(1, false), &[of("a", list)], &[(20_000, 0.1)]);
}

/// "The state of all running trials stays bounded": 200,000 lines over all jobs at once.
#[test]
fn of_a_job_among_a_hundred_two_thousand_ranked_lines_are_kept() {
    let mut definition = ranked(random(100, 100));
    let kept = |definition: &Definition| {
        let mut state = State::new(definition);
        advance(definition, &mut state, 1, &[submitted()]);
        for n in 0..5 {
            let batch = (0..500).map(|i| plain(n * 500 + i, 0.5)).collect();
            advance(definition, &mut state, 2, &[of("a", batch)]);
        }
        state.trials[&0].resource()
    };
    assert_eq!(kept(&definition), 2_000);
    definition.limits.max_parallel = 80;
    assert_eq!(kept(&definition), 2_500);
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
    assert_eq!(state.trials[&0].resource(), 20_000);
}

#[test]
fn the_last_value_is_that_of_the_latest_line_not_of_the_latest_to_arrive() {
    let last = |facts: &[Recorded]| {
        let mut run = Run::new(&captured(1, false));
        run.take(&[submitted()]);
        run.take(facts);
        run.state.trials[&0].last_line.as_ref().and_then(|line| line.2)
    };
    let (early, late) = (of("a", vec![line(1, "x", 1, 0.1)]), of("a", vec![line(2, "x", 2, 0.2)]));
    assert_eq!(last(&[early.clone(), late.clone()]), Some(0.2));
    assert_eq!(last(&[late, early]), Some(0.2));
    // Of one time the greater id is later.
    let (first, second) = (of("a", vec![line(1, "a", 1, 0.1)]), of("a", vec![line(1, "b", 2, 0.2)]));
    assert_eq!(last(&[first.clone(), second.clone()]), Some(0.2));
    assert_eq!(last(&[second, first]), Some(0.2));
}

#[test]
fn a_value_that_is_no_number_has_an_epoch_and_improves_nothing() {
    let mut run = Run::new(&captured(1, false));
    run.take(&[submitted()]);
    run.take(&[logged_nan(5, job(0), 1)]);
    assert_eq!(run.state.trials[&0].curve.get(&1), Some(&None));
    assert_eq!(run.state.incumbent, None);
}

#[test]
fn an_equal_value_does_not_take_the_incumbent_s_place() {
    let mut run = Run::new(&random(9, 2));
    run.take(&[submitted()]);
    run.take(&[logged(1, job(1), 2, 0.5), logged(2, job(0), 1, 0.5)]);
    let best = run.state.incumbent.as_ref().unwrap();
    assert_eq!((best.trial, best.resource), (1, 2));
}

#[test]
fn the_span_of_a_stream_is_from_its_first_epoch_to_its_last() {
    let spans = |list: Vec<MetricLine>| {
        let mut run = Run::new(&captured(1, false));
        run.take(&[submitted()]);
        run.take(&[of("a", list)]);
        run.state.trials[&0].streams[0].span
    };
    let (one, two, three) = (line(5, "x", 1, 0.1), line(7, "y", 2, 0.2), line(9, "z", 3, 0.3));
    let expect = Some(((at(5), 1), (at(9), 3)));
    assert_eq!(spans(vec![one.clone(), two.clone(), three.clone()]), expect);
    assert_eq!(spans(vec![three, one, two]), expect);
    // The earliest time of the first epoch and the latest of the last.
    assert_eq!(
        spans(vec![line(6, "x", 1, 0.1), line(5, "w", 1, 0.1), line(8, "y", 1, 0.1)]),
        Some(((at(5), 1), (at(8), 1)))
    );
}

#[test]
fn another_trial_s_moved_lines_leave_the_incumbent_where_it_is() {
    let definition = ranked(random(9, 2));
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    let of_one = |list| lines(9, job(1), "b", list);
    run.take(&[of("a", vec![plain(1, 0.1), plain(2, 0.9)]), of_one(vec![plain(5, 0.9), plain(6, 0.2)])]);
    run.take(&[of_one(vec![plain(4, 0.3)])]);
    let best = run.state.incumbent.as_ref().unwrap();
    assert_eq!((best.trial, best.resource), (0, 2));
}

#[test]
fn a_line_without_an_index_begins_no_stream_where_epochs_are_captured() {
    let none = MetricLine { index: None, ..line(9, "x", 0, 0.1) };
    let facts = [of("a", vec![line(1, "x", 0, 0.1)]), of("b", vec![none])];
    let run = check_curve(&captured(0, true), &facts, &[(1, 0.1)]);
    assert_eq!(run.state.trials[&0].streams.len(), 1);
}

#[test]
fn an_absolute_index_needs_no_proof_and_moves_nothing() {
    // The second stream begins with a value that epoch 1 had: its epochs are still those in its lines.
    let facts =
        [of("a", vec![line(1, "x", 1, 0.1), line(2, "y", 2, 0.2)]), of("b", vec![line(9, "x", 3, 0.1)])];
    let run = check_curve(&captured(1, false), &facts, &[(1, 0.1), (2, 0.2), (3, 0.1)]);
    assert_eq!(run.state.trials[&0].streams[1].offset, 0);
}

/// Counted too little after a restart, a value still stands for the best.
#[test]
fn the_best_value_at_no_epoch_is_told_at_the_epochs_that_the_trial_has() {
    let facts = [of("a", vec![plain(1, 0.1), plain(2, 0.2)]), of("b", vec![plain(20, 0.8)])];
    let run = check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2)]);
    let best = run.state.incumbent.as_ref().unwrap();
    assert_eq!((best.value, best.resource), (0.8, 2));
}

/// Without a restart a value told again at an epoch that has one is not another best.
#[test]
fn the_best_value_is_one_that_stands_at_its_epoch() {
    let facts = [of("a", vec![line(1, "x", 1, 0.1)]), of("b", vec![line(2, "y", 1, 0.9)])];
    let run = check_curve(&captured(1, false), &facts, &[(1, 0.1)]);
    assert_eq!(run.state.incumbent.as_ref().map(|best| best.value), Some(0.1));
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

#[test]
fn one_stream_is_judged_on_its_ranks_without_reading_it_again() {
    let given = [submitted(), of("a", vec![plain(1, 0.1)])];
    let expect = ["trial 0 goes on at rung 0.1, epoch 3: 1 of 1"];
    check(&ranked(jobs(4, 4)), &given, &[of("a", vec![plain(2, 0.2), plain(3, 0.3)])], &expect);
}

#[test]
fn captured_epochs_are_judged_after_a_restart_without_reading_again() {
    let given = [submitted(), of("a", vec![line(1, "x", 1, 0.1)])];
    let expect = ["trial 0 goes on at rung 0.1, epoch 3: 1 of 1"];
    check(&jobs(4, 4), &given, &[of("b", vec![line(9, "x", 3, 0.3)])], &expect);
}

/// Before the bill of a job its log was read.
#[test]
fn a_closed_job_is_judged_without_reading_its_log_again() {
    let streams = [of("a", vec![plain(1, 0.1)]), of("b", vec![plain(20, 0.3), plain(21, 0.4)])];
    let given = [submitted(), streams[0].clone(), streams[1].clone()];
    let when = [of("b", vec![plain(22, 0.5)]), described(60, job(0), tuning::fact::JobEnd::Completed, 50)];
    let expect = ["trial 0 goes on at rung 0.1, epoch 3: 1 of 1", "trial 0 completed", "start 4-0-1"];
    check(&ranked(jobs(9, 4)), &given, &when, &expect);
}

/// Every restart is read for once.
#[test]
fn a_second_restart_is_read_again() {
    let definition = ranked(jobs(4, 4));
    let given = [submitted(), of("a", vec![plain(1, 0.1)]), of("b", vec![plain(20, 0.3), plain(21, 0.4)])];
    let mut run = check(&definition, &given, &[of("b", vec![plain(22, 0.5)])], &["read log 0-0-1"]);
    check_next(&mut run, &[of("c", vec![plain(40, 0.7)])], &["read log 0-0-1"]);
    // What was read before the second restart does not do.
    check_next(&mut run, &[recorded(41, Fact::LogRead { job: job(0), streams: 2 })], &[]);
    let expect = ["trial 0 goes on at rung 0.1, epoch 3: 1 of 1"];
    check_next(&mut run, &[recorded(42, Fact::LogRead { job: job(0), streams: 3 })], &expect);
}

/// [`Run::take`] sees that it is recorded.
#[test]
fn a_stream_that_shows_nothing_else_is_recorded() {
    let late = vec![line(50, "x", 1, 0.1)];
    let run = check_curve(
        &captured(1, false),
        &[of("a", late), of("b", vec![line(9, "x", 20_001, 0.9)])],
        &[(1, 0.1)],
    );
    assert_eq!(run.state.trials[&0].streams.len(), 2);
}

#[test]
fn an_epoch_told_again_at_an_earlier_time_begins_earlier() {
    let facts = [of("a", vec![line(10, "x", 1, 0.1)]), of("a", vec![line(5, "y", 1, 0.1)])];
    let run = check_curve(&captured(1, false), &facts, &[(1, 0.1)]);
    assert_eq!(run.state.trials[&0].streams[0].span, Some(((at(5), 1), (at(10), 1))));
}

#[test]
fn before_any_restart_a_value_without_an_epoch_is_not_the_best() {
    let facts = [of("a", vec![line(1, "x", 1, 0.1), line(2, "y", 0, 0.9)])];
    let run = check_curve(&captured(1, true), &facts, &[(1, 0.1)]);
    assert_eq!(run.state.incumbent.as_ref().map(|best| best.value), Some(0.1));
}

#[test]
fn a_restart_whose_place_is_not_proven_keeps_no_proof() {
    let facts = [of("a", vec![plain(1, 0.1), plain(2, 0.2)]), of("b", vec![plain(20, 0.8)])];
    let run = check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2)]);
    let stream = &run.state.trials[&0].streams[1];
    assert_eq!((stream.offset, stream.proof.clone()), (0, None));
}

/// More lines before the one that proved its epoch than that epoch has room for: it repeated the value by chance.
#[test]
fn a_proof_that_earlier_lines_disprove_gives_way_to_ranks() {
    let facts = [
        of("a", vec![plain(1, 1.0), plain(2, 2.0), plain(3, 3.0)]),
        of("b", vec![plain(22, 2.0), plain(23, 9.0)]),
        of("b", vec![plain(21, 5.0)]),
        of("b", vec![plain(20, 6.0)]),
    ];
    let run = check_curve(&counted(), &facts, &[(1, 1.0), (2, 2.0), (3, 3.0), (4, 9.0)]);
    assert_eq!(run.state.trials[&0].streams[1].offset, 0);
}

#[test]
fn where_epochs_are_ranks_an_index_in_a_line_means_nothing() {
    let indexed = MetricLine { index: Some(9), ..plain(20, 0.3) };
    let facts =
        [of("a", vec![plain(1, 0.1), plain(2, 0.2), plain(3, 0.3)]), of("b", vec![indexed, plain(21, 0.4)])];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]);
}

#[test]
fn a_late_line_of_an_earlier_stream_does_not_take_an_epoch_that_has_a_value() {
    let facts = [
        of("a", vec![plain(1, 0.1), plain(2, 0.2)]),
        of("b", vec![plain(20, 0.5), plain(21, 0.6), plain(22, 0.7)]),
        of("a", vec![plain(3, 0.3)]),
    ];
    check_curve(&counted(), &facts, &[(1, 0.1), (2, 0.2), (3, 0.7)]);
}

#[test]
fn where_the_index_never_begins_again_a_value_seen_before_moves_nothing() {
    let mut run = check(
        &hyperband(),
        &[],
        &[submitted()],
        &["start 0-0-1", "start 1-0-1", "start 2-0-1", "start 3-0-1"],
    );
    run.take(&[lines(10, job(1), "first", vec![line(10, "1", 1, 0.1), line(11, "2", 2, 0.5)])]);
    // The value of epoch 2 again, by chance, as the first of the next stream: at epoch 1.
    run.take(&[lines(20, job(1), "second", vec![line(20, "1", 1, 0.5), line(21, "3", 3, 0.7)])]);
    assert_eq!(run.curve(1), [(1, 0.1), (2, 0.5), (3, 0.7)]);
}
