//! Tests of HTTP requests and responses of API Gateway.

use serde_json::{Value, json};
use wire::events::EventError;
use wire::events::http::{HttpRequest, HttpResponse, MAX_BODY_BYTES};

use crate::samples::sample;

fn event() -> Value {
    sample("aws.apigateway/http-request.aws-json-create.json")
}

#[test]
fn the_sample_request_is_parsed() {
    let request = HttpRequest::parse(&event()).unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/"));
    assert_eq!(request.header("x-amz-target"), Some("SageMaker.CreateHyperParameterTuningJob"));
    assert_eq!(request.caller.as_deref(), Some("arn:aws:sts::111122223333:assumed-role/ds/me"));
    assert_eq!(request.request_id, "JKJaXmPLvHcESHA=");
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["HyperParameterTuningJobName"], "hb1");
    assert_eq!(HttpRequest::parse(&request.encode()), Ok(request));
}

#[test]
fn a_body_can_be_text_or_absent() {
    let mut event = event();
    event["body"] = "{\"é\":1}".into();
    event["isBase64Encoded"] = false.into();
    assert_eq!(HttpRequest::parse(&event).unwrap().body, "{\"é\":1}".as_bytes());
    event["body"] = Value::Null;
    event["isBase64Encoded"] = Value::Null;
    assert_eq!(HttpRequest::parse(&event).unwrap().body, b"");
}

#[test]
fn header_names_become_lower_case_and_the_query_is_kept() {
    let mut event = event();
    event["headers"] = json!({"X-Amz-Target": "a", "n": 1});
    event["queryStringParameters"] = json!({"State": "A,B"});
    let request = HttpRequest::parse(&event).unwrap();
    assert_eq!(request.header("x-amz-target"), Some("a"));
    assert_eq!(request.headers.len(), 1);
    assert_eq!(request.query["State"], "A,B");
}

#[test]
fn a_named_stage_is_removed_from_the_path() {
    let path = |stage: &str, path: &str| {
        let mut event = event();
        event["requestContext"]["stage"] = stage.into();
        event["rawPath"] = path.into();
        HttpRequest::parse(&event).unwrap().path
    };
    assert_eq!(path("$default", "/prod/x"), "/prod/x");
    assert_eq!(path("prod", "/prod/x"), "/x");
    assert_eq!(path("prod", "/prod"), "/");
    assert_eq!(path("prod", "/prod/"), "/");
    assert_eq!(path("prod", "/production"), "/production");
}

#[test]
fn a_request_without_iam_has_no_caller() {
    let mut event = event();
    event["requestContext"]["authorizer"] = Value::Null;
    assert_eq!(HttpRequest::parse(&event).unwrap().caller, None);
}

#[test]
fn invalid_requests_are_unreadable() {
    for (pointer, value) in [
        ("/version", json!("1.0")),
        ("/version", Value::Null),
        ("/requestContext", Value::Null),
        ("/requestContext/http", Value::Null),
        ("/requestContext/http/method", json!(1)),
        ("/body", json!("%")),
        ("/body", json!({})),
        ("/isBase64Encoded", json!("true")),
        ("/rawPath", Value::Null),
    ] {
        let mut event = event();
        *event.pointer_mut(pointer).unwrap() = value;
        assert!(matches!(HttpRequest::parse(&event), Err(EventError::Unreadable(_))), "{pointer}");
    }
}

#[test]
fn a_body_above_the_limit_is_too_large() {
    for (flag, length) in [(false, MAX_BODY_BYTES + 1), (true, MAX_BODY_BYTES / 3 * 4 + 8)] {
        let mut event = event();
        event["body"] = "A".repeat(length).into();
        event["isBase64Encoded"] = flag.into();
        assert!(matches!(HttpRequest::parse(&event), Err(EventError::TooLarge { .. })));
    }
}

#[test]
fn a_response_body_is_encoded_as_text_or_base64() {
    let sample = sample("aws.apigateway/http-response.created.json");
    let body: Value = serde_json::from_str(sample["body"].as_str().unwrap()).unwrap();
    let response = HttpResponse::amz_json(200, &body).header("X-Amzn-RequestId", "JKJaXmPLvHcESHA=");
    let written = response.encode();
    for member in ["statusCode", "headers", "isBase64Encoded"] {
        assert_eq!(written[member], sample[member], "{member}");
    }
    assert_eq!(HttpResponse::parse(&written), Ok(response));
    let binary = HttpResponse::new(500, vec![0xff, 0]);
    assert_eq!(binary.encode()["isBase64Encoded"], true);
    assert_eq!(HttpResponse::parse(&binary.encode()), Ok(binary));
}

#[test]
fn the_default_stage_is_never_removed_from_a_path() {
    for path in ["/$default", "/$default/x", "//x"] {
        let mut event = event();
        event["rawPath"] = path.into();
        for stage in ["$default", ""] {
            event["requestContext"]["stage"] = stage.into();
            let request = HttpRequest::parse(&event).unwrap();
            assert_eq!(request.path, path);
            assert_eq!(HttpRequest::parse(&request.encode()), Ok(request));
        }
    }
}
