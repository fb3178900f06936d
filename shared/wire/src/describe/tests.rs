//! Compares the responses of Describe and List with the sample responses.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use tuning::definition::Objective;
use tuning::unit::time::Time;

use super::*;

const CREATE: &str =
    include_str!("../../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json");
const DESCRIBE: &str =
    include_str!("../../../../events/aws.sagemaker.api/describe-hyper-parameter-tuning-job.response.json");
const TUNINGS: &str =
    include_str!("../../../../events/aws.sagemaker.api/list-hyper-parameter-tuning-jobs.response.json");
const JOBS: &str = include_str!(
    "../../../../events/aws.sagemaker.api/list-training-jobs-for-hyper-parameter-tuning-job.response.json"
);
const ARN: &str = "arn:aws:sagemaker:us-east-1:111122223333:hyper-parameter-tuning-job/hb1";

fn request(change: impl FnOnce(&mut Value)) -> Request {
    let mut body: Value = serde_json::from_str(CREATE).unwrap();
    change(&mut body);
    Request::check(body).unwrap_or_else(|error| panic!("{error}"))
}

fn sample(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn job() -> TrainingJobSummary {
    TrainingJobSummary {
        name: "hb1-007-3fa1c2d4".to_owned(),
        arn: "arn:aws:sagemaker:us-east-1:111122223333:training-job/hb1-007-3fa1c2d4".to_owned(),
        status: "Completed".to_owned(),
        created_ms: 1_789_000_000_123,
        started_ms: Some(1_789_000_090_000),
        ended_ms: Some(1_789_000_760_000),
        tuned: BTreeMap::from([
            ("eta".to_owned(), "0.25".to_owned()),
            ("max_depth".to_owned(), "6".to_owned()),
        ]),
        final_objective: FinalObjective::new("validation:auc", Some(0.7812)),
        failure_reason: None,
        objective_status: "Succeeded".to_owned(),
        tuning_job_name: None,
        training_job_definition_name: None,
        controller: JobController {
            trial: 7,
            attempt: 1,
            bracket: 0,
            resource: 30,
            state: "Completed".to_owned(),
            billable_seconds: Some(300),
            best_value: Some(0.79),
            cost_usd: Some(MicroUsd(115_250)),
            ..JobController::default()
        },
    }
}

fn base() -> TuningBase {
    TuningBase {
        name: "hb1".to_owned(),
        arn: ARN.to_owned(),
        status: "Completed".to_owned(),
        created_ms: 1_788_999_990_500,
        ended_ms: Some(1_789_003_600_000),
        modified_ms: 1_789_003_600_000,
        counters: Some(JobCounters { completed: 24, stopped: 6, ..JobCounters::default() }),
        objectives: Some(ObjectiveCounters { succeeded: 30, ..ObjectiveCounters::default() }),
    }
}

fn totals() -> Totals {
    Totals {
        spent_usd: MicroUsd(3_457_500),
        reserved_usd: MicroUsd(1),
        cap_usd: Some(MicroUsd(5_000_000)),
        end_reason: Some("MaxJobs".to_owned()),
        training_jobs_launched: 30,
        ..Totals::default()
    }
}

fn tuning(request: &Request, best: Option<TrainingJobSummary>) -> TuningJob {
    let rungs = vec![
        Rung { resource: 1, compared: Some(Compared { arrived: 9, went_on: 3, waiting: None }) },
        Rung { resource: 3, compared: Some(Compared { arrived: 3, went_on: 1, waiting: None }) },
        Rung { resource: 9, compared: None },
    ];
    TuningJob {
        request: RequestEcho::of(request, ARN),
        failure_reason: None,
        best_training_job: best,
        overall_best_training_job: None,
        consumed_resources: ConsumedResources::of(&base()),
        tuning_job_completion_details: Some(CompletionDetails { not_improving: 4, converged_ms: None }),
        controller: TuningController {
            totals: totals(),
            trials_started: 30,
            brackets: vec![Bracket { trials_started: 9, rungs }],
            settings: settings(request),
            ..TuningController::default()
        },
        base: base(),
    }
}

/// Asserts that the client reads what the API writes, also among members of a newer release. Returns the JSON.
fn shown<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(written: &T) -> Value {
    let shown = json!(written);
    assert_eq!(serde_json::from_value::<T>(shown.clone()).unwrap(), *written);
    let mut newer = shown.clone();
    newer["OfANewerRelease"] = json!({"Any": [1]});
    assert_eq!(serde_json::from_value::<T>(newer).unwrap(), *written);
    shown
}

/// Returns the response without `Controller`, and `Controller`.
fn split(mut value: Value) -> (Value, Value) {
    let own = value.as_object_mut().unwrap().remove("Controller").unwrap();
    if let Some(Value::Object(best)) = value.get_mut("BestTrainingJob") {
        best.remove("Controller");
    }
    (value, own)
}

#[test]
fn describe_of_the_sample_request_is_the_sample_response() {
    let request = request(|_| {});
    let mut best = job();
    best.final_objective.as_mut().unwrap().direction = Some(Objective::Maximize);
    let (shown, own) = split(shown(&tuning(&request, Some(best))));
    assert_eq!(shown, sample(DESCRIBE));
    assert_eq!(
        own.to_string(),
        concat!(
            r#"{"Brackets":[{"Rungs":[{"Arrived":9,"Resource":1,"WentOn":3},{"Arrived":3,"Resource":3,"WentOn":1},{"Resource":9}],"#,
            r#""TrialsStarted":9}],"CapUsd":5,"EndReason":"MaxJobs","ReservedUsd":1e-6,"SpentUsd":3.4575,"#,
            r#""TrainingJobsLaunched":30,"TrialsStarted":30}"#
        )
    );
}

#[test]
fn summaries_equal_the_samples() {
    let request = request(|_| {});
    let summary = TuningSummary {
        base: base(),
        strategy: Some(request.strategy().word().to_owned()),
        resource_limits: Some(resource_limits(&request)),
        controller: SummaryController::Readable(totals()),
    };
    let (written, _) = split(shown(&summary));
    assert_eq!(written, sample(TUNINGS)["HyperParameterTuningJobSummaries"][0]);
    let (written, own) = split(shown(&job()));
    assert_eq!(written, sample(JOBS)["TrainingJobSummaries"][0]);
    let expected = json!({
        "Trial": 7, "Attempt": 1, "Bracket": 0, "Resource": 30, "State": "Completed",
        "BillableSeconds": 300, "BestValue": 0.79, "CostUsd": 0.115_25,
    });
    assert_eq!(own, expected);
}

#[test]
fn with_promotion_a_job_shows_its_rung_and_a_rung_its_waiting_trials() {
    let own = |resumed_from, repeated_from| {
        let controller =
            JobController { rung: Some(1), level: Some(9), resumed_from, repeated_from, ..job().controller };
        shown(&TrainingJobSummary { controller, ..job() })["Controller"].clone()
    };
    let resumed = own(Some(3), None);
    assert_eq!(
        (&resumed["Rung"], &resumed["Level"], &resumed["ResumedFrom"]),
        (&json!(1), &json!(9), &json!(3))
    );
    assert!(resumed.get("RepeatedFrom").is_none());
    let repeated = own(None, Some(0));
    assert_eq!((repeated.get("ResumedFrom"), &repeated["RepeatedFrom"]), (None, &json!(0)));
    let mut job = tuning(&request(|_| {}), None);
    let compared = Compared { arrived: 9, went_on: 3, waiting: Some(2) };
    job.controller.brackets[0].rungs[0].compared = Some(compared);
    let rungs = &shown(&job)["Controller"]["Brackets"][0]["Rungs"];
    assert_eq!(rungs[0], json!({"Resource": 1, "Arrived": 9, "WentOn": 3, "Waiting": 2}));
    assert!(rungs[1].get("Waiting").is_none());
}

#[test]
fn an_unreadable_tuning_has_its_name_and_the_reason() {
    let base = TuningBase { ended_ms: None, counters: None, objectives: None, ..base() };
    let controller = SummaryController::Unreadable { why: "damaged".to_owned() };
    let summary = TuningSummary { base, strategy: None, resource_limits: None, controller };
    let expected = json!({
        "HyperParameterTuningJobName": "hb1",
        "HyperParameterTuningJobArn": ARN,
        "HyperParameterTuningJobStatus": "Completed",
        "CreationTime": 1_788_999_990.5,
        "LastModifiedTime": 1_789_003_600.0,
        "Controller": {"Unreadable": "damaged"},
    });
    assert_eq!(shown(&summary), expected);
    assert!(summary.totals().is_none());
}

/// `attach` of the Python SDK fails without any of these fields.
#[test]
fn describe_has_the_fields_that_clients_require() {
    let request = request(|body| {
        let config = &mut body["HyperParameterTuningJobConfig"];
        config["ParameterRanges"] = json!({"ContinuousParameterRanges":
            [{"Name": "eta", "MinValue": "0.1", "MaxValue": "1"}]});
        config.as_object_mut().unwrap().remove("TrainingJobEarlyStoppingType");
        config["ResourceLimits"].as_object_mut().unwrap().remove("MaxNumberOfTrainingJobs");
        let job = body["TrainingJobDefinition"].as_object_mut().unwrap();
        job.remove("StaticHyperParameters");
        job["AlgorithmSpecification"] = json!({"TrainingInputMode": "File", "AlgorithmName": "xgboost"});
        job["OutputDataConfig"]["CompressionType"] = json!("GZIP");
        job["StoppingCondition"]["MaxPendingTimeInSeconds"] = json!(7_200);
    });
    let shown = shown(&tuning(&request, None));
    let config = &shown["HyperParameterTuningJobConfig"];
    assert_eq!(config["TrainingJobEarlyStoppingType"], "Off");
    assert_eq!(config["ResourceLimits"]["MaxNumberOfTrainingJobs"], 49);
    assert_eq!(config["ParameterRanges"]["IntegerParameterRanges"], json!([]));
    assert_eq!(config["ParameterRanges"]["CategoricalParameterRanges"], json!([]));
    let job = &shown["TrainingJobDefinition"];
    assert_eq!(job["StaticHyperParameters"], json!({"_tuning_objective_metric": "validation:auc"}));
    let specification = &job["AlgorithmSpecification"];
    assert_eq!(specification["AlgorithmName"], "arn:aws:sagemaker:us-east-1:111122223333:algorithm/xgboost");
    let names: Vec<_> =
        specification["MetricDefinitions"].as_array().unwrap().iter().map(|m| &m["Name"]).collect();
    assert_eq!((names.len(), names[1], names[33]), (34, &json!("validation:auc"), &json!("ObjectiveMetric")));
    assert_eq!(job["OutputDataConfig"], json!({"S3OutputPath": "s3://example-bucket/out", "KmsKeyId": ""}));
    assert_eq!(
        job["StoppingCondition"],
        json!({"MaxRuntimeInSeconds": 2_400, "MaxWaitTimeInSeconds": 3_600})
    );
    assert_eq!(job["ResourceConfig"]["InstanceCount"], 3);
    assert!(job.get("HyperParameterTuningResourceConfig").is_none());
    assert!(shown.get("BestTrainingJob").is_none());
}

#[test]
fn the_metric_definitions_of_a_users_program_are_unchanged() {
    let request = request(|body| {
        body["TrainingJobDefinition"]["AlgorithmSpecification"]["TrainingImage"] = json!("own:1");
        body["Controller"] = json!({"MaxCostUsd": 100, "Refit": "None"});
    });
    let shown = shown(&tuning(&request, None));
    let metrics = &shown["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"];
    assert_eq!(metrics.as_array().unwrap().len(), 1);
    assert_eq!(shown["Controller"]["MaxCostUsd"], 100, "the requested cap is shown");
}

#[test]
fn unknown_and_non_finite_values_are_omitted() {
    let controller = JobController {
        best_value: finite(f64::INFINITY),
        billable_seconds: None,
        cost_usd: None,
        ..job().controller
    };
    let job = TrainingJobSummary {
        final_objective: FinalObjective::new("validation:auc", Some(f64::NAN)),
        started_ms: None,
        ended_ms: None,
        failure_reason: Some("x".to_owned()),
        controller,
        ..job()
    };
    let written = shown(&job);
    for absent in ["FinalHyperParameterTuningJobObjectiveMetric", "TrainingStartTime", "TrainingEndTime"] {
        assert!(written.get(absent).is_none(), "{absent}");
    }
    let own = json!({"Trial": 7, "Attempt": 1, "Bracket": 0, "Resource": 30, "State": "Completed"});
    assert_eq!(written["Controller"], own);
    let mut job = tuning(&request(|_| {}), None);
    job.failure_reason = Some(failure_reason(&"x".repeat(5_000)));
    job.base.ended_ms = None;
    let written = shown(&job);
    assert_eq!(written["FailureReason"].as_str().unwrap().len(), 1_024);
    assert!(written.get("HyperParameterTuningEndTime").is_none());
}

#[test]
fn a_describe_response_is_compared_with_its_request() {
    let changes: [fn(&mut Value); 3] = [
        |_| {},
        |body| {
            body["Controller"] = json!({"MaxCostUsd": 7, "InstancePricesUsdPerHour": {"ml.m5.large": 0.2}});
        },
        |body| body["TrainingJobDefinition"]["OutputDataConfig"]["KmsKeyId"] = json!("key"),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let original = request(change);
        let mut job = tuning(&original, None);
        let seen = BestSeen { value: 0.5, trial: 1, resource: 3 };
        job.controller = TuningController {
            totals: Totals {
                granted_usd: Some(MicroUsd(1)),
                price_unknown: true,
                best_seen: Some(seen),
                paused: true,
                paused_since_ms: Some(1_000),
                ..totals()
            },
            ending_reason: Some("MaxJobs".to_owned()),
            trials_training: Some(1),
            max_parallel_training_jobs: Some(2),
            refit_training_job_name: Some("x".to_owned()),
            ..job.controller
        };
        let shown: TuningJob = serde_json::from_value(json!(job)).unwrap();
        assert_eq!(first_difference(&shown, &original), None);
        // The restored request yields the same definition.
        let again = request_from_description(&shown);
        let decided = |request: &Request| {
            request.definition(Time(0), "3fa1c2", &crate::request::PriceAnswer::default())
        };
        assert_eq!(decided(&again), decided(&original));
        for (other, change) in changes.into_iter().enumerate().filter(|(other, _)| *other != number) {
            assert!(first_difference(&shown, &request(change)).is_some(), "{number} {other}");
        }
    }
}

#[test]
fn regression_additions_of_describe_do_not_make_the_request_invalid() {
    // The request has three configurations and no number of training jobs. Describe adds a number, which alone would
    // exceed the number of configurations.
    let original = request(|body| {
        let config = &mut body["HyperParameterTuningJobConfig"];
        config["ResourceLimits"] = json!({"MaxParallelTrainingJobs": 2});
        config["ParameterRanges"] =
            json!({"CategoricalParameterRanges": [{"Name": "k", "Values": ["a", "b", "c"]}]});
        body["TrainingJobDefinition"]["StaticHyperParameters"] = json!({});
    });
    let shown = tuning(&original, None);
    let jobs = &shown.request.config["ResourceLimits"]["MaxNumberOfTrainingJobs"];
    assert!(jobs.as_u64() > Some(3), "{jobs}");
    let decided =
        |request: &Request| request.definition(Time(0), "3fa1c2", &crate::request::PriceAnswer::default());
    assert_eq!(decided(&request_from_description(&shown)).unwrap(), decided(&original).unwrap());
    // An incomplete response yields an error.
    let incomplete = json!({"HyperParameterTuningJobConfig": {"Strategy": "Hyperband"}});
    assert!(serde_json::from_value::<TuningJob>(incomplete).is_err());
}

#[test]
fn the_first_difference_of_two_values_is_returned() {
    let one = json!({"a": 1, "b": {"c": [1, 2], "d": 2}});
    for (other, expected) in [
        (one.clone(), None),
        (json!({"a": 1, "b": {"c": [1, 3], "d": 2}}), Some(".b.c")),
        (json!({"a": 1}), Some(".b")),
        (json!({"a": 1, "b": {"c": [1, 2], "d": 2}, "e": 0}), Some(".e")),
        (json!([]), Some("")),
    ] {
        assert_eq!(difference(&one, &other).as_deref(), expected, "{other}");
    }
}

#[test]
fn the_first_difference_from_a_request_is_returned() {
    let shown = tuning(&request(|_| {}), None);
    let other = request(|body| {
        body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = json!(1);
    });
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxParallelTrainingJobs";
    assert_eq!(first_difference(&shown, &other).as_deref(), Some(path));
    // A missing field of `Controller` is a difference too.
    let capped = tuning(&request(|body| body["Controller"] = json!({"MaxInterruptions": 1})), None);
    let found = first_difference(&capped, &request(|body| body["Controller"] = json!({})));
    assert_eq!(found.as_deref(), Some("Controller.MaxInterruptions"));
}
