//! Error messages: they name the field or file and how to fix the problem.

use serde_json::json;

use crate::world::{QUICK, World, exists, request};

#[test]
fn an_invalid_request_lists_all_invalid_fields() {
    let world = World::new(QUICK);
    let mut bad = request("t");
    bad["HyperParameterTuningJobConfig"]["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"] =
        json!(0);
    bad["Controller"]["MaxCost"] = json!(4);
    world.write_request("request.json", &bad);
    let ended = world.run(&[]).with_code(2);
    assert!(ended.err.starts_with("error: the request is invalid\n"), "{ended:?}");
    for path in [
        "HyperParameterTuningJobConfig.StrategyConfig.HyperbandStrategyConfig.MaxResource",
        "Controller.MaxCost",
    ] {
        assert!(ended.err.contains(path), "{path} in {ended:?}");
    }
    assert_eq!(ended.out, "");
    assert!(!exists(&world.path(".hyperband")), "nothing is stored");
}

#[test]
fn a_cap_below_the_cost_of_one_job_is_rejected_with_the_minimum() {
    let world = World::new(QUICK);
    let mut bad = request("t");
    bad["Controller"]["MaxCostUsd"] = json!(0.001);
    world.write_request("request.json", &bad);
    let ended = world.run(&[]).with_code(2);
    assert!(ended.err.contains("expected at least"), "{ended:?}");
    assert!(world.hyperband(&["list"]).with_code(0).out.lines().count() <= 1);
}

#[test]
fn invalid_json_is_rejected_with_the_file_the_line_and_the_column() {
    let world = World::new(QUICK);
    for (text, expected) in [
        ("{\n\"a\": }", "error: request.json:2:6: expected a value; "),
        ("[]", "error: request.json:1:1: expected a JSON object; "),
        ("{\"a\":1,\n\"a\":2}", "error: request.json:2:6: duplicate key 'a' "),
        ("{\"a\": 1 // one\n\"b\": 2}", "error: request.json:2:1: expected ',' or '}'; "),
    ] {
        world.write("request.json", text);
        for options in [&[][..], &["--name", "n"][..]] {
            let ended = world.run(options).with_code(2);
            assert!(ended.err.starts_with(expected), "{ended:?}");
        }
        for command in ["check", "plan", "submit"] {
            let ended = world.hyperband(&[command, "request.json"]).with_code(2);
            assert!(ended.err.starts_with(expected), "{ended:?}");
        }
        let shown = world.hyperband(&["check", "request.json", "--output", "json"]).with_code(2).json();
        assert_eq!(shown["Code"], "SerializationException");
        assert!(expected.contains(&shown["Message"].as_str().unwrap()[..18]), "{shown}");
    }
}

#[test]
fn a_request_may_have_comments_and_a_byte_order_mark() {
    let world = World::new(QUICK);
    let request = format!("\u{feff}// A request.\n{:#} /* The end. */", request("t"));
    let request = request.replace("\"Controller\": {", "\"Controller\": { // Our own fields.");
    assert!(request.contains("Our own fields"));
    world.write("request.json", &request);
    for command in ["check", "plan"] {
        world.hyperband(&[command, "request.json"]).with_code(0);
        let mut command = world.command(&[command, "-"]);
        command.stdin(std::fs::File::open(world.path("request.json")).unwrap());
        crate::world::ended(command.spawn().unwrap()).with_code(0);
    }
    world.run(&[]).with_code(0);
}

#[test]
fn a_missing_request_file_is_named() {
    let world = World::new(QUICK);
    let ended = world.hyperband(&["run", "nothing.json", "--", "true"]).with_code(2);
    assert!(ended.err.starts_with("error: cannot read the request nothing.json: No such file"), "{ended:?}");
    assert!(ended.err.contains("\nhint: "), "{ended:?}");
}

#[test]
fn a_missing_training_program_is_rejected_before_anything_starts() {
    let world = World::new(QUICK);
    let ended = world.hyperband(&["run", "request.json", "--", "no-such-program"]).with_code(2);
    assert!(ended.err.contains("'no-such-program' is not an executable program"), "{ended:?}");
    let ended = world.hyperband(&["run", "request.json", "--", "./train.sh"]).with_code(2);
    assert!(ended.err.contains("hint: make it executable (chmod +x)"), "{ended:?}");
    assert!(!exists(&world.path(".hyperband")));
}

#[test]
fn wrong_usage_has_exit_code_2() {
    let world = World::new(QUICK);
    for arguments in [
        &["run", "request.json"][..],
        &["run"],
        &["frobnicate"],
        &["run", "request.json", "--spot-interruptions", "-1", "--", "true"],
        &["run", "request.json", "--output", "xml", "--", "true"],
        &["describe"],
        &[],
    ] {
        let ended = world.hyperband(arguments).with_code(2);
        let says_how = ["Usage: hyperband", "[possible values: text, json]", "\nhint: "];
        assert!(says_how.iter().any(|way| ended.err.contains(way)), "{arguments:?} {ended:?}");
        assert_eq!(ended.out, "");
    }
}

#[test]
fn an_unused_data_directory_has_no_tunings() {
    let world = World::new(QUICK);
    assert_eq!(world.hyperband(&["list"]).with_code(0).out, "no tuning was run in .hyperband\n");
    let listed = world.hyperband(&["list", "--output", "json"]).with_code(0).json();
    assert_eq!(listed, json!({"HyperParameterTuningJobSummaries": []}));
    for command in ["describe", "cost", "stop", "replay"] {
        let ended = world.hyperband(&[command, "t"]).with_code(2);
        assert!(ended.err.starts_with("error: no tuning was run in .hyperband\nhint: "), "{ended:?}");
    }
    assert!(!exists(&world.path(".hyperband")), "read-only commands create no files");
}

#[test]
fn an_invalid_table_file_is_a_table_error() {
    let world = World::new(QUICK);
    world.will_be_damaged();
    std::fs::create_dir(world.path(".hyperband")).unwrap();
    world.write(".hyperband/table.sqlite", &"this is no database ".repeat(100));
    let ended = world.run(&[]).with_code(3);
    assert!(ended.err.contains("table.sqlite is not a table file"), "{ended:?}");
    world.hyperband(&["list"]).with_code(3);
}

#[test]
fn styled_text_keeps_its_colors() {
    let world = World::new(QUICK);
    let mut spot = request("t");
    spot["TrainingJobDefinition"]["EnableManagedSpotTraining"] = json!(true);
    spot["TrainingJobDefinition"]["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(1_200);
    spot["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(2);
    world.write_request("request.json", &spot);
    let coloured = |arguments: &[&str]| {
        crate::world::ended(world.command(arguments).env("CLICOLOR_FORCE", "1").spawn().unwrap())
    };
    for command in ["check", "plan"] {
        let shown = coloured(&[command, "request.json"]).with_code(0);
        assert!(shown.out.contains("\x1b[33m\x1b[1mwarning:\x1b[0m"), "{shown:?}");
    }
    let shown = coloured(&["describe", "t"]).with_code(2);
    assert!(shown.err.starts_with("\x1b[31m\x1b[1merror:\x1b[0m no tuning was run"), "{shown:?}");
}
