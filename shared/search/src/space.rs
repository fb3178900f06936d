//! The search space: parameters, their domains and scaling, and a configuration drawn from them.
//!
//! The rest of the service stores these types and passes them on. Ranges are already parsed from the strings of a
//! request; a [`Space`] is always valid, also when it is read from storage.
//!
//! Neither the order of parameters nor the meaning of a stored value may ever change. The coordinate of a parameter is
//! its position in the order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// The maximum of parameters in one space (`ParameterRanges` of SageMaker's `CreateHyperParameterTuningJob`).
pub const PARAMETERS_MAX: usize = 30;
/// The maximum of values of one categorical parameter (`CategoricalParameterRange.Values` of the same request).
pub const CATEGORIES_MAX: usize = 30;
/// The ratio of the bounds from which [`ScalingType::Auto`] is logarithmic. This is our choice: SageMaker's is not
/// published.
pub const AUTO_LOGARITHMIC_RATIO: i64 = 1000;

/// How the unit interval is mapped to a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// Uniform in x.
    Linear,
    /// Uniform in ln x. Needs x > 0.
    Logarithmic,
    /// Uniform in ln(1 - x). Needs 0 <= x < 1; continuous ranges only.
    ReverseLogarithmic,
}

/// The scaling that a request asks for. It resolves to a [`Scaling`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScalingType {
    /// Logarithmic if the bounds are positive and at least [`AUTO_LOGARITHMIC_RATIO`] apart, else linear.
    #[default]
    Auto,
    /// See [`Scaling::Linear`].
    Linear,
    /// See [`Scaling::Logarithmic`].
    Logarithmic,
    /// See [`Scaling::ReverseLogarithmic`].
    ReverseLogarithmic,
}

impl ScalingType {
    /// Returns the scaling of a continuous range. [`Space::new`] checks whether it suits the range.
    #[must_use]
    pub fn resolve(self, min: f64, max: f64) -> Scaling {
        const RATIO: f64 = 1000.0;
        self.resolve_if(min > 0.0 && max / min >= RATIO)
    }

    /// Returns the scaling of an integer range, by integer division.
    #[must_use]
    pub fn resolve_integer(self, min: i64, max: i64) -> Scaling {
        self.resolve_if(min > 0 && max / min >= AUTO_LOGARITHMIC_RATIO)
    }

    fn resolve_if(self, wide: bool) -> Scaling {
        match self {
            Self::Auto if wide => Scaling::Logarithmic,
            Self::Auto | Self::Linear => Scaling::Linear,
            Self::Logarithmic => Scaling::Logarithmic,
            Self::ReverseLogarithmic => Scaling::ReverseLogarithmic,
        }
    }
}

/// The values of one parameter. Both bounds belong to the range and may be equal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Domain {
    /// Integers.
    Integer {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
        /// Linear, or logarithmic with `min >= 1`.
        scaling: Scaling,
    },
    /// Finite floating-point numbers.
    Continuous {
        /// The minimum.
        min: f64,
        /// The maximum.
        max: f64,
        /// Any scaling; logarithmic needs `min > 0`, reverse-logarithmic `0 <= min` and `max < 1`.
        scaling: Scaling,
    },
    /// One of 1..=[`CATEGORIES_MAX`] texts, all equally likely.
    Categorical {
        /// The texts, in the order of the request.
        values: Vec<String>,
    },
    /// One of 1..=[`CATEGORIES_MAX`] texts with an order, all equally likely.
    Ordinal {
        /// The texts, in their order.
        values: Vec<String>,
    },
}

/// A named domain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// The name, unique in its space.
    pub name: String,
    /// The domain.
    pub domain: Domain,
}

/// A valid search space: 1..=[`PARAMETERS_MAX`] parameters in the given order. Stored as a list of parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Parameter>", into = "Vec<Parameter>")]
pub struct Space {
    parameters: Vec<Parameter>,
}

impl Space {
    /// Checks the parameters and keeps their order. Returns the first broken rule, in that order, as the error.
    pub fn new(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        if parameters.is_empty() || parameters.len() > PARAMETERS_MAX {
            let rule = SpaceRule::ParameterCount { count: parameters.len() };
            return Err(SpaceError { parameter: None, rule });
        }
        let mut names = BTreeSet::new();
        for Parameter { name, domain } in &parameters {
            let unique = if names.insert(name) { Ok(()) } else { Err(SpaceRule::NameRepeated) };
            unique
                .and_then(|()| domain.check())
                .map_err(|rule| SpaceError { parameter: Some(name.clone()), rule })?;
        }
        Ok(Self { parameters })
    }

    /// Returns the parameters in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Returns the number of coordinates of a point: one for each parameter.
    pub fn dimensions(&self) -> usize {
        self.parameters.len()
    }

    /// Returns for each coordinate whether its values have no order.
    pub(crate) fn categories(&self) -> Vec<bool> {
        let is_category = |parameter: &Parameter| matches!(parameter.domain, Domain::Categorical { .. });
        self.parameters.iter().map(is_category).collect()
    }

    /// Returns the number of configurations: `None` if a continuous range has different bounds, `u64::MAX` if there
    /// are that many or more. A category listed twice counts twice.
    pub fn cardinality(&self) -> Option<u64> {
        self.parameters.iter().try_fold(1_u64, |product, parameter| {
            let count = match &parameter.domain {
                Domain::Integer { min, max, .. } => max.abs_diff(*min).saturating_add(1),
                Domain::Continuous { min, max, .. } if min < max => return None,
                Domain::Continuous { .. } => 1,
                Domain::Categorical { values } | Domain::Ordinal { values } => {
                    u64::try_from(values.len()).unwrap_or(u64::MAX)
                }
            };
            Some(product.saturating_mul(count))
        })
    }

    /// Returns combination `index` of a space of categorical parameters, in which the values of the last parameter change
    /// first. Beyond the last combination it starts again from the first. Of another parameter it takes the middle of
    /// the range.
    ///
    /// ```
    /// use search::{Domain, Parameter, Space};
    /// let values = |values: &[&str]| Domain::Categorical { values: values.iter().map(|v| (*v).to_owned()).collect() };
    /// let parameter = |name: &str, domain| Parameter { name: name.to_owned(), domain };
    /// let space = Space::new(vec![
    ///     parameter("optimizer", values(&["sgd", "adam"])),
    ///     parameter("depth", values(&["2", "4", "8"])),
    /// ])?;
    /// assert_eq!(space.cardinality(), Some(6));
    /// let of = |index| space.combination(index).iter().map(|(_, value)| value.to_owned()).collect::<Vec<_>>();
    /// assert_eq!(of(0), ["2", "sgd"]);    // a configuration lists its names in alphabetical order
    /// assert_eq!(of(1), ["4", "sgd"]);
    /// assert_eq!(of(5), ["8", "adam"]);
    /// # Ok::<(), search::SpaceError>(())
    /// ```
    pub fn combination(&self, index: u64) -> Configuration {
        let mut rest = index;
        let mut value = |domain: &Domain| match domain {
            Domain::Categorical { values } | Domain::Ordinal { values } => {
                let count = u64::try_from(values.len()).unwrap_or(u64::MAX).max(1);
                let value = usize::try_from(rest % count).ok().and_then(|here| values.get(here));
                rest /= count;
                value.cloned().unwrap_or_default()
            }
            Domain::Integer { .. } | Domain::Continuous { .. } => domain.value(0.5),
        };
        let last_first = self.parameters.iter().rev();
        Configuration(
            last_first.map(|parameter| (parameter.name.clone(), value(&parameter.domain))).collect(),
        )
    }

    /// Returns the configuration at a point of the unit cube.
    ///
    /// `point` has [`Self::dimensions`] coordinates, in order. Each is read to 53 bits and clipped into [0, 1]; NaN
    /// counts as 0. A greater coordinate never gives a smaller number.
    ///
    /// # Panics
    /// If `point` has another length.
    pub fn decode(&self, point: &[f64]) -> Configuration {
        assert_eq!(point.len(), self.dimensions(), "a point needs one coordinate for each parameter");
        let values = self.parameters.iter().zip(point);
        Configuration(
            values.map(|(parameter, u)| (parameter.name.clone(), parameter.domain.value(*u))).collect(),
        )
    }

    /// Returns a point that [`Self::decode`] converts back to the configuration. For integers and categories it is the
    /// center of their cell.
    ///
    /// The round trip is exact for every configuration that `decode` returned. Any other configuration within bounds
    /// returns with its numbers in normal form, changed by at most one coordinate step (2^-53).
    pub fn encode(&self, configuration: &Configuration) -> Result<Vec<f64>, EncodeError> {
        let error = |name: &str, rule| EncodeError { parameter: name.to_owned(), rule };
        if let Some(name) =
            configuration.0.keys().find(|name| self.parameters.iter().all(|p| p.name != **name))
        {
            return Err(error(name, EncodeRule::NotInSpace));
        }
        let coordinate = |Parameter { name, domain }: &Parameter| {
            let text = configuration.get(name).ok_or_else(|| error(name, EncodeRule::Missing))?;
            domain.coordinate(text).map_err(|rule| error(name, rule))
        };
        self.parameters.iter().map(coordinate).collect()
    }

    /// Returns a configuration with values for some parameters or all in the form that [`Self::decode`] gives them.
    ///
    /// ```
    /// use search::{Configuration, Domain, EncodeRule, Parameter, Scaling, Space};
    /// let domain = Domain::Continuous { min: 0.0, max: 1.0, scaling: Scaling::Linear };
    /// let space = Space::new(vec![Parameter { name: "rate".to_owned(), domain }])?;
    /// let given = |value: &str| Configuration([("rate".to_owned(), value.to_owned())].into());
    /// assert_eq!(space.normalized(&given("1e-3")), Ok(given("0.001")));
    /// assert_eq!(space.normalized(&given("7")).unwrap_err().rule, EncodeRule::OutOfDomain);
    /// assert_eq!(space.normalized(&Configuration::default()), Ok(Configuration::default()));
    /// # Ok::<(), search::SpaceError>(())
    /// ```
    pub fn normalized(&self, given: &Configuration) -> Result<Configuration, EncodeError> {
        let value = |(name, text): (&str, &str)| {
            let error = |rule| EncodeError { parameter: name.to_owned(), rule };
            let mut parameters = self.parameters.iter();
            let parameter = parameters.find(|parameter| parameter.name == name);
            let domain = &parameter.ok_or_else(|| error(EncodeRule::NotInSpace))?.domain;
            domain.normalized(text).map(|text| (name.to_owned(), text)).map_err(error)
        };
        given.iter().map(value).collect::<Result<_, _>>().map(Configuration)
    }
}

impl TryFrom<Vec<Parameter>> for Space {
    type Error = SpaceError;

    fn try_from(parameters: Vec<Parameter>) -> Result<Self, SpaceError> {
        Self::new(parameters)
    }
}

impl From<Space> for Vec<Parameter> {
    fn from(space: Space) -> Self {
        space.parameters
    }
}

impl Domain {
    fn check(&self) -> Result<(), SpaceRule> {
        match self {
            Self::Integer { min, max, scaling } => match scaling {
                _ if min > max => Err(SpaceRule::BoundsReversed),
                Scaling::ReverseLogarithmic => Err(SpaceRule::ReverseLogarithmicInteger),
                Scaling::Logarithmic if *min < 1 => Err(SpaceRule::LogarithmicNotPositive),
                Scaling::Linear | Scaling::Logarithmic => Ok(()),
            },
            Self::Continuous { min, max, scaling } => match scaling {
                _ if !min.is_finite() || !max.is_finite() => Err(SpaceRule::BoundNotFinite),
                _ if min > max => Err(SpaceRule::BoundsReversed),
                Scaling::Logarithmic if *min <= 0.0 => Err(SpaceRule::LogarithmicNotPositive),
                Scaling::ReverseLogarithmic if *min < 0.0 || *max >= 1.0 => {
                    Err(SpaceRule::ReverseLogarithmicNotInUnit)
                }
                Scaling::Linear | Scaling::Logarithmic | Scaling::ReverseLogarithmic => Ok(()),
            },
            Self::Categorical { values } | Self::Ordinal { values } => match values.len() {
                1..=CATEGORIES_MAX => Ok(()),
                count => Err(SpaceRule::CategoryCount { count }),
            },
        }
    }
}

/// A chosen value for each parameter, as the strings that SageMaker passes to a training job, by name.
///
/// Integers are plain (`"7"`). A continuous value is the shortest decimal that parses to the same number, without an
/// exponent (`"0.25"`, `"1"`). Categories are unchanged. Stored as a JSON object.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Configuration(pub BTreeMap<String, String>);

impl Configuration {
    /// Returns the value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the configuration with the values that `given` has for some parameters or all.
    #[must_use]
    pub fn with(mut self, given: &Self) -> Self {
        self.0.extend(given.0.iter().map(|(name, value)| (name.clone(), value.clone())));
        self
    }

    /// Returns names and values, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Why parameters make no space. The request is invalid: report it as a validation error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceError {
    /// The name of the invalid parameter; `None` if the list as a whole is invalid.
    pub parameter: Option<String>,
    /// The broken rule.
    pub rule: SpaceRule,
}

impl fmt::Display for SpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.parameter {
            Some(name) => write!(f, "parameter {name:?}: {}", self.rule),
            None => self.rule.fmt(f),
        }
    }
}

impl std::error::Error for SpaceError {}

/// A rule of a [`Space`]. Its text describes how it was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpaceRule {
    /// 1..=[`PARAMETERS_MAX`] parameters.
    ParameterCount {
        /// The number of parameters.
        count: usize,
    },
    /// Names are unique.
    NameRepeated,
    /// `min <= max`.
    BoundsReversed,
    /// Bounds are finite.
    BoundNotFinite,
    /// Logarithmic scaling needs a positive range.
    LogarithmicNotPositive,
    /// Reverse-logarithmic scaling is for continuous ranges only.
    ReverseLogarithmicInteger,
    /// Reverse-logarithmic scaling needs `0 <= min` and `max < 1`.
    ReverseLogarithmicNotInUnit,
    /// 1..=[`CATEGORIES_MAX`] categories.
    CategoryCount {
        /// The number of categories.
        count: usize,
    },
}

impl fmt::Display for SpaceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ParameterCount { count } => {
                write!(f, "a search space needs 1 to {PARAMETERS_MAX} parameters, but has {count}")
            }
            Self::NameRepeated => f.write_str("the name is used more than once"),
            Self::BoundsReversed => f.write_str("the minimum is greater than the maximum"),
            Self::BoundNotFinite => f.write_str("the bounds must be finite numbers"),
            Self::LogarithmicNotPositive => {
                f.write_str("logarithmic scaling needs a minimum greater than 0 (1 for integers)")
            }
            Self::ReverseLogarithmicInteger => {
                f.write_str("reverse logarithmic scaling is for continuous parameters only")
            }
            Self::ReverseLogarithmicNotInUnit => {
                f.write_str("reverse logarithmic scaling needs a range within 0 <= x < 1")
            }
            Self::CategoryCount { count } => {
                write!(f, "a categorical parameter needs 1 to {CATEGORIES_MAX} values, but has {count}")
            }
        }
    }
}

/// Why a configuration has no point in a space, for example one of an earlier tuning with other ranges. The caller
/// skips it or reports it to the user; a retry does not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeError {
    /// The name of the invalid parameter.
    pub parameter: String,
    /// The broken rule.
    pub rule: EncodeRule,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.rule {
            EncodeRule::Missing => "has no value",
            EncodeRule::NotInSpace => "is not a parameter of the search space",
            EncodeRule::NotANumber => "has a value that is not an integer or a finite number",
            EncodeRule::OutOfDomain => "has a value outside its range or list of values",
        };
        write!(f, "parameter {:?} {text}", self.parameter)
    }
}

impl std::error::Error for EncodeError {}

/// A rule of [`Space::encode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeRule {
    /// The configuration lacks a parameter of the space.
    Missing,
    /// The configuration names a parameter that the space lacks.
    NotInSpace,
    /// The text is not an integer, or not a finite number.
    NotANumber,
    /// The value is outside the bounds, or not one of the categories.
    OutOfDomain,
}
