//! Promotion from rung to rung in the output of `run`, `describe`, `explain`, `report` and `replay`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::report::document;
use crate::world::{World, request};

/// Trains from its checkpoint to the requested epoch. A greater `x` is better.
const TO_LEVEL: &str = r#"
at="$SM_ROOT/checkpoints/at"
i=$(cat "$at" 2>/dev/null || echo 0)
while [ "$i" -lt "$SM_HP_EPOCHS" ]; do
  printf '[%d]\tvalidation-auc:0.%d%s\n' "$i" $((i + 1)) "${SM_HP_X#0.}"
  i=$((i + 1))
  echo "$i" > "$at"
  sleep 0.02
done
"#;

/// One full set of brackets in rounds: 17 trials, 22 jobs; 5 trials come to epoch 9.
fn in_rounds() -> Value {
    let mut request = request("t");
    request["HyperParameterTuningJobConfig"]["ResourceLimits"] = json!({"MaxParallelTrainingJobs": 2});
    request["TrainingJobDefinition"]["CheckpointConfig"] = json!({"S3Uri": "s3://bucket/checkpoints"});
    request["Controller"]["RungExecution"] = json!("Promote");
    request["Controller"]["Scheduling"] = json!("Synchronous");
    request["Controller"]["ResourceHyperParameter"] = json!("epochs");
    request
}

fn count(text: &str, part: &str) -> usize {
    text.lines().filter(|line| line.contains(part)).count()
}

#[test]
fn promotions_appear_in_all_outputs() {
    let world = World::new(TO_LEVEL);
    world.write_request("request.json", &in_rounds());
    let ran = world.run(&[]).with_code(0);
    assert!(ran.err.starts_with("t: up to 22 training jobs, 2 in parallel\n"), "{}", ran.err);
    assert_eq!(count(&ran.err, " job ordered in bracket "), 17, "{}", ran.err);
    assert_eq!(count(&ran.err, " and waits for a promotion: "), 9 + 3 + 5, "{}", ran.err);
    assert_eq!(count(&ran.err, " promoted from rung 0 to train to epoch 3: "), 3, "{}", ran.err);
    assert_eq!(count(&ran.err, "; the best 3 may all continue"), 3, "{}", ran.err);
    assert_eq!(count(&ran.err, " to train to epoch 9: "), 2, "{}", ran.err);
    assert_eq!(count(&ran.err, "; the best 1 may continue"), 2, "{}", ran.err);
    assert_eq!(count(&ran.err, ": job 2 ordered in bracket 0, to epoch 3, at most $"), 3, "{}", ran.err);
    assert_eq!(count(&ran.err, " is over: not promoted from rung "), 12, "{}", ran.err);
    assert!(ran.out.contains("trials     17: 5 trained to epoch 9, 12 ended earlier\n"), "{}", ran.out);
    assert!(ran.out.contains("jobs       22: 22 ran to the end\n"), "{}", ran.out);
    assert!(ran.out.contains("epochs     69 (153 without early stopping)\n"), "{}", ran.out);

    let described = world.hyperband(&["describe", "t"]).with_code(0).out;
    assert!(described.contains("BRACKET  TRIALS  EPOCH  ARRIVED  CONTINUED  WAITING\n"), "{described}");
    assert!(described.contains("      0       9      1        9          3        0\n"), "{described}");
    assert_eq!((count(&described, " 3/3 "), count(&described, " 9/9 ")), (3 + 5, 1 + 1 + 3), "{described}");

    let shown = document(&world.hyperband(&["report", "t", "-o", "-"]).with_code(0).out);
    let trials = shown["trials"].as_array().unwrap();
    assert_eq!((trials.len(), &shown["head"]["promotes"]), (17, &Value::Bool(true)));
    assert_eq!(trials.iter().map(|trial| trial["jobs"].as_array().unwrap().len()).sum::<usize>(), 22);
    let outcomes = |outcome: &str| trials.iter().filter(|trial| trial["outcome"] == outcome).count();
    assert_eq!((outcomes("complete"), outcomes("stopped")), (5, 12));
    let replayed = world.hyperband(&["replay", "t"]).with_code(0);
    assert!(replayed.out.ends_with(" rulings: identical\n"), "{replayed:?}");
}

#[test]
fn each_training_job_shows_its_rung() {
    let world = World::new(TO_LEVEL);
    world.write_request("request.json", &in_rounds());
    let result = world.run(&["--output", "json"]).with_code(0).json();
    let jobs = result["TrainingJobs"].as_array().unwrap();
    for job in jobs {
        let own = &job["Controller"];
        let level = own["Level"].as_u64().unwrap();
        assert_eq!(own["Resource"], level, "{job:#}");
        let went_on = own["Rung"].as_u64() > Some(0);
        assert_eq!(own["ResumedFrom"], if went_on { json!(level / 3) } else { Value::Null }, "{job:#}");
        assert!(own.get("RepeatedFrom").is_none(), "{job:#}");
    }
    assert_eq!(jobs.iter().filter(|job| job["Controller"]["Rung"] == 1).count(), 3 + 1);
    assert_eq!(result["TuningJob"]["Controller"]["Brackets"][0]["Rungs"][0]["Waiting"], 0);
}

/// Returns the rank of each trial of bracket 0 at `rung`, by the last values. Ties go to the lower trial number.
fn ranks(jobs: &[Value], rung: u64) -> BTreeMap<u64, usize> {
    let own =
        jobs.iter().filter(|job| job["Controller"]["Bracket"] == 0 && job["Controller"]["Rung"] == rung);
    let mut values: Vec<(f64, u64)> = own
        .map(|job| {
            let value = job["FinalHyperParameterTuningJobObjectiveMetric"]["Value"].as_f64().unwrap();
            (value, job["Controller"]["Trial"].as_u64().unwrap())
        })
        .collect();
    values.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    (1..).zip(values).map(|(rank, (_, trial))| (trial, rank)).collect()
}

#[test]
fn promotions_are_explained_with_their_numbers() {
    let world = World::new(TO_LEVEL);
    world.write_request("request.json", &in_rounds());
    let result = world.run(&["--output", "json"]).with_code(0).json();
    let jobs = result["TrainingJobs"].as_array().unwrap();
    let (first, second, third) = (ranks(jobs, 0), ranks(jobs, 1), ranks(jobs, 2));
    assert_eq!((first.len(), second.len(), third.len()), (9, 3, 1));

    let trial = *third.keys().next().unwrap();
    let shown = world.hyperband(&["explain", "t", &trial.to_string()]).with_code(0).out;
    let mut rest = shown.as_str();
    // In this order.
    for said in [
        format!("trial {trial} of t, bracket 0\n"),
        "epochs 1, 3; last epoch 9\n".to_owned(),
        "execution   Promote\n".to_owned(),
        "attempt 2: promoted to rung 1".to_owned(),
        "attempt 3: promoted to rung 2".to_owned(),
        "reached rung 0 at epoch 1 and waits for a promotion".to_owned(),
        format!(
            "promoted from rung 0 to train to epoch 3: rank {} of 9 trials that ended there; the best 3 may all \
             continue",
            first[&trial]
        ),
        "training job ordered, attempt 2: promoted to rung 1: at most ".to_owned(),
        "reached rung 1 at epoch 3 and waits for a promotion".to_owned(),
        "promoted from rung 1 to train to epoch 9: rank 1 of 3 trials that ended there; the best 1 may continue"
            .to_owned(),
        "training job ordered, attempt 3: promoted to rung 2: at most ".to_owned(),
        "the trial is over: its program completed; ".to_owned(),
    ] {
        let (_, after) = rest.split_once(&said).unwrap_or_else(|| panic!("{said:?} is not next in {shown}"));
        rest = after;
    }
    // A trial arrives at its rung with or before the bill of its job.
    let bills = shown.matches("its bill shows ").count() + shown.matches(" s billed, $").count();
    assert_eq!((second[&trial], bills), (1, 3), "{shown}");
    assert!(!shown.contains("did not resume from the trial's checkpoint"), "{shown}");

    let (left_out, rank) = first.iter().find(|(_, rank)| **rank > 3).unwrap();
    let shown = world.hyperband(&["explain", "t", &left_out.to_string()]).with_code(0).out;
    let said = format!(
        "the trial is over: not promoted from rung 0: rank {rank} of 9 trials that ended there; the best 3 may all \
         continue"
    );
    assert!(shown.contains(&said), "{said} in {shown}");
}

#[test]
fn a_program_that_ignores_its_checkpoint_is_reported() {
    // Each run prints different values.
    let count_runs = r#"runs="$SM_ROOT/checkpoints/runs"; echo x >> "$runs"; SM_HP_X="0.$(wc -l < "$runs" | tr -d ' ')${SM_HP_X#0.}""#;
    let world = World::new(&format!("{count_runs}\n{TO_LEVEL}\nrm \"$at\"\n"));
    world.write_request("request.json", &in_rounds());
    let ran = world.run(&[]).with_code(0);
    assert_eq!(
        count(
            &ran.err,
            ": the training job did not resume from the trial's checkpoint: it started at epoch 0 although the trial \
             had reached epoch 3, "
        ),
        2,
        "{}",
        ran.err
    );
    let described = world.hyperband(&["describe", "t"]).with_code(0).out;
    assert_eq!(count(&described, "restarted after epoch 0"), 5, "{described}");
    // The 69 epochs of the plan; 3 trials repeat 1 epoch, and 2 trials repeat 3.
    assert!(described.contains(&format!("epochs     {} (", 69 + 3 + 2 * 3)), "{described}");
}

/// The page's commands run a release build in the project's folder.
#[test]
fn the_commands_in_the_page_on_promotion_succeed() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(1).unwrap();
    let page = fs::read_to_string(project.join("docs/PROMOTION.md")).unwrap();
    let (_, chapter) = page.split_once("\n## Try it\n").unwrap();
    let (_, commands) = chapter.split_once("```sh\n").unwrap();
    let (commands, _) = commands.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut shown = String::new();
    for command in commands.lines() {
        let command = command.replace("target/release/hyperband", env!("CARGO_BIN_EXE_hyperband"));
        let command = command.replace(".work/", &format!("{}/", folder.path().display()));
        let output = Command::new("sh").args(["-c", &command]).current_dir(project).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        shown.push_str(&String::from_utf8(output.stdout).unwrap());
    }
    assert!(shown.contains("hello-promote: Completed, all training jobs were launched\n"), "{shown}");
    assert!(shown.contains("CONTINUED  WAITING\n"), "{shown}");
    assert!(!shown.contains("restarted after"), "{shown}");
}

/// The curves of other metrics counted their epochs from the start of each job.
#[test]
fn regression_curves_of_other_metrics_have_the_epochs_of_the_objective() {
    // Every third epoch, on a line of its own.
    let program = TO_LEVEL
        .replace("  i=$((i + 1))", "  [ $((i % 3)) -lt 2 ] || echo \"loss=$((1000 + i))\"\n  i=$((i + 1))");
    for pattern in [Some(r"\[([0-9]+)\]"), None] {
        let world = World::new(&program);
        let mut body = in_rounds();
        let definitions = &mut body["TrainingJobDefinition"]["AlgorithmSpecification"]["MetricDefinitions"];
        definitions.as_array_mut().unwrap().push(json!({"Name": "loss", "Regex": "loss=([0-9]+)"}));
        body["Controller"]["EpochPattern"] = json!(pattern);
        world.write_request("request.json", &body);
        world.run(&[]).with_code(0);
        let exported = world.hyperband(&["export", "t", "--format", "jsonl"]).with_code(0).out;
        let mut complete = 0;
        for row in exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let several = row["TrainingJobs"].as_array().unwrap().len() > 1;
            let points = row["Metrics"]["loss"].as_array().cloned().unwrap_or_default();
            // Without epochs in the log, that of a program that continued is not known.
            assert!(pattern.is_some() || !several || points.is_empty(), "{row}");
            let expected: Vec<Value> =
                points.iter().map(|point| json!([point[0], point[0].as_f64().unwrap() + 999.0])).collect();
            assert_eq!(points, expected, "{row}");
            complete += u32::from(points.iter().map(|point| &point[0]).eq([&json!(3), &json!(6), &json!(9)]));
        }
        assert!(complete > 0, "{exported}");
    }
}
