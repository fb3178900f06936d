//! SageMaker's built-in algorithms: one table of what they log, count and leave behind.
//!
//! A request names a built-in by `AlgorithmName`, by the repository of its `TrainingImage` or, for those that run as a
//! script, by SageMaker's own archive of the script. What the request leaves out is then filled in from the row: the
//! objective's pattern, the epoch's, the hyperparameter that sets the epochs. Sources: SageMaker's developer guide, the
//! containers' code, and what Describe shows; what none of them settles is named in [`Algorithm::unsure`].
//!
//! Must never: take from a row what it reads of a log. Tunings that run are read by it.

use std::fmt;

use tuning::definition::Objective;

mod table;

pub use table::ALGORITHMS;

/// A number, as training programs print them.
const NUMBER: &str = r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?(?i:nan|inf(?:inity)?))";
/// The value and the epoch of sample lines.
pub const SAMPLE: (f64, u64) = (0.25, 7);

/// One built-in algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm {
    /// Its name in the guide.
    pub title: &'static str,
    /// `AlgorithmName`s, repositories of the image, folders of the script's archive.
    pub names: &'static [&'static str],
    /// The metrics that can be an objective; empty = it tunes itself.
    pub metrics: &'static [Metric],
    /// How a line tells its epoch; `None` = it does not, and lines are counted.
    pub epochs: Option<Epochs>,
    /// The hyperparameter that sets how often the objective is told; `None` = there is none.
    pub resource: Option<Resource>,
    /// What a checkpoint is good for.
    pub resume: Resume,
    /// Whether a stopped job leaves a model.
    pub stopped_model: StoppedModel,
    /// What of this row no source settles.
    pub unsure: &'static [Unsure],
}

/// A metric that can be an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name, as `MetricName` gives it.
    pub name: &'static str,
    /// The direction in which it is better.
    pub objective: Objective,
    /// When it is in the log.
    pub told: Told,
    line: Line,
}

/// When a metric is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Once an epoch or round.
    EveryEpoch,
    /// Once a checkpoint of the algorithm's own, which is no epoch.
    EveryCheckpoint,
    /// Once, at the end: Hyperband has nothing to compare before.
    AtEnd,
}

/// The form of a metric's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// `[7]<tab>train-auc:0.5<tab>validation-auc:0.25`, from the evaluation monitor.
    Monitor,
    /// `#quality_metric: host=algo-1, epoch=7, validation mAP <score>=(0.25)`.
    Quality,
    /// The same under the name of the loss function.
    QualityOfLoss,
    /// The same, or `Epoch[7] Validation-accuracy=0.25`.
    QualityOrEpoch,
    /// `auc: 0.25`, after the metric's own name.
    Named,
    /// `metrics={'r2': 0.25, 'mse': 0.5}`.
    Dictionary,
    /// Whatever stands before the number, as a pattern, and a line of it up to the number.
    After(&'static str, &'static str),
}

/// How a line tells its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epochs {
    /// Pattern with one group.
    pub pattern: &'static str,
    /// Index of the first epoch.
    pub base: u32,
    /// Whether the index begins again after a restart. Where that is not known it is taken to: an index that in truth
    /// goes on is read rightly all the same, since nothing proves that it is to be moved.
    pub per_attempt: bool,
}

/// The hyperparameter that sets epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    /// Name.
    pub name: &'static str,
    /// What the algorithm takes without it; `None` = it is required, or its default is not known.
    pub default: Option<u32>,
}

/// What a checkpoint is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Training goes on from it.
    Works,
    /// The container keeps checkpoints, and its current images do not find them again.
    Broken,
    /// The algorithm keeps none.
    None,
}

/// Whether a stopped job leaves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedModel {
    /// Not documented.
    Unknown,
    /// It leaves none.
    None,
    /// Only with this hyperparameter set to `true`, which is done unless the request says otherwise.
    With(&'static str),
}

/// What no source settles about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsure {
    /// The exact form of the line.
    Line,
    /// Whether it is recognised by these names only.
    Names,
    /// Whether the index of the first epoch is as given.
    Base,
    /// Whether the deployed images behave like the code that was read.
    Images,
}

impl Algorithm {
    /// The metric of that name.
    pub fn metric(&self, name: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Whether any metric is told while the job runs.
    pub fn tells_while_running(&self) -> bool {
        self.metrics.iter().any(|metric| metric.told != Told::AtEnd)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

impl Metric {
    /// The pattern whose first group is the value.
    pub fn pattern(&self) -> String {
        let (phase, measure) = self.parts();
        let before = match self.line {
            Line::Monitor => format!(r"\[[0-9]+\].*(?:#011|\t){phase}-{measure}:"),
            Line::Quality => {
                format!(r"#quality_metric: host=\S+, (?:epoch=\S+, )?{phase} {measure} <\w+>=\(?")
            }
            Line::QualityOfLoss => {
                format!(r"#quality_metric: host=\S+, epoch=\S+, {phase} \S+_objective <loss>=\(?")
            }
            Line::QualityOrEpoch => format!(
                r"(?:#quality_metric: host=\S+, (?:epoch=\S+, )?{phase} {measure} <\w+>=\(?|Epoch\S* (?i:{phase})-{measure}=)"
            ),
            Line::Named => format!(r"\b{measure}: "),
            Line::Dictionary => format!(r"metrics=\{{.*'{measure}': "),
            Line::After(pattern, _) => pattern.to_owned(),
        };
        format!("{before}{NUMBER}")
    }

    /// A line with [`SAMPLE`] as the algorithm prints it.
    pub fn sample(&self) -> String {
        let ((phase, measure), (value, epoch)) = (self.parts(), SAMPLE);
        let at = if self.told == Told::AtEnd { String::new() } else { format!("epoch={epoch}, ") };
        match self.line {
            Line::Monitor => format!("[{epoch}]\ttrain-{measure}:0.5\t{phase}-{measure}:{value}"),
            Line::Quality | Line::QualityOrEpoch => {
                format!("#quality_metric: host=algo-1, {at}{phase} {measure} <score>={value}")
            }
            Line::QualityOfLoss => {
                format!("#quality_metric: host=algo-1, {at}{phase} squared_loss_objective <loss>={value}")
            }
            Line::Named => format!("[{epoch}] valid's {measure}: {value}"),
            Line::Dictionary => format!("epoch {epoch} metrics={{'{measure}': {value}}}"),
            Line::After(_, text) => format!("{text}{value}"),
        }
    }

    /// `validation:auc` is measure `auc` of phase `validation`.
    fn parts(&self) -> (&'static str, &'static str) {
        self.name.split_once(':').unwrap_or(("validation", self.name))
    }
}

/// The algorithm of an `AlgorithmName`, a name or an ARN.
pub fn named(name: &str) -> Option<&'static Algorithm> {
    let name = name.rsplit('/').next().unwrap_or(name);
    ALGORITHMS.iter().find(|algorithm| algorithm.names.contains(&name))
}

/// The algorithm of a `TrainingImage`.
pub fn of_image(image: &str) -> Option<&'static Algorithm> {
    let repository = image.rsplit('/').next().unwrap_or(image);
    named(repository.split([':', '@']).next().unwrap_or(repository))
}

/// The algorithm of a script that SageMaker keeps itself, by the place of its archive.
pub fn of_script(uri: &str) -> Option<&'static Algorithm> {
    let folders = uri.contains("jumpstart-cache").then(|| uri.split('/'));
    folders.into_iter().flatten().find_map(named)
}

/// SageMaker's XGBoost: whoever prints lines like its evaluation monitor's counts rounds as it does.
pub(crate) fn xgboost() -> Option<&'static Algorithm> {
    named("xgboost")
}

#[cfg(test)]
mod tests;
