//! Who may do what: readers, users and owners, and tunings of others.

use serde_json::{Value, json};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::submit::Guardrails;
use wire::events::direct::CALLER;
use wire::events::http::HttpRequest;
use wire::stored;

use super::{Listed, TestApi, api, decided, request, send};
use http_api::{Access, Principals};

const OWNER: &str = "arn:aws:sts::111122223333:assumed-role/platform/olga";
const USER: &str = "arn:aws:sts::111122223333:assumed-role/science/uma";
const OTHER: &str = "arn:aws:sts::111122223333:assumed-role/science/ugo";
const READER: &str = "arn:aws:sts::111122223333:assumed-role/audit/rob";
const STRANGER: &str = "arn:aws:iam::111122223333:user/eve";

fn restricted(own_tunings_only: bool) -> TestApi {
    let role = |name: &str| Principals::parse(&format!("arn:aws:iam::111122223333:role/{name}")).unwrap();
    let access =
        Access { users: role("science"), readers: role("audit"), owners: role("platform"), own_tunings_only };
    TestApi { access, ..api(Listed(Some("ml.m5.large")), Guardrails::default()) }
}

/// Sends a REST request of `caller`; `None` = IAM authenticated no caller. Returns the status and the body.
pub(super) async fn rest_as(
    api: &TestApi,
    caller: Option<&str>,
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let request = HttpRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        body: if body.is_null() { Vec::new() } else { body.to_string().into_bytes() },
        caller: caller.map(str::to_owned),
        ..HttpRequest::default()
    };
    let (status, body, _) = send(api, request).await;
    (status, body)
}

async fn ask(api: &TestApi, caller: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
    rest_as(api, Some(caller), method, path, &body).await
}

fn capped(name: &str) -> Value {
    let mut body = request(name);
    body["Controller"] = json!({"MaxCostUsd": 20});
    body
}

async fn names(api: &TestApi, caller: &str, query: &str) -> Vec<String> {
    let (status, body) = ask(api, caller, "GET", &format!("/tuning-jobs{query}"), Value::Null).await;
    assert_eq!(status, 200, "{body}");
    let jobs = body["HyperParameterTuningJobSummaries"].as_array().unwrap();
    jobs.iter().map(|job| job["HyperParameterTuningJobName"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_reader_reads_and_changes_nothing_and_a_stranger_does_neither() {
    let api = restricted(false);
    assert_eq!(ask(&api, USER, "POST", "/tuning-jobs", capped("hb1")).await.0, 201);
    assert_eq!(ask(&api, READER, "GET", "/tuning-jobs/hb1", Value::Null).await.0, 200);
    for (method, path, body) in [
        ("POST", "/tuning-jobs", capped("hb2")),
        ("POST", "/tuning-jobs/hb1/stop", Value::Null),
        ("PATCH", "/tuning-jobs/hb1", json!({"MaxParallelTrainingJobs": 1})),
    ] {
        let (status, answer) = ask(&api, READER, method, path, body.clone()).await;
        assert_eq!((status, &answer["__type"]), (403, &json!("AccessDeniedException")), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("AllowedPrincipals"), "{answer}");
        assert_eq!(ask(&api, STRANGER, method, path, body).await.0, 403);
    }
    assert_eq!(ask(&api, STRANGER, "GET", "/tuning-jobs", Value::Null).await.0, 403);
    assert_eq!(names(&api, READER, "").await, ["hb1"]);
}

#[tokio::test]
async fn only_an_owner_raises_a_cap_and_a_user_may_lower_it() {
    let api = restricted(false);
    assert_eq!(ask(&api, USER, "POST", "/tuning-jobs", capped("hb1")).await.0, 201);
    let id = use_cases::lookup::find(&api.submit.store, "hb1").await.unwrap().id;
    decided(&api, &id).await;
    let (status, answer) = ask(&api, USER, "PATCH", "/tuning-jobs/hb1", json!({"MaxCostUsd": 20.01})).await;
    assert_eq!((status, &answer["__type"]), (403, &json!("AccessDeniedException")), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("above 20 USD"), "{answer}");
    for (caller, cap) in [(USER, 20), (USER, 15), (OWNER, 30)] {
        let (status, answer) =
            ask(&api, caller, "PATCH", "/tuning-jobs/hb1", json!({"MaxCostUsd": cap})).await;
        assert_eq!(status, 200, "{answer}");
    }
}

/// The decider has not folded the owner's change yet.
#[tokio::test]
async fn regression_a_user_cannot_undo_a_lowered_cap_before_the_decider_applies_it() {
    let api = restricted(false);
    assert_eq!(ask(&api, USER, "POST", "/tuning-jobs", capped("hb1")).await.0, 201);
    let id = use_cases::lookup::find(&api.submit.store, "hb1").await.unwrap().id;
    decided(&api, &id).await;
    for (caller, cap, wanted) in
        [(OWNER, 30, 200), (OWNER, 5, 200), (USER, 20, 403), (USER, 6, 403), (USER, 5, 200)]
    {
        let (status, answer) =
            ask(&api, caller, "PATCH", "/tuning-jobs/hb1", json!({"MaxCostUsd": cap})).await;
        assert_eq!(status, wanted, "{cap} {answer}");
    }
}

#[tokio::test]
async fn a_direct_caller_uses_the_api_and_never_raises_a_cap_or_deletes() {
    // Without lists, every principal of API Gateway may do both.
    let access = Access::of_direct_calls(false);
    let api = TestApi { access, ..api(Listed(Some("ml.m5.large")), Guardrails::default()) };
    assert_eq!(ask(&api, CALLER, "POST", "/tuning-jobs", capped("hb1")).await.0, 201);
    let id = use_cases::lookup::find(&api.submit.store, "hb1").await.unwrap().id;
    decided(&api, &id).await;
    for (cap, status) in [(21, 403), (19, 200)] {
        let answer = ask(&api, CALLER, "PATCH", "/tuning-jobs/hb1", json!({"MaxCostUsd": cap})).await;
        assert_eq!(answer.0, status, "{}", answer.1);
    }
    assert_eq!(ask(&api, CALLER, "DELETE", "/tuning-jobs/hb1", Value::Null).await.0, 403);
    assert_eq!(names(&api, CALLER, &format!("?Submitter={CALLER}")).await, ["hb1"]);
    assert_eq!(ask(&api, OWNER, "GET", "/tuning-jobs", Value::Null).await.0, 403);
}

#[tokio::test]
async fn a_tuning_has_its_submitter_in_describe_in_lists_and_as_a_filter() {
    let api = restricted(false);
    for (caller, name) in [(USER, "uma-1"), (OTHER, "ugo-1")] {
        assert_eq!(ask(&api, caller, "POST", "/tuning-jobs", capped(name)).await.0, 201);
    }
    let (_, described) = ask(&api, OTHER, "GET", "/tuning-jobs/uma-1", Value::Null).await;
    assert_eq!(described["Controller"]["Submitter"], USER);
    let (_, listed) = ask(&api, READER, "GET", "/tuning-jobs", Value::Null).await;
    assert_eq!(listed["HyperParameterTuningJobSummaries"][0]["Controller"]["Submitter"], OTHER);
    assert_eq!(names(&api, READER, &format!("?Submitter={USER}")).await, ["uma-1"]);
    assert_eq!(names(&api, READER, "").await, ["ugo-1", "uma-1"]);
}

#[tokio::test]
async fn where_users_see_their_own_tunings_only_those_of_others_do_not_exist_for_them() {
    let api = restricted(true);
    for (caller, name) in [(USER, "uma-1"), (OTHER, "ugo-1")] {
        assert_eq!(ask(&api, caller, "POST", "/tuning-jobs", capped(name)).await.0, 201);
    }
    let missing = ask(&api, USER, "GET", "/tuning-jobs/nothing", Value::Null).await;
    for (method, path, body) in [
        ("GET", "", Value::Null),
        ("GET", "/training-jobs", Value::Null),
        ("GET", "/decisions", Value::Null),
        ("POST", "/stop", Value::Null),
        ("PATCH", "", json!({"MaxCostUsd": 1})),
    ] {
        let (status, answer) = ask(&api, USER, method, &format!("/tuning-jobs/ugo-1{path}"), body).await;
        assert_eq!(status, 404, "{method} {path}");
        let text = missing.1.to_string().replace("nothing", "ugo-1");
        assert_eq!(answer.to_string(), text, "the answer does not show that the tuning exists");
    }
    assert_eq!(names(&api, USER, "").await, ["uma-1"]);
    assert_eq!(names(&api, USER, &format!("?Submitter={OTHER}")).await, [""; 0]);
    for all in [OWNER, READER] {
        assert_eq!(names(&api, all, "").await, ["ugo-1", "uma-1"]);
    }
    assert_eq!(ask(&api, OWNER, "POST", "/tuning-jobs/ugo-1/stop", Value::Null).await.0, 200);
}

#[tokio::test]
async fn only_an_owner_deletes_a_tuning_and_only_one_that_has_ended() {
    let api = restricted(false);
    assert_eq!(ask(&api, USER, "POST", "/tuning-jobs", capped("hb1")).await.0, 201);
    let (status, answer) = ask(&api, USER, "DELETE", "/tuning-jobs/hb1", Value::Null).await;
    assert_eq!((status, &answer["__type"]), (403, &json!("AccessDeniedException")), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("OwnerPrincipals"), "{answer}");
    let (status, answer) = ask(&api, OWNER, "DELETE", "/tuning-jobs/hb1", Value::Null).await;
    assert_eq!((status, &answer["__type"]), (400, &json!("ValidationException")), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("in status InProgress: stop it first"), "{answer}");
    // The table as it is after the end of the tuning.
    let id = use_cases::lookup::find(&api.submit.store, "hb1").await.unwrap().id;
    let mut head = api.submit.store.head(&id).await.unwrap().unwrap();
    head.status = "Stopped".to_owned();
    let table = &api.submit.store.table;
    table.write(Write::Put(head.row(&id), Condition::Always)).await.unwrap();
    table.write(Write::Delete(stored::active_row(&id).key, Condition::Always)).await.unwrap();
    assert_eq!(ask(&api, OWNER, "DELETE", "/tuning-jobs/HB1", Value::Null).await, (200, json!({})));
    for path in ["/tuning-jobs/hb1", "/tuning-jobs/hb1/training-jobs", "/tuning-jobs/hb1/decisions"] {
        assert_eq!(ask(&api, OWNER, "GET", path, Value::Null).await.0, 404, "{path}");
    }
    assert_eq!(ask(&api, OWNER, "DELETE", "/tuning-jobs/hb1", Value::Null).await.0, 404);
    assert_eq!(ask(&api, USER, "POST", "/tuning-jobs", capped("hb1")).await.0, 201, "the name is free");
}
