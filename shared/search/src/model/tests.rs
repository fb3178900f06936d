//! The model beside a guide: what the guide leaves to explain, what is expected, and where the search looks.

use std::collections::BTreeMap;

use super::*;
use crate::history::{History, Observation};
use crate::place::Place;
use crate::space::{Configuration, Domain, Parameter, Scaling};
use crate::warm::{Parent, WarmStart, WarmStartType};

/// The categories of the space: one number.
const NUMBER: [IsCategory; 1] = [false];

fn space() -> Space {
    let domain = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    Space::new(vec![Parameter { name: "x".to_owned(), domain }]).unwrap()
}

fn configuration(x: f64) -> Configuration {
    Configuration([("x".to_owned(), x.to_string())].into())
}

/// Returns one parent, whose values are its numbers.
fn warm() -> WarmStart {
    let trial = |number: u32| (configuration(f64::from(number) / 20.0), f64::from(number) / 20.0);
    let parents = vec![Parent::new(&space(), (0..20).map(trial), true)];
    WarmStart { kind: WarmStartType::TransferLearning, names: Vec::new(), parents }
}

/// Returns ten trials with these values and costs.
fn history(value: impl Fn(f64) -> f64, cost: impl Fn(u32) -> u64) -> History {
    let mut history = History::default();
    for trial in 0..10 {
        let x = f64::from(trial) / 10.0;
        let place = Place::of(&space(), &configuration(x)).unwrap();
        let (best, cost) = (Some(value(x)), Some(cost(trial)));
        history.record(trial, Observation { place, best, early: Vec::new(), cost, by_model: false }, true);
    }
    history
}

#[test]
fn the_rest_has_mean_0_and_variance_1_and_adds_up_to_the_targets_with_the_guide() {
    let points: Vec<[f64; 1]> = (0..10_u32).map(|number| [f64::from(number) / 10.0]).collect();
    let places: Vec<&[f64]> = points.iter().map(<[f64; 1]>::as_slice).collect();
    let targets: Vec<f64> = places
        .iter()
        .zip([0.7, 0.0, 0.4].iter().cycle())
        .map(|(place, more)| 2.0 * place[0] + more)
        .collect();
    let guide = Guide::of(&warm(), true, &NUMBER, &places, &targets).unwrap();
    let guiding = guide.ready();

    let rest = Rest::of(Some(&guiding), &places, targets.clone());
    for ((place, target), value) in places.iter().zip(&targets).zip(&rest.values) {
        let whole = guiding.mean(place) + rest.mean + rest.deviation * value;
        assert!((whole - target).abs() < 1e-12, "{whole} instead of {target}");
    }
    let mean = |term: fn(f64) -> f64| rest.values.iter().map(|value| term(*value)).sum::<f64>() / 10.0;
    assert!(rest.deviation > REST_MIN && rest.mean > 0.1, "{} {}", rest.deviation, rest.mean);
    assert!(mean(|value| value).abs() < 1e-12 && (mean(|value| value * value) - 1.0).abs() < 1e-12);

    // A guide that explains everything leaves nothing, and no division by 0.
    let explained = places.iter().map(|place| guiding.mean(place)).collect();
    let rest = Rest::of(Some(&guiding), &places, explained);
    assert_eq!((rest.mean, rest.deviation, rest.values), (0.0, REST_MIN, vec![0.0; 10]));
}

#[test]
fn the_model_expects_what_the_guide_and_the_process_of_the_rest_expect_together() {
    let (history, running) = (history(|x| x + 0.2 * libm::sin(9.0 * x), |_| 1), BTreeMap::new());
    let view = View::new(&history, &running, true);
    let (target, targets) = Target::of(&view).unwrap();
    let places = view.known();
    let guide = Guide::of(&warm(), true, &NUMBER, &places, &targets).unwrap();
    let guiding = guide.ready();
    let rest = Rest::of(Some(&guiding), &places, targets.clone());
    let process = Process::after(&Shape::usual(1), &NUMBER, places.clone(), &rest.values).unwrap();
    let model = Model { target, rest: &rest, guiding: Some(&guiding), process: process.clone() };
    for point in [[0.15], [0.5], [0.72]] {
        // On the scale of the targets.
        let expected = guiding.mean(&point) + rest.mean + rest.deviation * process.mean(&point);
        let deviation = rest.deviation * process.predict(&point).deviation;
        let prediction = model.predict(&point);
        for (found, expected) in [
            (rest.mean + rest.deviation * model.mean(&point), expected),
            (prediction.mean, model.mean(&point)),
            (model.value(&prediction, 0.0), target.value(expected)),
            (model.value(&prediction, 2.0), target.value(expected + 2.0 * deviation)),
            (model.scaled(model.value(&prediction, 0.0)), prediction.mean),
        ] {
            assert!((found - expected).abs() < 1e-9, "{found} instead of {expected} at {point:?}");
        }
    }
}

#[test]
fn a_search_for_a_lower_cost_starts_from_the_cheapest_points_within_the_tolerance() {
    let (history, running) = (history(|x| x, |trial| 1 << trial), BTreeMap::new());
    let view = View::new(&history, &running, true).with_tolerance(Some(2.0));
    let within = Within::of(&view).unwrap();
    let all: Vec<usize> = (0..10).collect();
    let saving = Saving::of(&view, &within, &NUMBER, (&all, &all), &[]).unwrap();
    let points = || vec![(0.9, vec![0.8]), (0.2, vec![0.1]), (0.5, vec![0.5]), (0.4, vec![0.3])];
    let cheapest = centers(points(), Some(&(0.4, saving)));
    assert_eq!(cheapest, [[0.3], [0.5], [0.8], [0.1]], "the cost grows with the number");
    assert_eq!(centers(points(), None), [[0.8], [0.5], [0.3], [0.1]], "the expected value decides");
}

#[test]
fn candidates_keep_their_distance_as_soon_as_six_of_them_can() {
    let (mut history, running) = (History::default(), BTreeMap::new());
    let place = Place::of(&space(), &configuration(0.5)).unwrap();
    history.record(
        0,
        Observation { place, best: Some(1.0), early: Vec::new(), cost: None, by_model: false },
        true,
    );
    let (space, view) = (space(), View::new(&history, &running, true));
    let metric = Metric::plain(&NUMBER);
    let area = Area { space: &space, size: None, categories: &NUMBER, metric: &metric };
    let drawn = |anywhere: usize| -> Vec<f64> {
        let sizes = Sizes { observations: 0, fit: 0, anywhere, near: 0 };
        let candidates = area.candidates(&sizes, 0, &view, None, &[], &mut Rng::new(1));
        candidates.into_iter().flatten().collect()
    };
    let is_distant = |x: &f64| (x - 0.5).abs() >= 0.25;
    // Fewer than six candidates are never enough, so these are all that are drawn.
    let mut all = drawn(5);
    for anywhere in 6..30 {
        all.push(space.snapped(&super::anywhere(anywhere, &mut Rng::new(1))[anywhere - 1..])[0]);
        let distant: Vec<f64> = all.iter().copied().filter(is_distant).collect();
        let expected = if distant.len() < 6 { &all } else { &distant };
        assert_eq!(&drawn(anywhere), expected, "of {anywhere} candidates");
    }
    assert!(all.iter().filter(|x| is_distant(x)).count() > 6);
}

#[test]
fn the_first_of_equally_good_candidates_is_chosen() {
    assert_eq!(greatest([1.0, 2.0, 2.0, 0.0].into_iter()), Some(1));
    assert_eq!(greatest(std::iter::empty()), None);
}
