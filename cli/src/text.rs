//! Formats times, amounts and tables, and quotes arguments. `report::text` formats values and removes control
//! characters.

use std::fmt::Write;

use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::events::timestamp::civil;

pub(crate) use report::text::{clean, maybe, short, usd, value};

/// Returns an amount with all its digits, at least four decimals, so that the lines of a table add up.
pub(crate) fn exact(MicroUsd(amount): MicroUsd) -> String {
    let (dollars, rest) = (amount / 1_000_000, amount % 1_000_000);
    if rest % 100 == 0 { format!("${dollars}.{:04}", rest / 100) } else { format!("${dollars}.{rest:06}") }
}

/// Returns a duration such as `2 h 1 min`.
pub(crate) fn duration(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Returns a duration as `m:ss` or `h:mm:ss`.
pub(crate) fn clock(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Returns a date and time in UTC. `ms` are milliseconds since 1970.
pub(crate) fn utc(ms: i64) -> String {
    let time = civil(Time(ms));
    format!("{} {:.0} UTC", time.date(), time.time())
}

/// Returns the text of a cell of a table: a dash for a missing value.
pub(crate) fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// Returns a table with two spaces between columns. `right` lists the right-aligned columns.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>], right: &[usize]) -> String {
    let head: Vec<String> = head.iter().map(|&title| title.to_owned()).collect();
    let width = |column: usize| {
        let cells = std::iter::once(&head).chain(rows).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            // Writing to a string cannot fail.
            let _ = if right.contains(&column) {
                write!(line, "{gap}{cell:>width$}")
            } else {
                write!(line, "{gap}{cell:<width$}")
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns a number of things, such as `1 day` or `2 days`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Quotes an argument for a shell, if necessary.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+".contains(letter);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("train.py"), "train.py");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $x"), r"'it'\''s $x'");
    }

    #[test]
    fn times_are_civil_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(utc(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(utc(1_795_236_391_999), "2026-11-21 04:46:31 UTC");
        assert_eq!(utc(-1), "1969-12-31 23:59:59 UTC");
    }

    #[test]
    fn columns_are_aligned() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["bbb".to_owned(), "22".to_owned()]];
        assert_eq!(table(&["NAME", "N"], &rows, &[1]), "NAME   N\na      1\nbbb   22\n");
    }

    #[test]
    fn exact_amounts_add_up() {
        let exact = |amount| exact(MicroUsd(amount));
        assert_eq!(
            [exact(0), exact(64), exact(64 * 6), exact(100)],
            ["$0.0000", "$0.000064", "$0.000384", "$0.0001"]
        );
        assert_eq!(exact(12_345_670_000), "$12345.6700");
    }

    #[test]
    fn durations_have_at_most_two_units() {
        assert_eq!(duration(59_999), "59 s");
        assert_eq!(duration(61_000), "1 min 1 s");
        assert_eq!(duration(7_260_000), "2 h 1 min");
        assert_eq!((clock(61_000), clock(3_661_000)), ("1:01".to_owned(), "1:01:01".to_owned()));
    }
}
