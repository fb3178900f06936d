//! The sampler that learns: what it promises for any history, and that it learns.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use search::history::OBSERVATIONS_MAX;
use search::seed::{Rng, child};
use search::{
    Configuration, Domain, History, Observation, Origin, Parameter, Place, SamplerKind, Scaling, Space,
    Suggestion, View, suggest,
};

fn parameter(name: &str, domain: Domain) -> Parameter {
    Parameter { name: name.to_owned(), domain }
}

fn continuous(name: &str, min: f64, max: f64, scaling: Scaling) -> Parameter {
    parameter(name, Domain::Continuous { min, max, scaling })
}

/// Returns a space with every kind of parameter, `copies` times.
fn mixed(copies: usize) -> Space {
    let of = |copy: usize| {
        let values = ["relu", "tanh", "gelu"].map(str::to_owned).into();
        [
            continuous(&format!("rate{copy}"), 1e-5, 0.1, Scaling::Logarithmic),
            continuous(&format!("share{copy}"), 0.0, 0.9, Scaling::Linear),
            continuous(&format!("decay{copy}"), 0.5, 0.999, Scaling::ReverseLogarithmic),
            parameter(&format!("depth{copy}"), Domain::Integer { min: 2, max: 5, scaling: Scaling::Linear }),
            parameter(
                &format!("batch{copy}"),
                Domain::Integer { min: 8, max: 512, scaling: Scaling::Logarithmic },
            ),
            parameter(&format!("kind{copy}"), Domain::Categorical { values }),
        ]
    };
    Space::new((0..copies).flat_map(of).collect()).unwrap()
}

/// Returns a space of numbers from 0 to 1.
fn cube(dimensions: usize) -> Space {
    let parameters = (0..dimensions).map(|i| continuous(&format!("x{i}"), 0.0, 1.0, Scaling::Linear));
    Space::new(parameters.collect()).unwrap()
}

fn numbers(configuration: &Configuration) -> Vec<f64> {
    configuration.iter().map(|(_, value)| value.parse().unwrap()).collect()
}

fn observed(space: &Space, suggestion: &Suggestion, best: Option<f64>) -> Observation {
    Observation {
        place: Place::of(space, &suggestion.configuration).unwrap(),
        best,
        early: best.into_iter().flat_map(|best| [best - 0.2, best - 0.1, best]).collect(),
        cost: None,
        by_model: matches!(suggestion.origin, Origin::Model { .. }),
    }
}

/// Searches the greatest value of a function with `parallel` trials at once. Returns all suggestions and values.
fn search(
    space: &Space,
    kind: SamplerKind,
    (seed, trials, parallel): (u64, u32, usize),
    value: impl Fn(&Configuration) -> Option<f64>,
) -> Vec<(Suggestion, Option<f64>)> {
    let (mut history, mut running, mut all) = (History::default(), BTreeMap::new(), Vec::new());
    for trial in 0..trials {
        let suggestion = suggest(space, kind, seed, trial, &View::new(&history, &running, true));
        let best = value(&suggestion.configuration);
        running.insert(trial, observed(space, &suggestion, None));
        all.push((suggestion, best));
        if running.len() >= parallel {
            let (first, _) = running.pop_first().unwrap();
            let (suggestion, best) = &all[usize::try_from(first).unwrap()];
            history.record(first, observed(space, suggestion, *best), true);
        }
    }
    all
}

fn best(trials: &[(Suggestion, Option<f64>)]) -> f64 {
    trials.iter().filter_map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max)
}

/// A narrow peak that depends on two of the four dimensions.
fn peak(configuration: &Configuration) -> f64 {
    let x = numbers(configuration);
    -(x[0] - 0.3).powi(2) - 3.0 * (x[2] - 0.8).powi(2)
}

#[test]
fn the_model_finds_a_peak_that_a_spread_search_misses() {
    let space = cube(4);
    let mean = |kind| {
        let results = (0..10).map(|seed| best(&search(&space, kind, (seed, 40, 4), |c| Some(peak(c)))));
        results.sum::<f64>() / 10.0
    };
    let (model, spread) = (mean(SamplerKind::Model), mean(SamplerKind::Sobol));
    assert!(model > spread / 4.0, "model {model}, spread {spread}");
}

#[test]
fn the_model_finds_the_best_category() {
    let space = mixed(1);
    let value = |configuration: &Configuration| {
        let bonus = if configuration.get("kind0") == Some("tanh") { 1.0 } else { 0.0 };
        Some(bonus + configuration.get("share0").unwrap().parse::<f64>().unwrap())
    };
    let trials = search(&space, SamplerKind::Model, (3, 40, 4), value);
    let later = trials.iter().skip(10).filter(|(s, _)| s.configuration.get("kind0") == Some("tanh"));
    assert!(later.count() >= 20, "most of the later 30 trials have the best category");
}

type Rule = fn(&Configuration) -> Option<f64>;

/// Ties, flat regions and missing values must not make the search repeat one point.
#[test]
fn a_search_without_information_still_explores() {
    let space = mixed(1);
    let rules: [(&str, Rule); 4] = [
        ("constant", |_| Some(0.5)),
        ("no value", |_| None),
        ("one value", |c| (c.get("depth0") == Some("2")).then_some(0.5)),
        ("huge", |c| Some(if c.get("depth0") == Some("2") { f64::MAX } else { f64::MIN })),
    ];
    for (name, value) in rules {
        let trials = search(&space, SamplerKind::Model, (1, 60, 4), value);
        let distinct: BTreeSet<_> = trials.iter().map(|(suggestion, _)| &suggestion.configuration).collect();
        assert_eq!(distinct.len(), 60, "{name}");
        let rates = trials.iter().map(|(suggestion, _)| suggestion.configuration.get("rate0").unwrap());
        let decades: BTreeSet<i64> =
            rates.map(|rate| nearest(rate.parse::<f64>().unwrap().log10().floor())).collect();
        assert!(decades.len() >= 4, "{name}: {decades:?}");
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a small number")]
fn nearest(number: f64) -> i64 {
    number as i64
}

#[test]
fn running_trials_keep_their_distance() {
    let space = cube(3);
    let trials = search(&space, SamplerKind::Model, (5, 40, 16), |c| Some(-numbers(c)[0]));
    for (index, (one, _)) in trials.iter().enumerate() {
        for (other, _) in trials.iter().skip(index + 1).take(15) {
            let (a, b) = (numbers(&one.configuration), numbers(&other.configuration));
            let apart: f64 = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum();
            assert!(apart.sqrt() > 0.01, "{a:?} and {b:?}");
        }
    }
}

#[test]
fn one_trial_in_ten_is_random_after_the_first_thirty() {
    let trials = search(&cube(2), SamplerKind::Model, (7, 230, 4), |c| Some(numbers(c)[0]));
    let random = |(suggestion, _): &&(Suggestion, _)| suggestion.origin == Origin::Random;
    assert_eq!(trials.iter().take(30).filter(random).count(), 0);
    let later = trials.iter().skip(30).filter(random).count();
    assert!((10..=32).contains(&later), "{later} of 200");
}

#[test]
fn the_model_says_where_it_looked_and_what_it_expected() {
    let trials = search(&cube(2), SamplerKind::Model, (7, 30, 1), |c| Some(numbers(c)[0]));
    for (trial, (suggestion, _)) in trials.iter().enumerate() {
        match suggestion.origin {
            Origin::Spread => assert!(trial < 5),
            Origin::Model { near, expected, low, high, parent, saved, of_size } => {
                assert_eq!((parent, saved, of_size), (None, None, false));
                let place = numbers(&suggestion.configuration);
                let square = |(other, _): &(Suggestion, _)| -> f64 {
                    place.iter().zip(numbers(&other.configuration)).map(|(a, b)| (a - b).powi(2)).sum()
                };
                let nearest =
                    trials[..trial].iter().map(square).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
                assert_eq!(usize::try_from(near).ok(), nearest.map(|(nearest, _)| nearest));
                assert!(low <= expected && expected <= high);
            }
            Origin::Random | Origin::Grid | Origin::Initial | Origin::Parent { .. } => {
                panic!("trial {trial} is not of the model")
            }
        }
    }
    let last = trials.last().unwrap();
    let Origin::Model { expected, .. } = last.0.origin else { panic!("{:?}", last.0.origin) };
    assert!((expected - last.1.unwrap()).abs() < 0.3, "{expected} instead of {:?}", last.1);
}

/// Stored tunings are replayed with these bits, on x86-64 and on arm64.
#[test]
fn suggestions_are_pinned() {
    let digest = |space: &Space, trials: u32, objective: &str| {
        let value = |c: &Configuration| Some(c.get(objective).unwrap().parse::<f64>().unwrap());
        let trials = search(space, SamplerKind::Model, (42, trials, 4), value);
        let values = trials.iter().flat_map(|(suggestion, _)| suggestion.configuration.0.values());
        let text: String = values.flat_map(|value| [value, ";"]).collect();
        text.bytes().fold(0, |hash: u64, byte| child(hash ^ u64::from(byte), "digest", 0))
    };
    assert_eq!(digest(&mixed(1), 40, "share0"), 8_993_781_427_467_751_546);
    // From 13 dimensions on a draw has fewer candidates.
    assert_eq!(digest(&cube(13), 10, "x0"), 823_470_283_867_988_731);
}

#[test]
fn a_history_keeps_the_better_half_and_a_sample_in_any_order() {
    let space = cube(1);
    let mut rng = Rng::new(child(1, "history", 0));
    let values: Vec<f64> = (0..1_000).map(|_| rng.next_f64()).collect();
    let place = |value: &f64| {
        Place::of(&space, &Configuration([("x0".to_owned(), value.to_string())].into())).unwrap()
    };
    let record = |order: &mut dyn Iterator<Item = usize>| {
        let mut history = History::default();
        for trial in order {
            let best = Some(values[trial]);
            let observation = Observation {
                place: place(&values[trial]),
                best,
                early: vec![],
                cost: None,
                by_model: false,
            };
            history.record(u32::try_from(trial).unwrap(), observation, true);
            assert!(history.iter().count() <= OBSERVATIONS_MAX);
        }
        history
    };
    let history = record(&mut (0..1_000));
    assert_eq!(history, record(&mut (0..1_000).rev()));
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let kept: Vec<f64> = history.iter().map(|(_, observation)| observation.best.unwrap()).collect();
    let best = &sorted[1_000 - OBSERVATIONS_MAX / 2..];
    assert!(best.iter().all(|value| kept.contains(value)));
    let others: Vec<f64> = kept.iter().copied().filter(|value| !best.contains(value)).collect();
    let low = others.iter().filter(|value| **value < sorted[436]).count();
    assert!((40..=90).contains(&low), "{low} of {} are in the lower half of the others", others.len());
}

#[test]
fn a_history_returns_what_it_recorded_last_of_a_trial() {
    let space = cube(1);
    let (running, mut history) = (BTreeMap::new(), History::default());
    let drawn = suggest(&space, SamplerKind::Sobol, 1, 0, &View::new(&history, &running, true));
    for best in [0.5, 0.75] {
        history.record(3, observed(&space, &drawn, Some(best)), true);
    }
    assert_eq!(history.get(3), Some(&observed(&space, &drawn, Some(0.75))));
    assert_eq!(history.get(0), None);
}

#[test]
fn a_view_prints_how_many_trials_it_has() {
    let space = cube(1);
    let (mut running, mut history) = (BTreeMap::new(), History::default());
    let drawn = suggest(&space, SamplerKind::Sobol, 1, 0, &View::new(&history, &running, true));
    for trial in 0..3 {
        history.record(trial, observed(&space, &drawn, Some(0.5)), true);
    }
    running.insert(3, observed(&space, &drawn, None));
    running.insert(4, observed(&space, &drawn, Some(0.5)));
    let view = View::new(&history, &running, true);
    assert_eq!(format!("{view:?}"), "View { known: 4, running: 1 }");
}

/// JSON stores no NaN and no infinity: a step with one could not be read again.
#[test]
fn regression_an_expectation_is_finite_although_values_are_huge() {
    let value = |configuration: &Configuration| match configuration.get("depth0") {
        Some("2") => None,
        Some("3") => Some(-5e307),
        _ => Some(4e307),
    };
    for (suggestion, _) in search(&mixed(1), SamplerKind::Model, (1, 40, 4), value) {
        let text = serde_json::to_string(&suggestion.origin).unwrap();
        assert_eq!(serde_json::from_str::<Origin>(&text).unwrap(), suggestion.origin, "{text}");
    }
}

/// Returns any value that a trial may have.
fn any_value() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        3 => (-1.0_f64..1.0).prop_map(Some),
        1 => prop::sample::select(vec![0.0, 0.5, 1.0]).prop_map(Some),
        1 => any::<f64>().prop_map(|value| value.is_finite().then_some(value)),
        1 => Just(None),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is known, a suggestion is a configuration of the space, and the same for the same history.
    #[test]
    fn a_suggestion_is_always_in_the_space(
        copies in 1_usize..6,
        seed in any::<u64>(),
        values in prop::collection::vec(any_value(), 0..80),
        running in 0_usize..20,
        maximize in any::<bool>(),
    ) {
        let space = mixed(copies);
        let (mut history, mut live) = (History::default(), BTreeMap::new());
        let known = values.len();
        for (trial, best) in (0..).zip(values.into_iter().chain(std::iter::repeat_n(None, running))) {
            let drawn = suggest(&space, SamplerKind::Random, seed, trial, &View::new(&history, &live, maximize));
            let observation = observed(&space, &drawn, best);
            if usize::try_from(trial).unwrap() < known {
                history.record(trial, observation, maximize);
            } else {
                live.insert(trial, observation);
            }
        }
        let next = u32::try_from(known + running).unwrap();
        let view = View::new(&history, &live, maximize);
        let suggestion = suggest(&space, SamplerKind::Model, seed, next, &view);
        prop_assert!(space.encode(&suggestion.configuration).is_ok(), "{suggestion:?}");
        if let Origin::Model { expected, low, high, .. } = suggestion.origin {
            prop_assert!([expected, low, high].iter().all(|number| number.is_finite()), "{suggestion:?}");
        }
        prop_assert_eq!(&suggestion, &suggest(&space, SamplerKind::Model, seed, next, &view));
    }
}
