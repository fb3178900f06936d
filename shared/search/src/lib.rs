//! Search spaces and samplers: from (space, seed, trial index, known trials) to a configuration of hyperparameters.
//!
//! Everything here is a pure function of its arguments. Numbers are the same on every machine: transcendental
//! functions come from `libm`, sums have a fixed order, and no map with a random order is iterated.
//!
//! This crate does no I/O, reads no clock, and draws random numbers only from a given seed.
#![warn(missing_docs)]

mod guide;
pub mod history;
mod kept;
mod linear;
mod model;
mod place;
mod process;
pub mod sampler;
mod saving;
pub mod seed;
mod size;
pub mod sobol;
pub mod space;
pub mod warm;

mod coordinate;
mod number;
mod target;

pub use history::{Followed, History, Observation, Origin, Saved, Suggestion, View};
pub use place::Place;
pub use sampler::{SamplerKind, suggest};
pub use space::{
    Configuration, Domain, EncodeError, EncodeRule, Parameter, Scaling, ScalingType, Space, SpaceError,
    SpaceRule,
};
pub use warm::{PARENTS_MAX, Parent, WarmStart, WarmStartType};
