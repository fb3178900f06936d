//! A put whose first answer is lost, so that the SDK retries it.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Config, Credentials, Region};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use dynamodb::DynamoTable;
use serde_json::{Value, json};
use use_cases::ports::table::{Condition, Table, TableError, Write};
use wire::item::{Item, Key};

/// Emulates a DynamoDB table with one row.
#[derive(Debug, Clone, Default)]
struct OneRow(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    row: Value,
    operations: Vec<String>,
    /// Number of successful puts whose answers are lost.
    lost: u32,
    /// Whether another writer changes the row before the retry.
    overwritten: bool,
}

impl Inner {
    fn answer(&mut self, operation: &str, body: &Value) -> (u16, Value) {
        self.operations.push(operation.to_owned());
        let failed = |status, code: &str| (status, json!({"__type": code, "message": "m"}));
        let revision = |row: &Value| row["revision"].clone();
        match operation {
            "GetItem" => (200, json!({"Item": self.row})),
            _ if revision(&self.row) != body["ExpressionAttributeValues"][":value"] => {
                failed(400, "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException")
            }
            _ => {
                self.row = body["Item"].clone();
                if self.overwritten {
                    self.row["revision"] = json!({"N": "9"});
                }
                match self.lost.checked_sub(1) {
                    Some(left) => {
                        self.lost = left;
                        failed(500, "InternalServerError")
                    }
                    None => (200, json!({})),
                }
            }
        }
    }
}

impl HttpClient for OneRow {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for OneRow {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
        let (status, answer) = self.0.lock().unwrap().answer(&operation, &body);
        let body = SdkBody::from(answer.to_string());
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status.try_into().unwrap(), body)))
    }
}

/// Replaces revision 1 by revision 2. Returns the result and the operations that the table received.
async fn claim(lost: u32, overwritten: bool, stored: &str) -> (Result<(), TableError>, Vec<String>) {
    let row = json!({"pk": {"S": "A#t"}, "sk": {"S": "stop"}, "revision": {"N": stored}});
    let service = OneRow(Arc::new(Mutex::new(Inner { row, lost, overwritten, ..Inner::default() })));
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("AKIDEXAMPLE", "secret", None, None, "test"))
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
        .http_client(service.clone())
        .build();
    let table = DynamoTable::new(Client::from_conf(config), "table");
    let row = Item::new(Key::new("A#t", "stop")).with("revision", 2).with("claimed_until", 180_000);
    let claimed = table.write(Write::Put(row, Condition::equals("revision", 1))).await;
    let operations = std::mem::take(&mut service.0.lock().unwrap().operations);
    (claimed, operations)
}

/// The retry mistook the row of the first attempt for another writer's. No process then held the claim for three
/// minutes.
#[tokio::test]
async fn regression_a_put_with_a_lost_answer_is_not_a_conflict() {
    let (claimed, operations) = claim(1, false, "1").await;
    assert_eq!(claimed, Ok(()));
    assert_eq!(operations, ["PutItem", "PutItem", "GetItem"]);
}

#[tokio::test]
async fn a_row_of_another_writer_is_a_conflict() {
    let conflict = Err(TableError::Conflict(vec![0]));
    let (claimed, operations) = claim(1, true, "1").await;
    assert_eq!((claimed, operations.len()), (conflict.clone(), 3));
    // Without a retry, the stored row cannot be ours, so it is not read.
    assert_eq!(claim(0, false, "7").await, (conflict, vec!["PutItem".to_owned()]));
}
