//! Whole tunings with promotions and real processes: the planned jobs run, a promoted trial trains only its missing
//! epochs, and in every bracket a trial reaches the last rung.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Fixture, request};

/// Returns a training script that trains `SM_HP_EPOCHS` epochs of `pause` seconds, writes a checkpoint after each,
/// continues from the checkpoint, and logs absolute epochs.
fn program(pause: &str) -> String {
    format!(
        "d=$SM_ROOT/checkpoints; i=$(cat $d/at 2>/dev/null || echo 0); while [ $i -lt $SM_HP_EPOCHS ]; do \
         echo \"[$i]#011validation-auc:0.$i$SM_HP_DEPTH\"; i=$((i+1)); echo $i > $d/at.new; mv $d/at.new $d/at; \
         sleep {pause}; done"
    )
}

/// One full set of brackets: rungs at 1, 3, 9 epochs for 9, 3, 1 trials; at 3, 9 for 5, 1; at 9 for 3: 22 jobs.
const JOBS: u32 = 22;

fn promoting(name: &str, scheduling: &str) -> Value {
    let mut request = request(name, JOBS);
    let controller = &mut request["Controller"];
    controller["RungExecution"] = json!("Promote");
    controller["Scheduling"] = json!(scheduling);
    controller["ResourceHyperParameter"] = json!("epochs");
    request["TrainingJobDefinition"]["CheckpointConfig"] =
        json!({"S3Uri": "s3://example-bucket/checkpoints"});
    request
}

fn on_spot(mut request: Value) -> Value {
    let definition = &mut request["TrainingJobDefinition"];
    definition["EnableManagedSpotTraining"] = json!(true);
    definition["StoppingCondition"] = json!({"MaxRuntimeInSeconds": 300, "MaxWaitTimeInSeconds": 600});
    request
}

/// A training job from the list of training jobs, with the epochs in its log, in order.
struct Trained {
    trial: u64,
    bracket: u64,
    rung: u64,
    level: u64,
    resumed_from: Option<u64>,
    repeated_from: Option<u64>,
    epochs: Vec<u64>,
    /// The number of runs, one log stream each.
    runs: usize,
}

fn trained(data: &Path, jobs: &[Value]) -> Vec<Trained> {
    let one = |job: &Value| {
        assert_eq!(job["TrainingJobStatus"], "Completed", "{job:#}");
        let folder = data.join("training/jobs").join(job["TrainingJobName"].as_str().unwrap()).join("logs");
        let mut streams: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        streams.sort();
        let text: String = streams.iter().map(|stream| fs::read_to_string(stream).unwrap()).collect();
        let messages =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["message"].clone());
        let epochs = messages.filter_map(|message| {
            let (epoch, _) = message.as_str()?.strip_prefix('[')?.split_once(']')?;
            Some(epoch.parse::<u64>().unwrap() + 1)
        });
        let own = |member: &str| job["Controller"][member].as_u64();
        assert_eq!(own("Resource"), own("Level"), "{job:#}");
        Trained {
            trial: own("Trial").unwrap(),
            bracket: own("Bracket").unwrap(),
            rung: own("Rung").unwrap(),
            level: own("Level").unwrap(),
            resumed_from: own("ResumedFrom"),
            repeated_from: own("RepeatedFrom"),
            epochs: epochs.collect(),
            runs: streams.len(),
        }
    };
    jobs.iter().map(one).collect()
}

/// Checks a tuning that ran all its jobs.
fn assert_completed(described: &Value, trained: &[Trained]) {
    assert_eq!(described["HyperParameterTuningJobStatus"], "Completed", "{described:#}");
    let controller = &described["Controller"];
    assert_eq!(controller["EndReason"], "MaxJobs", "{controller:#}");
    assert_eq!(trained.len(), usize::try_from(JOBS).unwrap());
    assert!(controller["SpentUsd"].as_f64() <= controller["CapUsd"].as_f64(), "P1: {controller}");
    assert_eq!(controller["ReservedUsd"].as_f64(), Some(0.0));
    let finished: BTreeSet<u64> =
        trained.iter().filter(|job| job.level == 9).map(|job| job.bracket).collect();
    assert_eq!(finished, BTreeSet::from([0, 1, 2]), "a trial of every bracket reaches the last rung");
    for (number, bracket) in (0..).zip(controller["Brackets"].as_array().unwrap()) {
        for (rung, shown) in (0..).zip(bracket["Rungs"].as_array().unwrap()) {
            let here = trained.iter().filter(|job| (job.bracket, job.rung) == (number, rung)).count();
            let next = trained.iter().filter(|job| (job.bracket, job.rung) == (number, rung + 1)).count();
            if shown["Resource"] == 9 {
                assert_eq!(*shown, json!({"Resource": 9}), "the last rung compares no trials");
                continue;
            }
            let expected = (json!(here), json!(next), json!(0));
            assert_eq!(
                (shown["Arrived"].clone(), shown["WentOn"].clone(), shown["Waiting"].clone()),
                expected
            );
        }
    }
}

/// Returns the epochs that a job must train when its trial continues from the previous rung.
fn missing_epochs(job: &Trained, all: &[Trained]) -> Vec<u64> {
    let below = all.iter().find(|other| other.trial == job.trial && other.rung + 1 == job.rung);
    let had = below.map_or(0, |below| below.level);
    assert_eq!(job.resumed_from, Some(had).filter(|had| *had > 0), "trial {}", job.trial);
    (had + 1..=job.level).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn synchronous_brackets_run_the_planned_jobs_and_train_no_epoch_twice() {
    let fixture = Fixture::new(&program("0.02"));
    let (described, jobs) = fixture.run(&promoting("halving", "Synchronous")).await;
    let trained = trained(&fixture.data(), &jobs);
    assert_completed(&described, &trained);
    let mut table: BTreeMap<(u64, u64), u32> = BTreeMap::new();
    for job in &trained {
        *table.entry((job.bracket, job.level)).or_default() += 1;
        assert_eq!(job.epochs, missing_epochs(job, &trained), "trial {}, rung {}", job.trial, job.rung);
    }
    let plan = [((0, 1), 9), ((0, 3), 3), ((0, 9), 1), ((1, 3), 5), ((1, 9), 1), ((2, 9), 3)];
    assert_eq!(table, BTreeMap::from(plan));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asynchronous_brackets_run_all_jobs_and_train_no_epoch_twice() {
    let fixture = Fixture::new(&program("0.02"));
    let (described, jobs) = fixture.run(&promoting("asha", "Asynchronous")).await;
    let trained = trained(&fixture.data(), &jobs);
    assert_completed(&described, &trained);
    for job in &trained {
        assert_eq!(job.epochs, missing_epochs(job, &trained), "trial {}, rung {}", job.trial, job.rung);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_interruption_of_a_promoted_trial_repeats_at_most_one_epoch() {
    for scheduling in ["Asynchronous", "Synchronous"] {
        let mut fixture = Fixture::new(&program("0.1"));
        fixture.spot_interruptions_per_hour = 7_200.0;
        fixture.grace = Duration::from_millis(500);
        let (described, jobs) = fixture.run(&on_spot(promoting("spot", scheduling))).await;
        let trained = trained(&fixture.data(), &jobs);
        assert_completed(&described, &trained);
        for job in &trained {
            let mut once = job.epochs.clone();
            once.dedup();
            assert_eq!(once, missing_epochs(job, &trained), "trial {}, rung {}", job.trial, job.rung);
            // Only the epoch logged after the last checkpoint is trained again.
            assert!(job.epochs.len() - once.len() < job.runs, "trial {}, rung {}", job.trial, job.rung);
        }
        assert!(trained.iter().any(|job| job.runs > 1), "at least one job was interrupted");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_trial_without_its_checkpoint_restarts_and_the_repeat_is_recorded() {
    // Each run logs different values: a run that repeats the last value of its trial would count as continued.
    let count = "d=$SM_ROOT/checkpoints; n=$(cat $d/runs 2>/dev/null || echo 0); echo $((n+1)) > $d/runs";
    let program = program("0.02").replace("$SM_HP_DEPTH", "$SM_HP_DEPTH$n");
    let program = format!("{count}; {program}; rm $d/at");
    let fixture = Fixture::new(&program);
    let (described, jobs) = fixture.run(&promoting("forgetful", "Asynchronous")).await;
    let trained = trained(&fixture.data(), &jobs);
    assert_completed(&described, &trained);
    for job in &trained {
        assert_eq!(job.epochs, (1..=job.level).collect::<Vec<_>>(), "trial {}", job.trial);
        assert_eq!(job.repeated_from, (job.rung > 0).then_some(0), "trial {}", job.trial);
        assert_eq!(job.resumed_from, None);
    }
    let repeats = fixture.rulings("forgetful", "ResourceRepeated").await;
    assert_eq!(
        repeats.len(),
        trained.iter().filter(|job| job.rung > 0).count(),
        "one ruling for each repeat"
    );
    let restarted = |ruling: &Value| ruling["from"] == 0 && ruling["had"].as_u64() > Some(0);
    assert!(repeats.iter().all(restarted), "{repeats:?}");
}
