//! One training job, its tags and its stop; requests that are sent twice; the rows of a tuning.

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobKey, MetricLine, Recorded};
use tuning::trial::summary::JobSummary;
use tuning::unit::time::Time;
use use_cases::describe;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::store::Store;
use wire::row_json;
use wire::sample::request;
use wire::stored::{self, Head};

use crate::{TestApi, amz, decided, get, open, rest, submitted};

/// Submits `hb1` with two tags, and starts its first jobs. Returns the ID.
async fn running(api: &TestApi) -> String {
    let mut body = request("hb1");
    body["Tags"] = json!([{"Key": "team", "Value": "ads"}, {"Key": "hyperband:MaxCostUsd", "Value": "5"}]);
    let (status, answer) = rest(api, "POST", "/tuning-jobs", &body).await;
    assert_eq!(status, 201, "{answer}");
    let id = use_cases::lookup::find(&api.submit.store, "hb1").await.unwrap().id;
    decided(api, &id).await;
    id
}

/// Lets the first job end with a value.
async fn ends(api: &TestApi, id: &str) {
    let job = JobKey::new(0, 0, 1);
    let at = Time(1_790_000_600_000);
    let line = MetricLine { id: "1".to_owned(), at, index: Some(1), value: Some(0.75) };
    let facts = [
        ("line", Fact::MetricsLogged { job, stream: "s".to_owned(), lines: vec![line], began: None }),
        (
            "described",
            Fact::JobDescribed {
                job,
                end: JobEnd::Completed,
                started: Some(Time(1_790_000_060_000)),
                ended: Some(at),
                billable_seconds: 540,
                message: None,
                interruptions: 0,
            },
        ),
        ("rest", Fact::RestRead { job }),
    ];
    let facts: Vec<Recorded> =
        facts.into_iter().map(|(key, fact)| Recorded { key: key.to_owned(), at, fact }).collect();
    let decider = use_cases::decide::Decider { store: std::sync::Arc::clone(&api.submit.store) };
    decider.decide(id, &facts, false).await.unwrap();
}

async fn amz_of(api: &TestApi, operation: &str, body: &Value) -> (u16, Value) {
    amz(api, operation, &body.to_string()).await
}

#[tokio::test]
async fn a_training_job_is_described_like_sagemaker_does_and_with_its_curve() {
    let api = open();
    let id = running(&api).await;
    let name = json!({"TrainingJobName": format!("{id}-0-0-1")});
    let (status, shown) = amz_of(&api, "DescribeTrainingJob", &name).await;
    assert_eq!((status, &shown["TrainingJobStatus"]), (200, &json!("InProgress")), "{shown}");
    assert_eq!(shown["SecondaryStatus"], "Starting");
    assert!(shown.get("Tags").is_none() && shown.get("BillableTimeInSeconds").is_none());
    ends(&api, &id).await;
    let (_, shown) = amz_of(&api, "DescribeTrainingJob", &name).await;
    assert_eq!(
        (&shown["TrainingJobStatus"], &shown["SecondaryStatus"]),
        (&json!("Completed"), &json!("Completed"))
    );
    assert_eq!(
        (&shown["BillableTimeInSeconds"], &shown["TrainingTimeInSeconds"]),
        (&json!(540), &json!(540))
    );
    let metric = &shown["FinalMetricDataList"][0];
    assert_eq!((&metric["Value"], &metric["Timestamp"]), (&json!(0.75), &json!(1_790_000_600.0)));
    let statuses: Vec<&Value> =
        shown["SecondaryStatusTransitions"].as_array().unwrap().iter().map(|one| &one["Status"]).collect();
    assert_eq!(statuses, ["Starting", "Training", "Completed"]);
    let model = shown["ModelArtifacts"]["S3ModelArtifacts"].as_str().unwrap();
    assert!(
        model.starts_with("s3://") && model.ends_with(&format!("/{id}-0-0-1/output/model.tar.gz")),
        "{model}"
    );
    for member in
        ["HyperParameters", "ResourceConfig", "StoppingCondition", "AlgorithmSpecification", "RoleArn"]
    {
        assert!(shown[member].is_object() || shown[member].is_string(), "{member}");
    }
    let (status, detail) = get(&api, &format!("/tuning-jobs/HB1/training-jobs/{id}-0-0-1")).await;
    assert_eq!((status, &detail["Curve"]), (200, &json!([{"Resource": 1, "Value": 0.75}])), "{detail}");
}

#[tokio::test]
async fn a_training_job_of_another_tuning_or_of_no_tuning_is_not_found() {
    let api = open();
    let id = running(&api).await;
    let other = format!("{}abcdef-0-0-1", id.strip_suffix(&id[id.len() - 6..]).unwrap());
    for name in [format!("{id}-99-0-1"), other, "some-job".to_owned(), "hb2-abc123-0-0-1".to_owned()] {
        for operation in ["DescribeTrainingJob", "StopTrainingJob"] {
            let (status, answer) = amz_of(&api, operation, &json!({"TrainingJobName": name})).await;
            assert_eq!((status, &answer["__type"]), (400, &json!("ResourceNotFound")), "{operation} {name}");
        }
        let (status, _) = get(&api, &format!("/tuning-jobs/hb1/training-jobs/{name}")).await;
        assert_eq!(status, 404, "{name}");
    }
}

#[tokio::test]
async fn a_stopped_training_job_is_ordered_to_stop_and_its_tuning_goes_on() {
    let api = open();
    let id = running(&api).await;
    let name = json!({"TrainingJobName": format!("{id}-1-0-1")});
    assert_eq!(amz_of(&api, "StopTrainingJob", &name).await, (200, json!({})));
    let facts = api.submit.store.all(&format!("F#{id}"), "1-0-1#").await.unwrap();
    assert_eq!(facts.len(), 1);
    let fact = stored::fact(&facts[0]).unwrap();
    assert_eq!(fact.fact, Fact::JobStopRequested { job: JobKey::new(1, 0, 1) });
    // Again: the same fact.
    let path = format!("/tuning-jobs/hb1/training-jobs/{id}-1-0-1/stop");
    assert_eq!(rest(&api, "POST", &path, &Value::Null).await, (200, json!({})));
    let decider = use_cases::decide::Decider { store: std::sync::Arc::clone(&api.submit.store) };
    decider.decide(&id, &[fact], false).await.unwrap();
    let (_, shown) = amz_of(&api, "DescribeTrainingJob", &name).await;
    assert_eq!(shown["TrainingJobStatus"], "Stopping");
    ends(&api, &id).await;
    let ended = json!({"TrainingJobName": format!("{id}-0-0-1")});
    let (status, answer) = amz_of(&api, "StopTrainingJob", &ended).await;
    assert_eq!((status, &answer["__type"]), (400, &json!("ValidationException")));
    assert!(answer["message"].as_str().unwrap().ends_with("in status Completed."), "{answer}");
}

#[tokio::test]
async fn tags_are_listed_and_added_but_never_those_of_the_controller() {
    let api = open();
    let id = running(&api).await;
    let arn = |kind: &str, name: &str| format!("arn:aws:sagemaker:us-east-1:111122223333:{kind}/{name}");
    let tuning = arn("hyper-parameter-tuning-job", "hb1");
    let (status, tags) = amz_of(&api, "ListTags", &json!({"ResourceArn": tuning})).await;
    let sent = json!([{"Key": "hyperband:MaxCostUsd", "Value": "5"}, {"Key": "team", "Value": "ads"}]);
    assert_eq!((status, &tags["Tags"]), (200, &sent));
    let add = |key: &str| json!({"ResourceArn": tuning, "Tags": [{"Key": key, "Value": "x"}]});
    let (status, tags) = amz_of(&api, "AddTags", &add("stage")).await;
    assert_eq!((status, tags["Tags"].as_array().map(Vec::len)), (200, Some(3)));
    assert_eq!(amz_of(&api, "ListTags", &json!({"ResourceArn": tuning})).await.1, tags);
    for key in ["hyperband:stack", "Hyperband:x", "aws:x", "", "a\u{0}"] {
        let (status, answer) = amz_of(&api, "AddTags", &add(key)).await;
        assert_eq!((status, &answer["__type"]), (400, &json!("ValidationException")), "{key}");
    }
    let many: Vec<Value> = (0..48).map(|n| json!({"Key": format!("k{n}"), "Value": ""})).collect();
    let (status, answer) = amz_of(&api, "AddTags", &json!({"ResourceArn": tuning, "Tags": many})).await;
    assert_eq!(status, 400, "{answer}");
    let job = arn("training-job", &format!("{id}-0-0-1"));
    let (_, tags) = amz_of(&api, "ListTags", &json!({"ResourceArn": job})).await;
    let keys: Vec<&Value> = tags["Tags"].as_array().unwrap().iter().map(|tag| &tag["Key"]).collect();
    assert_eq!(keys, ["hyperband:decision", "hyperband:stack", "hyperband:tuning", "team"]);
    let (status, _) =
        amz_of(&api, "AddTags", &json!({"ResourceArn": job, "Tags": [{"Key": "k", "Value": "v"}]})).await;
    assert_eq!(status, 400);
    for other in [
        arn("model", "m"),
        arn("training-job", "x"),
        "hb1".to_owned(),
        arn("hyper-parameter-tuning-job", "hb9"),
    ] {
        assert_eq!(amz_of(&api, "ListTags", &json!({"ResourceArn": other})).await.0, 400, "{other}");
    }
}

#[tokio::test]
async fn the_same_request_again_answers_the_same_arn_over_rest_and_is_refused_over_aws_json() {
    let api = open();
    submitted(&api, "hb1").await;
    let (status, again) = rest(&api, "POST", "/tuning-jobs", &request("hb1")).await;
    assert_eq!((status, &again["Existed"]), (200, &json!(true)), "{again}");
    assert!(again["HyperParameterTuningJobArn"].as_str().unwrap().ends_with("/hb1"));
    let mut other = request("hb1");
    other["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = json!(3);
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &other).await;
    assert_eq!((status, &answer["__type"]), (409, &json!("ResourceInUse")));
    let (status, answer) = amz_of(&api, "CreateHyperParameterTuningJob", &request("hb1")).await;
    assert_eq!((status, &answer["__type"]), (400, &json!("ResourceInUse")));
}

#[tokio::test]
async fn the_rows_of_a_tuning_are_a_whole_copy_of_it() {
    let api = open();
    let id = running(&api).await;
    ends(&api, &id).await;
    let copy = MemoryTable::default();
    let (mut token, mut pages) = (String::new(), 0);
    loop {
        let (status, page) = get(&api, &format!("/tuning-jobs/hb1/rows?MaxResults=2{token}")).await;
        assert_eq!(status, 200, "{page}");
        pages += 1;
        for row in page["Rows"].as_array().unwrap() {
            let row = row_json::decode(row).unwrap();
            copy.write(Write::Put(row, Condition::NotExists)).await.unwrap();
        }
        match page["NextToken"].as_str() {
            Some(next) => token = format!("&NextToken={next}"),
            None => break,
        }
    }
    assert!(pages > 2, "{pages}");
    let copy = Store::new(copy.into());
    assert_eq!(use_cases::lookup::find(&copy, "hb1").await.unwrap().id, id);
    let replayed = use_cases::replay::replay(&copy, &id).await.unwrap().unwrap();
    assert_eq!((replayed.steps, replayed.difference), (3, None));
    let (status, _) = get(&api, "/tuning-jobs/hb1/rows?NextToken=dHVuaW5ncw").await;
    assert_eq!(status, 400);
}

/// Deletes `hb1` as after its end.
async fn deleted(api: &TestApi, id: &str) {
    let table = &api.submit.store.table;
    let head = api.submit.store.head(id).await.unwrap().unwrap();
    let head = Head { status: "Stopped".to_owned(), ..head };
    table.write(Write::Put(head.row(id), Condition::Always)).await.unwrap();
    table.write(Write::Delete(stored::active_row(id).key, Condition::Always)).await.unwrap();
    assert_eq!(rest(api, "DELETE", "/tuning-jobs/hb1", &Value::Null).await, (200, json!({})));
}

/// The second page came silently from the new tuning.
#[tokio::test]
async fn regression_the_token_of_a_deleted_tuning_is_refused_by_the_next_one_of_its_name() {
    let api = open();
    let id = running(&api).await;
    ends(&api, &id).await;
    let (_, ended) = describe::summaries(&api.submit.store, &id).await.unwrap().unwrap();
    let copies = (90..93).map(|trial| JobSummary { job: JobKey::new(trial, 0, 1), ..ended[0].clone() });
    for copy in copies {
        let row = stored::job_row(&id, &copy);
        api.submit.store.table.write(Write::Put(row, Condition::Always)).await.unwrap();
    }
    let lists = ["rows", "cost", "training-jobs", "training-jobs?SortBy=CreationTime"].map(|list| {
        let joint = if list.contains('?') { '&' } else { '?' };
        format!("/tuning-jobs/hb1/{list}{joint}MaxResults=1")
    });
    let mut tokens = Vec::new();
    for list in &lists {
        let (status, page) = get(&api, list).await;
        assert_eq!(status, 200, "{page}");
        let token = page["NextToken"].as_str().unwrap().to_owned();
        assert_eq!(get(&api, &format!("{list}&NextToken={token}")).await.0, 200, "{list}");
        tokens.push(token);
    }
    deleted(&api, &id).await;
    let again = running(&api).await;
    assert_ne!(again, id);
    for (list, token) in lists.iter().zip(tokens) {
        assert_eq!(get(&api, list).await.0, 200, "{list}");
        let (status, error) = get(&api, &format!("{list}&NextToken={token}")).await;
        assert_eq!((status, &error["__type"]), (400, &json!("ValidationException")), "{list}: {error}");
        assert!(error["message"].as_str().unwrap().contains("NextToken"), "{error}");
    }
}

/// The name in an ARN is in lower case. `ListTags` of a training job, and so `best_estimator()` of the SDK, failed.
#[tokio::test]
async fn regression_a_training_job_of_a_name_with_capitals_is_found_by_its_arn() {
    let api = open();
    let id = submitted(&api, "Hb-Mixed").await;
    decided(&api, &id).await;
    let name = json!({"TrainingJobName": format!("{id}-0-0-1")});
    let (_, shown) = amz_of(&api, "DescribeTrainingJob", &name).await;
    let arn = shown["TrainingJobArn"].as_str().unwrap();
    assert!(arn.contains(":training-job/hb-mixed-"), "{arn}");
    let (status, tags) = amz_of(&api, "ListTags", &json!({"ResourceArn": arn})).await;
    assert_eq!(status, 200, "{tags}");
    assert!(tags["Tags"].as_array().unwrap().contains(&json!({"Key": "hyperband:tuning", "Value": id})));
    let lower = json!({"TrainingJobName": format!("{id}-0-0-1").to_ascii_lowercase()});
    assert_eq!(amz_of(&api, "StopTrainingJob", &lower).await, (200, json!({})));
}

/// The address of a model named an archive that SageMaker does not write without compression.
#[tokio::test]
async fn regression_a_model_without_compression_is_a_folder() {
    let api = open();
    let mut body = request("hb1");
    body["TrainingJobDefinition"]["OutputDataConfig"]["CompressionType"] = json!("NONE");
    assert_eq!(rest(&api, "POST", "/tuning-jobs", &body).await.0, 201);
    let id = use_cases::lookup::find(&api.submit.store, "hb1").await.unwrap().id;
    decided(&api, &id).await;
    let (_, before) = get(&api, "/tuning-jobs/hb1").await;
    assert_eq!(before["Controller"].get("BestModel"), None);
    ends(&api, &id).await;
    let (_, shown) =
        amz_of(&api, "DescribeTrainingJob", &json!({"TrainingJobName": format!("{id}-0-0-1")})).await;
    let model = shown["ModelArtifacts"]["S3ModelArtifacts"].as_str().unwrap();
    assert!(model.ends_with(&format!("/{id}-0-0-1/output/model/")), "{model}");
    let (_, tuning) = get(&api, "/tuning-jobs/hb1").await;
    let best = json!({
        "TrainingJobName": format!("{id}-0-0-1"),
        "Trial": 0,
        "Resource": tuning["BestTrainingJob"]["Controller"]["Resource"],
        "Value": tuning["BestTrainingJob"]["FinalHyperParameterTuningJobObjectiveMetric"]["Value"],
        "Location": model,
    });
    assert_eq!(tuning["Controller"]["BestModel"], best, "{tuning:#}");
}

#[tokio::test]
async fn regression_the_tags_of_another_account_are_not_changed() {
    let api = open();
    submitted(&api, "hb1").await;
    let (_, shown) = get(&api, "/tuning-jobs/hb1").await;
    let arn = shown["HyperParameterTuningJobArn"].as_str().unwrap();
    for other in [arn.replace("us-east-1", "us-west-2"), arn.replace("111122223333", "999999999999")] {
        let body = json!({"ResourceArn": other, "Tags": [{"Key": "team", "Value": "ads"}]});
        let (status, error) = amz_of(&api, "AddTags", &body).await;
        assert_eq!((status, &error["__type"]), (400, &json!("ResourceNotFound")), "{error}");
    }
    let page = json!({"ResourceArn": arn, "MaxResults": 50, "NextToken": "garbage"});
    let (status, error) = amz_of(&api, "ListTags", &page).await;
    assert_eq!((status, &error["__type"]), (400, &json!("ValidationException")), "{error}");
}
