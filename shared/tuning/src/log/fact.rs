//! Facts: what happened, in the past tense. A fact may arrive late, twice, out of order or never.
//!
//! A fact records what was observed. Only [`fold`](crate::change::fold::fold) gives it a meaning.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::log::pool::Retained;
use crate::log::problem::LogProblem;
use crate::unit::ids::{RungId, TrialId};
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// The key of a training job within its tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    /// The trial.
    pub trial: TrialId,
    /// The rung for which the job was started; 0 where one job runs through all rungs.
    pub rung: RungId,
    /// Attempt, from 1.
    pub attempt: u32,
}

impl JobKey {
    /// Returns the key of an attempt of a trial for a rung.
    pub const fn new(trial: u32, rung: u32, attempt: u32) -> Self {
        Self { trial: TrialId(trial), rung: RungId(rung), attempt }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.trial, self.rung, self.attempt)
    }
}

/// A fact with its natural key (unique in its tuning) and its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// The natural key: the same event gives the same key.
    pub key: String,
    /// When the fact was true.
    pub at: Time,
    /// What happened.
    pub fact: Fact,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// The tuning was submitted.
    TuningSubmitted,
    /// The user asked to stop the tuning.
    StopRequested,
    /// The user changed limits; an absent limit stays as it is.
    LimitsChanged {
        /// The new hard cap.
        cap: Option<MicroUsd>,
        /// The new maximum of jobs that run at once.
        max_parallel: Option<u32>,
        /// Whether starts are paused.
        paused: Option<bool>,
    },
    /// The sweeper reported the time, since a deadline of the state had passed.
    TimePassed,
    /// The training service reported a new state of a job.
    JobStateChanged {
        /// The job.
        job: JobKey,
        /// The state that the job entered.
        phase: JobPhase,
        /// When the instances began to run; `None` = not yet.
        started: Option<Time>,
        /// When the instances stopped running; `None` = not yet.
        ended: Option<Time>,
        /// The failure reason, cut to [`crate::unit::limits::MAX_MESSAGE_CHARS`].
        message: Option<String>,
    },
    /// The log of a job has new lines with the objective metric.
    MetricsLogged {
        /// The job.
        job: JobKey,
        /// The log stream; each restart opens a new one.
        stream: String,
        /// The lines, at most [`crate::unit::limits::MAX_LINES_PER_FACT`].
        lines: Vec<MetricLine>,
        /// The epoch index of a line without a value, at the time of this fact. It holds for later lines without an index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<u64>,
    },
    /// The log of a job shows a problem.
    LogProblemSeen {
        /// The job.
        job: JobKey,
        /// The problem.
        problem: Box<LogProblem>,
    },
    /// The training service showed the last values of the metrics of an ended job.
    FinalMetricsSeen {
        /// The job.
        job: JobKey,
        /// The place of each metric in `MetricDefinitions` of the request, and its value; at most
        /// [`crate::unit::limits::MAX_METRICS`].
        values: Vec<(u8, f64)>,
    },
    /// The training service described an ended job: its end and its bill.
    JobDescribed {
        /// The job.
        job: JobKey,
        /// How the job ended.
        end: JobEnd,
        /// When the instances began to run; `None` = they never ran.
        started: Option<Time>,
        /// When the instances stopped running.
        ended: Option<Time>,
        /// Billed seconds of one cluster.
        billable_seconds: u64,
        /// The failure reason.
        message: Option<String>,
        /// How many times the job was interrupted.
        interruptions: u32,
    },
    /// Bills were read once more and have not risen.
    BillsConfirmed {
        /// The jobs with their billed seconds, at most [`crate::unit::limits::MAX_BILLS_PER_FACT`].
        bills: Vec<(JobKey, u64)>,
    },
    /// The stored log of a job was read from its beginning. Its lines are in facts put before this one.
    LogRead {
        /// The job.
        job: JobKey,
        /// How many log streams of the trial were known when the read was ordered.
        streams: u32,
    },
    /// The log of an ended job was read. Its lines are in facts put before this one.
    RestRead {
        /// The job.
        job: JobKey,
    },
    /// A look at a silent job, which also reads its stored log, is done. Its findings are in facts put before this
    /// one.
    SilenceSeen {
        /// The job.
        job: JobKey,
        /// The beginning of the silence when the look was ordered.
        since: Time,
    },
    /// The month's cap answered a request for money.
    BudgetGranted {
        /// The number of the request.
        n: u32,
        /// The month (UTC) that the money is taken from, such as `2026-11`.
        month: String,
        /// The granted amount; 0 when the month has less left than was needed.
        amount: MicroUsd,
        /// The share of the month's cap, in percent, that this grant reached first: a notice is due.
        reached: Option<u32>,
    },
    /// Unused money was returned to its month.
    GrantReturned {
        /// The number of the return.
        n: u32,
    },
    /// A notice was published.
    NoticeGiven {
        /// The action that ordered the notice.
        notice: String,
    },
    /// The training service accepted a job.
    JobStarted {
        /// The job.
        job: JobKey,
    },
    /// The training service still shows a job that no other fact reported for long.
    JobSeen {
        /// The job.
        job: JobKey,
    },
    /// The training service refused a job for good.
    StartRefused {
        /// The job.
        job: JobKey,
        /// The answer of the service.
        message: String,
        /// Whether another job has the name: every sign of a job of this name is a sign of that one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        name_is_foreign: bool,
    },
    /// An ordered job was cancelled before it started and will never start.
    JobNeverStarted {
        /// The job.
        job: JobKey,
    },
    /// The training service accepted the stop of a job.
    StopAccepted {
        /// The job.
        job: JobKey,
    },
    /// A user asked to stop one job; the tuning goes on with other trials.
    JobStopRequested {
        /// The job.
        job: JobKey,
    },
    /// The warm pool of a job still existed when it was read.
    PoolSeen {
        /// The job.
        job: JobKey,
        /// The number of the read.
        n: u32,
    },
    /// The warm pool of a job has ended.
    PoolOver {
        /// The job.
        job: JobKey,
        /// How long the instances were kept.
        retained: Retained,
    },
    /// An ordered action could not be performed yet.
    ActionDeferred {
        /// The job of the action.
        job: JobKey,
        /// The action is not performed before this time.
        not_before: Time,
        /// Why the action is deferred.
        reason: String,
        /// Whether a quota of the account is used up: other instances may be available.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        quota_exceeded: bool,
    },
}

impl Fact {
    /// Returns whether all other stored facts of the job must be folded before this one, since nothing else orders
    /// them.
    ///
    /// This holds for facts that report all there is of a job up to then. It also holds for a job that never started
    /// or was refused: an earlier fact may prove that the job did start and was deleted since. If another job has its name,
    /// no fact proves that.
    pub fn completes(&self) -> bool {
        matches!(
            self,
            Self::JobDescribed { .. }
                | Self::LogRead { .. }
                | Self::RestRead { .. }
                | Self::SilenceSeen { .. }
                | Self::JobNeverStarted { .. }
                | Self::StartRefused { name_is_foreign: false, .. }
        )
    }

    /// Returns whether the fact is folded before all others of its job: what they report is about another job of this name.
    pub fn comes_first(&self) -> bool {
        matches!(self, Self::StartRefused { name_is_foreign: true, .. })
    }

    /// Returns why the training service refused to start a job, if it did.
    pub fn refusal(&self) -> Option<&str> {
        if let Self::StartRefused { message, .. } = self { Some(message) } else { None }
    }

    /// Returns all jobs that the fact is about: those whose bills it confirms, or [`Self::job`].
    pub fn jobs(&self) -> impl Iterator<Item = JobKey> {
        let bills = if let Self::BillsConfirmed { bills } = self { bills.as_slice() } else { &[] };
        self.job().into_iter().chain(bills.iter().map(|(job, _)| *job))
    }

    /// Returns the job with whose facts the fact is stored; `None` for facts about the tuning or several jobs.
    pub fn job(&self) -> Option<JobKey> {
        match self {
            Self::TuningSubmitted
            | Self::StopRequested
            | Self::LimitsChanged { .. }
            | Self::TimePassed
            | Self::BudgetGranted { .. }
            | Self::GrantReturned { .. }
            | Self::BillsConfirmed { .. }
            | Self::LogProblemSeen { .. }
            | Self::NoticeGiven { .. } => None,
            Self::JobStateChanged { job, .. }
            | Self::MetricsLogged { job, .. }
            | Self::FinalMetricsSeen { job, .. }
            | Self::JobDescribed { job, .. }
            | Self::LogRead { job, .. }
            | Self::RestRead { job }
            | Self::SilenceSeen { job, .. }
            | Self::JobStarted { job }
            | Self::JobSeen { job }
            | Self::StartRefused { job, .. }
            | Self::JobNeverStarted { job }
            | Self::StopAccepted { job }
            | Self::JobStopRequested { job }
            | Self::PoolSeen { job, .. }
            | Self::PoolOver { job, .. }
            | Self::ActionDeferred { job, .. } => Some(*job),
        }
    }
}

/// A log line with the objective metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricLine {
    /// The event ID: unique in its stream, and sortable among lines of the same time.
    pub id: String,
    /// The time of the line.
    pub at: Time,
    /// The epoch index captured from the line, as logged.
    pub index: Option<u64>,
    /// The value; `None` = NaN or an infinity.
    pub value: Option<f64>,
}

/// The state of a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobPhase {
    /// Instances are being launched and prepared.
    Starting,
    /// Data or the image is being downloaded.
    Downloading,
    /// The program runs.
    Training,
    /// Spot instances were taken away; the job waits for others.
    Interrupted,
    /// The job was ordered to stop.
    Stopping,
    /// The model is being uploaded.
    Uploading,
    /// A state that this version does not know; the job has not ended.
    Other,
    /// The job has ended.
    Ended(JobEnd),
}

impl JobEnd {
    /// Returns whether the values of a job that ended so count as results: it completed, was stopped, or reached its time
    /// limit. The values of a failed job are shown, but they are no result.
    pub fn counts(self) -> bool {
        match self {
            Self::Completed | Self::Stopped | Self::MaxRuntime => true,
            Self::MaxWait | Self::AlgorithmError | Self::CapacityError | Self::ServiceError => false,
        }
    }
}

/// How a training job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobEnd {
    /// The program exited with 0.
    Completed,
    /// The job was stopped by a request.
    Stopped,
    /// The job ran up to `MaxRuntimeInSeconds`.
    MaxRuntime,
    /// The job waited for spot capacity up to `MaxWaitTimeInSeconds`.
    MaxWait,
    /// The program failed.
    AlgorithmError,
    /// No instances were available.
    CapacityError,
    /// The service failed.
    ServiceError,
}
