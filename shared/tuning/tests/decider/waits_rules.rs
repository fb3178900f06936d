//! Promotion at its edges: who comes late to a rung, what a stop leaves, what a promotion forgets.

use tuning::decide::most_promoted;
use tuning::definition::Scheduling::{Asynchronous, Synchronous};
use tuning::definition::{Definition, Instances};
use tuning::fact::JobEnd::{CapacityError, Completed, Stopped};
use tuning::fact::JobPhase::Training;
use tuning::money::Rate;

use crate::support::build::*;
use crate::support::check_next;
use crate::support::run::Run;
use crate::waits::{begun, done, on, two_rungs};

#[test]
fn one_that_comes_late_and_is_better_than_those_who_went_on_goes_on_too() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    // Of three the plan sends on one, and that was trial 2.
    let expect = [
        "trial 4 waits at rung 0.0, epoch 4",
        "trial 4 promoted from rung 0.0 to 9: 1 of 3, best 1",
        "start 4-1-2 to 9",
    ];
    check_next(&mut run, &done(30, on(4, 0), 4, 0.7), &expect);
}

#[test]
fn of_a_job_stopped_for_its_silence_only_one_that_ended_well_first_waits() {
    let definition = silent_for(two_rungs(100, Asynchronous), 600);
    let mut run = begun(&definition);
    run.take(&[phase(5, on(0, 0), Training), logged(10, on(0, 0), 4, 0.5)]);
    check_next(&mut run, &[time_passed(700)], &["look at 0-0-1, silent since 10"]);
    let expect = ["stop 0-0-1: no objective for 600 s"];
    check_next(&mut run, &[silence_seen(701, on(0, 0), 10)], &expect);
    let mut stopped = run.clone();
    let expect = ["trial 0 waits at rung 0.0, epoch 4", "start 4-0-1 to 4"];
    check_next(&mut run, &[described(710, on(0, 0), Completed, 700)], &expect);
    let expect = ["trial 0 stopped: no objective for 600 s", "start 4-0-1 to 4"];
    check_next(&mut stopped, &[described(710, on(0, 0), Stopped, 700)], &expect);
}

#[test]
fn one_whose_further_attempt_never_ran_does_not_wait_although_its_value_came_late() {
    // The first attempt failed the trial at epoch 2, as far as was heard; its line of epoch 4 comes when the second is ordered.
    let ends = [
        (refused(60, at_rung(0, 0, 2)), "trial 0 failed: no such role"),
        (never_started(60, at_rung(0, 0, 2)), "trial 0 never started"),
    ];
    for (end, expect) in ends {
        let mut run = begun(&two_rungs(100, Asynchronous));
        run.take(&[logged(9, on(0, 0), 2, 0.2)]);
        run.take(&[described(10, on(0, 0), CapacityError, 5)]);
        run.take(&[described(40, on(1, 0), Completed, 10)]);
        assert!(run.state.job(at_rung(0, 0, 2)).is_some(), "{:?}", run.rulings);
        check_next(&mut run, &[logged(8, on(0, 0), 4, 0.5)], &[]);
        let rulings = run.take(&[end]);
        assert_eq!(crate::support::render::render(&rulings[0]), expect);
        assert_eq!(run.state.cohorts[0].rungs[0].arrivals, [(0, None)]);
    }
}

#[test]
fn at_the_last_rung_nobody_arrives() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(1, 0), 9, 0.5));
    assert_eq!(run.state.cohort(1, 0).unwrap().rungs[0].arrivals, []);
}

#[test]
fn what_an_earlier_attempt_showed_tells_not_from_where_the_next_one_went_on() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    run.take(&[logged(30, on(2, 1), 5, 0.61)]);
    run.take(&[described(31, on(2, 1), CapacityError, 1)]);
    run.take(&[described(70, on(1, 0), Completed, 10)]);
    let told = |run: &Run, key| {
        let (_, trial, job) = run.state.jobs().find(|(job, _, _)| *job == key).unwrap();
        tuning::conclude::summary(key, trial, job).resumed_from
    };
    let again = at_rung(2, 1, 3);
    assert_eq!(told(&run, again), None);
    run.take(&[lines(80, again, "second", vec![line(80, "e6", 6, 0.62)])]);
    assert_eq!(told(&run, again), Some(4));
}

#[test]
fn a_lack_of_capacity_is_remembered_where_there_is_another_choice() {
    for (others, remembered) in [(0, vec![]), (1, vec![at(60 + 600), i64::MIN])] {
        let mut definition = three_choices();
        definition.job.fallbacks.truncate(others);
        let mut run = begun(&definition);
        run.take(&[described(60, on(0, 0), CapacityError, 0)]);
        assert_eq!(run.state.short_until, remembered);
    }
}

/// Of trials that wait or have failed those are counted that did not improve on the best.
#[test]
fn a_trial_that_comes_to_its_rung_without_the_best_value_has_not_improved() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    assert_eq!(run.state.since_improved, 0, "the best so far");
    run.take(&done(20, on(2, 0), 4, 0.4));
    assert_eq!(run.state.since_improved, 1);
    run.take(&done(30, on(4, 0), 4, 0.6));
    assert_eq!(run.state.since_improved, 0);
}

#[test]
fn the_last_job_keeps_no_place_at_a_rung() {
    // All jobs of the search are used up; the best is trained once more, and fails.
    let definition = Definition { refit: true, ..two_rungs(3, Asynchronous) };
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    while run.state.refit.is_none() {
        let Some((key, _, job)) = run.state.jobs().next() else { panic!("{:?}", run.rulings) };
        let (key, level) = (key, u64::from(job.level.unwrap()));
        run.take(&done(20 + i64::from(key.trial), key, level, 0.4));
    }
    let again = run.state.refit.unwrap();
    let (arrived, since) = (run.state.rung_totals(0, 0), run.state.since_improved);
    run.take(&[described(100, again, tuning::fact::JobEnd::AlgorithmError, 10)]);
    assert!(run.state.is_ended(), "{:?}", run.state.status);
    assert_eq!(run.state.rung_totals(0, 0), arrived);
    assert_eq!(run.state.since_improved, since, "it is no trial of the search");
}

#[test]
fn the_most_that_may_ever_go_on_is_known_from_who_may_still_join() {
    let most = |run: &Run, place| most_promoted(&run.definition, &run.state, place);
    // Two have joined, and 96 jobs are left: all might join bracket 0.
    let mut run = begun(&two_rungs(100, Asynchronous));
    assert_eq!(most(&run, (0, 0, 0)), Some(u32::midpoint(2, 96)));
    assert_eq!(most(&run, (7, 0, 0)), None, "there is no such cohort");
    // Nobody may join any more.
    run.take(&[stop_requested(5)]);
    assert_eq!(most(&run, (0, 0, 0)), Some(1));
    // Where rungs close that is not known before.
    let mut run = begun(&two_rungs(100, Synchronous));
    assert_eq!(most(&run, (0, 0, 0)), None);
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    assert_eq!(most(&run, (0, 0, 0)), Some(1));
}

/// Three choices of instances, of which each is tried once before a trial waits.
fn three_choices() -> Definition {
    let mut definition = two_rungs(100, Asynchronous);
    let other = Instances {
        count: 1,
        volume_gib: 0,
        rate: Some(Rate { instance_hour: SECOND * 3_600, volume_kilo_gib_hour: 0 }),
    };
    definition.job.fallbacks = vec![other; 2];
    definition
}

#[test]
fn for_the_next_rung_every_choice_of_instances_is_tried_again() {
    let mut run = begun(&three_choices());
    // No choice but the last has capacity: two moves.
    for (attempt, expect) in [
        (1, ["retry after 2-0-1: NextInstances, from 10", "start 2-0-2 to 4 on choice 1"]),
        (2, ["retry after 2-0-2: NextInstances, from 11", "start 2-0-3 to 4 on choice 2"]),
    ] {
        let seconds = 9 + i64::from(attempt);
        let key = at_rung(2, 0, attempt);
        check_next(&mut run, &[described(seconds, key, CapacityError, 0)], &expect);
    }
    assert_eq!(run.state.trials[&2].moves, 2);
    run.take(&done(20, on(0, 0), 4, 0.5));
    run.take(&done(1_000, at_rung(2, 0, 3), 4, 0.6));
    assert_eq!(run.state.trials[&2].moves, 0);
    // All are known to have capacity again, and the first is asked for at once.
    let expect = ["retry after 2-1-4: NextInstances, from 1010", "start 2-1-5 to 9 on choice 1"];
    check_next(&mut run, &[described(1_010, at_rung(2, 1, 4), CapacityError, 0)], &expect);
}
