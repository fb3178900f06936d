//! `hyperband delete`.

use port_tests::memory::MemoryTable;
use serde_json::json;
use stack_api::Stack;

use crate::world::{QUICK, World};

#[test]
fn an_ended_local_tuning_is_deleted_and_its_name_is_free_again() {
    let world = World::new(QUICK);
    world.run(&[]).with_code(0);
    let refused = world.hyperband(&["delete", "t"]).with_code(2);
    assert!(refused.err.contains("there is no terminal to ask for confirmation"), "{refused:?}");
    world.hyperband(&["describe", "t"]).with_code(0);
    let deleted = world.hyperband(&["delete", "T", "--yes", "--output", "json"]).with_code(0).json();
    assert_eq!(deleted, json!({"HyperParameterTuningJobName": "t", "Deleted": true}));
    let missing = world.hyperband(&["describe", "t"]).with_code(2);
    assert!(missing.err.contains("there are no tunings"), "{missing:?}");
    let again = world.run(&[]).with_code(0);
    assert!(again.out.starts_with("t: Completed"), "{again:?}");
}

#[test]
fn a_tuning_of_a_stack_that_runs_is_not_deleted() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    world.at(&stack, &["submit", "request.json"]).with_code(0);
    let refused = world.at(&stack, &["delete", "t", "--yes"]).with_code(2);
    assert!(refused.err.contains("in status InProgress: stop it first"), "{refused:?}");
    let asked = stack.requests().pop().unwrap();
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("DELETE", "/tuning-jobs/t"));
    let unknown = world.at(&stack, &["delete", "tt", "--yes"]).with_code(2);
    assert!(unknown.err.contains("did you mean t?"), "{unknown:?}");
}
