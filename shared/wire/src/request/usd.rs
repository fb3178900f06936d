//! Converts between JSON numbers of dollars and whole micro-dollars.
//!
//! A JSON number is read through its shortest decimal text, which equals what the user typed for up to 15 digits. There
//! is no floating-point arithmetic. Prices are rounded up and caps are rounded down, so rounding never exceeds a cap.

use serde_json::{Number, Value};
use tuning::unit::money::MicroUsd;

/// Decimal places of a micro-dollar.
const PLACES: i64 = 6;

/// Returns the micro-dollars of a number of dollars, rounded up. `None` if the number is negative or does not fit.
///
/// ```
/// let price = serde_json::Number::from_f64(0.7364).unwrap();
/// assert_eq!(wire::request::micro_usd_up(&price), Some(736_400));
/// ```
pub fn micro_usd_up(number: &Number) -> Option<u64> {
    let (whole, exact) = micro(&number.to_string())?;
    if exact { Some(whole) } else { whole.checked_add(1) }
}

/// Returns the micro-dollars of a number of dollars, rounded down. `None` if the number is negative or does not fit.
pub fn micro_usd_down(number: &Number) -> Option<u64> {
    micro(&number.to_string()).map(|(whole, _)| whole)
}

/// Returns a JSON number of dollars with up to six decimals. It is exact below eight billion dollars (the spacing of
/// floats).
pub fn usd(amount: MicroUsd) -> Value {
    decimal(amount.0, 1_000_000, 6)
}

/// Returns `amount / unit` as a JSON number, computed through its decimal text.
pub(crate) fn decimal(amount: u64, unit: u64, places: usize) -> Value {
    let whole = amount / unit;
    let rest = amount % unit;
    if rest == 0 {
        return Value::from(whole);
    }
    let text = format!("{whole}.{rest:0places$}");
    text.parse::<f64>().ok().and_then(Number::from_f64).map_or_else(|| Value::from(whole), Value::Number)
}

/// Returns the micro-dollars of a decimal text, rounded down, and whether the result is exact.
fn micro(text: &str) -> Option<(u64, bool)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(PLACES)?;
    let power = u32::try_from(scale.unsigned_abs()).ok().and_then(|places| 10_u128.checked_pow(places));
    match (scale >= 0, power) {
        _ if digits == 0 => Some((0, true)),
        (true, Some(power)) => Some((u64::try_from(digits.checked_mul(power)?).ok()?, true)),
        (true, None) => None,
        (false, Some(power)) => Some((u64::try_from(digits / power).ok()?, digits.is_multiple_of(power))),
        (false, None) => Some((0, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn dollars_are_converted_exactly_or_rounded_to_the_safe_side() {
        for (text, down, up) in [
            ("5", 5_000_000, 5_000_000),
            ("0.461", 461_000, 461_000),
            ("0.1", 100_000, 100_000),
            ("0.0000001", 0, 1),
            ("1e-40", 0, 1),
            ("1.0000015", 1_000_001, 1_000_002),
            ("1e9", 1_000_000_000_000_000, 1_000_000_000_000_000),
            ("999999999.999999", 999_999_999_999_999, 999_999_999_999_999),
            ("0", 0, 0),
            ("0.0", 0, 0),
        ] {
            assert_eq!(micro_usd_down(&number(text)), Some(down), "{text}");
            assert_eq!(micro_usd_up(&number(text)), Some(up), "{text}");
        }
    }

    #[test]
    fn negative_and_too_large_numbers_are_rejected() {
        for text in ["-1", "-0.5", "1e14", "1e300", "18446744073709551615"] {
            assert_eq!(micro_usd_up(&number(text)), None, "{text}");
        }
    }

    #[test]
    fn amounts_are_written_without_floating_point_noise() {
        for (micro, text) in [
            (0, "0"),
            (1, "0.000001"),
            (100_000, "0.1"),
            (300_000, "0.3"),
            (4_210_001, "4.210001"),
            (5_000_000, "5"),
            (999_999_999_999_999, "999999999.999999"),
        ] {
            let shown = usd(MicroUsd(micro)).to_string();
            // serde_json writes one micro-dollar as 1e-6.
            assert!(shown == text || (micro == 1 && shown == "1e-6"), "{shown} {text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_written_amount_reads_back_unchanged(micro in 0_u64..8_000_000_000_000_000) {
            let Value::Number(number) = usd(MicroUsd(micro)) else { panic!("a number") };
            proptest::prop_assert_eq!(micro_usd_down(&number), Some(micro));
            proptest::prop_assert_eq!(micro_usd_up(&number), Some(micro));
        }
    }
}
