//! Commands that read a whole tuning give the same answers for a stack as for its data directory.

use port_tests::memory::MemoryTable;
use stack_api::Stack;

use crate::world::{QUICK, World, ended};

#[test]
fn explain_replay_and_cost_read_a_stack_as_they_read_a_data_directory() {
    let world = World::new(QUICK);
    let stack = world.stack();
    ended(world.start(&[])).with_code(0);
    for arguments in [
        &["explain", "t", "0"][..],
        &["explain", "t", "0", "--output", "json"],
        &["replay", "t"],
        &["replay", "T", "--output", "json"],
    ] {
        let (here, there) =
            (world.hyperband(arguments).with_code(0), world.at(&stack, arguments).with_code(0));
        assert_eq!(there.out, here.out, "{arguments:?}");
    }
    // The bills of the training jobs are on this machine only.
    let (here, there) = (world.hyperband(&["cost", "t"]), world.at(&stack, &["cost", "t"]).with_code(0));
    let spent = |text: &str| text.lines().find(|line| line.contains("spent")).map(str::to_owned);
    assert!(spent(&here.out).is_some());
    assert_eq!(spent(&there.out), spent(&here.out), "{}", there.out);
    assert!(!there.out.contains("unknown to the service"), "{}", there.out);
}

#[test]
fn an_unknown_tuning_of_a_stack_is_reported_with_the_way_to_see_all() {
    let world = World::new(QUICK);
    let stack = Stack::start(MemoryTable::default());
    for arguments in [&["explain", "t", "0"][..], &["replay", "t"], &["cost", "t"]] {
        let answer = world.at(&stack, arguments).with_code(2);
        assert!(answer.err.contains("there is no tuning 't' at http://127.0.0.1"), "{answer:?}");
    }
}
