//! Stopping all tunings at once.

use serde_json::json;
use service::memory::MemoryTable;
use service::ports::table::{Condition, Query, Table, Write};
use stack_test::{Stack, response};
use wire::item::Item;
use wire::stored::{ACTIVE, active_id, head_key};

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

#[test]
fn regression_one_that_cannot_be_read_does_not_keep_the_others_of_a_folder_from_being_stopped() {
    let world = World::new(QUICK);
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
    let told = world.hyperband(&["stop", "--all", "--yes"]).with_code(3);
    assert!(told.out.starts_with("a: ordered to stop\nc: ordered to stop\n"), "{told:?}");
    assert!(told.err.starts_with("error: cannot stop b, which cannot be read: "), "{told:?}");
}

#[test]
fn regression_a_page_that_fails_does_not_keep_the_others_of_a_stack_from_being_stopped() {
    let world = World::new(QUICK);
    let stack = Stack::with_rule(MemoryTable::default(), |request, pass| {
        let one = json!({"HyperParameterTuningJobName": "a", "HyperParameterTuningJobStatus": "InProgress"});
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
    let told = world.at(&stack, &["stop", "--all", "--yes"]);
    assert_ne!(told.code, 0, "{told:?}");
    assert_eq!(told.out, "a: ordered to stop\n");
    assert_eq!(told.err, "error: cannot list all tunings that are not over: a row is damaged\n");
}
