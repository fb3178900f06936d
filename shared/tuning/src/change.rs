//! The only writers of the state: [`fold`](fold::fold) for facts, and [`State::apply`](crate::state::State::apply) for
//! rulings.

mod apply;
pub mod fold;
mod grants;
mod lesson;
mod metrics;
