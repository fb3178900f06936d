//! The best configuration is trained once more at the end, within the cap and the number of jobs.

use tuning::definition::Definition;
use tuning::definition::Scheduling::Asynchronous;
use tuning::fact::Fact;
use tuning::fact::JobEnd::{CapacityError, Completed, Stopped};
use tuning::fold::fold;
use tuning::money::MicroUsd;
use tuning::ruling::{EndReason, Ruling, StopWhy};

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::world::World;
use crate::support::{check, check_next};

fn refit(definition: Definition) -> Definition {
    Definition { refit: true, ..definition }
}

/// Two trials of a search with three jobs: the second is the better one, at epoch 5.
fn searched() -> Run {
    let mut run = check(&refit(jobs(3, 2)), &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    run.take(&[logged(10, job(0), 9, 0.5), logged(11, job(1), 5, 0.8), logged(12, job(1), 9, 0.6)]);
    run.take(&[described(20, job(0), Completed, 10)]);
    run
}

#[test]
fn when_the_search_is_over_the_best_is_trained_once_more_to_its_best_epoch() {
    let mut run = searched();
    let expect = ["trial 1 completed", "start 2-0-1 to 5 once more"];
    check_next(&mut run, &[described(21, job(1), Completed, 10)], &expect);
    let Some(Ruling::StartOrdered { configuration, .. }) = run.rulings.last() else { panic!() };
    assert_eq!(*configuration, run.definition.configuration(1));
    // It is compared with nobody, and not stopped at its last epoch.
    check_next(&mut run, &[logged(30, job(2), 1, 0.1), logged(31, job(2), 5, 0.81)], &[]);
    let expect = ["trial 2 completed", "ended: MaxJobs"];
    check_next(&mut run, &[described(40, job(2), Completed, 10)], &expect);
}

#[test]
fn after_a_target_is_reached_too() {
    let mut definition = refit(jobs(100, 1));
    definition.limits.target = Some(0.7);
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1"]);
    let rulings = run.take(&[logged(10, job(0), 3, 0.75)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text, ["ending: Target", "stop 0-0-1: tuning ending"]);
    let expect = ["trial 0 stopped: tuning ending", "start 1-0-1 to 3 once more"];
    check_next(&mut run, &[described(20, job(0), Stopped, 10)], &expect);
    // For want of capacity it is tried again, although the tuning ends.
    let expect = ["retry after 1-0-1: Capacity, from 60"];
    check_next(&mut run, &[described(30, job(1), CapacityError, 0)], &expect);
    check_next(&mut run, &[time_passed(61)], &["start 1-0-2 to 3 once more"]);
    let expect = ["trial 1 completed", "ended: Target"];
    check_next(&mut run, &[described(90, attempt(1, 2), Completed, 10)], &expect);
}

#[test]
fn beside_it_no_new_trial_is_started_after_a_target() {
    let mut definition = refit(jobs(100, 2));
    definition.limits.target = Some(0.7);
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1", "start 1-0-1"]);
    run.take(&[logged(10, job(0), 3, 0.75)]);
    run.take(&[described(20, job(0), Stopped, 10)]);
    let expect = ["trial 1 stopped: tuning ending", "start 2-0-1 to 3 once more"];
    check_next(&mut run, &[described(21, job(1), Stopped, 10)], &expect);
    check_next(&mut run, &[time_passed(1_000)], &[]);
}

#[test]
fn money_for_it_is_kept_back_from_the_beginning() {
    let mut run = Run::new(&Definition { cap: Some(MicroUsd(2 * WORST_CASE)), ..refit(jobs(100, 4)) });
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    run.take(&[logged(10, job(0), 9, 0.5)]);
    let expect = ["trial 0 completed", "start 1-0-1 to 9 once more"];
    check_next(&mut run, &[described(3_610, job(0), Completed, 3_600)], &expect);
    let rulings = run.take(&[described(7_000, job(1), Completed, 3_600)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text.first().map(String::as_str), Some("trial 1 completed"), "{text:?}");
    assert_eq!(text.last().map(String::as_str), Some("ended: CostCap"), "{text:?}");
}

#[test]
fn a_stop_calls_it_off() {
    let mut run = searched();
    run.take(&[described(21, job(1), Completed, 10)]);
    let rulings = run.take(&[stop_requested(25)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.iter().any(|ruling| ruling == "stop 2-0-1: tuning ending"), "{text:?}");
    let expect = ["trial 2 stopped: tuning ending", "ended: Stopped"];
    check_next(&mut run, &[described(30, job(2), Stopped, 5)], &expect);
}

#[test]
fn a_search_that_found_nothing_trains_nothing_more() {
    let mut run = check(&refit(jobs(2, 1)), &[], &[submitted()], &["start 0-0-1"]);
    let rulings = run.take(&[described(20, job(0), Completed, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text, ["trial 0 completed", "ended: Failed"]);
}

#[test]
fn after_a_bill_above_its_reservation_nothing_more_is_trained() {
    let given = [submitted(), logged(10, job(0), 9, 0.5)];
    let expect = ["tell of the overrun", "trial 0 completed", "ended: CostCap"];
    check(&refit(jobs(9, 1)), &given, &[described(20, job(0), Completed, 5_000)], &expect);
}

#[test]
fn with_promotions_it_is_one_job_more_and_whole_histories_end() {
    let mut definition = refit(promoting(hyperband(), Asynchronous));
    definition.limits.max_jobs = definition.plan().jobs() + 1;
    let mut world = World::perfect(&definition);
    world.play();
    let again = world
        .run
        .rulings
        .iter()
        .filter(|ruling| matches!(ruling, Ruling::StartOrdered { launch, .. } if launch.refit));
    assert_eq!(again.count(), 1);
    assert_eq!(world.run.state.launched, definition.limits.max_jobs);
    let counted: u32 = world.run.state.joined.iter().sum();
    assert_eq!(counted + 1, world.run.state.next_trial, "it joins no bracket");
}

#[test]
fn a_pause_puts_it_off_and_the_tuning_does_not_end_without_it() {
    let paused = |seconds, paused| {
        let fact = Fact::LimitsChanged { cap: None, max_parallel: None, paused: Some(paused) };
        recorded(seconds, fact)
    };
    let mut run = searched();
    run.take(&[paused(20, true)]);
    check_next(&mut run, &[described(21, job(1), Completed, 10)], &["trial 1 completed"]);
    check_next(&mut run, &[paused(30, false)], &["start 2-0-1 to 5 once more"]);
}

/// That a fact taken again changes nothing is checked by every `take`.
#[test]
fn a_stop_that_comes_again_while_its_bill_is_awaited_changes_nothing() {
    let mut run = searched();
    run.take(&[described(21, job(1), Completed, 10)]);
    check_next(&mut run, &[ended(30, job(2), Completed)], &["bill 2-0-1"]);
    check_next(&mut run, &[stop_requested(31)], &[]);
    let expect = ["trial 2 completed", "ended: Stopped"];
    check_next(&mut run, &[stop_requested(32), described(33, job(2), Completed, 10)], &expect);
}

#[test]
fn a_stop_before_it_is_ordered_calls_it_off() {
    let mut definition = refit(jobs(100, 1));
    definition.limits.target = Some(0.7);
    let mut run = check(&definition, &[], &[submitted()], &["start 0-0-1"]);
    run.take(&[logged(10, job(0), 3, 0.75)]);
    let mut held = run.clone();
    check_next(&mut run, &[stop_requested(15)], &[]);
    let expect = ["trial 0 stopped: tuning ending", "ended: Stopped"];
    check_next(&mut run, &[described(20, job(0), Stopped, 10)], &expect);
    // Also one that a pause puts off.
    let pause = Fact::LimitsChanged { cap: None, max_parallel: None, paused: Some(true) };
    held.take(&[recorded(15, pause)]);
    check_next(&mut held, &[described(20, job(0), Stopped, 10)], &["trial 0 stopped: tuning ending"]);
    check_next(&mut held, &[stop_requested(25)], &["ended: Stopped"]);
}

#[test]
fn a_stop_that_comes_after_its_job_was_ended_for_silence_changes_nothing() {
    let mut run = searched();
    run.take(&[described(21, job(1), Completed, 10)]);
    run.state.status = tuning::state::Status::Ending(EndReason::Target);
    run.state.trials.get_mut(&2).unwrap().out = Some(StopWhy::NoObjective { seconds: 9 });
    let before = run.state.clone();
    // What is not recorded must not change the state.
    assert!(!fold(&run.definition, &mut run.state, &stop_requested(25)));
    assert!(run.state == before);
}

#[test]
fn what_the_month_granted_for_it_is_not_given_back_before() {
    let mut definition = refit(granting(jobs(100, 1)));
    definition.limits.target = Some(0.7);
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[granted(1, 1, 2)]);
    let rulings = run.take(&[logged(10, job(0), 3, 0.75)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text, ["ending: Target", "stop 0-0-1: tuning ending"], "nothing is returned");
    let rulings = run.take(&[described(20, job(0), Stopped, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"start 1-0-1 to 3 once more".to_owned()), "{text:?}");
}

/// Found by the simulator: while the last job waited for capacity, the money that it left started new trials.
#[test]
fn the_search_does_not_go_on_after_it_although_money_is_left() {
    let mut run = Run::new(&Definition { cap: Some(MicroUsd(2 * WORST_CASE)), ..refit(jobs(100, 1)) });
    run.take(&[submitted()]);
    run.take(&[logged(10, job(0), 9, 0.5)]);
    run.take(&[described(3_610, job(0), Completed, 3_600)]);
    let expect = ["retry after 1-0-1: Capacity, from 3730"];
    check_next(&mut run, &[described(3_700, job(1), CapacityError, 0)], &expect);
    check_next(&mut run, &[time_passed(3_731)], &["start 1-0-2 to 9 once more"]);
    let rulings = run.take(&[described(3_800, attempt(1, 2), Completed, 10)]);
    assert!(!rulings.iter().any(|ruling| matches!(ruling, Ruling::StartOrdered { .. })), "{rulings:?}");
    assert_eq!(rulings.last(), Some(&Ruling::TuningEnded { why: EndReason::CostCap }));
}

/// Found by the simulator: it was ordered, and stopped at once because the tuning was ending.
#[test]
fn after_the_month_had_no_money_for_long_it_is_trained_to_its_end() {
    let mut run = Run::new(&refit(granting(jobs(100, 1))));
    run.take(&[submitted()]);
    run.take(&[granted(1, 1, 2)]);
    run.take(&[logged(10, job(0), 3, 0.75)]);
    run.state.status = tuning::state::Status::Ending(EndReason::CostCap);
    run.state.trials.get_mut(&0).unwrap().out = Some(StopWhy::TuningEnding);
    let rulings = run.take(&[described(20, job(0), Stopped, 10)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&"start 1-0-1 to 3 once more".to_owned()), "{text:?}");
    assert!(!text.iter().any(|ruling| ruling.starts_with("stop 1-0-1")), "{text:?}");
}

/// A stop request was ignored after a search that ended because the month's cap had no money left.
#[test]
fn regression_a_stop_also_cancels_the_refit_of_a_search_that_ended_at_the_cap() {
    let ending_at_the_cap = || {
        let mut run = Run::new(&refit(granting(jobs(100, 1))));
        run.take(&[submitted()]);
        run.take(&[granted(1, 1, 2)]);
        run.take(&[logged(10, job(0), 3, 0.75)]);
        run.state.status = tuning::state::Status::Ending(EndReason::CostCap);
        run.state.trials.get_mut(&0).unwrap().out = Some(StopWhy::TuningEnding);
        run
    };
    // Before the refit is ordered, it never starts.
    let mut run = ending_at_the_cap();
    run.take(&[stop_requested(15)]);
    assert_eq!(run.state.status, tuning::state::Status::Ending(EndReason::Stopped));
    let rulings = run.take(&[described(20, job(0), Stopped, 10)]);
    assert!(!rulings.iter().any(|ruling| matches!(ruling, Ruling::StartOrdered { .. })), "{rulings:?}");
    // After that, its job is stopped.
    let mut run = ending_at_the_cap();
    run.take(&[described(20, job(0), Stopped, 10)]);
    check_next(&mut run, &[stop_requested(25)], &["stop 1-0-1: tuning ending"]);
}
