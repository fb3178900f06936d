//! Formats values and amounts, and removes control characters.

use tuning::unit::money::MicroUsd;

/// Replaces control characters in text from outside the program (logs, failure reasons, names), because they could move
/// the terminal's cursor.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() && letter != '\n' { '\u{fffd}' } else { letter })
        .collect()
}

/// Returns the first line of a text, shortened to `characters`.
pub fn short(text: &str, characters: usize) -> String {
    let line = clean(text.trim().lines().next().unwrap_or_default());
    if line.chars().count() <= characters {
        return line;
    }
    let kept: String = line.chars().take(characters.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Returns an amount such as `$1.2500`.
pub fn usd(amount: MicroUsd) -> String {
    format!("${amount}")
}

/// Returns a metric value with six significant digits.
pub fn value(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if !(1e-4..1e9).contains(&magnitude) {
        return format!("{value:.4e}");
    }
    let decimals = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5].iter().filter(|power| magnitude < **power * 10.0).count();
    let places = if magnitude < 1.0 { 6 } else { decimals.saturating_sub(1) };
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Like [`value`], but returns `-` for `None`.
pub fn maybe(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_six_significant_digits_and_no_trailing_zeros() {
        for (number, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (0.912_345_678, "0.912346"),
            (1.25, "1.25"),
            (12.345_678_9, "12.3457"),
            (123_456.789, "123457"),
            (1_000_000.0, "1000000"),
            (-0.25, "-0.25"),
            (0.000_012_345, "1.2345e-5"),
            (2.5e12, "2.5000e12"),
            (100.0, "100"),
        ] {
            assert_eq!(value(number), text, "{number}");
        }
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(clean("a\x1b[2Jb\rc\nd"), "a\u{fffd}[2Jb\u{fffd}c\nd");
        assert_eq!(short("first line\nsecond", 80), "first line");
        assert_eq!(short("abcdef", 4), "abc…");
    }
}
