//! The reasons in rulings: why a job is stopped, a trial retried or finished, and a tuning ended.

use serde::{Deserialize, Serialize};

use crate::log::fact::JobKey;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{RungId, TrialId};

/// Why a job is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopWhy {
    /// The trial was not among the best at this rung.
    Rung {
        /// The rung in its bracket.
        rung: RungId,
    },
    /// The trial has all its epochs.
    MaxResource,
    /// The job trains past the level of its rung: its program ignores the resource hyperparameter.
    PastLevel {
        /// The level, in epochs.
        level: Epochs,
    },
    /// The tuning is ending.
    TuningEnding,
    /// Another trial reached the target and trains to its end.
    TargetReached {
        /// That trial.
        trial: TrialId,
    },
    /// A user asked to stop the job.
    Requested,
    /// Spot instances were taken away too often: the trial continues on demand.
    Interruptions {
        /// The number of interruptions.
        count: u32,
    },
    /// A quota of the account blocks the job: the trial continues on other instances.
    NextInstances,
    /// A quota of the account blocks the job and nothing runs for long: another job stays ordered, and the trial
    /// waits.
    Quota,
    /// The rest of the cap, or a quota of the account, is too small for the next job of the trial.
    OutOfReach,
    /// The job logged no value of the objective for too long.
    NoObjective {
        /// The allowed silence, in seconds.
        seconds: u64,
    },
    /// The objective was no finite number in the last epochs.
    Diverged {
        /// The number of epochs.
        epochs: u32,
    },
    /// The job has nearly used up the time that its reservation pays for, although its own limit should have ended it.
    ReservationUsed {
        /// Billed seconds at which it has to stop.
        seconds: u64,
    },
    /// Another job costs more than was reserved for it, and the cap does not pay for both.
    CapExceeded {
        /// The other job.
        by: JobKey,
    },
}

impl StopWhy {
    /// Returns the failure message of a job that shows a fault of its program; `None` = the stop shows none.
    pub(crate) fn message(self) -> Option<String> {
        match self {
            Self::NoObjective { seconds } => {
                Some(format!("stopped: the log showed no value of the objective metric for {seconds} s"))
            }
            Self::Diverged { epochs } => Some(format!(
                "stopped: the objective metric was NaN or infinite for {epochs} epochs in a row"
            )),
            Self::Rung { .. }
            | Self::MaxResource
            | Self::PastLevel { .. }
            | Self::TuningEnding
            | Self::TargetReached { .. }
            | Self::Requested
            | Self::Interruptions { .. }
            | Self::NextInstances
            | Self::Quota
            | Self::OutOfReach
            | Self::ReservationUsed { .. }
            | Self::CapExceeded { .. } => None,
        }
    }
}

/// Why a trial is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetryWhy {
    /// There was no capacity.
    Capacity,
    /// Spot capacity did not come within `MaxWaitTimeInSeconds`.
    MaxWait,
    /// The service failed.
    ServiceError,
    /// There was no capacity; the next attempt uses other instances.
    NextInstances,
    /// A quota of the account blocked the job; the trial waits for room.
    Quota,
    /// Spot capacity failed; the next attempt runs on demand.
    OnDemand,
    /// The running-time limit had been shortened too much; the next attempt gets a longer one.
    RuntimeCutTooShort,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrialEnd {
    /// The program completed.
    Completed,
    /// The decider stopped the trial.
    Stopped(StopWhy),
    /// A request from outside the tuning stopped the job.
    StoppedOutside,
    /// The job ran up to its running-time limit.
    MaxRuntime,
    /// The trial failed for good; holds the last message.
    Failed(String),
    /// The job was cancelled before it started.
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
    /// Too many trials in a row did not improve the best value.
    NotImproving,
    /// No job got instances for longer than the tuning may wait.
    NoCapacity,
    /// The running time of the tuning is over.
    MaxRuntime,
    /// The user stopped the tuning.
    Stopped,
    /// The tuning cannot succeed; holds the reason.
    Failed(String),
}

impl EndReason {
    /// Returns whether a refit follows a search that ended for this reason.
    pub(crate) fn allows_refit(&self) -> bool {
        match self {
            Self::MaxJobs | Self::CostCap | Self::Target | Self::NotImproving => true,
            Self::NoCapacity | Self::MaxRuntime | Self::Stopped | Self::Failed(_) => false,
        }
    }

    /// Returns whether a tuning that ends for this reason is about to fail; `has_value` = a trial has a value.
    pub(crate) fn fails(&self, has_value: bool) -> bool {
        match self {
            Self::Failed(_) => true,
            Self::NoCapacity => !has_value,
            Self::CostCap
            | Self::MaxJobs
            | Self::Target
            | Self::NotImproving
            | Self::MaxRuntime
            | Self::Stopped => false,
        }
    }

    /// Returns whether the end for this reason is the failure of another cause, if jobs ran and no trial has a value.
    pub(crate) fn hides_failure(&self) -> bool {
        match self {
            Self::MaxJobs | Self::CostCap | Self::MaxRuntime => true,
            Self::Target | Self::NotImproving | Self::NoCapacity | Self::Stopped | Self::Failed(_) => false,
        }
    }

    /// Returns the value of `Controller.EndReason`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::CostCap => "CostCap",
            Self::MaxJobs => "MaxJobs",
            Self::Target => "Target",
            Self::NotImproving => "NotImproving",
            Self::NoCapacity => "NoCapacity",
            Self::MaxRuntime => "MaxRuntime",
            Self::Stopped => "Stopped",
            Self::Failed(_) => "Failed",
        }
    }

    /// Returns the reason as a phrase for people.
    pub fn message(&self) -> &str {
        match self {
            Self::CostCap => "no other job fits the cost cap",
            Self::MaxJobs => "all training jobs were launched",
            Self::Target => "the target value was reached",
            Self::NotImproving => "the last trials did not improve the best value",
            Self::NoCapacity => {
                "no training job got instances for MaxCapacityWaitSeconds: use other instance types \
                 (InstanceConfigs), on-demand instances or another region, or raise MaxCapacityWaitSeconds"
            }
            Self::MaxRuntime => "the time limit was reached",
            Self::Stopped => "a user stopped it",
            Self::Failed(message) => message.trim(),
        }
    }
}
