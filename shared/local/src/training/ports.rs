//! Implements the ports of the use cases for the local training service.
//!
//! Errors and messages are SageMaker's. This module only validates and delegates.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde_json::Value;
use tokio::task::spawn_blocking;
use use_cases::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};

use super::channel::{self, Source};
use super::clock;
use super::describe;
use super::job::{Job, Shared};
use super::log_reader::{self, ReadError};
use super::pool;
use super::record::{Record, StopCause};
use super::region::Region;
use super::request::{Invalid, JobRequest};
use super::store;
use super::{Entry, TrainingService};
use tuning::unit::time::Time;

/// The maximum number of jobs on a page of the listing.
const LIST_PAGE_MAX: usize = 100;

/// Returns the error for a job that does not exist.
pub(super) fn not_found() -> TrainingJobsError {
    TrainingJobsError::NotFound("Requested resource not found.".to_owned())
}

pub(super) fn refused(message: String) -> TrainingJobsError {
    TrainingJobsError::Refused { code: "ValidationException".to_owned(), message }
}

pub(super) fn shutting_down() -> TrainingJobsError {
    TrainingJobsError::Unavailable("the service is shutting down".to_owned())
}

fn no_pool(name: &str) -> TrainingJobsError {
    refused(format!("Unable to update training job {name}: it has no available warm pool"))
}

fn already_ended(status: &str) -> TrainingJobsError {
    let text = format!("The request was rejected because the training job is in status {status}.");
    TrainingJobsError::AlreadyEnded(text)
}

impl TrainingService {
    /// Creates a job as [`TrainingJobs::create`] does, in the Region of its client. The job keeps this Region, so that
    /// all its ARNs and events equal the ARN of the creation. `None` means the Region of the service.
    pub async fn create_in(&self, region: Option<Region>, request: &Value) -> Result<(), TrainingJobsError> {
        let parsed = JobRequest::parse(request).map_err(|Invalid(message)| refused(message))?;
        let shared = &self.inner.shared;
        let mut jobs = self.inner.jobs.lock().await;
        if let Some(entry) = jobs.get(&parsed.name) {
            let owner = match entry {
                Entry::Job(job) => shared.owner_of(job),
                Entry::Damaged(_) => shared.owner.clone(),
            };
            return Err(name_taken(&owner.arn(&parsed.name)));
        }
        if *shared.closing.borrow() {
            return Err(shutting_down());
        }
        check_quota(shared, &parsed, jobs.values())?;
        let pool_owner = oldest_warm_pool(&jobs, &parsed, request).await;
        let record = Record::new(request.clone(), region, parsed.spot, clock::now());
        write_new_job(shared, &parsed, record.clone()).await?;
        if let Some(owner) = pool_owner {
            // After the job exists. If this write fails, the job gets new instances and the warm pool stays available.
            let _ = owner.release_instances(shared, Some(&parsed.name)).await;
        }
        let job = Job::new(parsed, record);
        jobs.insert(job.request.name.clone(), Entry::Job(Arc::clone(&job)));
        drop(jobs);
        job.announce(shared).await;
        self.drive(job).await;
        Ok(())
    }

    /// Returns the job `name`. `None` if its record is damaged.
    async fn readable(&self, name: &str) -> Result<Option<Arc<Job>>, TrainingJobsError> {
        match self.inner.jobs.lock().await.get(name) {
            None => Err(not_found()),
            Some(Entry::Damaged(_)) => Ok(None),
            Some(Entry::Job(job)) => Ok(Some(Arc::clone(job))),
        }
    }
}

impl TrainingJobs for TrainingService {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        self.create_in(None, request).await
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        let job = self.readable(name).await?.ok_or_else(|| already_ended("Failed"))?;
        let stopped = job.stop(&self.inner.shared, StopCause::User).await;
        stopped.map_err(|status| already_ended(status.name()))
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        let shared = &self.inner.shared;
        let job = self.readable(name).await?.ok_or_else(|| no_pool(name))?;
        if *shared.closing.borrow() {
            return Err(shutting_down());
        }
        match job.release_instances(shared, None).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(no_pool(name)),
            Err(error) => Err(TrainingJobsError::Unavailable(error.to_string())),
        }
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let job = match self.inner.jobs.lock().await.get(name) {
            None => return Err(not_found()),
            Some(Entry::Damaged(job)) => return Ok(describe::damaged(job)),
            Some(Entry::Job(job)) => Arc::clone(job),
        };
        let mut described = job.read(|record| describe::description(record, name, clock::now())).await;
        let metrics = self.final_metrics(&job).await;
        described.final_metrics = metrics.into_iter().map(|last| (last.name, last.value)).collect();
        Ok(described)
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        let Some(job) = self.readable(name).await? else { return Ok(BTreeMap::new()) };
        Ok(job.read(|record| describe::tags(record, &job.request)).await)
    }
}

impl TrainingJobListing for TrainingService {
    async fn in_progress(&self, from: Time, page: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        let after =
            page.map(|token| parse_page(token).ok_or_else(|| refused("Invalid NextToken".to_owned())));
        let after = after.transpose()?;
        let jobs = self.inner.jobs.lock().await;
        let mut found: Vec<(Time, &str)> = jobs
            .values()
            .filter_map(|entry| match entry {
                Entry::Job(job) if job.in_progress() && job.created >= from => {
                    Some((job.created, job.request.name.as_str()))
                }
                Entry::Job(_) | Entry::Damaged(_) => None,
            })
            .filter(|key| after.is_none_or(|after| *key > after))
            .collect();
        found.sort_unstable();
        let more = found.len() > LIST_PAGE_MAX;
        found.truncate(LIST_PAGE_MAX);
        let next = found.last().filter(|_| more).map(|(created, name)| format!("{created}:{name}"));
        let items =
            found.into_iter().map(|(created, name)| Listed { name: name.to_owned(), created }).collect();
        Ok(Paged { items, next })
    }
}

fn parse_page(token: &str) -> Option<(Time, &str)> {
    let (created, name) = token.split_once(':')?;
    Some((Time(created.parse().ok()?), name))
}

impl JobLogs for TrainingService {
    async fn read(
        &self,
        name: &str,
        host: &str,
        from: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        if !self.inner.jobs.lock().await.contains_key(name) {
            return Err(not_found());
        }
        let folder = self.inner.shared.layout.logs(name);
        let (name, host, page) = (name.to_owned(), host.to_owned(), page.map(ToOwned::to_owned));
        let reading =
            spawn_blocking(move || log_reader::read(&folder, &name, &host, from, page.as_deref())).await;
        match reading {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(ReadError::BadToken)) => Err(refused("Invalid NextToken".to_owned())),
            Ok(Err(ReadError::Io(error))) => Err(TrainingJobsError::Unavailable(error.to_string())),
            Err(error) => Err(TrainingJobsError::Unavailable(error.to_string())),
        }
    }
}

/// Returns the ended job with the oldest warm pool that a job of `request` can reuse.
async fn oldest_warm_pool(
    jobs: &BTreeMap<String, Entry>,
    parsed: &JobRequest,
    request: &Value,
) -> Option<Arc<Job>> {
    if parsed.spot {
        return None;
    }
    let now = clock::now();
    let mut oldest: Option<(Time, &Arc<Job>)> = None;
    for entry in jobs.values() {
        let Entry::Job(job) = entry else { continue };
        if job.request.keep_alive_seconds == 0 || !job.ended() {
            continue;
        }
        let available = job.read(|record| {
            record.pool_available_since(now).filter(|_| pool::can_reuse(&record.request, request))
        });
        if let Some(since) = available.await
            && oldest.is_none_or(|(oldest, _)| since < oldest)
        {
            oldest = Some((since, job));
        }
    }
    oldest.map(|(_, job)| Arc::clone(job))
}

fn name_taken(arn: &str) -> TrainingJobsError {
    TrainingJobsError::NameTaken(format!(
        "Training job names must be unique within an AWS account and region, and a training job with this name \
         already exists ({arn})"
    ))
}

fn check_quota<'a>(
    shared: &Shared,
    request: &JobRequest,
    jobs: impl Iterator<Item = &'a Entry>,
) -> Result<(), TrainingJobsError> {
    let kind = &request.instance_type;
    let Some(limit) = shared.config.quota.limit(kind) else { return Ok(()) };
    let used: u32 = jobs
        .map(|entry| match entry {
            Entry::Job(job) if !job.ended() && job.request.instance_type == *kind => {
                job.request.instance_count
            }
            Entry::Job(_) | Entry::Damaged(_) => 0,
        })
        .sum();
    let delta = request.instance_count;
    if used.saturating_add(delta) <= limit {
        return Ok(());
    }
    let usage = if request.spot { "spot training job usage" } else { "training job usage" };
    Err(TrainingJobsError::LimitExceeded(format!(
        "The account-level service limit '{kind} for {usage}' is {limit} Instances, with current utilization of \
         {used} Instances and a request delta of {delta} Instances. Please use AWS Service Quotas to request an \
         increase for this quota. If AWS Service Quotas is not available, contact AWS support to request an increase \
         for this quota."
    )))
}

/// Checks that the request's local data exists, and writes the job to disk.
async fn write_new_job(
    shared: &Shared,
    request: &JobRequest,
    record: Record,
) -> Result<(), TrainingJobsError> {
    let (layout, request) = (shared.layout.clone(), request.clone());
    let owner = shared.owner.in_region(record.region.as_ref());
    let written = spawn_blocking(move || {
        for channel in &request.channels {
            if let Source::Local(path) = channel::source(&channel.uri)
                && !path.exists()
            {
                return Err(refused(format!(
                    "No S3 objects found under S3 URL \"{}\" given in input data source. Please ensure that the \
                     bucket exists in the selected region ({}), that objects exist under that S3 prefix.",
                    channel.uri, owner.region
                )));
            }
        }
        store::create(&layout, &request.name, &record).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => name_taken(&owner.arn(&request.name)),
            _ => TrainingJobsError::Unavailable(format!(
                "cannot write {}: {error}",
                layout.record(&request.name).display()
            )),
        })
    });
    written.await.unwrap_or_else(|error| Err(TrainingJobsError::Unavailable(error.to_string())))
}
