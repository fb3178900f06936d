//! Facts: what happened, in the past tense. They arrive late, twice, out of order or never.
//!
//! A fact says what was seen and nothing of what it means; only [`crate::fold`] gives it a meaning.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::money::MicroUsd;
use crate::pool::Retained;

/// A training job of a tuning: trial, rung at which it was started (0 when it runs through), attempt (from 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    /// Trial number, from 0.
    pub trial: u32,
    /// Rung it was started for.
    pub rung: u32,
    /// Attempt, from 1.
    pub attempt: u32,
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.trial, self.rung, self.attempt)
    }
}

/// A fact with its natural key (unique in its tuning) and the time at which it was true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Natural key: the same event gives the same key.
    pub key: String,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// What happened.
    pub fact: Fact,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// The tuning was submitted.
    TuningSubmitted,
    /// Its user asked to stop it.
    StopRequested,
    /// Its user changed its limits; what is absent stays as it is.
    LimitsChanged {
        /// The new hard cap.
        cap: Option<MicroUsd>,
        /// The new most jobs at once.
        max_parallel: Option<u32>,
        /// Whether no further job is started.
        paused: Option<bool>,
    },
    /// A deadline of the state has passed.
    TimePassed,
    /// The training service said that a job changed its state.
    JobStateChanged {
        /// The job.
        job: JobKey,
        /// The state it entered.
        phase: JobPhase,
        /// When its instances began to run, if they have.
        started: Option<i64>,
        /// When they ceased to run, if they have.
        ended: Option<i64>,
        /// Failure reason, cut to [`crate::limits::MAX_MESSAGE_CHARS`].
        message: Option<String>,
    },
    /// Lines with the objective metric were found in a job's log.
    MetricsLogged {
        /// The job.
        job: JobKey,
        /// Log stream; a restart opens a new one.
        stream: String,
        /// The lines, at most [`crate::limits::MAX_LINES_PER_FACT`].
        lines: Vec<MetricLine>,
    },
    /// The training service described an ended job: its end and its bill.
    JobDescribed {
        /// The job.
        job: JobKey,
        /// How it ended.
        end: JobEnd,
        /// When its instances began to run, if they ever did.
        started: Option<i64>,
        /// When they ceased to run.
        ended: Option<i64>,
        /// Seconds billed (of one cluster).
        billable_seconds: u64,
        /// Failure reason.
        message: Option<String>,
        /// How often it was interrupted.
        interruptions: u32,
    },
    /// A job's stored log was read from its beginning; what it holds is in facts put before this one.
    LogRead {
        /// The job.
        job: JobKey,
        /// How many log streams its trial was known to have when this was ordered.
        streams: u32,
    },
    /// A job that had been silent was looked at, and its stored log read: what was found is in facts put before this
    /// one.
    SilenceSeen {
        /// The job.
        job: JobKey,
        /// Since when it had been silent, as it was known when the look was ordered, ms.
        since: i64,
    },
    /// The month's cap was asked for money.
    BudgetGranted {
        /// The asking's number.
        n: u32,
        /// The month (UTC) it was taken from, such as `2026-11`.
        month: String,
        /// How much; nothing when the month has less left than was needed.
        amount: MicroUsd,
        /// The share of the month's cap, in percent, that this reached first: people are to be told.
        reached: Option<u32>,
    },
    /// Unused money was given back to its month.
    GrantReturned {
        /// The return's number.
        n: u32,
    },
    /// A notice went out.
    NoticeGiven {
        /// The action that ordered it.
        notice: String,
    },
    /// The training service accepted a job.
    JobStarted {
        /// The job.
        job: JobKey,
    },
    /// A job of which nothing was heard for long is still there: the training service was asked.
    JobSeen {
        /// The job.
        job: JobKey,
    },
    /// The training service will never accept a job.
    StartRefused {
        /// The job.
        job: JobKey,
        /// Its answer.
        message: String,
    },
    /// A job that was ordered will never start (cancelled in time).
    JobNeverStarted {
        /// The job.
        job: JobKey,
    },
    /// The training service accepted the order to stop a job.
    StopAccepted {
        /// The job.
        job: JobKey,
    },
    /// The instances kept after a job were still there.
    PoolSeen {
        /// The job.
        job: JobKey,
        /// The reading's number.
        n: u32,
    },
    /// The instances kept after a job are kept no more.
    PoolOver {
        /// The job.
        job: JobKey,
        /// How long they were kept.
        retained: Retained,
    },
    /// An ordered action could not be done yet.
    ActionDeferred {
        /// The job it concerns.
        job: JobKey,
        /// Not to be tried before this time.
        not_before: i64,
        /// Why.
        reason: String,
        /// Whether a quota of the account is used up: other instances may be had.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        limited: bool,
    },
}

impl Fact {
    /// Whether it says that all there is of its job was put before it: then all stored facts of that job are to be
    /// folded first, since nothing else orders them. So is one that a job never started or was refused: what was stored
    /// before may prove that it did start, and that somebody has deleted it since.
    pub fn completes(&self) -> bool {
        matches!(
            self,
            Self::JobDescribed { .. }
                | Self::LogRead { .. }
                | Self::SilenceSeen { .. }
                | Self::JobNeverStarted { .. }
                | Self::StartRefused { .. }
        )
    }

    /// The job it concerns, if one.
    pub fn job(&self) -> Option<JobKey> {
        match self {
            Self::TuningSubmitted
            | Self::StopRequested
            | Self::LimitsChanged { .. }
            | Self::TimePassed
            | Self::BudgetGranted { .. }
            | Self::GrantReturned { .. }
            | Self::NoticeGiven { .. } => None,
            Self::JobStateChanged { job, .. }
            | Self::MetricsLogged { job, .. }
            | Self::JobDescribed { job, .. }
            | Self::LogRead { job, .. }
            | Self::SilenceSeen { job, .. }
            | Self::JobStarted { job }
            | Self::JobSeen { job }
            | Self::StartRefused { job, .. }
            | Self::JobNeverStarted { job }
            | Self::StopAccepted { job }
            | Self::PoolSeen { job, .. }
            | Self::PoolOver { job, .. }
            | Self::ActionDeferred { job, .. } => Some(*job),
        }
    }
}

/// One log line with the objective metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricLine {
    /// Event id, unique in its stream; sortable among lines of one time.
    pub id: String,
    /// Time of the line, ms since the epoch.
    pub at: i64,
    /// Epoch index as captured from the line, raw.
    pub index: Option<u64>,
    /// The value; `None` = NaN or an infinity.
    pub value: Option<f64>,
}

/// State of a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobPhase {
    /// Instances are being found and prepared.
    Starting,
    /// Data or image is being downloaded.
    Downloading,
    /// The program runs.
    Training,
    /// Spot instances were taken away; it waits for others.
    Interrupted,
    /// It was told to stop.
    Stopping,
    /// The model is being uploaded.
    Uploading,
    /// A state this version does not know; the job has not ended.
    Other,
    /// It has ended.
    Ended(JobEnd),
}

/// How a training job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobEnd {
    /// Its program ended well.
    Completed,
    /// It was stopped by an order.
    Stopped,
    /// It ran to `MaxRuntimeInSeconds`.
    MaxRuntime,
    /// It waited for spot capacity until `MaxWaitTimeInSeconds`.
    MaxWait,
    /// Its program failed.
    AlgorithmError,
    /// No instances could be had.
    CapacityError,
    /// The service failed.
    ServiceError,
}
