//! Compares the responses of Describe and List with the sample responses.

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

fn tuned() -> BTreeMap<String, String> {
    BTreeMap::from([("eta".to_owned(), "0.25".to_owned()), ("max_depth".to_owned(), "6".to_owned())])
}

fn job(tuned: &BTreeMap<String, String>) -> JobView<'_> {
    JobView {
        name: "hb1-007-3fa1c2d4",
        arn: "arn:aws:sagemaker:us-east-1:111122223333:training-job/hb1-007-3fa1c2d4",
        status: "Completed",
        state: "Completed",
        created_ms: 1_789_000_000_123,
        started_ms: Some(1_789_000_090_000),
        ended_ms: Some(1_789_000_760_000),
        tuned,
        final_value: Some(0.7812),
        failure_reason: None,
        objective_status: "Succeeded",
        trial: 7,
        attempt: 1,
        bracket: 0,
        resource: 30,
        promotion: None,
        billable_seconds: Some(300),
        best_value: Some(0.79),
        stop_reason: None,
        reserved: None,
        cost: Some(MicroUsd(115_250)),
    }
}

fn tuning<'a>(request: &'a Request, best: Option<JobView<'a>>) -> TuningView<'a> {
    let rungs = vec![
        RungView { resource: 1, compared: Some(ComparedView { arrived: 9, went_on: 3, waiting: None }) },
        RungView { resource: 3, compared: Some(ComparedView { arrived: 3, went_on: 1, waiting: None }) },
        RungView { resource: 9, compared: None },
    ];
    TuningView {
        request,
        arn: ARN,
        status: "Completed",
        created_ms: 1_788_999_990_500,
        ended_ms: Some(1_789_003_600_000),
        modified_ms: 1_789_003_600_000,
        counters: JobCounters { completed: 24, stopped: 6, ..JobCounters::default() },
        objectives: ObjectiveCounters { succeeded: 30, ..ObjectiveCounters::default() },
        best,
        failure_reason: None,
        not_improving: Some(4),
        controller: ControllerView {
            spent: MicroUsd(3_457_500),
            reserved: MicroUsd(1),
            cap: Some(MicroUsd(5_000_000)),
            granted: None,
            end_reason: Some("MaxJobs"),
            launched: 30,
            trials_started: 30,
            brackets: vec![BracketView { trials_started: 9, rungs }],
            ..ControllerView::default()
        },
    }
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
    let tuned = tuned();
    let (shown, own) = split(tuning_job(&tuning(&request, Some(job(&tuned)))));
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
    let (shown, _) = split(tuning_job_summary(&tuning(&request, None)));
    assert_eq!(shown, sample(TUNINGS)["HyperParameterTuningJobSummaries"][0]);
    let tuned = tuned();
    let (shown, own) = split(training_job_summary(&job(&tuned), &request));
    assert_eq!(shown, sample(JOBS)["TrainingJobSummaries"][0]);
    let expected = json!({
        "Trial": 7, "Attempt": 1, "Bracket": 0, "Resource": 30, "State": "Completed",
        "BillableSeconds": 300, "BestValue": 0.79, "CostUsd": 0.115_25,
    });
    assert_eq!(own, expected);
}

#[test]
fn with_promotion_a_job_shows_its_rung_and_a_rung_its_waiting_trials() {
    let request = request(|_| {});
    let tuned = tuned();
    let own = |promotion| {
        let job = JobView { promotion: Some(promotion), ..job(&tuned) };
        training_job_summary(&job, &request)["Controller"].clone()
    };
    let promotion = PromotionView { rung: 1, level: 9, resumed_from: Some(3), repeated_from: None };
    let resumed = own(promotion);
    assert_eq!(
        (&resumed["Rung"], &resumed["Level"], &resumed["ResumedFrom"]),
        (&json!(1), &json!(9), &json!(3))
    );
    assert!(resumed.get("RepeatedFrom").is_none());
    let repeated = own(PromotionView { resumed_from: None, repeated_from: Some(0), ..promotion });
    assert_eq!((repeated.get("ResumedFrom"), &repeated["RepeatedFrom"]), (None, &json!(0)));
    let mut view = tuning(&request, None);
    let compared = ComparedView { arrived: 9, went_on: 3, waiting: Some(2) };
    view.controller.brackets[0].rungs[0].compared = Some(compared);
    let rungs = &tuning_job(&view)["Controller"]["Brackets"][0]["Rungs"];
    assert_eq!(rungs[0], json!({"Resource": 1, "Arrived": 9, "WentOn": 3, "Waiting": 2}));
    assert!(rungs[1].get("Waiting").is_none());
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
    let shown = tuning_job(&tuning(&request, None));
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
    let shown = tuning_job(&tuning(&request, None));
    let metrics = &shown["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"];
    assert_eq!(metrics.as_array().unwrap().len(), 1);
    assert_eq!(shown["Controller"]["MaxCostUsd"], 100, "the requested cap is shown");
}

#[test]
fn unknown_and_non_finite_values_are_omitted() {
    let request = request(|_| {});
    let tuned = tuned();
    let job = JobView {
        final_value: Some(f64::NAN),
        best_value: Some(f64::INFINITY),
        started_ms: None,
        ended_ms: None,
        billable_seconds: None,
        cost: None,
        failure_reason: Some("x"),
        ..job(&tuned)
    };
    let shown = training_job_summary(&job, &request);
    for absent in ["FinalHyperParameterTuningJobObjectiveMetric", "TrainingStartTime", "TrainingEndTime"] {
        assert!(shown.get(absent).is_none(), "{absent}");
    }
    let own = json!({"Trial": 7, "Attempt": 1, "Bracket": 0, "Resource": 30, "State": "Completed"});
    assert_eq!(shown["Controller"], own);
    let long = "x".repeat(5_000);
    let view = TuningView { failure_reason: Some(&long), ended_ms: None, ..tuning(&request, None) };
    let shown = tuning_job(&view);
    assert_eq!(shown["FailureReason"].as_str().unwrap().len(), 1_024);
    assert!(shown.get("HyperParameterTuningEndTime").is_none());
}

#[test]
fn times_are_seconds_with_milliseconds() {
    for (ms, text) in
        [(1_788_999_990_500, "1788999990.5"), (0, "0.0"), (1, "0.001"), (1_789_000_000_123, "1789000000.123")]
    {
        assert_eq!(epoch_seconds(ms).to_string(), text);
    }
    assert_eq!(epoch_seconds(-1_500).to_string(), "-1.5");
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
        let mut view = tuning(&original, None);
        let seen = BestSeen { value: 0.5, trial: 1, resource: 3 };
        view.controller = ControllerView {
            granted: Some(MicroUsd(1)),
            price_unknown: true,
            best_seen: Some(seen),
            ending_reason: Some("MaxJobs"),
            trials_training: Some(1),
            max_parallel: Some(2),
            paused: true,
            refit: Some("x"),
            ..view.controller
        };
        let shown = tuning_job(&view);
        assert_eq!(first_difference(&shown, &original), None);
        // `ADDED` is complete, and the restored request yields the same definition.
        let again = request_from_description(&shown);
        let decided =
            |request: &Request| request.definition(0, "3fa1c2", &crate::request::PriceAnswer::default());
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
    let shown = tuning_job(&tuning(&original, None));
    let jobs = &shown["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"];
    assert!(jobs.as_u64() > Some(3), "{jobs}");
    let decided =
        |request: &Request| request.definition(0, "3fa1c2", &crate::request::PriceAnswer::default());
    assert_eq!(decided(&request_from_description(&shown)).unwrap(), decided(&original).unwrap());
    // An incomplete response yields an error.
    assert!(
        decided(&request_from_description(
            &json!({"HyperParameterTuningJobConfig": {"Strategy": "Hyperband"}})
        ))
        .is_err()
    );
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
    let shown = tuning_job(&tuning(&request(|_| {}), None));
    let other = request(|body| {
        body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = json!(1);
    });
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxParallelTrainingJobs";
    assert_eq!(first_difference(&shown, &other).as_deref(), Some(path));
    // A missing field of `Controller` is a difference too.
    let capped =
        tuning_job(&tuning(&request(|body| body["Controller"] = json!({"MaxInterruptions": 1})), None));
    let found = first_difference(&capped, &request(|body| body["Controller"] = json!({})));
    assert_eq!(found.as_deref(), Some("Controller.MaxInterruptions"));
}
