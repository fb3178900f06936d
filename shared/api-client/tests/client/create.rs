//! A submission becomes exactly one tuning job, even if its response is lost.

use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use api_client::ClientError;
use loopback::{Request, Response};
use port_tests::memory::MemoryTable;
use serde_json::json;
use stack_api::{Pass, Stack, response};
use wire::request::Request as TuningRequest;
use wire::sample;

use crate::world::{client, request, unsigned};

/// Loses the response to the first submission. `done`: the submission took effect.
fn losing_first(done: bool) -> impl Fn(&Request, Pass<'_>) -> Response + Send + Sync {
    let posts = AtomicU32::new(0);
    move |request, pass| {
        if request.method != "POST" || posts.fetch_add(1, Ordering::Relaxed) > 0 {
            return pass();
        }
        if done {
            assert_eq!(pass().status, 201);
        }
        response(504, &json!({"message": "Endpoint request timed out"}))
    }
}

fn posts(stack: &Stack) -> usize {
    stack.requests().iter().filter(|request| request.method == "POST").count()
}

#[tokio::test]
async fn a_tuning_job_with_a_lost_response_is_found_by_its_name() {
    let stack = Stack::with_rule(MemoryTable::default(), losing_first(true));
    let client = client(&stack);
    let created = client.create(&request("hb1")).await.unwrap();
    let arn = "arn:aws:sagemaker:eu-west-1:111122223333:hyper-parameter-tuning-job/hb1";
    assert_eq!((created.arn.as_str(), created.found), (arn, true));
    assert_eq!(client.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_submission_without_effect_is_retried() {
    let stack = Stack::with_rule(MemoryTable::default(), losing_first(false));
    let created = client(&stack).create(&request("hb1")).await.unwrap();
    assert!(!created.found);
    assert_eq!(posts(&stack), 2);
}

/// A server on this machine adds defaults to a request, so Describe shows another one.
#[tokio::test]
async fn regression_a_tuning_job_with_added_defaults_is_found_after_a_lost_response() {
    let mut sent = sample::local_request("hb1");
    sent["TrainingJobDefinition"].as_object_mut().unwrap().remove("RoleArn");
    let completed = TuningRequest::check_local(sent.clone()).unwrap();
    let sent = TuningRequest::from_stored(sent);
    assert_ne!(sent.body(), completed.body());
    let table = MemoryTable::default();
    let arn = client(&Stack::start(table.clone())).create(&completed).await.unwrap().arn;
    let again = response(200, &json!({"HyperParameterTuningJobArn": arn, "Existed": true}));
    let refused = response(403, &json!({"message": "The security token included in the request is expired"}));
    for next in [again, refused] {
        let (posts, next) = (AtomicU32::new(0), Mutex::new(Some(next)));
        let stack = Stack::with_rule(table.clone(), move |request, pass| {
            match (request.method.as_str(), posts.fetch_add(1, Ordering::Relaxed)) {
                ("POST", 0) => response(504, &json!({"message": "Endpoint request timed out"})),
                ("POST", _) => next.lock().unwrap().take().unwrap(),
                _ => pass(),
            }
        });
        let created = client(&stack).create(&sent).await.unwrap();
        assert_eq!((created.arn.as_str(), created.found), (arn.as_str(), true));
    }
}

#[tokio::test]
async fn an_existing_name_is_refused_without_a_retry() {
    let stack = Stack::start(MemoryTable::default());
    let client = client(&stack);
    client.create(&request("hb1")).await.unwrap();
    // The request is equal, but no response was lost, so another submission created the tuning job.
    let error = client.create(&request("hb1")).await.unwrap_err();
    assert!(error.is("ResourceInUse") && error.is_usage(), "{error}");
    assert_eq!(posts(&stack), 2);
}

#[tokio::test]
async fn a_tuning_job_of_another_submission_is_never_returned() {
    // A different request with the name, and an equal request that was submitted long before.
    let mut other = sample::request("hb1");
    other["Controller"]["MaxCostUsd"] = json!(6);
    for (there, back, why) in [
        (other, 0, "its request differs, first at Controller.MaxCostUsd"),
        (sample::request("hb1"), 600_000, "it was submitted earlier"),
    ] {
        let table = MemoryTable::default();
        let first = Stack::start(table.clone());
        first.set_clock_back(back);
        client(&first).create(&TuningRequest::check(there).unwrap()).await.unwrap();
        let stack = Stack::with_rule(table, losing_first(false));
        let error = client(&stack).create(&request("hb1")).await.unwrap_err();
        assert!(error.is("ResourceInUse"), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// Ways to lose a response.
fn losses() -> [fn() -> Response; 2] {
    [|| response(504, &json!({"message": "Endpoint request timed out"})), Response::cut]
}

/// Refusals of the next attempt.
fn refusals() -> [Response; 3] {
    let code = |code: &str, text: &str| json!({"__type": code, "message": text});
    [
        response(400, &code("ResourceLimitExceeded", "the month's cap is used up")),
        response(403, &json!({"message": "The security token included in the request is expired"})),
        response(404, &json!({"message": "Not Found"})),
    ]
}

#[tokio::test]
async fn regression_a_created_tuning_job_is_found_after_any_refusal_of_the_next_attempt() {
    for loss in losses() {
        for refusal in refusals() {
            let (posts, refusal) = (AtomicU32::new(0), Mutex::new(Some(refusal)));
            let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
                match (request.method.as_str(), posts.fetch_add(1, Ordering::Relaxed)) {
                    ("POST", 0) => {
                        assert_eq!(pass().status, 201);
                        loss()
                    }
                    ("POST", _) => refusal.lock().unwrap().take().unwrap(),
                    _ => pass(),
                }
            });
            let created = client(&stack).create(&request("hb1")).await.unwrap();
            assert!(created.found);
        }
    }
}

#[tokio::test]
async fn regression_an_unknown_result_is_reported_with_the_command_to_check_it() {
    for loss in losses() {
        for refused in refusals().map(|refusal| refusal.status) {
            let posts = AtomicU32::new(0);
            let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
                match (request.method.as_str(), posts.fetch_add(1, Ordering::Relaxed)) {
                    ("POST", 0) => {
                        assert_eq!(pass().status, 201);
                        loss()
                    }
                    // The lookup fails, too.
                    _ => response(refused, &json!({"__type": "Expired", "message": "expired"})),
                }
            });
            let error = client(&stack).create(&request("hb1")).await.unwrap_err();
            assert!(matches!(&error, ClientError::Uncertain { name, .. } if name == "hb1"), "{error:?}");
            assert!(error.to_string().contains("may have been submitted"), "{error}");
            assert!(error.hint().unwrap().contains("`hyperband describe hb1`"), "{error:?}");
            assert!(!error.is_usage(), "the submission may have succeeded");
        }
    }
}

#[tokio::test]
async fn a_refusal_is_returned_if_the_lost_attempt_had_no_effect() {
    for loss in losses() {
        let posts = AtomicU32::new(0);
        let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
            match (request.method.as_str(), posts.fetch_add(1, Ordering::Relaxed)) {
                ("POST", 0) => loss(),
                ("POST", _) => {
                    response(400, &json!({"__type": "ResourceLimitExceeded", "message": "used up"}))
                }
                _ => pass(),
            }
        });
        let error = client(&stack).create(&request("hb1")).await.unwrap_err();
        assert!(error.is("ResourceLimitExceeded"), "{error}");
    }
}

#[tokio::test]
async fn regression_without_any_response_the_result_is_uncertain() {
    for loss in losses() {
        let stack = Stack::with_rule(MemoryTable::default(), move |_, _| loss());
        let error = client(&stack).create(&request("hb1")).await.unwrap_err();
        assert!(matches!(error, ClientError::Uncertain { .. }), "{error:?}");
        assert!(error.to_string().ends_with("(tried 4 times)"), "{error}");
        assert_eq!(posts(&stack), 4);
    }
}

#[tokio::test]
async fn a_tuning_job_is_found_if_every_response_was_lost() {
    for loss in losses() {
        let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
            let answer = pass();
            if request.method == "POST" { loss() } else { answer }
        });
        assert!(client(&stack).create(&request("hb1")).await.unwrap().found);
        assert_eq!(posts(&stack), 4);
    }
}

#[tokio::test]
async fn regression_only_a_submission_error_mentions_a_possible_effect() {
    for loss in losses() {
        let stack = Stack::with_rule(MemoryTable::default(), move |_, _| loss());
        let error = client(&stack).describe("hb1").await.unwrap_err();
        let text = format!("{error} {}", error.hint().unwrap());
        assert!(!text.contains("taken") && !text.contains("submit"), "{text}");
    }
    // Without a connection, the request cannot have had an effect.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = unsigned(&format!("http://{free}"));
    let error = unreachable.create(&request("hb1")).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { lost: false, .. }), "{error:?}");
}

#[tokio::test]
async fn an_invalid_request_is_refused_with_its_fields_and_not_retried() {
    let stack = Stack::start(MemoryTable::default());
    let mut poor = sample::request("hb1");
    poor["Controller"]["MaxCostUsd"] = json!(0.001);
    let error = client(&stack).create(&TuningRequest::check(poor).unwrap()).await.unwrap_err();
    let ClientError::Refused(refusal) = error else { panic!("{error}") };
    assert_eq!((refusal.status, refusal.code.as_str()), (400, "ValidationException"));
    let paths: Vec<&str> = refusal.violations.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["Controller.MaxCostUsd"]);
    assert_eq!(posts(&stack), 1);
}
