//! Times of the controller's inner calls: `cargo bench -p benchmark`. Times depend on the machine; nothing checks them.
#![expect(clippy::unwrap_used, reason = "a panic ends the benchmark")]

mod tuning_at;

use benchmark::analytic;
use benchmark::case::Case;
use divan::{Bencher, black_box};
use search::history::EARLY_EPOCHS;
use search::sampler::point;
use search::{Observation, Origin, Place, SamplerKind};
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
    suggest(bencher, &analytic::case("hartmann-6").unwrap(), trials);
}

/// Draws the next configuration with the model, after `trials` trials in 30 dimensions.
#[divan::bench(args = TRIALS)]
fn suggest_30(bencher: Bencher<'_, '_>, trials: u32) {
    suggest(bencher, &analytic::case("ellipsoid-30").unwrap(), trials);
}

fn suggest(bencher: Bencher<'_, '_>, case: &Case, trials: u32) {
    let definition = case.definition(&json!({}), 10_000).unwrap();
    assert_eq!(definition.sampler, SamplerKind::Model);
    let mut state = State::new(&definition);
    for trial in 0..trials {
        let drawn = point(definition.space.dimensions(), SamplerKind::Random, 1, trial);
        let configuration = definition.space.decode(&drawn);
        let row = case.table.nearest(&case.table.point(&configuration).unwrap(), |_| true).unwrap();
        let values = &case.table.rows[row].values;
        let observation = Observation {
            place: Place::of(&definition.space, &configuration).unwrap(),
            best: values.last().copied(),
            early: values[..EARLY_EPOCHS].to_vec(),
            by_model: trial % 2 == 1,
        };
        state.search.history.record(trial, observation, false);
    }
    // A tenth of the trials is drawn at random, in no time.
    let is_modelled =
        |trial: &TrialId| matches!(state.draw(&definition, *trial).origin, Origin::Model { .. });
    let trial = (trials..=trials + 100).map(TrialId).find(is_modelled).unwrap();
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
