//! The patterns that read the objective and the epoch from a log line: the user's, or those of a built-in algorithm.
//!
//! Every pattern of a user is compiled here by crate `regex` (time linear in the line) with a bound on its compiled
//! size. [`crate::algorithm`] has the log lines of built-in algorithms.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::Request;
use super::fields::{AlgorithmSpecification, MetricDefinition};
use crate::algorithm::{self, Algorithm, Emission, Epochs, Metric};
use crate::events::logs::{Explanation, MetricPattern};

/// The documented pattern of a number in a log line: signs, dots, letters and digits, up to the last letter or digit.
/// Reads exponents, `nan` and `inf`. Text that is not a number, such as `12ms`, is captured whole and so has no value,
/// where a class of digits would capture a wrong one.
pub const NUMBER_PATTERN: &str = r"([-+.\w]*\w)";

/// Maximum size of a compiled pattern, in bytes.
const COMPILED_BYTES: usize = 1 << 20;
/// The smallest size that [`compile_measured`] returns, in bytes. Most patterns fit in it.
pub(crate) const SMALL_BYTES: usize = 1 << 15;
/// Maximum nesting of groups and classes in a pattern.
const NESTING: u32 = 50;

/// Why a pattern is invalid and, where known, how to fix it. Return it to the user as a validation error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

/// Compiles a pattern of a user within bounds on size and nesting.
pub fn compile_pattern(pattern: &str) -> Result<Regex, PatternError> {
    compile_within(pattern, COMPILED_BYTES).map_err(|error| PatternError(explain(&error)))
}

/// Compiles a pattern of a user. Also returns a bound on its compiled size in bytes: the smallest power of two that it
/// fits in, at least [`SMALL_BYTES`]. The worst-case time of a match is proportional to the size.
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
        return format!(
            "look-ahead and look-behind are not supported; match the text around the number literally, for example \
             'loss={NUMBER_PATTERN}' instead of '(?<=loss=){NUMBER_PATTERN}'"
        );
    }
    if text.contains("backreferences") {
        return "back-references are not supported; repeat the pattern of the group instead".to_owned();
    }
    match error {
        regex::Error::CompiledTooBig(bytes) => {
            format!(
                "the compiled pattern is larger than {bytes} bytes; use smaller repetition counts, for example \
                 '{{1,10}}'"
            )
        }
        // The last line has the reason; the lines before it mark the place.
        _ => shortened(text.lines().last().unwrap_or("expected a regular expression")),
    }
}

/// Returns the first 120 characters of `text`, without control characters, for a message.
pub fn shortened(text: &str) -> String {
    const SHOWN: usize = 120;
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

impl Request {
    /// Returns the built-in algorithm of the request, identified by its name, its image, or SageMaker's archive of its
    /// script. Any other script in the image of a built-in algorithm is the user's own program.
    pub fn built_in(&self) -> Option<&'static Algorithm> {
        if self.static_hyperparameter("sagemaker_program").is_some() {
            return self.static_hyperparameter("sagemaker_submit_directory").and_then(algorithm::of_script);
        }
        let AlgorithmSpecification { algorithm_name, training_image, .. } = &self.fields.job.algorithm;
        let named = algorithm_name.as_deref().and_then(algorithm::named);
        named.or_else(|| training_image.as_deref().and_then(algorithm::of_image))
    }

    /// Returns the objective metric as the built-in algorithm defines it.
    pub fn built_in_metric(&self) -> Option<&'static Metric> {
        self.built_in()?.metric(self.objective_metric())
    }

    /// Returns the pattern whose first group is the objective's value: the user's, else the built-in algorithm's.
    /// `None` if neither exists; validation rejects such a request.
    pub fn metric_regex(&self) -> Option<String> {
        let given = self.given_regex(self.objective_metric()).map(str::to_owned);
        given.or_else(|| self.built_in_metric().map(Metric::pattern))
    }

    fn given_regex(&self, metric: &str) -> Option<&str> {
        let named = |definition: &&MetricDefinition| definition.name.as_deref() == Some(metric);
        self.metric_definitions().iter().find(named)?.regex.as_deref()
    }

    /// Returns the name and the pattern of each of the request's `MetricDefinitions`.
    pub fn metric_patterns(&self) -> impl Iterator<Item = (&str, &str)> {
        let given = self.metric_definitions().iter();
        given.filter_map(|metric| Some((metric.name.as_deref()?, metric.regex.as_deref()?)))
    }

    /// Returns the names of the metrics that a training job reports: those of `MetricDefinitions`, else of the built-in
    /// algorithm. Stored values refer to their order.
    pub fn metric_names(&self) -> Vec<&str> {
        let given: Vec<&str> = self.metric_patterns().map(|(name, _)| name).collect();
        let known = self.built_in().filter(|_| given.is_empty());
        let known = known.map(|algorithm| algorithm.metrics.iter().map(|metric| metric.name).collect());
        known.unwrap_or(given)
    }

    /// Returns the metrics other than the objective with their values, which are stored by the place in
    /// [`Self::metric_names`].
    pub fn other_metrics(&self, values: &[(u8, f64)]) -> BTreeMap<String, f64> {
        let all = self.metric_names();
        let known = values.iter().filter_map(|(place, value)| Some((*all.get(usize::from(*place))?, *value)));
        let others = known.filter(|(name, _)| *name != self.objective_metric());
        others.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    pub(crate) fn metric_definitions(&self) -> &[MetricDefinition] {
        &self.fields.job.algorithm.metric_definitions
    }

    /// Returns the pattern that captures the epoch from a log line: the request's, else the built-in algorithm's.
    pub fn epoch_pattern(&self) -> Option<&str> {
        let given = self.fields.controller.epoch_pattern.as_deref();
        given.or_else(|| self.built_in_epochs().map(|epochs| epochs.pattern))
    }

    /// Returns how the log lines of the built-in algorithm contain the epoch. `None` if the line of the objective has
    /// no epoch, or if the user's metric definition does not match the algorithm's lines: then the image runs another
    /// program.
    fn built_in_epochs(&self) -> Option<Epochs> {
        let metric = self.built_in_metric();
        let epochs = self.built_in()?.epochs?;
        match (metric, self.given_regex(self.objective_metric())) {
            (Some(metric), None) => (metric.emission != Emission::AtEnd).then_some(epochs),
            (Some(metric), Some(given)) => {
                (metric.emission != Emission::AtEnd && finds_value(given, &metric.sample())).then_some(epochs)
            }
            (None, _) => None,
        }
    }

    /// Returns the epoch numbering of the log lines: that of the built-in algorithm if the request's own `EpochPattern`
    /// matches its lines. It applies to no other program, whatever lines that prints.
    pub(crate) fn epoch_numbering(&self) -> Option<Epochs> {
        let Some(given) = &self.fields.controller.epoch_pattern else { return self.built_in_epochs() };
        let algorithm = self.built_in()?;
        let sample = algorithm.metrics.iter().find(|metric| metric.emission != Emission::AtEnd)?.sample();
        let pattern = MetricPattern::new(given, None).ok()?;
        let epoch = algorithm::SAMPLE.1.to_string();
        let read =
            matches!(pattern.explain(&sample), Explanation::Value { captured, .. } if captured == epoch);
        algorithm.epochs.filter(|_| read)
    }

    /// Returns the metric definitions as Describe shows them. For a built-in algorithm, its own definitions replace an
    /// empty list, and the objective's definition is repeated under the name `ObjectiveMetric`.
    pub(crate) fn described_metrics(&self) -> Vec<Value> {
        let given = self.metric_definitions().iter();
        let mut metrics: Vec<Value> =
            given.map(|metric| json!({"Name": metric.name, "Regex": metric.regex})).collect();
        let Some(algorithm) = self.built_in() else { return metrics };
        if metrics.is_empty() {
            let filled = algorithm.metrics.iter();
            metrics.extend(filled.map(|metric| json!({"Name": metric.name, "Regex": metric.pattern()})));
        }
        let named = |metrics: &[Value], name: &str| metrics.iter().any(|metric| metric["Name"] == name);
        for name in [self.objective_metric(), "ObjectiveMetric"] {
            if let Some(regex) = self.metric_regex().filter(|_| !named(&metrics, name)) {
                metrics.push(json!({"Name": name, "Regex": regex}));
            }
        }
        metrics
    }
}

fn finds_value(pattern: &str, line: &str) -> bool {
    MetricPattern::new(pattern, None)
        .is_ok_and(|pattern| matches!(pattern.explain(line), Explanation::Value { .. }))
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

    fn title(request: &Request) -> Option<&'static str> {
        request.built_in().map(|algorithm| algorithm.title)
    }

    #[test]
    fn the_users_own_programs_and_scripts_are_not_built_in() {
        assert_eq!(title(&request(&json!({"TrainingImage": "h.example/my-xgboost:1"}), "x")), None);
        assert_eq!(title(&request(&json!({"AlgorithmName": "my-own"}), "x")), None);
        let image = request(&json!({"TrainingImage": "h.example/sagemaker-xgboost:1.7-1"}), "validation:auc");
        assert_eq!(title(&image), Some("XGBoost"));
        let mut body = image.body;
        body["TrainingJobDefinition"]["StaticHyperParameters"] = json!({"sagemaker_program": "\"t.py\""});
        let script = Request::from_stored(body.clone());
        assert_eq!((title(&script), script.metric_regex()), (None, None));
        body["TrainingJobDefinition"]["StaticHyperParameters"]["sagemaker_submit_directory"] = json!(
            "\"s3://jumpstart-cache-prod-us-west-2/source-directory-tarballs/lightgbm/v1/sourcedir.tar.gz\""
        );
        assert_eq!(title(&Request::from_stored(body)), Some("LightGBM"));
    }

    #[test]
    fn a_built_in_objective_needs_no_metric_definition() {
        for algorithm in algorithm::ALGORITHMS {
            for metric in algorithm.metrics {
                let made = request(&json!({"AlgorithmName": algorithm.names[0]}), metric.name);
                assert_eq!(made.metric_regex(), Some(metric.pattern()), "{algorithm}");
                let captured = (metric.emission != Emission::AtEnd).then_some(algorithm.epochs).flatten();
                assert_eq!(made.epoch_pattern(), captured.map(|epochs| epochs.pattern), "{algorithm}");
                assert_eq!(made.epoch_numbering(), captured, "{algorithm}");
            }
        }
        let unknown = request(&json!({"AlgorithmName": "xgboost"}), "validation:kappa");
        assert_eq!((unknown.metric_regex(), unknown.epoch_pattern()), (None, None));
    }

    #[test]
    fn built_in_epochs_are_used_only_if_the_definition_matches_the_algorithms_lines() {
        let image = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1";
        let given = |regex: &str| {
            let definitions = json!([{"Name": "validation:auc", "Regex": regex}]);
            request(&json!({"TrainingImage": image, "MetricDefinitions": definitions}), "validation:auc")
        };
        for own in [r".*\[[0-9]+\].*#011validation-auc:(\S+)", r"validation-auc:([-+.\w]*\w)"] {
            let made = given(own);
            assert_eq!(made.metric_regex().as_deref(), Some(own));
            assert_eq!(made.epoch_pattern(), Some(r"\[([0-9]+)\](?:#011|\t)"), "{own}");
        }
        assert_eq!(
            given(r"auc=([-+.\w]*\w)").epoch_pattern(),
            None,
            "another program in an image of that name"
        );
        let mut body = given(r"validation-auc:([-+.\w]*\w)").body;
        body["Controller"] = json!({"EpochPattern": "round ([0-9]+)"});
        let own = Request::from_stored(body);
        assert_eq!((own.epoch_pattern(), own.epoch_numbering()), (Some("round ([0-9]+)"), None));
    }

    #[test]
    fn built_in_definitions_replace_only_an_empty_list() {
        let names = |request: &Request| -> Vec<String> {
            let described = request.described_metrics();
            described.iter().map(|metric| metric["Name"].as_str().unwrap().to_owned()).collect()
        };
        let ntm = request(&json!({"AlgorithmName": "ntm"}), "validation:total_loss");
        assert_eq!(names(&ntm), ["validation:total_loss", "ObjectiveMetric"]);
        let kmeans = request(&json!({"AlgorithmName": "kmeans"}), "test:ssd");
        assert_eq!(names(&kmeans), ["test:msd", "test:ssd", "ObjectiveMetric"]);
        let shown = kmeans.described_metrics();
        assert_eq!(shown[1]["Regex"], shown[2]["Regex"]);
        let definitions = json!([{"Name": "a", "Regex": "a=(.)"}]);
        let own = json!({"AlgorithmName": "kmeans", "MetricDefinitions": definitions});
        assert_eq!(names(&request(&own, "test:ssd")), ["a", "test:ssd", "ObjectiveMetric"]);
        assert_eq!(names(&request(&own, "a")), ["a", "ObjectiveMetric"]);
        let mine = json!({"TrainingImage": "mine", "MetricDefinitions": definitions});
        assert_eq!(names(&request(&mine, "a")), ["a"]);
    }

    #[test]
    fn the_error_of_an_invalid_pattern_has_the_reason() {
        for (pattern, hint) in [
            (r"(?<=loss=)([-+.\w]*\w)", "look-behind"),
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
