//! A submission becomes one tuning job, whatever happens to its answer.

use std::sync::atomic::{AtomicU32, Ordering};

use loopback::{Request, Response};
use serde_json::json;
use service::memory::MemoryTable;
use stack_test::{Pass, Stack, response};
use wire::request::Request as TuningRequest;

use crate::world::{body, client, request};

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

#[tokio::test]
async fn when_no_answer_comes_it_is_said_that_it_may_have_been_taken() {
    let down = |_: &Request, _: Pass<'_>| response(503, &json!({"message": "Service Unavailable"}));
    let stack = Stack::with_rule(MemoryTable::default(), down);
    let error = client(&stack).create(&request("hb1")).await.unwrap_err();
    assert!(error.to_string().ends_with("(tried 4 times)"), "{error}");
    assert!(error.hint().unwrap().contains("may have been taken"), "{error:?}");
    assert_eq!(posts(&stack), 4);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_comes_field_by_field_and_is_not_sent_again() {
    let stack = Stack::start(MemoryTable::default());
    let mut poor = body("hb1");
    poor["Controller"]["MaxCostUsd"] = json!(0.001);
    let error = client(&stack).create(&TuningRequest::check(poor).unwrap()).await.unwrap_err();
    let client::ClientError::Refused(refusal) = error else { panic!("{error}") };
    assert_eq!((refusal.status, refusal.code.as_str()), (400, "ValidationException"));
    let paths: Vec<&str> = refusal.violations.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["Controller.MaxCostUsd"]);
    assert_eq!(posts(&stack), 1);
}
