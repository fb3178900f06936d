//! What was asked for: the immutable part of a tuning, made from the request when it is submitted.
//!
//! Everything the decider needs and nothing else; what is merely passed on to SageMaker stays in the stored request.

use hyperband::plan::{BracketPlan, Plan};
use hyperband::ranking::Direction;
use search::{Configuration, SamplerKind, Space};
use serde::{Deserialize, Serialize};

use crate::limits::{SPOT_WAIT_ALLOWANCE_SECONDS, STOP_GRACE_SECONDS, UPLOAD_ALLOWANCE_SECONDS};
use crate::money::{MicroUsd, Rate};

/// The rules that new tunings are submitted under. A tuning keeps the version it was submitted under for its life.
///
/// 1: the first. 2: people are told when half, four fifths and all of the cap are used; what is left at the end of a
/// cap still pays a job whose limit is cut to it; a job that is settled in full is not ordered to stop.
pub const RULES_VERSION: u32 = 2;

/// The immutable definition of a tuning job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Version of the rules that decide, see [`RULES_VERSION`].
    pub rules_version: u32,
    /// Tuning job name.
    pub name: String,
    /// Six base-36 characters that tell this tuning from an earlier one of the same name.
    pub incarnation: String,
    /// When it was submitted, ms since the epoch.
    pub created: i64,
    /// Root of the seed tree.
    pub seed: u64,
    /// How resources are given.
    pub strategy: Strategy,
    /// How a trial goes from rung to rung.
    #[serde(default, skip_serializing_if = "RungExecution::is_stop")]
    pub rungs: RungExecution,
    /// Whether more is better.
    pub objective: Objective,
    /// The search space.
    pub space: Space,
    /// How configurations are drawn.
    pub sampler: SamplerKind,
    /// Bounds and completion criteria.
    pub limits: Limits,
    /// What one training job runs on.
    pub job: JobShape,
    /// Hard cap of the whole tuning.
    pub cap: Option<MicroUsd>,
    /// How the log tells the epoch.
    pub epochs: EpochRule,
    /// Our own further attempts of one trial after a lack of capacity or an interruption.
    pub max_interruptions: u32,
    /// Whether a job that spot capacity fails too often is tried again on demand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spot_fallback: bool,
    /// Whether the best configuration is trained once more at the end, to its best resource.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refit: bool,
    /// When a job that emits nothing is ended.
    #[serde(default)]
    pub silence: Silence,
    /// Whether money comes in grants out of the stack's month's cap.
    #[serde(default)]
    pub grants: bool,
}

/// When a training job that emits no value of the objective is ended: all its money would be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Silence {
    /// Never.
    #[default]
    Never,
    /// After a multiple of what epochs have taken so far; before any is known, after half of the running-time limit.
    Adaptive,
    /// After so many seconds.
    After(u64),
}

/// How resources are given to trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// Hyperband, stopping running jobs at rungs.
    Hyperband {
        /// First epoch at which a trial may be stopped.
        min_resource: u32,
        /// Epochs of a trial that is never stopped.
        max_resource: u32,
        /// Reduction factor.
        eta: u32,
    },
    /// Every trial runs to its own end.
    Random,
}

/// How a trial goes from rung to rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RungExecution {
    /// One job for all: it is stopped at a rung unless it is among the best.
    #[default]
    Stop,
    /// A job for each rung: it runs just to the rung's level, and the best are started again from their checkpoints.
    Promote(Scheduling),
}

impl RungExecution {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_stop(&self) -> bool {
        *self == Self::Stop
    }
}

/// When a rung promotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheduling {
    /// Whenever an instance is free and somebody is among the best of those that have ended (ASHA).
    Asynchronous,
    /// When all of a round have ended (successive halving).
    Synchronous,
}

/// Direction of the objective metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Objective {
    /// More is better.
    Maximize,
    /// Less is better.
    Minimize,
}

/// Bounds and completion criteria.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// `MaxNumberOfTrainingJobs`: jobs launched, further attempts included.
    pub max_jobs: u32,
    /// `MaxParallelTrainingJobs`.
    pub max_parallel: u32,
    /// `MaxRuntimeInSeconds` of the tuning: wall clock since it was submitted.
    pub max_runtime_seconds: Option<u64>,
    /// `MaxInstances`: sum of instances over running jobs.
    pub max_instances: Option<u32>,
    /// `TargetObjectiveMetricValue`.
    pub target: Option<f64>,
    /// `MaxNumberOfTrainingJobsNotImproving`.
    pub not_improving: Option<u32>,
}

/// What one training job runs on, and its limits as the user set them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobShape {
    /// Instances of one job.
    pub instance_count: u32,
    /// Volume of each instance.
    pub volume_gib: u32,
    /// Price; `None` = unknown, allowed only without a cap.
    pub rate: Option<Rate>,
    /// Managed spot training.
    pub spot: bool,
    /// `StoppingCondition.MaxRuntimeInSeconds`.
    pub max_runtime_seconds: u64,
    /// `StoppingCondition.MaxWaitTimeInSeconds` (spot only).
    pub max_wait_seconds: Option<u64>,
    /// What it may run on instead, in this order, when there is no capacity for what comes before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Instances>,
    /// `ResourceConfig.KeepAlivePeriodInSeconds`: how long its instances are kept for the next job; 0 = not at all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep_alive_seconds: u64,
}

/// Instances of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instances {
    /// How many.
    pub count: u32,
    /// Volume of each.
    pub volume_gib: u32,
    /// Price; `None` = unknown, allowed only without a cap.
    pub rate: Option<Rate>,
}

impl Instances {
    /// The cost of `seconds` of them; `None` when no price is known.
    pub fn cost(self, seconds: u64) -> Option<MicroUsd> {
        self.rate.map(|rate| rate.cost(seconds, self.count, self.volume_gib))
    }
}

impl JobShape {
    /// The instances of choice `index`: 0 is the first, beyond the last the last.
    pub fn instances(&self, index: u32) -> Instances {
        let first = Instances { count: self.instance_count, volume_gib: self.volume_gib, rate: self.rate };
        let Some(other) = index.checked_sub(1) else { return first };
        let other = usize::try_from(other).ok().and_then(|other| self.fallbacks.get(other));
        other.or(self.fallbacks.last()).copied().unwrap_or(first)
    }

    /// How many choices there are.
    pub fn choices(&self) -> u32 {
        u32::try_from(self.fallbacks.len()).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// How the log tells the epoch (DESIGN: one unit of resource is one emission on one host's log).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochRule {
    /// Whether the epoch is captured from the line; else it is the line's rank in its stream.
    pub captured: bool,
    /// Index of the first epoch in the log (0 or 1), when captured.
    pub base: u32,
    /// Whether the index starts again after a restart.
    pub per_attempt: bool,
}

/// The limits sent with one job and the most it can cost under them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLimits {
    /// `MaxRuntimeInSeconds` to send.
    pub max_runtime_seconds: u64,
    /// `MaxWaitTimeInSeconds` to send (spot only).
    pub max_wait_seconds: Option<u64>,
    /// `KeepAlivePeriodInSeconds` to send (on demand only); 0 = none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keep_alive_seconds: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Definition {
    /// The plan of brackets and rungs. (A definition is made only from a plan that exists; should a stored one not be
    /// readable as such, the tuning runs without stopping.)
    pub fn plan(&self) -> Plan {
        match self.strategy {
            Strategy::Hyperband { min_resource, max_resource, eta } => {
                Plan::hyperband(min_resource, max_resource, eta)
                    .unwrap_or_else(|_| Plan::without_stopping(Some(max_resource)))
            }
            Strategy::Random => Plan::without_stopping(None),
        }
    }

    /// How the trials of a bracket are promoted; `None` where running jobs are stopped instead.
    pub fn promotes(&self) -> Option<Scheduling> {
        match (self.rungs, self.strategy) {
            (RungExecution::Promote(scheduling), Strategy::Hyperband { .. }) => Some(scheduling),
            (RungExecution::Stop, _) | (_, Strategy::Random) => None,
        }
    }

    /// The level of a rung of a bracket, in epochs; the largest resource beyond the last one.
    pub fn level(&self, bracket: u32, rung: u32) -> u32 {
        let plan = self.plan();
        let index = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let rungs = plan.brackets().get(index(bracket)).map(BracketPlan::rungs);
        rungs.and_then(|rungs| rungs.get(index(rung))).map_or(plan.max_resource(), |rung| rung.resource)
    }

    /// Epochs that a trial has when it is promoted to a rung; nothing at the first, or where trials are not promoted.
    pub fn level_below(&self, bracket: u32, rung: u32) -> u32 {
        rung.checked_sub(1).map_or(0, |below| self.level(bracket, below))
    }

    /// The last rung of a bracket, at the largest resource.
    pub fn last_rung(&self, bracket: u32) -> u32 {
        let plan = self.plan();
        let index = usize::try_from(bracket).unwrap_or(usize::MAX);
        let rungs = plan.brackets().get(index).map_or(1, |bracket| bracket.rungs().len());
        u32::try_from(rungs).unwrap_or(u32::MAX).saturating_sub(1)
    }

    /// The epochs at which the job of a trial of `bracket` that was started for `rung` is done.
    pub fn goal(&self, bracket: u32, rung: u32) -> u32 {
        if self.promotes().is_some() { self.level(bracket, rung) } else { self.plan().max_resource() }
    }

    /// Direction for the ranking.
    pub fn direction(&self) -> Direction {
        match self.objective {
            Objective::Maximize => Direction::Maximize,
            Objective::Minimize => Direction::Minimize,
        }
    }

    /// Name and incarnation: the id under which everything of this tuning is stored.
    pub fn id(&self) -> String {
        format!("{}-{}", self.name, self.incarnation)
    }

    /// The configuration of a new trial.
    pub fn configuration(&self, trial: u32) -> Configuration {
        search::suggest(&self.space, self.sampler, self.seed, trial)
    }

    /// The limits to send for a job that may run `runtime_seconds` (never above the user's).
    pub fn limits_for(&self, runtime_seconds: u64) -> JobLimits {
        self.limits_of(runtime_seconds, false)
    }

    /// The same, with `on_demand` for one that runs on demand although the request asks for spot.
    pub fn limits_of(&self, runtime_seconds: u64, on_demand: bool) -> JobLimits {
        let max_runtime_seconds = runtime_seconds.min(self.job.max_runtime_seconds).max(1);
        let spot = self.job.spot && !on_demand;
        let max_wait_seconds = self.job.max_wait_seconds.filter(|_| spot).map(|user| {
            max_runtime_seconds.saturating_add(SPOT_WAIT_ALLOWANCE_SECONDS).min(user).max(max_runtime_seconds)
        });
        JobLimits { max_runtime_seconds, max_wait_seconds, keep_alive_seconds: 0 }
    }

    /// The most a job can cost under `limits`: its running time (for spot the waiting time bounds it), the grace of a
    /// stop and the upload, and its instances kept afterwards. `None` when no price is known.
    pub fn worst_case(&self, limits: JobLimits) -> Option<MicroUsd> {
        self.worst_case_on(limits, 0)
    }

    /// The same on the instances of choice `index`.
    pub fn worst_case_on(&self, limits: JobLimits, index: u32) -> Option<MicroUsd> {
        let running = limits.max_wait_seconds.unwrap_or(limits.max_runtime_seconds);
        let seconds = running.saturating_add(STOP_GRACE_SECONDS).saturating_add(UPLOAD_ALLOWANCE_SECONDS);
        let kept = self.pool_worst_case(limits, index)?;
        let index = if crate::planted!(OthersPricedAsFirst) { 0 } else { index };
        self.job.instances(index).cost(seconds).map(|running| running.plus(kept))
    }

    /// The longest running time from `least` to `most` seconds with which a job on the instances of choice `index` costs
    /// at most `amount`.
    pub fn longest_within(&self, amount: MicroUsd, (least, most): (u64, u64), index: u32) -> Option<u64> {
        let worst = |seconds| self.worst_case_on(self.limits_for(seconds), index);
        let fits = |seconds| worst(seconds).is_some_and(|worst| worst <= amount);
        if least > most || !fits(least) {
            return None;
        }
        // Costs rise with the time: halve between what fits and what does not.
        let (mut good, mut bad) = (least, most.saturating_add(1));
        while bad.saturating_sub(good) > 1 {
            let middle = good.midpoint(bad);
            if fits(middle) { good = middle } else { bad = middle }
        }
        Some(good)
    }

    /// The least cap under which one job may start, whatever it runs on: below it the request is refused. Where the best
    /// configuration is to be trained once more, two. `None` when a price is not known.
    pub fn least_cap(&self) -> Option<MicroUsd> {
        let limits = self.limits_for(self.job.max_runtime_seconds);
        let mut choices = (0..self.job.choices()).map(|index| self.worst_case_on(limits, index));
        let one = choices.try_fold(MicroUsd::ZERO, |most, worst| Some(most.max(worst?)))?;
        Some(if self.refit { one.plus(one) } else { one })
    }
}
