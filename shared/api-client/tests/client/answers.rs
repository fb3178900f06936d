//! Errors of the endpoint: throttling, denials, responses of other servers, failed connections.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

use api_client::{ClientError, Denial, Unreached};
use loopback::Response;
use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use stack_api::{Stack, response};

use crate::world::{KEY_ID, SECRET, TOKEN, client, request, unsigned};

fn always(status: u16, body: Value) -> Stack {
    Stack::with_rule(MemoryTable::default(), move |_, _| response(status, &body))
}

#[tokio::test]
async fn a_transient_error_is_retried() {
    for status in [429, 500, 502, 503, 504] {
        let asked = AtomicU32::new(0);
        let stack = Stack::with_rule(MemoryTable::default(), move |_, pass| {
            let early = asked.fetch_add(1, Ordering::Relaxed) < 3;
            if early { response(status, &json!({"message": "not now"})) } else { pass() }
        });
        assert_eq!(client(&stack).list().await.unwrap(), Vec::new(), "{status}");
        assert_eq!(stack.requests().len(), 4);
    }
}

#[tokio::test]
async fn a_stop_with_a_lost_response_is_retried() {
    let asked = AtomicU32::new(0);
    let stack = Stack::with_rule(MemoryTable::default(), move |request, pass| {
        let answer = pass();
        let lost = request.path.ends_with("/stop") && asked.fetch_add(1, Ordering::Relaxed) == 0;
        if lost { response(504, &json!({"message": "late"})) } else { answer }
    });
    let client = client(&stack);
    client.create(&request("hb1")).await.unwrap();
    client.stop("hb1").await.unwrap();
    assert_eq!(client.describe("hb1").await.unwrap().base.status, "Stopping");
}

#[tokio::test]
async fn a_busy_endpoint_is_an_error_after_four_attempts() {
    let stack = always(429, json!({"message": "Too Many Requests"}));
    let error = client(&stack).list().await.unwrap_err();
    assert_eq!(error, ClientError::Busy { message: "Too Many Requests".to_owned(), tries: 4, lost: false });
    assert_eq!(stack.requests().len(), 4);
    assert!(!error.is_usage());
}

#[tokio::test]
async fn a_denial_has_its_reason_and_the_end_of_the_key_and_no_secret() {
    for (message, why) in [
        ("Forbidden", Denial::Permission),
        ("User: arn:x is not authorized to perform: execute-api:Invoke", Denial::Permission),
        ("The security token included in the request is expired", Denial::Expired),
        ("The security token included in the request is invalid.", Denial::Signature),
        ("The request signature we calculated does not match the signature you provided.", Denial::Signature),
        ("Signature expired: 20261121T100000Z is now earlier than 20261121T100500Z", Denial::Clock),
        ("Signature not yet current: 20261121T100000Z is still later than", Denial::Clock),
    ] {
        let stack = always(403, json!({"message": message}));
        let error = client(&stack).list().await.unwrap_err();
        assert!(matches!(&error, ClientError::Denied { why: found, .. } if *found == why), "{error:?}");
        let text = format!("{error} {error:?} {}", error.hint().unwrap());
        assert!(error.to_string().contains("the access key that ends in WXYZ"), "{text}");
        for secret in [SECRET, TOKEN, KEY_ID] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(stack.requests().len(), 1, "a denial is not retried");
    }
    let hint =
        client(&always(403, json!({"message": "Forbidden"}))).list().await.unwrap_err().hint().unwrap();
    assert!(hint.contains("execute-api:Invoke") && hint.contains("TuningUsersPolicyArn"), "{hint}");
    let stack = always(403, json!({"message": "Missing Authentication Token"}));
    let unsigned = unsigned(&stack.endpoint);
    let error = unsigned.list().await.unwrap_err();
    assert!(matches!(&error, ClientError::Denied { why: Denial::Unsigned, identity: None, .. }), "{error:?}");
}

#[tokio::test]
async fn regression_a_refusal_of_the_api_itself_is_not_about_the_signature() {
    let body = json!({"__type": "AccessDeniedException", "message": "this caller may not raise MaxCostUsd"});
    let error = client(&always(403, body)).list().await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(refusal) if refusal.status == 403), "{error:?}");
    assert_eq!(error.to_string(), "this caller may not raise MaxCostUsd");
    assert!(error.is_usage() && error.hint().is_none());
}

#[tokio::test]
async fn a_foreign_response_is_an_error() {
    let page = |_: &loopback::Request, _: stack_api::Pass<'_>| Response {
        status: 200,
        headers: Vec::new(),
        body: b"<html>Welcome\x1b[2J</html>".to_vec(),
    };
    for stack in [
        always(404, json!({"message": "Not Found"})),
        always(400, Value::Null),
        always(200, json!({"Something": 1})),
        always(302, json!({})),
        Stack::with_rule(MemoryTable::default(), page),
    ] {
        let error = client(&stack).list().await.unwrap_err();
        assert!(matches!(&error, ClientError::Foreign(_)), "{error:?}");
        assert!(!error.to_string().contains('\x1b') && !error.is_usage());
    }
}

#[tokio::test]
async fn a_refused_connection_and_a_failed_tls_handshake_are_different_errors() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = unsigned(&format!("http://{free}"));
    let error = unreachable.list().await.unwrap_err();
    let ClientError::Unreachable { how, tries, lost, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*how, *tries, *lost), (Unreached::Connection, 4, false));

    let plain = Stack::start(MemoryTable::default());
    let address = plain.endpoint.replace("http://", "https://");
    let error = unsigned(&address).list().await.unwrap_err();
    let ClientError::Unreachable { how, lost, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*how, *lost), (Unreached::Tls, false), "{error}");
}
