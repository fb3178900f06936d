//! The signature of each request, recomputed from the received request (Signature Version 4).

use api_client::{ServiceError, Target};
use loopback::{Answer, Call, Request, Response, Service};
use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use stack_api::Stack;
use wire::events::http::HttpRequest;

use crate::world::{KEY_ID, SECRET, TOKEN, client, request, signing, unsigned};

#[tokio::test]
async fn the_signature_covers_path_parameters_and_body() {
    let stack = Stack::start(MemoryTable::default());
    let client = client(&stack);
    client.create(&request("hb1")).await.unwrap();
    client.list().await.unwrap();
    client.describe("hb1").await.unwrap();
    client.training_jobs("hb1").await.unwrap();
    client.decisions::<Value>("hb1", 3).await.unwrap();
    client.stop("hb1").await.unwrap();
    let requests = stack.requests();
    assert_eq!(requests.len(), 6);
    for request in &requests {
        assert!(is_signed(request, SECRET), "{request:?}");
        assert!(!is_signed(request, "another-secret"), "{request:?}");
        assert_eq!(request.header("x-amz-security-token"), Some(TOKEN));
        let credential = field(request, "Credential");
        assert!(credential.starts_with(&format!("{KEY_ID}/")), "{credential}");
        assert!(credential.ends_with("/eu-west-1/execute-api/aws4_request"), "{credential}");
        for name in ["host", "x-amz-date", "x-amz-security-token"] {
            assert!(field(request, "SignedHeaders").split(';').any(|signed| signed == name), "{name}");
        }
    }
    // A changed body invalidates the signature.
    let mut changed = requests[0].clone();
    changed.body.push(b' ');
    assert!(!is_signed(&changed, SECRET));
}

#[tokio::test]
async fn a_forwarded_request_is_signed_and_its_response_is_returned_unchanged() {
    let stack = Stack::start(MemoryTable::default());
    let client = signing(&stack);
    let create = HttpRequest {
        method: "POST".to_owned(),
        path: "/".to_owned(),
        headers: [
            ("content-type", "application/x-amz-json-1.1"),
            ("x-amz-target", "SageMaker.CreateHyperParameterTuningJob"),
            ("authorization", "another signature"),
            ("cookie", "a secret"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
        body: request("hb1").body().to_string().into_bytes(),
        ..HttpRequest::default()
    };
    let created = client.forward(&create).await.unwrap();
    assert_eq!(created.status, 200, "{created:?}");
    assert_eq!(created.headers["content-type"], "application/x-amz-json-1.1");
    assert_eq!(created.headers["x-amzn-requestid"], "request-1");
    let taken = client.forward(&create).await.unwrap();
    let body: Value = serde_json::from_slice(&taken.body).unwrap();
    assert_eq!((taken.status, &body["__type"]), (400, &"ResourceInUse".into()));
    let list = HttpRequest {
        method: "GET".to_owned(),
        path: "/tuning-jobs".to_owned(),
        query: [("NameContains".to_owned(), "hb".to_owned())].into(),
        ..HttpRequest::default()
    };
    let listed = client.forward(&list).await.unwrap();
    let body: Value = serde_json::from_slice(&listed.body).unwrap();
    assert_eq!(body["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobName"], "hb1");
    let missing = HttpRequest { path: "/tuning-jobs/none".to_owned(), ..list };
    let missing = client.forward(&missing).await.unwrap();
    assert_eq!((missing.status, &*missing.headers["x-amzn-errortype"]), (404, "ResourceNotFound"));
    let requests = stack.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert!(is_signed(request, SECRET), "{request:?}");
        assert_eq!(request.header("cookie"), None);
    }
    assert!(field(&requests[0], "SignedHeaders").contains("content-type;host;x-amz-date"), "{requests:?}");
    assert!(field(&requests[0], "SignedHeaders").contains("x-amz-target"), "{requests:?}");
    assert_eq!(requests[2].path, "/tuning-jobs?NameContains=hb");
}

#[tokio::test]
async fn only_a_forwarded_read_is_repeated_after_a_broken_connection() {
    let stack = Stack::with_rule(MemoryTable::default(), |_, _| Response::cut());
    let client = signing(&stack);
    let ask = |method: &str, path: &str| HttpRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        ..HttpRequest::default()
    };
    client.forward(&ask("POST", "/tuning-jobs/t/stop")).await.unwrap_err();
    assert_eq!(stack.requests().len(), 1);
    let error = client.forward(&ask("GET", "/tuning-jobs")).await.unwrap_err();
    assert!(error.to_string().contains("tried 4 times"), "{error}");
}

#[tokio::test]
async fn a_call_to_another_service_is_signed_for_that_service() {
    for (target, name, prefix) in
        [(Target::SageMaker, "sagemaker", "SageMaker"), (Target::Logs, "logs", "Logs_20140328")]
    {
        let rule = |call: &Call| match call.operation() {
            "Stop" => Answer::error(400, "ValidationException", "in status Completed"),
            _ => Answer::done(&json!({"a": 1})),
        };
        let (stack, service) = (Stack::start(MemoryTable::default()), Service::start(rule));
        let client = signing(&stack);
        let asked = client.service(target, Some(service.endpoint.parse().unwrap())).unwrap();
        assert_eq!(asked.read("Describe", &json!({"Name": "n"})).await.unwrap(), json!({"a": 1}));
        let refused = asked.once("Stop", &json!({})).await.unwrap_err();
        assert!(matches!(refused, ServiceError::Refused { status: 400, .. }), "{refused}");
        let calls = service.calls();
        assert_eq!(calls[0].target, format!("{prefix}.Describe"));
        assert_eq!((calls.len(), &calls[0].body), (2, &json!({"Name": "n"})));
        for request in service.requests() {
            assert!(is_signed(&request, SECRET), "{request:?}");
            let credential = field(&request, "Credential");
            assert!(credential.ends_with(&format!("/eu-west-1/{name}/aws4_request")), "{credential}");
            assert!(field(&request, "SignedHeaders").contains("x-amz-target"));
            assert_eq!(request.header("content-type"), Some("application/x-amz-json-1.1"));
        }
    }
}

#[tokio::test]
async fn a_call_of_the_query_protocol_is_a_signed_form_for_the_region_of_its_service() {
    for (target, scope, body) in [
        (Target::Iam, "us-east-1/iam", "Action=Describe&Version=2010-05-08&Names.member.1=a%20b"),
        (Target::Sts, "eu-west-1/sts", "Action=Describe&Version=2011-06-15&Names.member.1=a%20b"),
        (Target::Ec2, "eu-west-1/ec2", "Action=Describe&Version=2016-11-15&Names.1=a%20b"),
    ] {
        let service = Service::start(|_| Answer::text(200, "<DescribeResponse><A>1</A></DescribeResponse>"));
        let stack = Stack::start(MemoryTable::default());
        let client = signing(&stack);
        let asked = client.service(target, Some(service.endpoint.parse().unwrap())).unwrap();
        assert_eq!(asked.read("Describe", &json!({"Names": ["a b"]})).await.unwrap(), json!({"A": "1"}));
        let requests = service.requests();
        assert_eq!(String::from_utf8_lossy(&requests[0].body), body);
        assert!(is_signed(&requests[0], SECRET), "{requests:?}");
        assert!(
            field(&requests[0], "Credential").ends_with(&format!("/{scope}/aws4_request")),
            "{requests:?}"
        );
    }
}

#[tokio::test]
async fn a_path_of_a_rest_service_is_read_with_a_signature() {
    let service = Service::start(|_| Answer::done(&json!({"a": 1})));
    let stack = Stack::start(MemoryTable::default());
    let client = signing(&stack);
    let asked = client.service(Target::Lambda, Some(service.endpoint.parse().unwrap())).unwrap();
    assert_eq!(asked.get("/2016-08-19/account-settings").await.unwrap(), json!({"a": 1}));
    assert!(matches!(asked.read("GetAccountSettings", &json!({})).await, Err(ServiceError::Failed(_))));
    let requests = service.requests();
    assert_eq!((requests.len(), requests[0].method.as_str()), (1, "GET"));
    assert_eq!(requests[0].path, "/2016-08-19/account-settings");
    assert!(is_signed(&requests[0], SECRET), "{requests:?}");
    assert!(field(&requests[0], "Credential").ends_with("/eu-west-1/lambda/aws4_request"), "{requests:?}");
}

#[tokio::test]
async fn only_reads_of_a_service_are_retried() {
    let rule = |_: &Call| Answer::error(503, "ServiceUnavailable", "not now");
    let (stack, service) = (Stack::start(MemoryTable::default()), Service::start(rule));
    let client = signing(&stack);
    let asked = client.service(Target::SageMaker, Some(service.endpoint.parse().unwrap())).unwrap();
    asked.once("CreateTrainingJob", &json!({})).await.unwrap_err();
    assert_eq!(service.calls().len(), 1);
    asked.read("DescribeTrainingJob", &json!({})).await.unwrap_err();
    assert_eq!(service.calls().len(), 5);
}

#[tokio::test]
async fn a_client_without_credentials_sends_no_signature() {
    let stack = Stack::start(MemoryTable::default());
    let client = unsigned(&stack.endpoint);
    client.list().await.unwrap();
    assert_eq!(stack.requests()[0].header("authorization"), None);
}

pub(crate) fn field<'a>(request: &'a Request, name: &str) -> &'a str {
    let given = request.header("authorization").unwrap();
    let (_, rest) = given.split_once(&format!("{name}=")).unwrap();
    rest.split(", ").next().unwrap()
}

pub(crate) fn is_signed(request: &Request, secret: &str) -> bool {
    let signed = field(request, "SignedHeaders");
    let header = |name: &str| format!("{name}:{}\n", request.header(name).unwrap());
    let headers: String = signed.split(';').map(header).collect();
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let mut pairs: Vec<&str> = query.split('&').collect();
    pairs.sort_unstable();
    let (query, body) = (pairs.join("&"), hex(&hash(&request.body)));
    // Every service except S3 escapes an escaped path again.
    let path = path.replace('%', "%25");
    let canonical = format!("{}\n{path}\n{query}\n{headers}\n{signed}\n{body}", request.method);
    let (_, scope) = field(request, "Credential").split_once('/').unwrap();
    let date = request.header("x-amz-date").unwrap();
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", hex(&hash(canonical.as_bytes())));
    let first = format!("AWS4{secret}").into_bytes();
    let key = scope.split('/').fold(first, |key, part| keyed_hash(&key, part.as_bytes()));
    field(request, "Signature") == hex(&keyed_hash(&key, text.as_bytes()))
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

/// HMAC with SHA-256.
fn keyed_hash(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let padded = |with: u8| block.iter().map(|byte| byte ^ with).collect::<Vec<u8>>();
    let inner = hash(&[padded(0x36), bytes.to_vec()].concat());
    hash(&[padded(0x5c), inner].concat())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
