//! The refit: at the end, the best configuration is trained once more, within the cap and the number of jobs.

use tuning::change::fold::fold;
use tuning::definition::Definition;
use tuning::definition::Scheduling::Asynchronous;
use tuning::log::fact::Fact;
use tuning::log::fact::JobEnd::{AlgorithmError, CapacityError, Completed, Stopped};
use tuning::log::reasons::{EndReason, StopWhy};
use tuning::log::ruling::{NoticeOrder, Order, Ruling};
use tuning::state::State;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::world::World;
use crate::support::{check, check_next};

fn refit(definition: Definition) -> Definition {
    Definition { refit: true, ..definition }
}

/// Returns the configuration of a trial.
fn drawn(run: &Run, trial: u32) -> search::Configuration {
    State::new(&run.definition).draw(&run.definition, TrialId(trial)).configuration
}

/// Returns a search with three jobs after two trials, of which the second is better, at epoch 5.
fn searched() -> Run {
    let mut run = check(&refit(jobs(3, 2)), &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    run.take(&[logged(10, job(0), 9, 0.5), logged(11, job(1), 5, 0.8), logged(12, job(1), 9, 0.6)]);
    run.take(&[described(20, job(0), Completed, 10)]);
    run
}

#[test]
fn after_the_search_the_refit_trains_the_best_configuration_to_its_best_epoch() {
    let mut run = searched();
    let expect = ["trial 1 completed", "start 2-0-1 to 5 as refit"];
    check_next(&mut run, &[described(21, job(1), Completed, 10)], &expect);
    let Some(Ruling::Order(Order::Start { configuration, .. })) = run.rulings.last() else { panic!() };
    assert_eq!(*configuration, drawn(&run, 1));
    // The refit is not judged, and not stopped at its last epoch.
    check_next(&mut run, &[logged(30, job(2), 1, 0.1), logged(31, job(2), 5, 0.81)], &[]);
    let expect = ["trial 2 completed", "ended: MaxJobs"];
    check_next(&mut run, &[described(40, job(2), Completed, 10)], &expect);
}

/// The incumbent belonged to a trial whose program failed, and its configuration was trained again.
#[test]
fn regression_the_configuration_of_a_failed_job_is_not_trained_again() {
    let mut run = check(&refit(jobs(3, 2)), &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    run.take(&[logged(10, job(0), 9, 0.5), logged(11, job(1), 5, 0.8)]);
    run.take(&[described(20, job(0), Completed, 10)]);
    let expect = ["trial 1 failed: exit code 1", "start 2-0-1 to 9 as refit"];
    check_next(&mut run, &[described(21, job(1), AlgorithmError, 10)], &expect);
    let Some(Ruling::Order(Order::Start { configuration, .. })) = run.rulings.last() else { panic!() };
    assert_eq!(*configuration, drawn(&run, 0));
    // Its value stays the best seen.
    assert_eq!(run.state.search.incumbent.as_ref().map(|best| best.trial), Some(TrialId(1)));
}

#[test]
fn without_a_job_that_counts_there_is_no_refit() {
    let mut run = check(&refit(jobs(3, 2)), &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    run.take(&[logged(10, job(0), 9, 0.5), described(20, job(0), AlgorithmError, 10)]);
    let expect = ["trial 1 failed: exit code 1", "ended: MaxJobs"];
    check_next(&mut run, &[described(21, job(1), AlgorithmError, 10)], &expect);
}

#[test]
fn after_the_target_is_reached_the_refit_starts_and_is_retried() {
    let mut definition = refit(jobs(100, 1));
    definition.limits.target = Some(0.7);
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1"]);
    check_next(&mut run, &[logged(10, job(0), 3, 0.75)], &[]);
    let expect = ["trial 0 completed", "ending: Target", "start 1-0-1 to 3 as refit"];
    check_next(&mut run, &[described(20, job(0), Completed, 10)], &expect);
    // After a capacity error the refit is retried, although the tuning is ending.
    let expect = ["retry after 1-0-1: Capacity, from 60"];
    check_next(&mut run, &[described(30, job(1), CapacityError, 0)], &expect);
    check_next(&mut run, &[time_passed(61)], &["start 1-0-2 to 3 as refit"]);
    let expect = ["trial 1 completed", "ended: Target"];
    check_next(&mut run, &[described(90, attempt(1, 2), Completed, 10)], &expect);
}

#[test]
fn after_the_target_no_new_trial_starts_beside_the_refit() {
    let mut definition = refit(jobs(100, 2));
    definition.limits.target = Some(0.7);
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    run.take(&[logged(10, job(0), 3, 0.75)]);
    run.take(&[described(20, job(0), Completed, 10)]);
    let expect = ["trial 1 stopped: trial 0 reached the target", "start 2-0-1 to 3 as refit"];
    check_next(&mut run, &[described(21, job(1), Stopped, 10)], &expect);
    check_next(&mut run, &[time_passed(1_000)], &[]);
}

#[test]
fn money_for_the_refit_is_set_aside_from_the_beginning() {
    let mut run = Run::new(&Definition { cap: Some(MicroUsd(2 * WORST_CASE)), ..refit(jobs(100, 4)) });
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    run.take(&[logged(10, job(0), 9, 0.5)]);
    let expect = ["trial 0 completed", "start 1-0-1 to 9 as refit"];
    check_next(&mut run, &[described(3_610, job(0), Completed, 3_600)], &expect);
    let rulings = run.take(&[described(7_000, job(1), Completed, 3_600)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text.first().map(String::as_str), Some("trial 1 completed"), "{text:?}");
    assert_eq!(text.last().map(String::as_str), Some("ended: CostCap"), "{text:?}");
}

#[test]
fn a_stop_request_stops_the_refit() {
    let mut run = searched();
    run.take(&[described(21, job(1), Completed, 10)]);
    let rulings = run.take(&[stop_requested(25)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.iter().any(|ruling| ruling == "stop 2-0-1: tuning ending"), "{text:?}");
    let expect = ["trial 2 stopped: tuning ending", "ended: Stopped"];
    check_next(&mut run, &[described(30, job(2), Stopped, 5)], &expect);
}

#[test]
fn a_search_without_values_has_no_refit() {
    let mut run = check(&refit(jobs(2, 1)), &[], &[submitted()], &["start 0-0-1"]);
    let rulings = run.take(&[described(20, job(0), Completed, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text, ["trial 0 completed", "ended: Failed"]);
}

#[test]
fn the_refit_reserves_the_excess_of_earlier_bills() {
    let given = [submitted(), logged(10, job(0), 9, 0.5)];
    let expect = ["overrun notice", "trial 0 completed", "start 1-0-1 to 9 as refit"];
    let run = &mut check(&refit(jobs(2, 1)), &given, &[described(20, job(0), Completed, 4_000)], &expect);
    assert_eq!(run.state.job(job(1)).unwrap().bill.reservation, MicroUsd(WORST_CASE + 100 * SECOND));
}

#[test]
fn with_promotions_the_refit_is_one_more_job_and_the_tuning_ends() {
    let mut definition = refit(promoting(hyperband(), Asynchronous));
    definition.limits.max_jobs = definition.plan().jobs() + 1;
    let mut world = World::perfect(&definition);
    world.play();
    let again = world
        .run
        .rulings
        .iter()
        .filter(|ruling| matches!(ruling, Ruling::Order(Order::Start { launch, .. }) if launch.refit));
    assert_eq!(again.count(), 1);
    assert_eq!(world.run.state.results.launched, definition.limits.max_jobs);
    let counted: u32 = world.run.state.search.joined.iter().sum();
    assert_eq!(TrialId(counted + 1), world.run.state.search.next_trial, "the refit joins no bracket");
}

#[test]
fn a_pause_delays_the_refit_and_the_end_of_the_tuning() {
    let mut run = searched();
    run.take(&[paused(20, true)]);
    check_next(&mut run, &[described(21, job(1), Completed, 10)], &["trial 1 completed"]);
    check_next(&mut run, &[paused(30, false)], &["start 2-0-1 to 5 as refit"]);
}

/// `Run::take` checks that a repeated fact changes nothing.
#[test]
fn a_second_stop_request_before_the_bill_of_the_refit_changes_nothing() {
    let mut run = searched();
    run.take(&[described(21, job(1), Completed, 10)]);
    check_next(&mut run, &[ended(30, job(2), Completed)], &["bill 2-0-1"]);
    check_next(&mut run, &[stop_requested(31)], &[]);
    let expect = ["trial 2 completed", "ended: Stopped"];
    check_next(&mut run, &[stop_requested(32), described(33, job(2), Completed, 10)], &expect);
}

#[test]
fn a_stop_request_before_the_order_cancels_the_refit() {
    let mut definition = refit(jobs(100, 1));
    definition.limits.max_jobs = 2;
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1"]);
    run.take(&[logged(10, job(0), 3, 0.75)]);
    let mut held = run.clone();
    check_next(&mut run, &[stop_requested(15)], &["stop 0-0-1: tuning ending"]);
    let expect = ["trial 0 stopped: tuning ending", "ended: Stopped"];
    check_next(&mut run, &[described(20, job(0), Stopped, 10)], &expect);
    // A stop also cancels a refit that a pause delays.
    let pause = Fact::LimitsChanged { cap: None, max_parallel: None, paused: Some(true) };
    held.take(&[recorded(15, pause)]);
    check_next(&mut held, &[described(20, job(0), Completed, 10)], &["trial 0 completed"]);
    check_next(&mut held, &[stop_requested(25)], &["ended: Stopped"]);
}

#[test]
fn a_stop_request_after_the_refit_was_stopped_for_silence_changes_nothing() {
    let mut run = searched();
    run.take(&[described(21, job(1), Completed, 10)]);
    run.state.status = tuning::state::Status::Ending(EndReason::Target);
    run.state.trials.get_mut(TrialId(2)).unwrap().stop_why = Some(StopWhy::NoObjective { seconds: 9 });
    let before = run.state.clone();
    // An unrecorded fact must not change the state.
    assert!(!fold(&run.definition, &mut run.state, &stop_requested(25)));
    assert!(run.state == before);
}

#[test]
fn the_grant_for_the_refit_is_not_returned_before_it() {
    let mut definition = refit(granting(jobs(100, 1)));
    definition.limits.target = Some(0.7);
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[granted(1, 1, 2)]);
    check_next(&mut run, &[logged(10, job(0), 3, 0.75)], &[]);
    let rulings = run.take(&[described(20, job(0), Completed, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"start 1-0-1 to 3 as refit".to_owned()), "{text:?}");
}

/// Found by the simulator: while the refit waited for capacity, the rest of the money started new trials.
#[test]
fn the_search_does_not_continue_after_the_refit_although_money_is_left() {
    let mut run = Run::new(&Definition { cap: Some(MicroUsd(2 * WORST_CASE)), ..refit(jobs(100, 1)) });
    run.take(&[submitted()]);
    run.take(&[logged(10, job(0), 9, 0.5)]);
    run.take(&[described(3_610, job(0), Completed, 3_600)]);
    let expect = ["retry after 1-0-1: Capacity, from 3730"];
    check_next(&mut run, &[described(3_700, job(1), CapacityError, 0)], &expect);
    check_next(&mut run, &[time_passed(3_731)], &["start 1-0-2 to 9 as refit"]);
    let rulings = run.take(&[described(3_800, attempt(1, 2), Completed, 10)]);
    assert!(
        !rulings.iter().any(|ruling| matches!(ruling, Ruling::Order(Order::Start { .. }))),
        "{rulings:?}"
    );
    assert_eq!(
        rulings.last(),
        Some(&Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why: EndReason::CostCap })))
    );
}

/// Returns a tuning that ends because the month's cap has no money left, while its last job stops.
fn ending_at_the_cap() -> Run {
    let mut run = Run::new(&refit(granting(jobs(100, 1))));
    run.take(&[submitted()]);
    run.take(&[granted(1, 1, 2)]);
    run.take(&[logged(10, job(0), 3, 0.75)]);
    run.state.status = tuning::state::Status::Ending(EndReason::CostCap);
    run.state.trials.get_mut(TrialId(0)).unwrap().stop_why = Some(StopWhy::TuningEnding);
    run
}

/// Found by the simulator: the refit was ordered and then stopped at once, because the tuning was ending.
#[test]
fn a_refit_after_the_month_cap_is_used_up_is_not_stopped() {
    let mut run = ending_at_the_cap();
    let rulings = run.take(&[described(20, job(0), Stopped, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"start 1-0-1 to 3 as refit".to_owned()), "{text:?}");
    assert!(!text.iter().any(|ruling| ruling.starts_with("stop 1-0-1")), "{text:?}");
}

/// A stop request was ignored after a search that ended because the month's cap had no money left.
#[test]
fn regression_a_stop_also_cancels_the_refit_of_a_search_that_ended_at_the_cap() {
    // Before the refit is ordered, it never starts.
    let mut run = ending_at_the_cap();
    run.take(&[stop_requested(15)]);
    assert_eq!(run.state.status, tuning::state::Status::Ending(EndReason::Stopped));
    let rulings = run.take(&[described(20, job(0), Stopped, 10)]);
    assert!(
        !rulings.iter().any(|ruling| matches!(ruling, Ruling::Order(Order::Start { .. }))),
        "{rulings:?}"
    );
    // After that, its job is stopped.
    let mut run = ending_at_the_cap();
    run.take(&[described(20, job(0), Stopped, 10)]);
    check_next(&mut run, &[stop_requested(25)], &["stop 1-0-1: tuning ending"]);
}

#[test]
fn the_refit_is_in_a_bracket_of_its_own() {
    let mut run = searched();
    let rulings = run.take(&[described(21, job(1), Completed, 10)]);
    let Some(Ruling::Order(Order::Start { bracket, .. })) = rulings.last() else { panic!("{rulings:?}") };
    let beyond_all = BracketId::at(run.definition.brackets().count());
    assert_eq!(*bracket, beyond_all);
    assert_eq!(run.state.trials[&TrialId(2)].bracket(&run.definition), beyond_all);
}

/// The refit trains to the epoch of the best value, which may be far below the largest one.
#[test]
fn a_further_attempt_of_the_refit_reserves_for_the_epochs_of_the_refit() {
    let mut definition = refit(capped(jobs(100, 1), 9));
    definition.limits.target = Some(0.7);
    let mut run = Run::new(&definition);
    run.state.results.timings.epoch_ms = vec![Millis(100_000); 5];
    run.take(&[submitted()]);
    run.take(&[logged(10, job(0), 3, 0.75)]);
    run.take(&[described(20, job(0), Completed, 10)]);
    let limit = |run: &Run, key| run.state.job(key).unwrap().order.limits.max_runtime_seconds;
    let first = limit(&run, job(1));
    run.take(&[described(30, job(1), CapacityError, 0)]);
    run.take(&[time_passed(61)]);
    let expect = 480 + 28;
    assert_eq!(first, expect, "160 % of 3 x 100 seconds, and 280 % of a tail of 10");
    assert_eq!(limit(&run, attempt(1, 2)), expect);
}

#[test]
fn deferred_starts_delay_the_refit_until_their_time() {
    let mut run = searched();
    let other = described(21, job(1), Completed, 10);
    run.state.capacity.no_start_before = Some(at(90));
    check_next(&mut run, &[other], &["trial 1 completed"]);
    check_next(&mut run, &[time_passed(89)], &[]);
    check_next(&mut run, &[time_passed(90)], &["start 2-0-1 to 5 as refit"]);
}

/// The rest pays for a further job, but the search is over.
#[test]
fn the_cap_is_reported_as_used_up_after_a_cheap_refit() {
    let mut run = Run::new(&capped(refit(random(100, 1)), 2));
    run.take(&[submitted()]);
    run.take(&[logged(10, job(0), 1, 0.5), described(3_610, job(0), Completed, 3_600)]);
    let expect = ["trial 1 completed", "notice: 100 % of the cap", "ended: CostCap"];
    check_next(&mut run, &[described(3_700, job(1), Completed, 10)], &expect);
}
