//! A table whose rows were restored one by one: a stored step may be ahead of the head.

use std::sync::Arc;

use port_tests::memory::MemoryTable;
use tuning::log::fact::{Fact, JobPhase, Recorded};
use tuning::unit::time::Time;
use use_cases::decide::Decider;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::store::Store;
use wire::item::{Item, Key};
use wire::stored;

use crate::looks::world::{BEGIN, World};
use crate::support::{now, put};

fn head(world: &World) -> Item {
    now(world.table.get(&stored::head_key(&world.id))).unwrap().expect("the tuning has a head")
}

/// Returns the rows of the tuning, without its facts and its ring.
fn rows(table: &MemoryTable) -> Vec<Item> {
    let mut rows = table.rows();
    rows.retain(|row| row.key.pk.starts_with("T#") || row.key.pk.starts_with("A#"));
    rows
}

/// Restores the head of `before`, and loses the rows of jobs and actions that later steps wrote.
fn restore(world: &World, before: &[Item]) {
    for row in rows(&world.table) {
        let is_lost = row.key.pk.starts_with("A#") || row.key.sk.starts_with("JOB#");
        if is_lost && before.iter().all(|kept| kept.key != row.key) {
            now(world.table.write(Write::Delete(row.key, Condition::Always))).unwrap();
        }
    }
    let head = before.iter().find(|row| row.key.sk == stored::HEAD).expect("a head");
    put(&world.table, head.clone());
}

/// Decides with an empty cache.
fn decide(world: &World, fact: &Recorded) {
    let decider = Decider { store: Arc::new(Store::new(Arc::new(world.table.clone()))) };
    now(decider.decide(&world.id, std::slice::from_ref(fact), false)).expect("no step blocks the tuning");
}

/// The step row was written on the condition that it does not exist, so the tuning never had another step.
#[test]
fn regression_a_step_ahead_of_the_head_is_taken_as_committed() {
    for steps in [1, 2, 3] {
        let mut world = World::new(2);
        world.phase(0, JobPhase::Training);
        let before = rows(&world.table);
        // A job ends, which orders reads. Its trial finishes, which writes a row. The other job logs a value.
        world.billed(0, tuning::log::fact::JobEnd::AlgorithmError, 60);
        for _ in 1..steps {
            world.logged(1, &[(steps, 0.5)]);
        }
        let (expected, at) = (rows(&world.table), world.now + 1_000);
        let ahead = head(&world).number(stored::STEP_NUMBER);
        restore(&world, &before);
        assert!(head(&world).number(stored::STEP_NUMBER) < ahead, "the head is behind");
        let passed = Recorded { key: "time".to_owned(), at: Time(at), fact: Fact::TimePassed };
        decide(&world, &passed);
        for row in &expected {
            let found = now(world.table.get(&row.key)).unwrap();
            let same = found.is_some_and(|found| found == *row || row.key.sk == stored::HEAD);
            assert!(same, "{steps} steps: {:?}", row.key);
        }
        assert!(head(&world).number(stored::STEP_NUMBER) > ahead, "the new fact follows the stored steps");
        assert!(at > BEGIN);
    }
}

/// The restore has brought back some of the actions that the step ordered.
#[test]
fn a_step_ahead_of_the_head_gets_exactly_its_lost_actions_back() {
    let mut world = World::new(2);
    (0..2).for_each(|trial| world.phase(trial, JobPhase::Training));
    let before = rows(&world.table);
    world.fact(Fact::StopRequested);
    let stops = [0, 1].map(|trial| stored::action_key(&world.id, &format!("stop-{trial}-0-1")));
    let row = |world: &World, key: &Key| now(world.table.get(key)).unwrap();
    let expected = stops.clone().map(|key| row(&world, &key));
    assert!(expected.iter().all(Option::is_some), "both jobs are stopped");
    put(&world.table, before.iter().find(|row| row.key.sk == stored::HEAD).expect("a head").clone());
    now(world.table.write(Write::Delete(stops[1].clone(), Condition::Always))).unwrap();
    let passed = Recorded { key: "time".to_owned(), at: Time(world.now + 1_000), fact: Fact::TimePassed };
    decide(&world, &passed);
    assert_eq!(stops.map(|key| row(&world, &key)), expected);
}
