//! Converts times such as `2026-09-10T00:30:00Z`, as in the envelopes of events, from and to epoch milliseconds.
//!
//! Only UTC and the years 1970 to 9999 are supported. AWS writes UTC; other offsets are rejected.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use tuning::unit::time::Time;

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
/// The shape of a time: `0` stands for a digit.
const SHAPE: &[u8] = b"0000-00-00T00:00:00";

/// Returns the epoch milliseconds of a time such as `2026-09-10T00:30:00Z` or `2026-09-10T00:30:00.250Z`.
///
/// ```
/// use tuning::unit::time::Time;
/// use wire::events::timestamp::{format_utc, parse_utc};
/// assert_eq!(parse_utc("2026-09-10T00:30:00Z"), Some(Time(1_789_000_200_000)));
/// assert_eq!(format_utc(Time(1_789_000_200_000)), "2026-09-10T00:30:00Z");
/// ```
pub fn parse_utc(text: &str) -> Option<Time> {
    let text = text.strip_suffix('Z')?;
    let (second, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let shape = second.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    // jiff also accepts other formats, and takes a leap second for the second before it.
    if !shape.eq(SHAPE.iter().copied()) || second.ends_with("60") {
        return None;
    }
    if !(1..=9).contains(&fraction.len()) || !is_digits(fraction) {
        return None;
    }
    let time: DateTime = text.parse().ok()?;
    let ms = i64::try_from(time.duration_since(EPOCH).as_millis()).ok()?;
    (ms >= 0).then_some(Time(ms))
}

/// Returns the time in AWS's format, without a fraction for whole seconds. A time before 1970 is written as the start
/// of 1970, and a time after 9999 as the last millisecond of 9999.
pub fn format_utc(time: Time) -> String {
    let time = civil(time.max(Time::EPOCH));
    if time.millisecond() == 0 { format!("{time:.0}Z") } else { format!("{time:.3}Z") }
}

/// Returns date and time in UTC. A time outside the years -9999 to 9999 is that year's end.
pub fn civil(time: Time) -> DateTime {
    EPOCH.saturating_add(SignedDuration::from_millis(time.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_are_parsed() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T23:59:59Z", 951_868_799_000),
            ("2026-09-10T00:26:08Z", 1_788_999_968_000),
            ("2026-09-10T00:26:08.25Z", 1_788_999_968_250),
        ] {
            assert_eq!(parse_utc(text), Some(Time(ms)), "{text}");
        }
    }

    #[test]
    fn a_parsed_time_is_formatted_unchanged() {
        for text in ["1970-01-01T00:00:00Z", "9999-12-31T00:00:01Z", "9999-12-31T23:59:59.999Z"] {
            assert_eq!(parse_utc(text).map(format_utc).as_deref(), Some(text));
        }
        assert_eq!(format_utc(Time::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "2026-09-10",
            "2026-09-10T00:26:08",
            "2026-09-10T00:26:08+02:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00:00Z",
            "2026-01-01-01T00:00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00.é0Z",
        ] {
            assert_eq!(parse_utc(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_formatted_time_parses_to_itself(ms in 0_i64..253_402_300_800_000) {
            prop_assert_eq!(parse_utc(&format_utc(Time(ms))), Some(Time(ms)));
        }

        #[test]
        fn any_number_is_formatted_as_a_valid_time(ms in any::<i64>()) {
            prop_assert!(parse_utc(&format_utc(Time(ms))).is_some());
        }

        #[test]
        fn no_text_causes_a_panic(text in any::<String>()) {
            let _ = parse_utc(&text);
        }
    }
}
