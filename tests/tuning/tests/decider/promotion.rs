//! Promotion over whole histories: the decider keeps the plan, every bracket reaches its end, and no epoch is trained
//! twice. `waits.rs` tests the single rules.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tuning::definition::Scheduling::{Asynchronous, Synchronous};
use tuning::definition::{Definition, Instances, Scheduling};
use tuning::log::fact::JobEnd::Completed;
use tuning::log::fact::{Fact, JobEnd, JobKey};
use tuning::log::reasons::{EndReason, StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, Judged, Order, Ruling, SearchRuling, Verdict};
use tuning::scheduler::Arrival;
use tuning::state::Status;
use tuning::trial::Trial;
use tuning::unit::epochs::Epochs;

use crate::histories::{definitions, faults, play};
use crate::support::build::*;
use crate::support::cases;
use crate::support::run::Run;
use crate::support::service::{Faults, value};
use crate::support::world::World;
use crate::waits::{done, on, two_rungs};

/// Returns one full set of brackets: rungs at 1, 3, 9 epochs for 9, 3, 1 trials; at 3, 9 for 5, 1; at 9 for 3.
fn one_set(scheduling: Scheduling) -> Definition {
    let mut definition = promoting(hyperband(), scheduling);
    definition.limits.max_jobs = definition.plan().jobs();
    definition
}

/// Returns the trials of the ordered jobs, by bracket and rung.
fn ordered(world: &World) -> BTreeMap<(u32, u32), Vec<u32>> {
    let mut ordered: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for ruling in &world.run.rulings {
        if let Ruling::Order(Order::Start { job, bracket, .. }) = ruling {
            ordered.entry((bracket.0, job.rung.0)).or_default().push(job.trial.0);
        }
    }
    ordered
}

/// Returns the trials with a job at the last rung, by bracket.
fn trials_at_the_top(world: &World) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut top: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for ((bracket, rung), trials) in ordered(world) {
        if RungId(rung) == world.run.definition.last_rung(BracketId(bracket)) {
            top.entry(bracket).or_default().extend(trials);
        }
    }
    top
}

#[test]
fn one_synchronous_set_runs_the_planned_jobs() {
    let mut world = World::perfect(&one_set(Synchronous));
    world.play();
    let counts: BTreeMap<_, _> = ordered(&world).iter().map(|(place, jobs)| (*place, jobs.len())).collect();
    let plan = [((0, 0), 9), ((0, 1), 3), ((0, 2), 1), ((1, 0), 5), ((1, 1), 1), ((2, 0), 3)];
    assert_eq!(counts, BTreeMap::from(plan));
    assert!(matches!(world.run.state.status, Status::Ended { why: EndReason::MaxJobs, .. }));
}

#[test]
fn a_synchronous_rung_promotes_its_best_trials() {
    let mut world = World::perfect(&one_set(Synchronous));
    world.play();
    let ordered = ordered(&world);
    for ((bracket, rung), trials) in &ordered {
        let Some(next) = ordered.get(&(*bracket, rung + 1)) else { continue };
        let level = world.run.definition.level(BracketId(*bracket), RungId(*rung)).0;
        let mut ranked = trials.clone();
        ranked.sort_by(|a, b| value(*b, level).total_cmp(&value(*a, level)));
        let best: BTreeSet<_> = ranked.iter().take(next.len()).collect();
        assert_eq!(best, next.iter().collect(), "bracket {bracket}, rung {rung}");
    }
}

#[test]
fn an_asynchronous_set_uses_its_jobs_and_reaches_every_last_rung() {
    let mut world = World::perfect(&one_set(Asynchronous));
    world.play();
    assert_eq!(world.run.state.results.launched, world.run.definition.limits.max_jobs);
    assert_eq!(trials_at_the_top(&world).len(), 3, "{:?}", ordered(&world));
}

/// Known bugs of other tuners. Ray 6780: some numbers left only paused trials; 37605: paused for ever; 39157: repeated
/// levels. Katib 1168: stuck with fewer trials than planned; 1366: stopped after the first bracket.
#[test]
fn no_combination_of_numbers_stalls() {
    for scheduling in [Asynchronous, Synchronous] {
        for max_resource in [1, 2, 3, 8, 9, 10, 27, 100] {
            for eta in [2, 3, 4] {
                for max_jobs in [1, 2, 3, 5, 8, 21] {
                    let strategy = comparing(1, max_resource, eta);
                    let definition = Definition { strategy, ..jobs(max_jobs, 1 + max_jobs % 4) };
                    // A short history has few steps to check.
                    let every = if max_jobs <= 5 { 1 } else { 20 };
                    let run = Run::sampled(&promoting(definition, scheduling), every);
                    let mut world = World::new(run, Faults::default());
                    world.play();
                    let numbers = (scheduling, max_resource, eta, max_jobs);
                    assert!(!trials_at_the_top(&world).is_empty(), "{numbers:?}: {:?}", ordered(&world));
                }
            }
        }
    }
}

#[test]
fn jobs_beyond_one_set_begin_another_round() {
    let mut definition = one_set(Synchronous);
    definition.limits.max_jobs *= 3;
    let mut world = World::perfect(&definition);
    world.play();
    let counts: BTreeMap<_, _> = ordered(&world).iter().map(|(place, jobs)| (*place, jobs.len())).collect();
    let plan = [((0, 0), 27), ((0, 1), 9), ((0, 2), 3), ((1, 0), 15), ((1, 1), 3), ((2, 0), 9)];
    assert_eq!(counts, BTreeMap::from(plan));
    let past = world.run.state.search.past.iter().flatten().map(|rung| rung.arrivals.len()).sum::<usize>();
    assert_eq!(past, 27 + 9 + 15, "finished rounds are counted and leave the state");
    assert!(world.run.state.search.cohorts.is_empty());
}

#[test]
fn a_bracket_whose_trials_all_fail_ends_and_the_tuning_continues() {
    for scheduling in [Asynchronous, Synchronous] {
        let mut run = Run::new(&one_set(scheduling));
        run.take(&[submitted()]);
        let mut failures = 0;
        // Every job of bracket 0 fails; all others complete.
        while !run.state.is_ended() {
            let bracket = |trial: &Trial| trial.place().unwrap().cohort.bracket;
            let jobs: Vec<_> = run.state.jobs().map(|(key, trial, _)| (key, bracket(trial))).collect();
            for (key, bracket) in jobs {
                let level = run.definition.level(bracket, key.rung).0;
                failures += u32::from(bracket == BracketId(0));
                let end = if bracket == BracketId(0) { JobEnd::AlgorithmError } else { Completed };
                // A first value keeps the tuning from failing.
                run.take(&[logged(1, key, u64::from(level), 0.5)]);
                run.take(&[described(2, key, end, 10)]);
            }
        }
        assert!(failures >= 9, "{scheduling:?}");
        let tops = run
            .rulings
            .iter()
            .filter(|ruling| matches!(ruling, Ruling::Order(Order::Start { bracket: BracketId(1), job, .. }) if job.rung == RungId(1)));
        assert!(tops.count() >= 1, "{scheduling:?}");
        run.check_end();
    }
}

/// Returns the start for rung 1 among `rulings`, and what promoted its trial.
fn promoted(rulings: &[Ruling]) -> Option<(JobKey, Option<Judged>)> {
    rulings.iter().find_map(|ruling| match ruling {
        Ruling::Order(Order::Start { job, promoted, .. }) if job.rung == RungId(1) => Some((*job, *promoted)),
        _ => None,
    })
}

/// Each start with the numbers publishes an event, and a further attempt is no promotion.
#[test]
fn starts_have_what_promoted_their_trial_until_the_service_accepts_one() {
    let mut definition = two_rungs(100, Asynchronous);
    definition.job.fallbacks = vec![Instances { count: 1, volume_gib: 0, rate: None }; 2];
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&done(10, on(0, 0), 4, 0.5));
    let first = promoted(&run.take(&done(20, on(2, 0), 4, 0.6)));
    let verdict = Verdict { rank: 0, seen: 2, allowed: 1, continues: true };
    let (bracket, rung, level) = (BracketId(0), RungId(0), Epochs(4));
    let judged = Judged { bracket, rung, level, value: Some(0.6), verdict };
    assert_eq!(first, Some((on(2, 1), Some(judged))));
    // A quota blocks the first start, which is cancelled: no job of the rung existed.
    let blocked = Fact::ActionDeferred {
        job: on(2, 1),
        not_before: at(60),
        reason: "a limit is reached".to_owned(),
        quota_exceeded: true,
    };
    run.take(&[recorded(21, blocked)]);
    let second = promoted(&run.take(&[never_started(22, on(2, 1))]));
    assert_eq!(second, Some((at_rung(2, 1, 3), Some(judged))));
    // The service accepts the second job, which gets no instances.
    let third = promoted(&run.take(&[described(30, at_rung(2, 1, 3), JobEnd::CapacityError, 0)]));
    assert_eq!(third, Some((at_rung(2, 1, 4), None)));
}

#[test]
fn only_a_stop_at_a_rung_has_its_numbers() {
    let because = |run: &Run| {
        run.rulings.iter().rev().find_map(|ruling| match ruling {
            Ruling::Order(Order::Stop { why, because, .. }) => Some((*why, *because)),
            _ => None,
        })
    };
    let mut run = Run::new(&jobs(9, 4));
    run.take(&[submitted()]);
    run.take(&[logged(1, job(0), 1, 0.5)]);
    run.take(&[logged(2, job(2), 1, 0.4)]);
    let Some((StopWhy::Rung { rung }, Some(judged))) = because(&run) else { panic!("{:?}", run.rulings) };
    assert_eq!((rung, judged.rung, judged.level, judged.value), (rung, rung, Epochs(1), Some(0.4)));
    run.take(&[stop_requested(3)]);
    assert_eq!(because(&run), Some((StopWhy::TuningEnding, None)));
}

fn scheduling() -> impl Strategy<Value = Scheduling> {
    prop_oneof![Just(Asynchronous), Just(Synchronous)]
}

fn unsaved(faults: Faults) -> impl Strategy<Value = Faults> {
    prop_oneof![Just(0.0), 0.0..0.5].prop_map(move |unsaved| Faults { unsaved, ..faults })
}

proptest! {
    #![proptest_config(cases(120))]

    /// "P3 any order, duplication or loss ends in a finished tuning": any history of promotions ends within all limits,
    /// and every trial ends. After every step, [`Run::take`] checks P1, P5, P6 and the invariants.
    #[test]
    fn a_history_of_promotions_ends_within_all_limits(
        definition in definitions(),
        scheduling in scheduling(),
        faults in faults().prop_flat_map(unsaved),
        stop in prop::option::of(0_i64..900),
        (refit, spot_fallback) in any::<(bool, bool)>(),
    ) {
        let definition = Definition { refit, spot_fallback, ..promoting(definition, scheduling) };
        let world = play(&definition, faults, stop, 9);
        let run = &world.run;
        let spent = run.state.money.ledger.spent.0;
        prop_assert!(world.bills.values().sum::<u64>() <= spent, "{:?}", world.bills);
        prop_assert!(definition.cap.is_none_or(|cap| spent <= cap.0));
        let orders = run.rulings.iter().filter(|ruling| matches!(ruling, Ruling::Order(Order::Start { .. })));
        prop_assert_eq!(run.concluded.len(), orders.count(), "every job ordered is concluded once");
        if let Status::Ended { why: EndReason::Stopped, .. } = run.state.status {
            prop_assert!(stop.is_some());
        }
        prop_assert!(run.largest < 100_000, "{} bytes", run.largest);
    }

    /// With enough jobs, a trial of every bracket reaches the last rung, unless failures empty one of its rungs.
    #[test]
    fn a_bracket_without_an_emptied_rung_reaches_its_last_rung(
        scheduling in scheduling(),
        faults in faults(),
        failed in 0.0..0.15_f64,
        rounds in 1_u32..3,
        max_resource in 3_u32..30,
    ) {
        let strategy = comparing(1, max_resource, 3);
        let mut definition = promoting(Definition { strategy, ..hyperband() }, scheduling);
        definition.limits.max_jobs = definition.plan().jobs() * rounds;
        // Faults that cause retries are off: retries use up jobs.
        let faults = Faults { failed: failed / f64::from(max_resource), hung: 0.0, unserved: 0.0, refused: 0.0, ..faults };
        let world = play(&definition, faults, None, 50);
        let ended = |why: &EndReason| matches!(why, EndReason::MaxJobs);
        if !matches!(&world.run.state.status, Status::Ended { why, .. } if ended(why)) {
            return Ok(());
        }
        // A retry takes a job from another trial.
        if ordered(&world).values().any(|trials| trials.iter().collect::<BTreeSet<_>>().len() < trials.len()) {
            return Ok(());
        }
        let top = trials_at_the_top(&world);
        let state = &world.run.state;
        for bracket in (0..state.search.joined.len()).map(BracketId::at) {
            let cohorts = state.search.cohorts.iter().filter(|cohort| cohort.id.bracket == bracket);
            let past = state.search.past.get(bracket.index());
            let all: Vec<_> = cohorts.map(|cohort| &cohort.rungs).chain(past).collect();
            let last = world.run.definition.last_rung(bracket);
            // Whether all arrivals at some rung are without a value.
            let emptied = (0..=last.index()).any(|rung| {
                let mut ended = all.iter().filter_map(|rungs| rungs.get(rung)).flat_map(|rung| &rung.arrivals).peekable();
                ended.peek().is_some() && ended.all(|(_, value)| value.is_none())
            });
            let joined = state.search.joined[bracket.index()];
            if joined > 0 && !emptied {
                // A trial whose program trained past its level may need no job at the top.
                let promoted = world.run.rulings.iter().any(|ruling| {
                    matches!(ruling, Ruling::Search(SearchRuling::TrialPromoted { bracket: of, rung, .. }) if *of == bracket && rung.next() == last)
                });
                prop_assert!(promoted || top.contains_key(&bracket.0), "bracket {bracket} of {:?}", ordered(&world));
            }
        }
    }

    /// "A promoted trial never pays twice for resource that it has": it resumes where it was promoted. After the loss
    /// of a checkpoint, the repeat is reported once, and for no other job. A single repeated epoch is not reported: it
    /// looks like the last value, logged again.
    #[test]
    fn repeated_epochs_are_reported(
        scheduling in scheduling(),
        seed in any::<u64>(),
        unsaved in prop_oneof![Just(0.0), Just(0.4)],
        per_attempt in any::<bool>(),
    ) {
        let mut definition = one_set(scheduling);
        definition.epochs.per_attempt = per_attempt;
        let world = play(&definition, Faults { seed, unsaved, ..Faults::default() }, None, 50);
        let reported: BTreeMap<_, _> = world.run.rulings.iter().filter_map(|ruling| {
            if let Ruling::Attempt(AttemptRuling::ResourceRepeated { job, had, from }) = ruling { Some((*job, (had.0, from.0))) } else { None }
        }).collect();
        let mut expect = BTreeMap::new();
        for (job, work) in &world.trained {
            let bracket = world.run.concluded.iter().find(|summary| summary.job == *job).unwrap().bracket;
            let had = world.run.definition.level_below(bracket, job.rung).0;
            if unsaved == 0.0 {
                prop_assert!(work.from >= had, "{job}: {work:?}");
            }
            // The number of lines proves nothing about a program that ignores its level.
            if work.from + 1 < had && (!per_attempt || job.trial.0 % 10 != 3) {
                expect.insert(*job, (had, work.from));
            }
        }
        if per_attempt {
            prop_assert!(expect.iter().all(|(job, numbers)| reported.get(job) == Some(numbers)),
                "{expect:?} {reported:?}");
        } else {
            prop_assert_eq!(reported, expect);
        }
    }

    /// A trial waits with the value that its program had at the level, even if every job counts its lines from 1.
    #[test]
    fn a_trial_waits_with_its_value_at_the_level(
        scheduling in scheduling(),
        seed in any::<u64>(),
        unsaved in prop_oneof![Just(0.0), Just(0.4)],
        interrupted in prop_oneof![Just(0.0), Just(0.1)],
        captured in any::<bool>(),
    ) {
        let mut definition = one_set(scheduling);
        definition.epochs.per_attempt = true;
        definition.epochs.captured = captured;
        let faults = Faults { seed, interrupted, unsaved, ..Faults::default() };
        let world = play(&definition, faults, None, 50);
        for ruling in &world.run.rulings {
            if let Ruling::Search(SearchRuling::RungReached { trial, level, resource, value: Some(shown), .. }) = ruling
                && trial.0 % 10 != 3
            {
                prop_assert_eq!(resource, level, "{:?}", ruling);
                prop_assert!((shown - value(trial.0, level.0)).abs() < 1e-12, "{ruling:?}");
            }
        }
    }

    /// "P6 a rung never promotes more than it may, and never a failure": counted again from the rulings.
    #[test]
    fn p6_a_rung_never_promotes_more_than_it_may_and_never_a_failure(
        definition in definitions(),
        scheduling in scheduling(),
        faults in faults(),
    ) {
        let definition = promoting(definition, scheduling);
        let eta = definition.plan().eta();
        let world = play(&definition, faults, None, 50);
        let mut values: BTreeMap<(BracketId, u32, RungId), Vec<Arrival>> = BTreeMap::new();
        let mut joined: BTreeMap<(BracketId, u32), u32> = BTreeMap::new();
        let mut place = BTreeMap::new();
        for ruling in &world.run.rulings {
            match ruling {
                Ruling::Order(Order::Start { job, bracket, round, .. }) => {
                    let first = place.insert(job.trial, (*bracket, *round, job.rung)).is_none();
                    *joined.entry((*bracket, *round)).or_default() += u32::from(first);
                }
                Ruling::Search(SearchRuling::RungReached { trial, bracket, round, rung, value, .. }) => {
                    values.entry((*bracket, *round, *rung)).or_default().push((*trial, *value));
                }
                Ruling::Attempt(AttemptRuling::TrialFinished { trial, how, .. }) if !matches!(how, TrialEnd::Stopped(StopWhy::Rung { .. })) => {
                        values.entry(place[trial]).or_default().push((*trial, None));
                }
                Ruling::Search(SearchRuling::TrialPromoted { trial, bracket, round, rung, value, verdict, reached_target, .. }) => {
                    let here = &values[&(*bracket, *round, *rung)];
                    let own = here.iter().find(|(other, _)| other == trial).unwrap().1;
                    prop_assert!(own.is_some() && own == *value, "never a failure: {ruling:?}");
                    let better = here.iter().filter(|(other, value)| {
                        value.is_some_and(|value| value > own.unwrap() || (value >= own.unwrap() && other < trial))
                    }).count();
                    prop_assert_eq!(usize::try_from(verdict.rank).unwrap(), better, "{:?}", ruling);
                    let planned = (joined[&(*bracket, *round)] / eta.pow(rung.next().0)).max(1);
                    // An asynchronous rung promotes the best share of those that ended there. These can be more than
                    // planned: a trial that is better than those promoted before it is promoted too.
                    let ended = u32::try_from(here.len()).unwrap();
                    let share = if scheduling == Asynchronous { ended / eta } else { 0 };
                    prop_assert!(verdict.rank < planned.max(share) || *reached_target, "{ruling:?} of {planned}");
                }
                _ => {}
            }
        }
    }
}
