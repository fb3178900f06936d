//! The parameter ranges of a request as a search space.
//!
//! The order of parameters is that of the API's lists: integer, continuous, categorical, each in the order given. It
//! is part of what a stored tuning means and never changes.

use search::{Domain, Parameter, ScalingType, Space};
use serde_json::Value;

use super::Request;

const RANGES: &str = "HyperParameterTuningJobConfig.ParameterRanges";

/// A range that makes no parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeError {
    /// Path of the member at fault.
    pub(crate) path: String,
    /// What is wrong with it.
    pub(crate) message: String,
}

/// Reads the domain of a range.
type Reader = fn(&Value) -> Result<Domain, RangeError>;

/// The parameters that can be read, and what is wrong with the others.
pub(crate) fn parameters(request: &Request) -> (Vec<Parameter>, Vec<RangeError>) {
    let mut found = Vec::new();
    let mut wrong = Vec::new();
    let kinds: [(&str, Reader); 3] = [
        ("IntegerParameterRanges", integer),
        ("ContinuousParameterRanges", continuous),
        ("CategoricalParameterRanges", categorical),
    ];
    for (kind, domain) in kinds {
        for (index, range) in request.list(&format!("{RANGES}.{kind}")).iter().enumerate() {
            let read = domain(range).and_then(|domain| checked(text(range, "Name"), domain));
            match read {
                Ok(parameter) => found.push(parameter),
                Err(RangeError { path, message }) => {
                    let dot = if path.is_empty() { "" } else { "." };
                    wrong.push(RangeError { path: format!("{RANGES}.{kind}[{index}]{dot}{path}"), message });
                }
            }
        }
    }
    (found, wrong)
}

/// The parameter, if it makes a space on its own.
fn checked(name: &str, domain: Domain) -> Result<Parameter, RangeError> {
    let parameter = Parameter { name: name.to_owned(), domain };
    match Space::new(vec![parameter.clone()]) {
        Ok(_) => Ok(parameter),
        Err(error) => {
            let message =
                format!("The range of '{}' is not allowed: {}", super::metric::shortened(name), error.rule);
            Err(RangeError { path: String::new(), message })
        }
    }
}

fn integer(range: &Value) -> Result<Domain, RangeError> {
    let (min, max) =
        (number(range, "MinValue", "a whole number")?, number(range, "MaxValue", "a whole number")?);
    Ok(Domain::Integer { min, max, scaling: scaling(range).resolve_integer(min, max) })
}

fn continuous(range: &Value) -> Result<Domain, RangeError> {
    let (min, max) = (number(range, "MinValue", "a number")?, number(range, "MaxValue", "a number")?);
    Ok(Domain::Continuous { min, max, scaling: scaling(range).resolve(min, max) })
}

#[expect(clippy::unnecessary_wraps, reason = "one of three readers with the same signature")]
fn categorical(range: &Value) -> Result<Domain, RangeError> {
    let values = range.get("Values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(Domain::Categorical { values: values.iter().filter_map(Value::as_str).map(str::to_owned).collect() })
}

fn number<N: std::str::FromStr>(range: &Value, member: &str, kind: &str) -> Result<N, RangeError> {
    let given = text(range, member);
    given.trim().parse().map_err(|_| {
        let message = format!("Value '{}' is not {kind}", super::metric::shortened(given));
        RangeError { path: member.to_owned(), message }
    })
}

fn scaling(range: &Value) -> ScalingType {
    match text(range, "ScalingType") {
        "Linear" => ScalingType::Linear,
        "Logarithmic" => ScalingType::Logarithmic,
        "ReverseLogarithmic" => ScalingType::ReverseLogarithmic,
        _ => ScalingType::Auto,
    }
}

fn text<'a>(range: &'a Value, member: &str) -> &'a str {
    range.get(member).and_then(Value::as_str).unwrap_or_default()
}
