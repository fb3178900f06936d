//! Writes the page of a simulated tuning to standard output.
//!
//! ```text
//! simulated_page JOBS EPOCHS [--all-epochs | --until SECONDS | --cap DOLLARS | --promote | --outage SECONDS]…
//!     [--describe | --live URL | --events COUNT]
//! ```
//!
//! `--all-epochs`: no trial is stopped at a rung. `--outage`: no job gets instances from that time on. Instead of the
//! page, `--describe` writes the response of Describe, and `--live` the live page of a stream. `--events` writes such a
//! stream: the document after half of the steps, and COUNT deltas.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a panic ends the program")]

use curves::Setting;
use report::Live;
use serde_json::{Value, json};

#[path = "../tests/live/simulated.rs"]
mod simulated;
use simulated::{Simulated, request};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| {
        let place = arguments.iter().position(|argument| argument == name)?;
        arguments.get(place + 1)
    };
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let number = |index: usize| arguments[index].parse::<u32>().unwrap();
    let mut changes = json!({});
    let mut merge = |change: Value| changes = wire::sample::with(changes.clone(), change);
    if has("--all-epochs") {
        // The lowest rung is the highest: each trial trains to its end.
        let epochs = number(1);
        merge(json!({"HyperParameterTuningJobConfig": {
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": epochs}}}}));
    }
    if let Some(cap) = after("--cap") {
        merge(json!({"Controller": {"MaxCostUsd": cap.parse::<f64>().unwrap()}}));
    }
    if has("--promote") {
        merge(json!({
            "HyperParameterTuningJobConfig": {"ParameterRanges": {"IntegerParameterRanges": [
                {"Name": "layers", "MinValue": "1", "MaxValue": "8"}]}},
            "TrainingJobDefinition": {
                "EnableManagedSpotTraining": true,
                "CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"},
                "StoppingCondition": {"MaxWaitTimeInSeconds": 7200},
            },
            "Controller": {"RungExecution": "Promote", "ResourceHyperParameter": "epochs"},
        }));
    }
    let setting = Setting {
        workers: 8,
        until_seconds: after("--until").map(|seconds| seconds.parse().unwrap()),
        interruptions_per_hour: if has("--promote") { 3.0 } else { 0.0 },
        capacity_outage: after("--outage").map(|seconds| seconds.parse().unwrap()..f64::INFINITY),
        noise: 0.05,
        time_jitter: 0.2,
        ..Setting::default()
    };
    let name = format!("simulated-{}-jobs", number(0));
    let played = Simulated::play(request(&name, number(0), number(1), changes), &setting);
    let described = played.described(usize::MAX);
    if has("--describe") {
        println!("{}", json!(described));
        return;
    }
    if let Some(url) = after("--live") {
        print!("{}", report::html::live(&name, url));
        return;
    }
    let mut live = Live::new(played.tuning.clone(), &played.described(0));
    if let Some(count) = after("--events") {
        let (early, late) = played.steps.split_at(played.steps.len() / 2);
        live.advance(early, &played.described(early.len()));
        print!("{}", report::html::document_event(&live.document()));
        let mut taken = early.len();
        for steps in late.chunks(late.len().div_ceil(count.parse().unwrap())) {
            taken += steps.len();
            let delta = live.advance(steps, &played.described(taken));
            print!("{}", report::html::delta_event(&delta));
        }
        return;
    }
    live.advance(&played.steps, &described);
    print!("{}", report::html::page(&live.document()));
}
