//! What is wrong is said in one place, with the field and with what to do.

use serde_json::json;

use crate::world::{QUICK, World, exists, request};

#[test]
fn a_bad_request_names_every_field_that_is_wrong() {
    let world = World::new(QUICK);
    let mut bad = request("t");
    bad["HyperParameterTuningJobConfig"]["StrategyConfig"]["HyperbandStrategyConfig"]["MaxResource"] =
        json!(0);
    bad["Controller"]["MaxCost"] = json!(4);
    world.write_request("request.json", &bad);
    let ended = world.run(&[]).with_code(2);
    assert!(ended.err.starts_with("error: the request is refused\n"), "{ended:?}");
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
fn a_cap_below_one_job_is_refused_with_the_least_that_would_do() {
    let world = World::new(QUICK);
    let mut bad = request("t");
    bad["Controller"]["MaxCostUsd"] = json!(0.001);
    world.write_request("request.json", &bad);
    let ended = world.run(&[]).with_code(2);
    assert!(ended.err.contains("the least that would do is"), "{ended:?}");
    assert!(world.hyperband(&["list"]).with_code(0).out.lines().count() <= 1);
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    let world = World::new(QUICK);
    for (text, expected) in
        [("{\n\"a\": }", "line 2"), ("[]", "JSON object"), ("{\"a\":1,\"a\":2}", "'a' is given twice")]
    {
        world.write("request.json", text);
        for options in [&[][..], &["--name", "n"][..]] {
            let ended = world.run(options).with_code(2);
            assert!(ended.err.contains(expected), "{ended:?}");
        }
    }
}

#[test]
fn a_request_that_is_not_there_is_named() {
    let world = World::new(QUICK);
    let ended = world.hyperband(&["run", "nothing.json", "--", "true"]).with_code(2);
    assert!(ended.err.starts_with("error: cannot read the request nothing.json: No such file"), "{ended:?}");
    assert!(ended.err.contains("\nhint: "), "{ended:?}");
}

#[test]
fn a_command_that_is_not_there_is_refused_before_anything_starts() {
    let world = World::new(QUICK);
    let ended = world.hyperband(&["run", "request.json", "--", "no-such-program"]).with_code(2);
    assert!(ended.err.contains("'no-such-program' is not a program that can be started"), "{ended:?}");
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
fn a_folder_where_nothing_was_run_is_no_table() {
    let world = World::new(QUICK);
    assert_eq!(world.hyperband(&["list"]).with_code(0).out, "nothing was run in .hyperband yet\n");
    let listed = world.hyperband(&["list", "--output", "json"]).with_code(0).json();
    assert_eq!(listed, json!({"HyperParameterTuningJobSummaries": []}));
    for command in ["describe", "cost", "stop", "replay"] {
        let ended = world.hyperband(&[command, "t"]).with_code(2);
        assert!(ended.err.starts_with("error: nothing was run in .hyperband yet\nhint: "), "{ended:?}");
    }
    assert!(!exists(&world.path(".hyperband")), "looking makes nothing");
}

#[test]
fn a_file_that_is_no_table_is_an_error_of_the_table() {
    let world = World::new(QUICK);
    std::fs::create_dir(world.path(".hyperband")).unwrap();
    world.write(".hyperband/table.sqlite", &"this is no database ".repeat(100));
    let ended = world.run(&[]).with_code(3);
    assert!(ended.err.contains("table.sqlite is no table file"), "{ended:?}");
    world.hyperband(&["list"]).with_code(3);
}

#[test]
fn what_is_put_together_here_keeps_its_colours() {
    let world = World::new(QUICK);
    let mut spot = request("t");
    spot["TrainingJobDefinition"]["EnableManagedSpotTraining"] = json!(true);
    spot["TrainingJobDefinition"]["StoppingCondition"]["MaxWaitTimeInSeconds"] = json!(1_200);
    world.write_request("request.json", &spot);
    let coloured = |arguments: &[&str]| {
        crate::world::ended(world.command(arguments).env("CLICOLOR_FORCE", "1").spawn().unwrap())
    };
    for command in ["check", "plan"] {
        let told = coloured(&[command, "request.json"]).with_code(0);
        assert!(told.out.contains("\x1b[33m\x1b[1mwarning:\x1b[0m"), "{told:?}");
    }
    let told = coloured(&["describe", "t"]).with_code(2);
    assert!(told.err.starts_with("\x1b[31m\x1b[1merror:\x1b[0m nothing was run"), "{told:?}");
}
