//! The checkers must see: every planted mutation is found within the first thousand seeds, and nothing is found without.
//!
//! `cargo test --release -p simulator --features planted --test planted -- --nocapture` prints the table.

use simulator::Run;
use simulator::report::History;
use std::panic::catch_unwind;
use tuning::planted::{Mutation, plant, struck};

/// Seeds tried for a mutation.
const SEEDS: u64 = 1_000;

fn history(seed: u64) -> History {
    catch_unwind(|| Run::drawn(seed).history()).unwrap_or_else(|_| History::panicked(seed, "see above"))
}

/// The first seed that finds the mutation, what was violated, and how often the mutation struck on the way.
fn found(mutation: Mutation, seeds: u64) -> (Option<(u64, String)>, u64) {
    plant(Some(mutation));
    let first = (0..seeds).find_map(|seed| Some((seed, history(seed).violations.into_iter().next()?)));
    let strikes = struck();
    plant(None);
    (first, strikes)
}

#[test]
fn every_mutation_is_found() {
    let only = std::env::var("MUT").ok();
    let mut missed = Vec::new();
    for mutation in Mutation::ALL {
        if only.as_ref().is_some_and(|only| !only.split(',').any(|o| o == mutation.name())) {
            continue;
        }
        let t = std::time::Instant::now();
        let (first, strikes) = found(*mutation, SEEDS);
        let line = match &first {
            Some((seed, violation)) => {
                format!("{seed:>6}  {}", violation.chars().take(150).collect::<String>())
            }
            None => format!("     -  struck {strikes} times"),
        };
        println!("{:<24}{:>6} {line}", mutation.name(), t.elapsed().as_millis());
        if first.is_none() {
            missed.push(mutation.name());
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn nothing_is_found_where_nothing_is_planted() {
    plant(None);
    for seed in 0..200 {
        let broken = history(seed).violations;
        assert!(broken.is_empty(), "seed {seed}: {broken:#?}");
    }
}
