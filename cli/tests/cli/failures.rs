//! Failures of training jobs: each message says what happened, once, and where to look.

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
        ended.err.matches("trial 0 is over: it reached MaxRuntimeInSeconds (1 s)").count(),
        1,
        "{ended:?}"
    );
    assert!(!ended.err.contains("MaxWaitTimeInSeconds") && !ended.err.contains("retried"), "{ended:?}");
    let explained = world.hyperband(&["explain", "t", "0"]).with_code(0);
    assert!(explained.out.contains("it reached MaxRuntimeInSeconds (1 s)"), "{explained:?}");
}
