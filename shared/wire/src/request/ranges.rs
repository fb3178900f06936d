//! Converts the parameter ranges of a request to a search space.
//!
//! Parameters keep the order of the API's lists: integer, continuous, categorical, each in the order of the request.
//! Stored tunings depend on this order, so it must never change.

use search::{Domain, Parameter, ScalingType, Space};
use serde_json::Value;

use super::Request;

const RANGES: &str = "HyperParameterTuningJobConfig.ParameterRanges";
const WHOLE_NUMBER: &str = "a whole number, for example '10'";
const NUMBER: &str = "a number, for example '0.001'";

/// An invalid range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeError {
    /// Path of the invalid field.
    pub(crate) path: String,
    /// The reason, with the expectation and an example.
    pub(crate) message: String,
}

/// Reads the domain of a range.
type Reader = fn(&Value) -> Result<Domain, RangeError>;

/// Returns the valid parameters and the errors of the others.
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

/// Returns the parameter if it forms a valid space on its own.
fn checked(name: &str, domain: Domain) -> Result<Parameter, RangeError> {
    let parameter = Parameter { name: name.to_owned(), domain };
    match Space::new(vec![parameter.clone()]) {
        Ok(_) => Ok(parameter),
        Err(error) => {
            let message =
                format!("Invalid range of parameter '{}': {}", super::metric::shortened(name), error.rule);
            Err(RangeError { path: String::new(), message })
        }
    }
}

fn integer(range: &Value) -> Result<Domain, RangeError> {
    let (min, max) = (number(range, "MinValue", WHOLE_NUMBER)?, number(range, "MaxValue", WHOLE_NUMBER)?);
    Ok(Domain::Integer { min, max, scaling: scaling(range).resolve_integer(min, max) })
}

fn continuous(range: &Value) -> Result<Domain, RangeError> {
    let (min, max) = (number(range, "MinValue", NUMBER)?, number(range, "MaxValue", NUMBER)?);
    Ok(Domain::Continuous { min, max, scaling: scaling(range).resolve(min, max) })
}

#[expect(clippy::unnecessary_wraps, reason = "one of three readers with the same signature")]
fn categorical(range: &Value) -> Result<Domain, RangeError> {
    let values = range.get("Values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    Ok(Domain::Categorical { values: values.iter().filter_map(Value::as_str).map(str::to_owned).collect() })
}

fn number<N: std::str::FromStr>(range: &Value, member: &str, expected: &str) -> Result<N, RangeError> {
    let given = text(range, member);
    given.trim().parse().map_err(|_| {
        let message = format!("Invalid {member} '{}': expected {expected}", super::metric::shortened(given));
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
