//! The model-based sampler: it draws configurations where a Gaussian process expects better values or is uncertain.
//!
//! - It models the best value of each trial so far ([`crate::target`]), not the value at an epoch. Running trials
//!   without a value count as if they had the expected one, so parallel trials stay apart.
//! - Half of the points maximize the expected improvement (Jones, Schonlau and Welch 1998, "Efficient global
//!   optimization of expensive black-box functions", section 4.1). The others maximize one function drawn from the
//!   posterior (Thompson sampling; Kandasamy et al. 2018, "Parallelised Bayesian optimisation via Thompson sampling").
//! - The first trials are points of the Sobol' sequence. Later, one trial in ten is drawn at random, as in BOHB
//!   (Falkner, Klein and Hutter 2018, section 4.1). Random trials keep the search consistent where the model is wrong.
//! - A point keeps a minimum distance from all tried points ([`crate::history::View::distance`]). This distance grows
//!   where trials repeat each other, and shrinks where they do not.
//!
//! A suggestion is a function of (space, seed, trial, history). It has the same bits on every machine.

use std::f64::consts::{PI, SQRT_2};

use crate::history::{Origin, Suggestion, View};
use crate::linear::{IsCategory, Metric};
use crate::process::{Prediction, Process, Shape};
use crate::seed::{Rng, child};
use crate::sobol;
use crate::space::Space;
use crate::target::Target;

/// Trials that are spread evenly before the model is asked.
const SPREAD_FIRST: u32 = 5;
/// From this trial on, some are drawn at random.
const RANDOM_FROM: u32 = 30;
const RANDOM_SHARE: f64 = 0.1;
/// The sizes that bound the time of a draw, and those of a space of many dimensions, where each step takes longer.
const SIZES: Sizes = Sizes { observations: 120, fit: 48, anywhere: 150, near: 150 };
const WIDE_SIZES: Sizes = Sizes { observations: 96, fit: 32, anywhere: 100, near: 100 };
/// The dimensions from which a space is wide.
const WIDE: usize = 13;
/// The most running trials without a value that the process believes in.
const BELIEVED_MAX: usize = 40;
/// Points around which candidates are drawn: those with the best expected values.
const CENTERS: usize = 5;
/// Candidates among which a drawn function decides.
const DRAWN_MAX: usize = 100;
/// So many candidates must keep the distance; with fewer, all count.
const DISTANT_MIN: usize = 6;

/// The sizes that bound the time of a draw.
struct Sizes {
    /// The most observations of the process.
    observations: usize,
    /// The most observations for the fit of the shape.
    fit: usize,
    /// Candidates all over the space.
    anywhere: usize,
    /// Candidates near good points.
    near: usize,
}

pub(crate) fn suggest(space: &Space, seed: u64, trial: u32, view: &View<'_>) -> Suggestion {
    let spread = || Suggestion {
        configuration: space.decode(&sobol::point(space.dimensions(), seed, trial)),
        origin: Origin::Spread,
    };
    if trial < SPREAD_FIRST {
        return spread();
    }
    let mut rng = Rng::new(child(seed, "model", u64::from(trial)));
    if trial >= RANDOM_FROM && rng.next_f64() < RANDOM_SHARE {
        let configuration = space.decode(&anywhere(space.dimensions(), &mut rng));
        return Suggestion { configuration, origin: Origin::Random };
    }
    by_model(space, trial, view, &mut rng).unwrap_or_else(spread)
}

/// Returns the suggestion of the model; `None` with fewer than two values.
fn by_model(space: &Space, trial: u32, view: &View<'_>, rng: &mut Rng) -> Option<Suggestion> {
    let categories: Vec<IsCategory> = space.categories();
    let metric = Metric::plain(&categories);
    let (target, values) = Target::of(view)?;
    let places = view.known();
    let chosen = |most: usize| -> (Vec<usize>, Vec<&[f64]>, Vec<f64>) {
        let kept = view.sample(&values, most);
        let points = kept.iter().filter_map(|index| places.get(*index).copied()).collect();
        let values = kept.iter().filter_map(|index| values.get(*index).copied()).collect();
        (kept, points, values)
    };
    let sizes = if space.dimensions() < WIDE { SIZES } else { WIDE_SIZES };
    let (_, points, observed) = chosen(sizes.fit);
    let shape = Shape::fit(&categories, &points, &observed);
    let (kept, mut points, observed) = chosen(sizes.observations);
    points.extend(view.running().into_iter().rev().take(BELIEVED_MAX));
    let tried = points.clone();
    let process = Process::after(&shape, &categories, points, &observed)?;

    // The best expected values at observed points.
    let expected: Vec<f64> = tried.iter().map(|point| process.mean(point)).collect();
    let best = expected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut centers: Vec<usize> = (0..kept.len()).collect();
    let mean = |index: &usize| expected.get(*index).copied().unwrap_or(f64::NEG_INFINITY);
    centers.sort_by(|a, b| mean(b).total_cmp(&mean(a)).then(a.cmp(b)));
    centers.truncate(CENTERS);
    let centers: Vec<&[f64]> = centers.iter().filter_map(|index| tried.get(*index).copied()).collect();

    let candidates = candidates((space, &categories, &metric), &sizes, trial, view, &centers, rng);
    let predictions: Vec<Prediction> = candidates.iter().map(|point| process.predict(point)).collect();
    let draws = rng.next_f64() < 0.5;
    let pick = if draws { drawn(&process, &candidates, &predictions, rng) } else { None };
    let pick = pick.or_else(|| most_improving(&predictions, best))?;
    let (place, prediction) = (candidates.get(pick)?, predictions.get(pick)?);
    let value = |deviations: f64| target.value(prediction.mean + deviations * prediction.deviation);
    let (one, other) = (value(-1.0), value(1.0));
    Some(Suggestion {
        configuration: space.decode(place),
        origin: Origin::Model {
            near: view.nearest(place, &metric)?,
            expected: value(0.0),
            low: one.min(other),
            high: one.max(other),
        },
    })
}

/// Returns the candidates that keep their distance from all tried points; all candidates if only a few do.
fn candidates(
    (space, categories, metric): (&Space, &[IsCategory], &Metric),
    sizes: &Sizes,
    trial: u32,
    view: &View<'_>,
    centers: &[&[f64]],
    rng: &mut Rng,
) -> Vec<Vec<f64>> {
    let dimensions = space.dimensions();
    let mut all: Vec<Vec<f64>> =
        (0..sizes.anywhere).map(|_| space.snapped(&anywhere(dimensions, rng))).collect();
    for center in centers.iter().cycle().take(sizes.near) {
        all.push(space.snapped(&near(center, categories, rng)));
    }
    let distance = view.distance(metric, trial);
    let distant: Vec<bool> = all.iter().map(|point| view.is_distant(point, metric, distance)).collect();
    if distant.iter().filter(|distant| **distant).count() < DISTANT_MIN {
        return all;
    }
    all.into_iter().zip(distant).filter(|(_, distant)| *distant).map(|(point, _)| point).collect()
}

fn anywhere(dimensions: usize, rng: &mut Rng) -> Vec<f64> {
    (0..dimensions).map(|_| rng.next_f64()).collect()
}

/// Returns a point near `center`: some of its coordinates are moved, all by steps of one size.
fn near(center: &[f64], categories: &[IsCategory], rng: &mut Rng) -> Vec<f64> {
    let dimensions = u32::try_from(center.len()).map_or(f64::INFINITY, f64::from);
    let moved = (1.5 / dimensions).max(0.35);
    let step = 0.15 * libm::exp(-2.5 * rng.next_f64());
    let coordinate = |(coordinate, is_category): (&f64, &IsCategory)| {
        if rng.next_f64() >= moved {
            return *coordinate;
        }
        if *is_category { rng.next_f64() } else { (coordinate + step * normal(rng)).clamp(0.0, 1.0) }
    };
    center.iter().zip(categories).map(coordinate).collect()
}

/// Returns the index of the candidate with the greatest expected improvement over `best`.
fn most_improving(predictions: &[Prediction], best: f64) -> Option<usize> {
    let improvement = |prediction: &Prediction| {
        let z = (prediction.mean - best) / prediction.deviation;
        let density = libm::exp(-0.5 * z * z) / (2.0 * PI).sqrt();
        prediction.deviation * (z * (0.5 * libm::erfc(-z / SQRT_2)) + density)
    };
    greatest(predictions.iter().map(improvement))
}

/// Returns the index of the candidate where a function drawn from the posterior is greatest, among those that may be
/// good; `None` if no function can be drawn.
fn drawn(
    process: &Process<'_>,
    candidates: &[Vec<f64>],
    predictions: &[Prediction],
    rng: &mut Rng,
) -> Option<usize> {
    let hope = |prediction: &Prediction| prediction.mean + 1.5 * prediction.deviation;
    let mut order: Vec<(usize, &Prediction)> = predictions.iter().enumerate().collect();
    order.sort_by(|(i, a), (j, b)| hope(b).total_cmp(&hope(a)).then(i.cmp(j)));
    order.truncate(DRAWN_MAX);
    let at: Option<Vec<(&[f64], &Prediction)>> = order
        .iter()
        .map(|(index, prediction)| Some((candidates.get(*index)?.as_slice(), *prediction)))
        .collect();
    let normals: Vec<f64> = order.iter().map(|_| normal(rng)).collect();
    let sample = process.sample(&at?, &normals)?;
    greatest(sample.into_iter()).and_then(|best| order.get(best)).map(|(index, _)| *index)
}

/// Returns the index of the greatest number, the first of equal ones.
fn greatest(numbers: impl Iterator<Item = f64>) -> Option<usize> {
    let best = numbers.enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best });
    best.map(|(index, _)| index)
}

/// Returns a standard normal number (Box and Muller 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - rng.next_f64())).sqrt();
    radius * libm::cos(2.0 * PI * rng.next_f64())
}
