//! `docs/REFERENCE.md` has every metric and every type of error, as they are in the tables of the code, and no other.

use lambda::telemetry::ErrorType;
use lambda::telemetry::metrics::{self, Metric, Unit};

/// Returns the rows of the table with the header `head`.
fn rows(head: &str) -> Vec<&'static str> {
    let text = include_str!("../../../docs/REFERENCE.md");
    let after = text.split_once(head).unwrap_or_else(|| panic!("no table {head}")).1;
    after.lines().skip(2).take_while(|line| line.starts_with('|')).collect()
}

#[test]
fn the_documented_metrics_match_the_code() {
    let row = |Metric { name, unit, emitted_by, meaning }: &Metric| {
        let unit = match unit {
            Unit::Count => "count",
            Unit::Milliseconds => "ms",
        };
        let functions: Vec<String> = emitted_by.iter().map(|function| format!("`{function}`")).collect();
        format!("| `{name}` | {unit} | {} | {meaning} |", functions.join(", "))
    };
    assert_eq!(
        rows("| metric | unit | emitted by | means |"),
        metrics::ALL.iter().map(row).collect::<Vec<_>>()
    );
}

#[test]
fn the_documented_error_types_match_the_code() {
    let row = |error: &ErrorType| format!("| `{error}` | {} |", error.meaning());
    assert_eq!(rows("| type | means |"), ErrorType::ALL.iter().map(row).collect::<Vec<_>>());
}
