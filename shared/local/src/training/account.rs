//! Operations of the account's API beyond the ports: listing all jobs, ARNs, adding tags.
//!
//! Names and ARNs are untrusted. An ARN of another account or of a Region other than the job's matches no
//! job.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use use_cases::ports::training::TrainingJobsError;

use super::config::DamagedRecord;
use super::describe::Owner;
use super::job::Job;
use super::pool::Pool;
use super::record::{Record, Secondary, Status};
use super::request::{self, Invalid, TAGS_MAX};
use super::{Entry, TrainingService, clock, ports};
use tuning::unit::time::Time;

/// The summary of a job in a listing. Times are milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// `TrainingJobName`.
    pub name: String,
    /// `TrainingJobArn`.
    pub arn: String,
    /// `TrainingJobStatus`.
    pub status: &'static str,
    /// `SecondaryStatus`.
    pub secondary_status: &'static str,
    /// `CreationTime`.
    pub created: Time,
    /// `LastModifiedTime`.
    pub modified: Time,
    /// `TrainingEndTime`; `None` before the end.
    pub ended: Option<Time>,
    /// `WarmPoolStatus`; `None` without a warm pool.
    pub warm_pool: Option<Value>,
}

impl Summary {
    async fn of(owner: Owner, job: &Job, now: Time) -> Self {
        let summary = |record: &Record| Self {
            name: job.request.name.clone(),
            arn: owner.arn(&job.request.name),
            status: record.status.name(),
            secondary_status: record.secondary.name(),
            created: record.created,
            modified: record.modified,
            ended: record.ended,
            warm_pool: Pool::of(record, now).map(|pool| pool.json()),
        };
        job.read(summary).await
    }

    fn damaged(owner: &Owner, job: &DamagedRecord) -> Self {
        Self {
            name: job.name.clone(),
            arn: owner.arn(&job.name),
            status: Status::Failed.name(),
            secondary_status: Secondary::Failed.name(),
            created: job.modified,
            modified: job.modified,
            ended: None,
            warm_pool: None,
        }
    }

    /// Returns the entry of `ListTrainingJobs`, with times in seconds.
    pub fn json(&self) -> Value {
        let mut summary = json!({
            "TrainingJobName": self.name,
            "TrainingJobArn": self.arn,
            "TrainingJobStatus": self.status,
            "SecondaryStatus": self.secondary_status,
            "CreationTime": clock::seconds(self.created),
            "LastModifiedTime": clock::seconds(self.modified),
        });
        if let Some(ended) = self.ended {
            summary["TrainingEndTime"] = json!(clock::seconds(ended));
        }
        if let Some(pool) = &self.warm_pool {
            summary["WarmPoolStatus"] = pool.clone();
        }
        summary
    }
}

impl TrainingService {
    /// Returns all jobs, sorted by name.
    pub async fn summaries(&self) -> Vec<Summary> {
        let (shared, now) = (&self.inner.shared, clock::now());
        let mut found = Vec::new();
        for entry in self.inner.jobs.lock().await.values() {
            found.push(match entry {
                Entry::Job(job) => Summary::of(shared.owner_of(job), job, now).await,
                Entry::Damaged(job) => Summary::damaged(&shared.owner, job),
            });
        }
        found
    }

    /// Returns the ARN of the training job `name`, which need not exist.
    pub async fn arn(&self, name: &str) -> String {
        let shared = &self.inner.shared;
        match self.inner.jobs.lock().await.get(name) {
            Some(Entry::Job(job)) => shared.owner_of(job).arn(name),
            Some(Entry::Damaged(_)) | None => shared.owner.arn(name),
        }
    }

    /// Returns the job name in `arn`, or `None` if it is not the ARN of a training job of this account, or if that job
    /// is in another Region.
    pub async fn name_of<'a>(&self, arn: &'a str) -> Option<&'a str> {
        let (_, name) = arn.rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
        (self.arn(name).await == arn).then_some(name)
    }

    /// Adds the `Tags` of an `AddTags` request to the job, replacing tags with the same keys. Returns all tags.
    pub async fn add_tags(
        &self,
        name: &str,
        request: &Value,
    ) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        let tags = request::tags(request).map_err(|Invalid(message)| ports::refused(message))?;
        let shared = &self.inner.shared;
        let job = match self.inner.jobs.lock().await.get(name) {
            None => return Err(ports::not_found()),
            Some(Entry::Damaged(job)) => return Err(TrainingJobsError::Unavailable(job.to_string())),
            Some(Entry::Job(job)) => Arc::clone(job),
        };
        if *shared.closing.borrow() {
            return Err(ports::shutting_down());
        }
        match job.add_tags(shared, tags).await {
            Ok(true) => Ok(job.read(|record| super::describe::tags(record, &job.request)).await),
            Ok(false) => Err(ports::refused(format!("Too many tags: a resource has at most {TAGS_MAX}"))),
            Err(error) => Err(TrainingJobsError::Unavailable(error.to_string())),
        }
    }
}
