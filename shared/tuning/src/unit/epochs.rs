//! Epochs: the unit of resource. One epoch is one emission of the objective metric.
//!
//! `hyperband` has no serde, so it counts its levels in plain `u32`, as in the papers.
//! [`crate::definition::Definition`] converts them.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A number of epochs, or the epoch that a trial has reached, from 1. Sums and differences saturate.
///
/// ```
/// use tuning::unit::epochs::Epochs;
/// assert_eq!(Epochs(3) + Epochs(6), Epochs(9));
/// assert_eq!(Epochs(3) - Epochs(6), Epochs::ZERO);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epochs(pub u32);

impl Epochs {
    /// No epoch.
    pub const ZERO: Self = Self(0);

    /// The first epoch.
    pub const ONE: Self = Self(1);

    /// Returns whether there is no epoch.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Returns this epoch and all later ones.
    pub(crate) fn and_later(self) -> impl Iterator<Item = Self> {
        (self.0..).map(Self)
    }

    /// Returns `percent` of the epochs, rounded up.
    pub(crate) fn percent(self, percent: u32) -> Self {
        Self(self.0.saturating_mul(percent).div_ceil(100))
    }

    /// Returns the epochs of this many log lines: each line is one epoch.
    pub(crate) fn of_lines(lines: usize) -> Self {
        Self(crate::unit::ids::count(lines))
    }
}

impl Add for Epochs {
    type Output = Self;

    /// Returns the sum; the largest number if it overflows.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Epochs {
    type Output = Self;

    /// Returns the difference, or zero if `other` is larger.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Epochs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
