//! Tables of recorded learning curves, and the nearest recorded configuration.

use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::GzDecoder;
use search::Configuration;
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;
use tuning::definition::INSTANCE_COUNT;

/// Largest table after decompression, in bytes.
const TABLE_BYTES_MAX: u64 = 256 << 20;
/// The first bytes of a gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Recorded learning curves over one space.
#[derive(Debug, Clone)]
pub struct Table {
    parameters: Vec<Parameter>,
    /// Whether a greater value is better.
    pub maximize: bool,
    /// The number of epochs of each curve.
    pub max_resource: u32,
    /// The recorded configurations, in the order of the file.
    pub rows: Vec<Row>,
}

/// A recorded configuration.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its place in the unit cube.
    point: Vec<f64>,
    /// The recorded seconds of an epoch.
    pub seconds_per_epoch: f64,
    /// The value after each epoch.
    pub values: Vec<f64>,
    /// The number of instances that trained it; `None` = the table has one size of cluster.
    count: Option<u32>,
}

#[derive(Debug, Clone, Deserialize)]
struct Parameter {
    name: String,
    min: f64,
    max: f64,
    #[serde(default)]
    scaling: Scaling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
enum Scaling {
    #[default]
    Linear,
    Logarithmic,
}

#[derive(Debug, Deserialize)]
struct SpaceFile {
    #[serde(rename = "type")]
    direction: String,
    max_resource: u32,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Deserialize)]
struct RowFile {
    hyperparameters: Map<String, Value>,
    seconds_per_epoch: f64,
    values: Vec<f64>,
    instance_count: Option<u32>,
}

/// Why a table could not be read, or has no answer.
#[derive(Debug, Error)]
pub enum TableError {
    /// The table could not be decompressed.
    #[error("cannot decompress the table: {0}")]
    Gzip(#[source] std::io::Error),
    /// The file of the space is not as expected.
    #[error("invalid space of the table: {0}")]
    Space(#[source] serde_json::Error),
    /// A line of the table is not as expected.
    #[error("invalid line {line} of the table: {why}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// The error in the line.
        why: String,
    },
    /// The table has no rows.
    #[error("the table has no rows: expected one JSON object a line")]
    Empty,
    /// With unique rows, a tuning has more trials than the table has rows.
    #[error(
        "each of the {0} rows of the table has answered a trial: set MaxNumberOfTrainingJobs to at most {0}, or simulate \
         without --unique-rows"
    )]
    UsedUp(usize),
    /// The table has no row with this number of instances.
    #[error(
        "the table has no curve of {0} instances: set InstanceCounts, or InstanceCount, to numbers that its rows have as \
         instance_count"
    )]
    UnknownCount(u32),
    /// The request tunes other hyperparameters than the table has.
    #[error(
        "the table has no hyperparameter {0}: expected ParameterRanges with the names of its .space.json"
    )]
    UnknownParameter(String),
}

impl Table {
    /// Reads a table from its lines, plain or compressed with gzip, and the JSON of its space.
    pub fn read(lines: &[u8], space: &[u8]) -> Result<Self, TableError> {
        let space: SpaceFile = serde_json::from_slice(space).map_err(TableError::Space)?;
        let mut text = Vec::new();
        if lines.starts_with(&GZIP_MAGIC) {
            GzDecoder::new(lines).take(TABLE_BYTES_MAX).read_to_end(&mut text).map_err(TableError::Gzip)?;
        } else {
            text.extend_from_slice(lines);
        }
        let mut rows = Vec::new();
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            if line.is_empty() {
                continue;
            }
            let wrong = |why: String| TableError::Line { line: number, why };
            let row: RowFile = serde_json::from_slice(line).map_err(|error| wrong(error.to_string()))?;
            let point: Option<Vec<f64>> = space
                .parameters
                .iter()
                .map(|parameter| {
                    Some(parameter.coordinate(row.hyperparameters.get(&parameter.name)?.as_f64()?))
                })
                .collect();
            let point = point.ok_or_else(|| wrong("a hyperparameter of the space is missing".to_owned()))?;
            if u32::try_from(row.values.len()).ok() != Some(space.max_resource) {
                return Err(wrong(format!("{} values: expected {}", row.values.len(), space.max_resource)));
            }
            if !(row.seconds_per_epoch.is_finite() && row.seconds_per_epoch > 0.0) {
                return Err(wrong("seconds_per_epoch must be above 0".to_owned()));
            }
            let RowFile { seconds_per_epoch, values, instance_count: count, .. } = row;
            rows.push(Row { point, seconds_per_epoch, values, count });
        }
        if rows.is_empty() {
            return Err(TableError::Empty);
        }
        let maximize = space.direction == "Maximize";
        Ok(Self { parameters: space.parameters, maximize, max_resource: space.max_resource, rows })
    }

    /// Returns the place of a configuration in the unit cube of the table. A hyperparameter of the table that it lacks
    /// is in the middle of its range.
    pub fn point(&self, configuration: &Configuration) -> Result<Vec<f64>, TableError> {
        let has_counts = !self.counts().is_empty();
        let is_known = |name: &str| {
            self.parameters.iter().any(|known| known.name == name) || (has_counts && name == INSTANCE_COUNT)
        };
        if let Some((name, _)) = configuration.iter().find(|(name, _)| !is_known(name)) {
            return Err(TableError::UnknownParameter(name.to_owned()));
        }
        let coordinate = |parameter: &Parameter| {
            let value = configuration.get(&parameter.name).and_then(|text| text.parse().ok());
            value.map_or(0.5, |value| parameter.coordinate(value))
        };
        Ok(self.parameters.iter().map(coordinate).collect())
    }

    /// Returns the numbers of instances of the rows, ascending; empty = the table has one size of cluster.
    pub fn counts(&self) -> Vec<u32> {
        let counts: BTreeSet<u32> = self.rows.iter().filter_map(|row| row.count).collect();
        counts.into_iter().collect()
    }

    /// Returns whether a row is of a cluster of `count` instances.
    pub fn is_of(&self, row: usize, count: u32) -> bool {
        self.rows.get(row).is_some_and(|row| row.count.is_none_or(|own| own == count))
    }

    /// Returns the index of the row nearest to `point` (Euclidean, the first on a tie) among those that `is_free` allows;
    /// `None` if it allows none.
    pub fn nearest(&self, point: &[f64], is_free: impl Fn(usize) -> bool) -> Option<usize> {
        let distance = |row: &Row| {
            row.point
                .iter()
                .zip(point)
                .map(|(a, b)| (a - b) * (a - b))
                .fold(0.0, |sum: f64, square| sum + square)
        };
        let mut best: Option<(f64, usize)> = None;
        for (index, row) in self.rows.iter().enumerate().filter(|(index, _)| is_free(*index)) {
            let here = distance(row);
            if best.is_none_or(|(least, _)| here < least) {
                best = Some((here, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// Returns the difference between the best value of the best row and that of the median row.
    pub fn spread(&self) -> f64 {
        let best_of = |row: &Row| {
            let best = |a: f64, b: f64| if self.maximize { a.max(b) } else { a.min(b) };
            row.values.iter().copied().reduce(best).unwrap_or(0.0)
        };
        let mut values: Vec<f64> = self.rows.iter().map(best_of).collect();
        values.sort_unstable_by(f64::total_cmp);
        let median = values.get(values.len() / 2).copied().unwrap_or(0.0);
        let best = if self.maximize { values.last() } else { values.first() };
        (best.copied().unwrap_or(0.0) - median).abs()
    }

    /// Returns the number of epochs of each curve.
    pub fn max_resource(&self) -> u32 {
        self.max_resource
    }

    /// Returns the factor by which recorded times are multiplied so that the mean whole job lasts `seconds`.
    pub fn time_scale(&self, seconds: f64) -> f64 {
        let epochs = f64::from(self.max_resource);
        let sum = self.rows.iter().fold(0.0, |sum, row| sum + row.seconds_per_epoch * epochs);
        let rows = u32::try_from(self.rows.len()).map_or(f64::INFINITY, f64::from);
        seconds * rows / sum
    }
}

impl Parameter {
    fn coordinate(&self, value: f64) -> f64 {
        let scaled = |value: f64| match self.scaling {
            Scaling::Linear => value,
            Scaling::Logarithmic => libm::log(value),
        };
        let (min, max) = (scaled(self.min), scaled(self.max));
        if max > min { (scaled(value) - min) / (max - min) } else { 0.0 }
    }
}
