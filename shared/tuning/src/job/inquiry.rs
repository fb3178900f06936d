//! Questions that the decider asks the training service by an order, and whose answers are facts.

use serde::{Deserialize, Serialize};

use crate::unit::limits::{BILL_USUAL, SETTLE_DEADLINE};
use crate::unit::time::Time;

/// A question that the decider asks once. It gives up an hour after the first time that the sweeper reports after the
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Inquiry {
    /// Not asked.
    #[default]
    Idle,
    /// Ordered; the sweeper has reported no time since.
    Ordered {
        /// When it was ordered.
        at: Time,
    },
    /// The sweeper has reported a time since the order.
    Awaited {
        /// When it was ordered.
        at: Time,
        /// The first of these times.
        since: Time,
    },
    /// Answered.
    Answered,
}

impl Inquiry {
    /// Records the order.
    pub(crate) fn order(&mut self, at: Time) {
        *self = Self::Ordered { at };
    }

    /// Returns when it was ordered; `None` before the order, and after the answer.
    pub fn ordered_at(self) -> Option<Time> {
        match self {
            Self::Ordered { at } | Self::Awaited { at, .. } => Some(at),
            Self::Idle | Self::Answered => None,
        }
    }

    /// Records a time that the sweeper reports. A time from before the order, delivered late, does not show for how long
    /// the answer has been missing.
    pub(crate) fn tick(&mut self, at: Time) {
        if let Self::Ordered { at: ordered } = self
            && at >= *ordered
        {
            *self = Self::Awaited { at: *ordered, since: at };
        }
    }

    /// Records the answer; returns whether it is the first.
    pub(crate) fn answer(&mut self) -> bool {
        std::mem::replace(self, Self::Answered) != Self::Answered
    }

    /// Returns when the decider gives up; `None` while the hour has not begun, and after the answer.
    pub(crate) fn expires_at(self) -> Option<Time> {
        match self {
            Self::Awaited { since, .. } => Some(since + SETTLE_DEADLINE),
            Self::Idle | Self::Ordered { .. } | Self::Answered => None,
        }
    }

    /// Returns when the decider needs to know the time: to begin the hour, or to give up.
    pub(crate) fn wakes_at(self) -> Option<Time> {
        match self {
            Self::Ordered { at } => Some(at + BILL_USUAL),
            Self::Awaited { .. } => self.expires_at(),
            Self::Idle | Self::Answered => None,
        }
    }
}

/// A question that the decider asks again, each time with a greater key. Only the last one matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Asked<K> {
    /// Never asked.
    #[default]
    Never,
    /// Asked, without an answer.
    Open(K),
    /// Answered.
    Answered(K),
}

impl<K: Copy + Ord> Asked<K> {
    /// Returns the key of the last question.
    pub(crate) fn key(self) -> Option<K> {
        match self {
            Self::Never => None,
            Self::Open(key) | Self::Answered(key) => Some(key),
        }
    }

    /// Returns the key of the question that has no answer.
    pub fn open(self) -> Option<K> {
        match self {
            Self::Open(key) => Some(key),
            Self::Never | Self::Answered(_) => None,
        }
    }

    /// Returns the key of the last question, once it is answered.
    pub(crate) fn answered(self) -> Option<K> {
        match self {
            Self::Answered(key) => Some(key),
            Self::Never | Self::Open(_) => None,
        }
    }

    /// Records the answer to the question `key`; returns whether that question is open.
    pub(crate) fn answer(&mut self, key: K) -> bool {
        let is_open = self.open().is_some_and(|open| open <= key);
        if is_open {
            *self = Self::Answered(key);
        }
        is_open
    }
}
