//! How long an ended job waits for its conclusion, in virtual time. The stack's own calls take as long as recorded
//! ones: 20 to 300 ms for the training service, which accepts one create a second, and 1 to 20 ms for the table.
//!
//! The second part plays as many jobs as one account can start, and shows how many run at once.
//!
//! `HYPERBAND_SCALE_ALL=1 cargo test --release -p simulator --test scale -- --nocapture` prints the figures of
//! docs/PERFORMANCE.md. Without the variable, fewer jobs show the same in a third of the time.
#![expect(clippy::print_stdout, reason = "prints the figures of a document")]

use simulator::Run;
use simulator::case::{Case, Choices, Rungs};
use simulator::plan::Plan;

/// Returns whether the tests have the sizes of docs/PERFORMANCE.md, for which a build without optimizations takes minutes.
fn all() -> bool {
    std::env::var_os("HYPERBAND_SCALE_ALL").is_some()
}

/// Plays so many tunings of `jobs` jobs each, `parallel` at once. Checks the times from the end of a job to its conclusion:
/// their median and their 99th percentile. At least `at_once` jobs run at the same time.
fn check(rungs: Rungs, tunings: usize, (jobs, parallel): (u32, u32), at_once: usize) {
    let choices = Choices {
        hyperband: Some((9, 27, 3)),
        max_jobs: jobs,
        max_parallel: parallel,
        max_runtime_seconds: 14_400,
        rungs,
        ..Choices::plain()
    };
    let cases = (0..tunings).map(|n| Case::of(&format!("sim{n}"), &choices)).collect();
    // Nine epochs of 85 to 340 s.
    let plan = Plan { one_create_a_second: true, epoch_ms: 170_000, ..Plan::calm() };
    let history = Run { seed: 1, plan, cases, trace: false }.history();
    assert_eq!(history.violations, Vec::<String>::new());
    assert_eq!(history.rulings.get("SettledInFull"), None, "nothing is settled in full");
    assert!(history.most_running >= at_once, "{} jobs at once", history.most_running);
    let delays = history.conclusions_ms;
    assert_eq!(delays.len(), history.jobs, "every job ran");
    let at = |percent: usize| delays[(delays.len() * percent / 100).min(delays.len() - 1)];
    println!("{} jobs, {} at once: {:?} ms", delays.len(), history.most_running, [at(50), at(99), at(100)]);
    assert!(at(50) < 10_000 && at(99) < 60_000, "{} ms, {} ms", at(50), at(99));
}

#[test]
fn each_of_many_parallel_jobs_is_concluded_within_seconds() {
    let (tunings, at_once) = if all() { (14, 1_000) } else { (4, 300) };
    check(Rungs::Stop, tunings, (150, 100), at_once);
}

#[test]
fn jobs_that_train_to_their_rung_are_concluded_within_seconds() {
    check(Rungs::Asynchronous, 3, (150, 100), 200);
}

#[test]
fn the_jobs_of_a_hundred_active_tunings_are_concluded_within_seconds() {
    let (tunings, at_once) = if all() { (100, 150) } else { (40, 60) };
    check(Rungs::Stop, tunings, (3, 2), at_once);
}

#[test]
fn many_parallel_jobs_of_one_tuning_are_concluded_within_seconds() {
    let (jobs, at_once) = if all() { ((1_500, 1_000), 950) } else { ((600, 400), 380) };
    check(Rungs::Stop, 1, jobs, at_once);
}

/// Plays `tunings` tunings of `jobs` jobs each, a hundred at once, whose jobs train for `minutes`: more than the account
/// can start. Starts are the limit, so as many jobs run at once as are started in the time of one. At least `at_once` do.
fn fill(minutes: i64, (tunings, jobs): (usize, u32), at_once: usize) {
    let choices = Choices {
        hyperband: None,
        max_jobs: jobs,
        max_parallel: 100,
        max_runtime_seconds: 14_400,
        ..Choices::plain()
    };
    let cases = (0..tunings).map(|n| Case::of(&format!("sim{n}"), &choices)).collect();
    let plan = Plan { one_create_a_second: true, epoch_ms: minutes * 60_000 / 9, ..Plan::calm() };
    let history = Run { seed: 1, plan, cases, trace: false }.history();
    assert_eq!(history.violations, Vec::<String>::new());
    let delays = history.conclusions_ms;
    assert_eq!(delays.len(), history.jobs, "every job ran");
    assert!(history.most_running >= at_once, "{} jobs at once", history.most_running);
    let at = |percent: usize| delays[(delays.len() * percent / 100).min(delays.len() - 1)];
    println!(
        "{minutes} min a job: {} jobs, {} throttled, {} at once: {:?} ms",
        delays.len(),
        history.faults.values().sum::<u64>(),
        history.most_running,
        [at(50), at(99), at(100)]
    );
}

#[test]
fn an_account_holds_as_many_jobs_as_its_rate_of_starts_fills() {
    fill(2, (4, 300), 130);
    if all() {
        fill(5, (8, 300), 240);
        fill(15, (14, 150), 550);
        fill(60, (45, 100), 1_500);
    }
}
