//! Planted bugs, which the checkers must find. They exist only with the feature `planted`.
//!
//! Most of them alter the input or output of a step: a fact before it is folded, the decider's view of the state, or a
//! ruling. `mutants` alters calls of ports. The others are statements in the decider.

mod facts;
mod list;
mod rulings;

pub use list::{Mutation, is_on};
pub use tuning::planted::struck;

/// Turns `mutation` on in this thread and any other off, and resets the count of [`struck`].
pub fn plant(mutation: Option<Mutation>) {
    list::ON.set(mutation);
    tuning::planted::plant(mutation.map(|mutation| tuning::planted::Bug {
        name: mutation.name(),
        fold: facts::fold,
        next: rulings::next,
    }));
}
