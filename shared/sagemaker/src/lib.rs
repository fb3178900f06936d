//! Training jobs and their logs in an AWS account: the training ports of `use_cases`, on SageMaker and CloudWatch Logs.
//!
//! Assumes the time-outs of crate `aws`. Calls that change something are sent once: the use cases retry by themselves,
//! and must know each call that was made. Reads are sent at most twice. Only crates that call SageMaker may depend on
//! this one, since SageMaker's SDK takes minutes to build.

pub mod actuator;
mod describe;
mod errors;
mod listing;
mod logs;
mod training;
mod tunings;

use aws::{SdkConfig, at_most, retried};
use aws_sdk_sagemaker::Client;
use aws_sdk_sagemaker::config::Builder;

/// Maximum attempts of a read.
const READ_TRIES: u32 = 2;

/// The training service and the stored logs of an account.
#[derive(Debug, Clone)]
pub struct SageMaker {
    /// For calls that only read.
    reads: Client,
    /// For calls that change something.
    writes: Client,
    logs: aws_sdk_cloudwatchlogs::Client,
}

impl SageMaker {
    /// Creates the clients. `AWS_ENDPOINT_URL_SAGEMAKER` and `AWS_ENDPOINT_URL_CLOUDWATCH_LOGS` override the endpoints.
    pub fn new(account: &SdkConfig) -> Self {
        let client = |tries| Builder::from(account).retry_config(at_most(tries));
        let logs = aws_sdk_cloudwatchlogs::config::Builder::from(account).retry_config(at_most(READ_TRIES));
        Self {
            reads: Client::from_conf(client(READ_TRIES).timeout_config(retried()).build()),
            writes: Client::from_conf(client(1).build()),
            logs: aws_sdk_cloudwatchlogs::Client::from_conf(logs.build()),
        }
    }
}
