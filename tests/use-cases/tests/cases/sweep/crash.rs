//! P4: a sweep that dies after any call loses nothing, and no repeated operation has a second effect.

use use_cases::sweep::CallKind;
use wire::item::Item;
use wire::names::training_job_name;
use wire::stored::{ACTION_PREFIX, ACTIVE};

use super::world::{Call, MINUTE, World, now, unpaced};

/// Creates a world with work of every kind for a sweep. Returns it with the IDs of its tunings.
fn prepared() -> (World, [String; 4]) {
    let world = World::new();
    let silent = world.running("silent", 1);
    let ended = world.running("ended", 1);
    let stopping = world.running("stopping", 1);
    world.create_job("gone-abc123-0-0-1", "ours");
    world.pass(10 * MINUTE);
    let starting = world.submit("starting", 1);
    let name = training_job_name(&ended, world.live(&ended)[0]);
    world.lock().jobs.get_mut(&name).unwrap().status = "Completed";
    world.stop_tuning(&stopping);
    (world, [silent, ended, stopping, starting])
}

/// The final state of a world.
#[derive(Debug)]
struct Outcome {
    jobs: Vec<(String, &'static str)>,
    actions: Vec<String>,
    active: Vec<String>,
    notices: usize,
}

/// Returns the final state after sweeps and decisions for a while.
fn outcome(world: &World, ids: &[String; 4]) -> Outcome {
    let other = world.sweeper("other", unpaced());
    for _ in 0..7 {
        world.pass(3 * MINUTE);
        now(other.sweep()).unwrap();
        for id in ids {
            world.decide(id, &[]);
        }
    }
    let inner = world.lock();
    let rows = inner.table.rows();
    let action = |item: &Item| {
        let id = item.key.pk.strip_prefix(ACTION_PREFIX)?;
        // A start or a stop with a known outcome needs no settled row.
        let settles = item.key.sk.starts_with("bill") || item.key.sk.starts_with("notice");
        let status = item.text("status").filter(|_| settles);
        Some(format!("{id} {} {status:?}", item.key.sk))
    };
    Outcome {
        jobs: inner.jobs.iter().map(|(name, job)| (name.clone(), job.status)).collect(),
        actions: rows.iter().filter_map(action).collect(),
        active: rows.iter().filter(|row| row.key.pk == ACTIVE).map(|row| row.key.sk.clone()).collect(),
        notices: inner.notices,
    }
}

#[test]
fn p4_a_sweep_that_dies_after_any_call_loses_nothing() {
    let (world, ids) = prepared();
    let expected = outcome(&world, &ids);
    let states: Vec<&str> = expected.jobs.iter().map(|(_, status)| *status).collect();
    assert_eq!(states, ["Completed", "Stopped", "InProgress", "InProgress", "Stopped"]);
    assert!(!expected.actions.iter().any(|action| action.contains("bill") && !action.contains("Done")));
    assert_eq!(
        (expected.active.len(), expected.notices),
        (3, 2),
        "two tunings have ended and two are active"
    );
    for at in 1.. {
        let (world, ids) = prepared();
        world.lock().steps = 0;
        world.lock().stall_at = Some(at);
        let (sweeping, swept) = world.begin("first", unpaced());
        drop(sweeping);
        world.lock().stalled = false;
        world.lock().stall_at = None;
        let died = world.lock().steps;
        let found = outcome(&world, &ids);
        let rest =
            |outcome: &Outcome| (outcome.jobs.clone(), outcome.actions.clone(), outcome.active.clone());
        assert_eq!(rest(&found), rest(&expected), "died after call {at}");
        // A notice is published at least once.
        assert!(found.notices >= expected.notices);
        let creates: Vec<Call> =
            world.calls().into_iter().filter(|call| call.sort == CallKind::Create).collect();
        assert!((1..=2).contains(&creates.len()), "call {at}: {creates:?}");
        if swept.is_some() {
            assert!(died > 40, "the sweep has {died} calls");
            return;
        }
    }
}
