//! Signs of life: a job that waits for its instances is seen to be there, for as long as it is.

use tuning::fact::{Fact, Recorded};
use wire::names::training_job_name;

use crate::world::{HOUR, MINUTE, World, request, unpaced};

/// So many facts say that a job was seen.
fn signs(world: &World) -> usize {
    world.lock().table.rows().iter().filter(|row| row.key.sk.contains("seen#")).count()
}

/// Sweeps once a minute, each followed by a decider.
fn watch(world: &World, id: &str, ms: i64) {
    for _ in 0..ms / MINUTE {
        world.sweep(unpaced());
        world.decide(id, &[]);
        world.pass(MINUTE);
    }
}

#[test]
fn regression_a_job_that_waits_for_its_instances_for_hours_is_seen_and_one_that_is_deleted_is_given_up() {
    let world = World::new();
    let mut request = request("one", 1);
    // Ten minutes of running time, of which it has none yet.
    request["TrainingJobDefinition"]["StoppingCondition"]["MaxRuntimeInSeconds"] = 600.into();
    let id = world.submit_request(&request);
    let job = world.live(&id)[0];
    let name = training_job_name(&id, job);
    world.create_job(&name, "ours");
    let at = world.lock().now;
    world.decide(&id, &[Recorded { key: format!("started#{job}"), at, fact: Fact::JobStarted { job } }]);
    watch(&world, &id, 6 * HOUR);
    assert_eq!(world.live(&id), [job], "it is waited for");
    // Its time limit, the grace, the upload and an hour are 75 minutes: it is told to be there halfway.
    let told = signs(&world);
    assert_eq!(told, 6 * 60 / 38);
    // Somebody deletes it.
    world.lock().jobs.remove(&name);
    watch(&world, &id, HOUR / 2);
    assert_eq!(world.live(&id), [job], "not at once: the service may be behind");
    watch(&world, &id, HOUR);
    assert!(world.live(&id).is_empty() && signs(&world) == told);
}
