//! Warnings about metric patterns that cut numbers: `([0-9.]+)` captures `1` of `1e-11`.
//!
//! Sample lines reveal such a pattern in a request. The lines of a log reveal it directly.

mod probe;

use serde_json::json;
use wire::events::logs::Cut;
use wire::request::{NUMBER_PATTERN, Request};

use crate::text::short;
use crate::warning::{Code, Warning};

const NAME_CHARACTERS: usize = 60;
const LINE_CHARACTERS: usize = 120;

/// Returns a warning for each metric of the request whose pattern cuts a sample number.
pub(crate) fn warnings(request: &Request) -> Vec<Warning> {
    let of_one = |own: &Request| {
        let cut = own.metric_patterns().filter_map(|(metric, regex)| sample(metric, regex));
        cut.map(|warning| warning.of_definition(own.own_name())).collect::<Vec<_>>()
    };
    request.definitions().flat_map(of_one).collect()
}

/// Returns the warning, if the pattern of the metric cuts a sample number.
pub(crate) fn sample(metric: &str, regex: &str) -> Option<Warning> {
    let cut = probe::cut(regex)?;
    let lost = match cut.captured.parse::<f64>() {
        Ok(_) => format!("{} would be read as {}", cut.whole, cut.captured),
        Err(_) => "the value would be lost".to_owned(),
    };
    let message = format!(
        "The Regex of metric '{}' cuts numbers: in a line such as \"{}\" it captures '{}', so {lost}.",
        short(metric, NAME_CHARACTERS),
        short(&cut.line, LINE_CHARACTERS),
        cut.captured
    );
    Some(Warning::new(Code::NumberCut, message, advice(regex)))
}

pub(crate) fn log_line(metric: &str, regex: &str, cut: &Cut) -> Warning {
    let message = format!(
        "The Regex of metric '{}' cuts a number in the log: in the line \"{}\" it captures '{}' of {}.",
        short(metric, NAME_CHARACTERS),
        cut.excerpt(),
        short(&cut.captured, NAME_CHARACTERS),
        short(&cut.whole, NAME_CHARACTERS)
    );
    Warning::new(Code::NumberCutInLog, message, advice(regex))
}

/// Returns how to change the pattern. Names a complete pattern only if it reads every sample number.
fn advice(regex: &str) -> String {
    let use_for = |pattern: &str| format!("'{pattern}' (in JSON {})", json!(pattern));
    match probe::repaired(regex) {
        Some(repaired) => {
            format!("Use the Regex {}: it reads numbers with sign and exponent whole.", use_for(&repaired))
        }
        None => format!(
            "Capture the whole number with {}, directly after the text before it, for example {}.",
            use_for(NUMBER_PATTERN),
            use_for(&format!("loss={NUMBER_PATTERN}"))
        ),
    }
}

#[cfg(test)]
mod tests;
