//! Coordinates and values at the limits of floats, and the form of the values that a user gives.

use super::*;
use crate::space::Scaling::{Linear, Logarithmic, ReverseLogarithmic};

fn continuous(min: f64, max: f64, scaling: Scaling) -> Domain {
    Domain::Continuous { min, max, scaling }
}

fn number(domain: &Domain, u: f64) -> f64 {
    domain.value(u).parse().unwrap()
}

/// Returns the float that is `count` floats above `start`.
fn float_after(start: f64, count: u64) -> f64 {
    f64::from_bits(start.to_bits() + count)
}

#[test]
fn a_linear_range_is_divided_evenly_from_the_smallest_floats_to_the_greatest() {
    // The width of this range is greater than any float.
    let wide = continuous(-1e308, 1.5e308, Linear);
    for (u, expected) in [(0.25, -3.75e307), (0.5, 2.5e307), (0.75, 8.75e307)] {
        let found = number(&wide, u);
        assert!((found / expected - 1.0).abs() < 1e-12, "{found:e} instead of {expected:e} at {u}");
    }
    let smallest = |count| float_after(0.0, count);
    let narrow = continuous(smallest(1), smallest(5), Linear);
    assert_eq!(number(&narrow, 0.5).to_bits(), smallest(3).to_bits());
}

/// In a range of few floats many coordinates have the same value.
#[test]
fn the_coordinate_of_a_number_is_in_proportion_where_floats_are_scarce() {
    for (start, scaling) in [(1.0, Linear), (1.0, Logarithmic), (0.0, ReverseLogarithmic)] {
        let domain = continuous(float_after(start, 1), float_after(start, 5), scaling);
        for (count, expected) in [(2, 0.25), (3, 0.5), (4, 0.75)] {
            let found = domain.coordinate(&float_after(start, count).to_string()).unwrap();
            assert!((found - expected).abs() < 1e-9, "{scaling:?}: {found} instead of {expected}");
        }
    }
}

#[test]
fn a_drawn_number_is_exact_after_a_round_trip() {
    let domains = [
        continuous(1e-5, 0.1, Logarithmic),
        continuous(0.5, 0.999, ReverseLogarithmic),
        continuous(0.1, 0.7, Linear),
    ];
    for domain in domains {
        for thousandth in 0..=1_000_u32 {
            let text = domain.value(f64::from(thousandth) / 1e3);
            assert_eq!(domain.value(domain.coordinate(&text).unwrap()), text, "{domain:?}");
        }
    }
}

/// The floats nearest to these bounds are equal, and so are their logarithms.
#[test]
fn regression_an_integer_has_one_place_although_the_logarithms_of_the_bounds_are_equal() {
    let domain = Domain::Integer { min: i64::MAX - 2, max: i64::MAX, scaling: Logarithmic };
    let places = [0.0, 0.25, 0.5, 0.75, 1.0].map(|u| {
        let (value, place) = (domain.value(u), domain.snapped(u));
        assert_eq!(domain.value(place), value, "at {u}");
        assert_eq!(domain.snapped(domain.coordinate(&value).unwrap()).to_bits(), place.to_bits(), "at {u}");
        (value, place.to_bits())
    });
    let values: std::collections::BTreeSet<_> = places.iter().map(|(value, _)| value).collect();
    let distinct: std::collections::BTreeSet<_> = places.iter().collect();
    assert_eq!((values.len(), distinct.len()), (3, 3), "{places:?}");
}

#[test]
fn a_given_value_gets_the_form_of_a_drawn_one() {
    let number = continuous(-1.0, 1.0, Linear);
    let texts = ["1e-3", "-0", "0.50"].map(|text| number.normalized(text).unwrap());
    assert_eq!(texts, ["0.001", "0", "0.5"]);
    assert_eq!(number.normalized("1.5"), Err(EncodeRule::OutOfDomain));
    let integer = Domain::Integer { min: 0, max: 9, scaling: Linear };
    assert_eq!(["+7", "007"].map(|text| integer.normalized(text).unwrap()), ["7", "7"]);
    let category = Domain::Categorical { values: vec!["1e-3".to_owned()] };
    assert_eq!(category.normalized("1e-3"), Ok("1e-3".to_owned()));
}
