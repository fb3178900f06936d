//! Several training job definitions: each has a space, brackets and jobs of its own, and they compete for the next trial.

use std::collections::BTreeMap;

use proptest::prelude::*;
use search::{Domain, Parameter, Space};
use tuning::definition::{Definition, JobShape, Scheduling, Silence};
use tuning::log::fact::{JobEnd, JobPhase};
use tuning::log::ruling::{Order, Ruling, SearchRuling};
use tuning::unit::ids::DefinitionId;
use tuning::unit::money::{MicroUsd, Rate};

use crate::histories::{definitions, faults};
use crate::quota::answered;
use crate::support::build::*;
use crate::support::run::Run;
use crate::support::service::Faults;
use crate::support::world::World;
use crate::support::{cases, check_next};

/// Adds a definition with the same space, whose jobs have `count` instances.
pub(crate) fn with(mut definition: Definition, count: u32) -> Definition {
    let mut other = Definition { others: Vec::new(), ..definition.clone() };
    let rate = Some(Rate { instance_hour: SECOND * 3_600, volume_kilo_gib_hour: 0 });
    other.job = JobShape { instance_count: count, ..JobShape::new(rate, other.job.max_runtime_seconds) };
    definition.join(other);
    definition
}

/// Returns the first job of each trial, in the order of the starts.
fn trials(world: &World) -> Vec<TrialId> {
    let mut seen = Vec::new();
    for ruling in &world.run.rulings {
        if let Ruling::Order(Order::Start { job, launch, .. }) = ruling
            && !launch.refit
            && !seen.contains(&job.trial)
        {
            seen.push(job.trial);
        }
    }
    seen
}

#[test]
fn a_trial_runs_on_the_instances_of_its_definition() {
    let mut run = Run::new(&capped(with(jobs(20, 4), 3), 100));
    run.take(&[submitted()]);
    let shape = &run.definition.job;
    let live: Vec<(u32, u32, u64)> = run
        .state
        .jobs()
        .map(|(key, _, job)| {
            let reserved = job.bill.reservation.0 / WORST_CASE;
            (key.trial.0, shape.instances(job.order.instances).count, reserved)
        })
        .collect();
    assert_eq!(live, [(0, 1, 1), (1, 3, 3), (2, 1, 1), (3, 3, 3)]);
    assert_eq!(run.state.money.ledger.reserved, MicroUsd(8 * WORST_CASE));
}

/// "each definition has its own `StoppingCondition`"
#[test]
fn the_jobs_of_a_definition_have_its_time_limits_and_capacity() {
    let mut definition = with(with(jobs(20, 6), 1), 1);
    definition.spot_fallback = true;
    let long = definition.job.max_runtime_seconds;
    (definition.others[0].terms.spot, definition.others[0].terms.max_wait_seconds) = (true, Some(long + 300));
    definition.others[1].terms.max_runtime_seconds = 60;
    definition.others[1].terms.keep_alive_seconds = 600;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    let limits = |run: &Run, trial: u32| {
        let limits =
            run.state.jobs().filter(|(key, ..)| key.trial.0 == trial).map(|(_, _, job)| job.order.limits);
        let all: Vec<_> = limits
            .map(|one| (one.max_runtime_seconds, one.max_wait_seconds.is_some(), one.keep_alive_seconds))
            .collect();
        all
    };
    assert_eq!(limits(&run, 0), [(long, false, 0)]);
    assert_eq!(limits(&run, 1), [(long, true, 0)]);
    assert_eq!(limits(&run, 2), [(60, false, 600)]);
    // Only the jobs of the second one continue on demand.
    run.take(&[described(20, job(0), JobEnd::CapacityError, 0), described(21, job(1), JobEnd::MaxWait, 0)]);
    run.take(&[time_passed(22)]);
    assert_eq!(limits(&run, 1), [(long, false, 0)]);
    // The limit of the third one was its own, so its job is not tried again with a longer one.
    run.take(&[described(90, job(2), JobEnd::MaxRuntime, 60)]);
    assert_eq!(limits(&run, 2), []);
}

/// The plan of a request shows what its most expensive job can cost.
#[test]
fn the_dearest_job_is_that_of_the_definition_with_the_greatest_worst_case() {
    assert_eq!(with(with(jobs(20, 4), 3), 2).dearest(), ChoiceId(1));
    // Its instances are kept after the job.
    let mut keeping = with(with(jobs(20, 4), 1), 1);
    keeping.others[0].terms.keep_alive_seconds = 600;
    assert_eq!(keeping.dearest(), ChoiceId(1));
    assert_eq!(keeping.greatest_limits(ChoiceId(1)).keep_alive_seconds, 600);
    assert_eq!(keeping.greatest_limits(ChoiceId(2)).keep_alive_seconds, 0);
    // The same time limit costs most on the most instances, whatever the terms.
    let mut short = with(with(jobs(20, 4), 3), 2);
    short.others[0].terms.max_runtime_seconds = 60;
    assert_eq!((short.dearest(), short.job.largest()), (ChoiceId(2), ChoiceId(1)));
}

/// Without one of them, no cost of the tuning can be shown.
#[test]
fn a_tuning_has_prices_if_the_first_instances_of_each_definition_have_one() {
    let mut definition = with(jobs(20, 4), 3);
    assert!(definition.job.is_priced());
    definition.job.fallbacks[0].rate = None;
    assert!(!definition.job.is_priced());
    assert_eq!(definition.dearest(), ChoiceId(1), "an unknown price may be the highest");
}

/// Earlier rows had only the spaces of the further definitions. Read as one definition, a tuning would lose trials.
#[test]
fn a_row_without_the_terms_of_further_definitions_is_unreadable() {
    let mut row = serde_json::to_value(with(jobs(20, 2), 1)).unwrap();
    assert!(serde_json::from_value::<Definition>(row.clone()).is_ok());
    let members = row.as_object_mut().unwrap();
    let others = members.remove("others").unwrap();
    members.insert("other_spaces".to_owned(), serde_json::json!([others[0]["space"]]));
    assert!(serde_json::from_value::<Definition>(row).is_err());
}

#[test]
fn equal_spaces_draw_different_configurations() {
    let mut run = Run::new(&with(jobs(20, 2), 1));
    run.take(&[submitted()]);
    let drawn: Vec<_> = run.state.jobs().map(|(_, trial, _)| trial.configuration.clone()).collect();
    assert_ne!(drawn[0], drawn[1]);
}

/// "no definition starves before it had a full bracket"
#[test]
fn each_definition_first_gets_the_trials_of_a_bracket() {
    let mut world = World::perfect(&with(with(jobs(40, 4), 1), 1));
    world.play();
    let first = world.run.definition.round_of(BracketId(0));
    let all = trials(&world);
    let early = usize::try_from(3 * first).unwrap();
    for of in 0..3 {
        let own = |trial: &&TrialId| world.run.definition.definition_of(**trial) == DefinitionId(of);
        assert_eq!(all.iter().take(early).filter(own).count(), usize::try_from(first).unwrap());
    }
    // The numbers of a definition have no gap.
    for (index, trial) in all.iter().enumerate() {
        let of = world.run.definition.definition_of(*trial);
        let before = all.iter().take(index).filter(|other| world.run.definition.definition_of(**other) == of);
        assert_eq!(usize::try_from(world.run.definition.index_of(*trial)).unwrap(), before.count());
    }
}

/// The rung's evidence is that of the latest twenty trials of each definition.
#[test]
fn each_definition_keeps_the_values_of_its_latest_judged_trials() {
    let mut world = World::new(Run::sampled(&with(jobs(160, 4), 1), 50), Faults::default());
    let mut seen = BTreeMap::new();
    while world.advance() {
        for of in [DefinitionId(0), DefinitionId(1)] {
            let own = world.run.state.search.passages.iter().filter(|passage| passage.of == of);
            let values: Vec<_> = own.map(|passage| passage.values.clone()).collect();
            let known: &mut Vec<_> = seen.entry(of).or_default();
            if known.last() != values.last() {
                known.extend(values.last().cloned());
            }
            assert_eq!(values, known[known.len().saturating_sub(20)..]);
        }
    }
    assert!(seen[&DefinitionId(0)].len() > 25 && seen[&DefinitionId(1)].len() > 1, "{seen:?}");
}

#[test]
fn without_several_definitions_no_leader_is_kept() {
    let mut world = World::perfect(&jobs(10, 4));
    world.play();
    assert_eq!(world.run.state.search.leaders, []);
}

/// "slots and money go where an improvement of the overall best is likely, with a minimum share for each"
#[test]
fn the_definition_of_the_best_trials_gets_most_of_the_later_ones() {
    let definition = with(random(120, 1), 1);
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    // Trials of the second definition are better.
    let live = |run: &Run| run.state.jobs().map(|(key, _, _)| key).next();
    while let Some(key) = live(&run) {
        let value = if definition.definition_of(key.trial) == DefinitionId(1) { 0.9 } else { 0.5 };
        let at = i64::from(key.trial.0);
        run.take(&[started(at, key), logged(at, key, 1, value + f64::from(key.trial.0) * 1e-4)]);
        run.take(&[ended(at + 1, key, JobEnd::Completed), described(at + 1, key, JobEnd::Completed, 1)]);
    }
    let of = |of: u32| run.state.search.started(&run.definition, DefinitionId(of));
    assert_eq!(of(0) + of(1), 120);
    assert!(of(0) >= 120 / 12 && of(1) >= 100, "{} and {}", of(0), of(1));
}

/// The whole tuning failed, although the first definition could go on.
#[test]
fn a_definition_whose_quota_is_too_small_leaves_the_trials_to_others() {
    let mut run = Run::new(&with(jobs(20, 2), 3));
    run.take(&[submitted()]);
    assert_eq!(run.state.jobs().count(), 2);
    let refused = [started(1, job(0)), answered(2, job(1), 2, 3)];
    run.take(&refused);
    run.take(&[never_started(3, job(1))]);
    run.take(&[time_passed(200_000)]);
    assert!(!run.state.is_ended());
    let numbers: Vec<u32> = run.state.jobs().map(|(key, _, _)| key.trial.0).collect();
    assert_eq!(numbers, [0, 2]);
}

/// Trials repeated the combinations of a small space.
#[test]
fn a_definition_whose_combinations_are_used_up_gets_no_more_trials() {
    let mut definition = with(random(12, 1), 1);
    let values = vec!["a".to_owned(), "b".to_owned()];
    let domain = Domain::Categorical { values };
    definition.others[0].space = Space::new(vec![Parameter { name: "kind".to_owned(), domain }]).unwrap();
    let mut world = World::perfect(&definition);
    world.play();
    let of = |of: u32| world.run.state.search.started(&definition, DefinitionId(of));
    assert_eq!((of(0), of(1)), (10, 2));
}

/// Two definitions without a value ended the tuning before the third one was tried.
#[test]
fn definitions_without_a_value_do_not_end_the_tuning_before_another_was_tried() {
    let mut run = Run::new(&with(with(random(60, 1), 1), 1));
    run.take(&[submitted()]);
    let live = |run: &Run| run.state.jobs().map(|(key, _, _)| key).next();
    let mut trials = 0;
    while let Some(key) = live(&run) {
        let at = i64::from(key.trial.0);
        run.take(&[started(at, key), described(at, key, JobEnd::Completed, 1)]);
        trials += 1;
    }
    // Six trials of each show that a tuning without any value cannot succeed.
    assert_eq!(trials, 3 * 6);
}

proptest! {
    #![proptest_config(cases(48))]

    /// "each definition has its own search space, model, brackets and cohorts": no verdict and no promotion counts a trial of
    /// another definition, with any faults.
    #[test]
    fn only_trials_of_one_definition_are_compared(
        definition in definitions(),
        faults in faults(),
        (synchronous, own_terms) in any::<(bool, bool)>(),
    ) {
        let mut definition = with(definition, 2);
        if own_terms {
            let terms = &mut definition.others[0].terms;
            terms.max_runtime_seconds *= 2;
            terms.spot = !terms.spot;
            terms.max_wait_seconds = terms.spot.then_some(8_000);
            terms.keep_alive_seconds = if terms.spot { 0 } else { 300 };
            let least = definition.least_cap().unwrap_or_default();
            definition.cap = definition.cap.map(|cap| cap.max(least));
        }
        let scheduling = if synchronous { Scheduling::Synchronous } else { Scheduling::Asynchronous };
        let definition = if faults.seed % 2 == 0 { promoting(definition, scheduling) } else { definition };
        let mut world = World::new(Run::new(&definition), faults);
        world.play();
        let mut arrived: BTreeMap<(DefinitionId, u32), u32> = BTreeMap::new();
        for ruling in &world.run.rulings {
            if let Ruling::Search(SearchRuling::TrialJudged { trial, bracket, level, verdict, .. }) = ruling {
                let of = definition.definition_of(*trial);
                prop_assert_eq!(definition.definition_of_bracket(*bracket), of);
                let seen = arrived.entry((of, level.0)).or_default();
                *seen += 1;
                prop_assert!(verdict.seen == *seen, "{} of {}", verdict.seen, seen);
            }
        }
        for cohort in &world.run.state.search.cohorts {
            let of = definition.definition_of_bracket(cohort.id.bracket);
            for (_, rung) in cohort.rungs() {
                for (trial, _) in &rung.arrivals {
                    prop_assert_eq!(definition.definition_of(*trial), of);
                }
            }
        }
    }
}

#[test]
fn each_definition_has_its_own_longest_silence() {
    let mut definition = Definition { silence: Silence::Adaptive, ..with(jobs(20, 2), 1) };
    definition.others[0].terms.max_runtime_seconds = 4 * definition.job.max_runtime_seconds;
    let mut run = Run::new(&definition);
    run.take(&[submitted()]);
    run.take(&[phase(100, job(0), JobPhase::Training), phase(100, job(1), JobPhase::Training)]);
    check_next(&mut run, &[time_passed(100 + 1_799)], &[]);
    check_next(&mut run, &[time_passed(100 + 1_800)], &["look at 0-0-1, silent since 100"]);
    check_next(&mut run, &[time_passed(100 + 7_199)], &[]);
    check_next(&mut run, &[time_passed(100 + 7_200)], &["look at 1-0-1, silent since 100"]);
}
