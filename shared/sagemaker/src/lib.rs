//! Training jobs and their logs in an AWS account: the training ports of `service`, on SageMaker and CloudWatch Logs.
//!
//! Assumes the limits of time that `aws_connection` sets. What changes something is sent once, whatever becomes of it: the
//! use cases try again by themselves, and must know when a call was made. Reads are tried twice. Must never be named by
//! what does not call SageMaker: its SDK takes minutes to build.

mod describe;
mod errors;
mod listing;
mod logs;
mod training;

use aws_connection::{SdkConfig, at_most, tried_again};
use aws_sdk_sagemaker::Client;
use aws_sdk_sagemaker::config::Builder;

/// How often a read is tried at most.
const READ_TRIES: u32 = 2;

/// The training service and the stored logs of an account.
#[derive(Debug, Clone)]
pub struct SageMaker {
    /// For what only reads.
    reads: Client,
    /// For what changes something.
    writes: Client,
    logs: aws_sdk_cloudwatchlogs::Client,
}

impl SageMaker {
    /// Of `account`. `AWS_ENDPOINT_URL_SAGEMAKER` and `AWS_ENDPOINT_URL_CLOUDWATCH_LOGS` lead elsewhere.
    pub fn new(account: &SdkConfig) -> Self {
        let client = |tries| Builder::from(account).retry_config(at_most(tries));
        let logs = aws_sdk_cloudwatchlogs::config::Builder::from(account).retry_config(at_most(READ_TRIES));
        Self {
            reads: Client::from_conf(client(READ_TRIES).timeout_config(tried_again()).build()),
            writes: Client::from_conf(client(1).build()),
            logs: aws_sdk_cloudwatchlogs::Client::from_conf(logs.build()),
        }
    }
}
