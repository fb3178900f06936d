//! Describes one training job: as `SageMaker` does, from the request that created it and the recorded facts, and with
//! its curve. Never calls the training service.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tuning::log::fact::{JobKey, JobPhase};
use tuning::log::ruling::Launch;
use tuning::trial::summary::JobSummary;
use tuning::trial::summary::full_summary;
use tuning::unit::time::Time;
use wire::describe::{CurvePoint, TrainingJobDetail, TrainingJobSummary, failure_reason, finite, seconds_of};
use wire::names::{decision, job_tags};
use wire::request::TrainingJob;
use wire::stored;

use super::Place;
use super::jobs::{shown, state_of};
use crate::ports::table::Table;
use crate::store::{Loaded, Store, StoreError};

/// A training job and its tuning.
#[derive(Debug)]
pub struct Found {
    loaded: Loaded,
    job: JobSummary,
}

/// Returns training job `key` of tuning `id`. `None` if there is none.
pub async fn training_job<T: Table>(
    store: &Store<T>,
    id: &str,
    key: JobKey,
) -> Result<Option<Found>, StoreError> {
    // The state is read first, as in `summaries`.
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let row = store.table.get(&stored::job_key(id, key)).await?;
    let job = match row.as_ref().map(stored::job).transpose()? {
        Some(job) => Some(job),
        None => loaded
            .state
            .jobs()
            .find(|(live, _, _)| *live == key)
            .map(|(key, trial, job)| full_summary(&loaded.tuning.definition, key, trial, job)),
    };
    Ok(job.map(|job| Found { loaded, job }))
}

impl Found {
    /// Returns the entry of the job, with its curve.
    pub fn detail(&self, place: &Place) -> TrainingJobDetail {
        let point = |(epoch, value): &(tuning::unit::epochs::Epochs, Option<f64>)| CurvePoint {
            resource: epoch.0,
            value: value.and_then(finite),
        };
        TrainingJobDetail {
            job: shown(&self.loaded.tuning, place, &self.job),
            curve: self.job.curve.iter().map(point).collect(),
        }
    }

    /// Returns the tags of the job.
    pub fn tags(&self, stack: &str) -> BTreeMap<String, String> {
        let user = self.loaded.tuning.request.job_tags();
        let mut tags: BTreeMap<_, _> = user.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        tags.extend(self.own_tags(stack));
        tags
    }

    fn own_tags(&self, stack: &str) -> BTreeMap<String, String> {
        let JobSummary { job, configuration, limits, .. } = &self.job;
        job_tags(stack, &self.loaded.tuning.id, decision(*job, configuration, *limits, self.launch()))
    }

    fn launch(&self) -> Launch {
        let JobSummary { level, on_demand, instances, .. } = self.job;
        Launch { resource: level, on_demand, instances, refit: false }
    }

    /// Returns the response of `DescribeTrainingJob`.
    pub fn described(&self, place: &Place, stack: &str) -> Value {
        let (tuning, job) = (&self.loaded.tuning, &self.job);
        let entry = shown(tuning, place, job);
        let max_resource = tuning.definition.max_resource();
        let mut view = tuning.request.create_training_job(&TrainingJob {
            name: &entry.name,
            tuning_id: &tuning.id,
            trial: job.job.trial.0,
            configuration: &job.configuration.0,
            limits: job.limits,
            tags: &self.own_tags(stack),
            resource: tuning
                .request_of(job.job.trial)
                .resource_hyperparameter()
                .zip(job.level.or(max_resource)),
            launch: self.launch(),
        });
        let Some(members) = view.as_object_mut() else { return view };
        members.remove("Tags");
        if let Some(Value::Object(output)) = members.get_mut("OutputDataConfig") {
            output.entry("KmsKeyId").or_insert_with(|| json!(""));
        }
        for flag in
            ["EnableNetworkIsolation", "EnableInterContainerTrafficEncryption", "EnableManagedSpotTraining"]
        {
            members.entry(flag).or_insert(json!(false));
        }
        let modified = job.ended.or(job.started).unwrap_or(job.ordered);
        let artifacts = place.model(tuning.request_of(job.job.trial), &entry.name);
        let metrics = final_metrics(&entry, modified);
        let trained = job.started.zip(job.ended).map(|(from, to)| (to - from).seconds_rounded_up());
        let optional = [
            ("TrainingStartTime", job.started.map(|time| json!(seconds_of(time)))),
            ("TrainingEndTime", job.ended.map(|time| json!(seconds_of(time)))),
            ("FailureReason", job.message.as_deref().map(|reason| json!(failure_reason(reason)))),
            ("BillableTimeInSeconds", job.billable_seconds.map(|seconds| json!(seconds))),
            ("TrainingTimeInSeconds", trained.map(|seconds| json!(seconds))),
            ("FinalMetricDataList", (!metrics.is_empty()).then(|| json!(metrics))),
        ];
        let always = [
            ("TrainingJobArn", json!(entry.arn)),
            ("TuningJobArn", json!(place.tuning_arn(&tuning.definition.name))),
            ("TrainingJobStatus", json!(entry.status)),
            ("SecondaryStatus", json!(secondary_status(job, &entry.status))),
            ("SecondaryStatusTransitions", self.transitions(&entry.status)),
            ("ModelArtifacts", json!({"S3ModelArtifacts": artifacts})),
            ("CreationTime", json!(seconds_of(job.ordered))),
            ("LastModifiedTime", json!(seconds_of(modified))),
        ];
        let optional = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        members.extend(always.into_iter().chain(optional).map(|(name, value)| (name.to_owned(), value)));
        view
    }

    /// Returns the transitions whose times are recorded.
    fn transitions(&self, status: &str) -> Value {
        let job = &self.job;
        let mut known: Vec<(String, Time)> = vec![("Starting".to_owned(), job.ordered)];
        known.extend(job.started.map(|time| ("Training".to_owned(), time)));
        known.extend(job.ended.map(|time| (secondary_status(job, status), time)));
        let entry = |(n, (status, from)): (usize, &(String, Time))| {
            let mut entry =
                json!({"Status": status, "StartTime": seconds_of(*from), "StatusMessage": status});
            if let Some((_, to)) = known.get(n + 1) {
                entry["EndTime"] = json!(seconds_of(*to));
            }
            entry
        };
        known.iter().enumerate().map(entry).collect()
    }
}

/// Returns the objective as the controller read it, and the last values of the other metrics.
fn final_metrics(entry: &TrainingJobSummary, at: Time) -> Vec<Value> {
    let shown =
        |name: &str, value: f64| json!({"MetricName": name, "Value": value, "Timestamp": seconds_of(at)});
    let objective = entry.final_objective.as_ref().map(|last| shown(&last.metric_name, last.value));
    let others = entry.controller.metrics.iter().map(|(name, value)| shown(name, *value));
    objective.into_iter().chain(others).collect()
}

/// Returns `SecondaryStatus`, a value of SageMaker's enumeration.
fn secondary_status(job: &JobSummary, status: &str) -> String {
    let state = state_of(job);
    match (status, job.phase) {
        ("Stopped", _) if matches!(state, "MaxRuntime") => "MaxRuntimeExceeded",
        ("Stopped", _) if matches!(state, "MaxWait") => "MaxWaitTimeExceeded",
        ("Completed" | "Failed" | "Stopped" | "Stopping", _) => status,
        (_, JobPhase::Downloading) => "Downloading",
        (_, JobPhase::Training) => "Training",
        (_, JobPhase::Interrupted) => "Interrupted",
        (_, JobPhase::Uploading) => "Uploading",
        (_, JobPhase::Starting | JobPhase::Stopping | JobPhase::Other | JobPhase::Ended(_)) => "Starting",
    }
    .to_owned()
}
