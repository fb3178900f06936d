//! Running-time limits under a cap: what shortens them, and what lengthens them again.

use tuning::definition::{Definition, Scheduling};
use tuning::log::fact::JobKey;
use tuning::quote::runtime::usual_epoch;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;

use crate::support::build::*;
use crate::support::run::Run;
use crate::waits::{done, on, two_rungs};

/// Returns a begun tuning with a cap of `seconds` seconds of a job.
fn begun(seconds: u64, definition: Definition) -> Run {
    let mut run = Run::new(&Definition { cap: Some(MicroUsd(seconds * SECOND)), ..definition });
    run.take(&[submitted()]);
    run
}

/// Returns the limits of the live jobs, in seconds.
fn limits(run: &Run) -> Vec<u64> {
    run.state.jobs().map(|(_, _, job)| job.order.limits.max_runtime_seconds).collect()
}

/// Logs one epoch every `pace` seconds, up to `epochs`.
fn train(run: &mut Run, key: JobKey, pace: i64, epochs: i64) {
    for epoch in 1..=epochs {
        run.take(&[logged(epoch * pace, key, epoch.unsigned_abs(), 0.5)]);
    }
}

#[test]
fn the_second_epoch_of_a_running_job_shortens_the_limits_of_later_jobs() {
    // The first job reserves 3,900 seconds.
    let mut run = begun(3_900 + 1_000, jobs(9, 2));
    assert_eq!(limits(&run), [3_600]);
    train(&mut run, job(0), 10, 2);
    assert_eq!(limits(&run), [3_600, 252], "280 % of 9 x 10 seconds");
}

#[test]
fn a_job_gets_the_rest_of_the_cap_while_another_runs() {
    let mut run = begun(3_900 + 450, jobs(9, 2));
    train(&mut run, job(0), 10, 2);
    assert_eq!(limits(&run), [3_600, 150], "190 % of 7 x 10 seconds are 133");
    let mut run = begun(3_900 + 432, jobs(9, 2));
    train(&mut run, job(0), 10, 2);
    assert_eq!(limits(&run), [3_600]);
}

/// Without the share, the first of two jobs took what both need.
#[test]
fn regression_free_slots_share_the_money_that_is_left() {
    let mut definition = jobs(9, 3);
    definition.cap = Some(MicroUsd(1_200 * SECOND));
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(20_000); 5];
    run.take(&[submitted()]);
    // 160 % of 180 seconds are 288. At least 130 % of 140 seconds are sent.
    assert_eq!(limits(&run), [182, 182]);
    definition.cap = Some(MicroUsd(10_000 * SECOND));
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(20_000); 5];
    run.state.results.timings.tail_ms = vec![Millis(0)];
    run.take(&[submitted()]);
    assert_eq!(limits(&run), [288; 3]);
}

/// The 95th percentile of fewer than 20 times was the slowest one.
#[test]
fn regression_one_slow_configuration_does_not_size_every_reservation() {
    let mut definition = jobs(9, 1);
    definition.cap = Some(MicroUsd(100_000 * SECOND));
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(10_000); 9];
    run.state.results.timings.epoch_ms.push(Millis(100_000));
    run.state.results.timings.tail_ms = vec![Millis(0)];
    run.take(&[submitted()]);
    assert_eq!(limits(&run), [131], "145 % of 9 x 10 seconds");
}

#[test]
fn a_promoted_trial_counts_with_its_own_epochs() {
    let mut definition = two_rungs(100, Scheduling::Asynchronous);
    definition.cap = Some(MicroUsd(100_000 * SECOND));
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(100_000); 50];
    run.state.results.timings.tail_ms = vec![Millis(1_000); 2];
    run.take(&[submitted()]);
    train(&mut run, on(2, 0), 20, 3);
    run.take(&done(80, on(2, 0), 4, 0.9));
    run.take(&done(90, on(0, 0), 4, 0.1));
    let promoted = run.state.job(on(2, 1)).unwrap();
    assert_eq!(
        promoted.order.limits.max_runtime_seconds, 140,
        "137.5 % of 5 x 20 seconds and 205 % of a tail of 1"
    );
}

/// Jobs that export their model after the last epoch were ended at limits without the time of the export, although the cap
/// was hardly used.
#[test]
fn regression_until_a_save_was_timed_plentiful_money_pays_for_the_user_s_limit() {
    let mut definition = jobs(9, 2);
    definition.cap = Some(MicroUsd(100_000 * SECOND));
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(10_000); 5];
    run.take(&[submitted()]);
    assert_eq!(limits(&run), [3_600; 2]);
    // With less, each slot gets its part of the money: 1,000 s less the allowances of 300 s.
    definition.cap = Some(MicroUsd(2_000 * SECOND));
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(10_000); 5];
    run.take(&[submitted()]);
    assert_eq!(limits(&run), [700, 200]);
}

/// The short saves of jobs to lower rungs hid the long one of a whole training.
#[test]
fn regression_a_save_at_a_rung_does_not_show_how_long_the_last_one_takes() {
    let mut definition = two_rungs(100, Scheduling::Asynchronous);
    definition.cap = Some(MicroUsd(100_000 * SECOND));
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(10_000); 50];
    run.state.results.timings.rung_tail_ms = vec![Millis(0); 20];
    run.take(&[submitted()]);
    assert!(limits(&run).iter().any(|seconds| *seconds < 3_600), "at the first rung");
    run.take(&done(80, on(2, 0), 4, 0.9));
    run.take(&done(90, on(0, 0), 4, 0.1));
    assert_eq!(run.state.job(on(2, 1)).unwrap().order.limits.max_runtime_seconds, 3_600);
}

/// A limit below the user's could end each of the first jobs, and then the cap would pay for no whole job.
#[test]
fn before_a_job_was_timed_every_job_gets_the_user_s_limit() {
    let promoted = || promoting(jobs(40, 4), Scheduling::Asynchronous);
    assert_eq!(limits(&begun(4_800, promoted())), [3_600]);
    assert_eq!(limits(&begun(8_000, promoted())), [3_600; 2]);
}

/// With the epochs of twenty jobs, of which four took 200 seconds and the others 100, the usual one takes 120.
#[test]
fn a_running_job_changes_limits_only_until_twenty_jobs_were_timed() {
    let second_limit = |timed: usize| {
        let mut run = begun(100_000, jobs(9, 2));
        let timings = &mut run.state.results.timings;
        timings.epoch_ms = vec![Millis(100_000); timed];
        timings.epoch_ms[..timed / 5].fill(Millis(200_000));
        timings.tail_ms = vec![Millis(0)];
        train(&mut run, job(0), 200, 2);
        // The next trial takes the slot.
        run.take(&[never_started(500, job(1))]);
        limits(&run)[1]
    };
    assert_eq!(second_limit(19), 1_480, "137 % of 9 x 120 seconds: the running job is the twentieth");
    assert_eq!(second_limit(20), 1_480, "it would be the fifth with 200 seconds");
}

#[test]
fn an_epoch_usually_takes_as_long_as_that_of_its_own_trial_or_the_longest_of_others() {
    let mut run = begun(100_000, jobs(9, 2));
    let usual = |run: &Run| {
        let (_, trial, job) = run.state.jobs().next().unwrap();
        usual_epoch(&run.definition, &run.state, trial, job)
    };
    assert_eq!(usual(&run), None, "no epoch was timed");
    run.state.results.timings.epoch_ms = vec![Millis(10_000), Millis(30_000), Millis(20_000)];
    assert_eq!(usual(&run), Some(Millis(30_000)));
    train(&mut run, job(0), 5, 2);
    assert_eq!(usual(&run), Some(Millis(5_000)));
}
