//! The best buy, the scale of costs, and what a point is expected to save.

use std::collections::BTreeMap;

use super::*;
use crate::history::{History, Observation};
use crate::place::Place;
use crate::space::{Configuration, Domain, Parameter, Scaling, Space};

/// Returns trials at even distances, with their values and costs.
fn history(trials: &[(Option<f64>, Option<u64>)], maximize: bool) -> History {
    let domain = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let space = Space::new(vec![Parameter { name: "x".to_owned(), domain }]).unwrap();
    let mut history = History::default();
    for (trial, (best, cost)) in (0_u32..).zip(trials) {
        let x = f64::from(trial) / 10.0;
        let configuration = Configuration([("x".to_owned(), x.to_string())].into());
        let place = Place::of(&space, &configuration).unwrap();
        let observation = Observation { place, best: *best, early: Vec::new(), cost: *cost, by_model: false };
        history.record(trial, observation, maximize);
    }
    history
}

/// Returns the cost of the best buy, the worst value within the tolerance, and the share of the draws for a lower cost.
fn within(
    trials: &[(Option<f64>, Option<u64>)],
    maximize: bool,
    tolerance: Option<f64>,
) -> Option<(f64, f64, f64)> {
    let (history, running) = (history(trials, maximize), BTreeMap::new());
    let within = Within::of(&View::new(&history, &running, maximize).with_tolerance(tolerance))?;
    Some((within.best_buy, within.worst(), within.share()))
}

#[test]
fn the_best_buy_is_the_cheapest_trial_within_the_tolerance() {
    let trials = [
        (Some(0.25), Some(1)),
        (None, Some(2)),
        (Some(0.5), Some(3)),
        (Some(0.75), Some(50)),
        (Some(1.0), Some(80)),
        (Some(0.875), None),
    ];
    // Three of six trials have come since the first one within the tolerance.
    assert_eq!(within(&trials, true, Some(0.25)), Some((50.0, 0.75, 0.5)));
    assert_eq!(within(&trials, true, Some(0.125)), Some((80.0, 0.875, 2.0 / 6.0)));
    assert_eq!(within(&trials, true, Some(9.0)), Some((1.0, -8.0, SHARE_MAX)));
    let losses = trials.map(|(value, cost)| (value.map(|value| -value), cost));
    assert_eq!(within(&losses, false, Some(0.25)), Some((50.0, -0.75, 0.5)));
    assert_eq!(within(&trials, true, None), None, "without a tolerance, costs are of no interest");
    assert_eq!(within(&[(Some(1.0), None), (Some(0.5), Some(1))], true, Some(0.25)), None, "no cost within");
}

#[test]
fn costs_are_compared_by_their_logarithms() {
    let scale = Scale::of(&[0.0, 1.0, 5.0].map(libm::exp));
    let deviation = f64::sqrt((4.0 + 1.0 + 9.0) / 3.0);
    assert!((scale.mean - 2.0).abs() < 1e-12 && (scale.deviation - deviation).abs() < 1e-12, "{scale:?}");
    assert!((scale.scaled(libm::exp(7.0)) - 5.0 / deviation).abs() < 1e-12);
}

/// Returns what the point of each trial is expected to save. All values are within the tolerance.
fn saved(costs: &[u64]) -> Option<Vec<f64>> {
    let trials: Vec<_> = costs.iter().map(|cost| (Some(1.0), Some(*cost))).collect();
    let (history, running) = (history(&trials, true), BTreeMap::new());
    let view = View::new(&history, &running, true).with_tolerance(Some(0.5));
    let all: Vec<usize> = (0..costs.len()).collect();
    let saving = Saving::of(&view, &Within::of(&view)?, &[false], (&all, &all), &[])?;
    Some(view.known().into_iter().map(|point| saving.saved(point, 0.5).cost).collect())
}

#[test]
fn a_known_point_has_its_share_of_the_cost_of_the_best_buy() {
    let costs = [800, 400, 200, 100, 200, 400, 800, 1_600];
    let found = saved(&costs).unwrap();
    for (share, cost) in found.iter().zip([8.0, 4.0, 2.0, 1.0, 2.0, 4.0, 8.0, 16.0]) {
        assert!((share / cost - 1.0).abs() < 0.2, "{found:?}");
    }
}

#[test]
fn few_costs_and_equal_costs_have_no_model() {
    assert!(saved(&[100, 200, 400, 800]).is_none());
    assert!(saved(&[100, 200, 400, 800, 1_600]).is_some());
    assert!(saved(&[1_000, 1_001, 1_002, 1_001, 1_000, 1_002]).is_none(), "measured times vary as much");
}
