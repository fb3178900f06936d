//! `hyperband stop --all`.

use port_tests::memory::MemoryTable;
use serde_json::json;
use stack_api::{Stack, response};
use use_cases::ports::table::{Condition, Query, Table, Write};
use wire::item::Item;
use wire::stored::{ACTIVE, active_id, head_key, meta_key};

use crate::world::{ENDLESS, QUICK, World, ended};

#[test]
fn stop_all_stops_all_active_tunings() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("it runs", |described| described["TrainingJobStatusCounters"]["InProgress"] == 2);

    let refused = world.hyperband(&["stop", "--all"]).with_code(2);
    assert!(
        refused
            .err
            .starts_with("error: this would stop t, and there is no terminal to ask for confirmation\n"),
        "{refused:?}"
    );
    assert!(refused.err.contains("hint: add --yes"), "{refused:?}");
    let described = world.hyperband(&["describe", "t", "--output", "json"]).with_code(0).json();
    assert_eq!(described["HyperParameterTuningJobStatus"], "InProgress", "nothing was stopped");

    let stopped = world.hyperband(&["stop", "--all", "--yes"]).with_code(0);
    assert_eq!(stopped.out, "t: stopping\n");
    let ended = ended(child).with_code(0);
    assert!(ended.out.starts_with("t: Stopped"), "{ended:?}");
}

#[test]
fn stop_all_without_active_tunings_does_nothing() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    assert_eq!(world.hyperband(&["stop", "--all", "--yes"]).with_code(0).out, "no tuning is active\n");
    // Without active tunings, no confirmation is needed.
    assert_eq!(world.hyperband(&["stop", "--all"]).with_code(0).out, "no tuning is active\n");
    let shown = world.hyperband(&["stop", "--all", "--output", "json"]).with_code(0).json();
    assert_eq!(shown, serde_json::json!({"HyperParameterTuningJobSummaries": [], "Running": false}));
}

#[test]
fn a_stop_without_an_active_run_says_when_it_takes_effect() {
    let world = World::new(ENDLESS);
    let child = world.start(&["--grace-seconds", "1"]);
    world.until_described("it runs", |described| described["TrainingJobStatusCounters"]["InProgress"] == 2);
    crate::world::signal(&child, "KILL");
    ended(child);
    let shown = world.hyperband(&["stop", "--all", "--yes"]).with_code(0);
    let expected = "t: stopping\nno `hyperband run` is active, so a stop takes effect when you continue its tuning: hyperband resume NAME\n";
    assert_eq!(shown.out, expected);
    let shown = world.hyperband(&["stop", "--all", "--yes", "--output", "json"]).with_code(0).json();
    assert_eq!(shown["HyperParameterTuningJobSummaries"][0]["HyperParameterTuningJobStatus"], "Stopping");
    let shown = world.hyperband(&["stop", "--all", "--yes"]).with_code(0);
    assert!(shown.out.starts_with("t: already stopping\n"), "{shown:?}");
}

#[test]
fn stop_needs_either_a_name_or_all() {
    let world = World::new(QUICK);
    for arguments in [&["stop"][..], &["stop", "t", "--all"], &["stop", "t", "--yes"]] {
        let shown = world.hyperband(arguments).with_code(2);
        assert!(shown.err.contains("Usage: hyperband stop") && shown.err.contains("--all"), "{shown:?}");
    }
}

#[test]
fn regression_an_unreadable_tuning_does_not_prevent_the_stop_of_the_others() {
    let world = World::new(QUICK);
    world.will_be_damaged();
    let stack = world.stack();
    for name in ["a", "b", "c"] {
        world.at(&stack, &["submit", "request.json", "--name", name]).with_code(0);
    }
    let table = world.table();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let active = table.query(&Query::prefix(ACTIVE, "", 10)).await.unwrap().items;
        let damaged = active.iter().filter_map(active_id).find(|id| id.starts_with("b-")).unwrap();
        table.write(Write::Put(Item::new(head_key(damaged)), Condition::Always)).await.unwrap();
    });
    let shown = world.hyperband(&["stop", "--all", "--yes"]).with_code(3);
    assert!(shown.out.starts_with("a: stopping\nc: stopping\n"), "{shown:?}");
    assert!(shown.err.starts_with("error: cannot stop b: unreadable row "), "{shown:?}");
}

/// A newer release may have written the tuning.
#[test]
fn regression_a_tuning_with_an_unreadable_definition_can_be_stopped_by_its_name() {
    let world = World::new(QUICK);
    world.will_be_damaged();
    let stack = world.stack();
    world.at(&stack, &["submit", "request.json"]).with_code(0);
    let table = world.table();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let active = table.query(&Query::prefix(ACTIVE, "", 10)).await.unwrap().items;
        let id = active.iter().find_map(active_id).unwrap();
        table.write(Write::Put(Item::new(meta_key(id)), Condition::Always)).await.unwrap();
    });
    let shown = world.hyperband(&["describe", "t"]).with_code(3);
    assert!(shown.err.starts_with("error: unreadable row "), "{shown:?}");
    let stopped = world.hyperband(&["stop", "t"]).with_code(0);
    assert!(stopped.out.starts_with("stop of t requested"), "{stopped:?}");
}

#[test]
fn regression_a_failed_page_does_not_prevent_the_stop_of_the_other_tunings() {
    let world = World::new(QUICK);
    let stack = Stack::with_rule(MemoryTable::default(), |request, pass| {
        let one = json!({
            "HyperParameterTuningJobName": "a", "HyperParameterTuningJobArn": "arn",
            "HyperParameterTuningJobStatus": "InProgress", "CreationTime": 1.5, "LastModifiedTime": 1.5,
            "Controller": {"Unreadable": "damaged"},
        });
        if request.path.contains("NextToken") {
            return response(400, &json!({"__type": "ValidationException", "message": "a row is damaged"}));
        }
        if request.path.contains("StatusEquals=InProgress") {
            return response(200, &json!({"HyperParameterTuningJobSummaries": [one], "NextToken": "t"}));
        }
        pass()
    });
    for name in ["a", "b"] {
        world.at(&stack, &["submit", "request.json", "--name", name]).with_code(0);
    }
    let shown = world.at(&stack, &["stop", "--all", "--yes"]);
    assert_ne!(shown.code, 0, "{shown:?}");
    assert_eq!(shown.out, "a: stopping\n");
    assert_eq!(shown.err, "error: cannot list all active tunings: a row is damaged\n");
}
