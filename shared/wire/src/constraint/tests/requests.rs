//! Requests that together set every field: three valid ones, since some fields exclude each other, and three with
//! unsupported fields.

use serde_json::{Value, json};
use tuning::definition::Settings;

/// A request and the paths of its violations.
pub(super) struct Base {
    pub(super) name: &'static str,
    pub(super) body: Value,
    pub(super) rejected: Vec<&'static str>,
}

/// Returns all base requests.
pub(super) fn bases() -> Vec<Base> {
    let base = |name, body, rejected: &[&'static str]| Base { name, body, rejected: rejected.to_vec() };
    let unsupported_fields = [
        "Autotune",
        "HyperParameterTuningJobConfig.ParameterRanges.AutoParameters",
        "TrainingJobDefinition.InputDataConfig[0].DataSource.S3DataSource.InstanceGroupNames",
    ];
    let group_fields = [
        "TrainingJobDefinition.ResourceConfig.InstanceGroups",
        "TrainingJobDefinition.ResourceConfig.InstancePlacementConfig",
        "TrainingJobDefinition.ResourceConfig.InstancePreferences",
        "TrainingJobDefinition.ResourceConfig.TrainingPlanArn",
    ];
    vec![
        base("flat", flat(), &[]),
        base("named", named(), &[]),
        base("configs", configs(), &[]),
        base("unsupported", unsupported(), &unsupported_fields),
        base("groups", groups(), &group_fields),
        base("definitions", definitions(), &[]),
    ]
}

fn ranges() -> Value {
    json!({
        "IntegerParameterRanges": [
            {"Name": "max_depth", "MinValue": "1", "MaxValue": "10", "ScalingType": "Linear"},
        ],
        "ContinuousParameterRanges": [
            {"Name": "eta", "MinValue": "0.01", "MaxValue": "1", "ScalingType": "Logarithmic"},
            {"Name": "momentum", "MinValue": "0.5", "MaxValue": "0.999", "ScalingType": "ReverseLogarithmic"},
        ],
        "CategoricalParameterRanges": [{"Name": "optimizer", "Values": ["\"adam\"", "\"sgd\""]}],
    })
}

/// The user's image, flat `HyperParameterTuningResourceConfig`, spot, data in S3.
pub(super) fn flat() -> Value {
    json!({
        "HyperParameterTuningJobName": "hb1",
        "HyperParameterTuningJobConfig": config(),
        "TrainingJobDefinition": job(),
        "Tags": [{"Key": "team", "Value": "example"}],
        "Controller": controller(),
    })
}

fn config() -> Value {
    json!({
        "Strategy": "Hyperband",
        "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 30}},
        "HyperParameterTuningJobObjective": {"Type": "Maximize", "MetricName": "validation:auc"},
        "ResourceLimits": {
            "MaxNumberOfTrainingJobs": 30,
            "MaxParallelTrainingJobs": 4,
            "MaxRuntimeInSeconds": 86_400,
        },
        "ParameterRanges": ranges(),
        "TrainingJobEarlyStoppingType": "Off",
        "TuningJobCompletionCriteria": {
            "TargetObjectiveMetricValue": 0.99,
            "BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": 10},
            "ConvergenceDetected": {"CompleteOnConvergence": "Disabled"},
        },
        "RandomSeed": 7,
    })
}

fn job() -> Value {
    json!({
        "DefinitionName": "only",
        "StaticHyperParameters": {"batch_size": "64"},
        "AlgorithmSpecification": {
            "TrainingInputMode": "File",
            "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/own:1",
            "MetricDefinitions": [{"Name": "validation:auc", "Regex": r"auc=([-+.\w]*\w)"}],
        },
        "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
        "InputDataConfig": [{
            "ChannelName": "train",
            "DataSource": {"S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": "s3://example-bucket/train/",
                "S3DataDistributionType": "ShardedByS3Key",
                "AttributeNames": ["source-ref"],
                "ModelAccessConfig": {"AcceptEula": true},
                "HubAccessConfig": {"HubContentArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/x"},
            }},
            "ContentType": "text/csv",
            "CompressionType": "None",
            "RecordWrapperType": "None",
            "InputMode": "File",
            "ShuffleConfig": {"Seed": 1},
        }],
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out", "KmsKeyId": "key", "CompressionType": "GZIP"},
        "StoppingCondition": {
            "MaxRuntimeInSeconds": 2_400,
            "MaxWaitTimeInSeconds": 3_600,
            "MaxPendingTimeInSeconds": 7_200,
        },
        "EnableNetworkIsolation": false,
        "EnableInterContainerTrafficEncryption": false,
        "EnableManagedSpotTraining": true,
        "CheckpointConfig": {"S3Uri": "s3://example-bucket/ckpt/", "LocalPath": "/opt/ml/checkpoints"},
        "RetryStrategy": {"MaximumRetryAttempts": 3},
        "ExperimentConfig": {
            "ExperimentName": "churn",
            "TrialName": "first",
            "TrialComponentDisplayName": "search",
            "RunName": "run",
        },
        "MlflowConfig": {
            "MlflowResourceArn": "arn:aws:sagemaker:us-east-1:111122223333:mlflow-app/app-1",
            "MlflowExperimentName": "churn",
            "MlflowRunName": "search",
        },
        "Environment": {"LEVEL": "info"},
        "HyperParameterTuningResourceConfig": {
            "InstanceType": "ml.m5.2xlarge",
            "InstanceCount": 3,
            "VolumeSizeInGB": 30,
            "VolumeKmsKeyId": "key",
            "AllocationStrategy": "Prioritized",
        },
    })
}

fn controller() -> Value {
    let mut controller = json!({
        "MaxCostUsd": 25.5,
        "InstancePricesUsdPerHour": {"ml.m5.2xlarge": 0.461},
        "ReductionFactor": 3,
        "Prefer": null,
        "RungExecution": "Stop",
        "Scheduling": "Asynchronous",
        "Sampler": "Sobol",
        "ResourceHyperParameter": "epochs",
        "EpochPattern": "epoch=([0-9]+)",
        "EpochBase": 1,
        "EpochNumbering": "Absolute",
        "MetricHost": "algo-1",
        "MaxInstances": 12,
        "SpotFallback": "None",
        "NoObjectiveSeconds": 1_800,
        "StartupAllowanceSeconds": 300,
        "UploadAllowanceSeconds": 600,
        "Refit": "None",
        "ValueTolerance": 0.01,
        "InitialConfigurations": [{"optimizer": "\"sgd\""}],
        "KnownResults": [{"eta": 0.1, "max_depth": 4, "momentum": 0.9, "optimizer": "\"sgd\"", "validation:auc": 0.9}],
        "InstanceCounts": [],
        "ScaleWithInstances": [],
    });
    for (path, range) in Settings::ROWS {
        controller[path.trim_start_matches("Controller.")] = (*range.end()).into();
    }
    controller
}

/// A built-in algorithm by name, `ResourceConfig`, on-demand instances with a warm pool, data in a file system.
pub(super) fn named() -> Value {
    let mut body = flat();
    let job = &mut body["TrainingJobDefinition"];
    job["AlgorithmSpecification"] = json!({"TrainingInputMode": "File", "AlgorithmName": "xgboost"});
    job.as_object_mut().unwrap().remove("HyperParameterTuningResourceConfig");
    job["ResourceConfig"] = json!({
        "InstanceType": "ml.m5.2xlarge",
        "InstanceCount": 3,
        "VolumeSizeInGB": 30,
        "VolumeKmsKeyId": "key",
        "KeepAlivePeriodInSeconds": 600,
    });
    job["InputDataConfig"][0]["DataSource"] = json!({"FileSystemDataSource": {
        "FileSystemId": "fs-0123456789abcdef0",
        "FileSystemAccessMode": "ro",
        "FileSystemType": "EFS",
        "DirectoryPath": "/data",
    }});
    job["EnableManagedSpotTraining"] = json!(false);
    job["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 2_400});
    body["Controller"].as_object_mut().unwrap().remove("MaxCostUsd");
    body
}

/// One entry of `InstanceConfigs`, strategy Random, data from a hub.
pub(super) fn configs() -> Value {
    let mut body = flat();
    let config = &mut body["HyperParameterTuningJobConfig"];
    config["Strategy"] = json!("Random");
    config.as_object_mut().unwrap().remove("StrategyConfig");
    body["Controller"]["InstanceCounts"] = json!([3, 6]);
    body["Controller"]["ScaleWithInstances"] = json!(["batch_size", "max_depth"]);
    let job = &mut body["TrainingJobDefinition"];
    job["HyperParameterTuningResourceConfig"] = json!({
        "InstanceConfigs": [{"InstanceType": "ml.m5.2xlarge", "InstanceCount": 3, "VolumeSizeInGB": 30}],
    });
    job["InputDataConfig"][0]["DataSource"] = json!({"DatasetSource": {
        "DatasetArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/hub/DataSet/set/1.0.0",
    }});
    body
}

fn unsupported() -> Value {
    let mut body = flat();
    body["Autotune"] = json!({"Mode": "Enabled"});
    body["WarmStartConfig"] = json!({
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "hb0"}],
        "WarmStartType": "TransferLearning",
    });
    let auto = json!([{"Name": "alpha", "ValueHint": "0.5"}]);
    body["HyperParameterTuningJobConfig"]["ParameterRanges"]["AutoParameters"] = auto;
    let job = &mut body["TrainingJobDefinition"];
    job["InputDataConfig"][0]["DataSource"]["S3DataSource"]["InstanceGroupNames"] = json!(["group"]);
    body
}

fn groups() -> Value {
    let mut body = named();
    let resources = &mut body["TrainingJobDefinition"]["ResourceConfig"];
    resources["InstanceGroups"] =
        json!([{"InstanceType": "ml.m5.large", "InstanceCount": 1, "InstanceGroupName": "group"}]);
    resources["InstancePreferences"] = json!([{}]);
    resources["TrainingPlanArn"] = json!("arn:aws:sagemaker:us-east-1:111122223333:training-plan/plan");
    resources["InstancePlacementConfig"] = json!({
        "EnableMultipleJobs": false,
        "PlacementSpecifications": [{"UltraServerId": "u", "InstanceCount": 1}],
    });
    body
}

fn definitions() -> Value {
    let mut body = flat();
    let mut job = body.as_object_mut().unwrap().remove("TrainingJobDefinition").unwrap();
    job["DefinitionName"] = json!("a");
    job["TuningObjective"] = json!({"Type": "Maximize", "MetricName": "validation:auc"});
    job["HyperParameterRanges"] = ranges();
    body["TrainingJobDefinitions"] = json!([job]);
    let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
    config.remove("HyperParameterTuningJobObjective");
    config.remove("ParameterRanges");
    body
}
