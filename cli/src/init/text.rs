//! Writes a request with comments.

use serde_json::{Value, json};
use wire::request::{LOCAL_INSTANCE_TYPE, NUMBER_PATTERN};

use super::Draft;
use crate::arguments::Goal;

const LISTS: [&str; 3] =
    ["IntegerParameterRanges", "ContinuousParameterRanges", "CategoricalParameterRanges"];

/// Returns the request as JSON with comments.
pub(super) fn write(draft: &Draft) -> String {
    let config = [
        "    \"Strategy\": \"Hyperband\",".to_owned(),
        "    // MaxResource is the number of epochs of a full training. Worse trials are stopped earlier."
            .to_owned(),
        format!(
            "    \"StrategyConfig\": {{\"HyperbandStrategyConfig\": {{\"MaxResource\": {}}}}},",
            draft.max_resource
        ),
        format!(
            "    \"HyperParameterTuningJobObjective\": {{\"Type\": {}, \"MetricName\": {}}},",
            json!(match draft.goal {
                Goal::Maximize => "Maximize",
                Goal::Minimize => "Minimize",
            }),
            json!(draft.metric)
        ),
        "    // The number of training jobs in total, and at once.".to_owned(),
        format!(
            "    \"ResourceLimits\": {{\"MaxNumberOfTrainingJobs\": {}, \"MaxParallelTrainingJobs\": {}}},",
            draft.jobs, draft.parallel
        ),
        "    // Each training job reads its values from SM_HPS (JSON) or SM_HP_<NAME>.".to_owned(),
        format!("    \"ParameterRanges\": {{\n{}\n    }}", ranges(draft)),
    ];
    format!(
        "// A request for `hyperband run`. Comments are allowed. docs/REQUEST.md describes every field.\n\
         {{\n  \"HyperParameterTuningJobName\": {},\n  \"HyperParameterTuningJobConfig\": {{\n{}\n  }},\n  \
         \"TrainingJobDefinition\": {{\n{}\n  }},\n  \"Controller\": {{\n{}\n  }}\n}}\n",
        json!(draft.name),
        config.join("\n"),
        job(draft),
        controller(draft)
    )
}

fn ranges(draft: &Draft) -> String {
    let list = |list: &&str| {
        let rows: Vec<String> = draft
            .ranges
            .iter()
            .filter(|range| range.list() == *list)
            .map(|range| {
                let members = range.members().into_iter().map(|(name, value)| member(name, &value));
                format!("        {{{}}}", members.collect::<Vec<_>>().join(", "))
            })
            .collect();
        (!rows.is_empty()).then(|| format!("      \"{list}\": [\n{}\n      ]", rows.join(",\n")))
    };
    LISTS.iter().filter_map(list).collect::<Vec<_>>().join(",\n")
}

/// Returns a member with a space after each comma of a list.
fn member(name: &str, value: &Value) -> String {
    let text = match value {
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            format!("[{}]", values.join(", "))
        }
        other => other.to_string(),
    };
    format!("\"{name}\": {text}")
}

fn job(draft: &Draft) -> String {
    let definitions = |regex: &str| {
        let one =
            |name: &str, regex: &str| format!("{{\"Name\": {}, \"Regex\": {}}}", json!(name), json!(regex));
        let others = draft.others.iter().map(|(name, regex)| format!(",\n      {}", one(name, regex)));
        let others: String = others.collect();
        let all = one(&draft.metric, regex);
        let all = if others.is_empty() { all } else { format!("\n      {all}{others}\n    ") };
        format!("\"AlgorithmSpecification\": {{\"MetricDefinitions\": [{all}]}},")
    };
    let metric = match &draft.regex {
        Some(regex) => format!(
            "    // The group of Regex captures the value from a line of the program's output.\n    {}",
            definitions(regex)
        ),
        None => format!(
            "    // The value is read from lines such as NAME=0.5 and NAME: 0.5. For other lines, add a Regex:\n    \
             // {}",
            definitions(&format!("{}={NUMBER_PATTERN}", regex::escape(&draft.metric)))
        ),
    };
    format!(
        "{metric}\n    // For a program that keeps checkpoints in $SM_ROOT/checkpoints:\n    \
         // \"CheckpointConfig\": {{}},\n    // A training job is stopped after this time.\n    \
         \"StoppingCondition\": {{\"MaxRuntimeInSeconds\": 86400}}"
    )
}

fn controller(draft: &Draft) -> String {
    let mut fields: Vec<(&str, String)> = Vec::new();
    if let Some(pattern) = &draft.epoch_pattern {
        fields.push((
            "The group of EpochPattern captures the epoch from the same line.",
            format!("\"EpochPattern\": {}", json!(pattern)),
        ));
        if draft.epoch_base == 0 {
            fields.push(("The log counts epochs from 0.", "\"EpochBase\": 0".to_owned()));
        }
    }
    if let Some(name) = &draft.resource_hyperparameter {
        fields.push((
            "Each training job gets its number of epochs in this hyperparameter.",
            format!("\"ResourceHyperParameter\": {}", json!(name)),
        ));
    }
    // Commented fields come first, so that they need no other comma when they are uncommented.
    let mut text = format!(
        "    // A hard cap in dollars requires the price of one hour of this machine, and reserves\n    \
         // MaxRuntimeInSeconds for each job:\n    \
         // \"MaxCostUsd\": 5, \"InstancePricesUsdPerHour\": {{\"{LOCAL_INSTANCE_TYPE}\": 0.5}},\n"
    );
    if draft.epoch_pattern.is_none() {
        text.push_str(
            "    // Each line with the value counts as one epoch. If the line has the epoch, add its pattern:\n    \
             // \"EpochPattern\": \"epoch (\\\\d+)\",\n",
        );
    }
    let fields: Vec<String> =
        fields.iter().map(|(comment, field)| format!("    // {comment}\n    {field}")).collect();
    text.push_str(&fields.join(",\n"));
    text.trim_end().to_owned()
}
