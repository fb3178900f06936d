//! The tunings of a history: requests as a user would send them, and what the checkers must know of each.

mod changes;
mod clusters;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::plan::{HOUR, MINUTE};

pub use changes::Change;
pub(crate) use clusters::listed;

/// The hyperparameter that sets the epochs.
pub(crate) const RESOURCE: &str = "epochs";
/// What the price list says: micro-dollars per 1,000 GiB-hours.
pub(crate) const LISTED_KILO_GIB_HOUR: u64 = 191_781;

/// How the program tells its epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Epochs {
    /// It does not: the epoch is the line's rank.
    Ranked,
    /// In every line, whatever restarts there were.
    Absolute,
    /// In every line, from the first one after each restart.
    PerAttempt,
}

/// How a trial goes from rung to rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rungs {
    /// In one job, which is stopped at a rung unless it is among the best.
    Stop,
    /// In a job for each rung: promoted whenever it is among the best of those that have ended.
    Asynchronous,
    /// In a job for each rung: promoted when all of its round have ended.
    Synchronous,
}

/// One tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Tuning job name.
    pub name: String,
    /// The request.
    pub request: Value,
    /// When it is submitted, ms since the start.
    pub submit_at: i64,
    /// When its user stops it, ms since the start.
    pub stop_at: Option<i64>,
    /// When its user looks at it, ms since the start.
    pub looks_at: Vec<i64>,
    /// When the same request comes again, ms since the start: it is refused.
    pub submit_again_at: Option<i64>,
    /// Cap in micro-dollars.
    pub cap: Option<u64>,
    /// What its user changes while it runs.
    pub changes: Vec<Change>,
    /// Micro-dollars per 1,000 GiB-hours.
    pub kilo_gib_hour: u64,
    /// Volume of each instance.
    pub volume_gib: u32,
    /// How the program tells its epochs.
    pub epochs: Epochs,
    /// Index of the first epoch, when told.
    pub base: u32,
    /// Epochs of the program.
    pub program_epochs: u32,
    /// Most jobs.
    pub max_jobs: u32,
    /// Longest time of a job, ms.
    pub job_ms_max: i64,
    /// A job that emits nothing for so long is to be ended, ms.
    pub silence_ms: Option<i64>,
    /// The choices that it was made from; fields changed since are not in them.
    pub choices: Choices,
}

/// The choices that make a request.
#[expect(clippy::struct_excessive_bools, reason = "each is one choice of the request")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// `Some((min, max, eta))` = Hyperband.
    pub hyperband: Option<(u32, u32, u32)>,
    /// Most jobs.
    pub max_jobs: u32,
    /// Most jobs at once.
    pub max_parallel: u32,
    /// Running-time limit of a job, s.
    pub max_runtime_seconds: i64,
    /// Waiting-time limit of a spot job, s; `None` = on demand.
    pub max_wait_seconds: Option<i64>,
    /// The cap as a multiple of what one job may cost.
    pub cap_jobs: Option<f64>,
    /// Whether the request gives the price.
    pub own_price: bool,
    /// How the program tells its epochs.
    pub epochs: Epochs,
    /// Whether more is better.
    pub maximize: bool,
    /// Members of the completion criteria and of the limits.
    #[serde(deserialize_with = "named")]
    pub extra: Vec<(&'static str, Value)>,
    /// Instances of a job.
    pub instances: u32,
    /// Own further attempts.
    pub max_interruptions: u32,
    /// How a trial goes from rung to rung, where there are rungs.
    pub rungs: Rungs,
    /// Whether a job that spot capacity fails goes on on demand.
    pub spot_fallback: bool,
    /// Instances of a job on the further choices there are, in the order of preference.
    pub others: Vec<u32>,
    /// Whether the best configuration is trained once more at the end.
    pub refit: bool,
    /// Seconds for which the instances of a job on demand are kept for the next one; 0 = not at all.
    pub keep_alive_seconds: u64,
    /// How long a job on demand may wait for its instances (`MaxPendingTimeInSeconds`), where the request says so.
    #[serde(default)]
    pub max_pending_seconds: Option<i64>,
}

/// Names read back live as long as the program: there are a few, and they are read once.
fn named<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(&'static str, Value)>, D::Error> {
    let read: Vec<(String, Value)> = Vec::deserialize(from)?;
    Ok(read.into_iter().map(|(name, value)| (&*name.leak(), value)).collect())
}

impl Rungs {
    /// That of tuning `n` of `seed`.
    fn drawn(seed: u64, n: u64) -> Self {
        Dice::new(seed, "rungs", n).pick(&[Self::Stop, Self::Stop, Self::Asynchronous, Self::Synchronous])
    }
}

impl Choices {
    /// A plain Hyperband tuning.
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
            refit: false,
            keep_alive_seconds: 0,
            max_pending_seconds: None,
        }
    }

    /// The longest time of a job, s.
    fn job_seconds_max(&self) -> i64 {
        let runs = self.max_wait_seconds.unwrap_or(self.max_runtime_seconds) + 600;
        runs + self.max_pending_seconds.unwrap_or(0)
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
            // Longer than any epoch of any program takes.
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

    /// What is drawn from dice of its own, so that it moves nothing else of tuning `n` of `seed`.
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
        // Only where there is one choice, and no spot.
        let mut keep = Dice::new(seed, "keep", n);
        if self.others.is_empty() && self.max_wait_seconds.is_none() && keep.chance(0.4) {
            self.keep_alive_seconds = keep.pick(&[60, 300, 900, 3_600]);
        }
        let mut pending = Dice::new(seed, "pending", n);
        if self.max_wait_seconds.is_none() && pending.chance(0.25) {
            self.max_pending_seconds = Some(pending.pick(&[7_200, 14_400]));
        }
        // One job to search, one to train the best once more.
        self.refit = self.max_jobs > 1 && Dice::new(seed, "refit", n).chance(0.25);
    }
}

impl Case {
    /// The tunings of `seed`; `plain` = without fall-backs, a last job and changes of limits, as they were drawn before these
    /// were.
    pub(crate) fn all_drawn(seed: u64, plain: bool) -> Vec<Self> {
        let mut dice = Dice::new(seed, "cases", 0);
        // Several at once meet at the account's quotas, at the sweeper and in batches of stream records.
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
                }
                case
            })
            .collect()
    }

    /// The tuning that `choices` make.
    pub fn of(name: &str, choices: &Choices) -> Self {
        let base = u32::from(choices.epochs != Epochs::PerAttempt);
        // Without a cap a price list that is away would leave a tuning without a price, and the books with nothing to check.
        let own_price = choices.own_price || choices.cap_jobs.is_none();
        let choices = &Choices { own_price, ..choices.clone() };
        let mut case = Self {
            name: name.to_owned(),
            request: Value::Null,
            submit_at: 0,
            stop_at: None,
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
        let worst = case.dearest(choices.max_wait_seconds.unwrap_or(choices.max_runtime_seconds) + 300);
        let kept = if choices.refit { worst } else { 0 };
        // Whole cents, so that the text of the request says exactly this.
        case.cap = choices.cap_jobs.map(|jobs| (scaled(worst, jobs) + kept).div_ceil(10_000) * 10_000);
        case.request = request(&case, choices);
        case
    }

    /// Whether its trials are promoted from rung to rung in jobs of their own.
    pub(crate) fn promotes(&self) -> bool {
        self.choices.hyperband.is_some() && self.choices.rungs != Rungs::Stop
    }
}

/// `amount` times `factor`, in whole hundredths.
fn scaled(amount: u64, factor: f64) -> u64 {
    let hundredths = (1..10_000_u32).take_while(|n| f64::from(*n) <= factor * 100.0).last().unwrap_or(100);
    amount.saturating_mul(u64::from(hundredths)).div_ceil(100)
}

/// The prices of instances, and what is done for want of them and at the end.
fn priced_and_launched(controller: &mut Value, choices: &Choices) {
    if choices.own_price {
        for cluster in choices.clusters() {
            let price = micro_dollars(cluster.instance_hour);
            controller["InstancePricesUsdPerHour"][cluster.kind] = price;
        }
    }
    if choices.spot_fallback {
        controller["SpotFallback"] = json!("OnDemand");
    }
    if choices.refit {
        controller["Refit"] = json!("Best");
    }
}

/// Whole cents as an amount of dollars.
fn dollars(micro: u64) -> Value {
    let text = format!("{}.{:02}", micro / 1_000_000, micro % 1_000_000 / 10_000);
    serde_json::from_str(&text).unwrap_or_default()
}

/// An amount of dollars to the last micro-dollar.
fn micro_dollars(micro: u64) -> Value {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    serde_json::from_str(text.trim_end_matches('0')).unwrap_or_default()
}

fn request(case: &Case, choices: &Choices) -> Value {
    let extra =
        |name: &str| choices.extra.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone());
    let mut config = json!({
        "Strategy": if choices.hyperband.is_some() { "Hyperband" } else { "Random" },
        "HyperParameterTuningJobObjective": {
            "Type": if choices.maximize { "Maximize" } else { "Minimize" }, "MetricName": "auc"
        },
        "ResourceLimits": {
            "MaxNumberOfTrainingJobs": choices.max_jobs, "MaxParallelTrainingJobs": choices.max_parallel
        },
        "ParameterRanges": {
            "ContinuousParameterRanges": [{"Name": "rate", "MinValue": "0.01", "MaxValue": "1"}],
            "IntegerParameterRanges": [{"Name": "depth", "MinValue": "1", "MaxValue": "10"}],
        },
    });
    if let Some(seconds) = extra("max_runtime") {
        config["ResourceLimits"]["MaxRuntimeInSeconds"] = seconds;
    }
    if let Some(target) = extra("target") {
        config["TuningJobCompletionCriteria"]["TargetObjectiveMetricValue"] = target;
    }
    if let Some(most) = extra("not_improving") {
        config["TuningJobCompletionCriteria"]["BestObjectiveNotImproving"]["MaxNumberOfTrainingJobsNotImproving"] =
            most;
    }
    let mut controller = json!({"MaxInterruptions": choices.max_interruptions, "Sampler": "Sobol"});
    if let Some((min, max, eta)) = choices.hyperband {
        config["StrategyConfig"]["HyperbandStrategyConfig"] = json!({"MinResource": min, "MaxResource": max});
        controller["ReductionFactor"] = json!(eta);
        controller["ResourceHyperParameter"] = json!(RESOURCE);
        let scheduling = match choices.rungs {
            Rungs::Stop => None,
            Rungs::Asynchronous => Some("Asynchronous"),
            Rungs::Synchronous => Some("Synchronous"),
        };
        if let Some(scheduling) = scheduling {
            controller["RungExecution"] = json!("Promote");
            controller["Scheduling"] = json!(scheduling);
        }
    }
    if let Some(seconds) = extra("no_objective") {
        controller["NoObjectiveSeconds"] = seconds;
    }
    if let Some(most) = extra("max_instances") {
        controller["MaxInstances"] = most;
    }
    if let Some(cap) = case.cap {
        controller["MaxCostUsd"] = dollars(cap);
    }
    priced_and_launched(&mut controller, choices);
    if case.epochs != Epochs::Ranked {
        controller["EpochPattern"] = json!(r"\[epoch ([0-9]+)\]");
        controller["EpochBase"] = json!(case.base);
        let numbering = if case.epochs == Epochs::Absolute { "Absolute" } else { "PerAttempt" };
        controller["EpochNumbering"] = json!(numbering);
    }
    json!({
        "HyperParameterTuningJobName": case.name,
        "HyperParameterTuningJobConfig": config,
        "TrainingJobDefinition": job_definition(choices),
        "Controller": controller,
    })
}

fn job_definition(choices: &Choices) -> Value {
    let mut stopping = json!({"MaxRuntimeInSeconds": choices.max_runtime_seconds});
    if let Some(wait) = choices.max_wait_seconds {
        stopping["MaxWaitTimeInSeconds"] = json!(wait);
    }
    if let Some(pending) = choices.max_pending_seconds {
        stopping["MaxPendingTimeInSeconds"] = json!(pending);
    }
    let mut definition = json!({
        "AlgorithmSpecification": {
            "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1",
            "TrainingInputMode": "File",
            "MetricDefinitions": [{"Name": "auc", "Regex": r"auc=(\S+);"}],
        },
        "RoleArn": "arn:aws:iam::111122223333:role/example-training-role",
        "OutputDataConfig": {"S3OutputPath": "s3://example-bucket/out"},
        "StoppingCondition": stopping,
        "EnableManagedSpotTraining": choices.max_wait_seconds.is_some(),
        "CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"},
    });
    let resources = choices.clusters().map(
        |cluster| json!({"InstanceType": cluster.kind, "InstanceCount": cluster.count, "VolumeSizeInGB": 30}),
    );
    let resources: Vec<Value> = resources.collect();
    match resources.as_slice() {
        [one] => {
            definition["ResourceConfig"] = one.clone();
            if choices.keep_alive_seconds > 0 {
                definition["ResourceConfig"]["KeepAlivePeriodInSeconds"] = json!(choices.keep_alive_seconds);
            }
        }
        several => {
            definition["HyperParameterTuningResourceConfig"] = json!({"InstanceConfigs": several});
        }
    }
    definition
}
