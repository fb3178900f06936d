//! The front of value against cost, the best buy, and its refit.

use proptest::prelude::*;
use tuning::definition::{BestBuy, Definition, Scheduling};
use tuning::log::fact::Fact;
use tuning::log::fact::JobEnd::{Completed, Stopped};
use tuning::log::ruling::{Order, Ruling};
use tuning::state::front::{FrontPoint, training};
use tuning::trial::timing::Timings;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::SizeId;
use tuning::unit::time::Millis;

use crate::sizes::sized;
use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{cases, check_next};
use crate::waits::{begun, done, on, two_rungs};

fn buying(definition: Definition, tolerance: f64, is_refitted: bool) -> Definition {
    Definition { refit: is_refitted, best_buy: Some(BestBuy { tolerance, is_refitted }), ..definition }
}

/// Plays two trials. The first has the value 0.8 and epochs of 20 s, the second 0.79 and epochs of 5 s.
fn two_trials(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    for (trial, value, epoch) in [(0, 0.8, 20), (1, 0.79, 5)] {
        run.take(&[started(0, job(trial))]);
        for line in 1..=9 {
            let value = if line == 7 { value } else { value - 0.3 };
            run.take(&[logged(10 + i64::try_from(line).unwrap() * epoch, job(trial), line, value)]);
        }
    }
    run.take(&[described(300, job(0), Completed, 200)]);
    run
}

#[test]
fn the_refit_trains_the_best_buy_to_the_epoch_of_its_best_value() {
    for (tolerance, trial) in [(0.02, 1), (0.005, 0)] {
        let mut run = two_trials(&buying(jobs(3, 2), tolerance, true));
        let expect = ["trial 1 completed", "start 2-0-1 to 7 as refit"];
        check_next(&mut run, &[described(301, job(1), Completed, 60)], &expect);
        let Some(Ruling::Order(Order::Start { configuration, .. })) = run.rulings.last() else { panic!() };
        let drawn = run.state.draw(&run.definition, TrialId(trial)).configuration;
        assert_eq!(*configuration, drawn, "tolerance {tolerance}");
        let measured = run.state.results.front.iter().map(|point| (point.job.trial.0, point.is_measured));
        assert_eq!(measured.collect::<Vec<_>>(), [(0, true), (1, true)]);
    }
}

#[test]
fn a_tolerance_without_its_refit_changes_no_refit() {
    let definition = Definition { refit: true, ..buying(jobs(3, 2), 0.02, false) };
    let mut run = two_trials(&definition);
    run.take(&[described(301, job(1), Completed, 60)]);
    let Some(Ruling::Order(Order::Start { configuration, .. })) = run.rulings.last() else { panic!() };
    assert_eq!(*configuration, run.state.draw(&definition, TrialId(0)).configuration);
}

/// Plays trials that run to their own end, each with a value and a running time.
fn played(definition: &Definition, trials: &[(u32, i64)]) -> Run {
    interrupted(definition, trials, |_| 0)
}

/// Like [`played`], with interruptions of each trial.
fn interrupted(definition: &Definition, trials: &[(u32, i64)], interruptions: fn(u32) -> u32) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    let mut now = 0;
    for (trial, (value, seconds)) in (0..).zip(trials) {
        run.take(&[logged(now + 1, job(trial), 1, f64::from(*value))]);
        let fact = Fact::JobDescribed {
            job: job(trial),
            end: Completed,
            started: Some(at(now)),
            ended: Some(at(now + seconds)),
            billable_seconds: 60,
            message: None,
            interruptions: interruptions(trial),
        };
        now += seconds;
        run.take(&[recorded(now, fact)]);
    }
    run
}

#[test]
fn a_long_front_keeps_its_best_and_its_cheapest_trial() {
    let definition = buying(random(100, 1), 1_000.0, false);
    let trials: Vec<(u32, i64)> = (1..=50).map(|rank| (rank, i64::from(rank))).collect();
    let run = played(&definition, &trials);
    let results = &run.state.results;
    let numbers: Vec<u32> = results.front.iter().map(|point| point.job.trial.0).collect();
    assert_eq!((numbers.len(), numbers[0], numbers[31]), (32, 49, 0));
    let buy = results.front.best_buy(&definition, &results.timings, 1_000.0);
    assert_eq!(buy.map(|point| point.job.trial), Some(TrialId(0)));
}

#[test]
fn a_long_front_keeps_a_best_buy_that_is_nearly_as_cheap() {
    let definition = buying(random(100, 1), 40.0, false);
    let trials: Vec<(u32, i64)> = (1..=50).map(|rank| (rank, i64::from(rank))).collect();
    let run = played(&definition, &trials);
    let results = &run.state.results;
    // The value 10 is 40 below the best one, and its job took 10 s.
    let buy = results.front.best_buy(&definition, &results.timings, 40.0).unwrap();
    assert!((9..12).contains(&buy.job.trial.0), "{buy:?}");
}

/// A job that continues from a checkpoint shows only a part of the time.
#[test]
fn regression_an_interrupted_job_does_not_show_the_time_of_a_training() {
    let definition = buying(random(100, 1), 10.0, false);
    let run = interrupted(&definition, &[(5, 7), (4, 2)], |trial| trial);
    let results = &run.state.results;
    let times: Vec<_> = results.front.iter().map(|point| point.time.map(|time| time.0)).collect();
    assert_eq!(times, [Some(7_000)], "the second trial is worse, and its time is unknown");
}

#[test]
fn a_job_that_was_stopped_does_not_show_the_time_of_a_training() {
    let mut run = Run::new(&buying(random(100, 1), 10.0, false));
    run.take(&[submitted()]);
    run.take(&[started(1, job(0)), logged(2, job(0), 1, 5.0), stop_requested(3)]);
    run.take(&[described(9, job(0), Stopped, 8)]);
    let times: Vec<_> = run.state.results.front.iter().map(|point| (point.time, point.is_measured)).collect();
    assert_eq!(times, [(None, false)]);
}

/// It reported two of nine epochs, so its value is not that of a whole training.
#[test]
fn a_trial_whose_program_ends_early_is_not_measured() {
    let mut run = Run::new(&buying(jobs(3, 1), 10.0, false));
    run.take(&[submitted()]);
    run.take(&[started(1, job(0)), logged(10, job(0), 1, 5.0), logged(20, job(0), 2, 5.1)]);
    run.take(&[described(30, job(0), Completed, 29)]);
    let point = run.state.results.front.iter().next().unwrap();
    assert_eq!((point.time.is_some(), point.is_measured), (true, false));
}

#[test]
fn a_promoted_trial_has_its_better_value_on_the_front() {
    let mut run = begun(&buying(two_rungs(100, Scheduling::Asynchronous), 10.0, false));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    let value = |run: &Run| {
        let own = run.state.results.front.iter().find(|point| point.job.trial == TrialId(2));
        own.map(|point| (point.value, point.resource))
    };
    assert_eq!(value(&run), Some((0.6, Epochs(4))));
    let mut worse = run.clone();
    worse.take(&done(40, on(2, 1), 9, 0.5));
    assert_eq!(value(&worse), Some((0.6, Epochs(4))));
    run.take(&done(40, on(2, 1), 9, 0.7));
    assert_eq!(value(&run), Some((0.7, Epochs(9))));
}

#[test]
fn with_one_epoch_the_time_of_the_job_is_that_of_the_training() {
    let one = Definition { strategy: comparing(1, 1, 3), ..buying(jobs(100, 1), 2.0, false) };
    let run = played(&one, &[(5, 7), (4, 2), (1, 1)]);
    let results = &run.state.results;
    let buy = results.front.best_buy(&one, &results.timings, 2.0);
    assert_eq!(buy.map(|point| point.job.trial), Some(TrialId(1)));
}

#[test]
fn a_training_takes_a_startup_with_its_first_epoch_the_other_epochs_and_a_tail() {
    let time = |definition: &Definition| training(definition, &Timings::default(), SizeId(0), Millis(5_000));
    let timings =
        Timings { startup_ms: vec![Millis(7_000)], tail_ms: vec![Millis(2_000)], ..Timings::default() };
    let whole = training(&jobs(3, 2), &timings, SizeId(0), Millis(5_000));
    assert_eq!(whole, Millis(7_000 + 8 * 5_000 + 2_000));
    assert_eq!(time(&jobs(3, 2)), Millis(45_000), "nine epochs, and no job has shown a start-up");
    assert_eq!(time(&random(3, 2)), Millis(5_000), "the time of a job that trains as long as it likes");
}

/// Returns the trials of the front, best first.
fn front(run: &Run) -> Vec<u32> {
    run.state.results.front.iter().map(|point| point.job.trial.0).collect()
}

#[test]
fn each_cluster_size_has_its_best_trials_on_the_front() {
    // Four trials of 1, 2, 4 and 1 instances. The first two cost the same, in seconds of one instance.
    let definition = buying(sized(random(100, 1), &[1, 2, 4, 1]), 10.0, false);
    let trials = [(5, 8), (4, 4), (3, 9)];
    let run = played(&definition, &trials);
    assert_eq!(front(&run), [0, 1, 2]);
    let results = &run.state.results;
    let best = |size| results.front.best_of(&definition, SizeId(size));
    assert_eq!([0, 1, 2].map(best), [Some(5.0), Some(4.0), Some(3.0)]);
    assert_eq!(played(&definition, &trials[..1]).state.results.front.best_of(&definition, SizeId(1)), None);
    let across = results.front.across_sizes(&definition, &results.timings);
    assert_eq!(across.iter().map(|point| point.job.trial.0).collect::<Vec<_>>(), [0]);

    // A better and faster trial replaces those of its own size only.
    let run = played(&definition, &[trials[0], trials[1], trials[2], (6, 3)]);
    assert_eq!(front(&run), [3, 1, 2]);
}

/// The worst trial outside the tolerance leaves a long front, but not the best of a size.
#[test]
fn a_long_front_keeps_the_best_trial_of_each_cluster_size() {
    let sizes: Vec<u32> = std::iter::once(2).chain(std::iter::repeat_n(1, 49)).collect();
    let definition = buying(sized(random(100, 1), &sizes), 5.0, false);
    let slower = |rank: u32| (rank, i64::from(rank));
    let trials: Vec<(u32, i64)> = std::iter::once((1, 1)).chain((2..=40).map(slower)).collect();
    let run = played(&definition, &trials);
    let mut expected: Vec<u32> = (9..40).rev().collect();
    expected.push(0);
    assert_eq!(front(&run), expected);
}

proptest! {
    #![proptest_config(cases(200))]

    /// The naive model: a trial is on the front if no other has a better value in the same time or less, or the same value in
    /// less, and no earlier one the same of both.
    #[test]
    fn the_front_and_the_best_buy_equal_a_naive_model(
        trials in proptest::collection::vec((0_u32..8, 1_i64..8), 1..30),
        tolerance in 0_u32..8,
    ) {
        let definition = buying(random(100, 1), f64::from(tolerance), false);
        let run = played(&definition, &trials);
        let beats = |(a, own): (usize, (u32, i64)), (b, other): (usize, (u32, i64))| {
            own.0 >= other.0 && own.1 <= other.1 && (own != other || a < b)
        };
        let numbered = || trials.iter().copied().enumerate();
        let mut expected: Vec<_> =
            numbered().filter(|new| numbered().all(|old| old.0 == new.0 || !beats(old, *new))).collect();
        expected.sort_by_key(|(_, (value, _))| std::cmp::Reverse(*value));
        let results = &run.state.results;
        let number = |point: &FrontPoint| usize::try_from(point.job.trial.0).unwrap();
        let front = results.front.across_sizes(&definition, &results.timings);
        let found: Vec<_> = front.into_iter().map(|point| (number(point), point.value)).collect();
        let expected: Vec<_> = expected.iter().map(|(trial, (value, _))| (*trial, f64::from(*value))).collect();
        prop_assert_eq!(found, expected);

        let best = trials.iter().map(|(value, _)| *value).max().unwrap();
        let within = numbered().filter(|(_, (value, _))| value + tolerance >= best);
        let cheapest = within.min_by_key(|(trial, (value, seconds))| (*seconds, std::cmp::Reverse(*value), *trial));
        let buy = results.front.best_buy(&definition, &results.timings, f64::from(tolerance)).map(number);
        prop_assert_eq!(buy, cheapest.map(|(trial, _)| trial));
    }
}
