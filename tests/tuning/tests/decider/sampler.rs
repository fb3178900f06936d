//! What the model knows when it draws a configuration: the trials that have ended, and those that run.

use std::collections::BTreeMap;

use search::{Configuration, History, Observation, Origin, Place, SamplerKind, View, suggest};
use tuning::definition::{BestBuy, Definition};
use tuning::log::fact::Fact;
use tuning::log::fact::JobEnd::{AlgorithmError, Completed};
use tuning::log::ruling::{Order, Ruling};
use tuning::unit::ids::DefinitionId;

use crate::several::with;
use crate::support::build::*;
use crate::support::run::Run;

fn learning(definition: Definition) -> Definition {
    Definition { sampler: SamplerKind::Model, ..definition }
}

/// Returns the value of a trial at each of its four epochs. The second is the best.
fn values(trial: u32) -> [f64; 4] {
    let of_trial = f64::from(trial % 5) / 10.0;
    [0.1, 0.4, 0.2, 0.3].map(|value| value + of_trial)
}

/// The trial whose program fails after its last epoch.
const FAILED: u32 = 3;

/// Plays so many trials in the order of their starts, each for as many seconds as its number and one more. Two further trials run:
/// the first has two epochs, the second none.
fn played(definition: &Definition, count: usize) -> Run {
    let mut run = Run::new(definition);
    run.take(&[submitted()]);
    let mut now = 0;
    for index in 0..=count {
        let trial = starts(&run)[index].0;
        let shown = if index < count { 4 } else { 2 };
        for (epoch, value) in (1..).zip(values(trial)).take(shown) {
            run.take(&[logged(now, job(trial), epoch, value)]);
        }
        if index < count {
            let begun = now;
            now += i64::from(trial) + 1;
            let fact = Fact::JobDescribed {
                job: job(trial),
                end: if trial == FAILED { AlgorithmError } else { Completed },
                started: Some(at(begun)),
                ended: Some(at(now)),
                billable_seconds: 60,
                message: None,
                interruptions: 0,
            };
            run.take(&[recorded(now, fact)]);
        }
    }
    run
}

/// Returns the started trials in their order, with their configurations and whether the model drew them.
fn starts(run: &Run) -> Vec<(u32, Configuration, bool)> {
    let start = |ruling: &Ruling| match ruling {
        Ruling::Order(Order::Start { job, configuration, origin, .. }) => {
            Some((job.trial.0, configuration.clone(), matches!(origin, Some(Origin::Model { .. }))))
        }
        _ => None,
    };
    run.rulings.iter().filter_map(start).collect()
}

/// Checks what each training job definition knows, and that its next draw follows from it alone.
#[track_caller]
fn check(run: &Run, count: usize, cost: impl Fn(u32) -> Option<u64>) {
    let definition = &run.definition;
    for of in (0..).map(DefinitionId).take(definition.definition_count()) {
        let own = |trial: u32| definition.definition_of(TrialId(trial)) == of;
        let (mut history, mut running) = (History::default(), BTreeMap::new());
        let started = starts(run);
        for (index, (trial, configuration, by_model)) in
            started.iter().enumerate().filter(|(_, (trial, ..))| own(*trial))
        {
            let has_failed = *trial == FAILED;
            let shown = if index < count { 4 } else { 2_usize.saturating_sub(2 * (index - count)) };
            let values = &values(*trial)[..shown];
            let observation = Observation {
                place: Place::of(&definition.space, configuration).unwrap(),
                best: values.iter().copied().reduce(f64::max).filter(|_| !has_failed),
                early: values.iter().copied().take(3).collect(),
                cost: cost(*trial).filter(|_| index < count && !has_failed),
                by_model: *by_model,
            };
            if index < count {
                history.record(*trial, observation, true);
            } else {
                running.insert(*trial, observation);
            }
        }
        assert_eq!(run.state.search.history_of(of), &history);
        let view =
            View::new(&history, &running, true).with_tolerance(definition.best_buy.map(|buy| buy.tolerance));
        let next = (26..30).find(|trial| own(*trial)).map(TrialId).unwrap();
        let (seed, index) = (definition.seed + u64::from(of.0), definition.index_of(next));
        let expected = suggest(definition.space_of(of), SamplerKind::Model, seed, index, &view);
        assert_eq!(run.state.draw(definition, next), expected);
    }
}

#[test]
fn the_model_knows_the_values_of_ended_and_running_trials_and_none_of_failed_ones() {
    let run = played(&learning(random(40, 2)), 12);
    assert!(starts(&run).iter().any(|(_, _, by_model)| *by_model));
    check(&run, 12, |_| None);
}

#[test]
fn each_definition_knows_only_its_own_trials() {
    let run = played(&with(learning(random(60, 2)), 1), 20);
    assert_eq!(run.definition.definition_count(), 2);
    check(&run, 20, |_| None);
}

/// With one epoch the cost is the time of the job on one instance.
#[test]
fn where_the_cost_counts_the_model_knows_it_of_each_completed_trial() {
    let buying = Some(BestBuy { tolerance: 0.1, is_refitted: false });
    let run = played(&learning(Definition { best_buy: buying, ..random(40, 2) }), 12);
    check(&run, 12, |trial| Some(1_000 * (u64::from(trial) + 1)));
}

#[test]
fn a_sampler_that_does_not_learn_keeps_no_history() {
    for sampler in [SamplerKind::Random, SamplerKind::Sobol] {
        let run = played(&Definition { sampler, ..random(40, 2) }, 6);
        assert_eq!(run.state.search.history_of(DefinitionId(0)), &History::default(), "{sampler:?}");
    }
}
