//! The model-based sampler: it draws configurations where a Gaussian process expects better values or is uncertain.
//!
//! - It models the best value of each trial so far ([`crate::target`]), not the value at an epoch. Running trials
//!   without a value count as if they had the expected one, so parallel trials stay apart.
//! - Half of the points maximize the expected improvement (Jones, Schonlau and Welch 1998, "Efficient global
//!   optimization of expensive black-box functions", section 4.1). The others maximize one function drawn from the
//!   posterior (Thompson sampling; Kandasamy et al. 2018, "Parallelised Bayesian optimisation via Thompson sampling").
//! - The first trials are points of the Sobol' sequence. Later, one trial in ten is drawn at random, as in BOHB
//!   (Falkner, Klein and Hutter 2018, section 4.1). Random trials keep the search consistent where the model is wrong.
//! - With a tolerance, a share of the points is to lower the cost instead ([`crate::saving`]).
//! - With cluster sizes, a share of the points is to improve the best value of one size ([`crate::size`]).
//! - A point keeps a minimum distance from all tried points ([`crate::history::View::distance`]). This distance grows
//!   where trials repeat each other, and shrinks where they do not.
//!
//! A suggestion is a function of (space, seed, trial, history). It has the same bits on every machine.

use std::f64::consts::PI;

use crate::guide::{Guide, Guiding};
use crate::history::{Followed, Origin, Suggestion, View};
use crate::linear::{IsCategory, Metric};
use crate::process::{Prediction, Process, Shape};
use crate::saving::{Saving, Within};
use crate::seed::{Rng, child};
use crate::size::Size;
use crate::sobol;
use crate::space::Space;
use crate::target::Target;

/// Trials that are spread evenly before the model is asked.
const SPREAD_FIRST: u32 = 5;
/// Those of them that a parent gives. The others show whether the parent is right.
const TAKEN_OVER: [u32; 2] = [0, 2];
/// The model follows the parents with the probability of this times their greatest weight.
const FOLLOWED: f64 = 1.5;
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
/// The best points of parents that may be such points, and those that are candidates themselves.
const PARENTS_CENTERS: usize = 10;
const PARENTS_CANDIDATES: usize = 20;
/// The least deviation of what the parents leave unexplained, as a share of that of the targets.
const REST_MIN: f64 = 0.1;
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
        return taken_over(space, trial, view).unwrap_or_else(spread);
    }
    let mut rng = Rng::new(child(seed, "model", u64::from(trial)));
    if trial >= RANDOM_FROM && rng.next_f64() < RANDOM_SHARE {
        let configuration = space.decode(&anywhere(space.dimensions(), &mut rng));
        return Suggestion { configuration, origin: Origin::Random };
    }
    by_model(space, trial, view, &mut rng).unwrap_or_else(spread)
}

/// Returns the configuration that a first trial takes over from a parent; `None` for those that are spread evenly.
fn taken_over(space: &Space, trial: u32, view: &View<'_>) -> Option<Suggestion> {
    let warm = view.parents()?;
    let number = TAKEN_OVER.iter().position(|taken| *taken == trial)?;
    let (point, parent, rank) = warm.taken_over(&Metric::plain(&space.categories()), number)?;
    Some(Suggestion { configuration: space.decode(&point), origin: Origin::Parent { parent, rank } })
}

/// What the guide leaves for the model to explain, with mean 0 and variance 1.
struct Rest {
    mean: f64,
    deviation: f64,
    values: Vec<f64>,
}

impl Rest {
    /// Returns the rest of the targets at these places; the targets themselves without a guide.
    fn of(guiding: Option<&Guiding<'_>>, places: &[&[f64]], targets: Vec<f64>) -> Self {
        let Some(guiding) = guiding else { return Self { mean: 0.0, deviation: 1.0, values: targets } };
        let rest: Vec<f64> =
            places.iter().zip(targets).map(|(place, target)| target - guiding.mean(place)).collect();
        let count = u32::try_from(rest.len()).map_or(f64::INFINITY, f64::from).max(1.0);
        let mean = rest.iter().fold(0.0, |sum, value| sum + value) / count;
        let variance = rest.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean)) / count;
        let deviation = variance.sqrt().max(REST_MIN);
        Self { mean, deviation, values: rest.iter().map(|value| (value - mean) / deviation).collect() }
    }
}

/// The model of values: a process of the rest, beside the guide. It counts in deviations of the rest.
struct Model<'a> {
    target: Target,
    rest: &'a Rest,
    guiding: Option<&'a Guiding<'a>>,
    process: Process<'a>,
}

impl Model<'_> {
    fn guided(&self, point: &[f64]) -> f64 {
        self.guiding.map_or(0.0, |guiding| guiding.mean(point) / self.rest.deviation)
    }

    fn mean(&self, point: &[f64]) -> f64 {
        self.process.mean(point) + self.guided(point)
    }

    fn predict(&self, point: &[f64]) -> Prediction {
        let mut prediction = self.process.predict(point);
        prediction.mean += self.guided(point);
        prediction
    }

    /// Returns the value of the objective so many deviations above a prediction.
    fn value(&self, prediction: &Prediction, deviations: f64) -> f64 {
        let of_rest = prediction.mean + deviations * prediction.deviation;
        self.target.value(self.rest.mean + self.rest.deviation * of_rest)
    }

    /// Returns a value of the objective on the scale of the model.
    fn scaled(&self, value: f64) -> f64 {
        (self.target.of_value(value) - self.rest.mean) / self.rest.deviation
    }
}

/// Returns the suggestion of the model; `None` with fewer than two values.
fn by_model(space: &Space, trial: u32, view: &View<'_>, rng: &mut Rng) -> Option<Suggestion> {
    let categories: Vec<IsCategory> = space.categories();
    let metric = Metric::plain(&categories);
    let (target, targets) = Target::of(view)?;
    let places = view.known();
    let guide =
        view.parents().and_then(|warm| Guide::of(warm, view.maximize(), &categories, &places, &targets));
    let guide = guide.filter(|guide| rng.next_f64() < FOLLOWED * guide.trust());
    let guiding = guide.as_ref().map(Guide::ready);
    let order = targets.clone();
    let rest = Rest::of(guiding.as_ref(), &places, targets);
    let chosen = |most: usize| -> (Vec<usize>, Vec<&[f64]>, Vec<f64>) {
        let kept = view.sample(&order, most);
        let points = kept.iter().filter_map(|index| places.get(*index).copied()).collect();
        let values = kept.iter().filter_map(|index| rest.values.get(*index).copied()).collect();
        (kept, points, values)
    };
    let sizes = if space.dimensions() < WIDE { SIZES } else { WIDE_SIZES };
    let (fitted, points, observed) = chosen(sizes.fit);
    let shape = Shape::fit(&categories, &points, &observed);
    let (kept, mut points, observed) = chosen(sizes.observations);
    let running: Vec<&[f64]> = view.running().into_iter().rev().take(BELIEVED_MAX).collect();
    points.extend(&running);
    let tried = points.clone();
    let process = Process::after(&shape, &categories, points, &observed)?;
    let model = Model { target, rest: &rest, guiding: guiding.as_ref(), process };
    let within = Within::of(view).filter(|within| rng.next_f64() < within.share());
    let saving = within.and_then(|within| {
        let saving = Saving::of(view, &within, &categories, (&fitted, &kept), &running)?;
        Some((model.scaled(within.worst()), saving))
    });

    let size = if saving.is_none() { Size::drawn(space, view.size_trials(), rng) } else { None };
    let area = Area { space, size, categories: &categories, metric: &metric };
    let comparable = tried.iter().filter(|point| size.is_none_or(|size| size.has(point)));
    let best = comparable.map(|point| model.mean(point)).reduce(f64::max);
    let of_parents = guide.iter().flat_map(|guide| guide.best(PARENTS_CENTERS));
    let points = tried.iter().copied().take(kept.len()).chain(of_parents);
    let points = points.map(|point| area.moved(point.to_vec()));
    let centers = centers(points.map(|point| (model.mean(&point), point)).collect(), saving.as_ref());
    let best = best.or_else(|| centers.first().map(|center| model.mean(center)))?;
    let candidates = area.candidates(&sizes, trial, view, guide.as_ref(), &centers, rng);
    let predictions: Vec<Prediction> = candidates.iter().map(|point| model.predict(point)).collect();
    let pick = if let Some((least, saving)) = &saving {
        let points = candidates.iter().zip(&predictions);
        greatest(points.map(|(point, value)| saving.worth(point, value.above(*least))))
    } else {
        let draws = rng.next_f64() < 0.5;
        let pick = if draws { drawn(&model.process, &candidates, &predictions, rng) } else { None };
        pick.or_else(|| most_improving(&predictions, best))
    }?;
    let (place, prediction) = (candidates.get(pick)?, predictions.get(pick)?);
    let (one, other) = (model.value(prediction, -1.0), model.value(prediction, 1.0));
    let leader = guide.as_ref().and_then(Guide::leader);
    Some(Suggestion {
        configuration: space.decode(place),
        origin: Origin::Model {
            near: view.nearest(place, &metric)?,
            expected: model.value(prediction, 0.0),
            low: one.min(other),
            high: one.max(other),
            parent: leader.map(|(parent, weight)| Followed { parent, weight }),
            saved: saving.map(|(least, saving)| saving.saved(place, prediction.above(least))),
            of_size: size.is_some(),
        },
    })
}

/// Returns the points with the best expected values; to save costs, the cheapest of those within the tolerance.
fn centers(mut points: Vec<(f64, Vec<f64>)>, saving: Option<&(f64, Saving<'_>)>) -> Vec<Vec<f64>> {
    if let Some((least, saving)) = saving {
        for (expected, point) in &mut points {
            *expected = if *expected >= *least { -saving.cost(point) } else { f64::NEG_INFINITY };
        }
    }
    points.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    points.into_iter().take(CENTERS).map(|(_, point)| point).collect()
}

/// Where the search may go.
struct Area<'a> {
    space: &'a Space,
    /// The only cluster size; `None` = all.
    size: Option<Size>,
    categories: &'a [IsCategory],
    metric: &'a Metric,
}

impl Area<'_> {
    /// Returns the point with the cluster size of the area.
    fn moved(&self, mut point: Vec<f64>) -> Vec<f64> {
        if let Some(size) = self.size {
            size.apply(&mut point);
            return self.space.snapped(&point);
        }
        point
    }

    /// Returns the candidates that keep their distance from all tried points; all candidates if only a few do.
    fn candidates(
        &self,
        sizes: &Sizes,
        trial: u32,
        view: &View<'_>,
        guide: Option<&Guide>,
        centers: &[Vec<f64>],
        rng: &mut Rng,
    ) -> Vec<Vec<f64>> {
        let dimensions = self.space.dimensions();
        let mut all: Vec<Vec<f64>> =
            (0..sizes.anywhere).map(|_| self.space.snapped(&anywhere(dimensions, rng))).collect();
        for center in centers.iter().cycle().take(sizes.near) {
            all.push(self.space.snapped(&near(center, self.categories, rng)));
        }
        let known = guide.map_or(0, |guide| {
            all.extend(guide.best(PARENTS_CANDIDATES).into_iter().map(<[f64]>::to_vec));
            guide.observations()
        });
        let all: Vec<Vec<f64>> = all.into_iter().map(|point| self.moved(point)).collect();
        let distance = view.distance(self.metric, trial.saturating_add(known));
        let distant: Vec<bool> =
            all.iter().map(|point| view.is_distant(point, self.metric, distance)).collect();
        if distant.iter().filter(|distant| **distant).count() < DISTANT_MIN {
            return all;
        }
        all.into_iter().zip(distant).filter(|(_, distant)| *distant).map(|(point, _)| point).collect()
    }
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
    greatest(predictions.iter().map(|prediction| prediction.improvement(best)))
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

#[cfg(test)]
mod tests;
