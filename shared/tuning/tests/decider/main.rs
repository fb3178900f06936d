//! The decider from outside: what it rules on which facts, what it promises over whole histories, how it scales.
//!
//! `check(definition, given, when, expect)` is the form of the tests of single rules; histories are played by a training
//! service in virtual time. Everything is deterministic; a failing history prints its seed.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod changes;
mod cohorts;
mod deadlines;
mod endings;
mod epochs;
mod grants;
mod histories;
mod invariants;
mod large;
mod lives;
mod machine;
mod model;
mod money;
mod names;
mod paper;
mod pools;
mod promises;
mod promotion;
mod quota;
mod refit;
mod regressions;
mod retries;
mod rungs;
mod silence;
mod spot;
mod starts;
mod steps;
mod summaries;
mod support;
mod waits;
mod waits_money;
mod waits_rules;
