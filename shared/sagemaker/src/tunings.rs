//! The tuning jobs that Automatic Model Tuning ran in the account.
//!
//! Their descriptions have the shape of a request, so they are kept as JSON instead of the SDK's types. The listing has the
//! final value of each training job, not its values by epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws::Failure;
use aws_sdk_sagemaker::config::interceptors::AfterDeserializationInterceptorContextRef;
use aws_sdk_sagemaker::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sagemaker::types::{
    HyperParameterTrainingJobSummary, SortOrder, TrainingJobSortByOptions, TrainingJobStatus,
};
use aws_smithy_runtime_api::box_error::BoxError;
use search::Configuration;
use serde_json::Value;
use use_cases::ports::{OtherTunings, OtherTuningsError, Read};

use crate::SageMaker;

/// Training jobs on a page, the service's maximum.
const PAGE_JOBS: i32 = 100;
const NOT_FOUND: &str = "ResourceNotFound";

impl OtherTunings for SageMaker {
    fn description<'a>(&'a self, name: &'a str) -> Read<'a, Option<Value>> {
        Box::pin(self.describe_tuning(name))
    }

    fn trials<'a>(
        &'a self,
        name: &'a str,
        maximize: bool,
        most: usize,
    ) -> Read<'a, Vec<(Configuration, f64)>> {
        let order = if maximize { SortOrder::Descending } else { SortOrder::Ascending };
        Box::pin(self.list_trials(name, order, most))
    }
}

impl SageMaker {
    /// Returns the service's answer as JSON; `None` if the tuning job does not exist.
    async fn describe_tuning(&self, name: &str) -> Result<Option<Value>, OtherTuningsError> {
        let answer = Answer::default();
        let call = self.reads.describe_hyper_parameter_tuning_job().hyper_parameter_tuning_job_name(name);
        match call.customize().interceptor(answer.clone()).send().await.map_err(|error| Failure::of(&error)) {
            Ok(_) => {
                let unreadable = || OtherTuningsError::Unavailable("the description is no JSON".to_owned());
                answer.json().map(Some).ok_or_else(unreadable)
            }
            Err(Failure::Refused { code, .. }) if code == NOT_FOUND => Ok(None),
            Err(failure) => Err(failed(failure)),
        }
    }

    /// Returns the tuned hyperparameters and the final values of the best training jobs. In this order, the service lists
    /// only jobs with a final value.
    async fn list_trials(
        &self,
        name: &str,
        order: SortOrder,
        most: usize,
    ) -> Result<Vec<(Configuration, f64)>, OtherTuningsError> {
        let (mut trials, mut jobs, mut token) = (Vec::new(), 0, None);
        loop {
            let call = self
                .reads
                .list_training_jobs_for_hyper_parameter_tuning_job()
                .hyper_parameter_tuning_job_name(name)
                .sort_by(TrainingJobSortByOptions::FinalObjectiveMetricValue)
                .sort_order(order.clone())
                .max_results(PAGE_JOBS)
                .set_next_token(token);
            let page = call.send().await.map_err(|error| failed(Failure::of(&error)))?;
            let summaries = page.training_job_summaries();
            trials.extend(summaries.iter().filter_map(trial));
            jobs += summaries.len();
            token = page.next_token().filter(|token| !token.is_empty()).map(str::to_owned);
            // An empty page would continue without end.
            if token.is_none() || summaries.is_empty() || jobs >= most {
                return Ok(trials);
            }
        }
    }
}

/// Returns the tuned hyperparameters of a training job and its final value, if it has one and did not fail.
fn trial(job: &HyperParameterTrainingJobSummary) -> Option<(Configuration, f64)> {
    if job.training_job_status() == Some(&TrainingJobStatus::Failed) {
        return None;
    }
    let value = f64::from(job.final_hyper_parameter_tuning_job_objective_metric()?.value()?);
    let tuned: BTreeMap<String, String> =
        job.tuned_hyper_parameters()?.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    value.is_finite().then_some((Configuration(tuned), value))
}

fn failed(failure: Failure) -> OtherTuningsError {
    match failure {
        Failure::Unavailable(reason) => OtherTuningsError::Unavailable(reason),
        Failure::Throttled => OtherTuningsError::Unavailable("SageMaker is throttling".to_owned()),
        Failure::Refused { code, message } => OtherTuningsError::Refused { code, message },
    }
}

/// The body of the last answer of one call.
#[derive(Debug, Clone, Default)]
struct Answer(Arc<Mutex<Option<Vec<u8>>>>);

impl Answer {
    fn json(&self) -> Option<Value> {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::from_slice(body.as_deref()?).ok()
    }
}

impl Intercept for Answer {
    fn name(&self) -> &'static str {
        "Answer"
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response().body().bytes().map(<[u8]>::to_vec);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = body;
        Ok(())
    }
}
