//! A stack's function in place of its HTTP API: the call of Lambda's Invoke, its signature, and its errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use api_client::{Client, ClientError, Denial};
use loopback::Response;
use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use stack_api::{Stack, response};

use crate::signature::{field, is_signed};
use crate::world::{AT_ONCE, SECRET, credentials, request};

const ARN: &str = "arn:aws:lambda:eu-west-1:111122223333:function:tune:live";

fn client(stack: &Stack) -> Client {
    Client::new(Arc::new(invoking(stack)), AT_ONCE)
}

fn invoking(stack: &Stack) -> api_client::Stack {
    let (function, endpoint) = (ARN.parse().unwrap(), stack.endpoint.parse().unwrap());
    api_client::Stack::invoking(function, endpoint, Some((credentials(), "eu-west-1")), AT_ONCE)
}

/// Returns an answer with headers.
fn with(status: u16, body: &Value, headers: &[(&str, &str)]) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Response { headers, ..response(status, body) }
}

/// Returns a stack whose Lambda always gives this answer.
fn always(status: u16, body: Value, headers: &'static [(&str, &str)]) -> Stack {
    Stack::with_rule(MemoryTable::default(), move |_, _| with(status, &body, headers))
}

#[tokio::test]
async fn every_operation_works_by_invocations_that_are_signed_for_lambda() {
    let stack = Stack::start(MemoryTable::default());
    let client = client(&stack);
    assert_eq!(invoking(&stack).address().to_string(), format!("lambda:{ARN}"));
    client.create(&request("hb1")).await.unwrap();
    assert_eq!(client.list().await.unwrap().len(), 1);
    assert_eq!(client.describe("hb1").await.unwrap().base.name, "hb1");
    client.training_jobs("hb1").await.unwrap();
    client.decisions::<Value>("hb1", 3).await.unwrap();
    client.stop("hb1").await.unwrap();
    let missing = client.describe("hb2").await.unwrap_err();
    assert!(missing.is("ResourceNotFound"), "{missing:?}");
    let requests = stack.requests();
    assert_eq!(requests.len(), 7);
    for request in &requests {
        let path = "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aeu-west-1%3A111122223333%3Afunction%3Atune%3Alive/invocations";
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", path));
        assert_eq!(request.header("x-amz-invocation-type"), Some("RequestResponse"));
        assert!(is_signed(request, SECRET) && !is_signed(request, "another-secret"), "{request:?}");
        assert!(field(request, "Credential").ends_with("/eu-west-1/lambda/aws4_request"));
        assert!(field(request, "SignedHeaders").contains("x-amz-invocation-type"));
    }
    let listed: Value = serde_json::from_slice(&requests[1].body).unwrap();
    let query = json!({"MaxResults": "100", "SortBy": "CreationTime", "SortOrder": "Descending"});
    assert_eq!(listed, json!({"method": "GET", "path": "/tuning-jobs", "query": query}));
    let created: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(created["body"], *request("hb1").body());
}

#[tokio::test]
async fn a_refusal_of_the_api_is_the_same_as_over_http() {
    let stack = Stack::start(MemoryTable::default());
    client(&stack).create(&request("hb1")).await.unwrap();
    let by_function = client(&stack).create(&request("hb1")).await.unwrap_err();
    let by_http = crate::world::client(&stack).create(&request("hb1")).await.unwrap_err();
    assert!(by_function.is("ResourceInUse"), "{by_function:?}");
    assert_eq!(by_function, by_http);
}

#[tokio::test]
async fn throttles_updates_and_failures_of_the_function_are_retried() {
    let late = json!({"errorMessage": "Task timed out after 29.00 seconds", "errorType": "Sandbox.Timedout"});
    for (status, body, headers) in [
        (
            429,
            json!({"Type": "User", "message": "Rate Exceeded."}),
            &[("x-amzn-errortype", "TooManyRequestsException")],
        ),
        (
            409,
            json!({"Type": "User", "Message": "Pending"}),
            &[("x-amzn-errortype", "ResourceConflictException")],
        ),
        (502, json!({"Message": "not ready"}), &[("x-amzn-errortype", "ResourceNotReadyException")]),
        (200, late.clone(), &[("x-amz-function-error", "Unhandled")]),
    ] {
        let asked = AtomicU32::new(0);
        let stack = Stack::with_rule(MemoryTable::default(), move |_, pass| {
            let early = asked.fetch_add(1, Ordering::Relaxed) < 3;
            if early { with(status, &body, headers) } else { pass() }
        });
        assert_eq!(client(&stack).list().await.unwrap(), Vec::new(), "{status}");
        assert_eq!(stack.requests().len(), 4);
    }
    let stack = always(200, late, &[("x-amz-function-error", "Unhandled")]);
    let error = client(&stack).list().await.unwrap_err();
    let message = "the function failed: Sandbox.Timedout: Task timed out after 29.00 seconds".to_owned();
    assert_eq!(error, ClientError::Busy { message, tries: 4, lost: true });
}

#[tokio::test]
async fn a_submission_whose_function_failed_after_its_work_is_found() {
    let asked = AtomicU32::new(0);
    let stack = Stack::with_rule(MemoryTable::default(), move |_, pass| {
        let answer = pass();
        let failed = asked.fetch_add(1, Ordering::Relaxed) == 0;
        if failed {
            with(200, &json!({"errorMessage": "x"}), &[("x-amz-function-error", "Unhandled")])
        } else {
            answer
        }
    });
    assert!(client(&stack).create(&request("hb1")).await.unwrap().found);
}

#[tokio::test]
async fn a_missing_function_and_a_missing_permission_are_errors_with_their_fix() {
    let body =
        json!({"Type": "User", "Message": "Function not found: arn:aws:lambda:eu-west-1:1:function:tune"});
    let stack = always(404, body, &[("x-amzn-errortype", "ResourceNotFoundException")]);
    let error = client(&stack).list().await.unwrap_err();
    assert!(
        matches!(&error, ClientError::NoFunction(text) if text.starts_with("Function not found")),
        "{error:?}"
    );
    assert!(error.is_usage() && error.hint().unwrap().contains("InvokeFunctionName"));
    let body = json!({"Message": "User: arn:x is not authorized to perform: lambda:InvokeFunction on resource: tune"});
    let stack = always(403, body, &[("x-amzn-errortype", "AccessDeniedException")]);
    let error = client(&stack).list().await.unwrap_err();
    assert!(matches!(&error, ClientError::Denied { why: Denial::Invocation, .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("add-permission"));
    assert_eq!(stack.requests().len(), 1, "a denial is not retried");
    let body = json!({"message": "The security token included in the request is expired"});
    let error = client(&always(403, body, &[])).list().await.unwrap_err();
    assert!(matches!(&error, ClientError::Denied { why: Denial::Expired, .. }), "{error:?}");
}

#[tokio::test]
async fn another_function_is_a_foreign_endpoint() {
    for stack in [
        always(200, json!({"statusCode": 200, "body": "{}"}), &[]),
        always(200, Value::Null, &[]),
        always(200, json!({"batchItemFailures": []}), &[]),
        always(413, json!({"Message": "too large"}), &[]),
    ] {
        let error = client(&stack).list().await.unwrap_err();
        assert!(matches!(&error, ClientError::Foreign(_)), "{error:?}");
        assert!(error.hint().unwrap().contains("InvokeFunctionName"), "{error:?}");
    }
}
