//! Training jobs: create, stop, describe, list tags, and release kept instances.
//!
//! A job's request is sent as stored JSON, so that fields unknown to this version of the SDK are kept. Must never
//! report a job as absent unless SageMaker does.

use std::collections::BTreeMap;

use aws_sdk_sagemaker::types::ResourceConfigForUpdate;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use use_cases::ports::training::{Description, TrainingJobs, TrainingJobsError};

use crate::{SageMaker, describe, errors};

/// Maximum pages of tags. A job has at most 50 tags, which fit one page.
const TAG_PAGES_MAX: usize = 4;

impl TrainingJobs for SageMaker {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        let body = request.to_string();
        // The SDK's request is empty except for the operation; the body is replaced before signing.
        let call = self.writes.create_training_job().customize();
        let sent = call.mutate_request(move |http| carry(http, &body)).send().await;
        sent.map(drop).map_err(|error| errors::of(errors::Call::Create, &error))
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        let sent = self.writes.stop_training_job().training_job_name(name).send().await;
        match sent.map(drop).map_err(|error| errors::of(errors::Call::Stop, &error)) {
            // A role that may stop only jobs with our tag gets AccessDenied for a missing job, too. A cancelled start
            // needs to know whether the job exists, so describe it.
            Err(TrainingJobsError::Refused { code, message }) if code == errors::ACCESS_DENIED => {
                match self.describe(name).await {
                    Err(absent @ TrainingJobsError::NotFound(_)) => Err(absent),
                    _ => Err(TrainingJobsError::Refused { code, message }),
                }
            }
            stopped => stopped,
        }
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        let not_kept = ResourceConfigForUpdate::builder().keep_alive_period_in_seconds(0).build();
        let call = self.writes.update_training_job().training_job_name(name).resource_config(not_kept);
        call.send().await.map(drop).map_err(|error| errors::of(errors::Call::OfJob, &error))
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let sent = self.reads.describe_training_job().training_job_name(name).send().await;
        describe::description(name, &sent.map_err(|error| errors::of(errors::Call::OfJob, &error))?)
    }

    /// Describes the job first, for its ARN. `ListTags` may also return an empty list for a missing job, which would
    /// make the job look foreign.
    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        let sent = self.reads.describe_training_job().training_job_name(name).send().await;
        let job = sent.map_err(|error| errors::of(errors::Call::OfJob, &error))?;
        let arn = describe::arn(&job)?;
        let mut tags = BTreeMap::new();
        let mut next = None;
        for _ in 0..TAG_PAGES_MAX {
            let sent = self.reads.list_tags().resource_arn(arn).set_next_token(next).send().await;
            let page = sent.map_err(|error| errors::of(errors::Call::OfJob, &error))?;
            for tag in page.tags() {
                if let (Some(key), Some(value)) = (tag.key(), tag.value()) {
                    tags.insert(key.to_owned(), value.to_owned());
                }
            }
            next = page.next_token().filter(|token| !token.is_empty()).map(str::to_owned);
            if next.is_none() {
                return Ok(tags);
            }
        }
        Err(TrainingJobsError::Unavailable(format!("the list of tags of {name} does not end")))
    }
}

fn carry(http: &mut HttpRequest, body: &str) {
    http.headers_mut().insert("content-length", body.len().to_string());
    *http.body_mut() = SdkBody::from(body);
}
