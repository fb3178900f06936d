//! What the log shows besides values: the base of the epochs, lines that begin an epoch, problems.

use tuning::definition::{Definition, EpochRule};
use tuning::log::fact::{Fact, JobPhase, Recorded};
use tuning::log::problem::LogProblem;

use crate::epochs::{captured, check_curve, of, plain};
use crate::support::build::*;
use crate::support::run::Run;

#[test]
fn regression_a_repeated_epoch_has_one_value_for_best_last_and_rungs() {
    let list = vec![line(1, "x", 1, 0.1), line(2, "y", 2, 0.010_426), line(3, "z", 2, 0.006_95)];
    let mut definition = captured(1, false);
    definition.objective = tuning::definition::Objective::Minimize;
    let run = check_curve(&definition, &[of("a", list)], &[(1, 0.1), (2, 0.010_426)]);
    assert_eq!(run.state.search.incumbent.as_ref().map(|best| best.value), Some(0.010_426));
    assert_eq!(run.state.trials[&TrialId(0)].last_value(1), Some(0.010_426));
}

/// "Where the base is a default and the first index printed is 0, base 0 holds for the tuning."
#[test]
fn the_first_logged_index_is_the_base_where_the_request_sets_none() {
    let assumed = || Definition {
        epochs: EpochRule { captured: true, base: 1, per_attempt: false, is_base_assumed: true },
        ..random(2, 2)
    };
    let zero = [line(1, "x", 0, 0.1), line(2, "y", 1, 0.2)];
    let one = [line(1, "x", 1, 0.1), line(2, "y", 2, 0.2)];
    let curve = [(1, 0.1), (2, 0.2)];
    let run = check_curve(&assumed(), &[of("a", zero.to_vec())], &curve);
    assert_eq!(run.state.epoch_base, Some(0));
    let mut run = check_curve(&assumed(), &[of("a", one.to_vec())], &curve);
    // A later 0 of another job is an epoch before the first.
    run.take(&[lines(9, job(1), "b", zero.to_vec())]);
    assert_eq!((run.state.epoch_base, run.curve(1)), (Some(1), vec![(1, 0.2)]));
    let begun = lines_begun(1, "a", 0);
    let run = check_curve(&assumed(), &[begun, of("a", vec![plain(2, 0.1)])], &[(1, 0.1)]);
    assert_eq!(run.state.epoch_base, Some(0));
    let run = check_curve(&captured(1, false), &[of("a", zero.to_vec())], &[(1, 0.2)]);
    assert_eq!(run.state.epoch_base, None, "the request has set it");
}

fn lines_begun(second: i64, stream: &str, index: u64) -> Recorded {
    let fact =
        Fact::MetricsLogged { job: job(0), stream: stream.to_owned(), lines: Vec::new(), began: Some(index) };
    Recorded { key: format!("epoch#{stream}#{index}"), at: at(second), fact }
}

#[test]
fn a_line_without_an_index_has_the_epoch_that_began_before_it_in_any_order() {
    let facts = [
        lines_begun(1, "a", 1),
        of("a", vec![plain(2, 0.1)]),
        lines_begun(3, "a", 2),
        of("a", vec![plain(4, 0.2)]),
        lines_begun(5, "a", 3),
        of("a", vec![plain(6, 0.3)]),
    ];
    let curve = [(1, 0.1), (2, 0.2), (3, 0.3)];
    for order in
        [[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4], [0, 1, 3, 2, 4, 5], [5, 4, 3, 2, 1, 0], [1, 3, 5, 0, 2, 4]]
    {
        check_curve(&captured(1, false), &order.map(|n: usize| facts[n].clone()), &curve);
    }
    // A second value of an epoch waits for an epoch that never begins.
    let twice = [facts[0].clone(), of("a", vec![plain(2, 0.1), plain(3, 0.9)])];
    let run = check_curve(&captured(1, false), &twice, &[(1, 0.1)]);
    assert_eq!(run.state.trials[&TrialId(0)].unnumbered.len(), 1);
    // Another stream's epoch does not count.
    check_curve(&captured(1, false), &[facts[0].clone(), of("b", vec![plain(2, 0.1)])], &[]);
}

#[test]
fn lines_without_an_index_and_begun_epochs_are_bounded() {
    let mut facts: Vec<Recorded> = (0..40).map(|n| lines_begun(n, "a", u64::try_from(n).unwrap())).collect();
    facts.push(of("b", (0..40).map(|n| plain(n, 0.5)).collect()));
    let run = check_curve(&captured(1, false), &facts, &[]);
    let trial = &run.state.trials[&TrialId(0)];
    assert_eq!((trial.begun.len(), trial.unnumbered.len()), (16, 16));
    assert_eq!(trial.begun[15].index, 39, "the latest");
}

#[test]
fn a_problem_of_each_kind_is_kept_once() {
    let mut run = Run::new(&captured(1, false));
    run.take(&[submitted()]);
    let redrawn = |line: &str| LogProblem::Redrawn { line: line.to_owned() };
    let cut = |is_epoch| {
        let text = str::to_owned;
        LogProblem::NumberCut { captured: text("1"), whole: text("12"), line: text("a 12"), is_epoch }
    };
    let no_value = LogProblem::NoValue { hint: "no line matches".to_owned(), is_cause: true };
    let seen = [redrawn("a"), redrawn("b"), cut(false), cut(true), cut(false), no_value.clone()];
    for (second, problem) in (1..).zip(seen) {
        let problem = Box::new(problem);
        run.take(&[recorded(second, Fact::LogProblemSeen { job: job(0), problem })]);
    }
    let kept = [redrawn("a"), cut(false), cut(true), no_value].map(|problem| (job(0), problem));
    assert_eq!(run.state.results.log_problems, kept);
}

#[test]
fn regression_values_that_a_busy_machine_reads_at_once_are_no_buffered_output() {
    let burst = |seconds: i64| {
        let problem = Box::new(LogProblem::Burst { epochs: 3 });
        recorded(seconds, Fact::LogProblemSeen { job: job(0), problem })
    };
    let mut run = Run::new(&captured(1, false));
    run.take(&[submitted()]);
    run.take(&[burst(9)]);
    let (phase, started) = (JobPhase::Training, Some(at(10)));
    run.take(&[recorded(
        10,
        Fact::JobStateChanged { job: job(0), phase, started, ended: None, message: None },
    )]);
    run.take(&[burst(11)]);
    run.take(&[lines(15, job(0), "a", vec![line(15, "x", 1, 0.1)])]);
    run.take(&[burst(16)]);
    assert_eq!(run.state.results.log_problems, []);
    run.take(&[burst(17)]);
    assert_eq!(run.state.results.log_problems, [(job(0), LogProblem::Burst { epochs: 3 })]);
}

#[test]
fn many_equal_values_of_several_trials_show_a_constant_objective() {
    let mut run = Run::new(&Definition { epochs: captured(1, false).epochs, ..random(2, 2) });
    run.take(&[submitted()]);
    let equal = |n: u32| {
        (1..=5).map(move |epoch| logged(i64::from(n) * 9 + epoch, job(n), u64::try_from(epoch).unwrap(), 0.1))
    };
    for fact in equal(0).chain(equal(1)) {
        assert!(!run.state.search.is_constant());
        run.take(&[fact]);
    }
    assert!(run.state.search.is_constant());
    let mut alone = run.state.search.clone();
    alone.next_trial = TrialId(1);
    assert!(!alone.is_constant(), "the values of one trial show nothing");
    run.take(&[logged(30, job(0), 6, 0.2)]);
    assert!(!run.state.search.is_constant());
    run.take(&[logged(31, job(0), 7, 0.1)]);
    assert_eq!(run.state.search.equal_values, None);
}

#[test]
fn a_line_that_begins_an_epoch_changes_nothing_where_it_cannot_count() {
    // The epoch is the rank of a line with a value.
    let mut run = Run::new(&ranked(random(1, 1)));
    run.take(&[submitted()]);
    let before = run.state.clone();
    run.take(&[lines_begun(1, "a", 1)]);
    assert!(run.state == before);
    // The attempt was never ordered.
    let mut run = Run::new(&captured(1, false));
    run.take(&[submitted()]);
    let before = run.state.clone();
    let mut other = lines_begun(1, "a", 1);
    if let Fact::MetricsLogged { job, .. } = &mut other.fact {
        *job = attempt(0, 2);
    }
    run.take(&[other]);
    assert!(run.state == before);
}

/// Such a line would wait for ever.
#[test]
fn a_line_from_before_all_remembered_epochs_does_not_wait() {
    let facts: Vec<Recorded> = (0..40).map(|n| lines_begun(n, "a", n.unsigned_abs())).collect();
    for (second, waits) in [(5, 0), (24, 1), (30, 1)] {
        let late = of("b", vec![plain(second, 0.5)]);
        let run = check_curve(&captured(1, false), &[facts.clone(), vec![late]].concat(), &[]);
        assert_eq!(run.state.trials[&TrialId(0)].unnumbered.len(), waits, "second {second}");
    }
}
