//! Tunings in virtual time, with the decisions of the decider itself.

use std::sync::Arc;

use curves::{Setting, Table, simulate_steps};
use serde_json::{Value, json};
use tuning::step::Step;
use tuning::unit::time::Time;
use use_cases::describe::{Place, of_loaded};
use use_cases::store::{Loaded, Tuning};
use wire::describe::TuningJob;
use wire::request::{PriceAnswer, Request};
use wire::stored::{Head, status_word};

use report::follow::Follower;

/// Recorded configurations that answer the trials.
const ROWS: u32 = 600;

/// A simulated tuning with its steps.
pub(crate) struct Simulated {
    pub(crate) tuning: Arc<Tuning>,
    pub(crate) steps: Vec<Step>,
}

/// Returns a request for so many jobs of up to so many epochs.
pub(crate) fn request(name: &str, jobs: u32, epochs: u32, changes: Value) -> Value {
    let request = json!({
        "HyperParameterTuningJobConfig": {
            "StrategyConfig": {"HyperbandStrategyConfig": {"MaxResource": epochs}},
            "RandomSeed": 1,
            "HyperParameterTuningJobObjective": {"MetricName": "validation:accuracy"},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": jobs, "MaxParallelTrainingJobs": 8},
            "ParameterRanges": {
                "ContinuousParameterRanges": [
                    {"Name": "learning_rate", "MinValue": "0.0001", "MaxValue": "1", "ScalingType": "Logarithmic"},
                    {"Name": "momentum", "MinValue": "0", "MaxValue": "0.99"},
                    {"Name": "dropout", "MinValue": "0", "MaxValue": "0.6"},
                ],
                "IntegerParameterRanges": [{"Name": "layers", "MinValue": "1", "MaxValue": "8"}],
                "CategoricalParameterRanges": [{"Name": "batch_size", "Values": ["16", "32", "64", "128"]}],
            },
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {
                "MetricDefinitions": [{"Name": "validation:accuracy", "Regex": r"accuracy=(\S+)"}],
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        },
        "Controller": {
            "MaxCostUsd": 5000,
            "InstancePricesUsdPerHour": {"ml.m5.large": 3.825},
            "EpochPattern": r"epoch (\d+)",
            "Sampler": "Sobol",
        },
    });
    wire::sample::with(wire::sample::with(wire::sample::request(name), request), changes)
}

impl Simulated {
    /// Plays a tuning.
    pub(crate) fn play(request: Value, setting: &Setting) -> Self {
        let request = Request::check(request).unwrap();
        let epochs = request.body()["HyperParameterTuningJobConfig"]["StrategyConfig"]
            ["HyperbandStrategyConfig"]["MaxResource"]
            .as_u64();
        let table = table(u32::try_from(epochs.unwrap()).unwrap());
        let mut definition = request.definition(Time::EPOCH, "000000", &PriceAnswer::default()).unwrap();
        definition.limits.max_parallel = setting.workers;
        let mut steps = Vec::new();
        let seed = definition.seed;
        simulate_steps(&table, &definition, setting, seed, &mut |step, _| steps.push(step.clone())).unwrap();
        let tuning = Tuning::new(definition, request, None);
        Self { tuning: Arc::new(tuning), steps }
    }

    /// Returns the response of Describe after the first `count` steps.
    pub(crate) fn described(&self, count: usize) -> TuningJob {
        of_loaded(&self.loaded(count), &place())
    }

    /// Returns the tuning after the first `count` steps.
    pub(crate) fn loaded(&self, count: usize) -> Loaded {
        let mut follower = Follower::from_start(Arc::clone(&self.tuning));
        for step in self.steps.iter().take(count) {
            follower.take(step);
        }
        let state = follower.state;
        let head = Head {
            step: follower.step,
            snapshot: 0,
            status: status_word(&state).to_owned(),
            at: state.now,
            deadline: None,
        };
        Loaded { tuning: Arc::clone(&self.tuning), head, state: Arc::new(state) }
    }
}

/// Returns the place of ARNs.
pub(crate) fn place() -> Place {
    Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:api")
}

/// Returns curves whose height depends on the configuration, most on `learning_rate`.
fn table(epochs: u32) -> Table {
    let space = json!({"type": "Maximize", "max_resource": epochs, "parameters": [
        {"name": "learning_rate", "min": 0.0001, "max": 1.0, "scaling": "Logarithmic"},
        {"name": "momentum", "min": 0.0, "max": 0.99},
        {"name": "dropout", "min": 0.0, "max": 0.6},
        {"name": "layers", "min": 1, "max": 8},
        {"name": "batch_size", "min": 16, "max": 128},
    ]});
    let rows: Vec<String> = (0..ROWS).map(|row| line(row, epochs).to_string()).collect();
    Table::read(rows.join("\n").as_bytes(), space.to_string().as_bytes()).unwrap()
}

/// Returns the row of one configuration. Multiples of irrational numbers spread the configurations evenly.
fn line(row: u32, epochs: u32) -> Value {
    let part = |step: f64| (f64::from(row) * step + 0.5).fract();
    let (rate, momentum, dropout, layers) =
        (part(0.618_034), part(0.754_878), part(0.569_840), part(0.819_173));
    let (layers, batch) = ((1.0 + layers * 7.0).round(), [16, 32, 64, 128][(row % 4) as usize]);
    let distance = 4.0 * rate - 2.6;
    let height = 0.93 / (1.0 + 0.35 * distance * distance) - 0.12 * (dropout - 0.3).abs() + 0.05 * momentum
        - 0.004 * (layers - 4.0).abs();
    let speed = 3.0 + 9.0 * part(0.324_718);
    let value = |epoch: u32| {
        let wobble = 0.006 * (f64::from(epoch) * 1.7 + f64::from(row)).sin();
        let value = height * (1.0 - (-f64::from(epoch) / speed).exp()) + wobble;
        (value * 1e5).round() / 1e5
    };
    json!({
        "hyperparameters": {
            "learning_rate": 10_f64.powf(-4.0 + 4.0 * rate),
            "momentum": momentum * 0.99, "dropout": dropout * 0.6, "layers": layers, "batch_size": batch,
        },
        "seconds_per_epoch": 1.0 + layers * 0.2,
        "values": (1..=epochs).map(value).collect::<Vec<_>>(),
    })
}
