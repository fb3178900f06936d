//! Planted bugs, which the checkers must find. They exist only with the feature `planted`.
//!
//! Most of them alter the input or output of a step: a fact before it is folded, the decider's view of the state, or a
//! ruling. `mutants` alters calls of ports. The others are statements in the decider.

mod facts;
mod list;
mod rulings;

pub use list::{Mutation, is_on, plant};
pub use tuning::planted::struck;
