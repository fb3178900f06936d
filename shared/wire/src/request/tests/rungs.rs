//! Tests of `RungExecution`.

use serde_json::json;
use tuning::definition::Scheduling;

use super::*;
use crate::forecast::Times;
use crate::sample;

/// Returns a request for a capped tuning whose trials can resume, after `changes`. An instance hour costs 1 USD.
fn resuming(changes: Value) -> Request {
    let resuming = sample::with(
        sample::request("t"),
        json!({
            "HyperParameterTuningJobConfig": {
                "ResourceLimits": {"MaxNumberOfTrainingJobs": null},
                "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 81}},
            },
            "TrainingJobDefinition": {"CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"}},
            "Controller": {
                "ReductionFactor": null, "ResourceHyperParameter": "epochs", "MaxCostUsd": 10,
                "InstancePricesUsdPerHour": {"ml.m5.large": 1},
            },
        }),
    );
    Request::check(sample::with(resuming, changes)).unwrap_or_else(|error| panic!("{error}"))
}

fn rungs_with(changes: Value, times: Times) -> (RungExecution, RungsWhy) {
    let request = resuming(changes);
    let job = request.definition(Time(0), "000000", &PriceAnswer::default()).unwrap().job;
    request.rungs(&job, times)
}

fn rungs(changes: Value) -> (RungExecution, RungsWhy) {
    rungs_with(changes, Times::ASSUMED)
}

fn jobs(jobs: u32) -> Value {
    json!({"HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxNumberOfTrainingJobs": jobs}}})
}

fn paid(rungs: (RungExecution, RungsWhy)) -> Configurations {
    match rungs.1 {
        RungsWhy::Forecast(paid) => paid,
        why => panic!("{why:?}"),
    }
}

#[test]
fn auto_promotes_where_a_cap_pays_for_nearly_as_many_configurations_as_with_stop() {
    let (execution, why) = rungs(jobs(500));
    assert_eq!(execution, RungExecution::Promote);
    let shown = why.to_string();
    let expect =
        "with 180 s per start-up and 60 s per epoch, MaxCostUsd and the training jobs pay for about ";
    assert!(shown.starts_with(expect) && shown.contains("that is at least 77 %, "), "{shown}");
    // With a long start-up, the start-ups of promotions cost more than the epochs that they save.
    let slow = Times { startup_ms: 4_800_500, ..Times::ASSUMED };
    let (execution, why) = rungs_with(jobs(500), slow);
    assert_eq!(execution, RungExecution::Stop);
    let shown = why.to_string();
    assert!(
        shown.starts_with("with 4800.5 s per start-up") && shown.ends_with("that is less than 77 %"),
        "{shown}"
    );
}

/// Whole configurations were compared, so each dollar more changed the execution.
#[test]
fn regression_a_higher_cap_does_not_change_the_execution_back_and_forth() {
    let times = Times { startup_ms: 420_000, ..Times::ASSUMED };
    let of = |cap: u32| {
        let changes = json!({"Controller": {"MaxCostUsd": cap},
        "HyperParameterTuningJobConfig": {
            "StrategyConfig": {"HyperbandStrategyConfig": {"MaxResource": 27}},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 1_000},
        }});
        rungs_with(changes, times).0
    };
    let all: Vec<_> = (1..=40).map(of).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
}

/// The brackets that the jobs fill depended on the execution, so that 142 and 143 jobs were compared on other brackets.
#[test]
fn regression_with_a_reduction_factor_both_executions_are_compared_on_the_same_brackets() {
    let of = |jobs: u32| {
        rungs(json!({"Controller": {"MaxCostUsd": 50, "ReductionFactor": 3},
            "HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxNumberOfTrainingJobs": jobs}}}))
    };
    let all: Vec<_> = (82..=205).map(|jobs| of(jobs).0).collect();
    assert!(all.windows(2).filter(|pair| pair[0] != pair[1]).count() <= 1, "{all:?}");
}

#[test]
fn auto_does_not_promote_where_there_is_one_rung() {
    let one = json!({"HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxNumberOfTrainingJobs": 1}}});
    assert_eq!(rungs(one), (RungExecution::Stop, RungsWhy::OneRung));
}

/// 49 and 50 jobs had different strategies, also where the cap paid for ten.
#[test]
fn regression_no_number_of_jobs_above_those_that_the_cap_pays_changes_the_execution() {
    let all: Vec<_> = (40..=60).map(|number| rungs(jobs(number))).collect();
    assert_eq!((all[0].0, paid(all[0]).stop < 40), (RungExecution::Promote, true), "the cap pays for fewer");
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
}

/// Where the jobs are the limit, each promotion is a configuration less.
#[test]
fn auto_stops_where_the_training_jobs_are_the_limit() {
    let (execution, why) = rungs(json!({"Controller": {"MaxCostUsd": 1_000},
        "HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxNumberOfTrainingJobs": 22}}}));
    assert_eq!(execution, RungExecution::Stop);
    assert_eq!(paid((execution, why)).stop, 22);
    assert!(paid((execution, why)).promote < 15);
}

#[test]
fn a_refit_leaves_less_for_the_search() {
    let refit = json!({"Controller": {"Refit": "Best"}});
    assert!(paid(rungs(refit)).stop < paid(rungs(json!({}))).stop);
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
    let random = json!({"HyperParameterTuningJobConfig": {"Strategy": "Random", "StrategyConfig": null,
        "ResourceLimits": {"MaxNumberOfTrainingJobs": 8}}});
    assert_eq!(stop(random), RungsWhy::NoRungs);
    let request = resuming(json!({}));
    let mut job = request.definition(Time(0), "000000", &PriceAnswer::default()).unwrap().job;
    job.rate = None;
    assert_eq!(request.rungs(&job, Times::ASSUMED), (RungExecution::Stop, RungsWhy::NoPrice));
}

#[test]
fn a_given_execution_is_kept() {
    let given = |word: &str| rungs(json!({"Controller": {"RungExecution": word, "MaxCostUsd": null}}));
    assert_eq!(given("Stop"), (RungExecution::Stop, RungsWhy::Given));
    assert_eq!(given("Promote"), (RungExecution::Promote, RungsWhy::Given));
}

#[test]
fn the_definition_has_the_execution_that_auto_chose() {
    let promotes = |changes: Value| {
        resuming(changes).definition(Time(0), "000000", &PriceAnswer::default()).unwrap().promotes()
    };
    assert_eq!(promotes(jobs(500)), Some(Scheduling::Asynchronous));
    assert_eq!(promotes(json!({"Controller": {"MaxCostUsd": null}})), None);
}
