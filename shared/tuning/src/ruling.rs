//! Rulings: what the decider decided, with the numbers it rests on. They are the log that can be read and replayed.
//!
//! Each ruling changes the state in one way ([`crate::state::State::apply`]). Some also order an action outside; it is
//! performed later, perhaps twice, under the name [`Ruling::action`] gives.

use hyperband::rung::Verdict as RungVerdict;
use search::Configuration;
use serde::{Deserialize, Serialize};

use crate::definition::JobLimits;
use crate::fact::JobKey;
use crate::money::MicroUsd;

/// A decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ruling {
    /// A trial arrived at a rung and was compared with all that had arrived.
    TrialJudged {
        /// The trial.
        trial: u32,
        /// Its bracket (0 = the most exploring).
        bracket: u32,
        /// The rung in the bracket (0 = lowest).
        rung: u32,
        /// The rung's level, in epochs.
        level: u32,
        /// The epoch whose value was compared: the level, the first one above it (late), or the last one (ended).
        resource: u32,
        /// The value; `None` = not a number.
        value: Option<f64>,
        /// Rank and counts.
        verdict: Verdict,
    },
    /// A training job is ordered.
    StartOrdered {
        /// The job.
        job: JobKey,
        /// The bracket its trial belongs to.
        bracket: u32,
        /// Its hyperparameters.
        configuration: Configuration,
        /// The limits to send.
        limits: JobLimits,
        /// Its worst case, reserved.
        reservation: MicroUsd,
        /// The round of its bracket that its trial belongs to, where rungs close (0 elsewhere).
        #[serde(default, skip_serializing_if = "is_zero")]
        round: u32,
        /// What else is not as the request says.
        #[serde(default, skip_serializing_if = "Launch::is_usual")]
        launch: Launch,
    },
    /// A job has brought its trial to the level of its rung; the trial waits there to be promoted.
    RungReached {
        /// The job that is over; `None` if the trial was waiting for a further attempt when it was seen to be there.
        job: Option<JobKey>,
        /// The trial.
        trial: u32,
        /// Its bracket.
        bracket: u32,
        /// The round of its bracket.
        round: u32,
        /// The rung.
        rung: u32,
        /// The rung's level, in epochs.
        level: u32,
        /// The epoch whose value counts: the level, the first one above it (late), or the last one (ended before).
        resource: u32,
        /// The value; `None` = not a number.
        value: Option<f64>,
    },
    /// A trial is let go on to the next rung, in a job of its own.
    TrialPromoted {
        /// The trial.
        trial: u32,
        /// Its bracket.
        bracket: u32,
        /// The round of its bracket.
        round: u32,
        /// The rung at which it waited.
        rung: u32,
        /// The level of the next one, in epochs.
        level: u32,
        /// The value with which it waited.
        value: Option<f64>,
        /// Rank and counts.
        verdict: Verdict,
    },
    /// A job that was to go on from a checkpoint did not: what the trial had already is trained, and paid, again.
    ResourceRepeated {
        /// The job.
        job: JobKey,
        /// Epochs that the trial had when it was promoted.
        had: u32,
        /// Epochs that the job began with: 0 = at the beginning.
        from: u32,
    },
    /// A training job is to be stopped.
    StopOrdered {
        /// The job.
        job: JobKey,
        /// Why.
        why: StopWhy,
    },
    /// An ended job's bill and the rest of its log are to be read.
    BillOrdered {
        /// The job.
        job: JobKey,
    },
    /// A restarted job's stored log is to be read before its trial is judged: a line whose delivery was lost would give
    /// all later ones too low a rank.
    LogReadOrdered {
        /// The job.
        job: JobKey,
        /// Log streams of its trial so far.
        streams: u32,
    },
    /// A job that has emitted nothing for long is to be looked at, and its stored log read, before it is ended for that.
    LookOrdered {
        /// The job.
        job: JobKey,
        /// Since when it has been silent, ms.
        since: i64,
    },
    /// Money is asked of the month's cap.
    GrantOrdered {
        /// The asking's number, from 1.
        n: u32,
        /// What is needed for the next job: less is of no use.
        least: MicroUsd,
        /// What all free slots could use.
        wanted: MicroUsd,
    },
    /// Unused money goes back to its month.
    ReturnOrdered {
        /// The return's number, from 1.
        n: u32,
        /// The month it came from.
        month: String,
        /// How much.
        amount: MicroUsd,
    },
    /// So much of the tuning's cap is spent; at 100, what is left pays no further job. People are told.
    CapReached {
        /// 50, 80 or 100.
        percent: u32,
    },
    /// So much of a month's cap is granted: people are told.
    MonthCapReached {
        /// The month.
        month: String,
        /// 50, 80 or 100.
        percent: u32,
    },
    /// The instances kept after a job are to be looked at: they may have been taken, or their time is over.
    PoolReadOrdered {
        /// The job.
        job: JobKey,
        /// The reading's number, from 1.
        n: u32,
        /// Whether their time is over: then it is read until they are gone.
        last: bool,
    },
    /// The instances kept after a job are of no more use: they are to be let go.
    PoolReleaseOrdered {
        /// The job.
        job: JobKey,
    },
    /// What it cost to keep the instances after a job is booked.
    PoolClosed {
        /// The job.
        job: JobKey,
        /// For how long they were kept; `None` = nobody can tell: the whole reservation is taken.
        seconds: Option<u64>,
        /// The amount.
        amount: MicroUsd,
    },
    /// An ended job's bill never came: its whole reservation is taken as spent.
    SettledInFull {
        /// The job.
        job: JobKey,
        /// The amount.
        amount: MicroUsd,
    },
    /// A job is over; its trial waits for a further attempt.
    AttemptAwaited {
        /// The job that is over.
        job: JobKey,
        /// Why it is tried again.
        why: RetryWhy,
        /// Not before this time.
        not_before: i64,
    },
    /// A trial is over, and its job with it.
    TrialFinished {
        /// Its last job; `None` if it was waiting for a further attempt.
        job: Option<JobKey>,
        /// The trial.
        trial: u32,
        /// How.
        how: TrialEnd,
    },
    /// A bill was above its reservation: people are told, and no further job is started.
    OverrunSeen,
    /// No further job is started; running ones are stopped.
    TuningEnding {
        /// Why.
        why: EndReason,
    },
    /// The tuning is over.
    TuningEnded {
        /// Why.
        why: EndReason,
    },
}

/// How a job differs from what the request says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Launch {
    /// The level to which it trains, in epochs: the value of the hyperparameter that sets them. `None` = the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<u32>,
    /// It runs on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Which of the request's choices of instances it runs on: 0 = the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instances: u32,
    /// It trains the best configuration once more, when the search is over; it is compared with no other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refit: bool,
}

impl Launch {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// An arrival's rank and counts ([`hyperband::rung::Verdict`] as it is stored).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// 0 = best.
    pub rank: u32,
    /// Arrivals, this one included.
    pub seen: u32,
    /// How many of them may go on.
    pub allowed: u32,
    /// Whether this one does.
    pub goes_on: bool,
}

impl From<RungVerdict> for Verdict {
    fn from(verdict: RungVerdict) -> Self {
        let RungVerdict { rank, seen, allowed, goes_on } = verdict;
        Self { rank, seen, allowed, goes_on }
    }
}

/// Why a job is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopWhy {
    /// Its trial was not among the best at this rung.
    Rung {
        /// The rung in its bracket.
        rung: u32,
    },
    /// Its trial has all its epochs.
    MaxResource,
    /// It goes on beyond its rung's level: it does not heed the hyperparameter that sets the epochs.
    PastLevel {
        /// The level, in epochs.
        level: u32,
    },
    /// The tuning is ending.
    TuningEnding,
    /// Its spot instances were taken away too often: its trial goes on on demand.
    Interruptions {
        /// So often.
        count: u32,
    },
    /// It was not started for a quota of the account: its trial goes on on other instances.
    NextInstances,
    /// A quota of the account keeps it from starting, and nothing runs for long: another job stays ordered, its trial waits.
    Quota,
    /// It emitted no value of the objective for so long.
    NoObjective {
        /// So many seconds.
        seconds: u64,
    },
}

/// Why a trial is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetryWhy {
    /// No capacity.
    Capacity,
    /// Spot capacity did not come within the wait.
    MaxWait,
    /// The service failed.
    ServiceError,
    /// No capacity; there are other instances to choose from.
    NextInstances,
    /// A quota of the account kept it from starting; it waits for room.
    Quota,
    /// Spot capacity failed it; the next attempt is on demand.
    OnDemand,
    /// Its running time had been cut too short; the next attempt gets the user's limit.
    RuntimeCutTooShort,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrialEnd {
    /// Its program ended well.
    Completed,
    /// It was stopped by our order.
    Stopped(StopWhy),
    /// Somebody else stopped its job.
    StoppedOutside,
    /// It ran to its running-time limit.
    MaxRuntime,
    /// It failed for good, with the last message.
    Failed(String),
    /// Its job was called off before it started.
    NeverStarted,
}

/// Why a tuning ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// No further job fits the cap.
    CostCap,
    /// All jobs were launched.
    MaxJobs,
    /// The target value was reached.
    Target,
    /// Too many trials in a row brought nothing better.
    NotImproving,
    /// The tuning's own time is up.
    MaxRuntime,
    /// Its user stopped it.
    Stopped,
    /// It cannot succeed, and why.
    Failed(String),
}

impl EndReason {
    /// The word in `Controller.EndReason`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::CostCap => "CostCap",
            Self::MaxJobs => "MaxJobs",
            Self::Target => "Target",
            Self::NotImproving => "NotImproving",
            Self::MaxRuntime => "MaxRuntime",
            Self::Stopped => "Stopped",
            Self::Failed(_) => "Failed",
        }
    }
}

impl Ruling {
    /// The natural id of the action this ruling orders, unique in its tuning: the key of its row in the outbox.
    pub fn action(&self) -> Option<String> {
        match self {
            Self::StartOrdered { job, .. } => Some(format!("start-{job}")),
            Self::StopOrdered { job, .. } => Some(format!("stop-{job}")),
            Self::BillOrdered { job } => Some(format!("bill-{job}")),
            Self::LogReadOrdered { job, streams } => Some(format!("read-{job}-{streams}")),
            Self::LookOrdered { job, since } => Some(format!("look-{job}-{since}")),
            Self::PoolReadOrdered { job, n, .. } => Some(format!("pool-{job}-{n}")),
            Self::PoolReleaseOrdered { job } => Some(format!("release-{job}")),
            Self::GrantOrdered { n, .. } => Some(format!("grant-{n}")),
            Self::ReturnOrdered { n, .. } => Some(format!("return-{n}")),
            Self::CapReached { percent } => Some(format!("notice-cap-{percent}")),
            Self::MonthCapReached { month, percent } => Some(format!("notice-month-{month}-{percent}")),
            Self::OverrunSeen => Some("notice-overrun".to_owned()),
            Self::TuningEnded { .. } => Some("notice-ended".to_owned()),
            Self::TrialJudged { .. }
            | Self::RungReached { .. }
            | Self::TrialPromoted { .. }
            | Self::ResourceRepeated { .. }
            | Self::SettledInFull { .. }
            | Self::PoolClosed { .. }
            | Self::AttemptAwaited { .. }
            | Self::TrialFinished { .. }
            | Self::TuningEnding { .. } => None,
        }
    }

    /// The job that leaves the state with this ruling, and so gets its summary row.
    pub fn concludes(&self) -> Option<JobKey> {
        match self {
            Self::AttemptAwaited { job, .. } => Some(*job),
            Self::TrialFinished { job, .. } | Self::RungReached { job, .. } => *job,
            Self::TrialJudged { .. }
            | Self::TrialPromoted { .. }
            | Self::ResourceRepeated { .. }
            | Self::StartOrdered { .. }
            | Self::StopOrdered { .. }
            | Self::BillOrdered { .. }
            | Self::LogReadOrdered { .. }
            | Self::LookOrdered { .. }
            | Self::PoolReadOrdered { .. }
            | Self::PoolReleaseOrdered { .. }
            | Self::PoolClosed { .. }
            | Self::GrantOrdered { .. }
            | Self::ReturnOrdered { .. }
            | Self::CapReached { .. }
            | Self::MonthCapReached { .. }
            | Self::SettledInFull { .. }
            | Self::OverrunSeen
            | Self::TuningEnding { .. }
            | Self::TuningEnded { .. } => None,
        }
    }
}
