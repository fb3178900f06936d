//! Rows of `CreateTrainingJob`: the fields that the local training service reads. It accepts any other field.

use super::super::{Constraint, boolean, integer, list, map, structure, text};
use super::NAME;
use crate::request::Distribution;

/// A name of a folder: not only dots.
const CHANNEL: &str = r"[A-Za-z0-9.\-_]*[A-Za-z0-9\-_][A-Za-z0-9.\-_]*";
/// Most hosts of a job. Each host is a process and its shim.
const INSTANCES: i64 = 100;

#[rustfmt::skip]
pub(in super::super) static TRAINING_JOB: &[Constraint] = &[
    text("TrainingJobName").required().range(1, 63).pattern(NAME),
    map("HyperParameters").max(100),
    text("HyperParameters{key}").max(256),
    text("HyperParameters{}").max(2_500),
    structure("AlgorithmSpecification").required(),
    text("AlgorithmSpecification.TrainingInputMode").min(1),
    text("RoleArn").required().min(1),
    list("InputDataConfig").max(20),
    structure("InputDataConfig[]"),
    text("InputDataConfig[].ChannelName").required().range(1, 64).pattern(CHANNEL),
    structure("InputDataConfig[].DataSource").required(),
    structure("InputDataConfig[].DataSource.S3DataSource").required(),
    text("InputDataConfig[].DataSource.S3DataSource.S3Uri").required().min(1),
    text("InputDataConfig[].DataSource.S3DataSource.S3DataDistributionType").one_of(Distribution::WORDS),
    text("InputDataConfig[].ContentType"),
    text("InputDataConfig[].RecordWrapperType"),
    structure("OutputDataConfig").required(),
    text("OutputDataConfig.S3OutputPath").required().min(1),
    structure("ResourceConfig").required(),
    text("ResourceConfig.InstanceType").required().min(1),
    integer("ResourceConfig.InstanceCount").required().range(1, INSTANCES),
    integer("ResourceConfig.KeepAlivePeriodInSeconds").range(0, 21_600),
    boolean("EnableManagedSpotTraining"),
    structure("StoppingCondition"),
    integer("StoppingCondition.MaxRuntimeInSeconds").range(1, 2_419_200),
    integer("StoppingCondition.MaxWaitTimeInSeconds").min(1),
    structure("CheckpointConfig"),
    text("CheckpointConfig.S3Uri").required().min(1),
    map("Environment").max(100),
    text("Environment{key}").range(1, 512).pattern("[a-zA-Z_][a-zA-Z0-9_]*"),
    text("Environment{}").max(512).pattern(r"[^\x00]*"),
];
