//! What the tests share: builders, one `check`, and a training service in virtual time.
//!
//! Must never: decide what is right. It drives the crate through its public API and holds its promises against it.

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
use tuning::fact::Recorded;

use self::render::render;
use self::run::Run;

/// Given the facts `given`, one step each, when the facts `when` come in one delivery, then the rulings are `expect`.
/// On the way every promise that holds for all histories is checked, see [`Run::take`]. Returns the run to go on with.
#[track_caller]
pub(crate) fn check(definition: &Definition, given: &[Recorded], when: &[Recorded], expect: &[&str]) -> Run {
    let mut run = Run::new(definition);
    for fact in given {
        run.take(std::slice::from_ref(fact));
    }
    check_next(&mut run, when, expect);
    run
}

/// When the facts `when` come next, then the rulings are `expect`.
#[track_caller]
pub(crate) fn check_next(run: &mut Run, when: &[Recorded], expect: &[&str]) {
    let rulings = run.take(when);
    let rendered: Vec<String> = rulings.iter().map(render).collect();
    assert_eq!(rendered, expect);
}

/// So many cases of a property, the same in every run; `PROPTEST_CASES` and `PROPTEST_RNG_SEED` ask for others.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    // What was found is told by its shrunken input and becomes a test with a name, not a file.
    config.failure_persistence = None;
    config
}
