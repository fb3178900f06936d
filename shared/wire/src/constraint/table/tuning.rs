//! Rows of the tuning job: name, strategy, objective, limits, ranges and tags.

use super::super::{Constraint, integer, list, number, structure, text};
use super::NAME;
use crate::request::{CompleteOnConvergence, EarlyStopping, Strategy};

const SCALING: &[&str] = &["Auto", "Linear", "Logarithmic", "ReverseLogarithmic"];
const TAG: &str = r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)";
const AUTO_ADVICE: &str = "its ranges come from rules that AWS does not publish; set the ranges in IntegerParameterRanges, \
    ContinuousParameterRanges or CategoricalParameterRanges";
const AUTOTUNE_ADVICE: &str = "it completes a request by rules that AWS does not publish; set ranges, limits and strategy \
    explicitly";

#[rustfmt::skip]
pub(in super::super) static TUNING: &[Constraint] = &[
    text("HyperParameterTuningJobName").required().range(1, 32).pattern(NAME),
    structure("HyperParameterTuningJobConfig").required(),
    text("HyperParameterTuningJobConfig.Strategy").required().one_of(Strategy::WORDS)
        .rules(&["strategy_config", "max_resource", "resource_order", "early_stopping", "needs_jobs", "promotion", "sampler", "grid"]),
    structure("HyperParameterTuningJobConfig.StrategyConfig").rules(&["strategy_config"]),
    structure("HyperParameterTuningJobConfig.StrategyConfig.HyperbandStrategyConfig"),
    integer("HyperParameterTuningJobConfig.StrategyConfig.HyperbandStrategyConfig.MinResource").range(1, 20_000)
        .rules(&["resource_order"]),
    integer("HyperParameterTuningJobConfig.StrategyConfig.HyperbandStrategyConfig.MaxResource").range(1, 20_000)
        .rules(&["max_resource", "resource_order"]),
    structure("HyperParameterTuningJobConfig.HyperParameterTuningJobObjective").rules(&["objective"]),
    text("HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.Type").required()
        .one_of(&["Maximize", "Minimize"]),
    text("HyperParameterTuningJobConfig.HyperParameterTuningJobObjective.MetricName").required().range(1, 255)
        .pattern(".+").rules(&["objective_metric", "reserved_names", "known_results"]),
    structure("HyperParameterTuningJobConfig.ResourceLimits").required(),
    integer("HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs").range(1, 10_000)
        .rules(&["needs_jobs", "combinations", "grid", "refit", "initial_configurations"]),
    integer("HyperParameterTuningJobConfig.ResourceLimits.MaxParallelTrainingJobs").required().range(1, 1_000),
    integer("HyperParameterTuningJobConfig.ResourceLimits.MaxRuntimeInSeconds").range(120, 15_768_000),
    structure("HyperParameterTuningJobConfig.ParameterRanges")
        .rules(&["parameter_count", "ranges", "unique_names", "reserved_names", "combinations", "grid", "hyperparameter_count",
            "initial_configurations", "known_results"]),
    list("HyperParameterTuningJobConfig.ParameterRanges.IntegerParameterRanges").max(30),
    structure("HyperParameterTuningJobConfig.ParameterRanges.IntegerParameterRanges[]"),
    text("HyperParameterTuningJobConfig.ParameterRanges.IntegerParameterRanges[].Name").required().range(1, 256),
    text("HyperParameterTuningJobConfig.ParameterRanges.IntegerParameterRanges[].MinValue").required().max(256),
    text("HyperParameterTuningJobConfig.ParameterRanges.IntegerParameterRanges[].MaxValue").required().max(256),
    text("HyperParameterTuningJobConfig.ParameterRanges.IntegerParameterRanges[].ScalingType").one_of(SCALING),
    list("HyperParameterTuningJobConfig.ParameterRanges.ContinuousParameterRanges").max(30),
    structure("HyperParameterTuningJobConfig.ParameterRanges.ContinuousParameterRanges[]"),
    text("HyperParameterTuningJobConfig.ParameterRanges.ContinuousParameterRanges[].Name").required().range(1, 256),
    text("HyperParameterTuningJobConfig.ParameterRanges.ContinuousParameterRanges[].MinValue").required().max(256),
    text("HyperParameterTuningJobConfig.ParameterRanges.ContinuousParameterRanges[].MaxValue").required().max(256),
    text("HyperParameterTuningJobConfig.ParameterRanges.ContinuousParameterRanges[].ScalingType").one_of(SCALING),
    list("HyperParameterTuningJobConfig.ParameterRanges.CategoricalParameterRanges").max(30),
    structure("HyperParameterTuningJobConfig.ParameterRanges.CategoricalParameterRanges[]"),
    text("HyperParameterTuningJobConfig.ParameterRanges.CategoricalParameterRanges[].Name").required().range(1, 256),
    list("HyperParameterTuningJobConfig.ParameterRanges.CategoricalParameterRanges[].Values").required().range(1, 30),
    text("HyperParameterTuningJobConfig.ParameterRanges.CategoricalParameterRanges[].Values[]").max(256),
    list("HyperParameterTuningJobConfig.ParameterRanges.AutoParameters").max(100).unsupported(&[], AUTO_ADVICE),
    structure("HyperParameterTuningJobConfig.ParameterRanges.AutoParameters[]"),
    text("HyperParameterTuningJobConfig.ParameterRanges.AutoParameters[].Name").required().range(1, 256),
    text("HyperParameterTuningJobConfig.ParameterRanges.AutoParameters[].ValueHint").required().max(256),
    text("HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType").one_of(EarlyStopping::WORDS)
        .rules(&["early_stopping"]),
    structure("HyperParameterTuningJobConfig.TuningJobCompletionCriteria"),
    number("HyperParameterTuningJobConfig.TuningJobCompletionCriteria.TargetObjectiveMetricValue"),
    structure("HyperParameterTuningJobConfig.TuningJobCompletionCriteria.BestObjectiveNotImproving"),
    integer("HyperParameterTuningJobConfig.TuningJobCompletionCriteria.BestObjectiveNotImproving.MaxNumberOfTrainingJobsNotImproving")
        .min(3),
    structure("HyperParameterTuningJobConfig.TuningJobCompletionCriteria.ConvergenceDetected"),
    text("HyperParameterTuningJobConfig.TuningJobCompletionCriteria.ConvergenceDetected.CompleteOnConvergence")
        .one_of(CompleteOnConvergence::WORDS),
    integer("HyperParameterTuningJobConfig.RandomSeed").min(0),
    list("TrainingJobDefinitions").range(1, 10).rules(&["one_definition"]),
    structure("TrainingJobDefinitions[]").like("TrainingJobDefinition"),
    structure("WarmStartConfig").rules(&["warm_start"]),
    list("WarmStartConfig.ParentHyperParameterTuningJobs").required().range(1, 5),
    structure("WarmStartConfig.ParentHyperParameterTuningJobs[]"),
    text("WarmStartConfig.ParentHyperParameterTuningJobs[].HyperParameterTuningJobName").range(1, 32).pattern(NAME),
    text("WarmStartConfig.WarmStartType").required().one_of(&["IdenticalDataAndAlgorithm", "TransferLearning"]),
    list("Tags").max(50).rules(&["tag_count", "tag_keys"]),
    structure("Tags[]"),
    text("Tags[].Key").required().range(1, 128).pattern(TAG),
    text("Tags[].Value").required().max(256).pattern(TAG),
    structure("Autotune").unsupported(&[], AUTOTUNE_ADVICE),
    text("Autotune.Mode").required().one_of(&["Enabled"]),
];
