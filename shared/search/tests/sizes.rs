//! The search over cluster sizes.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeMap;

use search::{Configuration, Domain, History, Observation, Origin, Parameter, Place, SamplerKind, Scaling};
use search::{Space, Suggestion, View, suggest};

const TRIALS: u32 = 80;

/// Two numbers from 0 to 1, and the number of instances.
fn space() -> Space {
    let number = || Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let sizes = Domain::Ordinal { values: ["1", "2", "4"].map(str::to_owned).into() };
    let parameters = [("instances", sizes), ("x", number()), ("y", number())];
    Space::new(parameters.map(|(name, domain)| Parameter { name: name.to_owned(), domain }).into()).unwrap()
}

/// Nearly all configurations are good with one instance. With more, most are at chance, and the best are a little worse.
fn value(configuration: &Configuration) -> f64 {
    let number = |name| configuration.get(name).unwrap().parse::<f64>().unwrap();
    let (instances, x, y) = (number("instances"), number("x"), number("y"));
    let product = x * y * instances;
    let loss = 0.005 * instances + 0.1 * (y - 0.5) * (y - 0.5);
    if product > 0.8 { 0.1 } else { 1.0 - loss - 0.3 * (x - 0.6) * (x - 0.6) }
}

fn search(seed: u64) -> Vec<Suggestion> {
    let (space, mut history, running) = (space(), History::default(), BTreeMap::new());
    let mut all = Vec::new();
    for trial in 0..TRIALS {
        let view = View::new(&history, &running, true);
        let suggestion = suggest(&space, SamplerKind::Model, seed, trial, &view);
        let observation = Observation {
            place: Place::of(&space, &suggestion.configuration).unwrap(),
            best: Some(value(&suggestion.configuration)),
            early: Vec::new(),
            cost: None,
            by_model: matches!(suggestion.origin, Origin::Model { .. }),
        };
        history.record(trial, observation, true);
        all.push(suggestion);
    }
    all
}

fn of_size<'a>(trials: &'a [Suggestion], instances: &str) -> impl Iterator<Item = &'a Configuration> {
    let all = trials.iter().map(|trial| &trial.configuration);
    all.filter(move |configuration| configuration.get("instances") == Some(instances))
}

/// The best value with four instances is 0.977. A search that leaves this size after a few bad trials finds worse ones.
#[test]
fn each_cluster_size_gets_trials_and_a_good_configuration() {
    let mut missed = 0.0;
    for seed in 0..10 {
        let trials = search(seed);
        for instances in ["1", "2", "4"] {
            let count = of_size(&trials, instances).count();
            assert!(count >= 15, "seed {seed}: {count} trials with {instances} instances");
        }
        missed += 0.977 - of_size(&trials, "4").map(value).fold(f64::NEG_INFINITY, f64::max);
    }
    assert!(missed / 10.0 < 0.006, "mean regret {} with 4 instances", missed / 10.0);
}

/// `explain` shows why a configuration is not at the best size.
#[test]
fn a_draw_for_one_size_says_so() {
    let trials = search(1);
    let own =
        trials.iter().filter(|trial| matches!(trial.origin, Origin::Model { of_size: true, .. })).count();
    assert!((10..=40).contains(&own), "{own} of {TRIALS} draws are for one size");
}
