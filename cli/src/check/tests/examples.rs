//! An example of every warning, rendered into one file, so that they can be read together.
//!
//! `HYPERBAND_UPDATE=1` writes the file.

use std::fmt::Write;

use super::*;
use crate::plan;
use crate::warning::{Code, plain};

/// Returns the warnings of `hyperband check`, with a log.
fn warned(body: Value, log: Option<&str>) -> Vec<Warning> {
    let folder = tempfile::tempdir().unwrap();
    let path = log.map(|log| {
        let path = folder.path().join("job.log");
        std::fs::write(&path, log).unwrap();
        path
    });
    let request = Request::check(body.clone()).unwrap_or_else(|error| panic!("{error}"));
    let found = path.map(|path| read_log(&request, &path).unwrap());
    Checked::examine(request, found, body).warnings
}

fn stopping(runtime: u32, wait: u32) -> (&'static str, Value) {
    let condition = json!({"MaxRuntimeInSeconds": runtime, "MaxWaitTimeInSeconds": wait});
    ("TrainingJobDefinition/StoppingCondition", condition)
}

fn cap(usd: f64) -> (&'static str, Value) {
    ("Controller/MaxCostUsd", json!(usd))
}

fn of_jobs() -> Vec<Warning> {
    let channel = |name: &str| {
        let source = json!({"S3DataType": "S3Prefix", "S3Uri": "s3://b/d/", "S3DataDistributionType": "ShardedByS3Key"});
        json!({"ChannelName": name, "DataSource": {"S3DataSource": source}})
    };
    let instances = |count: u32| ("TrainingJobDefinition/ResourceConfig/InstanceCount", json!(count));
    let channels = json!([channel("train"), channel("validation")]);
    let promote = vec![
        ("TrainingJobDefinition/CheckpointConfig", json!(null)),
        ("Controller/RungExecution", json!("Promote")),
        ("Controller/ResourceHyperParameter", json!("epochs")),
    ];
    let mut found = Vec::new();
    for changes in [
        vec![("Controller/MaxCostUsd", json!(null))],
        promote,
        vec![stopping(600, 700)],
        vec![instances(21), cap(50.0)],
        vec![cap(0.03)],
        vec![("Controller/EpochPattern", json!(null))],
        vec![instances(2), ("TrainingJobDefinition/InputDataConfig", channels)],
        vec![
            ("HyperParameterTuningJobConfig/ResourceLimits/MaxNumberOfTrainingJobs", json!(2)),
            ("Controller/ReductionFactor", json!(3)),
        ],
        vec![
            ("HyperParameterTuningJobConfig/StrategyConfig/HyperbandStrategyConfig/MinResource", json!(7)),
            ("HyperParameterTuningJobConfig/StrategyConfig/HyperbandStrategyConfig/MaxResource", json!(19)),
            ("Controller/ReductionFactor", json!(3)),
        ],
    ] {
        found.extend(warned(changed(&calm(), &changes), None));
    }
    let kept = ("TrainingJobDefinition/ResourceConfig/KeepAlivePeriodInSeconds", json!(7_200));
    let body = changed(&built_in("xgboost", "Maximize", "validation:auc"), &[kept, cap(50.0)]);
    found.extend(warned(body, None));
    found
}

fn of_ranges() -> Vec<Warning> {
    let range = |name: &str, min: &str, max: &str| json!({"Name": name, "MinValue": min, "MaxValue": max, "ScalingType": "Linear"});
    let optimizer = json!({"Name": "optimizer", "Values": ["sgd", "adam", "sgd"]});
    let ranges = json!({"CategoricalParameterRanges": [optimizer], "ContinuousParameterRanges": [
        range("beside", "1", "2"),
        range("momentum", "0.9", "0.9"),
        range("penalty", "0.001", "1"),
        range("eta", "0.01", "1"),
    ]});
    warned(changed(&calm(), &[("HyperParameterTuningJobConfig/ParameterRanges", ranges)]), None)
}

fn of_algorithms() -> Vec<Warning> {
    let spot = |body: &Value, wait: u32| {
        let spot = ("TrainingJobDefinition/EnableManagedSpotTraining", json!(true));
        changed(body, &[spot, stopping(60, wait), cap(9.0)])
    };
    let xgboost = built_in("xgboost", "Maximize", "validation:auc");
    let statics =
        |name: &str, value: &str| ("TrainingJobDefinition/StaticHyperParameters", json!({name: value}));
    let definitions = (
        "TrainingJobDefinition/AlgorithmSpecification/MetricDefinitions",
        json!([{"Name": "validation:auc", "Regex": r"validation-auc:([-+.\w]*\w)"}]),
    );
    let bodies = [
        built_in("xgboost", "Minimize", "validation:auc"),
        spot(&xgboost, 120),
        changed(&xgboost, &[statics("num_round", "9")]),
        changed(&xgboost, &[statics("save_model_on_termination", "false")]),
        changed(&xgboost, &[definitions]),
        built_in("kmeans", "Minimize", "test:msd"),
        built_in("linear-learner", "Minimize", "validation:mse"),
        built_in("seq2seq", "Maximize", "validation:bleu"),
        spot(&built_in("ntm", "Minimize", "validation:total_loss"), 4_000),
    ];
    bodies.into_iter().flat_map(|body| warned(body, None)).collect()
}

fn of_logs() -> Vec<Warning> {
    let mut found = Vec::new();
    for log in [
        "epoch 1 acc=0.5\nepoch 2 acc=0.6",
        "Epoch: 1 accuracy=0.5\nEpoch: 2 accuracy=0.6",
        "done\nepoch 27 accuracy=0.5",
        "epoch 0.5 accuracy=0.5\nepoch 1.0 accuracy=0.6",
        "epoch 1 accuracy=0.5\repoch 1 accuracy=0.6\repoch 2 accuracy=0.6",
        "epoch 1 accuracy=0.5 accuracy=0.6\nepoch 2 accuracy=0.7",
        "epoch 1 accuracy=0.5\nepoch 1 accuracy=0.6",
        &["epoch 1 accuracy=0.1"; 10].join("\n"),
    ] {
        found.extend(warned(calm(), Some(log)));
    }
    let one = changed(&calm(), &[("Controller/EpochBase", json!(1))]);
    found.extend(warned(one, Some("epoch 0 accuracy=0.5\nepoch 1 accuracy=0.6")));
    let without = changed(&calm(), &[("Controller/EpochPattern", json!(null))]);
    found.extend(warned(without, Some("1/2 accuracy=0.5\r2/2 accuracy=0.6\naccuracy=0.7")));
    let log = "epoch 1 accuracy=0.5\nepoch 2 accuracy=6e-05";
    found.extend(warned(changed(&calm(), &[("Controller/EpochBase", json!(0))]), Some(log)));
    let regex = "TrainingJobDefinition/AlgorithmSpecification/MetricDefinitions/0/Regex";
    let cutting = changed(&calm(), &[(regex, json!("accuracy=([0-9.]+)"))]);
    found.extend(warned(cutting.clone(), None));
    found.extend(warned(cutting, Some(log)));
    let katib = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)";
    found.extend(warned(changed(&calm(), &[(regex, json!(katib))]), None));
    // The metric has the built-in pattern of this machine.
    let definitions = "TrainingJobDefinition/AlgorithmSpecification/MetricDefinitions";
    let local = changed(&calm(), &[(definitions, json!([{"Name": "accuracy"}]))]);
    let request = for_this_machine(local.clone()).unwrap_or_else(|error| panic!("{error}"));
    found.extend(Checked::examine(request, None, local).warnings);
    found
}

/// A new warning without an example fails here.
#[test]
fn every_warning_has_an_example() {
    let found = [of_jobs(), of_ranges(), of_algorithms(), of_logs(), plan::tests::examples()].concat();
    let mut shown = String::new();
    for code in Code::ALL {
        let example = found.iter().find(|warning| warning.code == *code);
        let example = example.unwrap_or_else(|| panic!("the warning {} has no example", code.name()));
        writeln!(shown, "{}\n", plain(example)).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/warnings.txt");
    if std::env::var_os("HYPERBAND_UPDATE").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    assert_eq!(shown, std::fs::read_to_string(&path).unwrap(), "{}", path.display());
}
