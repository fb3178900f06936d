//! Requests to stop one training job whose stream record was lost: sweeps find them.

use std::sync::Arc;

use serde_json::json;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::log::reasons::StopWhy;
use tuning::log::ruling::{Order, Ruling};
use tuning::unit::time::Time;
use use_cases::decide::Decider;
use use_cases::lookup;
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::record;
use use_cases::store::Store;
use wire::names::training_job_name;
use wire::stored::{self, RING_PREFIX};

use super::world::{MINUTE, World, now, request, unpaced};

fn store(world: &World) -> Arc<Store<World>> {
    Arc::new(Store::new(Arc::new(world.clone())))
}

/// Stores a user's request to stop `job`. No decider receives its stream records.
fn stop(world: &World, id: &str, job: JobKey) {
    let at = Time(world.lock().now);
    now(lookup::stop_job_found(&store(world), id, job, at)).unwrap();
}

/// Returns why the decider has stopped `job`.
fn why_stopped(world: &World, id: &str, job: JobKey) -> Option<StopWhy> {
    let loaded = now(store(world).load(id)).unwrap().unwrap();
    loaded.state.job(job).and_then(tuning::job::Job::stop_why)
}

/// The decider receives a line of `job` through the stream, which makes a step.
fn logs(world: &World, id: &str, job: JobKey) {
    let at = Time(world.lock().now);
    let line = MetricLine { id: format!("{:020}", at.0), at, index: None, value: Some(0.5) };
    let stream = format!("{}/algo-1-1", training_job_name(id, job));
    let fact = Fact::MetricsLogged { job, stream, lines: vec![line], began: None };
    let recorded = Recorded { key: format!("line#{}", at.0), at, fact };
    let steps = now(Decider { store: store(world) }.decide(id, &[recorded], false)).unwrap();
    assert_eq!(steps.len(), 1, "the tuning is busy");
}

/// Makes one sweep of a busy tuning, a minute after the last one. Returns whether it rang.
fn rings(world: &World, id: &str, busy: JobKey) -> bool {
    world.pass(MINUTE);
    logs(world, id, busy);
    let ring = stored::ring_key(id);
    now(world.write(Write::Delete(ring, Condition::Always))).unwrap();
    world.sweep(unpaced());
    world.lock().table.rows().iter().any(|row| row.key.pk.starts_with(RING_PREFIX))
}

/// The stop waited for the end of the job while other jobs kept the tuning busy.
#[test]
fn regression_a_stored_stop_of_a_job_without_its_stream_record_is_rung() {
    let world = World::new();
    let id = world.running("one", 3);
    let jobs = world.live(&id);
    assert!(!rings(&world, &id, jobs[0]), "nothing is lost yet");
    stop(&world, &id, jobs[1]);
    assert!(rings(&world, &id, jobs[0]));
    assert_eq!(why_stopped(&world, &id, jobs[1]), None, "the ring was not delivered");
    assert!(rings(&world, &id, jobs[0]), "again, until a decider reads the request");
    world.decide(&id, &[]);
    let stops: Vec<_> = jobs.iter().map(|job| why_stopped(&world, &id, *job)).collect();
    assert_eq!(stops, [None, Some(StopWhy::Requested), None]);
    assert!(!rings(&world, &id, jobs[0]), "the request is folded");
    let statuses: Vec<_> = jobs.iter().map(|job| world.status(&training_job_name(&id, *job))).collect();
    assert_eq!(statuses, ["InProgress", "Stopped", "InProgress"]);
}

#[test]
fn a_stored_stop_of_a_tuning_without_its_stream_record_is_rung() {
    let world = World::new();
    let id = world.running("one", 2);
    let jobs = world.live(&id);
    let at = Time(world.lock().now);
    now(lookup::stop_found(&store(&world), &id, at)).unwrap();
    assert!(rings(&world, &id, jobs[0]));
    world.decide(&id, &[]);
    assert_eq!(why_stopped(&world, &id, jobs[0]), Some(StopWhy::TuningEnding));
}

/// The stop of a job must reach its last decision even if only the facts of the job are read.
#[test]
fn a_stop_that_is_requested_twice_is_stored_with_its_job_and_its_tuning_once() {
    let world = World::new();
    let id = world.running("one", 2);
    let job = world.live(&id)[1];
    stop(&world, &id, job);
    stop(&world, &id, job);
    let rows = world.lock().table.rows();
    let stops: Vec<_> = rows.iter().filter(|row| row.key.sk.contains("stop-requested")).collect();
    let keys: Vec<&str> = stops.iter().map(|row| row.key.sk.as_str()).collect();
    assert_eq!(keys, ["-#stop-requested#1-0-1", "1-0-1#stop-requested#1-0-1"]);
    for row in stops {
        assert_eq!(stored::fact(row).unwrap().fact, Fact::JobStopRequested { job });
    }
    assert!(rows.iter().any(|row| row.key.pk.starts_with(RING_PREFIX)), "a repeated request rings");
}

#[test]
fn the_check_for_stops_needs_one_query_for_all_jobs_of_a_tuning() {
    let requests = |jobs: u32| {
        let world = World::new();
        let id = world.running("one", jobs);
        world.sweep(unpaced());
        world.pass(MINUTE);
        logs(&world, &id, world.live(&id)[0]);
        let before = world.lock().table.usage();
        world.sweep(unpaced());
        let used = world.lock().table.usage().since(before);
        (used.reads, used.queries, used.read_units)
    };
    let (reads, queries, _) = requests(1);
    let (more_reads, more_queries, _) = requests(20);
    assert_eq!((more_reads, more_queries), (reads, queries));
}

/// The decider started another job in place of the ended one, and then stopped it. Its start could come first.
#[test]
fn regression_a_stored_stop_comes_before_the_stored_end_of_a_job() {
    for asked in [false, true] {
        let world = World::new();
        let mut request = request("one", 2);
        request["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] = json!(9);
        let id = world.submit_request(&request);
        let (jobs, at) = (world.live(&id), Time(world.lock().now));
        let phase = JobPhase::Ended(JobEnd::Stopped);
        let (job, message) = (jobs[0], None);
        let ended = Fact::JobStateChanged { job, phase, started: Some(at), ended: Some(at), message };
        let ended = Recorded { key: format!("state#{job}#Stopped"), at, fact: ended };
        now(record::deliver(&world, &id, &[ended], at)).unwrap();
        if asked {
            now(lookup::stop_found(&store(&world), &id, at)).unwrap();
        }
        let steps = now(Decider { store: store(&world) }.decide(&id, &[], true)).unwrap();
        let mut orders = steps.iter().flat_map(|step| &step.rulings).filter_map(Ruling::order);
        assert_eq!(orders.any(|order| matches!(order, Order::Start { .. })), !asked);
    }
}
