//! A submission becomes one tuning job, whatever happens to its answer.

use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use client::{Client, ClientError};
use loopback::{Request, Response};
use serde_json::json;
use service::memory::MemoryTable;
use stack_test::{Pass, Stack, response};
use wire::request::Request as TuningRequest;

use crate::world::{AT_ONCE, body, client, request};

/// The first submission is done or not, and its answer is lost in both cases.
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
async fn one_whose_answer_was_lost_is_found_by_its_name() {
    let stack = Stack::with_rule(MemoryTable::default(), losing_first(true));
    let client = client(&stack);
    let created = client.create(&request("hb1")).await.unwrap();
    let arn = "arn:aws:sagemaker:eu-west-1:111122223333:hyper-parameter-tuning-job/hb1";
    assert_eq!((created.arn.as_str(), created.found), (arn, true));
    assert_eq!(client.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn one_that_did_not_arrive_is_sent_again() {
    let stack = Stack::with_rule(MemoryTable::default(), losing_first(false));
    let created = client(&stack).create(&request("hb1")).await.unwrap();
    assert!(!created.found);
    assert_eq!(posts(&stack), 2);
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_at_once() {
    let stack = Stack::start(MemoryTable::default());
    let client = client(&stack);
    client.create(&request("hb1")).await.unwrap();
    // The same request, and nothing was lost: it is not ours.
    let error = client.create(&request("hb1")).await.unwrap_err();
    assert!(error.is("ResourceInUse") && error.is_usage(), "{error}");
    assert_eq!(posts(&stack), 2);
}

#[tokio::test]
async fn anothers_tuning_is_never_taken_for_ours() {
    // Another request under the name, and the same request submitted long before.
    let mut other = body("hb1");
    other["Controller"]["MaxCostUsd"] = json!(6);
    for (there, back, why) in [
        (other, 0, "its request is another one (first at Controller.MaxCostUsd)"),
        (body("hb1"), 600_000, "it was submitted before"),
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

/// How an answer is lost.
fn losses() -> [fn() -> Response; 2] {
    [|| response(504, &json!({"message": "Endpoint request timed out"})), Response::cut]
}

/// What may be answered to the next try.
fn refusals() -> [Response; 3] {
    let code = |code: &str, text: &str| json!({"__type": code, "message": text});
    [
        response(400, &code("ResourceLimitExceeded", "the month's cap is used up")),
        response(403, &json!({"message": "The security token included in the request is expired"})),
        response(404, &json!({"message": "Not Found"})),
    ]
}

#[tokio::test]
async fn regression_one_that_was_taken_is_found_whatever_is_answered_to_the_next_try() {
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
async fn regression_what_cannot_be_known_is_said_to_be_so_with_how_to_look() {
    for loss in losses() {
        for refused in refusals().map(|refusal| refusal.status) {
            let posts = AtomicU32::new(0);
            let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
                match (request.method.as_str(), posts.fetch_add(1, Ordering::Relaxed)) {
                    ("POST", 0) => {
                        assert_eq!(pass().status, 201);
                        loss()
                    }
                    // Neither may it be looked up.
                    _ => response(refused, &json!({"__type": "Expired", "message": "expired"})),
                }
            });
            let error = client(&stack).create(&request("hb1")).await.unwrap_err();
            assert!(matches!(&error, ClientError::Uncertain { name, .. } if name == "hb1"), "{error:?}");
            assert!(error.to_string().contains("may have been submitted"), "{error}");
            assert!(error.hint().unwrap().contains("`hyperband describe hb1`"), "{error:?}");
            assert!(!error.is_usage(), "nothing says that it was not taken");
        }
    }
}

#[tokio::test]
async fn a_refusal_stands_where_the_lost_one_was_not_taken() {
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
async fn regression_when_no_answer_comes_it_is_said_that_it_may_have_been_taken() {
    for loss in losses() {
        let stack = Stack::with_rule(MemoryTable::default(), move |_, _| loss());
        let error = client(&stack).create(&request("hb1")).await.unwrap_err();
        assert!(matches!(error, ClientError::Uncertain { .. }), "{error:?}");
        assert!(error.to_string().ends_with("(tried 4 times)"), "{error}");
        assert_eq!(posts(&stack), 4);
    }
}

#[tokio::test]
async fn one_whose_every_answer_was_lost_is_found_as_well() {
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
async fn regression_only_a_submission_speaks_of_having_been_taken() {
    for loss in losses() {
        let stack = Stack::with_rule(MemoryTable::default(), move |_, _| loss());
        let error = client(&stack).describe("hb1").await.unwrap_err();
        let text = format!("{error} {}", error.hint().unwrap());
        assert!(!text.contains("taken") && !text.contains("submit"), "{text}");
    }
    // Nobody was there to take it.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = Client::new(format!("http://{free}").parse().unwrap(), None, AT_ONCE);
    let error = nobody.create(&request("hb1")).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { lost: false, .. }), "{error:?}");
}

#[tokio::test]
async fn what_is_wrong_with_a_request_comes_field_by_field_and_is_not_sent_again() {
    let stack = Stack::start(MemoryTable::default());
    let mut poor = body("hb1");
    poor["Controller"]["MaxCostUsd"] = json!(0.001);
    let error = client(&stack).create(&TuningRequest::check(poor).unwrap()).await.unwrap_err();
    let ClientError::Refused(refusal) = error else { panic!("{error}") };
    assert_eq!((refusal.status, refusal.code.as_str()), (400, "ValidationException"));
    let paths: Vec<&str> = refusal.violations.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["Controller.MaxCostUsd"]);
    assert_eq!(posts(&stack), 1);
}
