//! Tests of `RungExecution`.

use serde_json::json;
use tuning::definition::Scheduling;

use super::*;
use crate::sample;

/// Returns a request for a capped tuning whose trials can resume, after `changes`.
fn resuming(changes: Value) -> Request {
    let resuming = sample::with(
        sample::request("t"),
        json!({
            "HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxNumberOfTrainingJobs": null}},
            "TrainingJobDefinition": {"CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"}},
            "Controller": {"ResourceHyperParameter": "epochs"},
        }),
    );
    Request::check(sample::with(resuming, changes)).unwrap_or_else(|error| panic!("{error}"))
}

fn rungs(changes: Value) -> (RungExecution, RungsWhy) {
    resuming(changes).rungs()
}

fn jobs(jobs: u32) -> Value {
    json!({"HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxNumberOfTrainingJobs": jobs}}})
}

#[test]
fn auto_promotes_where_a_cap_limits_the_jobs_and_trials_can_resume() {
    let promote = (RungExecution::Promote, RungsWhy::Capped);
    assert_eq!(rungs(json!({})), promote);
    assert_eq!(rungs(json!({"Controller": {"RungExecution": "Auto"}})), promote);
    // A full set of the brackets of 9, 5 and 3 trials has 5 promotions.
    assert_eq!(rungs(jobs(22)), promote);
}

#[test]
fn auto_stops_where_a_promotion_cannot_pay() {
    let stop = |changes| {
        let (execution, why) = rungs(changes);
        assert_eq!(execution, RungExecution::Stop);
        why
    };
    assert_eq!(stop(json!({"Controller": {"MaxCostUsd": null}})), RungsWhy::NoCap);
    let no_name = json!({"Controller": {"ResourceHyperParameter": null}});
    assert_eq!(stop(no_name), RungsWhy::NoResourceHyperParameter);
    let no_checkpoints = json!({"TrainingJobDefinition": {"CheckpointConfig": null}});
    assert_eq!(stop(no_checkpoints), RungsWhy::NoCheckpoints);
    assert_eq!(stop(jobs(21)), RungsWhy::FewJobs(22));
    assert_eq!(
        stop(
            json!({"Controller": {"Refit": "Best"}, "HyperParameterTuningJobConfig": jobs(22)["HyperParameterTuningJobConfig"]})
        ),
        RungsWhy::FewJobs(23)
    );
    let random = json!({"HyperParameterTuningJobConfig": {"Strategy": "Random", "StrategyConfig": null,
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 8}}});
    assert_eq!(stop(random), RungsWhy::NoRungs);
}

#[test]
fn a_given_execution_is_kept() {
    let given = |word: &str| rungs(json!({"Controller": {"RungExecution": word, "MaxCostUsd": null}}));
    assert_eq!(given("Stop"), (RungExecution::Stop, RungsWhy::Given));
    assert_eq!(given("Promote"), (RungExecution::Promote, RungsWhy::Given));
}

#[test]
fn the_definition_has_the_execution_that_auto_chose() {
    let priced = |cap: Value| {
        let prices = json!({"InstancePricesUsdPerHour": {"ml.m5.large": 0.115}, "MaxCostUsd": cap});
        let request = resuming(json!({"Controller": prices}));
        request.definition(Time(0), "000000", &PriceAnswer::default()).unwrap().promotes()
    };
    assert_eq!(priced(json!(5)), Some(Scheduling::Asynchronous));
    assert_eq!(priced(json!(null)), None);
}
