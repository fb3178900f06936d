//! Training jobs: created, stopped, their instances let go, looked at.
//!
//! A job's request is sent as the JSON it is: what SageMaker knows and this version of its SDK does not is never lost. Must
//! never take a job for absent whose absence SageMaker has not told.

use std::collections::BTreeMap;

use aws_sdk_sagemaker::types::ResourceConfigForUpdate;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_types::body::SdkBody;
use serde_json::Value;
use service::ports::training::{Description, TrainingJobs, TrainingJobsError};

use crate::{SageMaker, describe, errors};

/// Pages of tags read at most: a job has 50 tags at most, and they fit one page.
const TAG_PAGES_MAX: usize = 4;

impl TrainingJobs for SageMaker {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        let body = request.to_string();
        // The SDK's request has no member; it has the operation, and gets its body before it is signed.
        let call = self.writes.create_training_job().customize();
        let sent = call.mutate_request(move |http| carry(http, &body)).send().await;
        sent.map(drop).map_err(|error| errors::create(&error))
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        let sent = self.writes.stop_training_job().training_job_name(name).send().await;
        match sent.map(drop).map_err(|error| errors::stop(&error)) {
            // Where a role may stop only what has our tag, a job that is not there is as forbidden as another's: it has no
            // tag either. Whether it is there must be known, or a start would never be called off.
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
        call.send().await.map(drop).map_err(|error| errors::of_job(&error))
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let sent = self.reads.describe_training_job().training_job_name(name).send().await;
        describe::description(name, &sent.map_err(|error| errors::of_job(&error))?)
    }

    /// The job is described first. It tells the job's ARN; and it is told to be absent only there: of an ARN that nothing
    /// has, `ListTags` might as well show no tags, and the job would be taken for somebody else's.
    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        let sent = self.reads.describe_training_job().training_job_name(name).send().await;
        let job = sent.map_err(|error| errors::of_job(&error))?;
        let arn = describe::arn(&job)?;
        let mut tags = BTreeMap::new();
        let mut next = None;
        for _ in 0..TAG_PAGES_MAX {
            let sent = self.reads.list_tags().resource_arn(arn).set_next_token(next).send().await;
            let page = sent.map_err(|error| errors::of_job(&error))?;
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
        Err(TrainingJobsError::Unavailable(format!("the tags of {name} have no end")))
    }
}

/// Puts `body` in place of the request's own.
fn carry(http: &mut HttpRequest, body: &str) {
    http.headers_mut().insert("content-length", body.len().to_string());
    *http.body_mut() = SdkBody::from(body);
}
