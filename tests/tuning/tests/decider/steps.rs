//! The limits of one step: facts and rulings above a limit go to the next step, and a step always fits a row.

use search::{Domain, Parameter, Space};
use tuning::definition::{Definition, Scheduling};
use tuning::log::fact::{MetricLine, Recorded};
use tuning::state::State;
use tuning::step::{advance, fit_a_step, missing};

use crate::support::build::*;
use crate::waits::{begun, done, on, two_rungs};

fn state(definition: &Definition) -> State {
    let mut state = State::new(definition);
    let mut n = 1;
    let mut facts = vec![submitted()];
    while advance(definition, &mut state, n, &facts).has_more {
        n += 1;
        facts.clear();
    }
    state
}

#[test]
fn a_step_has_at_most_eighty_rulings() {
    let rulings = |jobs| {
        let definition = random(jobs, 100);
        let taken = advance(&definition, &mut State::new(&definition), 1, &[submitted()]);
        (taken.step.unwrap().rulings.len(), taken.has_more)
    };
    assert_eq!(rulings(79), (79, false));
    assert_eq!(rulings(80), (80, false));
    assert_eq!(rulings(81), (80, true));
}

#[test]
fn a_step_has_at_most_sixty_four_facts() {
    let definition = random(100, 100);
    let mut state = state(&definition);
    let facts: Vec<Recorded> = (0..65).map(|trial| started(1, job(trial))).collect();
    let taken = advance(&definition, &mut state, 9, &facts);
    assert_eq!((taken.taken, taken.step.unwrap().facts.len()), (64, 64));
}

#[test]
fn facts_that_change_nothing_take_no_room_in_a_step() {
    let definition = random(100, 100);
    let mut state = state(&definition);
    let facts: Vec<Recorded> = (0..100).map(|_| started(1, job(0))).collect();
    let taken = advance(&definition, &mut state, 9, &facts);
    assert_eq!((taken.taken, taken.step.unwrap().facts.len()), (100, 1));
}

#[test]
fn a_large_step_takes_no_further_fact() {
    let definition = ranked(random(9, 1));
    let mut state = state(&definition);
    let batch = |n: i64| {
        let line = |i: i64| MetricLine { id: format!("{i:056}"), ..line(n * 500 + i, "", 1, 0.123_456_789) };
        lines(n, job(0), "algo-1", (0..500).map(line).collect())
    };
    let facts: Vec<Recorded> = (0..6).map(batch).collect();
    let taken = advance(&definition, &mut state, 9, &facts);
    // Each fact counts as about 116,000 bytes.
    assert_eq!(taken.taken, 1);
    let stored = serde_json::to_string(&taken.step).unwrap().len();
    assert!(stored < 120_000, "{stored} bytes");
    let taken = advance(&definition, &mut state, 10, &facts[1..]);
    assert_eq!(taken.taken, 1);
}

#[test]
fn without_facts_and_rulings_there_is_no_step() {
    let definition = random(9, 1);
    let mut state = state(&definition);
    let taken = advance(&definition, &mut state, 9, &[]);
    assert_eq!((taken.step, taken.taken, taken.has_more), (None, 0, false));
    // A step with a fact and no ruling is recorded.
    let taken = advance(&definition, &mut state, 9, &[started(5, job(0))]);
    let step = taken.step.unwrap();
    assert_eq!((step.n, step.at, step.facts.len(), step.rulings.len()), (9, at(5), 1, 0));
}

#[test]
fn facts_fit_a_step_up_to_its_number_and_its_size() {
    let facts: Vec<Recorded> = (0..65).map(|trial| started(1, job(trial))).collect();
    assert!(fit_a_step(facts[..0].iter()) && fit_a_step(facts[..64].iter()));
    assert!(!fit_a_step(facts.iter()));
    let line = |i: i64| line(i, &format!("{i:056}"), 1, 0.5);
    let large = |count| lines(1, job(0), "algo-1", (0..count).map(line).collect());
    assert!(fit_a_step(std::iter::once(&large(450))), "about 105,000 bytes");
    assert!(!fit_a_step(std::iter::once(&large(500))), "about 116,000 bytes");
}

/// Returns a definition whose trials all have a hyperparameter of 160,000 bytes. Its estimate is twice that.
fn huge(max_jobs: u32, max_parallel: u32) -> Definition {
    let domain = Domain::Categorical { values: vec!["a".repeat(160_000)] };
    let space = Space::new(vec![Parameter { name: "text".to_owned(), domain }]).unwrap();
    Definition { space, ..random(max_jobs, max_parallel) }
}

#[test]
fn a_ruling_that_is_too_large_beside_the_facts_is_made_in_a_step_without_facts() {
    let definition = huge(1, 1);
    let mut state = State::new(&definition);
    let taken = advance(&definition, &mut state, 1, &[submitted()]);
    assert_eq!((taken.step.unwrap().rulings.len(), taken.has_more), (0, true));
    let taken = advance(&definition, &mut state, 2, &[]);
    assert_eq!((taken.step.unwrap().rulings.len(), taken.has_more), (1, false));
}

/// A step and its rows are written in one transaction of at most 4 MB.
#[test]
fn the_rows_of_the_jobs_of_a_step_are_bounded() {
    let definition = huge(12, 12);
    let mut state = state(&definition);
    let facts: Vec<Recorded> = (0..12).map(|trial| never_started(9, job(trial))).collect();
    let taken = advance(&definition, &mut state, 99, &facts);
    // Each row counts as about 337,000 bytes.
    assert_eq!((taken.taken, taken.concluded.len(), taken.has_more), (12, 10, true));
    let taken = advance(&definition, &mut state, 100, &[]);
    assert_eq!(taken.concluded.len(), 2);
}

#[test]
fn a_stored_state_needs_the_rows_of_the_trials_that_a_step_promotes() {
    let mut run = begun(&two_rungs(100, Scheduling::Asynchronous));
    run.take(&[paused(5, true)]);
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    let live = run.state.clone();
    let stored: State = serde_json::from_str(&serde_json::to_string(&live).unwrap()).unwrap();
    run.take(&[paused(30, false)]);
    let step = run.log.last().unwrap();
    assert_eq!(missing(&stored, step), [on(2, 0)]);
    assert_eq!(missing(&live, step), []);
}
