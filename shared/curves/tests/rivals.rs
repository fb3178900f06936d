//! How many trials of a small tuning go on, on the public tables: they have rivals from the first job on.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;
use std::path::Path;

use curves::{Outcome, Setting, Table, simulate};
use serde_json::json;
use tuning::time::Time;
use wire::request::{PriceAnswer, Request};

const SEEDS: u32 = 100;

/// Plays the example request of a table with `jobs` training jobs.
fn played(table: &str, jobs: u32, promote: bool) -> Vec<Outcome> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/curves");
    let read = |end: &str| fs::read(folder.join(format!("{table}{end}"))).unwrap();
    let curves = Table::read(&read(".jsonl.gz"), &read(".space.json")).unwrap();
    let mut body: serde_json::Value = serde_json::from_slice(&read(".json")).unwrap();
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(jobs);
    if promote {
        body["Controller"]["RungExecution"] = json!("Promote");
        body["Controller"]["ResourceHyperParameter"] = json!("epochs");
        body["TrainingJobDefinition"]["CheckpointConfig"] = json!({"S3Uri": "s3://example-bucket/c"});
    }
    let request = Request::check(body).unwrap();
    let definition = request.definition(Time(0), "000000", &PriceAnswer::default()).unwrap();
    let play = |seed| simulate(&curves, &definition, &Setting::default(), u64::from(seed)).unwrap();
    (0..SEEDS).map(play).collect()
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / f64::from(SEEDS)
}

/// Hyperband's plan (JMLR 18, Table 1) sends one trial in 14 to the end. Asynchronous stopping sends more, since it
/// does not wait for rivals.
#[test]
fn few_epochs_of_thirty_jobs_have_no_rival_and_few_trials_reach_the_end() {
    for table in ["digits-mlp", "direct-marketing"] {
        let outcomes = played(table, 30, false);
        let unopposed = mean(&outcomes, |outcome| outcome.epochs_unopposed);
        let at_max = mean(&outcomes, |outcome| f64::from(outcome.trials_at_max));
        assert!(unopposed <= 0.25, "{table}: {unopposed} of the epochs without a rival");
        assert!((1.0..=5.0).contains(&at_max), "{table}: {at_max} trials at the maximum");
        assert!(outcomes.iter().all(|outcome| outcome.training_jobs == 30));
    }
}

#[test]
fn few_epochs_of_promoted_trials_have_no_rival() {
    for table in ["digits-mlp", "direct-marketing"] {
        let outcomes = played(table, 30, true);
        let unopposed = mean(&outcomes, |outcome| outcome.epochs_unopposed);
        assert!(unopposed <= 0.25, "{table}: {unopposed} of the epochs without a rival");
        assert!(outcomes.iter().all(|outcome| outcome.trials_at_max >= 1), "{table}");
    }
}
