//! Planted mutations: bugs that the simulator's checkers must find.
//!
//! They exist only with the feature `planted`, which is in no crate's default features. Most of them alter the input or
//! output of a step: a fact before it is folded, the decider's view of the state, or a ruling. Others, in the
//! simulator, alter a call of a port. Without the feature, [`fold`] and `next` are the decider's unchanged functions,
//! and [`planted!`](crate::planted!) expands to `false`. At most one mutation is on, in the thread that turned it on.

/// Returns whether the mutation of that name is on; `false` at compile time without feature `planted`.
#[cfg(feature = "planted")]
#[macro_export]
macro_rules! planted {
    ($mutation:ident) => {
        $crate::planted::is_on($crate::planted::Mutation::$mutation)
    };
}

/// Returns whether the mutation of that name is on; `false` at compile time without feature `planted`.
#[cfg(not(feature = "planted"))]
#[macro_export]
macro_rules! planted {
    ($mutation:ident) => {
        false
    };
}

#[cfg(feature = "planted")]
mod facts;
#[cfg(feature = "planted")]
mod list;
#[cfg(feature = "planted")]
mod rulings;

#[cfg(not(feature = "planted"))]
pub use crate::change::fold::fold;
#[cfg(not(feature = "planted"))]
pub(crate) use crate::decide::next;
#[cfg(feature = "planted")]
pub use facts::fold;
#[cfg(feature = "planted")]
pub(crate) use rulings::next;

#[cfg(feature = "planted")]
pub use list::{Mutation, is_on, plant, struck};
