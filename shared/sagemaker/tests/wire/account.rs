//! An account with emulated services on loopback.

use aws::{SdkConfig, limited};
use aws_sdk_sagemaker::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use loopback::Service;
use sagemaker::SageMaker;
use use_cases::ports::training::TrainingJobsError;

/// The secret key that signs requests.
pub(crate) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// SageMaker's message for a missing job.
pub(crate) const ABSENT: &str = "Requested resource not found.";

/// Returns the client of a training service and logs that `service` emulates.
pub(crate) fn at(service: &Service) -> SageMaker {
    at_endpoint(&service.endpoint)
}

/// Like [`at`], but with any URL.
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
