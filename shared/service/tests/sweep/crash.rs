//! P4: a sweep that dies after any call loses nothing, and nothing is done twice with effect.

use service::sweep::Sort;
use wire::item::Item;
use wire::names::training_job_name;
use wire::stored::ACTION_PREFIX;

use crate::world::{Call, MINUTE, World, unpaced};

/// A world in which a sweep has something of every kind to do; the ids of its tunings.
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

/// Sweeps and decisions for a while, then what has come of it all.
fn outcome(
    world: &World,
    ids: &[String; 4],
) -> (Vec<(String, &'static str)>, Vec<String>, Vec<String>, usize) {
    for _ in 0..7 {
        world.pass(3 * MINUTE);
        world.begin("other", unpaced()).1.unwrap();
        ids.iter().for_each(|id| world.decide(id, &[]));
    }
    let inner = world.lock();
    let jobs = inner.jobs.iter().map(|(name, job)| (name.clone(), job.status)).collect();
    let rows = inner.table.rows();
    let action = |item: &Item| {
        let id = item.key.pk.strip_prefix(ACTION_PREFIX)?;
        // A start or a stop whose outcome is known needs no mark.
        let settles = item.key.sk.starts_with("bill") || item.key.sk.starts_with("notice");
        let status = item.text("status").filter(|_| settles);
        Some(format!("{id} {} {status:?}", item.key.sk))
    };
    let actions = rows.iter().filter_map(action).collect();
    let active = rows.iter().filter_map(|item| (item.key.pk == "ACTIVE").then(|| item.key.sk.clone()));
    (jobs, actions, active.collect(), inner.notices)
}

#[test]
fn p4_a_sweep_that_dies_after_any_call_loses_nothing() {
    let (world, ids) = prepared();
    let expected = outcome(&world, &ids);
    let states: Vec<&str> = expected.0.iter().map(|(_, status)| *status).collect();
    assert_eq!(states, ["Completed", "Stopped", "InProgress", "InProgress", "Stopped"]);
    assert!(!expected.1.iter().any(|action| action.contains("bill") && !action.contains("Done")));
    assert_eq!((expected.2.len(), expected.3), (3, 2), "two tunings rest, two go on");
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
        assert_eq!(
            (&found.0, &found.1, &found.2),
            (&expected.0, &expected.1, &expected.2),
            "died after call {at}"
        );
        // A notice may be told twice, never less than once.
        assert!(found.3 >= expected.3);
        let creates: Vec<Call> = world.calls().into_iter().filter(|call| call.sort == Sort::Create).collect();
        assert!((1..=2).contains(&creates.len()), "call {at}: {creates:?}");
        if swept.is_some() {
            assert!(died > 40, "the sweep has {died} calls");
            return;
        }
    }
}
