//! Points in time and spans of time, in milliseconds. Their arithmetic saturates: a sum beyond the range becomes the
//! end of the range. An absurd time on a fact can therefore neither overflow nor stop a tuning.
//!
//! The decider has no clock. Every [`Time`] comes from a fact, or from the definition.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time, in ms since the Unix epoch.
///
/// ```
/// use tuning::unit::time::{Millis, Time};
/// assert_eq!(Time(1_000) + Millis(500), Time(1_500));
/// assert_eq!(Time(1_000) - Millis(500), Time(500));
/// assert_eq!(Time(1_000) - Time(400), Millis(600));
/// assert_eq!(Time::MAX + Millis(1), Time::MAX);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// The earliest time.
    pub const MIN: Self = Self(i64::MIN);

    /// The latest time.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns the whole seconds since the Unix epoch, rounded towards zero.
    pub const fn as_seconds(self) -> i64 {
        self.0 / 1_000
    }
}

/// A span of time, in ms. The span back to an earlier time is negative.
///
/// ```
/// use tuning::unit::time::Millis;
/// assert_eq!(Millis::from_seconds(90) + Millis(500), Millis(90_500));
/// assert_eq!((Millis(90_500).as_seconds(), Millis(90_500).seconds_rounded_up()), (90, 91));
/// assert_eq!(Millis::from_seconds(u64::MAX), Millis::MAX);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl Millis {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// The longest span.
    pub const MAX: Self = Self(i64::MAX);

    /// Returns a span of `seconds`.
    pub const fn from_seconds(seconds: u64) -> Self {
        let seconds = if seconds > i64::MAX.cast_unsigned() { i64::MAX } else { seconds.cast_signed() };
        Self(seconds.saturating_mul(1_000))
    }

    /// Returns whether there is no time.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    /// Returns the span in whole seconds, rounded towards zero.
    pub const fn as_seconds(self) -> i64 {
        self.0 / 1_000
    }

    /// Returns the span in seconds, rounded up; 0 for a negative span.
    pub fn seconds_rounded_up(self) -> u64 {
        self.or_zero().0.cast_unsigned().div_ceil(1_000)
    }

    /// Returns the span, or zero if it is negative.
    #[must_use]
    pub fn or_zero(self) -> Self {
        self.max(Self::ZERO)
    }

    /// Returns half of the span, rounded towards zero.
    #[must_use]
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// Returns `percent` of the span, rounded towards zero.
    #[must_use]
    pub fn percent(self, percent: u32) -> Self {
        Self((self * percent).0 / 100)
    }

    /// Returns the span, doubled so many times.
    #[must_use]
    pub const fn doubled(self, times: u32) -> Self {
        Self(self.0.saturating_mul(2_i64.saturating_pow(times)))
    }

    /// Returns an equal share of the span, rounded towards zero; `None` without parts.
    pub fn divided(self, parts: u32) -> Option<Self> {
        self.0.checked_div(i64::from(parts)).map(Self)
    }
}

impl Add<Millis> for Time {
    type Output = Self;

    /// Returns the time so long after this one; the latest time if that is beyond the range.
    fn add(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Millis> for Time {
    fn add_assign(&mut self, span: Millis) {
        *self = *self + span;
    }
}

impl Sub<Millis> for Time {
    type Output = Self;

    /// Returns the time so long before this one; the earliest time if that is beyond the range.
    fn sub(self, span: Millis) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Sub for Time {
    type Output = Millis;

    /// Returns the span from `earlier` to this time; the longest span if it is longer.
    fn sub(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Millis {
    type Output = Self;

    /// Returns the sum; the longest span if it is longer.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Millis {
    type Output = Self;

    /// Returns the difference, which may be negative.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<u32> for Millis {
    type Output = Self;

    /// Returns the product; the longest span if it is longer.
    fn mul(self, times: u32) -> Self {
        Self(self.0.saturating_mul(i64::from(times)))
    }
}

impl From<Duration> for Millis {
    /// Returns the whole milliseconds of a duration; the longest span if it is longer.
    fn from(duration: Duration) -> Self {
        i64::try_from(duration.as_millis()).map_or(Self::MAX, Self)
    }
}

impl From<Millis> for Duration {
    /// Returns the duration of a span; zero for a negative one.
    fn from(span: Millis) -> Self {
        Self::from_millis(span.or_zero().0.cast_unsigned())
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_beyond_the_range_gives_the_end_of_the_range() {
        assert_eq!(Time::MIN - Millis(1), Time::MIN);
        assert_eq!(Time::MAX - Time::MIN, Millis::MAX);
        assert_eq!(Time::MIN - Time::MAX, Millis(i64::MIN));
        assert_eq!(Millis::MAX + Millis(1), Millis::MAX);
        assert_eq!(Millis(2) * u32::MAX, Millis(8_589_934_590));
        assert_eq!(Millis::MAX * 2, Millis::MAX);
        assert_eq!(Millis(3).doubled(200), Millis::MAX);
    }

    #[test]
    fn a_negative_span_lasts_no_time() {
        let back = Time(1) - Time(2_501);
        assert_eq!((back, back.or_zero(), back.as_seconds()), (Millis(-2_500), Millis::ZERO, -2));
        assert_eq!((back.seconds_rounded_up(), Duration::from(back)), (0, Duration::ZERO));
    }

    #[test]
    fn a_duration_is_cut_to_whole_milliseconds() {
        assert_eq!(Millis::from(Duration::from_micros(2_999)), Millis(2));
        assert_eq!(Millis::from(Duration::MAX), Millis::MAX);
        assert_eq!(Duration::from(Millis(7)), Duration::from_millis(7));
    }

    #[test]
    fn a_span_has_no_share_without_parts() {
        assert_eq!((Millis(7).divided(2), Millis(7).divided(0)), (Some(Millis(3)), None));
    }

    #[test]
    fn a_time_moves_by_a_span_and_a_span_prints_its_milliseconds() {
        let mut time = Time(5);
        time += Millis(3);
        assert_eq!((time, Millis(1_500).to_string()), (Time(8), "1500".to_owned()));
    }

    #[test]
    fn times_and_spans_are_stored_as_numbers() {
        assert_eq!(serde_json::to_string(&(Time(-5), Millis(7))).unwrap(), "[-5,7]");
        assert_eq!(serde_json::from_str::<(Time, Millis)>("[-5,7]").unwrap(), (Time(-5), Millis(7)));
    }
}
