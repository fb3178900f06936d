//! Ten thousand trials: the largest allowed tuning completes, with bounded steps and a bounded state.

use search::{Domain, Parameter, Space};
use tuning::definition::{Definition, Scheduling, Strategy};
use tuning::log::fact::{Fact, JobEnd, JobPhase};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{AttemptRuling, Order, Ruling};
use tuning::state::{State, Status};
use tuning::trial::summary::JobSummary;
use tuning::unit::limits::{MAX_FACTS_PER_STEP, MAX_PARALLEL_JOBS, MAX_RULINGS_PER_STEP, MAX_TRAINING_JOBS};

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::service::Faults;
use crate::support::world::World;

/// Bytes of a stored arrival at a rung: trial, value, punctuation.
const ARRIVAL_BYTES: usize = 32;

/// Bytes of the largest state: of a thousand jobs with up to 81 epochs each, of the jobs of a minute whose bill is not
/// confirmed, and of the trials that wait for a promotion.
const STATE_BYTES: usize = 2_000_000;

fn largest(strategy: Strategy) -> Definition {
    Definition { strategy, ..jobs(MAX_TRAINING_JOBS, MAX_PARALLEL_JOBS) }
}

fn arrivals(state: &State) -> usize {
    state.search.cohorts.iter().flat_map(|cohort| &cohort.rungs).map(|rung| rung.arrivals.len()).sum()
}

#[track_caller]
fn check_completes(definition: &Definition) -> World {
    let mut world =
        World::new(Run::sampled(definition, 2_000), Faults { batched: 0.97, ..Faults::default() });
    world.play();
    let state = &world.run.state;
    assert!(matches!(&state.status, Status::Ended { why: EndReason::MaxJobs, .. }), "{:?}", state.status);
    // The last jobs are too few for a trial and its promotions.
    let unused = MAX_TRAINING_JOBS - state.results.launched;
    assert!(unused <= if definition.promotes().is_some() { 10 } else { 0 }, "{unused} jobs are unused");
    for step in &world.run.log {
        assert!(step.facts.len() <= MAX_FACTS_PER_STEP && step.rulings.len() <= MAX_RULINGS_PER_STEP);
    }
    assert!(world.run.largest < STATE_BYTES, "{} bytes of at most {STATE_BYTES}", world.run.largest);
    world
}

#[test]
fn ten_thousand_trials_without_early_stopping_leave_a_small_state() {
    let world = check_completes(&largest(Strategy::Independent));
    assert_eq!(arrivals(&world.run.state), 0);
}

/// A step takes as long as there are live jobs, so fewer run at once than in the other tests.
#[test]
fn ten_thousand_trials_of_hyperband_leave_only_their_arrivals() {
    let world = check_completes(&Definition {
        strategy: comparing(1, 27, 3),
        ..jobs(MAX_TRAINING_JOBS, MAX_PARALLEL_JOBS / 10)
    });
    let end = serde_json::to_string(&world.run.state).unwrap().len();
    assert!(end < 2_000 + ARRIVAL_BYTES * arrivals(&world.run.state), "{end} bytes at the end");
}

/// Waiting trials are most of the trials, and their configurations and curves are not in the state. A thousand jobs at once
/// take a build without optimizations a minute, so only the nightly run has them.
#[test]
fn ten_thousand_jobs_of_promoted_trials_leave_only_their_arrivals() {
    let mut definition = promoting(largest(comparing(1, 81, 3)), Scheduling::Asynchronous);
    if std::env::var_os("HYPERBAND_SCALE_ALL").is_none() {
        definition.limits.max_parallel /= 10;
    }
    let world = check_completes(&definition);
    let end = serde_json::to_string(&world.run.state).unwrap().len();
    assert!(end < 2_000 + ARRIVAL_BYTES * arrivals(&world.run.state), "{end} bytes at the end");
}

/// Returns the mean number of entries of rungs that a step looks at, in the first and in the last tenth of the jobs.
fn looks(scheduling: Option<Scheduling>) -> [u64; 2] {
    let definition = Definition { strategy: comparing(1, 27, 3), ..jobs(5_000, 20) };
    let definition = match scheduling {
        Some(scheduling) => promoting(definition, scheduling),
        None => definition,
    };
    let mut world = World::new(Run::sampled(&definition, 1_000_000), Faults::default());
    let mut at = |launched| {
        while world.run.state.results.launched < launched {
            assert!(world.advance(), "the tuning goes on");
        }
        (tuning::unit::scan::entries(), world.run.steps)
    };
    let mut mean = |from, to| {
        let ((before, from), (after, to)) = (at(from), at(to));
        (after - before) * 100 / (to - from)
    };
    [mean(300, 800), mean(4_300, 4_800)]
}

/// A binary search among 15 times as many arrivals looks at four more.
#[test]
fn the_work_of_a_step_does_not_grow_with_the_finished_trials() {
    let modes = [None, Some(Scheduling::Asynchronous), Some(Scheduling::Synchronous)];
    for mode in modes {
        let [first, last] = looks(mode);
        assert!(
            first > 0 && last < 2 * first,
            "{mode:?}: {first} looks in 100 early steps, {last} in 100 late ones"
        );
    }
}

/// The maximum size of a transaction in bytes.
const TRANSACTION_BYTES: usize = 4 * 1_024 * 1_024;

/// Returns a categorical space of 30 dimensions whose configurations are as large as a request allows.
fn largest_space() -> Space {
    let text = |number: usize| format!("{number:02}{}", "\u{1}".repeat(254));
    let parameter =
        |number| Parameter { name: text(number), domain: Domain::Categorical { values: vec![text(number)] } };
    Space::new((0..30).map(parameter).collect()).unwrap()
}

#[test]
fn the_rows_of_a_step_that_concludes_many_large_jobs_fit_a_transaction() {
    const JOBS: u32 = 60;
    let mut definition = random(JOBS, JOBS);
    definition.space = largest_space();
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    let began = run.log.len();
    let ended: Vec<_> = (0..JOBS).map(|trial| described(10, job(trial), JobEnd::Completed, 5)).collect();
    run.take(&ended);
    let bytes = |summary: &JobSummary| serde_json::to_string(summary).unwrap().len();
    let largest = run.concluded.iter().map(bytes).max().unwrap();
    assert!(largest > 90_000, "{largest} bytes");
    let steps = &run.log[began..];
    assert!(steps.len() > 1, "{} steps", steps.len());
    for step in steps {
        let summaries = step
            .rulings
            .iter()
            .filter(|ruling| matches!(ruling, Ruling::Attempt(AttemptRuling::TrialFinished { .. })));
        // An action repeats the order of its step.
        let bytes = largest * summaries.count() + 2 * serde_json::to_string(step).unwrap().len();
        assert!(bytes < TRANSACTION_BYTES, "{bytes} bytes in a transaction");
    }
    assert!(run.state.is_ended());
}

/// The maximum size of a table row in bytes, see `wire::item`.
const ROW_BYTES: usize = 300 * 1_024;

#[test]
fn steps_with_the_largest_configurations_and_messages_fit_a_row() {
    let mut definition = random(20, 3);
    definition.space = largest_space();
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    let mut facts = Vec::new();
    // One cause of all would end the tuning.
    for (trial, cause) in (0..3).zip(["a", "b", "c"]) {
        let fact = Fact::JobStateChanged {
            job: job(trial),
            phase: JobPhase::Ended(JobEnd::AlgorithmError),
            started: None,
            ended: None,
            message: Some(format!("{cause}{}", "\u{1}".repeat(999))),
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
