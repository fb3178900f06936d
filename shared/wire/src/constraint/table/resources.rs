//! Rows of the resources of a training job, in both forms of the API.

use super::super::{Constraint, boolean, integer, list, structure, text};
use super::{INSTANCE_TYPE, KMS_KEY};

const PLAN: &str = r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:training-plan/.*";
const ONE_TYPE: &str = "use InstanceType and InstanceCount instead";
/// The ledger would book prepaid capacity at the on-demand price.
const NO_PLAN: &str = "remove it: training jobs run on on-demand, spot or warm-pool instances";
const NO_PLACE: &str = "remove it: SageMaker places the instances";
/// Most instances of one training job: far above any account's quota, and low enough that no sum of costs overflows.
const INSTANCES: i64 = 10_000;
/// Largest volume of an instance in GiB, the maximum of gp2.
const GIB: i64 = 16_384;

#[rustfmt::skip]
pub(in super::super) static RESOURCES: &[Constraint] = &[
    structure("TrainingJobDefinition.ResourceConfig").rules(&["resource_config", "instance_fields", "max_instances"]),
    text("TrainingJobDefinition.ResourceConfig.InstanceType").max(64).pattern(INSTANCE_TYPE),
    integer("TrainingJobDefinition.ResourceConfig.InstanceCount").range(1, INSTANCES).rules(&["metric_host"]),
    integer("TrainingJobDefinition.ResourceConfig.VolumeSizeInGB").range(1, GIB),
    text("TrainingJobDefinition.ResourceConfig.VolumeKmsKeyId").max(2_048).pattern(KMS_KEY),
    integer("TrainingJobDefinition.ResourceConfig.KeepAlivePeriodInSeconds").range(0, 21_600).rules(&["keep_alive"]),
    list("TrainingJobDefinition.ResourceConfig.InstanceGroups").max(5).unsupported(&[], ONE_TYPE),
    structure("TrainingJobDefinition.ResourceConfig.InstanceGroups[]"),
    text("TrainingJobDefinition.ResourceConfig.InstanceGroups[].InstanceType").required().max(64).pattern(INSTANCE_TYPE),
    integer("TrainingJobDefinition.ResourceConfig.InstanceGroups[].InstanceCount").required().range(1, INSTANCES),
    text("TrainingJobDefinition.ResourceConfig.InstanceGroups[].InstanceGroupName").required().range(1, 64),
    list("TrainingJobDefinition.ResourceConfig.InstancePreferences").range(1, 5).unsupported(&[], ONE_TYPE),
    text("TrainingJobDefinition.ResourceConfig.TrainingPlanArn").range(50, 2_048).pattern(PLAN).unsupported(&[], NO_PLAN),
    structure("TrainingJobDefinition.ResourceConfig.InstancePlacementConfig").unsupported(&[], NO_PLACE),
    boolean("TrainingJobDefinition.ResourceConfig.InstancePlacementConfig.EnableMultipleJobs"),
    list("TrainingJobDefinition.ResourceConfig.InstancePlacementConfig.PlacementSpecifications").max(10),
    structure("TrainingJobDefinition.ResourceConfig.InstancePlacementConfig.PlacementSpecifications[]"),
    text("TrainingJobDefinition.ResourceConfig.InstancePlacementConfig.PlacementSpecifications[].UltraServerId").max(256),
    integer("TrainingJobDefinition.ResourceConfig.InstancePlacementConfig.PlacementSpecifications[].InstanceCount")
        .required().range(0, INSTANCES),
    structure("TrainingJobDefinition.HyperParameterTuningResourceConfig")
        .rules(&["resource_config", "instance_fields", "instance_configs", "max_instances"]),
    text("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceType").max(64).pattern(INSTANCE_TYPE),
    integer("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceCount").range(1, INSTANCES)
        .rules(&["metric_host"]),
    integer("TrainingJobDefinition.HyperParameterTuningResourceConfig.VolumeSizeInGB").range(1, GIB),
    text("TrainingJobDefinition.HyperParameterTuningResourceConfig.VolumeKmsKeyId").max(2_048).pattern(KMS_KEY),
    text("TrainingJobDefinition.HyperParameterTuningResourceConfig.AllocationStrategy").one_of(&["Prioritized"]),
    list("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs").range(1, 6),
    structure("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs[]"),
    text("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs[].InstanceType").required().max(64)
        .pattern(INSTANCE_TYPE),
    integer("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs[].InstanceCount").required()
        .range(1, INSTANCES).rules(&["metric_host"]),
    integer("TrainingJobDefinition.HyperParameterTuningResourceConfig.InstanceConfigs[].VolumeSizeInGB").required()
        .range(1, GIB),
];
