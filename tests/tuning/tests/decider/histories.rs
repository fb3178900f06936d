//! Random histories: faults of every kind, then a liveness phase that delivers the lost facts. `Run::take` checks the
//! promises of every step. These tests check the promises of the end.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tuning::change::fold::fold;
use tuning::decide::RULE_COUNT;
use tuning::definition::Scheduling::{Asynchronous, Synchronous};
use tuning::definition::{Definition, EpochRule, Strategy as Resources};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{Order, Ruling};
use tuning::state::{State, Status};
use tuning::unit::money::MicroUsd;

use crate::support::build::*;
use crate::support::cases;
use crate::support::run::Run;
use crate::support::service::Faults;
use crate::support::world::World;

/// Generates small tunings of every shape.
pub(crate) fn definitions() -> impl Strategy<Value = Definition> {
    let resources = prop_oneof![
        4 => (1_u32..30, 2_u32..5).prop_map(|(max_resource, eta)| {
            comparing(1 + max_resource / 10, max_resource, eta)
        }),
        1 => Just(Resources::Independent),
        1 => Just(Resources::Median),
    ];
    let epochs = (any::<bool>(), 0_u32..2, any::<bool>()).prop_map(|(captured, base, per_attempt)| {
        EpochRule { captured, base, per_attempt, is_base_assumed: false }
    });
    let limits = (1_u32..25, 1_u32..7, prop::option::of(200_u64..2_000), prop::option::of(1_u32..12));
    let criteria = (prop::option::of(0.5_f64..1.0), prop::option::of(2_u32..9));
    let money = (prop::option::of(1_u64..8), any::<bool>(), 0_u32..4);
    (any::<u64>(), resources, epochs, limits, criteria, money).prop_map(
        |(seed, strategy, epochs, limits, (target, not_improving), (cap, spot, max_interruptions))| {
            let (max_jobs, max_parallel, max_runtime_seconds, max_instances) = limits;
            let mut definition = jobs(max_jobs, max_parallel);
            definition.seed = seed;
            definition.strategy = strategy;
            definition.epochs = epochs;
            definition.limits.max_runtime_seconds = max_runtime_seconds;
            definition.limits.max_instances = max_instances;
            definition.limits.target = target;
            definition.limits.not_improving = not_improving;
            definition.job.spot = spot;
            definition.job.max_wait_seconds = spot.then_some(4_000);
            definition.settings.max_interruptions = max_interruptions;
            let least = definition.least_cap().unwrap_or_default();
            definition.cap = cap.map(|jobs| MicroUsd(least.0 * jobs));
            definition
        },
    )
}

/// Generates faults. Each kind is absent in half of the histories.
pub(crate) fn faults() -> impl Strategy<Value = Faults> {
    let chance = |most: f64| prop_oneof![Just(0.0), 0.0..most];
    let deliveries = (chance(0.4), chance(0.4), chance(0.4), chance(0.9));
    let jobs = (chance(0.1), chance(0.1), chance(0.3), chance(0.2), chance(0.3));
    let others = (chance(0.5), chance(0.5), chance(0.5), chance(0.1));
    (any::<u64>(), deliveries, jobs, others).prop_map(|(seed, deliveries, jobs, others)| {
        let (lost, duplicated, delayed, batched) = deliveries;
        let (failed, hung, unserved, interrupted, refused) = jobs;
        let (deferred, unbilled, risen, diverged) = others;
        Faults {
            seed,
            lost,
            duplicated,
            delayed,
            batched,
            failed,
            hung,
            unserved,
            interrupted,
            refused,
            deferred,
            unbilled,
            risen,
            diverged,
            unsaved: 0.0,
        }
    })
}

/// Plays a history to its end. Panics at a hang, a broken promise or an end with open jobs.
pub(crate) fn play(definition: &Definition, faults: Faults, stop: Option<i64>, every: u64) -> World {
    let mut world = World::new(Run::sampled(definition, every), faults);
    if let Some(seconds) = stop {
        world.stop_at(seconds);
    }
    world.play();
    world
}

/// The rules for a job past its reservation: each job of these histories ends before. `overruns.rs` wakes them.
const BEYOND: [usize; 3] = [1, 2, 10];

/// The check that a rule is woken in time needs a history in which it makes a ruling.
#[test]
fn each_rule_decides_in_some_history() {
    let (mut runner, mut rules) = (TestRunner::deterministic(), BTreeSet::new());
    for n in 0_u64..90 {
        let drawn = (definitions(), faults()).new_tree(&mut runner).unwrap();
        let (mut definition, faults) = drawn.current();
        (definition.refit, definition.spot_fallback) = (n % 2 == 0, n % 3 == 0);
        definition.job.keep_alive_seconds = if n % 4 == 1 && !definition.job.spot { 300 } else { 0 };
        definition.grants = n % 5 == 0;
        if n % 7 == 0 {
            definition = silent_for(definition, 300);
        }
        if n % 3 == 1 && definition.compared().is_some() {
            definition = promoting(definition, if n % 2 == 0 { Asynchronous } else { Synchronous });
        }
        let mut run = Run::sampled(&definition, 50);
        run.notes_rules = true;
        let mut world = World::new(run, Faults { unsaved: 0.5, ..faults });
        world.play();
        rules.extend(world.run.rules);
    }
    let missing: Vec<usize> = (0..RULE_COUNT).filter(|place| !rules.contains(place)).collect();
    assert_eq!(missing, BEYOND, "no history reaches the rules at these places of `RULES`");
}

proptest! {
    #![proptest_config(cases(160))]

    /// Every history ends within all limits. Every trial ends, no action is ordered twice, and the ledger covers the
    /// true bills.
    #[test]
    fn a_history_of_faults_ends_within_all_limits(
        definition in definitions(),
        faults in faults(),
        stop in prop::option::of(0_i64..600),
        (refit, spot_fallback, keep, other) in any::<(bool, bool, bool, bool)>(),
    ) {
        let mut definition = Definition { refit, spot_fallback, ..definition };
        definition.job.keep_alive_seconds = if keep && !definition.job.spot { 300 } else { 0 };
        // The fallback has the same instances, so a job costs the same.
        definition.job.fallbacks = if other { vec![definition.job.instances(ChoiceId(0))] } else { Vec::new() };
        let world = play(&definition, faults, stop, 9);
        let run = &world.run;
        let spent = run.state.money.ledger.spent.0;
        let rate = definition.job.rate.map_or(0, |rate| rate.cost(1, 1, 0).0);
        let kept = world.pools.seconds() * rate;
        prop_assert!(world.bills.values().sum::<u64>() + kept <= spent, "{:?}, {kept} kept", world.bills);
        prop_assert!(definition.cap.is_none_or(|cap| spent <= cap.0));
        let concluded = run.concluded.len();
        let orders = run.rulings.iter().filter(|ruling| matches!(ruling, Ruling::Order(Order::Start { .. })));
        prop_assert_eq!(concluded, orders.count(), "each ordered job is concluded once");
        if let Status::Ended { why: EndReason::Stopped, .. } = run.state.status {
            prop_assert!(stop.is_some());
        }
        // An ended tuning keeps only its rungs and timings, so the state is bounded.
        prop_assert!(run.largest < 60_000, "{} bytes", run.largest);
    }

    /// Folding the facts in two parts gives the same state as folding them at once, at any cut.
    #[test]
    fn folding_a_prefix_and_then_the_rest_equals_folding_all_facts(
        definition in definitions(),
        faults in faults(),
        cut in any::<prop::sample::Index>(),
    ) {
        let world = play(&definition, faults, None, 1_000);
        let fold_all = |state: &mut State, facts: &[_]| {
            for fact in facts {
                fold(&definition, state, fact);
            }
        };
        // The state after the first rulings has jobs, so the facts of jobs take effect.
        let mut run = Run::new(&definition);
        run.take(&[submitted()]);
        let facts = &world.delivered;
        let (mut all, mut parts) = (run.state.clone(), run.state.clone());
        fold_all(&mut all, facts);
        let (prefix, rest) = facts.split_at(cut.index(facts.len()));
        fold_all(&mut parts, prefix);
        let stored = serde_json::to_vec(&parts).unwrap();
        let mut parts: State = serde_json::from_slice(&stored).unwrap();
        fold_all(&mut parts, rest);
        prop_assert!(all == parts);
    }
}
