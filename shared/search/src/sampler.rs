//! The samplers, which choose the configuration of the n-th trial.
//!
//! A suggestion of [`SamplerKind::Random`], [`SamplerKind::Sobol`] and [`SamplerKind::Grid`] is a function of (space,
//! kind, seed, trial index) alone, whichever trials have ended. A suggestion of [`SamplerKind::Model`] also depends on
//! the known results of other trials ([`View`]). Stored tunings rely on these numbers, so the tests pin them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::history::{Origin, Suggestion, View};
use crate::model;
use crate::seed::{Rng, child};
use crate::sobol;
use crate::space::Space;
use crate::warm::WarmStart;

/// The largest finite space that is drawn without repetition. In a larger one repetitions are rare.
const WITHOUT_REPETITION_MAX: u64 = 1 << 20;
/// Later trials may repeat a configuration, since each draw takes those of the earlier trials too.
const TRIALS_WITHOUT_REPETITION: u32 = 10_000;
/// So many redraws in a row show that the untried configurations of a space are too unlikely to be found.
const REDRAWS_MAX: u64 = 1_000;

/// How points are spread over a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SamplerKind {
    /// Independent uniform points. The seed of a trial is `child(seed, "random", trial)`.
    Random,
    /// The scrambled Sobol' sequence (see [`sobol`]): evenly spread, best for a number of trials that is a power of
    /// two. The seed of a dimension is `child(seed, "sobol", dimension)`.
    Sobol,
    /// A Gaussian process over the values so far. The seed of a trial is `child(seed, "model", trial)`; the
    /// first trials are those of [`SamplerKind::Sobol`].
    Model,
    /// Every combination of a finite space once, in order (see [`Space::combination`]). Needs no seed.
    Grid,
}

impl SamplerKind {
    /// Returns whether the results of other trials change its suggestions.
    #[must_use]
    pub fn learns(self) -> bool {
        match self {
            Self::Model => true,
            Self::Random | Self::Sobol | Self::Grid => false,
        }
    }
}

/// Returns the configuration of a trial, counted from 0, and how it was chosen.
#[must_use]
pub fn suggest(space: &Space, kind: SamplerKind, seed: u64, trial: u32, view: &View<'_>) -> Suggestion {
    let drawn =
        |origin| Suggestion { configuration: space.decode(&untried(space, kind, seed, trial, view)), origin };
    match kind {
        SamplerKind::Random => drawn(Origin::Random),
        SamplerKind::Sobol => drawn(Origin::Spread),
        SamplerKind::Model => model::suggest(space, seed, trial, view),
        SamplerKind::Grid => {
            Suggestion { configuration: space.combination(u64::from(trial)), origin: Origin::Grid }
        }
    }
}

/// Returns the point of a trial, in a finite space without repetition: a point whose configuration an earlier trial has
/// is drawn again at random, with the seed `child(child(seed, "redraw", trial), "draw", attempt)`. Repetitions begin once
/// every configuration was drawn. The configurations of parents count as drawn, also in an infinite space.
fn untried(space: &Space, kind: SamplerKind, seed: u64, trial: u32, view: &View<'_>) -> Vec<f64> {
    let initial = view.initial();
    let key = |point: &[f64]| space.snapped(point).into_iter().map(f64::to_bits).collect::<Vec<_>>();
    let places = view.parents().into_iter().flat_map(WarmStart::places);
    let parents: HashSet<Vec<u64>> = places.map(|place| key(&place)).collect();
    let of_trial = |trial| point(space.dimensions(), kind, seed, trial);
    let unlike_parents = |mut point: Vec<f64>| {
        let redraws = child(seed, "redraw", u64::from(trial));
        for attempt in 0..REDRAWS_MAX {
            if !parents.contains(&key(&point)) {
                break;
            }
            let mut rng = Rng::new(child(redraws, "draw", attempt));
            point = (0..space.dimensions()).map(|_| rng.next_f64()).collect();
        }
        point
    };
    let bounded = space.cardinality().filter(|count| *count <= WITHOUT_REPETITION_MAX);
    let Some(cardinality) = bounded.filter(|_| trial < TRIALS_WITHOUT_REPETITION) else {
        return unlike_parents(of_trial(trial));
    };
    let mut tried = parents.clone();
    let mut latest = Vec::new();
    for earlier in 0..=trial {
        if u64::try_from(tried.len()).is_ok_and(|count| count >= cardinality) {
            tried.clear();
        }
        let given = usize::try_from(earlier).ok().and_then(|earlier| initial.get(earlier));
        let with_given = |point: Vec<f64>| {
            let known = given.and_then(|given| space.encode(&space.decode(&point).with(given)).ok());
            known.unwrap_or(point)
        };
        latest = with_given(of_trial(earlier));
        // The values that the user gave may leave too little to draw.
        let redraws_max = match given {
            Some(given) if space.parameters().iter().all(|known| given.get(&known.name).is_some()) => 0,
            Some(_) | None => REDRAWS_MAX,
        };
        let redraws = child(seed, "redraw", u64::from(earlier));
        let mut attempt = 0;
        while !tried.insert(key(&latest)) {
            if attempt == redraws_max {
                if given.is_some() {
                    break;
                }
                tried.clear();
                continue;
            }
            let mut rng = Rng::new(child(redraws, "draw", attempt));
            latest = with_given((0..space.dimensions()).map(|_| rng.next_f64()).collect());
            attempt += 1;
        }
    }
    latest
}

/// Returns the point of a trial that does not depend on others: `dimensions` coordinates in [0, 1), each a multiple of
/// 2^-53. For [`SamplerKind::Model`] and [`SamplerKind::Grid`] it is that of [`SamplerKind::Sobol`].
///
/// # Panics
/// If `kind` is not [`SamplerKind::Random`] and `dimensions` is more than [`sobol::DIMENSIONS_MAX`].
#[must_use]
pub fn point(dimensions: usize, kind: SamplerKind, seed: u64, trial: u32) -> Vec<f64> {
    match kind {
        SamplerKind::Random => {
            let mut rng = Rng::new(child(seed, "random", u64::from(trial)));
            (0..dimensions).map(|_| rng.next_f64()).collect()
        }
        SamplerKind::Sobol | SamplerKind::Model | SamplerKind::Grid => sobol::point(dimensions, seed, trial),
    }
}
