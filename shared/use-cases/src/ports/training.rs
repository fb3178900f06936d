//! Training jobs as SageMaker runs them, and their logs.
//!
//! Requests are the service's own JSON (`CreateTrainingJob`), so that no field of the user's request is lost. A job's
//! name is never reused. `create` and `stop` take effect once per job, however often they are called. The contract
//! suite of crate `port-tests` specifies every implementation.

use std::collections::BTreeMap;
use std::future::Future;

use thiserror::Error;
use tuning::unit::time::Time;

/// A training job as returned by `DescribeTrainingJob`. It may lag behind events.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Description {
    /// Training job name.
    pub name: String,
    /// `TrainingJobStatus`: `InProgress`, `Completed`, `Failed`, `Stopping`, `Stopped`.
    pub status: String,
    /// `SecondaryStatus`. Readers must accept unknown values.
    pub secondary_status: String,
    /// Creation time.
    pub created: Time,
    /// `TrainingStartTime`: start of billing. `None` if no instance has ever run.
    pub started: Option<Time>,
    /// `TrainingEndTime`: end of billing.
    pub ended: Option<Time>,
    /// `LastModifiedTime`.
    pub modified: Time,
    /// `BillableTimeInSeconds`. `None` until the job has ended.
    pub billable_seconds: Option<u64>,
    /// `FailureReason`.
    pub failure_reason: Option<String>,
    /// Number of interruptions (entries `Interrupted` in `SecondaryStatusTransitions`).
    pub interruptions: u32,
    /// `FinalMetricDataList`: name and last finite value of each metric, once the job has ended.
    pub final_metrics: Vec<(String, f64)>,
    /// `WarmPoolStatus`, if the job's instances are or were kept after its end.
    pub warm_pool: Option<WarmPool>,
}

/// The instances kept after a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmPool {
    /// `Status`: `InUse` (the job itself runs on them), `Available`, `Reused` (another job took them), `Terminated`.
    pub status: String,
    /// `ResourceRetainedBillableTimeInSeconds`: for how long the instances were kept and are billed. `None` while they
    /// are kept.
    pub retained_seconds: Option<u64>,
}

/// One line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Log stream, `<job>/algo-<n>-<digits>`.
    pub stream: String,
    /// Event ID, unique in the stream. Sorts the lines of one timestamp.
    pub id: String,
    /// When it was logged.
    pub timestamp: Time,
    /// The text.
    pub message: String,
}

/// One page of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paged<T> {
    /// The items.
    pub items: Vec<T>,
    /// Token of the next page. `None` at the end.
    pub next: Option<String>,
}

/// The training service.
pub trait TrainingJobs: Send + Sync {
    /// Starts the job of a `CreateTrainingJob` request (JSON object with `TrainingJobName`). Also used to find out
    /// whether a job of that name exists ([`TrainingJobsError::NameTaken`]).
    fn create(
        &self,
        request: &serde_json::Value,
    ) -> impl Future<Output = Result<(), TrainingJobsError>> + Send;
    /// Requests a stop of the job, which stops later. For an ended job: [`TrainingJobsError::AlreadyEnded`].
    fn stop(&self, name: &str) -> impl Future<Output = Result<(), TrainingJobsError>> + Send;
    /// Releases the instances kept after an ended job (`UpdateTrainingJob` with a `KeepAlivePeriodInSeconds` of 0).
    /// They may be kept for a while after the call.
    fn release(&self, name: &str) -> impl Future<Output = Result<(), TrainingJobsError>> + Send;
    /// Returns the job's present state.
    fn describe(&self, name: &str) -> impl Future<Output = Result<Description, TrainingJobsError>> + Send;
    /// Returns the job's tags.
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
    /// Creation time.
    pub created: Time,
}

/// A whole training service, as a sweep needs it.
pub trait TrainingService: TrainingJobs + JobLogs + TrainingJobListing {}

impl<J: TrainingJobs + JobLogs + TrainingJobListing> TrainingService for J {}

/// Lists running jobs, to find those without an action row.
pub trait TrainingJobListing: Send + Sync {
    /// Returns jobs with status `InProgress` that were created at `from` or later, oldest first, page by page.
    fn in_progress(
        &self,
        from: Time,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Paged<Listed>, TrainingJobsError>> + Send;
}

/// Reads stored logs, to recover lines whose delivery was lost.
pub trait JobLogs: Send + Sync {
    /// Returns lines of all streams of `host` (for example `algo-1`) of job `name` with a timestamp of at least `from`,
    /// in order of (timestamp, ID) within each stream, page by page.
    fn read(
        &self,
        name: &str,
        host: &str,
        from: Time,
        page: Option<&str>,
    ) -> impl Future<Output = Result<Paged<LogLine>, TrainingJobsError>> + Send;
}

/// Why the training service refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrainingJobsError {
    /// A job with this name exists (`ResourceInUse`). Check whether it is ours.
    #[error("the training job name is already in use: {0}")]
    NameTaken(String),
    /// The job does not exist (`ResourceNotFound`, or `ValidationException` "Requested resource not found.").
    #[error("the training job does not exist: {0}")]
    NotFound(String),
    /// The job has already ended, so it needs no stop.
    #[error("the training job has already ended: {0}")]
    AlreadyEnded(String),
    /// A quota or capacity (`ResourceLimitExceeded`): wait. The trial is not at fault.
    #[error("a limit of the account is reached: {0}")]
    LimitExceeded(String),
    /// Too many requests, or no turn for one: wait. The request was not performed.
    #[error("a rate limit of the account allows no request now")]
    Throttled,
    /// No answer, or a server fault: the request may or may not have been performed.
    #[error("the training service is unavailable: {0}")]
    Unavailable(String),
    /// Permanent (`ValidationException`, `AccessDeniedException`).
    #[error("{code}: {message}")]
    Refused {
        /// The service's error code.
        code: String,
        /// Its message.
        message: String,
    },
}
