//! Training jobs as SageMaker runs them, and their logs.
//!
//! Requests are the service's own JSON (`CreateTrainingJob`), so that nothing a user sent is lost on the way. A job's
//! name is unique for ever. `create` and `stop` take effect once per job however often they are called. The contract suite
//! in `service::contract::training` says what every implementation must do.

use std::collections::BTreeMap;
use std::future::Future;

use thiserror::Error;

use super::Millis;

/// A training job as `DescribeTrainingJob` shows it; it may lag behind events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Training job name.
    pub name: String,
    /// `TrainingJobStatus`: `InProgress`, `Completed`, `Failed`, `Stopping`, `Stopped`.
    pub status: String,
    /// `SecondaryStatus`; unknown values must not break the reader.
    pub secondary_status: String,
    /// When it was created.
    pub created: Millis,
    /// `TrainingStartTime`: start of billing; absent when no instance ever ran.
    pub started: Option<Millis>,
    /// `TrainingEndTime`: end of billing.
    pub ended: Option<Millis>,
    /// `LastModifiedTime`.
    pub modified: Millis,
    /// `BillableTimeInSeconds`; only at the end.
    pub billable_seconds: Option<u64>,
    /// `FailureReason`.
    pub failure_reason: Option<String>,
    /// How many times it was interrupted (entries `Interrupted` in `SecondaryStatusTransitions`).
    pub interruptions: u32,
    /// `WarmPoolStatus`, if its instances are or were kept after its end.
    pub warm_pool: Option<WarmPool>,
}

/// The instances kept after a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmPool {
    /// `Status`: `InUse` (the job itself runs on them), `Available`, `Reused` (another job took them), `Terminated`.
    pub status: String,
    /// `ResourceRetainedBillableTimeInSeconds`: for how long they were kept, and are billed; known once they are kept no
    /// more.
    pub retained_seconds: Option<u64>,
}

/// One line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Log stream, `<job>/algo-<n>-<digits>`.
    pub stream: String,
    /// Event id, unique in the stream and sortable within one timestamp.
    pub id: String,
    /// Milliseconds since the epoch.
    pub timestamp: Millis,
    /// The text.
    pub message: String,
}

/// A page of something and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paged<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Token of the next page, `None` at the end.
    pub next: Option<String>,
}

/// The training service.
pub trait TrainingJobs: Send + Sync {
    /// Starts the job of a `CreateTrainingJob` request (JSON object with `TrainingJobName`). Also used to learn that
    /// a job of that name exists ([`TrainingJobsError::NameTaken`]).
    fn create(
        &self,
        request: &serde_json::Value,
    ) -> impl Future<Output = Result<(), TrainingJobsError>> + Send;
    /// Asks the job to stop; it stops later. On an ended job: [`TrainingJobsError::AlreadyEnded`].
    fn stop(&self, name: &str) -> impl Future<Output = Result<(), TrainingJobsError>> + Send;
    /// Lets the instances that are kept after an ended job go (`UpdateTrainingJob` with a `KeepAlivePeriodInSeconds` of
    /// 0); they may be kept for a while yet.
    fn release(&self, name: &str) -> impl Future<Output = Result<(), TrainingJobsError>> + Send;
    /// The job's present state.
    fn describe(&self, name: &str) -> impl Future<Output = Result<Description, TrainingJobsError>> + Send;
    /// The job's tags.
    fn tags(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<BTreeMap<String, String>, TrainingJobsError>> + Send;
}

/// A training job in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Training job name.
    pub name: String,
    /// When it was created.
    pub created: Millis,
}

/// Lists what runs, to find jobs that no decision row knows.
pub trait TrainingJobListing: Send + Sync {
    /// Jobs with status `InProgress` that were created at `from` or later, oldest first, a page at a time.
    fn in_progress(
        &self,
        from: Millis,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Paged<Listed>, TrainingJobsError>> + Send;
}

/// Reads stored logs, to recover lines whose delivery was lost.
pub trait JobLogs: Send + Sync {
    /// Lines of all streams of `host` (such as `algo-1`) of job `name` with a timestamp of at least `from`, in order
    /// of (timestamp, id) within each stream, a page at a time.
    fn read(
        &self,
        name: &str,
        host: &str,
        from: Millis,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Paged<LogLine>, TrainingJobsError>> + Send;
}

/// Why the training service did not do it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrainingJobsError {
    /// A job with this name exists (`ResourceInUse`): look whether it is ours.
    #[error("the training job name is taken: {0}")]
    NameTaken(String),
    /// No such job (`ResourceNotFound`, or `ValidationException` "Requested resource not found.").
    #[error("no such training job: {0}")]
    NotFound(String),
    /// The job has ended (stop of a terminal job): as good as done.
    #[error("the training job has ended: {0}")]
    AlreadyEnded(String),
    /// A quota or capacity (`ResourceLimitExceeded`): wait; it is not the trial's fault.
    #[error("a limit is reached: {0}")]
    LimitExceeded(String),
    /// Too many requests: wait.
    #[error("the training service is throttling")]
    Throttled,
    /// No answer or a server fault: it may or may not have been done.
    #[error("the training service is not available: {0}")]
    Unavailable(String),
    /// It will never be done (`ValidationException`, `AccessDeniedException`).
    #[error("{code}: {message}")]
    Refused {
        /// The service's error code.
        code: String,
        /// Its message.
        message: String,
    },
}
