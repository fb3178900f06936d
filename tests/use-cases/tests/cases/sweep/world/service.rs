//! The training service and its logs.

use std::collections::BTreeMap;

use serde_json::Value;
use tuning::unit::time::Time;
use use_cases::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
    WarmPool,
};
use use_cases::sweep::CallKind;

use super::{Inner, Job, MINUTE, World};
use crate::support::{description, not_found};

/// Jobs per page of the listing, as in SageMaker.
const PAGE_JOBS: usize = 100;

impl TrainingJobs for World {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        let name = request["TrainingJobName"].as_str().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let effect = |inner: &mut Inner| {
            if inner.jobs.contains_key(name) {
                return Err(TrainingJobsError::NameTaken(name.to_owned()));
            }
            let tags = request["Tags"].as_array().into_iter().flatten();
            let tags = tags.map(|tag| (text(&tag["Key"]), text(&tag["Value"]))).collect();
            let job = Job::begun(inner.now, tags);
            inner.jobs.insert(name.to_owned(), job);
            Ok(())
        };
        self.called(CallKind::Create, name, effect).await
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        let effect = |inner: &mut Inner| {
            let job = inner.jobs.get_mut(name).ok_or_else(|| not_found(name))?;
            if job.status != "InProgress" {
                return Err(TrainingJobsError::AlreadyEnded(name.to_owned()));
            }
            if !job.uploads {
                job.status = "Stopped";
            }
            Ok(())
        };
        self.called(CallKind::Stop, name, effect).await
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        let effect = |inner: &mut Inner| {
            let job = inner.jobs.get_mut(name).ok_or_else(|| not_found(name))?;
            assert_eq!(job.kept, Some(true), "only kept instances are released");
            job.kept = Some(false);
            Ok(())
        };
        self.called(CallKind::Stop, name, effect).await
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let effect = |inner: &mut Inner| {
            let job = inner.jobs.get(name).ok_or_else(|| not_found(name))?;
            if job.is_unreadable {
                return Err(TrainingJobsError::Throttled);
            }
            let ended = (job.status != "InProgress").then_some(job.created + MINUTE);
            let running = if job.trains { "Training" } else { "Starting" };
            Ok(Description {
                secondary_status: ended.map_or(running, |_| job.status).to_owned(),
                started: (ended.is_some() || job.trains).then_some(Time(job.created)),
                ended: ended.map(Time),
                modified: Time(ended.unwrap_or(job.created)),
                billable_seconds: ended.map(|_| 60),
                warm_pool: job.kept.map(|kept| WarmPool {
                    status: if kept { "Available" } else { "Terminated" }.to_owned(),
                    retained_seconds: (!kept).then_some(7),
                }),
                ..description(name, job.status, job.created)
            })
        };
        self.called(CallKind::Describe, name, effect).await
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        let effect = |inner: &mut Inner| {
            inner.jobs.get(name).map(|job| job.tags.clone()).ok_or_else(|| not_found(name))
        };
        self.called(CallKind::Tags, name, effect).await
    }
}

impl TrainingJobListing for World {
    async fn in_progress(&self, from: Time, page: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        let skip: usize = page.map_or(0, |page| page.parse().unwrap());
        let effect = |inner: &mut Inner| {
            let running =
                inner.jobs.iter().filter(|(_, job)| job.status == "InProgress" && job.created >= from.0);
            let mut running: Vec<_> = running.map(|(name, job)| (job.created, name)).collect();
            running.sort_unstable();
            let more = running.len() > skip + PAGE_JOBS;
            let items = running.into_iter().skip(skip).take(PAGE_JOBS);
            let items =
                items.map(|(created, name)| Listed { name: name.clone(), created: Time(created) }).collect();
            Ok(Paged { items, next: more.then(|| (skip + PAGE_JOBS).to_string()) })
        };
        self.called(CallKind::List, "", effect).await
    }
}

impl JobLogs for World {
    async fn read(
        &self,
        name: &str,
        _host: &str,
        from: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        let n: usize = page.map_or(0, |page| page.parse().unwrap());
        let effect = |inner: &mut Inner| {
            let Some(job) = inner.jobs.get(name) else { return Ok(Paged { items: Vec::new(), next: None }) };
            let lines = job.lines.iter().filter(|(at, _)| n == 0 && *at >= from.0);
            let line = |(at, text): &(i64, String)| LogLine {
                stream: format!("{name}/algo-1-1"),
                id: format!("{at:020}"),
                timestamp: Time(*at),
                message: text.clone(),
            };
            Ok(Paged {
                items: lines.map(line).collect(),
                next: (n + 1 < job.log_pages).then(|| (n + 1).to_string()),
            })
        };
        self.called(CallKind::Log, name, effect).await
    }
}
