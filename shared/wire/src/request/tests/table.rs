//! The table of constraints has exactly the values and fields that a request reads.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use tuning::definition::{Scheduling, Settings};

use super::super::fields::{Field, Fields};
use super::super::rungs::GivenRungExecution;
use super::*;
use crate::constraint;

/// Returns the names of an enumeration's variants, which the error for an unknown one lists. Enumerations of `words!`
/// need no such test.
fn variants<T: DeserializeOwned + Debug>() -> Vec<String> {
    let error = serde_json::from_value::<T>(json!("?")).unwrap_err().to_string();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_table_lists_each_variant_of_a_field() {
    let config = "HyperParameterTuningJobConfig";
    for (path, mut variants, no_value) in [
        (format!("{config}.HyperParameterTuningJobObjective.Type"), variants::<Objective>(), ""),
        ("Controller.RungExecution".to_owned(), variants::<GivenRungExecution>(), ""),
        ("Controller.Scheduling".to_owned(), variants::<Scheduling>(), ""),
        // A grid is a strategy.
        ("Controller.Sampler".to_owned(), variants::<SamplerKind>(), "Grid"),
    ] {
        let row = constraint::rows().find(|row| row.path == path).unwrap();
        let mut values = row.values.to_vec();
        variants.retain(|variant| variant != no_value);
        values.sort_unstable();
        variants.sort_unstable();
        assert_eq!(values, variants, "{path}");
    }
}

#[test]
fn each_member_that_a_field_reads_has_a_row() {
    let mut read = Vec::new();
    Fields::paths("", &mut read);
    assert!(
        read.contains(
            &"HyperParameterTuningJobConfig.ParameterRanges.IntegerParameterRanges[].Name".to_owned()
        )
    );
    // One structure reads the ranges of all kinds.
    let kinds = ["Integer", "Continuous", "Categorical"].map(|kind| format!("{kind}ParameterRanges"));
    let plain = |path: &str| kinds.iter().fold(path.to_owned(), |path, kind| path.replace(kind, "Ranges"));
    let rows: BTreeSet<String> = constraint::rows().map(|row| plain(row.path)).collect();
    read.retain(|path| !rows.contains(&plain(path)));
    assert!(read.is_empty(), "no row of the table has {read:?}");
}

/// Values that differ from the defaults of the sample request.
fn controller() -> Value {
    let mut controller = json!({
        "MaxCostUsd": 1_000, "InstancePricesUsdPerHour": {"ml.m5.2xlarge": 0.9}, "ReductionFactor": 4, "Prefer": "Value",
        "RungExecution": "Promote", "Scheduling": "Synchronous", "Sampler": "Sobol", "EpochPattern": "epoch=([0-9]+)",
        "ResourceHyperParameter": "rounds", "EpochBase": 1, "EpochNumbering": "PerAttempt", "MetricHost": "algo-2",
        "MaxInstances": 12, "SpotFallback": "OnDemand", "NoObjectiveSeconds": 1_800, "StartupAllowanceSeconds": 300,
        "UploadAllowanceSeconds": 600, "Refit": "Best", "ValueTolerance": 0.01, "InitialConfigurations": [{"eta": "0.3"}],
        "InstanceCounts": [2, 4], "ScaleWithInstances": ["max_depth"], "KnownResults": [],
    });
    for (path, range) in Settings::ROWS {
        controller[path.trim_start_matches("Controller.")] = (*range.end()).into();
    }
    controller
}

#[test]
fn each_field_of_controller_in_the_table_is_documented_and_has_an_effect() {
    let read = |controller: Value| {
        let mut body = sample();
        body["Controller"] = controller;
        let request = Request::from_stored(body);
        let prices = PriceAnswer::uniform(&request, 461_000, 191_781);
        let made = request.definition(Time(1_700_000_000_000), "3fa1c2", &prices);
        (request.fields().clone(), made)
    };
    let documents = include_str!("../../../../../docs/REQUEST.md");
    let supported = constraint::rows().filter(|row| row.unsupported.is_none());
    for row in supported {
        let Some(name) = row.path.strip_prefix("Controller.").filter(|name| !name.contains(['[', '{', '.']))
        else {
            continue;
        };
        let documented = documents.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let documented = documented.unwrap_or_else(|| panic!("docs/REQUEST.md has no row for {name}"));
        for value in row.values {
            let quoted = format!("`{value}`");
            assert!(
                documented.contains(&quoted),
                "docs/REQUEST.md: the row for {name} lacks the value {value}"
            );
        }
        let mut others = controller();
        if name == "Prefer" {
            // They exclude it.
            others.as_object_mut().unwrap().retain(|name, _| name != "ReductionFactor" && name != "Sampler");
        }
        let (all_fields, all) = read(others.clone());
        assert!(others.as_object_mut().unwrap().remove(name).is_some(), "give {name} a value in this test");
        let (fields, made) = read(others);
        assert_ne!(fields, all_fields, "no field reads {name}");
        // The programs and logs of jobs depend on these, not the decider. Submission adds the results.
        if !["ResourceHyperParameter", "EpochPattern", "MetricHost", "ScaleWithInstances", "KnownResults"]
            .contains(&name)
        {
            assert_ne!(made, all, "{name} has no effect on the definition");
        }
    }
}
