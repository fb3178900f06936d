//! Edge cases of promotion: late arrivals at a rung, stopped jobs, and state that a promotion resets.

use std::collections::BTreeMap;
use std::sync::Arc;

use search::{Domain, Parameter, SamplerKind, Space};
use tuning::definition::Scheduling::{Asynchronous, Synchronous};
use tuning::definition::{Definition, Instances};
use tuning::log::fact::JobEnd::{CapacityError, Completed, ServiceError, Stopped};
use tuning::log::fact::JobPhase::Training;
use tuning::log::ruling::{Ruling, SearchRuling};
use tuning::rules::most_promoted;
use tuning::scheduler::{Parked, ParkedTrials};
use tuning::unit::epochs::Epochs;
use tuning::unit::money::Rate;
use tuning::unit::time::Time;

use crate::support::build::*;
use crate::support::run::Run;
use crate::support::{check, check_next};
use crate::waits::{begun, done, on, two_rungs};

/// The use case writes the lines that arrived late to the row of that job.
#[test]
fn a_trial_that_waits_without_a_job_of_its_own_is_known_by_its_last_job() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    let late = |job| {
        Ruling::Search(SearchRuling::RungReached {
            trial: TrialId(0),
            bracket: BracketId(0),
            round: 0,
            rung: RungId(0),
            level: Epochs(4),
            resource: Epochs(4),
            value: Some(0.5),
            job,
        })
    };
    let parked = run.state.search.parked_late(&late(None)).expect("trial 0 waits");
    assert_eq!((parked.0, parked.1.curve.get(&Epochs(4))), (on(0, 0), Some(&Some(0.5))));
    assert!(run.state.search.parked_late(&late(Some(on(0, 0)))).is_none(), "its job writes its own row");
    run.state.search.waiting.get_mut(&TrialId(0)).unwrap().rung = RungId(1);
    assert!(run.state.search.parked_late(&late(None)).is_none(), "it waits at another rung");
}

/// A state that is read from a snapshot has no parked trials, and equals the state that has them.
#[test]
fn states_with_different_parked_trials_differ() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    let search = &run.state.search;
    let parked = search.parked.get(TrialId(0)).expect("trial 0 waits");
    let with_value = |value| {
        let mut other = search.clone();
        let curve = BTreeMap::from([(Epochs(4), Some(value))]);
        other.bring(TrialId(0), Arc::new(Parked { curve, ..(**parked).clone() }));
        other
    };
    assert_eq!(with_value(0.4), with_value(0.4));
    assert_ne!(with_value(0.4), with_value(0.3));
    let mut restored = search.clone();
    restored.parked = ParkedTrials::default();
    assert_eq!(&restored, search);
}

#[test]
fn a_late_trial_that_is_better_than_the_promoted_trial_is_promoted_too() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    // The plan promotes one of three trials, and trial 2 is already promoted.
    let expect = [
        "trial 4 waits at rung 0.0, epoch 4",
        "trial 4 promoted from rung 0.0 to 9: 1 of 3, best 1",
        "start 4-1-2 to 9",
    ];
    check_next(&mut run, &done(30, on(4, 0), 4, 0.7), &expect);
}

#[test]
fn after_a_stop_for_silence_a_trial_waits_only_if_its_job_completed_first() {
    let definition = silent_for(two_rungs(100, Asynchronous), 600);
    let mut run = begun(&definition);
    run.take(&[phase(5, on(0, 0), Training), logged(10, on(0, 0), 3, 0.5)]);
    check_next(&mut run, &[time_passed(700)], &["look at 0-0-1, silent since 10"]);
    let expect = ["stop 0-0-1: no objective for 600 s"];
    check_next(&mut run, &[silence_seen(701, on(0, 0), 10)], &expect);
    let mut stopped = run.clone();
    let expect = ["trial 0 waits at rung 0.0, epoch 3", "start 4-0-1 to 4"];
    check_next(&mut run, &[described(710, on(0, 0), Completed, 700)], &expect);
    let expect = ["trial 0 stopped: no objective for 600 s", "start 4-0-1 to 4"];
    check_next(&mut stopped, &[described(710, on(0, 0), Stopped, 700)], &expect);
}

#[test]
fn a_trial_whose_retry_never_ran_does_not_wait_although_its_value_arrives_late() {
    // The first attempt seems to fail at epoch 2. Its line of epoch 4 arrives after the order of the second attempt.
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
        assert_eq!(run.state.search.cohorts[0].rungs[0].arrivals, [(TrialId(0), None)]);
    }
}

#[test]
fn the_last_rung_records_no_arrivals() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(1, 0), 9, 0.5));
    assert_eq!(run.state.search.cohort(cohort(1, 0)).unwrap().rungs[0].arrivals, []);
}

#[test]
fn values_of_an_earlier_attempt_do_not_set_the_resumed_epoch_of_the_next() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    run.take(&[logged(30, on(2, 1), 5, 0.61)]);
    run.take(&[described(31, on(2, 1), CapacityError, 1)]);
    run.take(&[described(70, on(1, 0), Completed, 10)]);
    let resumed_from = |run: &Run, key| {
        let (_, trial, job) = run.state.jobs().find(|(job, _, _)| *job == key).unwrap();
        tuning::trial::summary::summary(&run.definition, key, trial, job).resumed_from
    };
    let again = at_rung(2, 1, 3);
    assert_eq!(resumed_from(&run, again), None);
    run.take(&[lines(80, again, "second", vec![line(80, "e6", 6, 0.62)])]);
    assert_eq!(resumed_from(&run, again), Some(Epochs(4)));
}

#[test]
fn a_capacity_error_is_remembered_if_there_is_another_choice() {
    for (others, remembered) in [(0, vec![]), (1, vec![at(60 + 600), Time::MIN])] {
        let mut definition = three_choices();
        definition.job.fallbacks.truncate(others);
        let mut run = begun(&definition);
        run.take(&[described(60, on(0, 0), CapacityError, 0)]);
        assert_eq!(run.state.capacity.no_capacity_until, remembered);
    }
}

/// `since_improved` counts waiting and failed trials without a new best value.
#[test]
fn a_trial_that_reaches_its_rung_without_a_new_best_value_has_not_improved() {
    let mut run = begun(&two_rungs(100, Asynchronous));
    run.take(&done(10, on(0, 0), 4, 0.5));
    assert_eq!(run.state.search.since_improved, 0, "the first value is the best");
    run.take(&done(20, on(2, 0), 4, 0.4));
    assert_eq!(run.state.search.since_improved, 1);
    run.take(&done(30, on(4, 0), 4, 0.6));
    assert_eq!(run.state.search.since_improved, 0);
}

#[test]
fn a_refit_does_not_arrive_at_a_rung() {
    // All jobs of the search are used up; the refit starts and fails.
    let definition = Definition { refit: true, ..two_rungs(3, Asynchronous) };
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    while run.state.refit.is_none() {
        let Some((key, _, job)) = run.state.jobs().next() else { panic!("{:?}", run.rulings) };
        let (key, level) = (key, u64::from(job.order.level.unwrap().0));
        run.take(&done(20 + i64::from(key.trial.0), key, level, 0.4));
    }
    let again = run.state.refit.unwrap();
    let (arrived, since) =
        (run.state.search.rung_totals(BracketId(0), RungId(0)), run.state.search.since_improved);
    run.take(&[described(100, again, tuning::log::fact::JobEnd::AlgorithmError, 10)]);
    assert!(run.state.is_ended(), "{:?}", run.state.status);
    assert_eq!(run.state.search.rung_totals(BracketId(0), RungId(0)), arrived);
    assert_eq!(run.state.search.since_improved, since, "the refit is not a trial of the search");
}

#[test]
fn the_largest_number_of_promotions_depends_on_the_trials_that_may_still_join() {
    let most = |run: &Run, place| most_promoted(&run.definition, &run.state, place);
    // Two trials have joined bracket 0, and 96 jobs are left for it.
    let mut run = begun(&two_rungs(100, Asynchronous));
    assert_eq!(most(&run, place(0, 0, 0)), Some(u32::midpoint(2, 96)));
    assert_eq!(most(&run, place(7, 0, 0)), None, "there is no such cohort");
    // No further trial may join.
    run.take(&[stop_requested(5)]);
    assert_eq!(most(&run, place(0, 0, 0)), Some(1));
    // For a synchronous rung, the number is unknown until the rung closes.
    let mut run = begun(&two_rungs(100, Synchronous));
    assert_eq!(most(&run, place(0, 0, 0)), None);
    run.take(&done(10, on(0, 0), 4, 0.5));
    run.take(&done(20, on(2, 0), 4, 0.6));
    assert_eq!(most(&run, place(0, 0, 0)), Some(1));
}

/// Returns a tuning with three choices of instances; a trial tries each choice once before it waits.
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
fn at_the_next_rung_every_choice_of_instances_is_tried_again() {
    let mut run = begun(&three_choices());
    // Only the last choice has capacity, so the trial switches twice.
    for (attempt, expect) in [
        (1, ["retry after 2-0-1: NextInstances, from 10", "start 2-0-2 to 4 on choice 1"]),
        (2, ["retry after 2-0-2: NextInstances, from 11", "start 2-0-3 to 4 on choice 2"]),
    ] {
        let seconds = 9 + i64::from(attempt);
        let key = at_rung(2, 0, attempt);
        check_next(&mut run, &[described(seconds, key, CapacityError, 0)], &expect);
    }
    assert_eq!(run.state.trials[&TrialId(2)].instance_switches, 2);
    run.take(&done(20, on(0, 0), 4, 0.5));
    run.take(&done(1_000, at_rung(2, 0, 3), 4, 0.6));
    assert_eq!(run.state.trials[&TrialId(2)].instance_switches, 0);
    // All capacity errors have expired, so the first choice is tried at once.
    let expect = ["retry after 2-1-4: NextInstances, from 1010", "start 2-1-5 to 9 on choice 1"];
    check_next(&mut run, &[described(1_010, at_rung(2, 1, 4), CapacityError, 0)], &expect);
}

/// A retry took the job that the promotion needs.
#[test]
fn a_trial_is_not_promoted_without_a_job_left() {
    let mut run =
        check(&two_rungs(3, Asynchronous), &[], &[submitted()], &["start 0-0-1 to 4", "start 1-0-1 to 9"]);
    run.take(&[described(10, on(1, 0), ServiceError, 0)]);
    check_next(&mut run, &[time_passed(40)], &["start 1-0-2 to 9"]);
    check_next(&mut run, &done(50, on(0, 0), 4, 0.5), &["trial 0 waits at rung 0.0, epoch 4"]);
}

/// The grid has no further combination. Trial 11 is better than trial 8, which was promoted before it.
#[test]
fn a_trial_waits_at_a_rung_until_all_better_trials_below_are_promoted() {
    let values = (0..12).map(|value: u32| value.to_string()).collect();
    let parameter = Parameter { name: "depth".to_owned(), domain: Domain::Categorical { values } };
    let mut definition = promoting(jobs(20, 1), Asynchronous);
    (definition.space, definition.sampler) = (Space::new(vec![parameter]).unwrap(), SamplerKind::Grid);
    let mut run = Run::new(&definition);
    run.state.search.joined = vec![0, 5, 3];
    run.take(&[submitted()]);
    for trial in 8..11 {
        run.take(&done(i64::from(trial), on(trial, 0), 1, 0.5));
    }
    run.take(&done(20, on(8, 1), 3, 0.5));
    let rulings = run.take(&done(30, on(11, 0), 1, 0.6));
    let text: Vec<_> = rulings.iter().map(crate::support::render::render).collect();
    assert_eq!(text.last().map(String::as_str), Some("start 11-1-2 to 3"), "{text:?}");
}
