//! The parts common to every operation: targets, bodies, errors and request IDs.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::world::{World, request, target, text};

#[tokio::test(flavor = "multi_thread")]
async fn ping_is_answered_and_other_paths_are_not_found() {
    let world = World::new().await;
    let answer = world.send("GET", "/ping", "", "").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
    assert_eq!(world.send("GET", "/", "", "").await.status, 404);
    assert_eq!(world.send("POST", "/other", &target("ListTrainingJobs"), "{}").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_a_unique_request_id_and_the_json_content_type() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for operation in ["ListTrainingJobs", "Unknown"] {
        let head = world.send("POST", "/", &target(operation), "{}").await.head;
        assert!(head.contains("content-type: application/x-amz-json-1.1"), "{head}");
        let id = head.lines().find_map(|line| line.strip_prefix("x-amzn-requestid: ")).unwrap();
        assert_eq!(id.len(), 36, "{id}");
        ids.push(id.to_owned());
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsupported_operation_is_unknown() {
    let world = World::new().await;
    let json = "Content-Type: application/x-amz-json-1.1\r\n";
    for headers in [
        format!("{json}X-Amz-Target: SageMaker.CreateEndpoint\r\n"),
        format!("{json}X-Amz-Target: DynamoDB_20120810.PutItem\r\n"),
        format!("{json}X-Amz-Target: SageMaker.\r\n"),
        json.to_owned(),
    ] {
        let answer = world.send("POST", "/", &headers, "{}").await;
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((answer.status, text(&body["__type"])), (400, "UnknownOperationException".to_owned()));
        assert!(!text(&body["message"]).is_empty());
    }
}

/// A stack asks for the parents of a tuning. After an unknown operation it refused the request for a wrong reason.
#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_tuning_jobs() {
    let world = World::new().await;
    for operation in ["DescribeHyperParameterTuningJob", "ListTrainingJobsForHyperParameterTuningJob"] {
        let body = r#"{"HyperParameterTuningJobName": "parent"}"#;
        let answer = world.send("POST", "/", &target(operation), body).await;
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((answer.status, text(&error["__type"])), (400, "ResourceNotFound".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_request_is_refused() {
    let world = World::new().await;
    let describe = target("DescribeTrainingJob");
    let not_json = "X-Amz-Target: SageMaker.ListTrainingJobs\r\nContent-Type: text/plain\r\n".to_owned();
    for (headers, body) in
        [(&describe, "{"), (&describe, "[]"), (&describe, r#"{"TrainingJobName": 5}"#), (&not_json, "{}")]
    {
        let answer = world.send("POST", "/", headers, body).await;
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(
            (answer.status, text(&error["__type"])),
            (400, "SerializationException".to_owned()),
            "{body}"
        );
    }
    let missing = world.refused("DescribeTrainingJob", &Value::Null).await;
    assert_eq!(missing.0, "SerializationException", "null is not an object");
    let missing = world.refused("DescribeTrainingJob", &json!({})).await;
    let message = "1 validation error detected: Value null at 'trainingJobName' failed to satisfy constraint: Member \
                   must not be null";
    assert_eq!(missing, ("ValidationException".to_owned(), message.to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_beyond_the_limit_is_refused_with_the_limit() {
    let world = World::new().await;
    let headers = target("CreateTrainingJob");
    let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2097153\r\n{headers}\r\n");
    let answer = world.exchange(head).await;
    assert_eq!(answer.status, 413);
    assert!(
        answer.body.contains("RequestEntityTooLargeException") && answer.body.contains("2097152"),
        "{}",
        answer.body
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_web_pages_are_denied() {
    let world = World::new().await;
    let headers = format!("{}Origin: https://example.com\r\n", target("ListTrainingJobs"));
    let answer = world.send("POST", "/", &headers, "{}").await;
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("AccessDeniedException"), "{}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn regression_a_job_whose_client_hangs_up_exists_fully_or_not_at_all() {
    let world = World::new().await;
    let jobs: Vec<Value> = (0..20).map(|number| request(&format!("job-{number}"), "ends")).collect();
    for job in &jobs {
        let (body, headers) = (job.to_string(), target("CreateTrainingJob"));
        let length = body.len();
        let text = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
        TcpStream::connect(world.address).unwrap().write_all(text.as_bytes()).unwrap();
    }
    for job in &jobs {
        let (status, answer) = world.call("CreateTrainingJob", job).await;
        assert!(status == 200 || answer["__type"] == "ResourceInUse", "{answer}");
        world.done("DescribeTrainingJob", &json!({"TrainingJobName": job["TrainingJobName"]})).await;
    }
}
