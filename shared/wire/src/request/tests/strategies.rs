//! The strategies without brackets.

use tuning::definition::Strategy;

use super::*;

#[test]
fn random_runs_without_brackets() {
    let random = |controller: Value| {
        definition(
            |body| {
                let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
                config.remove("StrategyConfig");
                config["Strategy"] = json!("Random");
                body["Controller"] = controller;
            },
            None,
        )
        .unwrap()
    };
    let made = random(json!({}));
    assert_eq!(
        (made.strategy, made.sampler, made.limits.max_jobs),
        (Strategy::Independent, SamplerKind::Random, 30)
    );
    assert_eq!(random(json!({"Sampler": "Sobol"})).sampler, SamplerKind::Sobol);
}

#[test]
fn bayesian_runs_without_brackets_and_draws_with_the_model() {
    let made = definition(
        |body| {
            let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
            config.remove("StrategyConfig");
            config["Strategy"] = json!("Bayesian");
            config["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(60);
            body["Controller"] = json!({});
        },
        None,
    )
    .unwrap();
    assert_eq!((&made.strategy, made.sampler), (&Strategy::Independent, SamplerKind::Model));
    assert_eq!((made.limits.max_jobs, made.max_resource()), (60, None));
}

#[test]
fn convergence_is_a_number_of_results_without_a_better_value() {
    let made = |criteria: Value| {
        let change = |body: &mut Value| {
            let config = &mut body["HyperParameterTuningJobConfig"];
            config["TuningJobCompletionCriteria"] = criteria;
            let seven: Vec<_> =
                (0..7).map(|n| json!({"Name": n.to_string(), "Values": ["1", "2"]})).collect();
            config["ParameterRanges"] = json!({"CategoricalParameterRanges": seven});
        };
        definition(change, None).unwrap().limits.not_improving
    };
    let enabled = json!({"CompleteOnConvergence": "Enabled"});
    assert_eq!(made(json!({"ConvergenceDetected": enabled})), Some(70), "ten for each of seven ranges");
    assert_eq!(made(json!({"ConvergenceDetected": {"CompleteOnConvergence": "Disabled"}})), None);
    let both = json!({
        "ConvergenceDetected": enabled,
        "BestObjectiveNotImproving": {"MaxNumberOfTrainingJobsNotImproving": 9},
    });
    assert_eq!(made(both), Some(9), "the stricter criterion ends the tuning first");
}

#[test]
fn early_stopping_auto_is_the_median_rule() {
    let made = |kind: &str| {
        let change = |body: &mut Value| {
            let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
            config.remove("StrategyConfig");
            config["Strategy"] = json!("Random");
            config.insert("TrainingJobEarlyStoppingType".to_owned(), json!(kind));
            body["Controller"] = json!({});
        };
        definition(change, None).unwrap().strategy
    };
    assert_eq!((made("Auto"), made("Off")), (Strategy::Median, Strategy::Independent));
}

#[test]
fn a_grid_has_one_trial_for_each_combination() {
    let made = |refit: &str| {
        let change = |body: &mut Value| {
            let config = body["HyperParameterTuningJobConfig"].as_object_mut().unwrap();
            config.remove("StrategyConfig");
            config["Strategy"] = json!("Grid");
            config["ResourceLimits"].as_object_mut().unwrap().remove("MaxNumberOfTrainingJobs");
            config["ParameterRanges"] = json!({"CategoricalParameterRanges": [
                {"Name": "a", "Values": ["1", "2"]}, {"Name": "b", "Values": ["x", "y", "z"]},
            ]});
            body["Controller"] = json!({"Refit": refit});
        };
        definition(change, None).unwrap()
    };
    let plain = made("None");
    assert_eq!((&plain.strategy, plain.sampler), (&Strategy::Independent, SamplerKind::Grid));
    assert_eq!((plain.max_trials(), plain.planned_jobs()), (6, 6));
    assert_eq!(plain.limits.max_jobs, 12, "a retry for each combination, and not more");
    assert_eq!(made("Best").planned_jobs(), 7);
}
