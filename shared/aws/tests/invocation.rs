//! The real SDK against an emulated Lambda endpoint on loopback.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::net::TcpListener;
use std::sync::mpsc::channel;

use aws::invocation::Function;
use aws::{SdkConfig, limited};
use aws_sdk_lambda::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use loopback::{Request, Response, serve};
use serde_json::{Value, json};
use use_cases::ports::{HandOver, HandOverError};

/// Hands a payload over to an endpoint that answers with these statuses in turn. Returns the result and the requests.
async fn hand_over(statuses: &'static [u16]) -> (Result<(), HandOverError>, Vec<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = channel();
    let answered = std::sync::atomic::AtomicUsize::new(0);
    serve(listener, move |request: &Request| {
        let n = answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        sender.send(request.clone()).unwrap();
        let (name, value) = ("x-amzn-errortype".to_owned(), "AccessDeniedException".to_owned());
        let status = statuses[n.min(statuses.len() - 1)];
        let headers = if status == 403 { vec![(name, value)] } else { Vec::new() };
        Response { status, headers, body: if status == 202 { Vec::new() } else { b"{}".to_vec() } }
    });
    let credentials = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
    let account = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(endpoint)
        .build();
    let function = Function::new(&limited(account), "prod-actuator".to_owned());
    let result = function.hand_over(&json!({"a": [1]})).await;
    (result, received.try_iter().collect())
}

#[tokio::test]
async fn a_payload_is_sent_as_an_asynchronous_invocation() {
    let (result, requests) = hand_over(&[202]).await;
    result.unwrap();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path, "/2015-03-31/functions/prod-actuator/invocations");
    assert_eq!(requests[0].header("x-amz-invocation-type"), Some("Event"));
    assert_eq!(serde_json::from_slice::<Value>(&requests[0].body).unwrap(), json!({"a": [1]}));
}

#[tokio::test]
async fn a_transient_error_is_retried_once_and_a_rejection_is_not() {
    let (result, requests) = hand_over(&[500, 202]).await;
    assert_eq!((result, requests.len()), (Ok(()), 2));
    let (result, requests) = hand_over(&[500]).await;
    assert!(result.unwrap_err().to_string().starts_with("no other invocation took the starts: status 500"));
    assert_eq!(requests.len(), 2);
    let (result, requests) = hand_over(&[403]).await;
    assert!(result.unwrap_err().to_string().contains("AccessDeniedException"));
    assert_eq!(requests.len(), 1);
}
