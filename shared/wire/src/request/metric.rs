//! What tells the objective from a log line: the user's pattern, or the one of a built-in algorithm.
//!
//! Every pattern of a user is compiled here, with a bound on its size, by crate `regex` (time linear in the line).
//! The forms of built-in algorithms' lines come from their containers and from SageMaker's guide.

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::{DEFINITION, Request};

/// Most bytes of a compiled pattern.
const COMPILED_BYTES: usize = 1 << 20;
/// Patterns that compile to less are not told apart: usual ones do.
pub(crate) const SMALL_BYTES: usize = 1 << 15;
/// Groups in brackets nested deeper than this are refused.
const NESTING: u32 = 50;
/// A number, as training programs print them.
const NUMBER: &str = r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?|[-+]?(?i:nan|inf(?:inity)?))";
/// A line of XGBoost's evaluation monitor.
const XGBOOST_LINE: &str = "[7]\ttrain-auc:0.5\tvalidation-auc:0.6";
/// Repositories of SageMaker's own algorithms whose lines have the form `#quality_metric: ...`.
const FIRST_PARTY: &[&str] = &[
    "blazingtext",
    "factorization-machines",
    "forecasting-deepar",
    "image-classification",
    "ipinsights",
    "kmeans",
    "knn",
    "lda",
    "linear-learner",
    "ntm",
    "object-detection",
    "object2vec",
    "pca",
    "randomcutforest",
    "semantic-segmentation",
    "seq2seq",
];

/// Why a pattern is refused: what is wrong and, where we know it, what to do. Answer it as a validation error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

/// Compiles a pattern of a user, under bounds.
pub fn compile_pattern(pattern: &str) -> Result<Regex, PatternError> {
    compile_within(pattern, COMPILED_BYTES).map_err(|error| PatternError(explain(&error)))
}

/// Compiles a pattern of a user, and tells the least power of two of bytes (but [`SMALL_BYTES`] at least) that it fits
/// when compiled: the longest time it can take is in proportion to that.
pub(crate) fn compile_measured(pattern: &str) -> Result<(Regex, usize), PatternError> {
    let mut limit = SMALL_BYTES;
    loop {
        match compile_within(pattern, limit) {
            Ok(regex) => return Ok((regex, limit)),
            Err(regex::Error::CompiledTooBig(_)) if limit < COMPILED_BYTES => limit = limit.saturating_mul(2),
            Err(error) => return Err(PatternError(explain(&error))),
        }
    }
}

fn compile_within(pattern: &str, bytes: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(bytes).nest_limit(NESTING).build()
}

fn explain(error: &regex::Error) -> String {
    let text = error.to_string();
    if text.contains("look-around") {
        return "look-ahead and look-behind are not supported; match the text around the number literally, for \
                example 'loss=([0-9.]+)' for '(?<=loss=)([0-9.]+)'"
            .to_owned();
    }
    if text.contains("backreferences") {
        return "back-references are not supported; repeat the group's pattern".to_owned();
    }
    match error {
        regex::Error::CompiledTooBig(bytes) => format!("the compiled pattern is larger than {bytes} bytes"),
        // The last line says what is wrong; those before it show where.
        _ => shortened(text.lines().last().unwrap_or("it is not a regular expression")),
    }
}

/// The first characters of a text that may be long and is shown to people.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 120;
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Who wrote the training program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    /// SageMaker's XGBoost, not in script mode.
    XgBoost,
    /// Another algorithm that is known by name.
    FirstParty,
    /// The user.
    Own,
}

impl Request {
    fn algorithm(&self) -> Algorithm {
        if self.static_hyperparameter("sagemaker_program").is_some() {
            return Algorithm::Own;
        }
        let specification =
            |member: &str| self.text(&format!("{DEFINITION}.AlgorithmSpecification.{member}"));
        let named = specification("AlgorithmName").map(|name| name.rsplit('/').next().unwrap_or(name));
        let image = specification("TrainingImage").map(|image| image.rsplit('/').next().unwrap_or(image));
        let repository = image.map(|image| image.split([':', '@']).next().unwrap_or(image));
        match (named, repository) {
            (Some("xgboost"), _) | (_, Some("xgboost" | "sagemaker-xgboost")) => Algorithm::XgBoost,
            (Some(_), _) => Algorithm::FirstParty,
            (None, Some(repository)) if FIRST_PARTY.contains(&repository) => Algorithm::FirstParty,
            (None, _) => Algorithm::Own,
        }
    }

    /// Whether the image is SageMaker's XGBoost in algorithm mode.
    pub fn is_xgboost(&self) -> bool {
        self.algorithm() == Algorithm::XgBoost
    }

    /// Whether the algorithm brings its metric definitions itself.
    pub fn is_built_in(&self) -> bool {
        self.algorithm() != Algorithm::Own
    }

    /// The pattern whose first group is the objective's value: the user's, else the built-in algorithm's. `None` only
    /// if a program of the user's own comes without one, which is refused.
    pub fn metric_regex(&self) -> Option<String> {
        self.given_regex(self.objective_metric()).map(str::to_owned).or_else(|| self.built_in_regex())
    }

    fn given_regex(&self, metric: &str) -> Option<&str> {
        let definitions = self.list("TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions");
        let named = |definition: &&Value| definition.get("Name").and_then(Value::as_str) == Some(metric);
        definitions.iter().find(named)?.get("Regex")?.as_str()
    }

    fn built_in_regex(&self) -> Option<String> {
        let metric = self.objective_metric();
        let (phase, measure) = metric.split_once(':').unwrap_or(("validation", metric));
        let (phase, measure) = (regex::escape(phase), regex::escape(measure));
        match self.algorithm() {
            Algorithm::XgBoost => Some(format!(r"\[[0-9]+\].*(?:#011|\t){phase}-{measure}:{NUMBER}")),
            // Linear Learner writes the objective under its loss function's name.
            Algorithm::FirstParty if measure == "objective_loss" => Some(format!(
                r"#quality_metric: host=\S+, epoch=\S+, {phase} \S+_objective <loss>=\(?{NUMBER}"
            )),
            Algorithm::FirstParty => Some(format!(
                r"(?:#quality_metric: host=\S+, (?:epoch=\S+, )?{phase} {measure} <\w+>=\(?|Epoch\S* (?i:{phase})-{measure}=){NUMBER}"
            )),
            Algorithm::Own => None,
        }
    }

    /// Whether the epoch pattern reads a line of XGBoost's evaluation monitor, whose epochs begin at 0 and begin
    /// again after a restart.
    pub(crate) fn reads_xgboost_lines(&self) -> bool {
        let pattern = self.epoch_pattern().and_then(|pattern| compile_pattern(pattern).ok());
        let epoch_in = |line: &str| Some(pattern.as_ref()?.captures(line)?.get(1)?.as_str() == "7");
        // CloudWatch shows a tab as #011.
        [XGBOOST_LINE.to_owned(), XGBOOST_LINE.replace('\t', "#011")]
            .iter()
            .any(|line| epoch_in(line) == Some(true))
    }

    /// The metric definitions as Describe shows them: for a built-in algorithm filled in, with the objective's once
    /// more under the name `ObjectiveMetric`.
    pub(crate) fn described_metrics(&self) -> Vec<Value> {
        let mut metrics =
            self.list("TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions").to_vec();
        let named = |metrics: &[Value], name: &str| metrics.iter().any(|metric| metric["Name"] == name);
        if let (true, Some(regex)) = (self.is_built_in(), self.metric_regex()) {
            for name in [self.objective_metric(), "ObjectiveMetric"] {
                if !named(&metrics, name) {
                    metrics.push(json!({"Name": name, "Regex": regex}));
                }
            }
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(specification: &Value, metric: &str) -> Request {
        Request::from_stored(json!({
            "HyperParameterTuningJobConfig": {"HyperParameterTuningJobObjective": {"MetricName": metric}},
            "TrainingJobDefinition": {"AlgorithmSpecification": specification},
        }))
    }

    fn value(request: &Request, line: &str) -> Option<String> {
        let regex = compile_pattern(&request.metric_regex()?).unwrap();
        Some(regex.captures(line)?[1].to_owned())
    }

    #[test]
    fn xgboost_lines_are_read_without_a_definition() {
        let image =
            json!({"TrainingImage": "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"});
        let request = request(&image, "validation:auc");
        for (line, auc) in [
            ("[36]#011train-auc:0.91429#011validation-auc:0.80998", "0.80998"),
            ("[07:01:02] [3]\ttrain-auc:0.5\tvalidation-auc:1e-3", "1e-3"),
            ("[3]\tvalidation-auc:nan\ttrain-auc:0.5", "nan"),
            ("[3]\tvalidation-auc:-inf", "-inf"),
        ] {
            assert_eq!(value(&request, line).as_deref(), Some(auc), "{line}");
        }
        assert_eq!(value(&request, "[3]\ttrain-auc:0.5\tvalidation-aucpr:0.4"), None);
    }

    #[test]
    fn quality_metric_lines_are_read_without_a_definition() {
        let named = request(&json!({"AlgorithmName": "object-detection"}), "validation:mAP");
        let line = "#quality_metric: host=algo-1, epoch=0, validation mAP <score>=(0.0123)";
        assert_eq!(value(&named, line).as_deref(), Some("0.0123"));
        let images = request(&json!({"AlgorithmName": "image-classification"}), "validation:accuracy");
        assert_eq!(value(&images, "Epoch[3] Validation-accuracy=0.81").as_deref(), Some("0.81"));
        let linear =
            request(&json!({"TrainingImage": "h.example/linear-learner:1"}), "validation:objective_loss");
        let line = "#quality_metric: host=algo-1, epoch=2, validation binary_classification_cross_entropy_objective <loss>=0.3";
        assert_eq!(value(&linear, line).as_deref(), Some("0.3"));
    }

    #[test]
    fn own_programs_and_script_mode_are_not_built_in() {
        assert!(!request(&json!({"TrainingImage": "h.example/my-xgboost:1"}), "x").is_built_in());
        let mut script = request(&json!({"TrainingImage": "h.example/sagemaker-xgboost:1.7-1"}), "x");
        assert!(script.is_xgboost());
        script.body["TrainingJobDefinition"]["StaticHyperParameters"] =
            json!({"sagemaker_program": "\"t.py\""});
        assert!(!script.is_xgboost());
        assert_eq!(script.metric_regex(), None);
    }

    #[test]
    fn refused_patterns_come_with_a_hint() {
        for (pattern, hint) in [
            ("(?<=loss=)([0-9.]+)", "look-behind"),
            ("(a)(?!b)", "look-ahead"),
            (r"(a)\1", "back-references"),
            ("(a", "unclosed group"),
            (r"((\w{50}){50}){50}", "larger than"),
            (&"(".repeat(400), "error"),
        ] {
            let error = compile_pattern(pattern).unwrap_err().to_string();
            assert!(error.contains(hint), "{pattern}: {error}");
        }
    }
}
