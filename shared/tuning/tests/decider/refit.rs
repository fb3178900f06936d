//! The best configuration is trained once more at the end, within the cap and the number of jobs.

use tuning::definition::Definition;
use tuning::definition::Scheduling::Asynchronous;
use tuning::fact::JobEnd::{CapacityError, Completed, Stopped};
use tuning::money::MicroUsd;
use tuning::ruling::Ruling;

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
fn money_for_it_is_kept_back_from_the_beginning() {
    let mut run = Run::new(&Definition { cap: Some(MicroUsd(2 * WORST_CASE)), ..refit(jobs(100, 4)) });
    check_next(&mut run, &[submitted()], &["start 0-0-1"]);
    run.take(&[logged(10, job(0), 9, 0.5)]);
    let expect = ["trial 0 completed", "start 1-0-1 to 9 once more"];
    check_next(&mut run, &[described(3_610, job(0), Completed, 3_600)], &expect);
    let expect = ["trial 1 completed", "tell of 80 % of the cap"];
    let rulings = run.take(&[described(7_000, job(1), Completed, 3_600)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.contains(&expect[0].to_owned()) && text.contains(&"ended: CostCap".to_owned()), "{text:?}");
}

#[test]
fn a_stop_calls_it_off() {
    let mut run = searched();
    run.take(&[described(21, job(1), Completed, 10)]);
    let expect = ["ending: Stopped"];
    let rulings = run.take(&[stop_requested(25)]);
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert!(text.iter().any(|ruling| ruling == "stop 2-0-1: tuning ending"), "{text:?} {expect:?}");
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
