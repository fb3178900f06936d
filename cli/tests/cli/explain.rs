//! `hyperband explain`.

use serde_json::{Value, json};

use crate::world::{ENDLESS, QUICK, World, ended, full_set, signal};

/// Returns the trial and the name of the best job.
fn best(world: &World) -> (String, String) {
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let job = described["BestTrainingJob"]["TrainingJobName"].as_str().unwrap().to_owned();
    (described["BestTrainingJob"]["Controller"]["Trial"].to_string(), job)
}

#[test]
fn a_trial_is_found_by_its_number_and_by_its_job() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let (trial, job) = best(&world);
    let shown = world.hyperband(&["explain", "t", &trial]).with_code(0);
    assert!(shown.out.starts_with(&format!("trial {trial} of t, bracket ")), "{shown:?}");
    for part in
        ["parameters", "objective   validation:auc, Maximize", "TRAINING JOB", &job, "  step ", "billed"]
    {
        assert!(shown.out.contains(part), "{part} in {}", shown.out);
    }
    assert!(!shown.out.contains('\x1b'), "escape codes in a pipe");
    assert_eq!(world.hyperband(&["explain", "T", &job]).with_code(0).out, shown.out);
}

/// Every comparison of the tuning appears once, with all arrivals at that time.
#[test]
fn every_rung_of_every_trial_shows_all_arrivals() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    let mut arrived: Vec<(u64, u64, u64)> = Vec::new();
    for trial in 0..6 {
        let shown = world.hyperband(&["explain", "t", &trial.to_string(), "--output", "json"]).with_code(0);
        let shown = shown.json();
        assert!(shown["TrainingJobs"][0]["BillableSeconds"].as_u64() >= Some(1), "{shown}");
        for rung in shown["Entries"].as_array().unwrap().iter().map(|entry| &entry["Rung"]) {
            let Some(list) = rung["Arrivals"].as_array() else { continue };
            let number = |member: &str| rung[member].as_u64().unwrap();
            assert_eq!(list.len(), usize::try_from(number("Arrived")).unwrap());
            let own = &list[usize::try_from(number("Rank")).unwrap() - 1];
            assert_eq!((&own["Trial"], &own["Value"]), (&Value::from(trial), &rung["Value"]));
            assert_eq!(own["WentOn"], rung["WentOn"]);
            assert!(rung["Rule"].as_str().unwrap().starts_with(&format!("rank {} of ", number("Rank"))));
            arrived.push((number("Bracket"), number("Rung"), number("Arrived")));
        }
    }
    arrived.sort_unstable();
    let mut expected = Vec::new();
    for (bracket, shown) in (0..).zip(described["Controller"]["Brackets"].as_array().unwrap()) {
        for (rung, shown) in (0..).zip(shown["Rungs"].as_array().unwrap()) {
            expected.extend((1..=shown["Arrived"].as_u64().unwrap_or(0)).map(|nth| (bracket, rung, nth)));
        }
    }
    assert_eq!(arrived, expected);
    assert!(arrived.len() > 1);
}

#[test]
fn an_unknown_trial_is_rejected_with_the_known_ones() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    for (asked, said) in [
        ("6", "t has no trial 6: its trials are 0 to 5"),
        (
            "best",
            "invalid trial 'best': expected the number of a trial, for example 0, or the name of a training job",
        ),
        ("other-abc123-0-0-1", "the training job other-abc123-0-0-1 does not belong to t"),
    ] {
        let shown = world.hyperband(&["explain", "t", asked]).with_code(2);
        assert!(shown.err.starts_with(&format!("error: {said}")), "{shown:?}");
        assert!(shown.err.contains("hint: TRIAL is a trial number, which"), "{shown:?}");
    }
    world.hyperband(&["explain", "t"]).with_code(2);
    let shown = world.hyperband(&["explain", "x", "0"]).with_code(2);
    assert!(shown.err.contains("there is no tuning 'x' in .hyperband"), "{shown:?}");
}

#[test]
fn a_running_trial_is_explained_so_far() {
    let world = World::new(ENDLESS);
    world.write_request("request.json", &full_set("t"));
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("a trial was compared", |described| {
        described["Controller"]["Brackets"][0]["Rungs"][0]["Arrived"] == 1
    });
    let shown = world.hyperband(&["explain", "t", "0"]).with_code(0);
    assert!(
        shown.out.contains("rank 1 of 1 arrived trials; the best 1 of 1 continues, so it continued"),
        "{shown:?}"
    );
    assert!(shown.out.contains("\nnow: it is at epoch 1"), "{shown:?}");
    signal(&child, "INT");
    ended(child).with_code(130);
}

#[test]
fn configurations_of_the_command_line_follow_those_of_the_request() {
    let world = World::new(QUICK);
    let mut request = full_set("t");
    request["Controller"]["InitialConfigurations"] = json!([{"x": 0.25}]);
    world.write_request("request.json", &request);
    let tries = ["--try", "x=0.5", "--try", "x=6e-1,kind=<script>alert('x')</script>"];
    world.run(&tries).with_code(0);
    for (trial, value) in [("0", "0.25"), ("1", "0.5"), ("2", "0.6")] {
        let shown = world.hyperband(&["explain", "t", trial]).with_code(0).out;
        assert!(shown.contains(&format!("x={value}")), "{shown}");
        assert!(shown.contains("by InitialConfigurations"), "{shown}");
    }
    let again = world.run(&tries).with_code(0);
    assert!(again.err.starts_with("t has already ended"), "the same command line resumes: {again:?}");
    let other = world.run(&["--try", "x=0.5"]).with_code(2);
    assert!(other.err.contains("first difference: Controller.InitialConfigurations"), "{other:?}");
    for (tried, expected) in [
        ("x=2", "Invalid value '2' of 'x': expected a number from 0.1 to 0.9; "),
        ("y=2", "'y' has no range in ParameterRanges; remove it, add a range, or use one of x, kind"),
        (
            "kind=b",
            "Invalid value 'b' of 'kind': expected one of <script>alert('x')</script>, <script>alert('y')</script>; ",
        ),
        ("x", "invalid value 'x' for '--try <NAME=VALUE,...>': expected NAME=VALUE pairs"),
    ] {
        let ended = world.run(&["--name", "other", "--try", tried]).with_code(2);
        assert!(ended.err.contains(expected), "{ended:?}");
        let ended = world.hyperband(&["submit", "request.json", "--try", tried]).with_code(2);
        assert!(ended.err.contains(expected), "{ended:?}");
    }
}

#[test]
fn the_first_trials_have_the_initial_configurations() {
    let world = World::new(QUICK);
    let mut request = full_set("t");
    request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(3);
    request["Controller"]["InitialConfigurations"] = json!([{"x": 0.25}, {"x": "3e-1"}]);
    world.write_request("request.json", &request);
    world.run(&[]).with_code(0);
    for (trial, value) in [("0", "0.25"), ("1", "0.3")] {
        let shown = world.hyperband(&["explain", "t", trial]).with_code(0).out;
        assert!(shown.contains(&format!("x={value}")), "{shown}");
        assert!(shown.contains("by InitialConfigurations; a value that it lacks is drawn"), "{shown}");
    }
    let shown = world.hyperband(&["explain", "t", "2"]).with_code(0).out;
    assert!(!shown.contains("InitialConfigurations"), "{shown}");
    assert!(world.hyperband(&["replay", "t"]).with_code(0).out.contains("identical"));

    request["Controller"]["InitialConfigurations"] = json!([{"x": 2}]);
    world.write_request("request.json", &request);
    let checked = world.hyperband(&["check", "request.json"]).with_code(2);
    let said = "Invalid value '2' of 'x': expected a number from 0.1 to 0.9; change the value, or widen the \
                range in ParameterRanges";
    assert!(checked.err.contains(said), "{checked:?}");
    assert!(checked.err.contains("Controller.InitialConfigurations[0].x"), "{checked:?}");
}
