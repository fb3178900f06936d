//! The document of a tuning, and its deltas while the tuning runs.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod simulated;
mod table;

use std::sync::Arc;

use curves::Setting;
use report::document::Outcome;
use report::{Document, Live};
use serde_json::json;
use use_cases::store::Tuning;

use simulated::{Simulated, request};

/// Does not print whole documents.
fn assert_same(one: &Document, other: &Document) {
    let step = other.head.step;
    assert!(one.head == other.head, "the head after step {step}");
    assert!(one.trials == other.trials, "the trials after step {step}");
    assert!(one.money == other.money, "the money after step {step}");
    assert!(one.events == other.events, "the events after step {step}");
}

/// Follows a tuning like a browser, through JSON. Compares with the document at several steps.
fn assert_followed(played: &Simulated, steps_per_delta: usize) -> Document {
    let mut live = Live::new(played.tuning.clone(), &played.described(0));
    let mut known: Document = serde_json::from_value(json!(live.document())).unwrap();
    let mut taken = 0;
    for steps in played.steps.chunks(steps_per_delta) {
        taken += steps.len();
        let delta = live.advance(steps, &played.described(taken));
        let delta = serde_json::from_value(json!(delta)).unwrap();
        assert!(known.extend(delta));
        if taken % 7 == 0 {
            assert_same(&known, &live.document());
        }
    }
    assert_same(&known, &live.document());
    // The same, read at once.
    let mut late = Live::new(played.tuning.clone(), &played.described(0));
    late.advance(&played.steps, &played.described(usize::MAX));
    assert_same(&known, &late.document());
    known
}

#[test]
fn a_document_with_its_deltas_is_the_document_read_at_the_end() {
    let setting = Setting { workers: 3, ..Setting::default() };
    let played = Simulated::play(request("t", 24, 9, json!({})), &setting);
    let document = assert_followed(&played, 3);
    assert_eq!((document.trials.len(), document.head.jobs_launched), (24, 24));
    let count = |outcome| document.trials.iter().filter(|trial| trial.outcome == outcome).count();
    assert_eq!(count(Outcome::Complete) + count(Outcome::Stopped), 24);
    let stopped = document.trials.iter().find(|trial| trial.outcome == Outcome::Stopped).unwrap();
    assert_eq!(stopped.judged.last().unwrap().continues, Some(false));
    let best = document.head.best.unwrap();
    assert_eq!(best.value, document.trials[best.trial as usize].best);
    assert_eq!(document.money.spent.last(), Some(&document.head.spent));
}

#[test]
fn promoted_trials_have_all_their_jobs_and_interruptions() {
    let setting = Setting { workers: 3, interruptions_per_hour: 30.0, ..Setting::default() };
    let changes = json!({
        "TrainingJobDefinition": {
            "EnableManagedSpotTraining": true,
            "CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"},
            "StoppingCondition": {"MaxWaitTimeInSeconds": 7200},
        },
        "Controller": {"RungExecution": "Promote", "ResourceHyperParameter": "epochs"},
    });
    let played = Simulated::play(request("t", 24, 9, changes), &setting);
    let document = assert_followed(&played, 2);
    assert!(document.head.promotes);
    let promoted = document.trials.iter().find(|trial| trial.jobs.len() > 1).unwrap();
    assert_eq!(promoted.judged[0].continues, Some(true));
    assert!(promoted.judged[0].rank.is_some());
    assert!(document.trials.iter().flat_map(|trial| &trial.jobs).any(|job| job.interruptions > 0));
    assert!(document.trials.iter().any(|trial| trial.why.as_deref() == Some("not promoted from rung 0")));
}

#[test]
fn without_a_price_the_amounts_come_from_describe() {
    let played = Simulated::play(request("t", 12, 9, json!({})), &Setting::default());
    let mut definition = played.tuning.definition.clone();
    (definition.job.rate, definition.cap) = (None, None);
    let tuning = Tuning::new(definition, played.tuning.request.clone(), None);
    let mut live = Live::new(Arc::new(tuning), &played.described(0));
    let mut taken = 0;
    for steps in played.steps.chunks(10) {
        taken += steps.len();
        live.advance(steps, &played.described(taken));
    }
    let document = live.document();
    assert!(document.money.len() > 3 && document.head.spent.0 > 0);
    assert_eq!(document.money.spent.last(), Some(&document.head.spent));
    assert!(document.trials.iter().flat_map(|trial| &trial.jobs).all(|job| job.cost.is_none()));
}

#[test]
fn regression_no_trial_of_an_ended_tuning_waits_for_its_promotion() {
    let setting = Setting { workers: 3, ..Setting::default() };
    let changes = json!({
        "HyperParameterTuningJobConfig": {"ResourceLimits": {"MaxRuntimeInSeconds": 300}},
        "TrainingJobDefinition": {"CheckpointConfig": {"S3Uri": "s3://example-bucket/checkpoints"}},
        "Controller": {"RungExecution": "Promote", "ResourceHyperParameter": "epochs"},
    });
    let played = Simulated::play(request("t", 24, 9, changes), &setting);
    let document = assert_followed(&played, 2);
    assert!(document.head.ended.is_some());
    let cut = document.trials.iter().filter(|trial| trial.outcome == Outcome::Cut);
    let waited = cut.filter(|trial| trial.judged.last().is_some_and(|last| last.rank.is_none()));
    assert!(waited.count() > 0);
    let judged = || document.trials.iter().flat_map(|trial| &trial.judged);
    assert!(judged().all(|judged| judged.continues.is_some()));
}

#[test]
fn a_delta_that_does_not_follow_changes_nothing() {
    let played = Simulated::play(request("t", 4, 3, json!({})), &Setting::default());
    let mut live = Live::new(played.tuning.clone(), &played.described(0));
    let mut known = live.document();
    live.advance(&played.steps[..1], &played.described(1));
    let missed = live.advance(&played.steps[1..2], &played.described(2));
    let before = known.clone();
    assert!(!known.extend(missed));
    assert_eq!(known, before);
}

#[test]
fn a_job_without_instances_waits() {
    let played = Simulated::play(request("t", 4, 3, json!({})), &Setting::default());
    let mut live = Live::new(played.tuning.clone(), &played.described(0));
    live.advance(&played.steps[..1], &played.described(1));
    let document = live.document();
    let outcomes: Vec<Outcome> = document.trials.iter().map(|trial| trial.outcome).collect();
    assert_eq!(outcomes, [Outcome::Queued; 4]);
    assert_eq!(document.head.starts_need, "instances");
}

#[test]
fn a_running_tuning_shows_its_curves() {
    let setting = Setting { until_seconds: Some(130.0), ..Setting::default() };
    let played = Simulated::play(request("t", 24, 9, json!({})), &setting);
    let document = assert_followed(&played, 5);
    let running = document.trials.iter().filter(|trial| trial.outcome == Outcome::Running);
    assert!(running.clone().count() > 0);
    assert!(running.clone().all(|trial| trial.jobs.last().unwrap().ended.is_none()));
    assert!(running.map(|trial| trial.curve.values.len()).sum::<usize>() > 0);
    assert!(document.head.reserved.0 > 0 && document.head.ended.is_none());
}
