//! The tunings of a history: the request that a user sends, and the facts about it that the checkers need.

mod changes;
mod clusters;
mod request;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::plan::{HOUR, MINUTE};

pub use changes::Change;
pub(crate) use clusters::listed;
use request::request;

/// Name of the hyperparameter that sets the number of epochs.
pub(crate) const RESOURCE: &str = "epochs";
/// Name of the hyperparameter that is multiplied by the number of instances where the search chooses it.
pub(crate) const SCALED: &str = "depth";
/// Volume price in the price list, in micro-dollars per 1,000 GiB-hours.
pub(crate) const LISTED_KILO_GIB_HOUR: u64 = 191_781;

/// How the program's log lines number the epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Epochs {
    /// Lines have no number: the epoch is the rank of the line.
    Ranked,
    /// Every line has the epoch, counted across restarts.
    Absolute,
    /// Every line has the epoch, counted from the last restart.
    PerAttempt,
}

/// How a trial moves from rung to rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rungs {
    /// One job per trial, which is stopped at a rung unless it is among the best.
    Stop,
    /// One job per rung: a trial is promoted as soon as it is among the best of the trials that have ended there.
    Asynchronous,
    /// One job per rung: trials are promoted when all trials of their round have ended.
    Synchronous,
}

/// What the late comparisons of a sampler that learns favor: `Prefer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Late {
    /// The request leaves it to the number of training jobs.
    ByJobs,
    /// Better values.
    Value,
    /// Fewer epochs.
    Cost,
}

/// The time limits and the capacity of the jobs of all training job definitions but the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum OwnTerms {
    /// Those of the first.
    #[default]
    Same,
    /// Half of the time limit, on demand, without kept instances.
    Shorter,
    /// Twice the time limits. Where the first is on demand, the second is on spot instances, and the third keeps instances.
    Longer,
}

/// A tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the tuning job.
    pub name: String,
    /// The request body.
    pub request: Value,
    /// Time of the submission, ms since the start.
    pub submit_at: i64,
    /// Whether it starts from an ended tuning of the history, if there is one.
    #[serde(default)]
    pub has_parent: bool,
    /// Time at which the user stops the tuning, ms since the start.
    pub stop_at: Option<i64>,
    /// When the user stops one of its running jobs, in ms since the start.
    pub stop_jobs_at: Vec<i64>,
    /// Times at which the user describes the tuning and its jobs, ms since the start.
    pub looks_at: Vec<i64>,
    /// Time at which the same request is sent again, ms since the start. That request is refused.
    pub submit_again_at: Option<i64>,
    /// Cost cap, in micro-dollars.
    pub cap: Option<u64>,
    /// Changes of limits that the user makes while the tuning runs.
    pub changes: Vec<Change>,
    /// Volume price, in micro-dollars per 1,000 GiB-hours.
    pub kilo_gib_hour: u64,
    /// Volume of each instance, in GiB.
    pub volume_gib: u32,
    /// How the program's log lines number the epochs.
    pub epochs: Epochs,
    /// Index of the first epoch in the log lines.
    pub base: u32,
    /// Number of epochs that the program trains.
    pub program_epochs: u32,
    /// Maximum number of training jobs.
    pub max_jobs: u32,
    /// Longest duration of a job, in ms.
    pub job_ms_max: i64,
    /// A job without a value of the objective for this long must be stopped, in ms.
    pub silence_ms: Option<i64>,
    /// The choices that the tuning was made from, without later changes of single fields.
    pub choices: Choices,
}

/// The choices from which a tuning and its request are made.
#[expect(clippy::struct_excessive_bools, reason = "each flag is one choice of the request")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// Hyperband's minimum resource, maximum resource and eta. `None` = random search.
    pub hyperband: Option<(u32, u32, u32)>,
    /// Maximum number of training jobs.
    pub max_jobs: u32,
    /// Maximum number of parallel jobs.
    pub max_parallel: u32,
    /// Running-time limit of a job, in seconds.
    pub max_runtime_seconds: i64,
    /// Waiting-time limit of a spot job, in seconds. `None` = on demand.
    pub max_wait_seconds: Option<i64>,
    /// The cost cap as a multiple of a job's worst case. `None` = no cap.
    pub cap_jobs: Option<f64>,
    /// Whether the request sets the instance prices.
    pub own_price: bool,
    /// How the program's log lines number the epochs.
    pub epochs: Epochs,
    /// Whether the objective is maximized.
    pub maximize: bool,
    /// Optional members of the completion criteria and of the limits.
    #[serde(deserialize_with = "named")]
    pub extra: Vec<(&'static str, Value)>,
    /// Number of instances of a job.
    pub instances: u32,
    /// `MaxInterruptions`: number of further attempts by the controller.
    pub max_interruptions: u32,
    /// How a trial moves from rung to rung. Only used with Hyperband.
    pub rungs: Rungs,
    /// Whether a trial continues on demand when spot capacity fails (`SpotFallback`).
    pub spot_fallback: bool,
    /// Instance counts of the alternative instance configurations, in the order of preference.
    pub others: Vec<u32>,
    /// The cluster sizes among which the search chooses (`InstanceCounts`), ascending. Empty = all jobs have one size.
    #[serde(default)]
    pub sizes: Vec<u32>,
    /// Number of training job definitions (`TrainingJobDefinitions`). 1 = `TrainingJobDefinition`.
    #[serde(default = "one")]
    pub definitions: u32,
    /// The time limits and the capacity of the jobs of further definitions.
    #[serde(default)]
    pub own_terms: OwnTerms,
    /// Whether the account's quotas allow only jobs of the smallest cluster size, or of the first definition.
    #[serde(default)]
    pub small_quota: bool,
    /// Whether the best configuration is trained again at the end (`Refit`).
    pub refit: bool,
    /// `KeepAlivePeriodInSeconds`: how long the instances of a job on demand are kept for the next job. 0 = not kept.
    pub keep_alive_seconds: u64,
    /// `MaxPendingTimeInSeconds`: how long a job on demand may wait for its instances. `None` = not in the request.
    #[serde(default)]
    pub max_pending_seconds: Option<i64>,
    /// `MaxCapacityWaitSeconds`. `None` = not in the request.
    #[serde(default)]
    pub max_capacity_wait_seconds: Option<u64>,
    /// Whether the sampler learns.
    #[serde(default)]
    pub model: bool,
    /// What the late comparisons favor; `None` = the request sets `ReductionFactor`, or has no rungs.
    #[serde(default)]
    pub late: Option<Late>,
    /// Number of results from elsewhere from which the search starts (`KnownResults`).
    #[serde(default)]
    pub known_results: u32,
    /// `ValueTolerance`, which the refit follows. `None` = not in the request.
    #[serde(default)]
    pub tolerance: Option<f64>,
    /// Whether the median rule stops jobs. Only used without Hyperband.
    #[serde(default)]
    pub median: bool,
    /// Whether each combination is one trial. Only used without Hyperband.
    #[serde(default)]
    pub grid: bool,
}

fn one() -> u32 {
    1
}

/// Leaks the names that it reads, so that they are `'static`. A program reads only a few names.
fn named<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(&'static str, Value)>, D::Error> {
    let read: Vec<(String, Value)> = Vec::deserialize(from)?;
    Ok(read.into_iter().map(|(name, value)| (&*name.leak(), value)).collect())
}

impl Rungs {
    /// Draws the mode of tuning `n` of `seed`.
    fn drawn(seed: u64, n: u64) -> Self {
        Dice::new(seed, "rungs", n).pick(&[Self::Stop, Self::Stop, Self::Asynchronous, Self::Synchronous])
    }
}

impl Choices {
    /// Returns the choices of a plain Hyperband tuning.
    pub fn plain() -> Self {
        Self {
            hyperband: Some((1, 9, 3)),
            max_jobs: 12,
            max_parallel: 3,
            max_runtime_seconds: 3_600,
            max_wait_seconds: None,
            cap_jobs: None,
            own_price: true,
            epochs: Epochs::Absolute,
            maximize: true,
            extra: Vec::new(),
            instances: 1,
            max_interruptions: 3,
            rungs: Rungs::Stop,
            spot_fallback: false,
            others: Vec::new(),
            sizes: Vec::new(),
            definitions: 1,
            own_terms: OwnTerms::Same,
            small_quota: false,
            refit: false,
            keep_alive_seconds: 0,
            max_pending_seconds: None,
            max_capacity_wait_seconds: None,
            model: false,
            late: None,
            known_results: 0,
            tolerance: None,
            median: false,
            grid: false,
        }
    }

    /// Returns the longest duration of a job, in seconds.
    fn job_seconds_max(&self) -> i64 {
        let runs = self.longest_seconds() + 600;
        runs + self.max_pending_seconds.unwrap_or(0)
    }

    /// Returns `Strategy`.
    fn strategy(&self) -> &'static str {
        match self.hyperband {
            Some(_) => "Hyperband",
            None if self.grid => "Grid",
            None if self.model => "Bayesian",
            None => "Random",
        }
    }

    fn drawn(dice: &mut Dice) -> Self {
        let hyperband = dice.chance(0.75).then(|| {
            let max = dice.pick(&[3, 4, 9, 10, 27]);
            (dice.count(1, 2), max, dice.count(2, 4))
        });
        let max_runtime_seconds = dice.pick(&[300, 1_800, 3_600, 7_200, 14_400]);
        let wait = max_runtime_seconds + dice.pick(&[0, 300, 1_800, 7_200]);
        let mut extra = Vec::new();
        if dice.chance(0.1) {
            extra.push(("target", json!(0.2 + 0.8 * dice.unit())));
        }
        if dice.chance(0.1) {
            extra.push(("not_improving", json!(dice.count(3, 8))));
        }
        if dice.chance(0.1) {
            extra.push(("max_runtime", json!(dice.between(900, 28_800))));
        }
        if dice.chance(0.15) {
            extra.push(("max_instances", json!(dice.count(3, 9))));
        }
        if dice.chance(0.3) {
            // Longer than any epoch.
            extra.push(("no_objective", json!(dice.pick(&[600, 900, 1_800]))));
        }
        Self {
            hyperband,
            max_jobs: dice.count(1, 24),
            max_parallel: dice.count(1, 6),
            max_runtime_seconds,
            max_wait_seconds: dice.chance(0.5).then_some(wait),
            cap_jobs: dice.chance(0.6).then(|| 1.0 + 6.0 * dice.unit()),
            own_price: dice.chance(0.5),
            epochs: dice.pick(&[Epochs::Ranked, Epochs::Absolute, Epochs::PerAttempt]),
            maximize: dice.chance(0.5),
            extra,
            instances: dice.count(1, 3),
            max_interruptions: dice.count(0, 4),
            ..Self::plain()
        }
    }

    /// Draws the choices that were added later. They have generators of their own, so the other draws of tuning `n` of
    /// `seed` stay the same.
    fn draw_more(&mut self, seed: u64, n: u64) {
        let mut fallback = Dice::new(seed, "fallback", n);
        self.spot_fallback = self.max_wait_seconds.is_some() && fallback.chance(0.4);
        if self.spot_fallback {
            self.max_interruptions = fallback.count(0, 3);
        }
        let mut others = Dice::new(seed, "others", n);
        if others.chance(0.25) {
            let count = others.count(1, clusters::OTHERS_MAX);
            self.others = (0..count).map(|_| others.count(1, 3)).collect();
        }
        // Only valid with one instance configuration on demand.
        let mut keep = Dice::new(seed, "keep", n);
        if self.others.is_empty() && self.max_wait_seconds.is_none() && keep.chance(0.4) {
            self.keep_alive_seconds = keep.pick(&[60, 300, 900, 3_600]);
        }
        let mut pending = Dice::new(seed, "pending", n);
        if self.max_wait_seconds.is_none() && pending.chance(0.25) {
            self.max_pending_seconds = Some(pending.pick(&[7_200, 14_400]));
        }
        let mut capacity = Dice::new(seed, "capacity", n);
        if capacity.chance(0.3) {
            self.max_capacity_wait_seconds = Some(capacity.pick(&[3_600, 14_400]));
        }
        self.model = Dice::new(seed, "model", n).chance(0.3);
        let mut late = Dice::new(seed, "late", n);
        if self.model && late.chance(0.5) {
            self.late = self.hyperband.map(|_| late.pick(&[Late::ByJobs, Late::Value, Late::Cost]));
            self.hyperband = self.hyperband.map(|(min, max, _)| (min, max, 2));
        }
        let mut known = Dice::new(seed, "known", n);
        if known.chance(0.2) {
            self.known_results = known.count(1, 40);
        }
        let mut tolerance = Dice::new(seed, "tolerance", n);
        if tolerance.chance(0.25) {
            self.tolerance = Some(tolerance.pick(&[0.0, 0.02, 0.1, 0.5]));
        }
        let mut independent = Dice::new(seed, "independent", n);
        self.median = self.hyperband.is_none() && independent.chance(0.5);
        self.grid = self.hyperband.is_none() && independent.chance(0.3);
        let mut allowances = Dice::new(seed, "allowances", n);
        if allowances.chance(0.2) {
            self.extra.push(("startup_allowance", json!(allowances.pick(&[60, 300, 1_200]))));
            self.extra.push(("upload_allowance", json!(allowances.pick(&[0, 120, 900]))));
        }
        // At most the least `MaxInstances`. Each job of a grid has a combination, so sizes would need more jobs.
        let mut sizes = Dice::new(seed, "sizes", n);
        if !self.grid && sizes.chance(0.2) {
            self.sizes = [[1, 2].as_slice(), &[1, 3], &[1, 2, 3], &[2]][sizes.pick(&[0, 1, 2, 3])].to_vec();
            self.small_quota = self.sizes.len() > 1 && sizes.chance(0.2);
        }
        // They exclude cluster sizes and known results, and have more instances than `MaxInstances` may allow.
        let mut definitions = Dice::new(seed, "definitions", n);
        let is_bounded = self.extra.iter().any(|(name, _)| *name == "max_instances");
        if !self.grid && !is_bounded && definitions.chance(0.15) {
            self.definitions = definitions.count(2, 3);
            (self.sizes, self.known_results) = (Vec::new(), 0);
            self.small_quota = definitions.chance(0.2);
            self.own_terms = definitions.pick(&[OwnTerms::Same, OwnTerms::Shorter, OwnTerms::Longer]);
        }
        // A refit needs one job to search and one job to train the best configuration again.
        self.refit = self.max_jobs > 1 && Dice::new(seed, "refit", n).chance(0.25);
    }
}

impl Case {
    /// Draws the tunings of `seed`. With `plain`, without the features that were added later: fallbacks, kept
    /// instances, refits and changes of limits.
    pub(crate) fn all_drawn(seed: u64, plain: bool) -> Vec<Self> {
        let mut dice = Dice::new(seed, "cases", 0);
        // Several tunings compete for the account's quotas, the sweeper and the batches of stream records.
        let count: u64 = dice.pick(&[1, 1, 1, 1, 1, 1, 2, 2, 3, 6]);
        (0..count)
            .map(|n| {
                let mut choices = Choices::drawn(&mut dice);
                if choices.hyperband.is_some() {
                    choices.rungs = Rungs::drawn(seed, n);
                }
                if !plain {
                    choices.draw_more(seed, n);
                }
                let mut case = Self::of(&format!("sim{n}"), &choices);
                case.submit_at = if n == 0 { 0 } else { dice.between(0, HOUR) };
                let mut parent = Dice::new(seed, "parent", n);
                if n > 0 && !plain && choices.definitions == 1 && !choices.grid && parent.chance(0.15) {
                    case.has_parent = true;
                    case.submit_at += parent.between(1, 8) * HOUR;
                }
                case.program_epochs = match dice.between(0, 19) {
                    0 => case.program_epochs.div_ceil(2),
                    1 => case.program_epochs * 2,
                    _ => case.program_epochs,
                };
                if dice.chance(0.15) {
                    let latest = dice.pick(&[5, 90]);
                    case.stop_at = Some(case.submit_at + dice.between(0, latest * MINUTE));
                }
                let looks = dice.pick(&[0, 0, 2, 6]);
                case.looks_at = (0..looks).map(|_| case.submit_at + dice.between(1_000, 6 * HOUR)).collect();
                let again = case.submit_at + dice.between(1, 2 * HOUR);
                case.submit_again_at = dice.chance(0.2).then_some(again);
                if !plain {
                    case.changes = Change::drawn(seed, n, &case);
                    let mut dice = Dice::new(seed, "stopped jobs", n);
                    let count = dice.pick(&[0, 0, 0, 1, 3]);
                    case.stop_jobs_at =
                        (0..count).map(|_| case.submit_at + dice.between(0, 2 * HOUR)).collect();
                }
                case
            })
            .collect()
    }

    /// Makes the tuning of `choices`.
    pub fn of(name: &str, choices: &Choices) -> Self {
        let base = u32::from(choices.epochs != Epochs::PerAttempt);
        // Without a cap, an unavailable price list leaves a tuning without prices, and the checkers could not check
        // its money.
        let own_price = choices.own_price || choices.cap_jobs.is_none();
        let choices = &Choices { own_price, ..choices.clone() };
        let mut case = Self {
            name: name.to_owned(),
            request: Value::Null,
            submit_at: 0,
            has_parent: false,
            stop_at: None,
            stop_jobs_at: Vec::new(),
            looks_at: Vec::new(),
            submit_again_at: None,
            cap: None,
            changes: Vec::new(),
            kilo_gib_hour: LISTED_KILO_GIB_HOUR,
            volume_gib: 30,
            epochs: choices.epochs,
            base,
            program_epochs: choices.hyperband.map_or(6, |(_, max, _)| max),
            max_jobs: choices.max_jobs,
            choices: choices.clone(),
            job_ms_max: choices.job_seconds_max() * 1_000,
            silence_ms: choices
                .extra
                .iter()
                .find(|(key, _)| *key == "no_objective")
                .and_then(|(_, seconds)| Some(seconds.as_i64()? * 1_000)),
        };
        let worst = case.dearest(choices.longest_seconds() + case.beyond_seconds());
        let kept = if choices.refit { worst } else { 0 };
        // Whole cents, so that the request contains exactly this amount.
        case.cap = choices.cap_jobs.map(|jobs| (scaled(worst, jobs) + kept).div_ceil(10_000) * 10_000);
        case.request = request(&case, choices);
        case
    }

    /// Returns a bound of the number of training jobs. A grid has as many retries again, a refit included.
    pub(crate) fn jobs_max(&self) -> u32 {
        (self.max_jobs + 1) * if self.choices.grid { 2 } else { 1 }
    }

    /// Returns whether trials are promoted from rung to rung in a job each.
    pub(crate) fn promotes(&self) -> bool {
        self.choices.hyperband.is_some() && self.choices.rungs != Rungs::Stop
    }
}

/// Returns `amount` times `factor`, with `factor` rounded down to hundredths.
fn scaled(amount: u64, factor: f64) -> u64 {
    let hundredths = (1..10_000_u32).take_while(|n| f64::from(*n) <= factor * 100.0).last().unwrap_or(100);
    amount.saturating_mul(u64::from(hundredths)).div_ceil(100)
}
