//! Warm starts: what a tuning takes from its parents, and that a wrong parent costs little.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use search::history::OBSERVATIONS_MAX;
use search::{
    Configuration, Domain, History, Observation, Origin, Parameter, Parent, Place, SamplerKind, Scaling,
    Space, Suggestion, View, WarmStart, WarmStartType, suggest,
};

fn cube(names: &[&str]) -> Space {
    let domain = || Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let parameter = |name: &&str| Parameter { name: (*name).to_owned(), domain: domain() };
    Space::new(names.iter().map(parameter).collect()).unwrap()
}

fn small() -> Space {
    let texts =
        |texts: &[&str]| Domain::Categorical { values: texts.iter().map(|t| (*t).to_owned()).collect() };
    let depth = Domain::Integer { min: 1, max: 4, scaling: Scaling::Linear };
    Space::new(vec![
        Parameter { name: "depth".to_owned(), domain: depth },
        Parameter { name: "kind".to_owned(), domain: texts(&["a", "b", "c"]) },
    ])
    .unwrap()
}

fn configuration(values: &[(&str, &str)]) -> Configuration {
    Configuration(values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

fn number(configuration: &Configuration, name: &str) -> f64 {
    configuration.get(name).unwrap().parse().unwrap()
}

/// The best place is at 0.7, 0.2.
fn peak(configuration: &Configuration) -> f64 {
    let (x, y) = (number(configuration, "x") - 0.7, number(configuration, "y") - 0.2);
    -(x * x + y * y)
}

/// Returns the trials of a parent: points of Sobol's sequence, with these values.
fn trials(space: &Space, count: u32, value: impl Fn(&Configuration) -> f64) -> Vec<(Configuration, f64)> {
    let (history, running) = (History::default(), BTreeMap::new());
    let view = View::new(&history, &running, true);
    let of = |trial| suggest(space, SamplerKind::Sobol, 9, trial, &view).configuration;
    (0..count).map(of).map(|configuration| (configuration.clone(), value(&configuration))).collect()
}

fn parent(space: &Space, value: impl Fn(&Configuration) -> f64) -> Parent {
    Parent::new(space, trials(space, 64, value), true)
}

fn warm(kind: WarmStartType, parents: Vec<Parent>) -> WarmStart {
    WarmStart { kind, names: Vec::new(), parents }
}

/// Plays so many trials, one after the other.
fn search(
    space: &Space,
    kind: SamplerKind,
    warm: &WarmStart,
    count: u32,
    value: impl Fn(&Configuration) -> f64,
) -> Vec<Suggestion> {
    let (mut history, running, mut all) = (History::default(), BTreeMap::new(), Vec::new());
    for trial in 0..count {
        let view = View::new(&history, &running, true).with_parents(Some(warm));
        let suggestion = suggest(space, kind, 3, trial, &view);
        let observation = Observation {
            place: Place::of(space, &suggestion.configuration).unwrap(),
            best: Some(value(&suggestion.configuration)),
            early: vec![],
            cost: None,
            by_model: matches!(suggestion.origin, Origin::Model { .. }),
        };
        history.record(trial, observation, true);
        all.push(suggestion);
    }
    all
}

/// Returns the weight of the parent that a trial of the model followed; 0 if it followed none.
fn weight(suggestion: &Suggestion) -> Option<f64> {
    match suggestion.origin {
        Origin::Model { parent, .. } => Some(parent.map_or(0.0, |followed| followed.weight)),
        _ => None,
    }
}

#[test]
fn a_parent_translates_configurations_to_the_new_space() {
    let space = cube(&["x", "y"]);
    let parent = |trials: &[(&[(&str, &str)], f64)]| {
        let trials = trials.iter().map(|(values, value)| (configuration(values), *value));
        Parent::new(&space, trials, true)
    };
    let shown = |parent: &Parent| -> Vec<(f64, f64, f64)> {
        let of = |(place, value): &(Place, f64)| {
            let configuration = place.configuration(&space);
            let rounded = |name| (number(&configuration, name) * 1e3).round() / 1e3;
            (rounded("x"), rounded("y"), *value)
        };
        parent.observations().iter().map(of).collect()
    };
    let trials: [(&[(&str, &str)], f64); 6] = [
        (&[("x", "0.25")], 0.5),
        (&[("x", "0.5"), ("other", "7")], 0.7),
        (&[("x", "1.5")], 0.9),
        (&[("x", "0.75")], f64::NAN),
        (&[("x", "0.5"), ("y", "0.75")], 0.6),
        (&[("x", "0.25")], 0.4),
    ];
    assert_eq!(shown(&parent(&trials)), [(0.5, 0.5, 0.7), (0.5, 0.75, 0.6), (0.25, 0.5, 0.5)]);
}

#[test]
fn a_parent_keeps_its_best_trials_and_a_sample_of_the_others() {
    let space = cube(&["x", "y"]);
    let all = trials(&space, 1_000, peak);
    let kept = Parent::new(&space, all.clone(), true);
    let values: Vec<f64> = kept.observations().iter().map(|(_, value)| *value).collect();
    let mut sorted: Vec<f64> = all.iter().map(|(_, value)| *value).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(values.len(), OBSERVATIONS_MAX);
    assert_eq!(values[..128], sorted[..128]);
    assert!(values.last() < sorted.get(800));
}

#[test]
fn the_first_trials_are_the_best_of_the_parents_and_spread_points_between_them() {
    let space = cube(&["x", "y"]);
    let parents = vec![parent(&space, peak), parent(&space, |c| number(c, "x"))];
    let played =
        search(&space, SamplerKind::Model, &warm(WarmStartType::TransferLearning, parents.clone()), 5, peak);
    let origins: Vec<Origin> = played.iter().map(|suggestion| suggestion.origin).collect();
    let taken = |parent, rank| Origin::Parent { parent, rank };
    let spread = Origin::Spread;
    assert_eq!(origins, [taken(0, 0), spread, taken(1, 0), spread, spread]);
    let best = parents[0].observations()[0].0.configuration(&space);
    assert_eq!(played[0].configuration, best);
}

#[test]
fn a_parent_of_the_same_function_leads_to_its_peak() {
    let space = cube(&["x", "y", "z"]);
    let warm = |parents| warm(WarmStartType::TransferLearning, parents);
    let best = |warm: &WarmStart| {
        let values = search(&space, SamplerKind::Model, warm, 12, peak);
        values.iter().map(|suggestion| peak(&suggestion.configuration)).fold(f64::NEG_INFINITY, f64::max)
    };
    let (with, without) = (best(&warm(vec![parent(&space, peak)])), best(&warm(vec![])));
    assert!(with > without / 2.0, "{with} with a parent, {without} without");
}

#[test]
fn the_weight_of_a_reversed_parent_falls_to_nothing() {
    let space = cube(&["x", "y"]);
    for kind in [WarmStartType::TransferLearning, WarmStartType::IdenticalDataAndAlgorithm] {
        let reversed = warm(kind, vec![parent(&space, |c| -peak(c))]);
        let played = search(&space, SamplerKind::Model, &reversed, 20, peak);
        let later: Vec<f64> = played.iter().skip(10).filter_map(weight).collect();
        assert!(later.len() >= 10 && later.iter().all(|weight| *weight <= 0.0), "{kind:?}: {later:?}");
    }
}

#[test]
fn the_model_says_which_parent_it_followed() {
    let space = cube(&["x", "y"]);
    let parents = vec![parent(&space, |c| -peak(c)), parent(&space, peak)];
    let played =
        search(&space, SamplerKind::Model, &warm(WarmStartType::TransferLearning, parents), 20, peak);
    let followed = |suggestion: &Suggestion| match suggestion.origin {
        Origin::Model { parent, .. } => parent,
        _ => None,
    };
    let followed: Vec<_> = played.iter().skip(8).filter_map(followed).collect();
    assert!(followed.len() >= 4, "{followed:?}");
    assert!(followed.iter().all(|f| f.parent == 1 && f.weight > 0.3 && f.weight <= 1.0), "{followed:?}");
}

/// A parent that is mostly right has a weight of about one half.
#[test]
fn the_model_follows_a_parent_in_one_and_a_half_times_its_weight_of_the_draws() {
    let space = cube(&["x"]);
    let warm = warm(WarmStartType::TransferLearning, vec![parent(&space, |c| number(c, "x"))]);
    let (mut history, running) = (History::default(), BTreeMap::new());
    for (trial, (x, value)) in (0..).zip([("0.1", 0.1), ("0.4", 0.6), ("0.6", 0.4), ("0.9", 0.9)]) {
        let place = Place::of(&space, &configuration(&[("x", x)])).unwrap();
        let observation =
            Observation { place, best: Some(value), early: vec![], cost: None, by_model: false };
        history.record(trial, observation, true);
    }
    let view = View::new(&history, &running, true).with_parents(Some(&warm));
    let draws = (0..200).map(|seed| suggest(&space, SamplerKind::Model, seed, 5, &view));
    let weights: Vec<f64> = draws.filter_map(|draw| weight(&draw)).collect();
    let followed: Vec<f64> = weights.iter().copied().filter(|weight| *weight > 0.0).collect();
    let count = |all: &[f64]| u32::try_from(all.len()).map(f64::from).unwrap();
    let (share, expected) = (count(&followed) / count(&weights), 1.5 * followed[0]);
    assert!(expected > 0.6 && expected < 0.9, "{expected}");
    assert!((share - expected).abs() < 0.1, "a share of {share} instead of {expected}");
}

#[test]
fn a_random_search_repeats_no_configuration_of_a_parent() {
    let space = small();
    let known = trials(&space, 5, |_| 0.0);
    let parent = Parent::new(&space, known.clone(), true);
    let warm = warm(WarmStartType::TransferLearning, vec![parent]);
    let played = search(&space, SamplerKind::Random, &warm, 7, |_| 0.0);
    let all: BTreeSet<Configuration> = known
        .into_iter()
        .map(|(known, _)| known)
        .chain(played.into_iter().map(|s| s.configuration))
        .collect();
    assert_eq!(all.len(), 12, "each of the 12 configurations once");
}

#[test]
fn a_warm_start_is_stored_as_json_and_an_older_origin_can_be_read() {
    let space = cube(&["x", "y"]);
    let stored = warm(WarmStartType::IdenticalDataAndAlgorithm, vec![parent(&space, |c| number(c, "x"))]);
    let text = serde_json::to_string(&stored).unwrap();
    assert_eq!(serde_json::from_str::<WarmStart>(&text).unwrap(), stored);
    let older = r#"{"model":{"near":3,"expected":0.5,"low":0.25,"high":0.75}}"#;
    let origin: Origin = serde_json::from_str(older).unwrap();
    assert_eq!(serde_json::to_string(&origin).unwrap(), older);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    /// Only the ranks of a parent's values count.
    #[test]
    fn the_scale_and_the_offset_of_a_parent_change_nothing(scale in 1e-6_f64..1e6, offset in -1e3_f64..1e3) {
        let space = cube(&["x", "y"]);
        let of = |parent| search(&space, SamplerKind::Model, &warm(WarmStartType::TransferLearning, vec![parent]), 10, peak);
        // The values differ by more than the rounding of the largest offset.
        let coarse = |c: &Configuration| (peak(c) * 1e4).round();
        let plain = of(parent(&space, coarse));
        prop_assert_eq!(plain, of(parent(&space, |c| coarse(c) * scale + offset)));
    }

    /// Whatever the parents know, a suggestion is in the space, finite, and the same again.
    #[test]
    fn a_suggestion_is_always_in_the_space(
        counts in prop::collection::vec(0_u32..300, 0..7),
        power in -300_i32..300,
        own in 0_u32..12,
    ) {
        let space = cube(&["x", "y"]);
        let value = |c: &Configuration| peak(c) * 10_f64.powi(power);
        let of = |count: &u32| Parent::new(&space, trials(&space, *count, value), true);
        let warm = warm(WarmStartType::IdenticalDataAndAlgorithm, counts.iter().map(of).collect());
        let played = search(&space, SamplerKind::Model, &warm, own, value);
        for suggestion in &played {
            prop_assert!(space.encode(&suggestion.configuration).is_ok());
            let text = serde_json::to_string(&suggestion.origin).unwrap();
            prop_assert!(serde_json::from_str::<Origin>(&text).is_ok(), "{}", text);
        }
        prop_assert_eq!(&played, &search(&space, SamplerKind::Model, &warm, own, value));
    }
}
