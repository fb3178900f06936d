//! Tables of analytic functions: rows by a Sobol' sequence, each with a learning curve of 81 epochs.
//!
//! All rows start near the same level, and approach their value of the function as a power of the epoch. The last
//! coordinate sets the power, so curves cross: a slow row may end best. All functions are minimized.

use std::f64::consts::{PI, TAU};

use curves::{Table, TableError};
use search::sampler::point;
use search::{Configuration, SamplerKind, Space};
use serde_json::{Map, Value, json};

use crate::case::{Case, Kind, Range, Source, SpaceFile, definition, request};
use crate::error::BenchmarkError;

/// The names of the functions.
pub const NAMES: [&str; 4] = ["branin", "hartmann-6", "rosenbrock-10", "ellipsoid-30"];
/// Rows of a table.
pub const ROWS: u32 = 2_000;
/// Epochs of a curve.
const EPOCHS: u32 = 81;
/// The powers of the slowest and of the fastest curve.
const POWERS: (f64, f64) = (0.4, 1.2);

/// A function on the unit cube, with its ranges.
struct Function {
    ranges: Vec<Range>,
    /// The level from which curves start.
    start: f64,
    value: fn(&[f64]) -> f64,
}

/// Returns the case of a function: one of [`NAMES`]. Any other name gives the last.
pub fn case(name: &str) -> Result<Case, BenchmarkError> {
    let function = function(name);
    let space =
        SpaceFile { direction: "Minimize".to_owned(), max_resource: EPOCHS, parameters: function.ranges };
    let body = request(name, &space);
    let tuning = definition(body.clone());
    let tuning = tuning.map_err(|why| BenchmarkError::Request { table: name.to_owned(), why })?;
    let rows = (0..ROWS).map(|row| line(&tuning.space, row, function.start, function.value));
    let lines = rows.collect::<Vec<_>>().join("\n");
    let space = json!(space).to_string();
    let unusable = |why: TableError| BenchmarkError::Table { table: name.to_owned(), why };
    let table = Table::read(lines.as_bytes(), space.as_bytes()).map_err(unusable)?;
    Ok(Case::new(name, table, body, Source::Analytic))
}

/// Returns a line of the table.
fn line(space: &Space, row: u32, start: f64, value: fn(&[f64]) -> f64) -> String {
    let configuration = space.decode(&point(space.dimensions(), SamplerKind::Sobol, 0, row));
    // The place of the decoded configuration: integers lie at the center of their cell.
    let place = space.encode(&configuration).unwrap_or_default();
    let last = place.last().copied().unwrap_or(0.0);
    let power = POWERS.0 + (POWERS.1 - POWERS.0) * last;
    let end = value(&place);
    let missing = |epoch: u32| (start - end) * libm::pow(1.0 + f64::from(epoch), -power);
    let values: Vec<f64> = (1..=EPOCHS).map(|epoch| end + missing(epoch)).collect();
    let row = json!({"hyperparameters": numbers(&configuration), "seconds_per_epoch": 1.0, "values": values});
    row.to_string()
}

fn numbers(configuration: &Configuration) -> Map<String, Value> {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    configuration.iter().map(|(name, text)| (name.to_owned(), json!(number(text)))).collect()
}

fn function(name: &str) -> Function {
    let range = |kind, min, max, scaling: &'static str| {
        move |number: usize| Range {
            name: format!("x{number:02}"),
            kind,
            min,
            max,
            scaling: scaling.to_owned(),
        }
    };
    let linear =
        |dimensions: usize| (0..dimensions).map(range(Kind::Continuous, 0.0, 1.0, "Linear")).collect();
    match name {
        "branin" => Function { ranges: linear(2), start: 60.0, value: branin },
        "hartmann-6" => Function { ranges: linear(6), start: 0.0, value: hartmann },
        "rosenbrock-10" => {
            let small = (0..4).map(range(Kind::Continuous, -2.048, 2.048, "Linear"));
            let wide = (4..7).map(range(Kind::Continuous, 0.000_01, 10.0, "Logarithmic"));
            let counts = (7..9).map(range(Kind::Integer, 1.0, 64.0, "Linear"));
            let sizes = (9..10).map(range(Kind::Integer, 8.0, 4_096.0, "Logarithmic"));
            let ranges = small.chain(wide).chain(counts).chain(sizes).collect();
            Function { ranges, start: 9.0, value: rosenbrock }
        }
        _ => Function { ranges: linear(30), start: 1.5, value: ellipsoid },
    }
}

/// Branin's function: L. Dixon, G. Szegő, "The global optimization problem", 1978. Minimum 0.397887.
fn branin(u: &[f64]) -> f64 {
    let [x, y] = [0, 1].map(|index| u.get(index).copied().unwrap_or(0.0) * 15.0);
    let x = x - 5.0;
    let b = 5.1 / (4.0 * PI * PI);
    let bowl = y - b * x * x + 5.0 / PI * x - 6.0;
    bowl * bowl + 10.0 * (1.0 - 1.0 / (8.0 * PI)) * libm::cos(x) + 10.0
}

/// Hartmann's function of six dimensions, from the same book as [`branin`]. Minimum -3.32237.
fn hartmann(u: &[f64]) -> f64 {
    const HEIGHTS: [f64; 4] = [1.0, 1.2, 3.0, 3.2];
    const SLOPES: [[f64; 6]; 4] = [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ];
    const CENTERS: [[f64; 6]; 4] = [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ];
    let hills = HEIGHTS.iter().zip(SLOPES.iter().zip(&CENTERS));
    let heights = hills.map(|(height, (slopes, center))| {
        let terms = u.iter().zip(slopes.iter().zip(center));
        let sum = terms.fold(0.0, |sum, (u, (slope, center))| sum + slope * (u - center) * (u - center));
        height * libm::exp(-sum)
    });
    -heights.fold(0.0, |sum, height| sum + height)
}

/// The logarithm of 1 + H. Rosenbrock's function ("An automatic method for finding the greatest or least value of a
/// function", 1960) in [-2.048, 2.048]^n. Minimum 0.
fn rosenbrock(u: &[f64]) -> f64 {
    let x: Vec<f64> = u.iter().map(|u| 4.096 * u - 2.048).collect();
    let terms = x.iter().zip(x.iter().skip(1));
    let term = |(a, b): (&f64, &f64)| 100.0 * (b - a * a) * (b - a * a) + (1.0 - a) * (1.0 - a);
    libm::log1p(terms.map(term).fold(0.0, |sum, term| sum + term))
}

/// An ellipsoid: each axis counts four fifths of the one before, so few of many dimensions matter. Minimum 0.
fn ellipsoid(u: &[f64]) -> f64 {
    let center = |axis: u32| 0.5 + 0.3 * libm::sin(TAU * f64::from(axis) / 7.0);
    let axes = (0..).zip(u).map(|(axis, u)| (libm::pow(0.8, f64::from(axis)), u - center(axis)));
    axes.fold(0.0, |sum, (weight, from)| sum + weight * from * from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The minima of the literature.
    #[test]
    fn the_functions_have_their_known_minima() {
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-4, "{value} {expected}");
        near(branin(&[(PI + 5.0) / 15.0, 2.275 / 15.0]), 0.397_887);
        near(hartmann(&[0.20169, 0.150_011, 0.476_874, 0.275_332, 0.311_652, 0.6573]), -3.32237);
        near(rosenbrock(&[3.048 / 4.096; 10]), 0.0);
        assert!(rosenbrock(&[0.5; 10]) > 2.0);
        let center: Vec<f64> =
            (0..30).map(|axis| 0.5 + 0.3 * libm::sin(TAU * f64::from(axis) / 7.0)).collect();
        near(ellipsoid(&center), 0.0);
    }

    /// Of the 100 best rows after the first epoch, some but not all are among the 100 best at the end.
    #[test]
    fn every_function_gives_a_table_whose_curves_cross() {
        for name in NAMES {
            let case = case(name).unwrap();
            let rows = &case.table.rows;
            assert_eq!(rows.len(), 2_000);
            let best_at = |epoch: usize| {
                let mut order: Vec<usize> = (0..rows.len()).collect();
                order.sort_by(|a, b| rows[*a].values[epoch].total_cmp(&rows[*b].values[epoch]));
                order.truncate(100);
                order
            };
            let (first, last) = (best_at(0), best_at(80));
            let both = first.iter().filter(|row| last.contains(row)).count();
            assert!((10..95).contains(&both), "{name}: {both} of the first 100 stay");
        }
    }
}
