//! Tests of direct invocations.

use serde_json::{Value, json};
use wire::events::EventError;
use wire::events::direct::{CALLER, encode, encode_result, parse, parse_result};
use wire::events::http::{HttpRequest, HttpResponse, MAX_BODY_BYTES};

#[test]
fn a_request_is_parsed_with_a_body_as_object_or_text() {
    let body = json!({"HyperParameterTuningJobName": "hb1", "n": 0.1});
    for given in [body.clone(), json!(body.to_string())] {
        let request =
            parse(&json!({"method": "POST", "path": "/tuning-jobs", "query": null, "body": given})).unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/tuning-jobs"));
        assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), body);
        assert_eq!(parse(&encode(&request)).unwrap(), request);
    }
}

#[test]
fn a_parameter_may_be_a_number_and_a_null_is_absent() {
    let query = json!({"MaxResults": 5, "NameContains": "hb", "NextToken": null});
    let request = parse(&json!({"method": "GET", "path": "/tuning-jobs", "query": query})).unwrap();
    let pairs: Vec<(&str, &str)> =
        request.query.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(pairs, [("MaxResults", "5"), ("NameContains", "hb")]);
    assert_eq!(request.body, b"");
    assert_eq!(parse(&encode(&request)).unwrap(), request);
}

#[test]
fn claims_about_the_caller_and_headers_are_ignored() {
    let plain = json!({"method": "GET", "path": "/tuning-jobs"});
    let mut claims = plain.clone();
    let owner = "arn:aws:sts::111122223333:assumed-role/platform/olga";
    claims["requestContext"] =
        json!({"authorizer": {"iam": {"userArn": owner}}, "http": {"method": "DELETE"}});
    claims["headers"] = json!({"x-amz-target": "SageMaker.StopHyperParameterTuningJob"});
    claims["caller"] = json!(owner);
    let expected = HttpRequest {
        method: "GET".to_owned(),
        path: "/tuning-jobs".to_owned(),
        caller: Some(CALLER.to_owned()),
        ..HttpRequest::default()
    };
    assert_eq!(parse(&plain).unwrap(), expected);
    assert_eq!(parse(&claims).unwrap(), expected);
}

#[test]
fn an_invalid_payload_is_unreadable() {
    for (event, part) in [
        (json!([]), "invalid payload: expected an object such as"),
        (json!("text"), "invalid payload"),
        (json!({"path": "/tuning-jobs"}), "invalid method: expected a string"),
        (json!({"method": "GET"}), "invalid path: expected a string"),
        (json!({"method": "GET", "path": "tuning-jobs"}), "invalid path: expected a path such as"),
        (json!({"method": "GET", "path": "/tuning-jobs?MaxResults=1"}), "with its parameters in query"),
        (json!({"method": "GET", "path": "/x", "query": "MaxResults=1"}), "invalid query"),
        (json!({"method": "GET", "path": "/x", "query": {"a": [1]}}), "invalid query"),
        (
            json!({"method": "POST", "path": "/x", "body": [1]}),
            "invalid body: expected an object or its JSON text",
        ),
        (json!({"version": "2.0", "rawPath": "/x", "requestContext": {"http": {"method": "GET"}}}), "path"),
    ] {
        let error = parse(&event).unwrap_err();
        assert!(matches!(error, EventError::Unreadable(_)), "{event}");
        assert!(error.to_string().contains(part), "{event}: {error}");
    }
}

#[test]
fn a_body_above_the_limit_is_unreadable() {
    // A number of 4 bytes is written with 18.
    let grown = json!({"n": vec![1e15; MAX_BODY_BYTES / 18 + 1]});
    for body in [json!("x".repeat(MAX_BODY_BYTES + 1)), grown] {
        let error = parse(&json!({"method": "POST", "path": "/tuning-jobs", "body": body})).unwrap_err();
        assert_eq!(error.to_string(), "invalid body: expected at most 6 MB of JSON");
    }
}

#[test]
fn a_result_has_the_body_as_json() {
    let result =
        encode_result(&HttpResponse::new(201, r#"{"a":1}"#).header("content-type", "application/json"));
    assert_eq!(result, json!({"status": 201, "body": {"a": 1}}));
    assert_eq!(parse_result(&result).unwrap(), HttpResponse::new(201, r#"{"a":1}"#));
    for result in [
        json!({}),
        json!({"status": 200}),
        json!({"status": 42, "body": {}}),
        json!({"statusCode": 200, "body": "{}"}),
    ] {
        assert!(parse_result(&result).is_err(), "{result}");
    }
}
