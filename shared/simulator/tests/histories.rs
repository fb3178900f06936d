//! Histories drawn from pinned seeds: every promise holds in each, and a seed always gives the same history.

use simulator::Run;
use simulator::report::Report;

/// As many as fit the time of a test run; the program runs as many as one likes.
const SEEDS: std::ops::Range<u64> = 0..60;

fn check(seeds: std::ops::Range<u64>) -> Report {
    let mut report = Report::default();
    for seed in seeds {
        let history = Run::drawn(seed).history();
        let broken = &history.violations;
        assert!(
            broken.is_empty(),
            "cargo run --release -p simulator -- --seeds {seed}..{} --trace\n{broken:#?}",
            seed + 1
        );
        report.add(&history);
    }
    report
}

#[test]
fn no_promise_is_broken_in_the_first_pinned_seeds() {
    let report = check(SEEDS.start..30);
    assert!(report.events > 50_000, "{}", report.text());
}

#[test]
fn no_promise_is_broken_in_the_other_pinned_seeds() {
    let report = check(30..SEEDS.end);
    assert!(report.events > 50_000, "{}", report.text());
}

/// P5: "replay gives the same decisions, on any machine"; here the whole history, byte for byte.
#[test]
fn one_seed_gives_one_history() {
    let traced = || Run { trace: true, ..Run::drawn(11) }.history();
    let (first, second) = (traced(), traced());
    assert!(first.trace.as_ref().is_some_and(|trace| trace.lines().count() > 1_000));
    assert!(first == second, "the same seed gave two histories");
}
