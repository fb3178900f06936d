//! Rows of `Controller`, which holds the fields that AMT lacks.

use std::sync::LazyLock;

use tuning::definition::Settings;

use super::super::{Constraint, dollars, integer, list, map, number, scalar, structure, text};
use super::INSTANCE_TYPE;
use crate::request::{EpochNumbering, Prefer, Refit, SpotFallback};

/// Rows of the numbers that the decider's own table has.
pub(in super::super) static SETTINGS: LazyLock<Vec<Constraint>> = LazyLock::new(|| {
    Settings::ROWS.iter().map(|(path, range)| integer(path).range(*range.start(), *range.end())).collect()
});

#[rustfmt::skip]
pub(in super::super) static CONTROLLER: &[Constraint] = &[
    structure("Controller"),
    dollars("Controller.MaxCostUsd").max(1_000_000_000),
    map("Controller.InstancePricesUsdPerHour").max(100),
    text("Controller.InstancePricesUsdPerHour{key}").max(64).pattern(INSTANCE_TYPE),
    dollars("Controller.InstancePricesUsdPerHour{}").max(1_000_000),
    integer("Controller.ReductionFactor").range(2, 20_000).rules(&["resource_order", "prefer"]),
    text("Controller.Prefer").one_of(Prefer::WORDS).rules(&["prefer"]),
    text("Controller.RungExecution").one_of(&["Auto", "Stop", "Promote"]).rules(&["promotion", "scheduling", "prefer"]),
    text("Controller.Scheduling").one_of(&["Asynchronous", "Synchronous"]).rules(&["scheduling"]),
    text("Controller.Sampler").one_of(&["Model", "Random", "Sobol"]).rules(&["sampler"]),
    text("Controller.ResourceHyperParameter").range(1, 256)
        .rules(&["resource_hyperparameter", "max_resource", "resource_order", "reserved_names", "hyperparameter_count",
            "promotion"]),
    text("Controller.EpochPattern").range(1, 500).rules(&["epoch_pattern"]),
    integer("Controller.EpochBase").range(0, 1),
    text("Controller.EpochNumbering").one_of(EpochNumbering::WORDS),
    text("Controller.MetricHost").max(16).pattern("algo-[1-9][0-9]*").rules(&["metric_host"]),
    integer("Controller.MaxInstances").range(1, 1_000_000).rules(&["max_instances"]),
    text("Controller.SpotFallback").one_of(SpotFallback::WORDS).rules(&["spot_fallback"]),
    integer("Controller.NoObjectiveSeconds").range(0, 2_592_000),
    // Less than an interval of the sweep would end jobs before their own limits.
    integer("Controller.StartupAllowanceSeconds").range(60, 86_400),
    integer("Controller.UploadAllowanceSeconds").range(0, 86_400),
    list("Controller.InitialConfigurations").max(100).rules(&["initial_configurations"]),
    map("Controller.InitialConfigurations[]").range(1, 30),
    text("Controller.InitialConfigurations[]{key}").range(1, 256),
    scalar("Controller.InitialConfigurations[]{}").max(256),
    list("Controller.KnownResults").max(256).rules(&["known_results"]),
    map("Controller.KnownResults[]").range(2, 32),
    text("Controller.KnownResults[]{key}").range(1, 256),
    scalar("Controller.KnownResults[]{}").max(256),
    text("Controller.Refit").one_of(Refit::WORDS).rules(&["refit", "best_buy"]),
    number("Controller.ValueTolerance").range(0, 1_000_000_000_000_000).rules(&["best_buy"]),
    list("Controller.InstanceCounts").max(30)
        .rules(&["instance_counts", "scaled_hyperparameters", "parameter_count", "combinations", "grid", "max_instances", "metric_host",
            "initial_configurations"]),
    integer("Controller.InstanceCounts[]").range(1, 10_000),
    list("Controller.ScaleWithInstances").max(30).rules(&["scaled_hyperparameters"]),
    text("Controller.ScaleWithInstances[]").range(1, 256),
];
