//! The limits of one step: facts and rulings above a limit go to the next step, and a step always fits a row.

use tuning::log::fact::{MetricLine, Recorded};
use tuning::state::State;
use tuning::step::advance;

use crate::support::build::*;

fn state(definition: &tuning::definition::Definition) -> State {
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
