//! Promotion, rule by rule: when a trial waits, when it is promoted, and how a trial that does not reach its rung ends.

use tuning::definition::Scheduling::{Asynchronous, Synchronous};
use tuning::definition::{Definition, Scheduling};
use tuning::log::fact::JobEnd::{AlgorithmError, Completed, MaxRuntime, ServiceError, Stopped};
use tuning::log::fact::{JobKey, Recorded};
use tuning::unit::epochs::Epochs;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};

/// Returns a tuning with two brackets: one with rungs at 4 and 9 epochs, one with a rung at 9. Four jobs at a time.
pub(crate) fn two_rungs(max_jobs: u32, scheduling: Scheduling) -> Definition {
    promoting(Definition { strategy: comparing(4, 9, 2), ..jobs(max_jobs, 4) }, scheduling)
}

/// Returns the first job of a trial at rung `rung`, without retries before it.
pub(crate) fn on(trial: u32, rung: u32) -> JobKey {
    at_rung(trial, rung, rung + 1)
}

/// Returns the facts of a job that logs `value` at `epoch` and completes.
pub(crate) fn done(seconds: i64, key: JobKey, epoch: u64, value: f64) -> Vec<Recorded> {
    vec![logged(seconds, key, epoch, value), described(seconds + 1, key, Completed, 10)]
}

/// Returns a tuning with four running jobs: trials 0 and 2 are in bracket 0, trials 1 and 3 in bracket 1.
pub(crate) fn begun(definition: &Definition) -> Run {
    check(
        definition,
        &[],
        &[submitted()],
        &["start 0-0-1 to 4", "start 1-0-1 to 9", "start 2-0-1 to 4", "start 3-0-1 to 9"],
    )
}

#[test]
fn a_trial_waits_at_its_level_and_the_next_trial_starts() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    let expect = ["trial 0 waits at rung 0.0, epoch 4", "start 4-0-1 to 4"];
    check_next(&mut run, &done(10, on(0, 0), 4, 0.5), &expect);
}

#[test]
fn the_best_half_is_promoted_before_a_new_trial_starts() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    let expect = [
        "trial 2 waits at rung 0.0, epoch 4",
        "trial 2 promoted from rung 0.0 to 9: 1 of 2, best 1",
        "start 2-1-2 to 9",
    ];
    check_next(&mut run, &done(20, on(2, 0), 4, 0.6), &expect);
}

#[test]
fn a_failed_trial_counts_as_an_arrival_and_is_never_promoted() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    let expect = ["trial 0 failed: exit code 1", "start 4-0-1 to 4"];
    check_next(&mut run, &[described(10, on(0, 0), AlgorithmError, 10)], &expect);
    let expect = [
        "trial 2 waits at rung 0.0, epoch 4",
        "trial 2 promoted from rung 0.0 to 9: 1 of 2, best 1",
        "start 2-1-2 to 9",
    ];
    check_next(&mut run, &done(20, on(2, 0), 4, 0.6), &expect);
}

#[test]
fn a_program_failure_after_the_level_fails_the_trial() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    let when = [logged(10, on(0, 0), 4, 0.9), described(11, on(0, 0), AlgorithmError, 10)];
    check_next(&mut run, &when, &["trial 0 failed: exit code 1", "start 4-0-1 to 4"]);
}

#[test]
fn a_trial_whose_program_ends_early_waits_with_its_last_value() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    let expect = ["trial 0 waits at rung 0.0, epoch 2", "start 4-0-1 to 4"];
    check_next(&mut run, &done(10, on(0, 0), 2, 0.5), &expect);
}

#[test]
fn a_promoted_job_without_values_counts_as_failed_although_its_trial_has_values() {
    let three = promoting(Definition { strategy: comparing(1, 9, 3), ..jobs(100, 4) }, Asynchronous);
    // The rungs are at 1, 3 and 9, so the middle rung is not the last.
    let mut run = check(
        &three,
        &[],
        &[submitted()],
        &["start 0-0-1 to 1", "start 1-0-1 to 3", "start 2-0-1 to 1", "start 3-0-1 to 1"],
    );
    for trial in [0, 2, 3] {
        run.take(&done(10, on(trial, 0), 1, 0.5 + f64::from(trial)));
    }
    let rulings = run.take(&[described(30, on(3, 1), Completed, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(!text.iter().any(|ruling| ruling.contains("waits")), "{text:?}");
    assert_eq!(run.state.search.cohorts[0].rungs[1].arrivals, [(TrialId(3), None)]);
}

#[test]
fn a_trial_at_its_level_waits_after_a_timeout_a_stop_or_a_service_error() {
    for end in [MaxRuntime, Stopped, ServiceError] {
        let mut run = begun(&two_rungs(100, Asynchronous));
        let when = [logged(10, on(0, 0), 4, 0.9), described(11, on(0, 0), end, 10)];
        check_next(&mut run, &when, &["trial 0 waits at rung 0.0, epoch 4", "start 4-0-1 to 4"]);
    }
}

#[test]
fn a_service_error_is_retried_at_the_same_rung() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    let expect = ["retry after 2-1-2: ServiceError, from 60", "start 5-0-1 to 9"];
    check_next(&mut run, &[described(30, on(2, 1), ServiceError, 0)], &expect);
    let rulings = run.take(&done(70, on(1, 0), 9, 0.1));
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"start 2-1-3 to 9".to_owned()), "{text:?}");
}

#[test]
fn a_complete_synchronous_rung_promotes_its_best_trials_and_stops_the_others() {
    let mut run = begun(&two_rungs(100, Synchronous));
    let expect = ["trial 0 waits at rung 0.0, epoch 4", "start 4-0-1 to 4"];
    check_next(&mut run, &done(10, on(0, 0), 4, 0.5), &expect);
    // Trial 4 is in the next round.
    let expect = ["trial 4 waits at rung 0.0, epoch 4", "start 5-0-1 to 9"];
    check_next(&mut run, &done(15, on(4, 0), 4, 0.7), &expect);
    let expect = [
        "trial 2 waits at rung 0.0, epoch 4",
        "trial 2 promoted from rung 0.0 to 9: 1 of 2, best 1",
        "trial 0 stopped: rung 0",
        "start 2-1-2 to 9",
    ];
    check_next(&mut run, &done(20, on(2, 0), 4, 0.6), &expect);
}

#[test]
fn a_failure_completes_a_synchronous_rung() {
    let mut run = begun(&two_rungs(100, Synchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    let expect = [
        "trial 2 failed: exit code 1",
        "trial 0 promoted from rung 0.0 to 9: 1 of 2, best 1",
        "start 0-1-2 to 9",
    ];
    check_next(&mut run, &[described(30, on(2, 0), AlgorithmError, 10)], &expect);
}

#[test]
fn a_job_that_never_started_counts_as_an_arrival_without_a_value() {
    let mut run = begun(&two_rungs(100, Synchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&[never_started(12, on(2, 0))]);
    assert_eq!(run.state.search.cohorts[0].rungs[0].arrivals, [(TrialId(0), Some(0.5)), (TrialId(2), None)]);
}

#[test]
fn a_diverged_trial_is_stopped_at_once() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    let when = [logged_nan(10, on(0, 0), 4), described(11, on(0, 0), Completed, 10)];
    let expect = ["trial 0 waits at rung 0.0, epoch 4", "trial 0 stopped: rung 0", "start 4-0-1 to 4"];
    check_next(&mut run, &when, &expect);
}

#[test]
fn late_lines_of_a_settled_job_change_nothing() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    check_next(&mut run, &[logged(8, on(0, 0), 3, 0.9), logged(10, on(0, 0), 4, 0.5)], &[]);
    run.take(&done(20, on(2, 0), 4, 0.6));
    check_next(&mut run, &[logged(19, on(2, 0), 5, 0.99)], &[]);
    assert!(
        run.state.search.incumbent.as_ref().is_some_and(|best| best.value < 0.7),
        "{:?}",
        run.state.search.incumbent
    );
}

#[test]
fn a_job_that_repeats_epochs_is_reported_once() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    check_next(&mut run, &[logged(30, on(2, 1), 3, 0.55)], &["2-1-2 begins at 2 instead of 4"]);
    check_next(&mut run, &[logged(31, on(2, 1), 4, 0.56), logged(29, on(2, 1), 1, 0.4)], &[]);
}

#[test]
fn a_job_that_resumes_its_checkpoint_is_not_reported() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    check_next(&mut run, &[logged(30, on(2, 1), 5, 0.61)], &[]);
}

#[test]
fn a_resumed_job_that_logs_its_last_value_again_is_not_reported() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    let mut at_once = run.clone();
    check_next(&mut run, &[logged(30, on(2, 1), 4, 0.6)], &[]);
    check_next(&mut run, &[logged(31, on(2, 1), 5, 0.61)], &[]);
    let both = vec![line(30, "e4", 4, 0.6), line(31, "e5", 5, 0.61)];
    check_next(&mut at_once, &[lines(31, on(2, 1), "algo-1", both)], &[]);
    at_once.take(&done(40, on(2, 1), 9, 0.8));
    let resumed = at_once.concluded.iter().find(|summary| summary.job == on(2, 1)).unwrap();
    assert_eq!((resumed.resumed_from, resumed.repeats_from), (Some(Epochs(4)), None));
    // A late line below the promoted epoch is still reported.
    check_next(&mut run, &[logged(29, on(2, 1), 2, 0.4)], &["2-1-2 begins at 1 instead of 4"]);
}

#[test]
fn a_different_value_at_the_promoted_epoch_is_reported_as_a_repeat() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    let mut twice = run.clone();
    let repeat = "2-1-2 begins at 3 instead of 4";
    check_next(&mut run, &[logged(30, on(2, 1), 4, 0.600_000_000_000_000_1)], &[repeat]);
    // The last value is logged again and the epoch is then repeated; the lines arrive in either order.
    let line_of = |id: &str, value| lines(30, on(2, 1), "algo-1", vec![line(30, id, 4, value)]);
    let mut other_way = twice.clone();
    check_next(&mut twice, &[line_of("a", 0.6)], &[]);
    check_next(&mut twice, &[line_of("b", 0.7)], &[repeat]);
    check_next(&mut other_way, &[line_of("b", 0.7), line_of("a", 0.6)], &[repeat]);
}

#[test]
fn a_job_at_the_promoted_epoch_is_reported_if_the_earlier_value_is_unknown() {
    // The value of trial 2 at epoch 4 never arrived; the value at epoch 5 replaces it.
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 5, 0.6));
    check_next(&mut run, &[logged(30, on(2, 1), 4, 0.6)], &["2-1-2 begins at 3 instead of 4"]);
}

/// Returns lines of a program that counts from 1 after each start.
fn counted(seconds: i64, key: JobKey, stream: &str, values: &[f64]) -> Recorded {
    let all = values.iter().zip(1_u64..).map(|(value, index)| {
        line(seconds + i64::try_from(index).unwrap(), &format!("e{index:05}"), index, *value)
    });
    lines(seconds, key, stream, all.collect())
}

/// Returns a tuning whose trial 2 is promoted from 4 to 9 epochs and counts its lines from 1 again.
fn promoted_counting_from_one() -> Run {
    let mut definition = two_rungs(100, Asynchronous);
    definition.epochs.per_attempt = true;
    let mut run = begun(&definition);
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&[
        counted(10, on(2, 0), "first", &[0.1, 0.2, 0.3, 0.6]),
        described(20, on(2, 0), Completed, 10),
    ]);
    run
}

#[test]
fn lines_counted_from_one_get_their_epochs_at_the_end_of_their_job() {
    let mut run = promoted_counting_from_one();
    run.take(&[counted(30, on(2, 1), "second", &[0.65, 0.7, 0.75, 0.8])]);
    let shown = run.curve(2);
    assert_eq!(shown.last(), Some(&(4, 0.6)), "the epochs of the lines are not known yet");
    run.take(&[
        counted(40, on(2, 1), "second", &[0.65, 0.7, 0.75, 0.8, 0.85]),
        ended(50, on(2, 1), Completed),
    ]);
    let rulings = run.take(&[described(50, on(2, 1), Completed, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text[0], "trial 2 completed", "{text:?}");
    let summary = run.concluded.last().unwrap();
    assert_eq!((summary.resource, summary.last_value), (Epochs(9), Some(0.85)));
    assert!(summary.curve.contains(&(Epochs(5), Some(0.65))), "{:?}", summary.curve);
}

#[test]
fn a_resumed_job_with_lines_counted_from_one_may_log_its_last_value_again() {
    for (shown, repeated) in [(0.6, None), (0.61, Some(Epochs(3)))] {
        let mut run = promoted_counting_from_one();
        run.take(&[counted(30, on(2, 1), "second", &[shown, 0.65, 0.7, 0.75, 0.8, 0.85])]);
        run.take(&[described(50, on(2, 1), Completed, 10)]);
        let summary = run.concluded.last().unwrap();
        assert_eq!((summary.resource, summary.repeats_from), (Epochs(9), repeated), "{shown}");
        assert_eq!(summary.resumed_from, repeated.is_none().then_some(Epochs(4)));
    }
}

#[test]
fn nine_lines_for_nine_epochs_prove_a_start_from_the_beginning() {
    let mut run = promoted_counting_from_one();
    run.take(&[counted(30, on(2, 1), "second", &[0.1, 0.2, 0.3, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85])]);
    let rulings = run.take(&[described(50, on(2, 1), Completed, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text[..2], ["2-1-2 begins at 0 instead of 4", "trial 2 completed"]);
    assert_eq!(run.concluded.last().unwrap().resource, Epochs(9));
}

#[test]
fn a_program_that_ignores_its_level_is_stopped_and_its_trial_waits() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    check_next(&mut run, &[logged(10, on(0, 0), 4, 0.5)], &[]);
    check_next(&mut run, &[logged(11, on(0, 0), 5, 0.6)], &["stop 0-0-1: past level 4"]);
    let expect = ["trial 0 waits at rung 0.0, epoch 4", "start 4-0-1 to 4"];
    check_next(&mut run, &[described(20, on(0, 0), Stopped, 10)], &expect);
}

#[test]
fn a_stop_request_ends_waiting_trials() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    let rulings = run.take(&[stop_requested(20)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"trial 0 stopped: tuning ending".to_owned()), "{text:?}");
    assert!(run.state.search.waiting.is_empty());
}

/// A synchronous rung that only the end of the tuning closes promotes no trial.
#[test]
fn a_stop_request_promotes_no_trial_of_an_open_round() {
    let mut definition = two_rungs(100, Synchronous);
    definition.limits.max_parallel = 1;
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1 to 4"]);
    run.take(&done(10, on(0, 0), 4, 0.5));
    let expect = ["stop 1-0-1: tuning ending", "trial 0 stopped: tuning ending"];
    check_next(&mut run, &[stop_requested(20)], &expect);
}

#[test]
fn a_promotion_waits_for_money_and_no_new_trial_takes_it() {
    // Four jobs are reserved. The money left after two bills pays for no further job.
    let mut definition = two_rungs(100, Asynchronous);
    definition.cap = Some(MicroUsd(4 * WORST_CASE + 100 * SECOND));
    let mut run = begun(&definition);
    let wait = ["trial 0 waits at rung 0.0, epoch 4"];
    let mut first = done(10, on(0, 0), 4, 0.5);
    first[1] = described(11, on(0, 0), Completed, 90);
    let rulings = run.take(&first);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text, [wait[0], "start 4-0-1 to 4"]);
    let mut second = done(20, on(2, 0), 4, 0.6);
    second[1] = described(21, on(2, 0), Completed, 3_000);
    check_next(&mut run, &second, &["trial 2 waits at rung 0.0, epoch 4"]);
    // The bill of another job frees enough money, and the promotion is next.
    let mut third = done(30, on(3, 0), 9, 0.1);
    third[1] = described(31, on(3, 0), Completed, 10);
    let rulings = run.take(&third);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"start 2-1-2 to 9".to_owned()), "{text:?}");
}

#[test]
fn the_last_jobs_are_reserved_for_promotions() {
    // A trial in bracket 0 needs two jobs. With three jobs in all, the second trial is in bracket 1.
    let definition = two_rungs(3, Asynchronous);
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1 to 4", "start 1-0-1 to 9"]);
    let expect = [
        "trial 0 waits at rung 0.0, epoch 4",
        "trial 0 promoted from rung 0.0 to 9: 1 of 1, best 1",
        "start 0-1-2 to 9",
    ];
    check_next(&mut run, &done(10, on(0, 0), 4, 0.5), &expect);
}

#[test]
fn a_rung_closed_by_the_job_limit_promotes_no_further_trial_when_jobs_are_free_again() {
    // With two of three jobs left, trial 0 is alone in its round.
    let definition = two_rungs(3, Synchronous);
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1 to 4", "start 1-0-1 to 9"]);
    let expect = [
        "trial 0 waits at rung 0.0, epoch 4",
        "trial 0 promoted from rung 0.0 to 9: 1 of 1, best 1",
        "start 0-1-2 to 9",
    ];
    check_next(&mut run, &done(10, on(0, 0), 4, 0.5), &expect);
    // Neither of the two jobs starts. Trial 2 joins the round and is better; then another job is free.
    let expect = ["trial 1 never started", "start 2-0-1 to 4"];
    check_next(&mut run, &[never_started(12, on(1, 0))], &expect);
    check_next(&mut run, &done(20, on(2, 0), 4, 0.6), &["trial 2 waits at rung 0.0, epoch 4"]);
    let expect = ["trial 0 never started", "start 3-0-1 to 9"];
    check_next(&mut run, &[never_started(30, on(0, 1))], &expect);
}

#[test]
fn the_cap_is_reported_as_used_up_although_it_pays_for_a_lower_rung() {
    // The money left pays for 4 epochs in bracket 0, but bracket 1 with 9 epochs is next. The first trial diverges.
    let mut run = check(&capped(two_rungs(100, Asynchronous), 1), &[], &[submitted()], &["start 0-0-1 to 4"]);
    let value = |epoch| if epoch < 2 { 0.5 } else { f64::NAN };
    let shown = |epoch: i64| line(250 * epoch, &format!("e{epoch:05}"), epoch.unsigned_abs(), value(epoch));
    run.take(&[lines(1_000, on(0, 0), "algo-1", (1..=4).map(shown).collect())]);
    let rulings = run.take(&[described(1_100, on(0, 0), Completed, 1_100)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"notice: 100 % of the cap".to_owned()), "{text:?}");
    assert_eq!(text.last().map(String::as_str), Some("ended: CostCap"), "{text:?}");
}

#[test]
fn the_summary_of_a_promoted_job_has_its_level_and_its_first_epoch() {
    for (first, resumed, repeated) in
        [(5, Some(Epochs(4)), None), (1, None, Some(Epochs(0))), (3, None, Some(Epochs(2)))]
    {
        let mut run = begun(&two_rungs(100, Asynchronous));
        run.take(&done(10, on(0, 0), 4, 0.5));
        run.take(&done(20, on(2, 0), 4, 0.6));
        let summary = |run: &Run, key| {
            let (key, trial, job) = run.state.jobs().find(|(job, _, _)| *job == key).unwrap();
            tuning::trial::summary::summary(&run.definition, key, trial, job)
        };
        let silent = summary(&run, on(2, 1));
        assert_eq!((silent.level, silent.resumed_from, silent.repeats_from), (Some(Epochs(9)), None, None));
        run.take(&[logged(30, on(2, 1), first, 0.7)]);
        run.take(&done(40, on(2, 1), 9, 0.8));
        let above = run.concluded.iter().find(|summary| summary.job == on(2, 1)).unwrap();
        assert_eq!(
            (above.level, above.resumed_from, above.repeats_from),
            (Some(Epochs(9)), resumed, repeated)
        );
        let below = run.concluded.iter().find(|summary| summary.job == on(2, 0)).unwrap();
        assert_eq!((below.level, below.resumed_from, below.repeats_from), (Some(Epochs(4)), None, None));
    }
}

#[test]
fn waiting_trials_are_counted_at_their_rung() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    let counts = |run: &Run| {
        [(0, 0), (0, 1), (1, 0)]
            .map(|(bracket, rung)| run.state.search.waiting_at(BracketId(bracket), RungId(rung)))
    };
    assert_eq!(counts(&run), [0, 0, 0]);
    run.take(&done(10, on(0, 0), 4, 0.5));
    assert_eq!(counts(&run), [1, 0, 0]);
    run.take(&done(20, on(2, 0), 4, 0.6));
    assert_eq!(counts(&run), [1, 0, 0], "the better of two trials is promoted");
}

#[test]
fn an_earlier_stream_that_arrives_late_gets_its_epochs() {
    // The lines of the first start arrive with the read of the log, after the lines of the second start.
    let mut definition = two_rungs(100, Asynchronous);
    definition.epochs.per_attempt = true;
    let mut run = begun(&definition);
    run.take(&[counted(40, on(0, 0), "second", &[0.3, 0.4])]);
    run.take(&[counted(10, on(0, 0), "first", &[0.1, 0.2])]);
    let rulings = run.take(&[described(50, on(0, 0), Completed, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text[0], "trial 0 waits at rung 0.0, epoch 4");
    let curve: Vec<_> = run
        .state
        .search
        .parked
        .get(TrialId(0))
        .unwrap()
        .curve
        .iter()
        .map(|(epoch, value)| (epoch.0, value.unwrap()))
        .collect();
    assert_eq!(curve, [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]);
}

#[test]
fn a_trial_that_is_out_needs_no_job() {
    use tuning::scheduler::Cohort;
    let definition = two_rungs(100, Synchronous);
    let mut run = begun(&definition);
    run.take(&done(10, on(0, 0), 4, 0.5));
    let needed = |run: &Run| {
        run.state.search.cohort(cohort(0, 0)).map_or(0, |cohort: &Cohort| cohort.jobs_needed(2, 0))
    };
    assert_eq!(needed(&run), 1);
    // Trial 2 is promoted and trial 0 is out, so no trial is left to promote.
    run.take(&done(20, on(2, 0), 4, 0.6));
    assert_eq!(needed(&run), 0);
    let left = run.state.search.cohort(cohort(0, 0)).unwrap();
    assert_eq!(left.passages()[0], hyperband::promotion::Passage { failed: 1, promoted: 1 });
}

/// Only the end of its job shows from which checkpoint a promoted trial resumed.
#[test]
fn lines_counted_from_one_raise_the_epoch_of_a_running_trial_only_in_its_first_job() {
    let mut run = promoted_counting_from_one();
    let resource = |run: &Run, trial| run.state.trials[&TrialId(trial)].resource();
    run.take(&[counted(30, on(2, 1), "second", &[0.61, 0.65, 0.7, 0.75, 0.8])]);
    assert_eq!(resource(&run, 2), Epochs(4));
    run.take(&[counted(31, on(1, 0), "other", &[0.1, 0.2, 0.3])]);
    assert_eq!(resource(&run, 1), Epochs(3));
    // Both jobs of trial 2 logged an epoch each second.
    run.take(&[described(50, on(2, 1), Completed, 10)]);
    assert_eq!(run.state.results.timings.epoch_ms, [Millis(1_000); 2]);
}
