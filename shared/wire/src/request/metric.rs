//! What tells the objective from a log line: the user's pattern, or the one of a built-in algorithm.
//!
//! Every pattern of a user is compiled here, with a bound on its size, by crate `regex` (time linear in the line).
//! What built-in algorithms print is in [`crate::algorithm`].

use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::{DEFINITION, Request};
use crate::algorithm::{self, Algorithm, Epochs, Metric, Told};
use crate::events::logs::{Explanation, MetricPattern};

/// Most bytes of a compiled pattern.
const COMPILED_BYTES: usize = 1 << 20;
/// Patterns that compile to less are not told apart: usual ones do.
pub(crate) const SMALL_BYTES: usize = 1 << 15;
/// Groups in brackets nested deeper than this are refused.
const NESTING: u32 = 50;
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

impl Request {
    /// The built-in algorithm that trains, if it is one: by its name, its image, or SageMaker's own archive of its
    /// script. Any other script in the image of a built-in is the user's.
    pub fn built_in(&self) -> Option<&'static Algorithm> {
        if self.static_hyperparameter("sagemaker_program").is_some() {
            return self.static_hyperparameter("sagemaker_submit_directory").and_then(algorithm::of_script);
        }
        let specification =
            |member: &str| self.text(&format!("{DEFINITION}.AlgorithmSpecification.{member}"));
        let named = specification("AlgorithmName").and_then(algorithm::named);
        named.or_else(|| specification("TrainingImage").and_then(algorithm::of_image))
    }

    /// The objective as the built-in algorithm has it.
    pub fn built_in_metric(&self) -> Option<&'static Metric> {
        self.built_in()?.metric(self.objective_metric())
    }

    /// The pattern whose first group is the objective's value: the user's, else the built-in algorithm's. `None` only
    /// if the objective is neither, which is refused.
    pub fn metric_regex(&self) -> Option<String> {
        let given = self.given_regex(self.objective_metric()).map(str::to_owned);
        given.or_else(|| self.built_in_metric().map(Metric::pattern))
    }

    fn given_regex(&self, metric: &str) -> Option<&str> {
        let named = |definition: &&Value| definition.get("Name").and_then(Value::as_str) == Some(metric);
        self.metric_definitions().iter().find(named)?.get("Regex")?.as_str()
    }

    /// `MetricDefinitions` as the request gives them.
    pub fn metric_definitions(&self) -> &[Value] {
        self.list("TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions")
    }

    /// The pattern that captures the epoch from a log line: the request's, else the built-in algorithm's.
    pub fn epoch_pattern(&self) -> Option<&str> {
        self.text("Controller.EpochPattern").or_else(|| self.built_in_epochs().map(|epochs| epochs.pattern))
    }

    /// How a built-in algorithm's line tells its epoch, where the request does not say. Not for an objective whose line
    /// has none; nor for a definition of the user's that reads other lines than the algorithm's: then the program is not
    /// what its image is called.
    fn built_in_epochs(&self) -> Option<Epochs> {
        let metric = self.built_in_metric();
        let epochs = self.built_in()?.epochs?;
        match (metric, self.given_regex(self.objective_metric())) {
            (Some(metric), None) => (metric.told != Told::AtEnd).then_some(epochs),
            (Some(metric), Some(given)) => {
                (metric.told != Told::AtEnd && reads(given, &metric.sample())).then_some(epochs)
            }
            (None, _) => None,
        }
    }

    /// Whose epochs the lines have: those of the built-in, if the request's own pattern reads its lines. Programs of the
    /// user's own print XGBoost's lines often.
    pub(crate) fn epochs_read(&self) -> Option<Epochs> {
        let Some(given) = self.text("Controller.EpochPattern") else { return self.built_in_epochs() };
        let algorithm = self.built_in().or_else(algorithm::xgboost)?;
        let sample = algorithm.metrics.iter().find(|metric| metric.told != Told::AtEnd)?.sample();
        let pattern = MetricPattern::new(given, None).ok()?;
        let epoch = algorithm::SAMPLE.1.to_string();
        let read =
            matches!(pattern.explain(&sample), Explanation::Value { captured, .. } if captured == epoch);
        algorithm.epochs.filter(|_| read)
    }

    /// The metric definitions as Describe shows them: for a built-in algorithm filled in when the request gives none,
    /// and in any case with the objective's once more under the name `ObjectiveMetric`.
    pub(crate) fn described_metrics(&self) -> Vec<Value> {
        let mut metrics = self.metric_definitions().to_vec();
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

/// Whether a pattern finds a value in a line.
fn reads(pattern: &str, line: &str) -> bool {
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
    fn own_programs_and_script_mode_are_not_built_in() {
        assert_eq!(title(&request(&json!({"TrainingImage": "h.example/my-xgboost:1"}), "x")), None);
        assert_eq!(title(&request(&json!({"AlgorithmName": "somebodys-own"}), "x")), None);
        let mut script =
            request(&json!({"TrainingImage": "h.example/sagemaker-xgboost:1.7-1"}), "validation:auc");
        assert_eq!(title(&script), Some("XGBoost"));
        script.body["TrainingJobDefinition"]["StaticHyperParameters"] =
            json!({"sagemaker_program": "\"t.py\""});
        assert_eq!((title(&script), script.metric_regex()), (None, None));
        script.body["TrainingJobDefinition"]["StaticHyperParameters"]["sagemaker_submit_directory"] = json!(
            "\"s3://jumpstart-cache-prod-us-west-2/source-directory-tarballs/lightgbm/v1/sourcedir.tar.gz\""
        );
        assert_eq!(title(&script), Some("LightGBM"));
    }

    #[test]
    fn the_objective_of_a_built_in_needs_no_definition() {
        for algorithm in algorithm::ALGORITHMS {
            for metric in algorithm.metrics {
                let made = request(&json!({"AlgorithmName": algorithm.names[0]}), metric.name);
                assert_eq!(made.metric_regex(), Some(metric.pattern()), "{algorithm}");
                let captured = (metric.told != Told::AtEnd).then_some(algorithm.epochs).flatten();
                assert_eq!(made.epoch_pattern(), captured.map(|epochs| epochs.pattern), "{algorithm}");
                assert_eq!(made.epochs_read(), captured, "{algorithm}");
            }
        }
        let unknown = request(&json!({"AlgorithmName": "xgboost"}), "validation:kappa");
        assert_eq!((unknown.metric_regex(), unknown.epoch_pattern()), (None, None));
    }

    #[test]
    fn epochs_are_captured_only_where_the_definition_reads_the_algorithms_lines() {
        let image = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1";
        let given = |regex: &str| {
            let definitions = json!([{"Name": "validation:auc", "Regex": regex}]);
            request(&json!({"TrainingImage": image, "MetricDefinitions": definitions}), "validation:auc")
        };
        for own in [r".*\[[0-9]+\].*#011validation-auc:(\S+)", "validation-auc:([0-9.]+)"] {
            let made = given(own);
            assert_eq!(made.metric_regex().as_deref(), Some(own));
            assert_eq!(made.epoch_pattern(), Some(r"\[([0-9]+)\](?:#011|\t)"), "{own}");
        }
        assert_eq!(given("auc=([0-9.]+)").epoch_pattern(), None, "another program in an image of that name");
        let mut own = given("validation-auc:([0-9.]+)");
        own.body["Controller"] = json!({"EpochPattern": "round ([0-9]+)"});
        assert_eq!((own.epoch_pattern(), own.epochs_read()), (Some("round ([0-9]+)"), None));
    }

    #[test]
    fn definitions_are_filled_in_only_where_none_is_given() {
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
