//! Black-box tests of the decider: single rules, promises over whole histories, scale.
//!
//! Tests of single rules have the form `check(definition, given, when, expect)`. A simulated training service plays
//! histories in virtual time. All tests are deterministic. A failing history prints its seed.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod bills;
mod capacity;
mod changes;
mod cohorts;
mod deadlines;
mod diverged;
mod doubts;
mod endings;
mod epochs;
mod front;
mod grants;
mod histories;
mod invariants;
mod large;
mod lessons;
mod lives;
mod machine;
mod model;
mod money;
mod names;
mod numbering;
mod overruns;
mod paper;
mod pools;
mod promises;
mod promotion;
mod quota;
mod refit;
mod regressions;
mod rest;
mod retries;
mod rungs;
mod runtime;
mod sampler;
mod several;
mod silence;
mod sizes;
mod spot;
mod starts;
mod steps;
mod summaries;
mod support;
mod tails;
mod target;
mod waits;
mod waits_money;
mod waits_rules;
