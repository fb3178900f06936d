//! The numbers that identify the parts of a tuning. Each has a type of its own, so that the compiler refuses a trial
//! where a rung belongs.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the number for an index.
            pub fn at(index: usize) -> Self {
                Self(count(index))
            }

            /// Returns the number as an index.
            pub fn index(self) -> usize {
                usize::try_from(self.0).unwrap_or(usize::MAX)
            }

            /// Returns the next number.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// The number of a trial in its tuning, from 0.
    TrialId
}

id! {
    /// The number of a bracket; 0 = the one that explores most. Each training job definition has all brackets of the
    /// plan: those of the second definition follow those of the first, and so on.
    BracketId
}

id! {
    /// The number of a rung in its bracket; 0 = the lowest.
    RungId
}

id! {
    /// The number of an instance choice of the request; 0 = the first.
    ChoiceId
}

id! {
    /// The number of a cluster size of the search; 0 = the smallest. In a tuning with several training job definitions,
    /// the number of a definition: its jobs have times and costs of their own too.
    SizeId
}

id! {
    /// The number of a training job definition of the request; 0 = the first.
    DefinitionId
}

impl DefinitionId {
    /// Returns the training job definition of a trial: its number modulo the number of definitions. So whatever knows a
    /// training job by its name knows its definition.
    pub fn of(trial: TrialId, definitions: usize) -> Self {
        Self(trial.0.checked_rem(count(definitions)).unwrap_or(0))
    }
}

impl RungId {
    /// Returns the rung below; `None` at the lowest.
    pub fn below(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }
}

/// The key of a cohort: the trials that compete with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CohortId {
    /// The bracket of the trials.
    pub bracket: BracketId,
    /// The round of the bracket; 0 where rungs do not close.
    pub round: u32,
}

/// A rung of a cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The cohort.
    pub cohort: CohortId,
    /// The rung.
    pub rung: RungId,
}

/// Returns a number of items as `u32`, the type of all counts in the state.
pub(crate) fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
