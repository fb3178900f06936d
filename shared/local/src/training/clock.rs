//! The clock of the training service, and time formats.
//!
//! Only this module reads the system time. Expects a clock after 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use use_cases::ports::Millis;
use wire::events::timestamp::format_utc;

/// Returns the current time in milliseconds since the epoch.
pub(crate) fn now() -> Millis {
    millis(SystemTime::now())
}

/// Converts a time to milliseconds since the epoch; 0 before the epoch.
pub(crate) fn millis(time: SystemTime) -> Millis {
    time.duration_since(UNIX_EPOCH).map_or(0, |passed| Millis::try_from(passed.as_millis()).unwrap_or(0))
}

/// Converts a duration to milliseconds.
pub(crate) fn length(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX)
}

/// Returns the duration from `from` to `to`, or zero if it is negative.
pub(crate) fn between(from: Millis, to: Millis) -> Duration {
    Duration::from_millis(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

/// Converts milliseconds to fractional seconds since the epoch, the API's form of times.
pub(crate) fn seconds(time: Millis) -> f64 {
    let whole = u32::try_from(time.div_euclid(1000)).unwrap_or(u32::MAX);
    let rest = u32::try_from(time.rem_euclid(1000)).unwrap_or(0);
    f64::from(whole) + f64::from(rest) / 1000.0
}

/// Formats a time as in events, in whole seconds: `2026-09-10T00:26:01Z`.
pub(crate) fn iso8601(time: Millis) -> String {
    format_utc(time - time.rem_euclid(1_000))
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_formatted_like_sagemakers() {
        assert_eq!(super::iso8601(1_789_000_000_999), "2026-09-10T00:26:40Z");
        assert_eq!(super::iso8601(951_782_400_000), "2000-02-29T00:00:00Z");
        assert_eq!(super::iso8601(0), "1970-01-01T00:00:00Z");
        assert!((super::seconds(1_789_000_000_250) - 1_789_000_000.25).abs() < 1e-9);
    }
}
