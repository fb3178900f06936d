//! Shared code of the tests: builders, `check`, and a training service in virtual time.
//!
//! Must never implement a rule of the decider. This code calls the public API of the crate and checks the promises.

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod pools;
pub(crate) mod render;
pub(crate) mod run;
pub(crate) mod service;
pub(crate) mod world;

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;
use tuning::definition::Definition;
use tuning::log::fact::Recorded;
use tuning::log::ruling::{Order, ReadOrder, Ruling};

use self::render::render;
use self::run::Run;

/// Asserts that, after the facts `given` in one step each, one delivery of the facts `when` gives the rulings `expect`.
///
/// [`Run::take`] checks the promises for all histories on the way. Returns the run, for further checks.
#[track_caller]
pub(crate) fn check(definition: &Definition, given: &[Recorded], when: &[Recorded], expect: &[&str]) -> Run {
    let mut run = Run::new(definition);
    for fact in given {
        run.take(std::slice::from_ref(fact));
    }
    check_next(&mut run, when, expect);
    run
}

/// Asserts that a delivery of the facts `when` gives the rulings `expect`.
#[track_caller]
pub(crate) fn check_next(run: &mut Run, when: &[Recorded], expect: &[&str]) {
    let rulings = run.take(when);
    // Where the log of an ended job is read at once, without a further line, the order is of no interest.
    let answered = |ruling: &&Ruling| {
        run.answers_reads && matches!(ruling, Ruling::Order(Order::Read(ReadOrder::Rest { .. })))
    };
    let rendered: Vec<String> = rulings.iter().filter(|ruling| !answered(ruling)).map(render).collect();
    assert_eq!(rendered, expect);
}

/// Returns a configuration with this number of cases and a fixed seed.
///
/// `PROPTEST_CASES` and `PROPTEST_RNG_SEED` override them.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    // A failure prints its shrunken input, which becomes a named test instead of a file.
    config.failure_persistence = None;
    config
}
