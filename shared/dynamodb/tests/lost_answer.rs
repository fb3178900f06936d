//! A put whose first answer is lost, and which the SDK sends again by itself.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail with their test")]

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
use service::ports::table::{Condition, Table, TableError, Write};
use wire::item::{Item, Key};

/// One row of a table, as DynamoDB shows it.
#[derive(Debug, Clone, Default)]
struct OneRow(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    row: Value,
    operations: Vec<String>,
    /// Answers to puts that were done and are lost.
    lost: u32,
    /// Whether somebody else changes the row before the put is sent again.
    overtaken: bool,
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
                if self.overtaken {
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

/// What putting revision 2 in place of revision 1 gives, and what the table was asked for it.
async fn claim(lost: u32, overtaken: bool, stored: &str) -> (Result<(), TableError>, Vec<String>) {
    let row = json!({"pk": {"S": "A#t"}, "sk": {"S": "stop"}, "revision": {"N": stored}});
    let service = OneRow(Arc::new(Mutex::new(Inner { row, lost, overtaken, ..Inner::default() })));
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

/// The second try found the first one's row, and took it for somebody else's: a claim that nobody held for three minutes.
#[tokio::test]
async fn regression_a_put_that_was_done_although_its_answer_was_lost_is_no_conflict() {
    let (claimed, operations) = claim(1, false, "1").await;
    assert_eq!(claimed, Ok(()));
    assert_eq!(operations, ["PutItem", "PutItem", "GetItem"]);
}

#[tokio::test]
async fn what_another_has_written_stays_a_conflict() {
    let conflict = Err(TableError::Conflict(vec![0]));
    let (claimed, operations) = claim(1, true, "1").await;
    assert_eq!((claimed, operations.len()), (conflict.clone(), 3));
    // Sent once, nothing of ours can be there: it is not looked for.
    assert_eq!(claim(0, false, "7").await, (conflict, vec!["PutItem".to_owned()]));
}
