//! Which configurations of a parent are taken over.

use super::*;
use crate::space::{Domain, Parameter, Scaling};

/// Returns a warm start from one parent with these points of the unit square, best first.
fn from_points(points: &[[f64; 2]]) -> WarmStart {
    let domain = || Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    let parameters = ["x", "y"].map(|name| Parameter { name: name.to_owned(), domain: domain() });
    let space = Space::new(parameters.into()).unwrap();
    let configuration = |[x, y]: &[f64; 2]| {
        Configuration([("x".to_owned(), x.to_string()), ("y".to_owned(), y.to_string())].into())
    };
    let trials = (0_u32..).zip(points).map(|(rank, point)| (configuration(point), -f64::from(rank)));
    let parents = vec![Parent::new(&space, trials, true)];
    WarmStart { kind: WarmStartType::TransferLearning, names: vec!["earlier".to_owned()], parents }
}

/// Evenly spread, the best configurations of two dimensions have a distance of about the square root of their number's
/// reciprocal times that of two.
#[test]
fn regression_close_configurations_are_taken_over_last_and_equal_ones_never() {
    let least = APART * f64::sqrt(2.0 / f64::from(u32::try_from(BEST).unwrap()));
    let warm = from_points(&[[0.5, 0.5], [0.5, 0.5 + 0.9 * least], [0.5, 0.5 - 1.1 * least], [0.5, 0.5]]);
    let metric = Metric::plain(&[false, false]);
    let ranks = [0, 1, 2, 3].map(|number| Some(warm.taken_over(&metric, number)?.2));
    assert_eq!(ranks, [Some(0), Some(2), Some(1), None]);
}

#[test]
fn a_parent_has_the_name_of_its_position() {
    let warm = from_points(&[[0.5, 0.5]]);
    assert_eq!((warm.name(0), warm.name(1)), (Some("earlier"), None));
}
