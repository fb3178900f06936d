//! Warnings about metric patterns: missing for a stack, or cutting numbers.

use serde_json::{Value, json};
use wire::events::logs::{Explanation, MetricPattern};
use wire::request::{NUMBER_PATTERN, Request};

use super::log::Findings;
use crate::cut_numbers;
use crate::warning::{Code, Warning};

pub(super) const DEFINITIONS: &str = "TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions";

/// Returns the warning about each metric without `Regex`: the request is valid on this machine only. `body` is the request
/// as given.
pub(super) fn missing(request: &Request, body: Value) -> Vec<Warning> {
    let given = Request::from_stored(body);
    let of_one = |(own, given): (&Request, &Request)| {
        let names = own.metric_patterns().map(|(metric, _)| metric);
        let without = names.filter(|metric| given.metric_patterns().all(|(name, _)| name != *metric));
        without.map(|metric| required(metric).of_definition(own.own_name())).collect::<Vec<_>>()
    };
    request.definitions().zip(given.definitions()).flat_map(of_one).collect()
}

/// Returns the warning about a metric without `Regex`.
fn required(metric: &str) -> Warning {
    let regex = format!("{}={NUMBER_PATTERN}", regex::escape(metric));
    Warning::new(
        Code::RegexRequiredByStack,
        format!("Metric '{metric}' has no Regex: a stack would reject this request."),
        format!(
            "`hyperband run` reads lines such as {metric}=0.5 or {metric}: 0.5. For a stack, add {} to \
             MetricDefinitions.",
            json!({"Name": metric, "Regex": regex})
        ),
    )
}

/// Returns a warning for each metric whose pattern cuts a number of the log, else a sample number.
pub(super) fn cuts(request: &Request, log: Option<&Findings>) -> Vec<Warning> {
    let in_log = |metric: &str, regex: &str, log: Option<&Findings>| {
        let found = log?.metrics.iter().find(|found| found.name == metric && found.regex == regex)?;
        found.cut.as_ref().filter(|cut| !cut.is_epoch).map(|cut| cut_numbers::log_line(metric, regex, cut))
    };
    let mut warned = Vec::new();
    for own in request.definitions() {
        let log = log.filter(|log| log.definition.as_deref() == own.own_name());
        let of_one = own.metric_patterns().filter_map(|(metric, regex)| {
            captures_name(metric, regex)
                .or_else(|| in_log(metric, regex, log))
                .or_else(|| cut_numbers::sample(metric, regex))
        });
        warned.extend(of_one.map(|warning| warning.of_definition(own.own_name())));
    }
    warned
}

/// Returns the warning about a pattern whose first group captures the name of the metric, such as Katib's filters.
fn captures_name(metric: &str, regex: &str) -> Option<Warning> {
    let pattern = MetricPattern::new(regex, None).ok()?;
    let lines = ["=", ": ", " "].map(|sign| format!("{metric}{sign}0.5"));
    let captures = |line: &String| match pattern.explain(line) {
        Explanation::NotANumber { captured } => captured == metric,
        Explanation::TooLong | Explanation::NoMatch | Explanation::Value { .. } => false,
    };
    lines.iter().any(captures).then(|| {
        Warning::new(
            Code::FirstGroupIsName,
            format!(
                "The first group of the Regex of metric '{metric}' captures the name, so no line has a value."
            ),
            format!(
                "Capture the number in the first group, for example {}, and begin other groups with (?:.",
                json!(format!("{}={NUMBER_PATTERN}", regex::escape(metric)))
            ),
        )
    })
}
