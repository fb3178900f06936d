//! Ten thousand trials: the largest allowed tuning completes, with bounded steps and a bounded state.

use search::{Domain, Parameter, Space};
use tuning::definition::{Definition, Strategy};
use tuning::fact::{Fact, JobEnd, JobPhase};
use tuning::limits::{MAX_FACTS_PER_STEP, MAX_PARALLEL_JOBS, MAX_RULINGS_PER_STEP, MAX_TRAINING_JOBS};
use tuning::ruling::{EndReason, Order, Ruling};
use tuning::state::{State, Status};

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::service::Faults;
use crate::support::world::World;

/// Bytes of a stored arrival at a rung: trial, value, punctuation.
const ARRIVAL_BYTES: usize = 32;

/// Bytes of the live state of a hundred jobs with nine epochs each, and of the jobs of a minute whose bill is not
/// confirmed.
const LIVE_BYTES: usize = 180_000;

fn largest(strategy: Strategy) -> Definition {
    Definition { strategy, ..jobs(MAX_TRAINING_JOBS, MAX_PARALLEL_JOBS) }
}

fn arrivals(state: &State) -> usize {
    state.cohorts.iter().flat_map(|cohort| &cohort.rungs).map(|rung| rung.arrivals.len()).sum()
}

#[track_caller]
fn check_completes(definition: &Definition) -> World {
    let mut world =
        World::new(Run::sampled(definition, 2_000), Faults { batched: 0.97, ..Faults::default() });
    world.play();
    let state = &world.run.state;
    assert!(matches!(&state.status, Status::Ended { why: EndReason::MaxJobs, .. }), "{:?}", state.status);
    assert_eq!(state.launched, MAX_TRAINING_JOBS);
    for step in &world.run.log {
        assert!(step.facts.len() <= MAX_FACTS_PER_STEP && step.rulings.len() <= MAX_RULINGS_PER_STEP);
    }
    let limit = LIVE_BYTES + ARRIVAL_BYTES * arrivals(state);
    assert!(world.run.largest < limit, "{} bytes of at most {limit}", world.run.largest);
    world
}

#[test]
fn ten_thousand_trials_without_early_stopping_leave_a_small_state() {
    let world = check_completes(&largest(Strategy::Random));
    assert_eq!(arrivals(&world.run.state), 0);
}

#[test]
fn ten_thousand_trials_of_hyperband_leave_only_their_arrivals() {
    let world = check_completes(&largest(comparing(1, 9, 3)));
    let end = serde_json::to_string(&world.run.state).unwrap().len();
    assert!(end < 2_000 + ARRIVAL_BYTES * arrivals(&world.run.state), "{end} bytes at the end");
}

/// The maximum size of a table row in bytes, see `wire::item`.
const ROW_BYTES: usize = 300 * 1_024;

#[test]
fn steps_with_the_largest_configurations_and_messages_fit_a_row() {
    let text = |number: usize| format!("{number:02}{}", "\u{1}".repeat(254));
    let parameter =
        |number| Parameter { name: text(number), domain: Domain::Categorical { values: vec![text(number)] } };
    let mut definition = random(20, 3);
    definition.space = Space::new((0..30).map(parameter).collect()).unwrap();
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    let mut facts = Vec::new();
    for trial in 0..3 {
        let fact = Fact::JobStateChanged {
            job: job(trial),
            phase: JobPhase::Ended(JobEnd::AlgorithmError),
            started: None,
            ended: None,
            message: Some("\u{1}".repeat(1_000)),
        };
        facts.extend([recorded(9, fact), described(10, job(trial), JobEnd::AlgorithmError, 5)]);
    }
    run.take(&facts);
    let started = run.rulings.iter().filter(|ruling| matches!(ruling, Ruling::Order(Order::Start { .. })));
    assert_eq!(started.count(), 6, "the starts that did not fit follow in later steps");
    for step in &run.log {
        let bytes = serde_json::to_string(step).unwrap().len();
        assert!(bytes < ROW_BYTES - 1_000, "a step has {bytes} bytes");
    }
}
