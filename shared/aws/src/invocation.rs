//! Asynchronous invocations of a Lambda function.
//!
//! Lambda queues the payload and runs the function at least once. Must never wait for the function's result.

use std::time::Duration;

use crate::{Failure, SdkConfig, at_most};
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::Builder;
use aws_sdk_lambda::config::timeout::TimeoutConfig;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use serde_json::Value;
use use_cases::ports::{HandOver, HandOverError};

/// Maximum attempts to send a payload.
const TRIES: u32 = 2;
/// Time-out of a call with its retries. Where the endpoint cannot be reached, as in a network without a route to it,
/// every batch loses this time.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Time-out of one attempt.
const TRY_TIMEOUT: Duration = Duration::from_millis(1_400);

/// One function, invoked asynchronously.
#[derive(Debug, Clone)]
pub struct Function {
    client: Client,
    name: String,
}

impl Function {
    /// Creates a client of the function `name`. `AWS_ENDPOINT_URL_LAMBDA` overrides the endpoint.
    pub fn new(account: &SdkConfig, name: String) -> Self {
        let timeouts = TimeoutConfig::builder()
            .operation_timeout(TIMEOUT)
            .operation_attempt_timeout(TRY_TIMEOUT)
            .build();
        let config = Builder::from(account).retry_config(at_most(TRIES)).timeout_config(timeouts).build();
        Self { client: Client::from_conf(config), name }
    }
}

impl HandOver for Function {
    async fn hand_over(&self, payload: &Value) -> Result<(), HandOverError> {
        let sent = self
            .client
            .invoke()
            .function_name(&self.name)
            .invocation_type(InvocationType::Event)
            .payload(Blob::new(payload.to_string()))
            .send()
            .await;
        sent.map(|_| ()).map_err(|error| {
            HandOverError(match Failure::of(&error) {
                Failure::Unavailable(reason) => reason,
                Failure::Throttled => "Lambda is throttling".to_owned(),
                Failure::Refused { code, message } => format!("{code}: {message}"),
            })
        })
    }
}
