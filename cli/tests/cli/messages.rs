//! The errors of refused command lines, rendered into one file, so that they can be read together.
//!
//! `HYPERBAND_UPDATE=1` writes the file.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::world::{QUICK, World};

/// Command lines that are refused. `t` has ended; nothing else exists.
const LINES: &[&str] = &[
    "run missing.json -- sh train.sh",
    "run broken.json -- sh train.sh",
    "run wrong.json -- sh train.sh",
    "run cloud.json -- sh train.sh",
    "run unpriced.json -- sh train.sh",
    "run other.json -- sh train.sh",
    "run request.json",
    "run request.json sh train.sh --quick",
    "run request.json --name u -- no-such-program",
    "run request.json --name u -- ./train.sh",
    "run request.json --name u --try x=5 -- sh train.sh",
    "run request.json --name u --try y=5 -- sh train.sh",
    "run request.json --name u --try x -- sh train.sh",
    "run request.json --name u --grace-seconds 1e9 -- sh train.sh",
    "resume u",
    "init",
    "init x=5 -o new.json",
    "init x=0..1 -o new.json",
    "init x=0.0..1.0 -o request.json --metric m --max-resource 9",
    "plan missing.json",
    "check missing.json",
    "check request.json --log missing.log",
    "check --stack local.json",
    "simulate request.json --curves missing.txt",
    "describe u",
    "watch u",
    "watch t --interval 0",
    "explain t 99",
    "explain t first",
    "logs t 99",
    "model u",
    "model t -o .hyperband",
    "cost u",
    "report u",
    "report t -o - --output json",
    "report t -o missing/report.html",
    "change t",
    "change t --max-cost 0",
    "change t --pause",
    "stop t",
    "stop",
    "delete t",
    "list --data-dir request.json",
    "describe t --data-dir nowhere",
    "submit request.json",
    "submit request.json --endpoint nonsense",
    "frobnicate",
];

fn files(world: &World) {
    world.write("broken.json", "{\n  \"HyperParameterTuningJobName\": \"t\",\n  oops\n}\n");
    let mut wrong = crate::world::request("u");
    let config = &mut wrong["HyperParameterTuningJobConfig"];
    config["Strategy"] = json!("Hyperbandit");
    config["ResourceLimits"]["MaxParallelTrainingJobs"] = json!(0);
    config["HyperParameterTuningJobObjective"]["MetricName"] = json!("loss");
    world.write_request("wrong.json", &wrong);
    let mut cloud = crate::world::request("u");
    cloud["TrainingJobDefinition"]["InputDataConfig"] = json!([
        {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://bucket/train"}}}
    ]);
    world.write_request("cloud.json", &cloud);
    let mut unpriced = crate::world::request("u");
    unpriced["Controller"]["InstancePricesUsdPerHour"] = Value::Null;
    world.write_request("unpriced.json", &unpriced);
    let mut other = crate::world::request("t");
    other["HyperParameterTuningJobConfig"]["RandomSeed"] = json!(8);
    world.write_request("other.json", &other);
    let mut local = crate::world::request("u");
    local["TrainingJobDefinition"].as_object_mut().unwrap().remove("RoleArn");
    world.write_request("local.json", &local);
}

#[test]
fn messages_equal_the_snapshot() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    files(&world);
    let mut shown = String::new();
    for line in LINES {
        let arguments: Vec<&str> = line.split(' ').collect();
        let ended = world.hyperband(&arguments);
        assert!([2, 3].contains(&ended.code), "{line}: {ended:?}");
        let _ = write!(shown, "$ hyperband {line}\n{}(exit code {})\n\n", ended.err, ended.code);
    }
    let best = world.hyperband(&["describe", "t", "--output", "json"]).json();
    let job = best["BestTrainingJob"]["TrainingJobName"].as_str().unwrap();
    let folder = world.path("").display().to_string();
    let shown =
        shown.replace(job, "JOB").replace(&folder, "FOLDER/").replace(folder.trim_end_matches('/'), "FOLDER");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages.txt");
    if std::env::var_os("HYPERBAND_UPDATE").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    assert_eq!(shown, std::fs::read_to_string(&path).unwrap(), "{}", path.display());
}
