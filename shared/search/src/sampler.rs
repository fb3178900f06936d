//! The samplers: they give the n-th trial its configuration.
//!
//! A suggestion is a function of (space, kind, seed, trial index) alone. It must not depend on which trials have
//! ended, or in which order. Stored tunings rely on these numbers, so the tests pin them.

use serde::{Deserialize, Serialize};

use crate::seed::{Rng, child};
use crate::sobol;
use crate::space::{Configuration, Space};

/// How points are spread over a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SamplerKind {
    /// Independent uniform points. The seed of a trial is `child(seed, "random", trial)`.
    Random,
    /// The scrambled Sobol' sequence (see [`sobol`]): evenly spread, best for a number of trials that is a power of
    /// two. The seed of a dimension is `child(seed, "sobol", dimension)`.
    Sobol,
}

/// Returns the configuration of a trial, counted from 0.
#[must_use]
pub fn suggest(space: &Space, kind: SamplerKind, seed: u64, trial: u32) -> Configuration {
    space.decode(&point(space.dimensions(), kind, seed, trial))
}

/// Returns the point of a trial: `dimensions` coordinates in [0, 1), each a multiple of 2^-53.
///
/// # Panics
/// If `kind` is [`SamplerKind::Sobol`] and `dimensions` is more than [`sobol::DIMENSIONS_MAX`].
#[must_use]
pub fn point(dimensions: usize, kind: SamplerKind, seed: u64, trial: u32) -> Vec<f64> {
    match kind {
        SamplerKind::Random => {
            let mut rng = Rng::new(child(seed, "random", u64::from(trial)));
            (0..dimensions).map(|_| rng.next_f64()).collect()
        }
        SamplerKind::Sobol => (0_u64..)
            .zip(0..dimensions)
            .map(|(index, dimension)| sobol::scrambled(trial, dimension, child(seed, "sobol", index)))
            .collect(),
    }
}
