//! Commands on a tuning that has ended.

use serde_json::Value;

use crate::world::{QUICK, World, request};

#[test]
fn an_ended_tuning_can_be_listed_described_and_replayed() {
    let world = World::new(QUICK);
    let first = world.run(&[]).with_code(0);

    let listed = world.hyperband(&["list"]).with_code(0);
    assert_eq!(listed.out.lines().count(), 2, "{listed:?}");
    assert!(listed.out.contains("Completed") && listed.out.contains("$5.0000"), "{listed:?}");
    let listed = world.hyperband(&["list", "--output", "json"]).with_code(0).json();
    assert_eq!(listed["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobName"], "t");

    let described = world.hyperband(&["describe", "T"]).with_code(0);
    for part in ["best job", "BRACKET  TRIALS  EPOCH", "HYPERPARAMETERS", "submitted"] {
        assert!(described.out.contains(part), "{part} in {described:?}");
    }
    assert!(!described.out.contains('\x1b'));
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(described["HyperParameterTuningJobStatus"], "Completed");
    assert!(described["BestTrainingJob"]["TunedHyperParameters"]["x"].is_string());

    let replayed = world.hyperband(&["replay", "t"]).with_code(0);
    assert!(
        replayed.out.ends_with(" rulings: identical\n") && replayed.out.contains(" steps, "),
        "{replayed:?}"
    );
    let replayed = world.hyperband(&["replay", "t", "--output", "json"]).with_code(0).json();
    assert_eq!((&replayed["Identical"], &replayed["Difference"]), (&Value::Bool(true), &Value::Null));

    // The same command line shows the same result and starts nothing.
    let again = world.run(&[]).with_code(0);
    assert_eq!(again.out, first.out);
    assert_eq!(
        again.err,
        "t has already ended; this is its result (to run it again, add --fresh, or --name for another name):\n"
    );
}

#[test]
fn a_name_in_use_is_rejected_for_a_different_request() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let mut other = request("t");
    other["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = 7.into();
    world.write_request("request.json", &other);
    let refused = world.run(&[]).with_code(2);
    let path = "HyperParameterTuningJobConfig.ResourceLimits.MaxNumberOfTrainingJobs";
    let expected = format!("already exists with a different request (first difference: {path})");
    assert!(refused.err.contains(&expected), "{refused:?}");
    for way in ["--fresh", "--name"] {
        assert!(refused.err.contains(way), "{way} in {refused:?}");
    }
    world.run(&["--name", "t2"]).with_code(0);
}

#[test]
fn an_unknown_name_gets_a_suggestion() {
    let world = World::new(QUICK);
    world.run(&["--name", "xgb-large"]).with_code(0);
    for command in ["describe", "cost", "stop", "replay"] {
        let ended = world.hyperband(&[command, "xbg-large"]).with_code(2);
        assert!(ended.err.contains("hint: did you mean xgb-large?"), "{ended:?}");
        let ended = world.hyperband(&[command, "something-else"]).with_code(2);
        assert!(ended.err.contains("hint: `hyperband list` shows all tunings"), "{ended:?}");
    }
    world.hyperband(&["report", "xbg-large", "-o", "r.html"]).with_code(2);
}
