//! Money: whole micro-dollars, saturating arithmetic, rounded up. Never a float.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount in micro-dollars (1 USD = 1,000,000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// Returns the sum; the largest amount if it overflows, which exceeds every cap.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference, or zero if `other` is larger.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns an equal share, rounded down, of so many; all for none.
    #[must_use]
    pub fn shared_by(self, shares: u32) -> Self {
        Self(self.0.checked_div(u64::from(shares)).unwrap_or(self.0))
    }
}

impl fmt::Display for MicroUsd {
    /// Formats dollars with four decimals, rounded up: the text never shows less than the amount.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths_of_cents = self.0.div_ceil(100);
        let dollars = hundredths_of_cents.checked_div(10_000).unwrap_or(0);
        let rest = hundredths_of_cents.checked_rem(10_000).unwrap_or(0);
        write!(f, "{dollars}.{rest:04}")
    }
}

/// The hourly price of one training job, in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Price of one instance, in micro-dollars per hour.
    pub instance_hour: u64,
    /// Price of the volume, in micro-dollars per 1,000 GiB-hours.
    pub volume_kilo_gib_hour: u64,
}

impl Rate {
    /// Returns the cost of `seconds` of `instances` instances with `volume_gib` each, rounded up to a micro-dollar.
    ///
    /// ```
    /// use tuning::unit::money::{MicroUsd, Rate};
    /// let rate = Rate { instance_hour: 461_000, volume_kilo_gib_hour: 0 };
    /// assert_eq!(rate.cost(3_600, 3, 30), MicroUsd(1_383_000));
    /// assert_eq!(rate.cost(1, 1, 30), MicroUsd(129)); // 128.06 rounded up
    /// ```
    pub fn cost(self, seconds: u64, instances: u32, volume_gib: u32) -> MicroUsd {
        let volume = u128::from(volume_gib).saturating_mul(u128::from(self.volume_kilo_gib_hour));
        let milli_per_hour = u128::from(self.instance_hour).saturating_mul(1_000).saturating_add(volume);
        let milli = milli_per_hour.saturating_mul(u128::from(instances)).saturating_mul(u128::from(seconds));
        MicroUsd(u64::try_from(milli.div_ceil(3_600_000)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_includes_the_volume() {
        // 0.14 USD per GB-month of 730 h is 191.78 micro-dollars per GiB-hour.
        let rate = Rate { instance_hour: 0, volume_kilo_gib_hour: 191_781 };
        assert_eq!(rate.cost(3_600, 2, 30), MicroUsd(11_507));
    }

    #[test]
    fn the_formatted_amount_is_rounded_up() {
        assert_eq!(MicroUsd(1_000_001).to_string(), "1.0001");
        assert_eq!(MicroUsd(5_000_000).to_string(), "5.0000");
    }
}
