//! SageMaker's built-in algorithms: a table of their metrics, log lines, epochs and models.
//!
//! A request selects a built-in algorithm by `AlgorithmName` or by the repository of its `TrainingImage`. If an
//! algorithm runs as a script, SageMaker's archive of the script selects it. The row of the algorithm supplies the
//! defaults of the request: the pattern of the objective, the pattern of the epoch, and the hyperparameter that sets
//! the number of epochs. Sources: SageMaker's developer guide, the code of the containers, and responses of Describe.
//! [`Algorithm::unverified`] lists the properties that no source confirms.
//!
//! Never remove a log line that a row matches: running tuning jobs depend on it.

use std::fmt;

use tuning::definition::Objective;

mod table;

pub use table::ALGORITHMS;

/// Pattern of a number in a log line. Also reads `1.e-05`, as numpy prints it. Ends after the number whatever follows,
/// because the lines of some algorithms are not certain.
const NUMBER: &str = r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?i:nan|inf(?:inity)?))";
/// The value and the epoch in the lines of [`Metric::sample`].
pub const SAMPLE: (f64, u64) = (0.25, 7);

/// One built-in algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm {
    /// Name in the developer guide.
    pub title: &'static str,
    /// Values of `AlgorithmName`, repositories of the image, and folders of the script archive.
    pub names: &'static [&'static str],
    /// The metrics that can be an objective; empty = the algorithm tunes itself.
    pub metrics: &'static [Metric],
    /// How a log line contains its epoch; `None` = it does not, and lines are counted.
    pub epochs: Option<Epochs>,
    /// The hyperparameter that sets how many times the algorithm logs the objective; `None` = there is none.
    pub resource: Option<Resource>,
    /// Whether training resumes from a checkpoint.
    pub resume: Resume,
    /// Whether a stopped job leaves a model.
    pub stopped_model: StoppedModel,
    /// Properties of this row that no source confirms.
    pub unverified: &'static [Unverified],
}

/// A metric that can be an objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Name, as in `MetricName`.
    pub name: &'static str,
    /// The direction of improvement.
    pub objective: Objective,
    /// When the algorithm logs the metric.
    pub emission: Emission,
    line: Line,
}

/// When an algorithm logs a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emission {
    /// Once per epoch or round.
    EveryEpoch,
    /// Once per checkpoint of the algorithm, which differs from an epoch.
    EveryCheckpoint,
    /// Once, at the end, so Hyperband has nothing to compare at rungs.
    AtEnd,
}

/// The format of a metric's log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// `[7]<tab>train-auc:0.5<tab>validation-auc:0.25`, from the evaluation monitor.
    Monitor,
    /// `#quality_metric: host=algo-1, epoch=7, validation mAP <score>=(0.25)`.
    Quality,
    /// Like [`Line::Quality`], but with the name of the loss function.
    QualityOfLoss,
    /// [`Line::Quality`], or `Epoch[7] Validation-accuracy=0.25`.
    QualityOrEpoch,
    /// `auc: 0.25`, after the metric's own name.
    Named,
    /// `metrics={'r2': 0.25, 'mse': 0.5}`.
    Dictionary,
    /// A pattern of the text before the number, and a sample of that text.
    After(&'static str, &'static str),
}

/// How a log line contains its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epochs {
    /// Pattern with one group, which captures the epoch.
    pub pattern: &'static str,
    /// Index of the first epoch.
    pub base: u32,
    /// Whether the index restarts with each attempt. `true` if unknown: a continuing index is still read correctly,
    /// because the controller shifts an index only if the log proves that it restarted.
    pub per_attempt: bool,
}

/// The hyperparameter that sets the number of epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    /// Name.
    pub name: &'static str,
    /// The default; `None` = the hyperparameter is required, or its default is unknown.
    pub default: Option<u32>,
}

/// Whether training resumes from a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// Training resumes from the checkpoint.
    Works,
    /// The container writes checkpoints, but its current images do not find them on restart.
    Broken,
    /// The algorithm writes no checkpoints.
    None,
}

/// Whether a stopped job leaves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedModel {
    /// Not documented.
    Unknown,
    /// It leaves no model.
    None,
    /// It leaves a model only if this hyperparameter is `true`, which is the default of the controller.
    With(&'static str),
}

/// A property of a row that no source confirms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unverified {
    /// The exact format of the log line.
    Line,
    /// Whether the list of names is complete.
    Names,
    /// The index of the first epoch.
    Base,
    /// Whether the deployed images behave like the published code.
    Images,
}

impl Algorithm {
    /// Returns the metric with this name.
    pub fn metric(&self, name: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }

    /// Returns whether the algorithm logs any metric before the end of training.
    pub fn emits_while_running(&self) -> bool {
        self.metrics.iter().any(|metric| metric.emission != Emission::AtEnd)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

impl Metric {
    /// Returns the pattern whose first group is the value.
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

    /// Returns a log line of the algorithm with the value and the epoch of [`SAMPLE`].
    pub fn sample(&self) -> String {
        let ((phase, measure), (value, epoch)) = (self.parts(), SAMPLE);
        let at = if self.emission == Emission::AtEnd { String::new() } else { format!("epoch={epoch}, ") };
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

    /// Returns phase and measure: `validation:auc` is measure `auc` of phase `validation`.
    fn parts(&self) -> (&'static str, &'static str) {
        self.name.split_once(':').unwrap_or(("validation", self.name))
    }
}

/// Returns the algorithm with this `AlgorithmName`, a name or an ARN.
pub fn named(name: &str) -> Option<&'static Algorithm> {
    let name = name.rsplit('/').next().unwrap_or(name);
    ALGORITHMS.iter().find(|algorithm| algorithm.names.contains(&name))
}

/// Returns the algorithm of a `TrainingImage`.
pub fn of_image(image: &str) -> Option<&'static Algorithm> {
    let repository = image.rsplit('/').next().unwrap_or(image);
    named(repository.split([':', '@']).next().unwrap_or(repository))
}

/// Returns the algorithm of a script in SageMaker's own bucket, by the URI of its archive.
pub fn of_script(uri: &str) -> Option<&'static Algorithm> {
    let folders = uri.contains("jumpstart-cache").then(|| uri.split('/'));
    folders.into_iter().flatten().find_map(named)
}

#[cfg(test)]
mod tests;
