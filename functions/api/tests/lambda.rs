//! The api program as Lambda runs it: API Gateway's payloads in, its responses out, DynamoDB and the price list behind.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lambda_host::Stage;
use loopback::{Answer, Service};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_api");

/// boto3's request as API Gateway forwards it, with the body in base64.
fn sample() -> Value {
    serde_json::from_str(include_str!("../../../events/aws.apigateway/http-request.aws-json-create.json"))
        .unwrap()
}

fn asked(method: &str, path: &str) -> Value {
    let mut event = sample();
    event["requestContext"]["http"] = json!({"method": method, "path": path, "protocol": "HTTP/1.1"});
    event["rawPath"] = json!(path);
    event["body"] = Value::Null;
    event["isBase64Encoded"] = json!(false);
    event
}

async fn answer(stage: &Stage, event: &Value) -> (u64, Value) {
    let answer = stage.invoke(PROGRAM, event).await.unwrap();
    (answer["statusCode"].as_u64().unwrap(), serde_json::from_str(answer["body"].as_str().unwrap()).unwrap())
}

fn prices() -> Service {
    Service::start(|call| {
        let usage = &call.body["Filters"][0]["Value"];
        let unit = if usage.as_str().unwrap().contains("Volume") { "GB-Mo" } else { "Hrs" };
        let dimension = json!({"unit": unit, "pricePerUnit": {"USD": "0.4610000000"}});
        let row = json!({
            "product": {"attributes": {"usagetype": usage}},
            "terms": {"OnDemand": {"A": {"priceDimensions": {"A.B": dimension}}}},
        });
        Answer::done(&json!({"PriceList": [row.to_string()]}))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tuning_job_in_aws_json_is_stored_with_listed_prices_and_described_over_rest() {
    let mut stage = Stage::open().await;
    let prices = prices();
    stage.set_variable("AWS_ENDPOINT_URL_PRICING", &prices.endpoint);
    let mut event = sample();
    let mut body: Value =
        serde_json::from_slice(&STANDARD.decode(event["body"].as_str().unwrap()).unwrap()).unwrap();
    body["Controller"] = json!({"MaxCostUsd": 500});
    event["body"] = json!(STANDARD.encode(body.to_string()));
    let (status, created) = answer(&stage, &event).await;
    let arn = "arn:aws:sagemaker:us-east-1:000000000000:hyper-parameter-tuning-job/hb1";
    assert_eq!((status, created), (200, json!({"HyperParameterTuningJobArn": arn})));
    assert_eq!(prices.calls().len(), 2, "an instance and a volume");
    let kept = stage.rows("PRICE", "").await;
    assert_eq!(kept.iter().map(|row| row.key.sk.as_str()).collect::<Vec<_>>(), ["ml.m5.2xlarge", "volume"]);

    let (status, shown) = answer(&stage, &asked("GET", "/tuning-jobs/hb1")).await;
    assert_eq!((status, &shown["HyperParameterTuningJobStatus"]), (200, &json!("InProgress")));
    assert_eq!(shown["Controller"]["CapUsd"], 500);
    assert_eq!(answer(&stage, &asked("POST", "/tuning-jobs/hb1/stop")).await, (200, json!({})));
    let (_, shown) = answer(&stage, &asked("GET", "/tuning-jobs/hb1")).await;
    assert_eq!(shown["HyperParameterTuningJobStatus"], "Stopping");
}

/// Asserts that a call through API Gateway succeeds, and that its only line has the operation and the tuning's ID.
async fn assert_logged(stage: &Stage, event: &Value, operation: &str, id: &str) {
    let invoked = stage.watch(PROGRAM, event).await;
    assert_eq!(invoked.answer.as_ref().unwrap()["statusCode"], 200, "{operation}: {:?}", invoked.answer);
    let lines = invoked.lines();
    let [line] = lines.as_slice() else { panic!("{operation}: {lines:?}") };
    assert_eq!((&line["action"], &line["tuning"]), (&json!(operation), &json!(id)));
}

/// Nothing named who had stopped a training job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regression_a_stop_of_a_training_job_and_new_tags_are_logged() {
    let stage = Stage::open().await;
    let id = stage.submit().await;
    stage.decide().await;
    let stop = asked("POST", &format!("/tuning-jobs/hb1/training-jobs/{id}-0-0-1/stop"));
    assert_logged(&stage, &stop, "StopTrainingJob", &id).await;

    let mut tags = sample();
    tags["headers"]["x-amz-target"] = json!("SageMaker.AddTags");
    let (_, shown) = answer(&stage, &asked("GET", "/tuning-jobs/hb1")).await;
    let body = json!({
        "ResourceArn": shown["HyperParameterTuningJobArn"],
        "Tags": [{"Key": "team", "Value": "ads"}],
    });
    tags["body"] = json!(STANDARD.encode(body.to_string()));
    assert_logged(&stage, &tags, "AddTags", &id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_outside_the_guardrails_is_rejected() {
    let mut stage = Stage::open().await;
    stage.set_variable("REQUIRE_COST_CAP", "true");
    let (status, body) = answer(&stage, &sample()).await;
    assert_eq!((status, &body["__type"]), (400, &json!("ValidationException")));
    assert!(body["message"].as_str().unwrap().contains("MaxCostUsd"), "{body}");
    assert!(stage.rows("INDEX", "").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_is_not_from_api_gateway_gets_a_response() {
    let stage = Stage::open().await;
    let (status, body) = answer(&stage, &json!({"version": "1.0"})).await;
    assert_eq!((status, &body["__type"]), (400, &json!("SerializationException")));
}

/// Anyone who may invoke the function could claim to be an owner of the stack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regression_a_payload_without_the_secret_of_the_gateway_is_refused() {
    let stage = Stage::open().await;
    let header = "x-hyperband-gateway";
    let secret = sample()["headers"][header].as_str().unwrap().to_owned();
    for forged in [Value::Null, json!(""), json!(secret.to_lowercase()), json!([secret])] {
        let mut event = sample();
        event["headers"][header] = forged.clone();
        event["queryStringParameters"] = json!({header: secret});
        let invoked = stage.watch(PROGRAM, &event).await;
        let answer = invoked.answer.as_ref().unwrap();
        assert_eq!(answer["statusCode"], 403, "{forged}: {answer}");
        assert!(answer["body"].as_str().unwrap().contains("ApiUrl"), "{answer}");
        assert!(stage.rows("INDEX", "").await.is_empty(), "{forged}");
        let [line] = invoked.lines()[..] else { panic!("{:?}", invoked.log) };
        assert_eq!(
            (&line["errorType"], &line["error"]),
            (&json!("RequestRefused"), &json!("AccessDeniedException"))
        );
        assert_eq!(invoked.metrics()["RequestsRefused"], 1);
    }
    // The secret is in no response and in no line, also of an accepted request.
    let invoked = stage.watch(PROGRAM, &sample()).await;
    assert_eq!(invoked.answer.as_ref().unwrap()["statusCode"], 200, "{:?}", invoked.answer);
    assert!(!format!("{invoked:?}").contains(&secret), "{invoked:?}");
}

/// Returns a stage whose function serves direct calls, in a stack where only the principal of the sample is an owner.
async fn direct_stage() -> Stage {
    let mut stage = Stage::open().await;
    stage.set_variable("CALLS_FROM", "Invoke");
    stage.set_variable("OWNER_PRINCIPALS", "arn:aws:iam::111122223333:role/ds");
    stage.set_variable("ALLOWED_PRINCIPALS", "arn:aws:iam::111122223333:role/ds");
    stage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_call_is_answered_with_a_status_and_a_json_body_and_logged() {
    let mut stage = direct_stage().await;
    let prices = prices();
    stage.set_variable("AWS_ENDPOINT_URL_PRICING", &prices.endpoint);
    let body: Value =
        serde_json::from_slice(&STANDARD.decode(sample()["body"].as_str().unwrap()).unwrap()).unwrap();
    let call = json!({"method": "POST", "path": "/tuning-jobs", "body": body});
    let created = stage.invoke(PROGRAM, &call).await.unwrap();
    let arn = "arn:aws:sagemaker:us-east-1:000000000000:hyper-parameter-tuning-job/hb1";
    assert_eq!(created, json!({"status": 201, "body": {"HyperParameterTuningJobArn": arn}}));
    let described = stage.watch(PROGRAM, &json!({"method": "GET", "path": "/tuning-jobs/hb1"})).await;
    let answer = described.answer.as_ref().unwrap();
    assert_eq!(
        (&answer["status"], &answer["body"]["Controller"]["Submitter"]),
        (&json!(200), &json!("lambda:invoke"))
    );
    // Direct calls have no access log.
    assert_eq!(described.lines()[0]["action"], "DescribeHyperParameterTuningJob");
    let again = stage.invoke(PROGRAM, &call).await.unwrap();
    assert_eq!((&again["status"], &again["body"]["Existed"]), (&json!(200), &json!(true)));
    let invalid =
        stage.invoke(PROGRAM, &json!({"method": "POST", "path": "/tuning-jobs", "body": [1]})).await.unwrap();
    assert_eq!(
        (&invalid["status"], &invalid["body"]["__type"]),
        (&json!(400), &json!("SerializationException"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_caller_cannot_claim_to_be_another_principal() {
    let stage = direct_stage().await;
    // The whole payload of API Gateway for an owner.
    let refused = stage.invoke(PROGRAM, &sample()).await.unwrap();
    assert_eq!(
        (&refused["status"], &refused["body"]["__type"]),
        (&json!(400), &json!("SerializationException"))
    );
    let body: Value =
        serde_json::from_slice(&STANDARD.decode(sample()["body"].as_str().unwrap()).unwrap()).unwrap();
    let mut call = json!({"method": "POST", "path": "/tuning-jobs", "body": body});
    call["body"]["Controller"] = json!({"InstancePricesUsdPerHour": {"ml.m5.2xlarge": 1}, "MaxCostUsd": 500});
    call["requestContext"] = sample()["requestContext"].clone();
    let mut stage = stage;
    stage.set_variable("PRICES_IN_REQUESTS", "Any");
    assert_eq!(stage.invoke(PROGRAM, &call).await.unwrap()["status"], 201);
    call["method"] = json!("PATCH");
    call["path"] = json!("/tuning-jobs/hb1");
    call["body"] = json!({"MaxCostUsd": 501});
    let refused = stage.invoke(PROGRAM, &call).await.unwrap();
    assert_eq!(
        (&refused["status"], &refused["body"]["__type"]),
        (&json!(403), &json!("AccessDeniedException"))
    );
    assert_eq!(
        stage.invoke(PROGRAM, &json!({"method": "GET", "path": "/tuning-jobs/hb1"})).await.unwrap()["body"]["Controller"]
            ["Submitter"],
        "lambda:invoke"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_event_has_its_documented_result() {
    lambda_host::samples::check("api", env!("CARGO_BIN_EXE_api")).await;
}
