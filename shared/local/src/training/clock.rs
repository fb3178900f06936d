//! The clock of the training service, and time formats.
//!
//! Only this module reads the system time. Expects a clock after 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use tuning::unit::time::{Millis, Time};
use wire::events::timestamp::format_utc;

pub(crate) fn now() -> Time {
    time(SystemTime::now())
}

/// Converts a time of the system; the epoch for any time before it.
pub(crate) fn time(time: SystemTime) -> Time {
    Time::EPOCH + time.duration_since(UNIX_EPOCH).map_or(Millis::ZERO, Millis::from)
}

/// Converts a time to fractional seconds since the epoch, the API's form of times.
pub(crate) fn seconds(time: Time) -> f64 {
    let whole = u32::try_from(time.0.div_euclid(1000)).unwrap_or(u32::MAX);
    let rest = u32::try_from(time.0.rem_euclid(1000)).unwrap_or(0);
    f64::from(whole) + f64::from(rest) / 1000.0
}

/// Formats a time as in events, in whole seconds: `2026-09-10T00:26:01Z`.
pub(crate) fn iso8601(time: Time) -> String {
    format_utc(time - Millis(time.0.rem_euclid(1_000)))
}

#[cfg(test)]
mod tests {
    use tuning::unit::time::Time;

    #[test]
    fn times_are_formatted_like_sagemakers() {
        assert_eq!(super::iso8601(Time(1_789_000_000_999)), "2026-09-10T00:26:40Z");
        assert_eq!(super::iso8601(Time(951_782_400_000)), "2000-02-29T00:00:00Z");
        assert_eq!(super::iso8601(Time(0)), "1970-01-01T00:00:00Z");
        assert!((super::seconds(Time(1_789_000_000_250)) - 1_789_000_000.25).abs() < 1e-9);
    }
}
