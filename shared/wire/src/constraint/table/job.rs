//! Rows of the training job definition, except for its resources.

use super::super::{Constraint, boolean, integer, list, map, structure, text};
use super::{INPUT_URI, KMS_KEY, NAME, S3_URI};
use crate::request::Distribution;

const ROLE: &str = r"arn:aws[a-z\-]*:iam::[0-9]{12}:role/?[a-zA-Z_0-9+=,.@\-_/]+";
const ALGORITHM: &str = r"(arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:[a-z\-]*/)?[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
const EXPERIMENT: &str = "[a-zA-Z0-9](-*[a-zA-Z0-9]){0,119}";
const DATA_SET: &str = r"(arn:[a-z0-9.-]{1,63}:sagemaker:[a-zA-Z0-9_]+(?:-[a-zA-Z0-9_]+)+:([0-9]{12}|aws):hub-content/)[a-zA-Z0-9](-*[a-zA-Z0-9])*/DataSet/[a-zA-Z0-9](-*[a-zA-Z0-9])*(/[0-9]{1,4}.[0-9]{1,4}.[0-9]{1,4})?";
const INPUT_MODE: &[&str] = &["Pipe", "File", "FastFile"];
const OBJECTIVE: &str = "HyperParameterTuningJobConfig.HyperParameterTuningJobObjective";
const RANGES: &str = "HyperParameterTuningJobConfig.ParameterRanges";

#[rustfmt::skip]
pub(in super::super) static JOB: &[Constraint] = &[
    structure("TrainingJobDefinition").rules(&["one_definition", "objective"]),
    text("TrainingJobDefinition.DefinitionName").range(1, 64).pattern(NAME),
    structure("TrainingJobDefinition.TuningObjective").like(OBJECTIVE).rules(&["one_definition"]),
    structure("TrainingJobDefinition.HyperParameterRanges").like(RANGES).rules(&["one_definition"]),
    map("TrainingJobDefinition.StaticHyperParameters").max(100)
        .rules(&["max_resource", "resource_order", "unique_names", "reserved_names", "hyperparameter_count"]),
    text("TrainingJobDefinition.StaticHyperParameters{key}").range(1, 256),
    text("TrainingJobDefinition.StaticHyperParameters{}").max(2_500),
    structure("TrainingJobDefinition.AlgorithmSpecification").required().rules(&["image_or_algorithm", "objective_metric"]),
    text("TrainingJobDefinition.AlgorithmSpecification.TrainingInputMode").required().one_of(INPUT_MODE),
    text("TrainingJobDefinition.AlgorithmSpecification.TrainingImage").range(1, 255),
    text("TrainingJobDefinition.AlgorithmSpecification.AlgorithmName").range(1, 170).pattern(ALGORITHM),
    list("TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions").max(40).rules(&["metric_patterns"]),
    structure("TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions[]"),
    text("TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions[].Name").required().range(1, 255).pattern(".+"),
    text("TrainingJobDefinition.AlgorithmSpecification.MetricDefinitions[].Regex").required().range(1, 500),
    text("TrainingJobDefinition.RoleArn").required().range(20, 2_048).pattern(ROLE),
    list("TrainingJobDefinition.InputDataConfig").range(1, 20).rules(&["channel_names", "data_source"]),
    structure("TrainingJobDefinition.InputDataConfig[]"),
    text("TrainingJobDefinition.InputDataConfig[].ChannelName").required().range(1, 64).pattern(r"[A-Za-z0-9.\-_]+"),
    structure("TrainingJobDefinition.InputDataConfig[].DataSource").required(),
    structure("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource"),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.S3DataType").required()
        .one_of(&["ManifestFile", "S3Prefix", "AugmentedManifestFile", "Converse"]),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.S3Uri").required().max(1_024).pattern(INPUT_URI),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.S3DataDistributionType")
        .one_of(Distribution::WORDS),
    list("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.AttributeNames").max(16),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.AttributeNames[]").range(1, 256),
    list("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.InstanceGroupNames").max(5)
        .unsupported(&[], "remove it: all instances of a training job are equal and form one group"),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.InstanceGroupNames[]").range(1, 64),
    structure("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.ModelAccessConfig"),
    boolean("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.ModelAccessConfig.AcceptEula").required(),
    structure("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.HubAccessConfig"),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.S3DataSource.HubAccessConfig.HubContentArn").required().max(255),
    structure("TrainingJobDefinition.InputDataConfig[].DataSource.FileSystemDataSource"),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.FileSystemDataSource.FileSystemId").required().range(11, 21)
        .pattern("(fs-[0-9a-f]{8,})"),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.FileSystemDataSource.FileSystemAccessMode").required()
        .one_of(&["rw", "ro"]),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.FileSystemDataSource.FileSystemType").required()
        .one_of(&["EFS", "FSxLustre"]),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.FileSystemDataSource.DirectoryPath").required().max(4_096),
    structure("TrainingJobDefinition.InputDataConfig[].DataSource.DatasetSource"),
    text("TrainingJobDefinition.InputDataConfig[].DataSource.DatasetSource.DatasetArn").required().max(2_048)
        .pattern(DATA_SET),
    text("TrainingJobDefinition.InputDataConfig[].ContentType").max(256),
    text("TrainingJobDefinition.InputDataConfig[].CompressionType").one_of(&["None", "Gzip"]),
    text("TrainingJobDefinition.InputDataConfig[].RecordWrapperType").one_of(&["None", "RecordIO"]),
    text("TrainingJobDefinition.InputDataConfig[].InputMode").one_of(INPUT_MODE),
    structure("TrainingJobDefinition.InputDataConfig[].ShuffleConfig"),
    integer("TrainingJobDefinition.InputDataConfig[].ShuffleConfig.Seed").required().range(i64::MIN, i64::MAX),
    structure("TrainingJobDefinition.OutputDataConfig").required(),
    text("TrainingJobDefinition.OutputDataConfig.S3OutputPath").required().max(1_024).pattern(S3_URI),
    text("TrainingJobDefinition.OutputDataConfig.KmsKeyId").max(2_048).pattern(KMS_KEY),
    text("TrainingJobDefinition.OutputDataConfig.CompressionType").one_of(&["GZIP", "NONE"]),
    structure("TrainingJobDefinition.StoppingCondition").required(),
    integer("TrainingJobDefinition.StoppingCondition.MaxRuntimeInSeconds").range(1, 2_419_200).rules(&["spot_wait"]),
    integer("TrainingJobDefinition.StoppingCondition.MaxWaitTimeInSeconds").min(1)
        .rules(&["spot_wait", "wait_without_spot"]),
    integer("TrainingJobDefinition.StoppingCondition.MaxPendingTimeInSeconds").range(1_800, 2_419_200),
    boolean("TrainingJobDefinition.EnableManagedSpotTraining").rules(&["spot_wait", "wait_without_spot", "keep_alive", "spot_fallback"]),
    boolean("TrainingJobDefinition.EnableNetworkIsolation"),
    boolean("TrainingJobDefinition.EnableInterContainerTrafficEncryption"),
    structure("TrainingJobDefinition.CheckpointConfig"),
    text("TrainingJobDefinition.CheckpointConfig.S3Uri").required().max(1_024).pattern(S3_URI)
        .rules(&["checkpoint_length"]),
    text("TrainingJobDefinition.CheckpointConfig.LocalPath").range(1, 4_096),
    structure("TrainingJobDefinition.ExperimentConfig"),
    text("TrainingJobDefinition.ExperimentConfig.ExperimentName").max(120).pattern(EXPERIMENT),
    text("TrainingJobDefinition.ExperimentConfig.TrialName").max(120).pattern(EXPERIMENT),
    text("TrainingJobDefinition.ExperimentConfig.TrialComponentDisplayName").max(114).pattern(EXPERIMENT),
    text("TrainingJobDefinition.ExperimentConfig.RunName").max(120).pattern(EXPERIMENT),
    structure("TrainingJobDefinition.MlflowConfig"),
    text("TrainingJobDefinition.MlflowConfig.MlflowResourceArn").required().max(2_048),
    text("TrainingJobDefinition.MlflowConfig.MlflowExperimentName").range(1, 256),
    text("TrainingJobDefinition.MlflowConfig.MlflowRunName").range(1, 200),
    structure("TrainingJobDefinition.VpcConfig"),
    list("TrainingJobDefinition.VpcConfig.SecurityGroupIds").required().range(1, 5),
    text("TrainingJobDefinition.VpcConfig.SecurityGroupIds[]").max(32).pattern("[-0-9a-zA-Z]+"),
    list("TrainingJobDefinition.VpcConfig.Subnets").required().range(1, 16),
    text("TrainingJobDefinition.VpcConfig.Subnets[]").max(32).pattern("[-0-9a-zA-Z]+"),
    structure("TrainingJobDefinition.RetryStrategy"),
    integer("TrainingJobDefinition.RetryStrategy.MaximumRetryAttempts").required().range(1, 30),
    map("TrainingJobDefinition.Environment").max(48).rules(&["environment"]),
    text("TrainingJobDefinition.Environment{key}").range(1, 512).pattern("[a-zA-Z_][a-zA-Z0-9_]*"),
    text("TrainingJobDefinition.Environment{}").max(512),
];
