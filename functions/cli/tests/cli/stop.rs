//! Stopping all tunings at once.

use crate::world::{ENDLESS, QUICK, World, ended};

#[test]
fn all_active_tunings_are_ordered_to_stop() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("it runs", |described| described["TrainingJobStatusCounters"]["InProgress"] == 2);

    let refused = world.hyperband(&["stop", "--all"]).with_code(2);
    assert!(
        refused.err.starts_with("error: this would stop t, and there is no terminal to ask on\n"),
        "{refused:?}"
    );
    assert!(refused.err.contains("hint: add --yes"), "{refused:?}");
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(described["HyperParameterTuningJobStatus"], "InProgress", "nothing was ordered");

    let stopped = world.hyperband(&["stop", "--all", "--yes"]).with_code(0);
    assert_eq!(stopped.out, "t: ordered to stop\n");
    let ended = ended(child).with_code(0);
    assert!(ended.out.starts_with("t: Stopped"), "{ended:?}");
}

#[test]
fn what_is_over_is_left_and_what_is_left_is_told() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    assert_eq!(world.hyperband(&["stop", "--all", "--yes"]).with_code(0).out, "no tuning is active\n");
    // There is nothing to ask.
    assert_eq!(world.hyperband(&["stop", "--all"]).with_code(0).out, "no tuning is active\n");
    let told = world.hyperband(&["stop", "--all", "--output", "json"]).with_code(0).json();
    assert_eq!(told, serde_json::json!({"HyperParameterTuningJobSummaries": [], "Running": false}));
}

#[test]
fn an_order_without_a_run_says_when_it_takes_effect() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("it runs", |described| described["TrainingJobStatusCounters"]["InProgress"] == 2);
    crate::world::signal(&child, "KILL");
    ended(child);
    let told = world.hyperband(&["stop", "--all", "--yes"]).with_code(0);
    let expected = "t: ordered to stop\nno `hyperband run` is at work here, so an order takes effect when its command line \
                    is run again\n";
    assert_eq!(told.out, expected);
    let told = world.hyperband(&["stop", "--all", "--yes", "--output", "json"]).with_code(0).json();
    assert_eq!(told["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobStatus"], "Stopping");
    let told = world.hyperband(&["stop", "--all", "--yes"]).with_code(0);
    assert!(told.out.starts_with("t: it was stopping already\n"), "{told:?}");
}

#[test]
fn a_name_and_all_or_neither_is_an_error_with_the_way_out() {
    let world = World::new(QUICK);
    for arguments in [&["stop"][..], &["stop", "t", "--all"], &["stop", "t", "--yes"]] {
        let told = world.hyperband(arguments).with_code(2);
        assert!(told.err.contains("Usage: hyperband stop") && told.err.contains("--all"), "{told:?}");
    }
}
