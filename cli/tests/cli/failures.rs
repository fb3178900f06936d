//! Failures of training jobs: each message says once what happened and where to look.

use serde_json::json;

use crate::world::{ENDLESS, World, request};

/// The job was reported as a lack of spot capacity, with a further attempt that never came.
#[test]
fn regression_a_job_at_its_maximum_runtime_says_so_once() {
    let world = World::new(ENDLESS);
    let mut short = request("t");
    short["HyperParameterTuningJobConfig"]["ResourceLimits"] =
        json!({"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1});
    short["TrainingJobDefinition"]["EnableManagedSpotTraining"] = json!(true);
    short["TrainingJobDefinition"]["StoppingCondition"] =
        json!({"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 1});
    world.write_request("request.json", &short);
    let ended = world.run(&[]).with_code(0);
    assert_eq!(
        ended.err.matches("trial 0 is over: it reached its running-time limit of 1 s").count(),
        1,
        "{ended:?}"
    );
    assert!(!ended.err.contains("MaxWaitTimeInSeconds") && !ended.err.contains("retried"), "{ended:?}");
    let explained = world.hyperband(&["explain", "t", "0"]).with_code(0);
    assert!(explained.out.contains("it reached its running-time limit of 1 s"), "{explained:?}");
}

/// Fails like a program whose module is missing, at another line in each job.
const BROKEN: &str = r#"
echo 'starting'
printf 'Traceback (most recent call last):\n  line %s, in load\n' $$ >&2
echo "ModuleNotFoundError: No module named 'xgboost'" >&2
exit 1
"#;

const CAUSE: &str = "exit code 1, ModuleNotFoundError: No module named 'xgboost'";

#[test]
fn a_tuning_whose_first_jobs_fail_for_one_cause_fails_and_groups_them() {
    let world = World::new(BROKEN);
    let mut serial = request("t");
    serial["HyperParameterTuningJobConfig"]["ResourceLimits"] =
        json!({"MaxNumberOfTrainingJobs": 3, "MaxParallelTrainingJobs": 1});
    world.write_request("request.json", &serial);
    let ended = world.run(&[]).with_code(1);
    let failed = format!("t: Failed, the first 3 training jobs failed for the same reason: {CAUSE}\n");
    assert!(ended.out.starts_with(&failed), "{ended:?}");
    let described = world.hyperband(&["describe", "t"]).with_code(0);
    let shown = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let causes = &shown["Controller"]["Failures"];
    let example = causes[0]["TrainingJobName"].as_str().unwrap();
    assert!(example.starts_with("t-") && example.ends_with("-0-0-1"), "{causes}");
    assert_eq!(causes, &json!([{"Count": 3, "Reason": CAUSE, "TrainingJobName": example}]));
    for page in [&ended.out, &described.out] {
        assert!(page.contains(&format!("\n  failures   3 of 3 jobs failed: {CAUSE}\n")), "{page}");
    }
    world.hyperband(&["replay", "t"]).with_code(0);
    // Progress points to the log of the first job of a cause, the pages to the same one.
    assert_eq!(ended.err.matches("\n         see: hyperband logs t 0\n").count(), 1, "{ended:?}");
    for text in [&ended.err, &ended.out, &described.out] {
        let path = text.split("  log: ").nth(1).unwrap().lines().next().unwrap();
        assert!(path.starts_with(&format!(".hyperband/training/jobs/{example}/logs/algo-1-")), "{path}");
        assert!(world.read(path).contains("ModuleNotFoundError"), "{path}");
    }
    assert!(described.out.ends_with("\n  see: hyperband logs t 0\n"), "{described:?}");
    let elsewhere = world.run(&["--data-dir", "a b"]).with_code(1);
    assert!(elsewhere.out.contains("  see: hyperband logs t 0 --data-dir 'a b'\n"), "{elsewhere:?}");
}

/// Only terminals are narrow. The table was cut in files and pipes too.
#[test]
fn regression_describe_cuts_no_text_outside_a_terminal() {
    let world = World::new(BROKEN);
    let mut long = request("t");
    let value = "v".repeat(250);
    long["HyperParameterTuningJobConfig"]["ParameterRanges"]["CategoricalParameterRanges"] =
        json!([{"Name": "kind", "Values": [value]}]);
    world.write_request("request.json", &long);
    world.run(&[]).with_code(1);
    let described = world.hyperband(&["describe", "t"]).with_code(0);
    let row = described.out.lines().find(|line| line.contains("  Failed  ")).unwrap();
    assert!(row.contains(&format!("kind={value} x=0.")), "{row}");
    assert!(row.contains("AlgorithmError: Traceback (most recent call last): | line "), "{row}");
    assert!(row.ends_with("| ModuleNotFoundError: No module named 'xgboost', exit code: 1"), "{row}");
    assert!(!described.out.contains('…'), "{described:?}");
}
