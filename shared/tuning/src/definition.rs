//! The definition of a tuning: its immutable part, made from the request at submission.
//!
//! It holds what the decider needs and nothing else. Fields that are only passed on to SageMaker stay in the stored
//! request.

mod job_shape;
mod new;
mod settings;
mod several;

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use hyperband::plan::{Plan, PlanError};
use hyperband::ranking::Direction;
use search::{Configuration, SamplerKind, Space, WarmStart};
use serde::{Deserialize, Serialize};

pub use self::job_shape::{Allowances, Instances, JobShape, JobTerms, OtherDefinition};
pub use self::settings::Settings;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, ChoiceId, DefinitionId, RungId, SizeId, TrialId, count};
use crate::unit::limits::{MAX_TRAINING_JOBS, SPOT_WAIT_ALLOWANCE_SECONDS, SPOT_WAIT_LEAST_SECONDS};
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// The rules version of new tunings. A tuning keeps the version under which it was submitted.
pub const RULES_VERSION: u32 = 1;

/// The parameter of the search space with the number of instances of a trial's jobs, where the search chooses it.
pub const INSTANCE_COUNT: &str = "InstanceCount";

/// The immutable definition of a tuning job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The version of the rules that decide, see [`RULES_VERSION`].
    pub rules_version: u32,
    /// The name of the tuning job.
    pub name: String,
    /// Six base-36 characters that distinguish this tuning from an earlier one with the same name.
    pub incarnation: String,
    /// When it was submitted.
    pub created: Time,
    /// The root of the seed tree.
    pub seed: u64,
    /// How resources are given to trials.
    pub strategy: Strategy,
    /// The direction of the objective metric.
    pub objective: Objective,
    /// The search space, of the first training job definition.
    pub space: Space,
    /// The further training job definitions.
    // Under the alias, earlier rows had another form: reading one fails, instead of losing definitions.
    #[serde(default, alias = "other_spaces", skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherDefinition>,
    /// How configurations are drawn.
    pub sampler: SamplerKind,
    /// The configurations of the first trials, in this order. The sampler draws the values that they lack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub initial: Vec<Configuration>,
    /// The earlier tunings from whose observations the sampler starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_start: Option<WarmStart>,
    /// Bounds and completion criteria.
    pub limits: Limits,
    /// What one training job runs on.
    pub job: JobShape,
    /// The hard cap of the whole tuning; `None` = unlimited.
    pub cap: Option<MicroUsd>,
    /// How the log gives the epoch.
    pub epochs: EpochRule,
    /// The numbers of `Controller` that only rules read.
    #[serde(flatten)]
    pub settings: Settings,
    /// Whether a job that spot capacity fails too often is retried on demand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spot_fallback: bool,
    /// Whether the best configuration is trained once more at the end, to the epoch of its best value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refit: bool,
    /// The search for a cheaper configuration; `None` = only the value counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_buy: Option<BestBuy>,
    /// When a silent job is stopped.
    #[serde(default)]
    pub silence: Silence,
    /// Whether money comes in grants from the stack's monthly cap.
    #[serde(default)]
    pub grants: bool,
}

/// The best buy: the configuration with the cheapest training among those whose value is close to the best one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BestBuy {
    /// The greatest difference from the best value, in units of the objective.
    pub tolerance: f64,
    /// Whether the refit trains it instead of the configuration with the best value.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_refitted: bool,
}

/// When a training job that logs no value of the objective is stopped: all its money would be wasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Silence {
    /// Never.
    #[default]
    Never,
    /// After a multiple of the usual time of an epoch; before any epoch is timed, after half of the running-time
    /// limit.
    Adaptive,
    /// After this many seconds.
    After(u64),
}

/// How resources are given to trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// Hyperband: trials are compared at rungs.
    Hyperband {
        /// The brackets and their rungs.
        #[serde(with = "stored_plan")]
        plan: Plan,
        /// How the rungs are executed.
        #[serde(default, skip_serializing_if = "crate::unit::is_default")]
        rungs: RungExecution,
    },
    /// Every trial runs to its own end: the strategies Bayesian, Random and Grid of a request.
    #[serde(rename = "Random")]
    Independent,
    /// Like [`Self::Independent`], but the median rule stops trials ([`hyperband::rung::Rule::Median`]).
    Median,
}

impl Strategy {
    /// Returns Hyperband with the plan for these resources and this reduction factor.
    pub fn hyperband(
        min_resource: Epochs,
        max_resource: Epochs,
        eta: u32,
        rungs: RungExecution,
    ) -> Result<Self, PlanError> {
        Ok(Self::Hyperband { plan: Plan::hyperband(min_resource.0, max_resource.0, eta)?, rungs })
    }
}

/// A plan is stored as the numbers that it is made from.
mod stored_plan {
    use std::ops::Range;

    use hyperband::plan::Plan;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    #[derive(Serialize, Deserialize)]
    struct Numbers {
        min_resource: u32,
        max_resource: u32,
        eta: u32,
        /// The brackets that the plan has; `None` = all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        brackets: Option<Range<usize>>,
        /// A release before this field had no strictness.
        #[serde(default, skip_serializing_if = "crate::unit::is_default")]
        strictness: u32,
        /// A release before this field stopped trials at every level.
        #[serde(default)]
        by_evidence: bool,
    }

    pub(crate) fn serialize<S: Serializer>(plan: &Plan, serializer: S) -> Result<S::Ok, S::Error> {
        let (min_resource, max_resource, eta) = (plan.min_resource(), plan.max_resource(), plan.eta());
        let all = Plan::hyperband(min_resource, max_resource, eta).map(|all| all.chosen());
        let brackets = Some(plan.chosen()).filter(|chosen| all.as_ref() != Ok(chosen));
        let (strictness, by_evidence) = (plan.strictness(), plan.is_by_evidence());
        Numbers { min_resource, max_resource, eta, brackets, strictness, by_evidence }.serialize(serializer)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Plan, D::Error> {
        let numbers = Numbers::deserialize(deserializer)?;
        let all = Plan::hyperband(numbers.min_resource, numbers.max_resource, numbers.eta);
        let all = all.map_err(D::Error::custom)?.with_strictness(numbers.strictness);
        let all = if numbers.by_evidence { all } else { all.without_evidence() };
        let Some(brackets) = numbers.brackets else { return Ok(all) };
        all.part(brackets).ok_or_else(|| D::Error::custom("the plan has no such brackets"))
    }
}

/// How rungs are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RungExecution {
    /// One job for all rungs: it is stopped at a rung unless its trial is among the best.
    #[default]
    Stop,
    /// One job for each rung: it trains to the level of the rung, and the best trials are started again from their
    /// checkpoints.
    Promote(Scheduling),
}

/// When a rung promotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheduling {
    /// Whenever a job can start and a waiting trial is among the best of those that have ended (ASHA).
    Asynchronous,
    /// When all trials of a round have ended (successive halving).
    Synchronous,
}

/// The direction of the objective metric.
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
    /// `MaxNumberOfTrainingJobs`: launched jobs, further attempts included.
    pub max_jobs: u32,
    /// `MaxParallelTrainingJobs`.
    pub max_parallel: u32,
    /// `MaxRuntimeInSeconds` of the tuning: wall-clock seconds since its submission.
    pub max_runtime_seconds: Option<u64>,
    /// `MaxInstances`: sum of instances over running jobs.
    pub max_instances: Option<u32>,
    /// `TargetObjectiveMetricValue`.
    pub target: Option<f64>,
    /// `MaxNumberOfTrainingJobsNotImproving`.
    pub not_improving: Option<u32>,
}

/// How the log gives the epoch: one unit of resource is one metric line on the log of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochRule {
    /// Whether the epoch is captured from the line; otherwise it is the rank of the line in its stream.
    pub captured: bool,
    /// The index of the first epoch in the log (0 or 1), when captured.
    pub base: u32,
    /// Whether `base` is only assumed: a tuning whose first logged index is 0 counts from 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_base_assumed: bool,
    /// Whether the index starts again after a restart.
    pub per_attempt: bool,
}

/// The limits sent with one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLimits {
    /// `MaxRuntimeInSeconds` to send.
    pub max_runtime_seconds: u64,
    /// `MaxWaitTimeInSeconds` to send (spot only).
    pub max_wait_seconds: Option<u64>,
    /// `KeepAlivePeriodInSeconds` to send (on demand only); 0 = none.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub keep_alive_seconds: u64,
}

impl Definition {
    /// Returns the plan of brackets and rungs.
    pub fn plan(&self) -> &Plan {
        static WITHOUT_STOPPING: LazyLock<Plan> = LazyLock::new(Plan::without_stopping);
        static MEDIAN: LazyLock<Plan> = LazyLock::new(Plan::median);
        match &self.strategy {
            Strategy::Hyperband { plan, .. } => plan,
            Strategy::Independent => &WITHOUT_STOPPING,
            Strategy::Median => &MEDIAN,
        }
    }

    /// Returns the brackets of Hyperband; `None` with other strategies.
    pub fn compared(&self) -> Option<&Plan> {
        match &self.strategy {
            Strategy::Hyperband { plan, .. } => Some(plan),
            Strategy::Independent | Strategy::Median => None,
        }
    }

    /// Returns the most trials of the search: with a grid, or several training job definitions, one for each combination.
    pub fn max_trials(&self) -> u32 {
        // Trials that never started are not counted as jobs, but their numbers are used up.
        const MOST: u32 = MAX_TRAINING_JOBS.saturating_mul(2);
        let all = || self.definitions().map(|of| self.space_of(of).cardinality());
        let combinations = || all().try_fold(0, |sum: u64, all| sum.checked_add(all?));
        let combinations = || combinations().and_then(|all| u32::try_from(all).ok());
        if self.sampler == SamplerKind::Grid || self.has_definitions() {
            combinations().unwrap_or(MOST).min(MOST)
        } else {
            MOST
        }
    }

    /// Returns the most training jobs that a report shows: retries of a grid are not part of its number.
    pub fn planned_jobs(&self) -> u32 {
        self.limits.max_jobs.min(self.max_trials().saturating_add(u32::from(self.refit)))
    }

    /// Returns the epochs of a trial that is never stopped; `None` where each trial runs to its own end.
    pub fn max_resource(&self) -> Option<Epochs> {
        self.compared().map(|_| self.largest_resource())
    }

    /// Returns the epochs of a trial that is never stopped; a number above all others where each trial runs to its own
    /// end.
    pub fn largest_resource(&self) -> Epochs {
        Epochs(self.plan().max_resource())
    }

    /// Returns how the trials of a bracket are promoted; `None` where running jobs are stopped instead.
    pub fn promotes(&self) -> Option<Scheduling> {
        match &self.strategy {
            Strategy::Hyperband { rungs: RungExecution::Promote(scheduling), .. } => Some(*scheduling),
            Strategy::Hyperband { rungs: RungExecution::Stop, .. }
            | Strategy::Independent
            | Strategy::Median => None,
        }
    }

    /// Returns the direction for the ranking.
    pub fn direction(&self) -> Direction {
        match self.objective {
            Objective::Maximize => Direction::Maximize,
            Objective::Minimize => Direction::Minimize,
        }
    }

    /// Returns the cluster size of a trial, by its configuration; with several training job definitions, that of its
    /// definition.
    pub fn size_of(&self, trial: TrialId, configuration: &Configuration) -> SizeId {
        if self.has_definitions() {
            return SizeId(self.definition_of(trial).0);
        }
        let count = configuration.get(INSTANCE_COUNT).and_then(|count| count.parse().ok());
        let size = count.and_then(|count: u32| self.job.sizes.iter().position(|size| *size == count));
        SizeId::at(size.unwrap_or(0))
    }

    /// Returns name and incarnation: the ID under which the tuning is stored.
    pub fn id(&self) -> String {
        format!("{}-{}", self.name, self.incarnation)
    }

    /// Returns the level of a rung of a bracket; beyond the last rung the largest resource.
    pub fn level(&self, bracket: BracketId, rung: RungId) -> Epochs {
        Epochs(self.plan().level(self.in_plan(bracket), rung.index()))
    }

    /// Returns the epochs that a trial has when it is promoted to a rung; 0 at the first rung.
    pub fn level_below(&self, bracket: BracketId, rung: RungId) -> Epochs {
        rung.below().map_or(Epochs::ZERO, |below| self.level(bracket, below))
    }

    /// Returns the bracket that the steps of the refit name: beyond the last, one for each training job definition.
    pub(crate) fn refit_bracket(&self, of: DefinitionId) -> BracketId {
        BracketId(count(self.brackets().count()).saturating_add(of.0))
    }

    /// Returns the last rung of a bracket, which is at the largest resource.
    pub fn last_rung(&self, bracket: BracketId) -> RungId {
        RungId::at(self.rung_count(bracket).saturating_sub(1))
    }

    /// Returns the epoch at which the job of a trial of `bracket`, started for `rung`, is done.
    pub fn goal(&self, bracket: BracketId, rung: RungId) -> Epochs {
        if self.promotes().is_some() { self.level(bracket, rung) } else { self.largest_resource() }
    }

    /// Returns the limits to send with a job of a cluster size that may run `runtime_seconds`, at most the user's limit.
    pub fn limits_for(&self, runtime_seconds: u64, size: SizeId) -> JobLimits {
        let on_demand = self.limits_on_demand(runtime_seconds, size);
        let wait = on_demand.max_runtime_seconds.clamp(SPOT_WAIT_LEAST_SECONDS, SPOT_WAIT_ALLOWANCE_SECONDS);
        self.with_wait(on_demand, wait, size)
    }

    /// Returns the limits of the longest job of a cluster size.
    pub fn longest_limits(&self, size: SizeId) -> JobLimits {
        self.limits_for(self.terms(size).max_runtime_seconds, size)
    }

    /// Returns these limits with the longest wait for spot capacity, for use when capacity lacks.
    pub(crate) fn patient(&self, limits: JobLimits, size: SizeId) -> JobLimits {
        let is_spot = limits.max_wait_seconds.is_some();
        if is_spot { self.with_wait(limits, SPOT_WAIT_ALLOWANCE_SECONDS, size) } else { limits }
    }

    fn with_wait(&self, limits: JobLimits, wait: u64, size: SizeId) -> JobLimits {
        let least = limits.max_runtime_seconds;
        let terms = self.terms(size);
        let user = terms.max_wait_seconds.filter(|_| terms.spot);
        let max_wait_seconds = user.map(|user| least.saturating_add(wait).min(user).max(least));
        JobLimits { max_wait_seconds, ..limits }
    }

    /// Like [`Definition::limits_for`], but for a job on demand, whatever the request asks for.
    pub fn limits_on_demand(&self, runtime_seconds: u64, size: SizeId) -> JobLimits {
        let max_runtime_seconds = runtime_seconds.min(self.terms(size).max_runtime_seconds).max(1);
        JobLimits { max_runtime_seconds, max_wait_seconds: None, keep_alive_seconds: 0 }
    }

    /// Returns the cost of `seconds` of a job; 0 for an unknown price, which no capped tuning has.
    pub(crate) fn cost(&self, instances: ChoiceId, seconds: u64) -> MicroUsd {
        self.job.instances(instances).cost(seconds).unwrap_or(MicroUsd::ZERO)
    }

    /// Returns the billed time that a reservation pays for: the allowance for the start-up, the limit of the job (for spot,
    /// its waiting time, which bounds it), the grace of a stop, and the allowance for the upload.
    pub fn reserved_seconds(&self, limits: JobLimits) -> u64 {
        let running = limits.max_wait_seconds.unwrap_or(limits.max_runtime_seconds);
        let around = self.job.allowances.startup_seconds.saturating_add(self.job.allowances.stop_seconds());
        running.saturating_add(around)
    }

    /// Returns what is reserved for a job under `limits`: [`Definition::reserved_seconds`] and its kept instances. `None`
    /// when the price is unknown.
    ///
    /// The service bounds neither the download nor the upload, so a bill can exceed it. The decider therefore stops a job
    /// by its own clock, and reserves more for a job that lasts longer ([`crate::decide`]).
    pub fn worst_case(&self, limits: JobLimits, instances: ChoiceId) -> Option<MicroUsd> {
        let seconds = self.reserved_seconds(limits);
        let kept = self.pool_worst_case(limits, instances)?;
        self.job.instances(instances).cost(seconds).map(|running| running.plus(kept))
    }

    /// Returns the longest running time, of the range `seconds`, with which a job costs at most `amount`.
    pub fn longest_within(
        &self,
        amount: MicroUsd,
        seconds: RangeInclusive<u64>,
        instances: ChoiceId,
    ) -> Option<u64> {
        let size = self.job.size(instances);
        let worst = |seconds| self.worst_case(self.limits_for(seconds, size), instances);
        let fits = |seconds| worst(seconds).is_some_and(|worst| worst <= amount);
        if seconds.is_empty() || !fits(*seconds.start()) {
            return None;
        }
        // Costs rise with the time, so bisect.
        let (mut good, mut bad) = (*seconds.start(), seconds.end().saturating_add(1));
        while bad.saturating_sub(good) > 1 {
            let middle = good.midpoint(bad);
            if fits(middle) { good = middle } else { bad = middle }
        }
        Some(good)
    }

    /// Returns the least cap under which one job can start on any instance choice; with a refit, two jobs. A request
    /// with a lower cap is refused. `None` when a price is unknown.
    pub fn least_cap(&self) -> Option<MicroUsd> {
        let longest = |choice| self.longest_limits(self.job.size(choice));
        let mut choices = self.job.choices().map(|choice| self.worst_case(longest(choice), choice));
        let one = choices.try_fold(MicroUsd::ZERO, |most, worst| Some(most.max(worst?)))?;
        Some(if self.refit { one.plus(one) } else { one })
    }
}
