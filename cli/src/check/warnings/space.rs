//! Warnings about the parameter ranges.

use search::{Domain, Parameter, Scaling};
use wire::request::Request;

use crate::plan::uncapped;
use crate::warning::{Code, Warning};

/// Ratio of the bounds above which a linear scale rarely samples small values: 1 % of the samples are in the lowest
/// hundredth.
const LINEAR_RATIO: f64 = 100.0;
/// Like [`LINEAR_RATIO`], but for learning rates and penalties, which act on a logarithmic scale.
const RATE_RATIO: f64 = 10.0;
/// Names of learning rates and penalties.
const RATES: &[&str] = &[
    "lr",
    "eta",
    "learning_rate",
    "learning-rate",
    "learningrate",
    "weight_decay",
    "weight-decay",
    "wd",
    "l1",
    "l2",
];

pub(super) fn warnings(request: &Request) -> Vec<Warning> {
    let Ok(definition) = uncapped(request) else { return Vec::new() };
    definition.space.parameters().iter().filter_map(warning).collect()
}

fn warning(parameter: &Parameter) -> Option<Warning> {
    let name = &parameter.name;
    match &parameter.domain {
        Domain::Integer { min, max, .. } if min == max => Some(single(name, &min.to_string())),
        Domain::Continuous { min, max, .. } if min.to_bits() == max.to_bits() => {
            Some(single(name, &min.to_string()))
        }
        Domain::Categorical { values } => match values.as_slice() {
            [only] => Some(single(name, only)),
            values => repeated(name, values),
        },
        Domain::Integer { min, max, scaling: Scaling::Linear } => linear(name, float(*min), float(*max)),
        Domain::Continuous { min, max, scaling: Scaling::Linear } => linear(name, *min, *max),
        Domain::Integer { .. } | Domain::Continuous { .. } | Domain::Ordinal { .. } => None,
    }
}

fn single(name: &str, value: &str) -> Warning {
    Warning::new(
        Code::RangeOfOneValue,
        format!("The range of '{name}' has only the value {value}: all trials use it."),
        format!("Move '{name}' to StaticHyperParameters, or widen the range."),
    )
}

fn repeated(name: &str, values: &[String]) -> Option<Warning> {
    let twice = values
        .iter()
        .zip(1..)
        .find(|(value, next)| values.get(*next..).is_some_and(|rest| rest.contains(value)));
    twice.map(|(value, _)| {
        Warning::new(
            Code::CategoryRepeated,
            format!("The values of '{name}' contain '{value}' more than once: it is tried more often than the others."),
            "Remove the repetition.",
        )
    })
}

/// Returns whether a linear scale rarely samples the small values of a range that matter.
pub(crate) fn is_rarely_small(name: &str, min: f64, max: f64) -> bool {
    linear(name, min, max).is_some()
}

fn linear(name: &str, min: f64, max: f64) -> Option<Warning> {
    let lower = name.to_lowercase();
    let rate = RATES.contains(&lower.as_str()) || lower.ends_with("learning_rate");
    let wide = |ratio: f64| min > 0.0 && max / min > ratio;
    if wide(LINEAR_RATIO) {
        return Some(Warning::new(
            Code::LinearOverOrders,
            format!(
                "The range of '{name}' from {min} to {max} has a linear scale: small values are rarely sampled."
            ),
            "Set ScalingType to Logarithmic.",
        ));
    }
    if rate && wide(RATE_RATIO) {
        return Some(Warning::new(
            Code::LinearRate,
            format!(
                "'{name}' looks like a learning rate or a penalty, but its range from {min} to {max} has a linear \
                 scale: small values are rarely sampled."
            ),
            "Set ScalingType to Logarithmic.",
        ));
    }
    Warning::when(
        rate && min <= 0.0 && max > 0.0,
        Code::LinearRate,
        format!(
            "'{name}' looks like a learning rate or a penalty, but its range from {min} has a linear scale: small \
             values are rarely sampled."
        ),
        "Set MinValue above 0 and ScalingType to Logarithmic.",
    )
}

/// Converts an integer, clamped to 32 bits. That is precise enough for a ratio.
fn float(number: i64) -> f64 {
    f64::from(i32::try_from(number).unwrap_or(if number > 0 { i32::MAX } else { i32::MIN }))
}
