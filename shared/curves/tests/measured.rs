//! Whole tunings on the public tables: how many trials continue, and how many slots a cap fills.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::fs;
use std::path::Path;

use curves::{Outcome, Setting, Table, simulate};
use serde_json::{Value, json};
use tuning::unit::time::Time;
use wire::request::{PriceAnswer, Request};

const SEEDS: u32 = 100;

/// Plays the example request of a table after a change.
fn played(table: &str, setting: &Setting, change: impl Fn(&mut Value)) -> Vec<Outcome> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/curves");
    let read = |end: &str| fs::read(folder.join(format!("{table}{end}"))).unwrap();
    let curves = Table::read(&read(".jsonl.gz"), &read(".space.json")).unwrap();
    let mut body: Value = serde_json::from_slice(&read(".json")).unwrap();
    change(&mut body);
    let request = Request::check(body).unwrap();
    let definition = request.definition(Time(0), "000000", &PriceAnswer::default()).unwrap();
    let play = |seed| simulate(&curves, &definition, setting, u64::from(seed)).unwrap();
    (0..SEEDS).map(play).collect()
}

fn set_jobs(body: &mut Value, jobs: u32) {
    body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(jobs);
}

fn promote(body: &mut Value) {
    body["Controller"]["RungExecution"] = json!("Promote");
    resume(body);
}

fn resume(body: &mut Value) {
    body["Controller"]["ResourceHyperParameter"] = json!("epochs");
    body["TrainingJobDefinition"]["CheckpointConfig"] = json!({"S3Uri": "s3://example-bucket/c"});
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    outcomes.iter().map(of).sum::<f64>() / f64::from(SEEDS)
}

/// Hyperband's plan (JMLR 18, Table 1) sends one trial in 14 to the end. Asynchronous stopping sends more, since it
/// does not wait for rivals.
#[test]
fn few_epochs_of_thirty_jobs_have_no_rival_and_few_trials_reach_the_end() {
    for table in ["digits-mlp", "direct-marketing"] {
        let outcomes = played(table, &Setting::default(), |body| set_jobs(body, 30));
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
        let outcomes = played(table, &Setting::default(), |body| {
            set_jobs(body, 30);
            promote(body);
        });
        let unopposed = mean(&outcomes, |outcome| outcome.epochs_unopposed);
        assert!(unopposed <= 0.25, "{table}: {unopposed} of the epochs without a rival");
        assert!(outcomes.iter().all(|outcome| outcome.trials_at_max >= 1), "{table}");
    }
}

/// A start-up takes 60 s, so a promotion waits hardly longer than the shortest job takes. Where rungs close, it waits for
/// the other trials of its round.
#[test]
fn an_asynchronous_promotion_waits_about_as_long_as_a_short_job() {
    for table in ["digits-mlp", "direct-marketing"] {
        let wait = |scheduling: &str| {
            let outcomes = played(table, &Setting::default(), |body| {
                set_jobs(body, 30);
                promote(body);
                body["Controller"]["Scheduling"] = json!(scheduling);
            });
            mean(&outcomes, |outcome| outcome.promotion_wait_seconds.unwrap())
        };
        let (asynchronous, synchronous) = (wait("Asynchronous"), wait("Synchronous"));
        assert!((20.0..90.0).contains(&asynchronous), "{table}: {asynchronous} s");
        assert!(synchronous > asynchronous, "{table}: {synchronous} s in rounds, {asynchronous} s without");
    }
}

/// A cap, in jobs with all epochs of the mean configuration (240 s), the user's limit, and what it must reach.
struct Cap {
    jobs: f64,
    limit_seconds: u64,
    slots_used: f64,
    spent: f64,
}

const fn cap(jobs: f64, limit_seconds: u64, slots_used: f64, spent: f64) -> Cap {
    Cap { jobs, limit_seconds, slots_used, spent }
}

/// Checks what tunings under a cap reach with four slots, also where the times of epochs vary.
fn check_caps(caps: &[Cap], change: impl Fn(&mut Value)) {
    for Cap { jobs, limit_seconds, slots_used, spent } in caps {
        let usd = jobs * 240.0 * 3.6 / 3_600.0;
        let change = |body: &mut Value| {
            set_jobs(body, 10_000);
            body["Controller"]["MaxCostUsd"] = json!(usd);
            body["TrainingJobDefinition"]["StoppingCondition"]["MaxRuntimeInSeconds"] = json!(limit_seconds);
            change(body);
        };
        let usual = played("digits-mlp", &Setting::default(), change);
        let jittered = played("digits-mlp", &Setting { time_jitter: 0.2, ..Setting::default() }, change);
        let slots = mean(&usual, |outcome| outcome.slots_used);
        assert!(slots >= *slots_used, "a cap of {jobs} jobs fills {slots} slots, expected {slots_used}");
        let share = mean(&usual, |outcome| outcome.cap_spent.unwrap());
        assert!(share >= *spent, "a cap of {jobs} jobs is spent to {share}, expected {spent}");
        for outcomes in [usual, jittered] {
            assert!(outcomes.iter().all(|outcome| outcome.cap_spent.unwrap() <= 1.0), "P1");
            let cut = mean(&outcomes, |outcome| f64::from(outcome.jobs_cut));
            let all = mean(&outcomes, |outcome| f64::from(outcome.training_jobs));
            assert!(cut <= 0.04 * all, "a cap of {jobs} jobs: {cut} of {all} jobs were cut");
        }
    }
}

/// `Auto` promotes where a cap is set and trials can resume.
#[test]
fn a_cap_fills_the_slots_of_promoted_trials() {
    let caps = [
        cap(10.0, 1_800, 1.9, 0.83),
        cap(20.0, 3_600, 2.7, 0.91),
        cap(40.0, 3_600, 3.3, 0.95),
        cap(80.0, 3_600, 3.6, 0.97),
    ];
    check_caps(&caps, resume);
}

/// A job for all epochs reserves the time of all epochs, although most trials stop at the first rung. So fewer slots
/// are filled than where trials are promoted.
#[test]
fn a_cap_fills_most_slots_where_running_trials_are_stopped() {
    let caps = [
        cap(10.0, 1_800, 1.4, 0.75),
        cap(20.0, 3_600, 2.2, 0.88),
        cap(40.0, 3_600, 3.0, 0.94),
        cap(80.0, 3_600, 3.5, 0.97),
    ];
    check_caps(&caps, |_| ());
}
