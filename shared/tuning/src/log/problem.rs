//! Problems that the log of a training job shows. A tuning records each kind once, for the user.

use serde::{Deserialize, Serialize};

use crate::unit::time::Millis;

/// The time without a value before a burst. The values of a program that flushes its output arrive together only while
/// the machine cannot read them, which is shorter.
pub const QUIET_BEFORE_BURST: Millis = Millis::from_seconds(2);

/// A problem that the log of a training job shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogProblem {
    /// The pattern of the objective or of the epoch captures only a part of a number.
    NumberCut {
        /// The captured part.
        captured: String,
        /// The number.
        whole: String,
        /// The line, or a part of it.
        line: String,
        /// Whether it is the number of an epoch.
        is_epoch: bool,
    },
    /// A redrawn line shows several values, and no pattern captures the epoch: the line counts once.
    Redrawn {
        /// The last state of the line, or a part of it.
        line: String,
    },
    /// Several epochs arrived at once, after a time without values: the output of the program is buffered.
    Burst {
        /// How many.
        epochs: u32,
    },
    /// A job ended without a value, or its log shows why it has none.
    NoValue {
        /// What the log shows, as part of a sentence.
        hint: String,
        /// Whether the log shows the cause, and not only that there is no value.
        is_cause: bool,
    },
}

impl LogProblem {
    /// Returns the kind, as part of a fact's natural key.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NumberCut { is_epoch: false, .. } => "number-cut",
            Self::NumberCut { is_epoch: true, .. } => "epoch-cut",
            Self::Redrawn { .. } => "redrawn",
            Self::Burst { .. } => "burst",
            Self::NoValue { .. } => "no-value",
        }
    }

    /// Returns the texts, for their size.
    pub(crate) fn texts(&self) -> [&str; 3] {
        match self {
            Self::NumberCut { captured, whole, line, .. } => [captured, whole, line],
            Self::Redrawn { line } => [line, "", ""],
            Self::Burst { .. } => [""; 3],
            Self::NoValue { hint, .. } => [hint, "", ""],
        }
    }
}
