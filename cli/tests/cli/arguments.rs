//! What training processes get from the command line: hyperparameters as arguments, slots, devices and limits.

use serde_json::json;

use crate::world::{World, request};

/// Prints its arguments, its slot and its devices, and trains one epoch.
const SHOW: &str = r#"
echo "$* | $SM_SLOT $SM_NUM_GPUS ${CUDA_VISIBLE_DEVICES-none} | $SM_USER_ARGS"
echo "[0] validation-auc:0.5"
"#;

fn first_line(world: &World, trial: &str) -> String {
    let out = world.hyperband(&["logs", "t", trial]).with_code(0).out;
    out.lines().next().unwrap().to_owned()
}

#[test]
fn hyperparameters_are_arguments_where_the_command_names_them() {
    let world = World::new(SHOW);
    let arguments = ["run", "request.json", "--jobs", "1", "--try", "x=0.5", "--", "sh", "train.sh"];
    let ended = world.hyperband(&[&arguments[..], &["--rate={x}", "{y}"]].concat()).with_code(0);
    assert!(ended.err.contains("t: up to 1 training jobs"), "{}", ended.err);
    let line = first_line(&world, "0");
    assert!(line.starts_with("--rate=0.5 {y} | 0 0 none | [\"--kind\",\"<script>"), "{line}");
    assert!(line.ends_with(",\"-x\",\"0.5\"]"), "{line}");
}

#[test]
fn all_hyperparameters_are_arguments_and_the_option_is_recorded() {
    let world = World::new(SHOW);
    world.run(&["--pass-args", "--jobs", "1", "--try", "x=0.5"]).with_code(0);
    let line = first_line(&world, "0");
    assert!(line.starts_with("--kind <script>") && line.contains("</script> -x 0.5 | "), "{line}");
    let recorded = std::fs::read_dir(world.path(".hyperband/runs")).unwrap().next().unwrap().unwrap();
    assert!(std::fs::read_to_string(recorded.path()).unwrap().contains("\"pass_args\":true"));
}

#[test]
fn processes_share_the_devices() {
    // Each job waits for the other, so both run at once.
    let world = World::new(&format!(
        "{SHOW}\n: > slot-$SM_SLOT; until [ -e slot-0 ] && [ -e slot-1 ]; do sleep 0.02; done"
    ));
    world.run(&["--devices", "0,1,2,3", "--jobs", "2"]).with_code(0);
    let own = |trial: &str| first_line(&world, trial).split(" | ").nth(1).unwrap().to_owned();
    let mut places = ["0", "1"].map(own);
    places.sort();
    assert_eq!(places, ["0 2 0,1", "1 2 2,3"]);
    let uneven = world.run(&["--fresh", "--devices", "0,1,2", "--jobs", "2"]).with_code(0);
    assert!(
        uneven.err.contains("warning: GPUs that stay idle: 1 of 3, because each of 2 processes gets 1;"),
        "{uneven:?}"
    );
    let mut body = request("t");
    body["TrainingJobDefinition"]["ResourceConfig"]["InstanceCount"] = 3.into();
    world.write_request("request.json", &body);
    let refused = world.run(&["--fresh", "--devices", "0,1"]).with_code(2);
    assert!(refused.err.contains("each training job has 3 processes, but --devices lists 2"), "{refused:?}");
}

#[test]
fn run_prints_how_many_processes_run_at_once_if_the_request_allows_more() {
    let world = World::new(SHOW);
    let limit = "at most 1 of 2 training processes at once; further jobs wait\n";
    let printed = |options: &[&str]| world.run(options).with_code(0).err.contains(limit);
    assert!(printed(&["--slots", "1", "--jobs", "2"]));
    assert!(printed(&["--devices", "0", "--jobs", "2", "--fresh"]));
    assert!(!printed(&["--slots", "2", "--jobs", "2", "--fresh"]));
}

#[test]
fn limits_of_the_command_line_replace_those_of_the_request() {
    let world = World::new(SHOW);
    let ended = world.run(&["--jobs", "2", "--max-time", "2m", "--max-cost", "3", "--output", "json"]);
    let tuning = &ended.with_code(0).json()["TuningJob"];
    let limits = &tuning["HyperParameterTuningJobConfig"]["ResourceLimits"];
    assert_eq!(
        (&limits["MaxNumberOfTrainingJobs"], &limits["MaxRuntimeInSeconds"]),
        (&2.into(), &120.into())
    );
    assert_eq!(tuning["Controller"]["CapUsd"], 3);
    for (option, value, expected) in [
        ("--max-time", "30", "expected a time of at least 2m"),
        ("--max-time", "1m", "expected a time of at least 2m"),
        ("--max-cost", "0", "expected dollars above 0"),
        ("--devices", "0,,1", "expected GPUs with commas"),
    ] {
        let refused = world.run(&[option, value]).with_code(2);
        assert!(refused.err.contains(expected), "{refused:?}");
    }
}

#[test]
fn a_channel_of_the_command_line_replaces_data_in_s3() {
    let world = World::new("echo \"[0] validation-auc:$(cat $SM_CHANNEL_TRAIN/value)\"");
    let mut body = request("t");
    let source = json!({"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/train"});
    body["TrainingJobDefinition"]["InputDataConfig"] =
        json!([{"ChannelName": "train", "DataSource": {"S3DataSource": source}}]);
    world.write_request("request.json", &body);
    let refused = world.run(&[]).with_code(2);
    assert!(refused.err.contains("add --channel train=PATH"), "{refused:?}");
    std::fs::create_dir(world.path("data")).unwrap();
    world.write("data/value", "0.625");
    let ended = world.run(&["--channel", "train=data", "--jobs", "2", "--output", "json"]).with_code(0);
    let best = &ended.json()["TuningJob"]["BestTrainingJob"];
    assert_eq!(best["FinalHyperParameterTuningJobObjectiveMetric"]["Value"], 0.625, "{best}");
    let unknown = world.run(&["--fresh", "--channel", "trian=data"]).with_code(2);
    assert!(
        unknown.err.contains("--channel trian: the request has no such channel (it has train)"),
        "{unknown:?}"
    );
    let wrong = world.run(&["--channel", "train"]).with_code(2);
    assert!(wrong.err.contains("expected NAME=PATH"), "{wrong:?}");
}
