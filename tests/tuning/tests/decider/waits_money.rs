//! Promotion and money: which promotions wait for a bill, and which trials are promoted when no other job can start.

use tuning::definition::Scheduling::{Asynchronous, Synchronous};
use tuning::definition::{Definition, Scheduling};
use tuning::log::fact::JobEnd::{CapacityError, Completed, ServiceError, Stopped};
use tuning::log::fact::{Fact, Recorded};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;

use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;
use crate::waits::{done, on, two_rungs};

/// Returns a tuning with timed epochs of 100 s and no startup time.
///
/// A job to epoch 4 costs at most 940 seconds (820 when money is short), and its promotion to epoch 9 another 1,100 (950).
/// A first job to epoch 9 costs at most 1,740 seconds (1,470).
fn timed(scheduling: Scheduling, max_parallel: u32, cap_seconds: u64) -> Run {
    let mut definition = two_rungs(100, scheduling);
    definition.limits.max_parallel = max_parallel;
    definition.cap = Some(MicroUsd(cap_seconds * SECOND));
    run_of(&definition)
}

fn run_of(definition: &Definition) -> Run {
    let mut run = Run::new(definition);
    run.state.results.timings.epoch_ms = vec![Millis(100_000); 5];
    run.state.results.timings.startup_ms = vec![Millis(0); 5];
    run
}

/// Like [`done`], with a bill of `bill` seconds.
fn billed(seconds: i64, trial: u32, rung: u32, (epoch, value): (u64, f64), bill: u64) -> Vec<Recorded> {
    let mut facts = done(seconds, on(trial, rung), epoch, value);
    facts[1] = described(seconds + 1, on(trial, rung), Completed, bill);
    facts
}

const ALL_FOUR: [&str; 4] = ["start 0-0-1 to 4", "start 1-0-1 to 9", "start 2-0-1 to 4", "start 3-0-1 to 9"];

#[test]
fn a_cheaper_new_trial_does_not_take_the_money_of_a_waiting_promotion() {
    let mut run = timed(Asynchronous, 4, 4_900);
    check_next(&mut run, &[submitted()], &ALL_FOUR);
    check_next(&mut run, &billed(10, 0, 0, (4, 0.5), 300), &["trial 0 waits at rung 0.0, epoch 4"]);
    // 910 seconds are left: enough for a new trial, too little for the promotion.
    check_next(&mut run, &billed(20, 2, 0, (4, 0.6), 670), &["trial 2 waits at rung 0.0, epoch 4"]);
    let expect = [
        "trial 1 completed",
        "trial 2 promoted from rung 0.0 to 9: 1 of 2, best 1",
        "start 2-1-2 to 9",
        "start 4-0-1 to 4",
    ];
    check_next(&mut run, &billed(30, 1, 0, (9, 0.1), 500), &expect);
}

#[test]
fn a_new_trial_does_not_take_the_money_of_a_promoted_trial_that_could_not_start() {
    let mut run = timed(Synchronous, 4, 4_900);
    check_next(&mut run, &[submitted()], &ALL_FOUR);
    check_next(&mut run, &billed(10, 0, 0, (4, 0.5), 300), &["trial 0 waits at rung 0.0, epoch 4"]);
    let expect = [
        "trial 2 waits at rung 0.0, epoch 4",
        "trial 2 promoted from rung 0.0 to 9: 1 of 2, best 1",
        "trial 0 stopped: rung 0",
    ];
    check_next(&mut run, &billed(20, 2, 0, (4, 0.6), 670), &expect);
    let expect = ["trial 1 completed", "start 2-1-2 to 9", "start 4-0-1 to 4"];
    check_next(&mut run, &billed(30, 1, 0, (9, 0.1), 500), &expect);
}

#[test]
fn a_stop_request_ends_a_promoted_trial_and_one_without_capacity_as_stopped() {
    let mut run = timed(Synchronous, 4, 4_900);
    check_next(&mut run, &[submitted()], &ALL_FOUR);
    run.take(&billed(10, 0, 0, (4, 0.5), 300));
    run.take(&billed(20, 2, 0, (4, 0.6), 670));
    let ended = |run: &Run, seconds| {
        let mut run = run.clone();
        let rulings = run.take(&[stop_requested(seconds)]);
        let of_trial_2 = |ruling: &String| ruling.starts_with("trial 2 ");
        rulings.iter().map(crate::support::render::render).find(of_trial_2)
    };
    assert_eq!(ended(&run, 25).as_deref(), Some("trial 2 stopped: tuning ending"));
    run.take(&billed(30, 1, 0, (9, 0.1), 500));
    run.take(&[described(40, on(2, 1), CapacityError, 0)]);
    assert_eq!(ended(&run, 45).as_deref(), Some("trial 2 stopped: tuning ending"));
}

#[test]
fn a_new_trial_takes_the_rest_of_the_money_when_no_running_job_can_free_more() {
    let mut run = timed(Asynchronous, 4, 4_900);
    check_next(&mut run, &[submitted()], &ALL_FOUR);
    run.take(&billed(10, 0, 0, (4, 0.5), 300));
    run.take(&billed(20, 2, 0, (4, 0.6), 670));
    check_next(&mut run, &billed(30, 1, 0, (9, 0.1), 1_470), &["trial 1 completed"]);
    let expect = ["trial 3 completed", "notice: 80 % of the cap", "start 4-0-1 to 4"];
    check_next(&mut run, &billed(40, 3, 0, (9, 0.1), 1_520), &expect);
}

#[test]
fn a_trial_that_waits_for_its_first_rung_does_not_block_a_cheaper_trial() {
    let mut run = timed(Asynchronous, 2, 2_410);
    check_next(&mut run, &[submitted()], &["start 0-0-1 to 4", "start 1-0-1 to 9"]);
    let limit = |seconds, most| {
        recorded(seconds, Fact::LimitsChanged { cap: None, max_parallel: Some(most), paused: None })
    };
    check_next(&mut run, &[limit(5, 1)], &[]);
    // One second is billed: the rest does not pay for trial 1 to epoch 9 again.
    let expect = ["retry after 1-0-1: ServiceError, from 40"];
    check_next(&mut run, &[described(10, on(1, 0), ServiceError, 1)], &expect);
    check_next(&mut run, &[limit(50, 2)], &["start 2-0-1 to 4"]);
}

#[test]
fn a_synchronous_rung_closes_when_the_cap_pays_only_for_a_promotion() {
    // The next new trial joins bracket 2 and trains to epoch 9, which takes at least 1,470 seconds. The rest is 1,000
    // seconds, and the promotion to epoch 3 needs 560.
    let mut definition = promoting(jobs(100, 1), Synchronous);
    definition.cap = Some(MicroUsd(1_100 * SECOND));
    let mut run = run_of(&definition);
    run.state.search.joined = vec![2, 2, 0];
    check_next(&mut run, &[submitted()], &["start 4-0-1 to 1"]);
    let expect = [
        "trial 4 waits at rung 0.0, epoch 1",
        "trial 4 promoted from rung 0.0 to 3: 1 of 1, best 1",
        "start 4-1-2 to 3",
    ];
    check_next(&mut run, &billed(10, 4, 0, (1, 0.5), 100), &expect);
}

#[test]
fn when_the_cap_is_used_up_a_promotable_trial_ends_differently_from_a_trial_that_is_out() {
    let mut run = Run::new(&capped(two_rungs(100, Asynchronous), 4));
    check_next(&mut run, &[submitted()], &ALL_FOUR);
    for (trial, epoch) in [(0, 4), (2, 4), (1, 9)] {
        run.take(&billed(3_601, trial, 0, (epoch, f64::from(trial)), 3_700));
    }
    let rulings = run.take(&billed(3_700, 3, 0, (9, 0.1), 3_700));
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text[1..3], ["trial 0 stopped: rung 0", "trial 2 stopped: tuning ending"], "{text:?}");
    assert_eq!(text.last().map(String::as_str), Some("ended: CostCap"), "{text:?}");
}

/// The rest pays neither for trial 0 nor for the retry of trial 2. Trial 4 gets the money. The tuning does not end.
#[test]
fn the_search_continues_after_the_trial_that_reached_the_target_lacks_money() {
    let mut definition = two_rungs(100, Asynchronous);
    definition.cap = Some(MicroUsd(4_900 * SECOND));
    definition.limits.target = Some(0.9);
    let mut run = run_of(&definition);
    check_next(&mut run, &[submitted()], &ALL_FOUR);
    let expect = ["retry after 2-0-1: ServiceError, from 40"];
    check_next(&mut run, &[described(10, on(2, 0), ServiceError, 215)], &expect);
    run.take(&[logged(15, on(0, 0), 1, 0.95)]);
    run.take(&[described(20, on(1, 0), Stopped, 1_470)]);
    let expect = ["trial 0 waits at rung 0.0, epoch 1", "notice: 50 % of the cap"];
    check_next(&mut run, &[described(50, on(0, 0), Completed, 800)], &expect);
    // 949 seconds are left. The promotion needs 950, and a new trial less.
    let expect = [
        "trial 3 stopped: trial 0 reached the target",
        "trial 2 failed: the training job failed without a reason",
        "trial 0 stopped: out of reach",
        "notice: 80 % of the cap",
        "start 4-0-1 to 4",
    ];
    check_next(&mut run, &[described(60, on(3, 0), Stopped, 1_466)], &expect);
}

/// The user may raise the cap before the starts continue.
#[test]
fn a_paused_tuning_keeps_the_trial_that_reached_the_target_although_it_lacks_money() {
    let mut definition = two_rungs(100, Asynchronous);
    definition.cap = Some(MicroUsd(4_900 * SECOND));
    definition.limits.target = Some(0.9);
    let mut run = run_of(&definition);
    check_next(&mut run, &[submitted()], &ALL_FOUR);
    run.take(&[logged(15, on(0, 0), 1, 0.95)]);
    run.take(&[described(20, on(1, 0), Stopped, 1_470)]);
    run.take(&[described(20, on(2, 0), Stopped, 215)]);
    run.take(&[described(50, on(0, 0), Completed, 800), paused(55, true)]);
    let expect = ["trial 3 stopped: trial 0 reached the target", "notice: 80 % of the cap"];
    check_next(&mut run, &[described(60, on(3, 0), Stopped, 1_466)], &expect);
    let raised =
        Fact::LimitsChanged { cap: Some(MicroUsd(9_900 * SECOND)), max_parallel: None, paused: Some(false) };
    let expect = ["trial 0 promoted from rung 0.0 to 9: 1 of 2, best 1", "start 0-1-2 to 9"];
    check_next(&mut run, &[recorded(70, raised)], &expect);
}

/// Its epochs of 200 s take twice the usual time, so its job to epoch 9 takes more than the rest of 1,100 seconds.
#[test]
fn a_promotion_is_paid_for_with_the_epochs_of_its_own_trial() {
    let mut run = timed(Asynchronous, 4, 4_900);
    check_next(&mut run, &[submitted()], &ALL_FOUR);
    run.take(&billed(10, 0, 0, (4, 0.5), 300));
    for epoch in 1..=3 {
        run.take(&[logged(200 * epoch, on(2, 0), epoch.unsigned_abs(), 0.5)]);
    }
    let expect = ["trial 2 waits at rung 0.0, epoch 4"];
    check_next(&mut run, &billed(800, 2, 0, (4, 0.6), 480), &expect);
}
