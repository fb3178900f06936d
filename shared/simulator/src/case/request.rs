//! The request of a tuning, from its choices.

use serde_json::{Value, json};

use super::{Case, Choices, Epochs, Late, RESOURCE, Rungs, SCALED};

/// Sets the instance prices, the cluster sizes, `SpotFallback`, `Refit`, `ValueTolerance` and `KnownResults`.
fn set_prices_and_launch(controller: &mut Value, choices: &Choices) {
    if choices.own_price {
        for cluster in choices.clusters() {
            let price = micro_dollars(cluster.instance_hour);
            controller["InstancePricesUsdPerHour"][cluster.kind] = price;
        }
    }
    if !choices.sizes.is_empty() {
        controller["InstanceCounts"] = json!(choices.sizes);
        controller["ScaleWithInstances"] = json!([SCALED]);
    }
    if choices.spot_fallback {
        controller["SpotFallback"] = json!("OnDemand");
    }
    if choices.refit {
        controller["Refit"] = json!(if choices.tolerance.is_some() { "BestBuy" } else { "Best" });
    }
    if let Some(tolerance) = choices.tolerance {
        controller["ValueTolerance"] = json!(tolerance);
    }
    if choices.known_results > 0 && !choices.grid {
        let result = |n: u32| json!({"rate": f64::from(n) / 100.0, "depth": n % 10 + 1, "auc": f64::from(n * 37 % 100)});
        controller["KnownResults"] = (1..=choices.known_results).map(result).collect();
    }
}

/// Returns an amount in micro-dollars as a JSON number of dollars with two decimals.
pub(super) fn dollars(micro: u64) -> Value {
    let text = format!("{}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000);
    serde_json::from_str(&text).unwrap_or_default()
}

/// Like [`dollars`], but exact to the micro-dollar.
fn micro_dollars(micro: u64) -> Value {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    serde_json::from_str(text.trim_end_matches('0')).unwrap_or_default()
}

/// Replaces the ranges of a grid: each of its jobs has a combination.
fn set_grid(config: &mut Value, choices: &Choices) {
    if !choices.grid {
        return;
    }
    let depths: Vec<_> = (1..=choices.max_jobs).map(|depth| depth.to_string()).collect();
    config["ParameterRanges"] = json!({"CategoricalParameterRanges": [
        {"Name": "depth", "Values": depths}, {"Name": "rate", "Values": ["0.1"]},
    ]});
    if let Some(limits) = config["ResourceLimits"].as_object_mut() {
        limits.remove("MaxNumberOfTrainingJobs");
    }
}

/// The extra choices that are numbers of `Controller`, and their fields.
const CONTROLLER_NUMBERS: [(&str, &str); 5] = [
    ("no_objective", "NoObjectiveSeconds"),
    ("max_instances", "MaxInstances"),
    ("max_diverged", "MaxDivergedEpochs"),
    ("startup_allowance", "StartupAllowanceSeconds"),
    ("upload_allowance", "UploadAllowanceSeconds"),
];

/// Returns the request of a tuning.
pub(super) fn request(case: &Case, choices: &Choices) -> Value {
    let extra =
        |name: &str| choices.extra.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
    let mut config = json!({
        "Strategy": choices.strategy(),
        "HyperParameterTuningJobObjective": {
            "Type": if choices.maximize { "Maximize" } else { "Minimize" }, "MetricName": "auc"
        },
        "ResourceLimits": {
            "MaxNumberOfTrainingJobs": choices.max_jobs, "MaxParallelTrainingJobs": choices.max_parallel
        },
        "ParameterRanges": {
            "ContinuousParameterRanges": [{"Name": "rate", "MinValue": "0.01", "MaxValue": "1"}],
            "IntegerParameterRanges": [{"Name": "depth", "MinValue": "1", "MaxValue": "10"}],
        },
    });
    if let Some(seconds) = extra("max_runtime") {
        config["ResourceLimits"]["MaxRuntimeInSeconds"] = seconds;
    }
    if let Some(target) = extra("target") {
        config["TuningJobCompletionCriteria"]["TargetObjectiveMetricValue"] = target;
    }
    if let Some(most) = extra("not_improving") {
        config["TuningJobCompletionCriteria"]["BestObjectiveNotImproving"]["MaxNumberOfTrainingJobsNotImproving"] =
            most;
    }
    if choices.median {
        config["TrainingJobEarlyStoppingType"] = json!("Auto");
    }
    set_grid(&mut config, choices);
    let mut controller = json!({"MaxInterruptions": choices.max_interruptions});
    if choices.hyperband.is_some() || choices.strategy() == "Random" {
        controller["Sampler"] = json!(if choices.model { "Model" } else { "Sobol" });
    }
    set_rungs(&mut config, &mut controller, choices);
    for (name, field) in CONTROLLER_NUMBERS {
        if let Some(number) = extra(name) {
            controller[field] = number;
        }
    }
    if let Some(seconds) = choices.max_capacity_wait_seconds {
        controller["MaxCapacityWaitSeconds"] = json!(seconds);
    }
    if let Some(cap) = case.cap {
        controller["MaxCostUsd"] = dollars(cap);
    }
    set_prices_and_launch(&mut controller, choices);
    if case.epochs != Epochs::Ranked {
        controller["EpochPattern"] = json!(r"\[epoch ([0-9]+)\]");
        controller["EpochBase"] = json!(case.base);
        let numbering = if case.epochs == Epochs::Absolute { "Absolute" } else { "PerAttempt" };
        controller["EpochNumbering"] = json!(numbering);
    }
    let mut request = json!({
        "HyperParameterTuningJobName": case.name,
        "HyperParameterTuningJobConfig": config,
        "Controller": controller,
    });
    set_definitions(&mut request, choices);
    request
}

/// Sets the fields of Hyperband, if the tuning has rungs.
fn set_rungs(config: &mut Value, controller: &mut Value, choices: &Choices) {
    let Some((min, max, eta)) = choices.hyperband else { return };
    config["StrategyConfig"]["HyperbandStrategyConfig"] = json!({"MinResource": min, "MaxResource": max});
    match choices.late {
        None => controller["ReductionFactor"] = json!(eta),
        // Promotions do not depend on it.
        Some(prefer) if prefer != Late::ByJobs && choices.rungs == Rungs::Stop => {
            controller["Prefer"] = json!(prefer);
        }
        Some(_) => {}
    }
    controller["ResourceHyperParameter"] = json!(RESOURCE);
    let (execution, scheduling) = match choices.rungs {
        Rungs::Stop => ("Stop", "Asynchronous"),
        Rungs::Asynchronous => ("Promote", "Asynchronous"),
        Rungs::Synchronous => ("Promote", "Synchronous"),
    };
    controller["RungExecution"] = json!(execution);
    controller["Scheduling"] = json!(scheduling);
}

/// Sets the training job definition, or the list of them.
fn set_definitions(request: &mut Value, choices: &Choices) {
    if choices.definitions == 1 {
        request["TrainingJobDefinition"] = job_definition(choices, 0);
        return;
    }
    let config = &mut request["HyperParameterTuningJobConfig"];
    let objective = config["HyperParameterTuningJobObjective"].take();
    let ranges = config["ParameterRanges"].take();
    let definition = |number: u32| {
        let mut definition = job_definition(choices, number);
        definition["DefinitionName"] = json!(format!("d{number}"));
        definition["TuningObjective"] = objective.clone();
        definition["HyperParameterRanges"] = ranges.clone();
        // The spaces differ.
        if number == 1 {
            definition["HyperParameterRanges"]["IntegerParameterRanges"] = json!([]);
        }
        definition
    };
    request["TrainingJobDefinitions"] = (0..choices.definitions).map(definition).collect();
}

fn job_definition(choices: &Choices, number: u32) -> Value {
    let (runtime, wait) = choices.limits_of(number);
    let mut stopping = json!({"MaxRuntimeInSeconds": runtime});
    if let Some(wait) = wait {
        stopping["MaxWaitTimeInSeconds"] = json!(wait);
    }
    if let Some(pending) = choices.max_pending_seconds.filter(|_| wait.is_none()) {
        stopping["MaxPendingTimeInSeconds"] = json!(pending);
    }
    let mut definition = json!({
        "AlgorithmSpecification": {
            "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1",
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "auc", "Regex": r"auc=(\S+);"}],
        },
        "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
        "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
        "StoppingCondition": stopping,
        "EnableManagedSpotTraining": wait.is_some(),
        "CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"},
    });
    let types = choices.clusters_of(number).step_by(choices.sizes.len().max(1));
    let resources = types.map(
        |cluster| json!({"InstanceType": cluster.kind, "InstanceCount": cluster.count, "VolumeSizeInGB": 30}),
    );
    let resources: Vec<Value> = resources.collect();
    match resources.as_slice() {
        [one] => {
            definition["ResourceConfig"] = one.clone();
            let keep = choices.keep_of(number);
            if keep > 0 {
                definition["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(keep);
            }
        }
        several => {
            definition["HyperParameterTuningResourceConfig"] = json!({"InstanceConfigs": several});
        }
    }
    definition
}
