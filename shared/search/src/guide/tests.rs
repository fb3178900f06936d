//! The guide of one parent, of equal parents, and of parents that disagree.

use super::*;
use crate::space::{Configuration, Domain, Parameter, Scaling, Space};

/// The categories of the space: one number.
const NUMBER: [IsCategory; 1] = [false];

fn parent(value: impl Fn(f64) -> f64, count: u32) -> Parent {
    parent_of(value, count, true)
}

fn parent_of(value: impl Fn(f64) -> f64, count: u32, maximize: bool) -> Parent {
    let domain = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let space = Space::new(vec![Parameter { name: "x".to_owned(), domain }]).unwrap();
    let trial = |number: u32| {
        let x = f64::from(number * 7 % count) / f64::from(count);
        (Configuration([("x".to_owned(), x.to_string())].into()), value(x))
    };
    Parent::new(&space, (0..count).map(trial), maximize)
}

fn guide(parents: Vec<Parent>, targets: &[f64]) -> Option<Guide> {
    guide_of(parents, targets, true)
}

fn guide_of(parents: Vec<Parent>, targets: &[f64], maximize: bool) -> Option<Guide> {
    let warm = WarmStart { kind: WarmStartType::TransferLearning, names: Vec::new(), parents };
    let points: Vec<Vec<f64>> = (0..targets.len()).map(|number| vec![place(number)]).collect();
    let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
    Guide::of(&warm, maximize, &NUMBER, &points, targets)
}

fn place(number: usize) -> f64 {
    f64::from(u32::try_from(number * 3 % 10).unwrap()) / 10.0
}

/// Values of a function at the places of the new trials.
fn targets(value: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..10).map(place).map(value).collect()
}

fn means(guide: &Guide) -> Vec<f64> {
    let ready = guide.ready();
    (0..20).map(|number| ready.mean(&[f64::from(number) / 20.0])).collect()
}

#[track_caller]
fn check_close(left: &[f64], right: &[f64]) {
    assert_eq!(left.len(), right.len());
    assert!(left.iter().zip(right).all(|(a, b)| (a - b).abs() < 1e-9), "{left:?} {right:?}");
}

#[test]
fn equal_parents_say_what_one_says() {
    let up = targets(|x| 2.0 * x - 1.0);
    let one = guide(vec![parent(|x| x, 40)], &up).unwrap();
    let two = guide(vec![parent(|x| x, 40), parent(|x| x, 40)], &up).unwrap();
    check_close(&means(&two), &means(&one));
    check_close(&[two.trust(), two.slope], &[one.trust(), one.slope]);
    assert_eq!(two.observations(), one.observations());
    for guide in [&one, &two] {
        let ready = guide.ready();
        let said: Vec<f64> = (0..10).map(|number| ready.mean(&[place(number)]) / guide.slope).collect();
        check_close(&[guide.slope], &[slope(&said, &up)]);
    }
    assert_eq!(
        (one.leader().map(|leader| leader.0), two.leader().map(|leader| leader.0)),
        (Some(0), Some(0))
    );
}

#[test]
fn a_parent_that_disagrees_says_nothing() {
    let up = targets(|x| 2.0 * x - 1.0);
    assert!(guide(vec![parent(|x| -x, 40)], &up).is_none());
    let one = guide(vec![parent(|x| x, 40)], &up).unwrap();
    let both = guide(vec![parent(|x| -x, 40), parent(|x| x, 40)], &up).unwrap();
    check_close(&means(&both), &means(&one));
    assert_eq!(both.leader(), Some((1, one.trust())));
}

#[test]
fn a_minimizing_parent_gives_the_guide_of_a_maximizing_parent_with_opposite_values() {
    let up = targets(|x| 2.0 * x - 1.0);
    let most = guide(vec![parent(|x| x, 40)], &up).unwrap();
    let least = guide_of(vec![parent_of(|x| -x, 40, false)], &up, false).unwrap();
    check_close(&means(&least), &means(&most));
    assert_eq!(least.leader(), most.leader());
}

/// The imaginary trials of agreement 0.6 and two trials in perfect order: (2 * 0.6 + 9) / (2 + 9) is the agreement of ten trials
/// that differ as usual.
#[test]
fn the_weight_is_the_agreement_above_chance_and_falls_with_the_trials() {
    let kind = WarmStartType::TransferLearning;
    let near = |kind, means: &[f64], targets: &[f64], expected: f64| {
        let found = weight(kind, means, targets);
        assert!((found - expected).abs() < 1e-12, "{found} instead of {expected}");
    };
    near(kind, &[], &[], (0.6 - CHANCE) / (1.0 - CHANCE));
    near(WarmStartType::IdenticalDataAndAlgorithm, &[], &[], (0.9 - CHANCE) / (1.0 - CHANCE));
    // One pair, which claims twice the usual difference: the evidence of four trials.
    let far = [0.0, 2.0 * USUAL_DIFFERENCE];
    let of =
        |agreement: f64| ((agreement - CHANCE) / (1.0 - CHANCE)).max(0.0) * HALF_LIFE / (HALF_LIFE + 2.0);
    near(kind, &far, &[1.0, 2.0], of((2.0 * 0.6 + 4.0) / (2.0 + 4.0)));
    near(kind, &far, &[2.0, 1.0], of((2.0 * 0.6 - 4.0) / (2.0 + 4.0)));
    near(kind, &far, &[1.0, 1.0], of((2.0 * 0.6) / (2.0 + 4.0)));
    // Three trials at 1, 2 and 4 usual differences: a pair is right, or wrong, as far as the parent claims it.
    let three = [1.0, 2.0, 4.0].map(|mean| mean * USUAL_DIFFERENCE);
    let agreement = (2.0 * 0.6 + (1.0 + 3.0 - 2.0)) / (2.0 + 6.0);
    near(
        kind,
        &three,
        &[1.0, 3.0, 2.0],
        (agreement - CHANCE) / (1.0 - CHANCE) * HALF_LIFE / (HALF_LIFE + 3.0),
    );
}

#[test]
fn scores_follow_the_ranks_and_equal_values_share_theirs() {
    let found = scores(&[3.0, 1.0, 2.0, 2.0]);
    let raw = [1.0, 7.0, 4.0, 4.0].map(|twice: f64| -libm::log(twice / 4.0 + OFFSET));
    let mean = raw.iter().sum::<f64>() / 4.0;
    let deviation = (raw.iter().map(|raw| (raw - mean) * (raw - mean)).sum::<f64>() / 4.0).sqrt();
    check_close(&found, &raw.map(|raw| (raw - mean) / deviation));
    check_close(&scores(&[5.0, 5.0]), &[0.0, 0.0]);
}

#[test]
fn the_slope_is_a_regression_with_imaginary_trials_of_slope_one() {
    let said = [0.0, 1.0, 2.0];
    check_close(
        &[slope(&said, &[0.0, 2.0, 4.0]), slope(&said, &[1.0, 1.0, 1.0]), slope(&[], &[])],
        &[(2.0 + 4.0) / (2.0 + 2.0), 2.0 / 4.0, 1.0],
    );
    check_close(&[slope(&said, &[0.0, 50.0, 100.0]), slope(&said, &[9.0, 5.0, 1.0])], &[SLOPE_MAX, 0.0]);
}

#[test]
fn the_best_places_of_the_parents_take_turns() {
    let up = targets(|x| 2.0 * x - 1.0);
    let both = guide(vec![parent(|x| x, 8), parent(|x| x, 10)], &up).unwrap();
    let found: Vec<f64> = both.best(5).into_iter().flatten().copied().collect();
    let of = |parent: usize| both.parents[parent].points.iter().map(|point| point[0]);
    let turns: Vec<f64> = of(0).zip(of(1)).flat_map(|(a, b)| [a, b]).collect();
    assert_eq!(found, turns[..5]);
    assert_eq!(both.best(100).len(), 18);
    let worth: f64 = both.parents.iter().zip([8.0, 10.0]).map(|(known, count)| known.weight * count).sum();
    assert!((f64::from(both.observations()) - worth.floor()).abs() < 0.5 && worth > 3.0, "{worth}");
    let weights: Vec<f64> = both.parents.iter().map(|known| known.weight).collect();
    let greatest = weights[0].max(weights[1]);
    assert_eq!(both.leader(), Some((u32::from(weights[1] > weights[0]), greatest)));
}

/// Many parents share the observations, so that a draw takes bounded time.
#[test]
fn the_observations_of_all_parents_are_bounded() {
    let up = targets(|x| 2.0 * x - 1.0);
    let sizes = |parents: usize, trials: u32| -> Vec<usize> {
        let guide = guide((0..parents).map(|_| parent(|x| x, trials)).collect(), &up).unwrap();
        guide.parents.iter().map(|known| known.points.len()).collect()
    };
    assert_eq!(sizes(1, 200), [96]);
    assert_eq!(sizes(3, 200), [80, 80, 80]);
    assert_eq!(sizes(1, 2), [2]);
    assert!(guide(vec![parent(|x| x, 1)], &up).is_none());
}

/// The fit of the shapes has the same bound as the observations.
#[test]
fn the_observations_that_shape_the_surrogates_of_all_parents_are_bounded() {
    let wave = parent(|x| libm::sin(25.0 * x) + x, 60);
    let values: Vec<f64> = wave.observations().iter().map(|(_, value)| *value).collect();
    let fitted = |most: usize| {
        let numbers: Vec<u32> = (0..60).collect();
        let kept = sample(&numbers, &values, most);
        let points: Vec<Vec<f64>> = kept.iter().map(|index| wave.observations()[*index].0.point()).collect();
        let points: Vec<&[f64]> = points.iter().map(Vec::as_slice).collect();
        let all = scores(&values);
        let observed: Vec<f64> = kept.iter().map(|index| all[*index]).collect();
        Shape::fit(&NUMBER, &points, &observed)
    };
    let shape = |parents: usize| Weighted::of(0, &wave, true, &NUMBER, parents).unwrap().shape;
    assert_eq!([1, 3, 4, 5].map(shape), [32, 32, 25, 20].map(fitted));
    assert_ne!(shape(5), shape(1), "another number of observations gives another shape");
}
