//! Converts the parameter ranges of a request to a search space.
//!
//! Parameters keep the order of the API's lists: integer, continuous, categorical, each in the order of the request. The
//! number of instances follows where the search chooses it.
//! Stored tunings depend on this order, so it must never change.

use std::str::FromStr;

use search::space::CATEGORIES_MAX;
use search::{Domain, Parameter, Space};
use tuning::definition::INSTANCE_COUNT;

use super::Request;
use super::fields::{ParameterRanges, Range};

const RANGES: &str = "HyperParameterTuningJobConfig.ParameterRanges";
const WHOLE_NUMBER: &str = "a whole number, for example '10'";
const NUMBER: &str = "a number, for example '0.001'";

/// The list that contains a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Continuous,
    Categorical,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeError {
    /// Path of the invalid field.
    pub(crate) path: String,
    /// The reason, with the expectation and an example.
    pub(crate) message: String,
}

impl Request {
    /// Returns the path of each range, and the range.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (String, Kind, &Range)> {
        let ParameterRanges { integer, continuous, categorical } = &self.fields.config.ranges;
        let lists = [
            ("IntegerParameterRanges", Kind::Integer, integer),
            ("ContinuousParameterRanges", Kind::Continuous, continuous),
            ("CategoricalParameterRanges", Kind::Categorical, categorical),
        ];
        lists.into_iter().flat_map(|(list, kind, ranges)| {
            let path = move |index| format!("{RANGES}.{list}[{index}]");
            ranges.iter().enumerate().map(move |(index, range)| (path(index), kind, range))
        })
    }
}

/// Returns the valid parameters and the errors of the others.
pub(crate) fn parameters(request: &Request) -> (Vec<Parameter>, Vec<RangeError>) {
    let mut found = Vec::new();
    let mut wrong = Vec::new();
    for (at, kind, range) in request.ranges() {
        let domain = match kind {
            Kind::Integer => integer(range),
            Kind::Continuous => continuous(range),
            Kind::Categorical => Ok(categorical(range)),
        };
        let name = range.name.as_deref().unwrap_or_default();
        match domain.and_then(|domain| checked(name, domain)) {
            Ok(parameter) => found.push(parameter),
            Err(RangeError { path, message }) => {
                let dot = if path.is_empty() { "" } else { "." };
                wrong.push(RangeError { path: format!("{at}{dot}{path}"), message });
            }
        }
    }
    let counts = request.instance_counts();
    if !counts.is_empty() && counts.len() <= CATEGORIES_MAX {
        let values = counts.iter().map(u32::to_string).collect();
        found.push(Parameter { name: INSTANCE_COUNT.to_owned(), domain: Domain::Ordinal { values } });
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

fn integer(range: &Range) -> Result<Domain, RangeError> {
    let (min, max) = bounds(range, WHOLE_NUMBER)?;
    Ok(Domain::Integer {
        min,
        max,
        scaling: range.scaling_type.unwrap_or_default().resolve_integer(min, max),
    })
}

fn continuous(range: &Range) -> Result<Domain, RangeError> {
    let (min, max) = bounds(range, NUMBER)?;
    Ok(Domain::Continuous { min, max, scaling: range.scaling_type.unwrap_or_default().resolve(min, max) })
}

fn categorical(range: &Range) -> Domain {
    Domain::Categorical { values: range.values.iter().flatten().cloned().collect() }
}

fn bounds<N: FromStr>(range: &Range, expected: &str) -> Result<(N, N), RangeError> {
    let number = |member: &str, given: &Option<String>| {
        let given = given.as_deref().unwrap_or_default();
        given.trim().parse().map_err(|_| {
            let shown = super::metric::shortened(given);
            let message = format!("Invalid {member} '{shown}': expected {expected}");
            RangeError { path: member.to_owned(), message }
        })
    };
    Ok((number("MinValue", &range.min_value)?, number("MaxValue", &range.max_value)?))
}
