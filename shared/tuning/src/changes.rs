//! What a tuning's user has changed since it was submitted. Of each limit the latest change stands, by the time at which it
//! was made, however late and in whatever order the changes arrive.

use serde::{Deserialize, Serialize};

use crate::money::MicroUsd;

/// The changes in force.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changes {
    /// The hard cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Change<MicroUsd>>,
    /// Most jobs at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<Change<u32>>,
    /// Whether no further job is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Change<bool>>,
    /// The most jobs at once that were ever allowed by a change.
    #[serde(default)]
    pub most_parallel: u32,
}

/// A change of one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<T> {
    /// When it was made, ms, and the key of its fact: of two at one time the greater key is the later.
    pub made: (i64, String),
    /// The new limit.
    pub value: T,
}

impl Changes {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Puts a change in place of an earlier one; whether it was later.
pub(crate) fn put<T>(place: &mut Option<Change<T>>, made: (i64, &str), value: T) -> bool {
    let later = place.as_ref().is_none_or(|old| (old.made.0, old.made.1.as_str()) < made);
    let later = later || crate::planted!(OlderChangeStands);
    if later {
        *place = Some(Change { made: (made.0, made.1.to_owned()), value });
    }
    later
}
