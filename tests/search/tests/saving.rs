//! The search for a cheaper configuration within a tolerance.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeMap;

use search::{Configuration, Domain, History, Observation, Origin, Parameter, Place, SamplerKind, Scaling};
use search::{Space, Suggestion, View, suggest};

/// Three numbers from 0 to 1.
fn space() -> Space {
    let domain = || Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let parameters = ["x", "y", "z"].map(|name| Parameter { name: name.to_owned(), domain: domain() });
    Space::new(parameters.into()).unwrap()
}

fn numbers(configuration: &Configuration) -> [f64; 3] {
    ["x", "y", "z"].map(|name| configuration.get(name).unwrap().parse().unwrap())
}

/// The value is greatest at `y` = 1. With the best `x` it is within 0.1 of that from `y` = 0.6 on.
fn value(configuration: &Configuration) -> f64 {
    let [x, y, _] = numbers(configuration);
    1.0 - (x - 0.3) * (x - 0.3) - 0.6 * (1.0 - y) * (1.0 - y)
}

/// The cost grows with `y`, from 1 to 8.
fn cost(configuration: &Configuration) -> u64 {
    let [_, y, _] = numbers(configuration);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1,000 and 8,000")]
    let cost = (1_000.0 * (y * 8.0_f64.ln()).exp()) as u64;
    cost
}

/// Searches one trial after the other.
fn search(seed: u64, tolerance: Option<f64>, knows_costs: bool) -> Vec<Suggestion> {
    let (space, mut history, running) = (space(), History::default(), BTreeMap::new());
    let mut all = Vec::new();
    for trial in 0..60 {
        let view = View::new(&history, &running, true).with_tolerance(tolerance);
        let suggestion = suggest(&space, SamplerKind::Model, seed, trial, &view);
        let observation = Observation {
            place: Place::of(&space, &suggestion.configuration).unwrap(),
            best: Some(value(&suggestion.configuration)),
            early: Vec::new(),
            cost: knows_costs.then(|| cost(&suggestion.configuration)),
            by_model: matches!(suggestion.origin, Origin::Model { .. }),
        };
        history.record(trial, observation, true);
        all.push(suggestion);
    }
    all
}

/// Returns the lowest cost of a value within 0.1 of the greatest.
fn cheapest(trials: &[Suggestion]) -> u64 {
    let within = trials.iter().filter(|trial| value(&trial.configuration) >= 0.9);
    within.map(|trial| cost(&trial.configuration)).min().unwrap()
}

#[test]
fn a_tolerance_lowers_the_cost_of_the_best_buy() {
    let mean = |tolerance| (0..10).map(|seed| cheapest(&search(seed, tolerance, true))).sum::<u64>() / 10;
    let (with, without) = (mean(Some(0.1)), mean(None));
    assert!(20 * with < 19 * without, "cost {with} with a tolerance, {without} without");
}

#[test]
fn a_draw_that_saves_says_so_and_the_others_do_not() {
    let saved_by = |trials: &[Suggestion]| {
        let origins = trials.iter().filter_map(|trial| match trial.origin {
            Origin::Model { saved, .. } => saved,
            _ => None,
        });
        origins.collect::<Vec<_>>()
    };
    let saves = saved_by(&search(1, Some(0.1), true));
    assert!(saves.len() >= 10, "{} of 60 draws save", saves.len());
    assert!(saves.iter().all(|saved| saved.cost > 0.0 && (0.0..=1.0).contains(&saved.within)), "{saves:?}");
    assert_eq!(saved_by(&search(1, None, true)), []);
}

/// The first trial was within the tolerance, so every draw of the model looked for a lower cost.
#[test]
fn regression_a_good_first_trial_leaves_draws_for_better_values() {
    let trials = search(3, Some(100.0), true);
    let model = trials.iter().filter(|trial| matches!(trial.origin, Origin::Model { .. })).count();
    let better =
        trials.iter().filter(|trial| matches!(trial.origin, Origin::Model { saved: None, .. })).count();
    assert!(better >= 5 && model > 2 * better, "{better} of {model} draws look for a better value");
}

#[test]
fn costs_without_a_tolerance_and_a_tolerance_without_costs_change_no_draw() {
    let plain = search(2, None, false);
    assert_eq!(search(2, None, true), plain);
    assert_eq!(search(2, Some(0.1), false), plain);
}
