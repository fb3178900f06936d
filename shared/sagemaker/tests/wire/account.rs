//! An account whose services are played on loopback.

use aws_connection::{SdkConfig, limited};
use aws_sdk_sagemaker::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use loopback::Service;
use sagemaker::SageMaker;
use service::ports::training::TrainingJobsError;

/// The secret that requests are signed with.
pub(crate) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// What is said of a job that there is not.
pub(crate) const ABSENT: &str = "Requested resource not found.";

/// The training service and the logs, both played by `service`.
pub(crate) fn at(service: &Service) -> SageMaker {
    at_endpoint(&service.endpoint)
}

/// The same, at any address.
pub(crate) fn at_endpoint(endpoint: &str) -> SageMaker {
    let credentials = Credentials::new("AKIDEXAMPLE", SECRET, None, None, "test");
    let account = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(endpoint)
        .build();
    SageMaker::new(&limited(account))
}

pub(crate) fn not_found() -> TrainingJobsError {
    TrainingJobsError::NotFound(ABSENT.to_owned())
}
