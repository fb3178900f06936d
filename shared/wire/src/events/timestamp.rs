//! Converts times such as `2026-09-10T00:30:00Z`, as in the envelopes of events, from and to epoch milliseconds.
//!
//! Only UTC and the years 1970 to 9999 are supported. AWS writes UTC; other offsets are rejected.

const MS_PER_SECOND: i64 = 1_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Returns the epoch milliseconds of a time such as `2026-09-10T00:30:00Z` or `2026-09-10T00:30:00.250Z`.
///
/// ```
/// use wire::events::timestamp::{format_utc, parse_utc};
/// assert_eq!(parse_utc("2026-09-10T00:30:00Z"), Some(1_789_000_200_000));
/// assert_eq!(format_utc(1_789_000_200_000), "2026-09-10T00:30:00Z");
/// ```
pub fn parse_utc(text: &str) -> Option<i64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let mut date = date.split('-');
    let (year, month, day) = (digits(date.next()?, 4)?, digits(date.next()?, 2)?, digits(date.next()?, 2)?);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.split(':');
    let (hour, minute, second) =
        (digits(time.next()?, 2)?, digits(time.next()?, 2)?, digits(time.next()?, 2)?);
    let valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && date.next().is_none()
        && time.next().is_none();
    if !valid {
        return None;
    }
    let seconds = days_before(year, month, day) * SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second;
    Some(seconds * MS_PER_SECOND + milliseconds(fraction)?)
}

/// Returns the time in AWS's format, without a fraction for whole seconds. A time before 1970 is written as the start
/// of 1970, and a time after 9999 as the last millisecond of 9999.
pub fn format_utc(ms: i64) -> String {
    let ms = ms.clamp(0, days_before(10_000, 1, 1) * SECONDS_PER_DAY * MS_PER_SECOND - 1);
    let (seconds, fraction) = (ms / MS_PER_SECOND, ms % MS_PER_SECOND);
    let (mut day, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    // The estimate is at most a few years too low.
    let mut year = 1970 + day / 366;
    while days_before(year + 1, 1, 1) <= day {
        year += 1;
    }
    day -= days_before(year, 1, 1);
    let mut month = 1;
    while day >= days_in_month(year, month) {
        day -= days_in_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:03}") };
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z", day + 1)
}

/// Parses a number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let valid = text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

/// Returns the milliseconds in a fraction of 1 to 9 digits.
fn milliseconds(fraction: &str) -> Option<i64> {
    digits(fraction, fraction.len()).filter(|_| (1..=9).contains(&fraction.len()))?;
    format!("{fraction}00").get(..3)?.parse().ok()
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the number of days from 1970-01-01 to a date.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let past = year - 1;
    let years = past * 365 + past / 4 - past / 100 + past / 400 - 719_162;
    let months: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
    years + months + day - 1
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
            assert_eq!(parse_utc(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn a_parsed_time_is_formatted_unchanged() {
        for text in ["1970-01-01T00:00:00Z", "9999-12-31T00:00:01Z", "9999-12-31T23:59:59.999Z"] {
            assert_eq!(parse_utc(text).map(format_utc).as_deref(), Some(text));
        }
        assert_eq!(format_utc(i64::MAX), "9999-12-31T23:59:59.999Z");
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
            prop_assert_eq!(parse_utc(&format_utc(ms)), Some(ms));
        }

        #[test]
        fn any_number_is_formatted_as_a_valid_time(ms in any::<i64>()) {
            prop_assert!(parse_utc(&format_utc(ms)).is_some());
        }

        #[test]
        fn no_text_causes_a_panic(text in any::<String>()) {
            let _ = parse_utc(&text);
        }
    }
}
