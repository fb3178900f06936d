//! `hyperband init`: the written request is valid, without warnings, and runs.

use crate::world::{Ended, QUICK, World, exists};

const LOG: &str = "epoch 1 val_accuracy=0.5 loss: 0.3\nepoch 2 val_accuracy=0.75 loss: 0.2\n";

/// Prints nine epochs. Requires a value of each tuned hyperparameter.
const TRAIN: &str = r#"
: "$SM_HP_LR" "$SM_HP_DEPTH" "$SM_HP_ACT"
for epoch in 1 2 3 4 5 6 7 8 9; do
  echo "epoch $epoch val_accuracy=0.$((epoch + SM_HP_DEPTH)) loss: 0.2"
  sleep 0.02
done
"#;

fn init(world: &World, arguments: &[&str]) -> Ended {
    world.hyperband(&[&["init"], arguments].concat())
}

#[track_caller]
fn is_accepted_without_warnings(world: &World, arguments: &[&str]) {
    let checked = world.hyperband(&[&["check", "request.json"], arguments].concat()).with_code(0);
    assert!(checked.out.ends_with("no warnings\n"), "{checked:?}\n{}", world.read("request.json"));
    assert!(checked.err.is_empty(), "{checked:?}");
}

#[test]
fn the_written_request_is_valid_and_has_no_warnings() {
    let world = World::new(QUICK);
    for ranges in [
        &["lr=log:1e-5..1e-1", "depth=int:2..10", "dropout=0..0.5", "act=choice:relu,tanh"][..],
        &["weight_decay=1e-6..0.1"],
        &["units=int:1..5000", "momentum=0.0..1.0"],
        &["a b=int:-5..5", "\"c\\=choice:\",\\,//,/*"],
        &["batch=choice:16,32,64"],
        &["eta=linear:0.1..0.5"],
    ] {
        for options in [
            &["--metric", "accuracy", "--max-resource", "27"][..],
            &["--metric", "a \"b\"", "--goal", "minimize", "--max-resource", "1", "--jobs", "3"],
            &[
                "--metric",
                "loss",
                "--max-resource",
                "81",
                "--epoch-pattern",
                r"epoch=(\d+)",
                "--parallel",
                "2",
                "--metric-pattern",
                r"loss=([-+.\w]*\w)",
                "--resource-hyperparameter",
                "epochs",
                "--name",
                "n",
                "--jobs",
                "3",
            ],
        ] {
            let arguments = [ranges, options, &["--force"]].concat();
            let ended = init(&world, &arguments).with_code(0);
            assert!(ended.out.contains("\n  hyperband run request.json -- COMMAND\n"), "{ended:?}");
            is_accepted_without_warnings(&world, &[]);
            world.hyperband(&["plan", "request.json"]).with_code(0);
        }
    }
}

#[test]
fn a_log_proposes_metric_patterns_and_epochs() {
    let world = World::new(TRAIN);
    world.write("train.log", LOG);
    std::fs::remove_file(world.path("request.json")).unwrap();
    let ranges = ["lr=log:1e-5..1e-1", "depth=int:0..0", "act=choice:relu,tanh"];
    let refused = init(&world, &[&ranges[..], &["--log", "train.log"]].concat()).with_code(2);
    assert!(refused.err.contains("'depth=int:0..0'"), "{refused:?}");
    let ranges = ["lr=log:1e-5..1e-1", "depth=int:0..1", "act=choice:relu,tanh"];
    let options = ["--log", "train.log", "--max-resource", "9", "--jobs", "6", "--name", "t"];
    let ended = init(&world, &[&ranges[..], &options].concat()).with_code(0);
    for expected in [
        "METRIC        LINES  FIRST  LAST  EPOCHS\nval_accuracy      2    0.5  0.75  1 to 2\n",
        "metric    maximize val_accuracy\n",
        "value     val_accuracy=([-+.\\w]*\\w)\n",
        "epoch     epoch (\\d+)\n",
        "wrote request.json; next:\n\n  hyperband check request.json --log train.log\n",
    ] {
        assert!(ended.out.contains(expected), "{expected} in {}", ended.out);
    }
    is_accepted_without_warnings(&world, &["--log", "train.log"]);
    let text = world.read("request.json");
    // Each commented field can be uncommented alone.
    let uncommented =
        text.replace("// \"Checkpoint", "\"Checkpoint").replace("// \"MaxCostUsd", "\"MaxCostUsd");
    world.write("uncommented.json", &uncommented.replace("86400", "600"));
    let checked = world.hyperband(&["check", "uncommented.json", "--output", "json"]).with_code(0).json();
    assert_eq!(checked["Warnings"], serde_json::json!([]), "{checked}");
    let run = world.run(&["--output", "json"]).with_code(0).json();
    assert_eq!(
        run["TuningJob"]["TrainingJobStatusCounters"]["Completed"].as_u64().map(|count| count > 0),
        Some(true)
    );
    let again = world.run(&[]).with_code(0);
    assert!(again.err.starts_with("t has already ended"), "{again:?}");
}

#[test]
fn logs_of_common_programs_are_read() {
    let world = World::new(QUICK);
    for (log, options, max_resource) in [
        ("[0]\tvalidation-rmse:0.5\n[5]\tvalidation-rmse:0.31\n", &[][..], 6),
        ("Epoch 1/10 acc 0.8\nEpoch 2/10 acc 0.9\n", &[], 10),
        ("{\"epoch\": 0, \"loss\": 1e-1}\n{\"epoch\": 1, \"loss\": 1e-2}\n", &[], 2),
        ("pass A speed=3\npass B speed=4\npass C speed=5\n", &["--metric", "speed", "--goal", "maximize"], 3),
    ] {
        world.write("train.log", log);
        let arguments = [&["lr=0.1..0.5", "--log", "train.log", "--force"][..], options].concat();
        init(&world, &arguments).with_code(0);
        is_accepted_without_warnings(&world, &["--log", "train.log"]);
        let text = world.read("request.json");
        assert!(text.contains(&format!("\"MaxResource\": {max_resource}}}")), "{text}");
    }
}

#[test]
fn without_a_terminal_a_missing_option_is_named() {
    let world = World::new(QUICK);
    std::fs::remove_file(world.path("request.json")).unwrap();
    world.write("train.log", LOG);
    for (arguments, expected) in [
        (&[][..], "missing RANGE (a hyperparameter to tune, for example lr=log:1e-5..1e-1)"),
        (&["lr=0.1..0.5"], "missing --metric NAME"),
        (&["lr=0.1..0.5", "--metric", "speed"], "missing --goal maximize or --goal minimize"),
        (&["lr=0.1..0.5", "--metric", "loss"], "missing --max-resource N (the epochs of a full training)"),
        (
            &["lr=0.1..0.5", "--metric", "x", "--log", "train.log"],
            "no number after 'x' (the log has val_accuracy, loss)",
        ),
        (&["lr=0.1..0.5", "--log", "none.log"], "cannot read the log none.log"),
        (&["depth=2..10"], "expected int:2..10 for whole numbers"),
        (
            &["lr=0.1..0.5", "--metric", "loss", "--max-resource", "9", "--epoch-pattern", "x"],
            "Invalid EpochPattern 'x'",
        ),
        (&["a=choice:b,c", "--metric", "loss", "--max-resource", "9", "--jobs", "5"], "enough combinations"),
    ] {
        let ended = init(&world, arguments).with_code(2);
        assert!(ended.err.contains(expected), "{expected} in {ended:?}");
        assert!(!exists(&world.path("request.json")), "nothing is written");
    }
}

#[test]
fn a_file_is_overwritten_only_with_force() {
    let world = World::new(QUICK);
    let before = world.read("request.json");
    let options = ["lr=0.1..0.5", "--metric", "loss", "--max-resource", "9"];
    let ended = init(&world, &options).with_code(2);
    assert!(ended.err.starts_with("error: request.json already exists\nhint: add --force"), "{ended:?}");
    assert_eq!(world.read("request.json"), before);
    let shown = init(&world, &[&options[..], &["-o", "-"]].concat()).with_code(0);
    assert!(shown.out.starts_with("// A request") && shown.out.ends_with("}\n"), "{shown:?}");
    init(&world, &[&options[..], &["--force"]].concat()).with_code(0);
    assert_eq!(world.read("request.json"), shown.out);
}
