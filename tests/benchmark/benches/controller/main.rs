//! Times of the controller's inner calls: `cargo bench -p benchmark`. Times depend on the machine; nothing checks them.
#![expect(clippy::unwrap_used, reason = "a panic ends the benchmark")]

mod tuning_at;

use benchmark::analytic;
use benchmark::case::Case;
use divan::{Bencher, black_box};
use search::history::{EARLY_EPOCHS, OBSERVATIONS_MAX};
use search::sampler::point;
use search::warm::PARENTS_MAX;
use search::{Configuration, Observation, Origin, Parent, Place, SamplerKind, WarmStart, WarmStartType};
use serde_json::json;
use tuning::change::fold::fold;
use tuning::decide::next;
use tuning::state::State;
use tuning::unit::ids::TrialId;
use tuning_at::TuningAt;

/// Trials of a tuning.
const TRIALS: [u32; 3] = [100, 1_000, 10_000];

fn main() {
    divan::main();
}

/// Draws the next configuration with the model, after `trials` trials in 6 dimensions.
#[divan::bench(args = TRIALS)]
fn suggest_6(bencher: Bencher<'_, '_>, trials: u32) {
    suggest(bencher, &analytic::case("hartmann-6").unwrap(), trials, 0);
}

/// Draws the next configuration with the model, after `trials` trials in 30 dimensions.
#[divan::bench(args = TRIALS)]
fn suggest_30(bencher: Bencher<'_, '_>, trials: u32) {
    suggest(bencher, &analytic::case("ellipsoid-30").unwrap(), trials, 0);
}

/// Draws the next configuration with the model, after 100 trials in 6 dimensions and with the most parents.
#[divan::bench]
fn suggest_6_with_parents(bencher: Bencher<'_, '_>) {
    suggest(bencher, &analytic::case("hartmann-6").unwrap(), 100, PARENTS_MAX);
}

/// Draws the next configuration with the model, after 100 trials in 30 dimensions and with the most parents.
#[divan::bench]
fn suggest_30_with_parents(bencher: Bencher<'_, '_>) {
    suggest(bencher, &analytic::case("ellipsoid-30").unwrap(), 100, PARENTS_MAX);
}

fn suggest(bencher: Bencher<'_, '_>, case: &Case, trials: u32, parents: usize) {
    let mut definition = case.definition(&json!({}), 10_000).unwrap();
    assert_eq!(definition.sampler, SamplerKind::Model);
    let maximize = case.table.maximize;
    let row_of = |configuration: &Configuration| {
        let row = case.table.nearest(&case.table.point(configuration).unwrap(), |_| true).unwrap();
        &case.table.rows[row].values
    };
    let space = definition.space.clone();
    let drawn = |seed, trial| space.decode(&point(space.dimensions(), SamplerKind::Random, seed, trial));
    let mut state = State::new(&definition);
    for trial in 0..trials {
        let configuration = drawn(1, trial);
        let values = row_of(&configuration);
        let observation = Observation {
            place: Place::of(&space, &configuration).unwrap(),
            best: values.last().copied(),
            early: values[..EARLY_EPOCHS].to_vec(),
            cost: None,
            by_model: trial % 2 == 1,
        };
        state.search.history.record(trial, observation, maximize);
    }
    let parent = |seed| {
        let trials = (0..).map(|trial| drawn(seed, trial)).take(OBSERVATIONS_MAX);
        let trials = trials.map(|trial| (trial.clone(), *row_of(&trial).last().unwrap()));
        Parent::new(&space, trials, maximize)
    };
    let parents: Vec<Parent> = (2..).map(parent).take(parents).collect();
    let is_warm = !parents.is_empty();
    definition.warm_start =
        is_warm.then_some(WarmStart { kind: WarmStartType::TransferLearning, names: Vec::new(), parents });
    // A tenth of the trials is drawn at random, in no time, and only some follow the parents.
    let is_modelled = |trial: &TrialId| match state.draw(&definition, *trial).origin {
        Origin::Model { parent, .. } => parent.is_some() == is_warm,
        _ => false,
    };
    let trial = (trials..=trials + 1_000).map(TrialId).find(is_modelled).unwrap();
    bencher.bench(|| black_box(&state).draw(&definition, trial));
}

/// Folds the line of an epoch.
#[divan::bench(args = TRIALS)]
fn fold_metric(bencher: Bencher<'_, '_>, trials: u32) {
    let tuning = TuningAt::trials(trials);
    let fact = tuning.line_of(1);
    let before = bencher.with_inputs(|| tuning.state.clone());
    before.bench_refs(|state| assert!(fold(&tuning.definition, state, &fact)));
}

/// Decides where no job needs a ruling, the most frequent case.
#[divan::bench(args = TRIALS)]
fn decide_nothing(bencher: Bencher<'_, '_>, trials: u32) {
    let tuning = TuningAt::trials(trials);
    assert_eq!(next(&tuning.definition, &tuning.state), None);
    bencher.bench(|| next(&tuning.definition, black_box(&tuning.state)));
}

/// Decides on a trial that has arrived at its first rung.
#[divan::bench(args = TRIALS)]
fn decide_rung(bencher: Bencher<'_, '_>, trials: u32) {
    let tuning = TuningAt::trials(trials);
    let mut state = tuning.state.clone();
    let is_judged = |epoch: u32| {
        fold(&tuning.definition, &mut state, &tuning.line_of(epoch));
        next(&tuning.definition, &state).is_some()
    };
    assert!((1..=81).any(is_judged));
    bencher.bench(|| next(&tuning.definition, black_box(&state)));
}
