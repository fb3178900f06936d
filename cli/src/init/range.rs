//! Ranges of the command line, such as `lr=log:1e-5..1e-1`.

use std::str::FromStr;

use serde_json::{Value, json};

use crate::check::is_rarely_small;

const FORMS: &str = "expected NAME=MIN..MAX, NAME=int:MIN..MAX, NAME=log:MIN..MAX or NAME=choice:A,B";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    name: String,
    values: Values,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Values {
    /// Bounds as given, and whether they are whole numbers on a logarithmic scale.
    Numbers {
        min: String,
        max: String,
        whole: bool,
        logarithmic: bool,
    },
    Choice(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    Chosen,
    Linear,
    Logarithmic,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, mut rest) = text.split_once('=').ok_or(FORMS)?;
        let name = name.trim();
        if name.is_empty() {
            return Err(FORMS.to_owned());
        }
        if let Some(values) = rest.strip_prefix("choice:") {
            return Ok(Self { name: name.to_owned(), values: choice(values)? });
        }
        let (mut whole, mut scale) = (false, Scale::Chosen);
        loop {
            if let Some(after) = rest.strip_prefix("int:") {
                (whole, rest) = (true, after);
            } else if let Some(after) = rest.strip_prefix("log:") {
                (scale, rest) = (Scale::Logarithmic, after);
            } else if let Some(after) = rest.strip_prefix("linear:") {
                (scale, rest) = (Scale::Linear, after);
            } else {
                break;
            }
        }
        let (min, max) = rest.split_once("..").ok_or(FORMS)?;
        Ok(Self { name: name.to_owned(), values: numbers(name, min.trim(), max.trim(), whole, scale)? })
    }
}

fn choice(text: &str) -> Result<Values, String> {
    let values: Vec<String> = text.split(',').map(|value| value.trim().to_owned()).collect();
    let is_repeated = |value: &String| values.iter().filter(|other| *other == value).count() > 1;
    if values.len() < 2 || values.iter().any(|value| value.is_empty() || is_repeated(value)) {
        return Err("expected two or more different values, for example choice:relu,tanh".to_owned());
    }
    Ok(Values::Choice(values))
}

fn numbers(name: &str, min: &str, max: &str, whole: bool, scale: Scale) -> Result<Values, String> {
    let is_whole = |text: &str| text.parse::<i64>().is_ok();
    if whole && !(is_whole(min) && is_whole(max)) {
        return Err("expected whole numbers after int:, for example int:2..10".to_owned());
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let (Some(low), Some(high)) = (number(min), number(max)) else {
        return Err("expected numbers, for example 0.1..0.5 or 1e-5..1e-1".to_owned());
    };
    if low >= high {
        return Err(format!("expected a minimum below the maximum, but {min} is not below {max}"));
    }
    if !whole && is_whole(min) && is_whole(max) {
        return Err(format!(
            "expected int:{min}..{max} for whole numbers, or {min}.0..{max}.0 for all numbers"
        ));
    }
    let logarithmic = match scale {
        Scale::Logarithmic if low <= 0.0 => {
            return Err(format!(
                "expected a minimum above 0 after log:, but found {min}; for example log:1e-5..{max}"
            ));
        }
        Scale::Logarithmic => true,
        Scale::Linear => false,
        Scale::Chosen if low <= 0.0 && is_rarely_small(name, low, high) => {
            return Err(format!(
                "expected a minimum above 0 for a learning rate or penalty, for example log:1e-5..{max}; write \
                 linear:{min}..{max} to keep the range"
            ));
        }
        Scale::Chosen => is_rarely_small(name, low, high),
    };
    Ok(Values::Numbers { min: min.to_owned(), max: max.to_owned(), whole, logarithmic })
}

impl Range {
    /// Returns the list of the request to which the range belongs.
    pub(super) fn list(&self) -> &'static str {
        match &self.values {
            Values::Numbers { whole: true, .. } => "IntegerParameterRanges",
            Values::Numbers { whole: false, .. } => "ContinuousParameterRanges",
            Values::Choice(_) => "CategoricalParameterRanges",
        }
    }

    pub(super) fn members(&self) -> Vec<(&'static str, Value)> {
        let name = ("Name", json!(self.name));
        match &self.values {
            Values::Numbers { min, max, logarithmic, .. } => vec![
                name,
                ("MinValue", json!(min)),
                ("MaxValue", json!(max)),
                ("ScalingType", json!(if *logarithmic { "Logarithmic" } else { "Linear" })),
            ],
            Values::Choice(values) => vec![name, ("Values", json!(values))],
        }
    }

    /// Returns the number of values; `None` if it is not limited.
    pub(super) fn count(&self) -> Option<u64> {
        match &self.values {
            Values::Numbers { min, max, whole: true, .. } => {
                let (min, max) = (min.parse::<i64>().ok()?, max.parse::<i64>().ok()?);
                Some(max.abs_diff(min).saturating_add(1))
            }
            Values::Numbers { .. } => None,
            Values::Choice(values) => u64::try_from(values.len()).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(text: &str) -> (&'static str, Value) {
        let range: Range = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        (range.list(), range.members().last().unwrap().1.clone())
    }

    #[test]
    fn the_scale_follows_from_the_prefix_the_name_and_the_bounds() {
        let (integer, continuous) = ("IntegerParameterRanges", "ContinuousParameterRanges");
        for (text, list, scaling) in [
            ("lr=log:1e-5..1e-1", continuous, "Logarithmic"),
            ("lr=1e-5..1e-1", continuous, "Logarithmic"),
            ("lr=linear:1e-5..1e-1", continuous, "Linear"),
            ("lr=0.1..0.5", continuous, "Linear"),
            ("dropout=0..0.5", continuous, "Linear"),
            ("momentum=0.0..1.0", continuous, "Linear"),
            ("depth=int:2..10", integer, "Linear"),
            ("units=int:1..1024", integer, "Logarithmic"),
            ("units=log:int:16..64", integer, "Logarithmic"),
        ] {
            assert_eq!(scale(text), (list, json!(scaling)), "{text}");
        }
        assert_eq!(scale("act=choice:relu, tanh"), ("CategoricalParameterRanges", json!(["relu", "tanh"])));
    }

    #[test]
    fn an_invalid_range_is_rejected_with_an_example() {
        for (text, expected) in [
            ("lr", "expected NAME=MIN..MAX"),
            ("=0..0.5", "expected NAME=MIN..MAX"),
            ("epochs=10", "expected NAME=MIN..MAX"),
            ("lr=a..b", "expected numbers"),
            ("lr=0.5..inf", "expected numbers"),
            ("depth=2..10", "expected int:2..10 for whole numbers, or 2.0..10.0 for all numbers"),
            ("depth=int:2..2.5", "expected whole numbers"),
            ("x=0.5..0.5", "0.5 is not below 0.5"),
            ("x=log:0..0.5", "expected a minimum above 0 after log:"),
            ("lr=0..0.5", "for example log:1e-5..0.5; write linear:0..0.5"),
            ("act=choice:relu", "two or more different values"),
            ("act=choice:relu,relu", "two or more different values"),
            ("act=choice:relu,", "two or more different values"),
        ] {
            let error = text.parse::<Range>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn only_whole_numbers_and_choices_are_counted() {
        let count = |text: &str| text.parse::<Range>().unwrap().count();
        assert_eq!(
            (count("a=int:2..10"), count("a=choice:x,y"), count("a=0..0.5")),
            (Some(9), Some(2), None)
        );
    }
}
