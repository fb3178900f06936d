//! The API on the in-memory table: both protocols, lists and their pages, errors in AWS's format.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod access;
mod guardrails;
mod jobs;
mod lists;
mod openapi;
mod reports;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use http_api::{Access, Answered, Api, ApiError, Cause, ROUTES};
use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, Recorded};
use tuning::unit::time::Time;
use use_cases::decide::Decider;
use use_cases::describe::Place;
use use_cases::ports::table::Table;
use use_cases::ports::{Clock, Prices, PricesError};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use wire::events::http::HttpRequest;
use wire::sample::request;

/// A clock that advances by a second with every reading.
#[derive(Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Time {
        Time(1_790_000_000_000 + self.0.fetch_add(1_000, Ordering::Relaxed))
    }
}

/// A price list with one instance type; `None` = unavailable.
struct Listed(Option<&'static str>);

impl Prices for Listed {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        let known = self.0.ok_or_else(|| PricesError::Unavailable("timed out".to_owned()))?;
        Ok((instance_type == known).then_some(115_000))
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        Ok(Some(191_781))
    }
}

type TestApi = Api<MemoryTable, Listed, Ticking>;

fn api(prices: Listed, guardrails: Guardrails) -> TestApi {
    let store = Arc::new(Store::new(Arc::new(MemoryTable::default())));
    let submit = Submit {
        store,
        other_tunings: None,
        prices,
        clock: Ticking::default(),
        monthly_cap: None,
        guardrails,
    };
    Api { submit, access: Access::default(), stack: "prod".to_owned() }
}

fn open() -> TestApi {
    api(Listed(Some("ml.m5.large")), Guardrails::default())
}

fn place() -> Place {
    Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:api")
}

async fn send(api: &TestApi, request: HttpRequest) -> (u16, Value, Answered) {
    let answered = api.handle(&HttpRequest { request_id: "r-1".to_owned(), ..request }, &place()).await;
    assert_eq!(answered.response.headers["x-amzn-requestid"], "r-1");
    let body = serde_json::from_slice(&answered.response.body).unwrap();
    (answered.response.status, body, answered)
}

/// Sends a REST request. The path may have a query.
async fn rest(api: &TestApi, method: &str, path: &str, body: &Value) -> (u16, Value) {
    access::rest_as(api, None, method, path, body).await
}

async fn get(api: &TestApi, path: &str) -> (u16, Value) {
    rest(api, "GET", path, &Value::Null).await
}

/// Sends a request in AWS JSON.
async fn amz(api: &TestApi, operation: &str, body: &str) -> (u16, Value) {
    let headers = [("x-amz-target", format!("SageMaker.{operation}"))];
    let request = HttpRequest {
        method: "POST".to_owned(),
        path: "/".to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value)).into(),
        body: body.as_bytes().to_vec(),
        ..HttpRequest::default()
    };
    let (status, body, answered) = send(api, request).await;
    assert_eq!(answered.response.headers["content-type"], "application/x-amz-json-1.1");
    (status, body)
}

async fn submitted(api: &TestApi, name: &str) -> String {
    let (status, body) = rest(api, "POST", "/tuning-jobs", &request(name)).await;
    assert_eq!(status, 201, "{body}");
    use_cases::lookup::find(&api.submit.store, name).await.unwrap().id
}

/// Runs the decider, which starts the tuning's first jobs.
async fn decided(api: &TestApi, id: &str) {
    let decider = Decider { store: Arc::clone(&api.submit.store) };
    let fact =
        Recorded { key: "submitted".to_owned(), at: Time(1_790_000_000_000), fact: Fact::TuningSubmitted };
    assert!(!decider.decide(id, &[fact], false).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_tuning_job_is_created_described_and_stopped() {
    let api = open();
    let (status, body) = rest(&api, "POST", "/tuning-jobs", &request("Hb1")).await;
    let arn = "arn:aws:sagemaker:us-east-1:111122223333:hyper-parameter-tuning-job/hb1";
    assert_eq!((status, body), (201, json!({"HyperParameterTuningJobArn": arn})));
    // Describe works before the first step. Names are case-insensitive.
    let (status, shown) = get(&api, "/tuning-jobs/hB1").await;
    assert_eq!((status, &shown["HyperParameterTuningJobName"]), (200, &json!("Hb1")));
    assert_eq!(shown["HyperParameterTuningJobStatus"], "InProgress");
    assert_eq!(rest(&api, "POST", "/tuning-jobs/Hb1/stop", &Value::Null).await, (200, json!({})));
    let (_, shown) = get(&api, "/tuning-jobs/Hb1").await;
    assert_eq!(shown["HyperParameterTuningJobStatus"], "Stopping");
}

#[tokio::test]
async fn regression_every_response_has_the_id_of_its_tuning_job() {
    let api = open();
    let asked = |method: &str, path: &str, body: Value| HttpRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        body: body.to_string().into_bytes(),
        ..HttpRequest::default()
    };
    let (_, _, created) = send(&api, asked("POST", "/tuning-jobs", request("hb1"))).await;
    let id = use_cases::lookup::find(&api.submit.store, "hb1").await.unwrap().id;
    assert_eq!(created.id.as_ref(), Some(&id));
    for (method, path) in
        [("GET", "/tuning-jobs/hb1"), ("POST", "/tuning-jobs/HB1/stop"), ("PATCH", "/tuning-jobs/hb1")]
    {
        let (_, _, answered) = send(&api, asked(method, path, json!({}))).await;
        assert_eq!(answered.id.as_ref(), Some(&id), "{method} {path}");
    }
    let (_, _, answered) = send(&api, asked("POST", "/tuning-jobs/hb2/stop", json!({}))).await;
    assert_eq!((answered.tuning.as_deref(), answered.id), (Some("hb2"), None));
}

#[tokio::test]
async fn every_route_is_supported_and_no_other_method_of_its_path() {
    let api = open();
    for route in ROUTES {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path
            .replace("{name}", "missing")
            .replace("{job}", "missing-abc123-0-0-1")
            .replace("{proxy+}", "training-jobs");
        let unknown = |body: &Value| body["__type"] == "UnknownOperationException";
        if path == "/" {
            let (_, body) = amz(&api, "ListHyperParameterTuningJobs", "{}").await;
            assert!(!unknown(&body), "{route}");
            continue;
        }
        assert!(!unknown(&rest(&api, method, &path, &Value::Null).await.1), "{route}");
        for other in ["GET", "POST", "PATCH", "PUT", "DELETE"] {
            let is_route = ROUTES.contains(&route.replace(method, other).as_str());
            let (status, body) = rest(&api, other, &path, &Value::Null).await;
            assert_eq!(unknown(&body), !is_route, "{other} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn a_tuning_job_is_created_described_listed_and_stopped_over_aws_json() {
    let api = open();
    let (status, body) = amz(&api, "CreateHyperParameterTuningJob", &request("hb1").to_string()).await;
    assert_eq!(status, 200, "{body}");
    let name = r#"{"HyperParameterTuningJobName": "hb1"}"#;
    let (status, shown) = amz(&api, "DescribeHyperParameterTuningJob", name).await;
    assert_eq!((status, &shown["HyperParameterTuningJobStatus"]), (200, &json!("InProgress")));
    let (_, listed) = amz(&api, "ListHyperParameterTuningJobs", r#"{"MaxResults": 5, "SortBy": null}"#).await;
    assert_eq!(listed["HyperParameterTuningJobSummaries"].as_array().unwrap().len(), 1);
    let (_, jobs) = amz(&api, "ListTrainingJobsForHyperParameterTuningJob", name).await;
    assert_eq!(jobs, json!({"TrainingJobSummaries": []}));
    assert_eq!(amz(&api, "StopHyperParameterTuningJob", name).await, (200, json!({})));
}

#[tokio::test]
async fn decisions_are_the_stored_steps() {
    let api = open();
    let id = submitted(&api, "hb1").await;
    let none = json!({"TuningJobId": id, "Decisions": []});
    assert_eq!(get(&api, "/tuning-jobs/hb1/decisions").await, (200, none));
    decided(&api, &id).await;
    let (status, page) = get(&api, "/tuning-jobs/hb1/decisions?MaxResults=1").await;
    assert_eq!((status, &page["Decisions"][0]["n"]), (200, &json!(1)));
    let (_, rest) = get(&api, "/tuning-jobs/hb1/decisions?NextToken=1").await;
    assert_eq!(rest["Decisions"], json!([]));
}

#[tokio::test]
async fn limits_of_a_running_tuning_job_are_changed() {
    let api = open();
    let id = submitted(&api, "hb1").await;
    assert_eq!(rest(&api, "PATCH", "/tuning-jobs/hb1", &json!({"paused": true})).await, (200, json!({})));
    let facts = api.submit.store.all(&format!("F#{id}"), "-#change#").await.unwrap();
    assert_eq!(facts.len(), 1);
    let (status, body) = rest(&api, "PATCH", "/tuning-jobs/hb1", &json!({"cap": 1})).await;
    assert_eq!((status, &body["__type"]), (400, &json!("ValidationException")));
}

#[tokio::test]
async fn an_error_has_the_aws_code_and_the_path_of_the_field() {
    let api = open();
    submitted(&api, "hb1").await;
    let mut wrong = request("hb2");
    wrong["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxParallelTrainingJobs"] = json!(0);
    let (status, body) = rest(&api, "POST", "/tuning-jobs", &wrong).await;
    assert_eq!((status, &body["__type"]), (400, &json!("ValidationException")));
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxParallelTrainingJobs";
    assert_eq!(body["Violations"][0]["Path"], path);
    assert_eq!(body["message"], body["Message"]);

    let taken = request("HB1");
    let cases = [
        ("POST", "/tuning-jobs", &taken, 409, "ResourceInUse"),
        ("GET", "/tuning-jobs/missing", &Value::Null, 404, "ResourceNotFound"),
        ("GET", "/tuning-jobs/a b", &Value::Null, 404, "ResourceNotFound"),
        ("DELETE", "/tuning-jobs", &Value::Null, 405, "UnknownOperationException"),
        ("GET", "/tuning-job", &Value::Null, 404, "UnknownOperationException"),
        ("GET", "/", &Value::Null, 404, "UnknownOperationException"),
        ("GET", "/tuning-jobs?MaxResults=101", &Value::Null, 400, "ValidationException"),
        ("GET", "/tuning-jobs?SortBy=Size", &Value::Null, 400, "ValidationException"),
        ("GET", "/tuning-jobs?Colour=red", &Value::Null, 400, "ValidationException"),
        ("GET", "/tuning-jobs?CreationTimeAfter=yesterday", &Value::Null, 400, "ValidationException"),
        ("GET", "/tuning-jobs?NextToken=%", &Value::Null, 400, "ValidationException"),
        ("GET", "/tuning-jobs/hb1/decisions?NextToken=x", &Value::Null, 400, "ValidationException"),
        ("GET", "/tuning-jobs/hb1/training-jobs?NextToken=bm9uZQ", &Value::Null, 400, "ValidationException"),
        ("POST", "/tuning-jobs", &Value::Null, 400, "SerializationException"),
    ];
    for (method, path, body, status, code) in cases {
        let answer = rest(&api, method, path, body).await;
        assert_eq!((answer.0, &answer.1["__type"]), (status, &json!(code)), "{method} {path}: {}", answer.1);
    }
    let name = r#"{"HyperParameterTuningJobName": "missing"}"#;
    for (operation, body, code) in [
        ("CreateHyperParameterTuningJob", taken.to_string().as_str(), "ResourceInUse"),
        ("DescribeHyperParameterTuningJob", name, "ResourceNotFound"),
        ("DescribeHyperParameterTuningJob", "{}", "ValidationException"),
        ("DescribeHyperParameterTuningJob", r#"{"Name": "hb1"}"#, "ValidationException"),
        ("DescribeHyperParameterTuningJob", "[]", "SerializationException"),
        ("DescribeHyperParameterTuningJob", "{", "SerializationException"),
        ("CreateTrainingJob", "{}", "UnknownOperationException"),
    ] {
        let answer = amz(&api, operation, body).await;
        assert_eq!((answer.0, &answer.1["__type"]), (400, &json!(code)), "{operation} {body}");
    }
    assert_eq!(api.submit.store.all("INDEX", "").await.unwrap().len(), 1, "nothing was stored");
}

#[tokio::test]
async fn regression_a_tag_or_an_environment_variable_can_set_the_cap() {
    let guardrails = Guardrails { require_cost_cap: true, ..Guardrails::default() };
    let api = api(Listed(Some("ml.m5.large")), guardrails);
    let mut tagged = request("tagged");
    tagged.as_object_mut().unwrap().remove("Controller");
    let mut variable = tagged.clone();
    tagged["Tags"] = json!([{"Key": "hyperband:MaxCostUsd", "Value": "5"}]);
    let (status, answer) = amz(&api, "CreateHyperParameterTuningJob", &tagged.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    variable["HyperParameterTuningJobName"] = json!("variable");
    variable["TrainingJobDefinition"]["Environment"] = json!({"HYPERBAND_MaxCostUsd": "5"});
    let (status, answer) = rest(&api, "POST", "/tuning-jobs", &variable).await;
    assert_eq!(status, 201, "{answer}");
    for name in ["tagged", "variable"] {
        let (_, described) = get(&api, &format!("/tuning-jobs/{name}")).await;
        assert_eq!(described["Controller"]["MaxCostUsd"], 5, "{described}");
        assert_eq!(described["Controller"]["CapUsd"], 5, "{described}");
    }
}

#[tokio::test]
async fn a_request_with_an_unknown_price_is_refused_and_an_unavailable_price_list_is_a_503() {
    let unknown = api(Listed(Some("ml.c5.large")), Guardrails::default());
    let (status, body) = rest(&unknown, "POST", "/tuning-jobs", &request("hb1")).await;
    assert_eq!((status, &body["__type"]), (400, &json!("ValidationException")));
    assert!(body["message"].as_str().unwrap().contains("ml.m5.large"), "{body}");
    let unavailable = api(Listed(None), Guardrails::default());
    let (status, body) = rest(&unavailable, "POST", "/tuning-jobs", &request("hb1")).await;
    assert_eq!((status, &body["__type"]), (503, &json!("ServiceUnavailable")));
    // A retry cannot succeed without the permission.
    let refused = ApiError::from(PricesError::Refused("AccessDeniedException: m".to_owned()));
    assert_eq!((refused.status, refused.code), (400, "ValidationException"));
    assert!(refused.message.contains("InstancePricesUsdPerHour"), "{}", refused.message);
}

#[tokio::test]
async fn the_cause_of_an_internal_failure_is_hidden_from_the_caller() {
    let api = open();
    let id = submitted(&api, "hb1").await;
    let mut head = api.submit.store.table.get(&wire::stored::head_key(&id)).await.unwrap().unwrap();
    head = head.with("type", "no head");
    let write = use_cases::ports::table::Write::Put(head, use_cases::ports::table::Condition::Always);
    api.submit.store.table.write(write).await.unwrap();
    let request = HttpRequest {
        method: "GET".to_owned(),
        path: "/tuning-jobs/hb1".to_owned(),
        ..HttpRequest::default()
    };
    let (status, body, answered) = send(&api, request).await;
    assert_eq!((status, &body["__type"]), (500, &json!("InternalFailure")));
    assert!(!body.to_string().contains("no head"), "{body}");
    let cause = answered.error.unwrap().cause;
    assert!(
        matches!(cause.as_deref(), Some(Cause::Store(error)) if error.to_string().contains("no head")),
        "{cause:?}"
    );
    assert_eq!(
        (answered.operation, answered.tuning.as_deref()),
        ("DescribeHyperParameterTuningJob", Some("hb1"))
    );
}
