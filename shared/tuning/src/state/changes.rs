//! Limits that the user of a tuning has changed since its submission. The latest change of each limit, by the time at
//! which the user made it, is in force, in whatever order the changes arrive.

use serde::{Deserialize, Serialize};

use crate::log::fact::Recorded;
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// The changes in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changes {
    /// The hard cap.
    pub cap: Option<Change<MicroUsd>>,
    /// The maximum of jobs that run at once.
    pub max_parallel: Option<Change<u32>>,
    /// Whether starts are paused.
    pub paused: Option<Change<bool>>,
    /// The highest `max_parallel` that any change has set.
    pub most_parallel: u32,
}

/// A change of one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<T> {
    /// When the user made the change, and the key of its fact, which breaks ties.
    pub made: (Time, String),
    /// The new limit.
    pub value: T,
}

/// Replaces an earlier change with the one that `recorded` makes; returns whether the new change is later.
pub(crate) fn replace_if_later<T>(place: &mut Option<Change<T>>, recorded: &Recorded, value: T) -> bool {
    let made = (recorded.at, recorded.key.clone());
    let later = place.as_ref().is_none_or(|old| old.made < made);
    if later {
        *place = Some(Change { made, value });
    }
    later
}
