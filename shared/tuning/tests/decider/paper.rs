//! Naive Hyperband as in the paper (Li et al., JMLR 18 (2018), Algorithm 1): no concurrency, no money, no retries, no
//! floats; and what the decider must have in common with it.
//!
//! The decider stops running jobs (ASHA); the paper waits for a whole rung and then promotes. What is equal for every
//! order of arrival: the plan, how many trials join each bracket, and that the leader of a bracket reaches the maximum
//! resource. All verdicts are equal where the best of each rung arrive first, then at places 2 eta, 3 eta, ... of it.

use std::cmp::Ordering;

use proptest::prelude::*;
use search::seed::{Rng, child};
use tuning::definition::{Definition, Objective, Strategy as Resources};
use tuning::ruling::Ruling;

use crate::support::bench::{Bench, Program};
use crate::support::build::*;
use crate::support::cases;
use crate::support::run::Run;

/// More trials than any bracket of these tests has.
const MOST: u32 = 10_000;

/// What a trial showed at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Failed,
    NotANumber,
    /// More is better.
    Value(i32),
}

/// For each bracket, most exploring first: how many trials are compared at how many epochs, lowest first.
pub(crate) fn table(min: u32, max: u32, eta: u32) -> Vec<Vec<(u32, u32)>> {
    // s_max = floor(log_eta(R)), R = max / min.
    let s_max = (0..max).take_while(|s| eta.pow(*s) * min <= max).last().unwrap();
    let bracket = |s: u32| {
        // n = ceil((s_max + 1) / (s + 1) * eta^s), r = R / eta^s.
        let n = (1..=MOST).find(|n| n * (s + 1) >= (s_max + 1) * eta.pow(s)).unwrap();
        let rung = |i: u32| {
            let slots = (0..=n).rev().find(|slots| slots * eta.pow(i) <= n).unwrap();
            (slots, (1..=max).rev().find(|level| level * eta.pow(s - i) <= max).unwrap())
        };
        (0..=s).map(rung).collect()
    };
    (0..=s_max).rev().map(bracket).collect()
}

/// One bracket: who is compared at each level. After each, the best `n_i / eta` go on; who failed or diverged never does.
fn halving(
    trials: &[u32],
    bracket: &[(u32, u32)],
    eta: u32,
    shown: impl Fn(u32, u32) -> Shown,
) -> Vec<Vec<u32>> {
    let mut compared = vec![trials.to_vec()];
    for (slots, level) in &bracket[..bracket.len() - 1] {
        let mut rest = compared.last().unwrap().clone();
        let mut best = Vec::new();
        for _ in 0..slots / eta {
            let numbers = rest.iter().filter(|trial| matches!(shown(**trial, *level), Shown::Value(_)));
            let Some(next) =
                numbers.copied().min_by(|a, b| better_first(shown(*a, *level), shown(*b, *level)))
            else {
                break;
            };
            rest.retain(|trial| *trial != next);
            best.push(next);
        }
        best.sort_unstable();
        compared.push(best);
    }
    compared
}

/// Of equals the first stays, and that is the earlier trial.
fn better_first(a: Shown, b: Shown) -> Ordering {
    match (a, b) {
        (Shown::Value(a), Shown::Value(b)) => b.cmp(&a),
        (Shown::Value(_), _) => Ordering::Less,
        (_, Shown::Value(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// One full set of brackets, and its trials by bracket.
fn full_set((min, max, eta): (u32, u32, u32), parallel: u32) -> (Definition, Vec<Vec<u32>>) {
    let table = table(min, max, eta);
    let trials = table.iter().map(|bracket| bracket[0].0).sum();
    let mut definition = jobs(trials, parallel);
    definition.strategy = Resources::Hyperband { min_resource: min, max_resource: max, eta };
    let mut joined = vec![Vec::new(); table.len()];
    let mut all_at_once = definition.clone();
    all_at_once.limits.max_parallel = trials;
    for ruling in Run::new(&all_at_once).take(&[submitted()]) {
        if let Ruling::StartOrdered { job, bracket, .. } = ruling {
            joined[usize::try_from(bracket).unwrap()].push(job.trial);
        }
    }
    (definition, joined)
}

/// Trials compared at each level of each bracket, in order of trial; those at the last level are there by their epochs.
fn compared(bench: &Bench, joined: &[Vec<u32>], table: &[Vec<(u32, u32)>]) -> Vec<Vec<Vec<u32>>> {
    let epochs = bench.epochs();
    let mut compared: Vec<Vec<Vec<u32>>> = table.iter().map(|b| vec![Vec::new(); b.len()]).collect();
    for ruling in &bench.run.rulings {
        if let Ruling::TrialJudged { trial, bracket, rung, .. } = ruling {
            compared[usize::try_from(*bracket).unwrap()][usize::try_from(*rung).unwrap()].push(*trial);
        }
    }
    for (bracket, trials) in joined.iter().enumerate() {
        let last = table[bracket].last().unwrap().1;
        let there = trials.iter().copied().filter(|trial| epochs[usize::try_from(*trial).unwrap()] >= last);
        *compared[bracket].last_mut().unwrap() = there.collect();
    }
    for rung in compared.iter_mut().flatten() {
        rung.sort_unstable();
    }
    compared
}

#[expect(clippy::cast_possible_truncation, reason = "the values of these tests are small and whole")]
fn whole(value: f64) -> i32 {
    value as i32
}

fn plans() -> impl Strategy<Value = (u32, u32, u32)> {
    (1_u32..4, 1_u32..28, 2_u32..5).prop_map(|(min, factor, eta)| (min, min * factor + min / 2, eta))
}

/// Gives `trials`, which arrive in this order, values at the levels such that the `m`-th of those that go on comes first
/// or `m * eta`-th, at every rung. Everything else is drawn.
fn arrange(
    programs: &mut [Program],
    trials: &[u32],
    bracket: &[(u32, u32)],
    eta: usize,
    rng: &mut impl FnMut(i32) -> i32,
) {
    let [(_, level), (_, next), ..] = bracket else { return };
    let best = trials.len() / eta;
    let place = |m: usize| if m == 1 { 0 } else { m * eta - 1 };
    let going: Vec<u32> = (1..=best).map(|m| trials[place(m)]).collect();
    for trial in trials {
        let goes_on = going.contains(trial);
        let value = match rng(10) {
            0 if !goes_on => None,
            _ if goes_on => Some(100 + rng(20)),
            _ => Some(rng(20)),
        };
        programs[usize::try_from(*trial).unwrap()].values[usize::try_from(*level).unwrap() - 1] = value;
    }
    assert!(level < next);
    arrange(programs, &going, &bracket[1..], eta, rng);
}

proptest! {
    #![proptest_config(cases(96))]

    /// The plan is the paper's, and a full set of brackets starts exactly its numbers of trials.
    #[test]
    fn the_plan_and_the_trials_of_each_bracket_are_those_of_the_paper((min, max, eta) in plans()) {
        let expect = table(min, max, eta);
        let (definition, joined) = full_set((min, max, eta), 1);
        let plan = definition.plan();
        let rungs = |bracket: &hyperband::plan::BracketPlan| {
            bracket.rungs().iter().map(|rung| (rung.slots, rung.resource)).collect::<Vec<_>>()
        };
        prop_assert_eq!(plan.brackets().iter().map(rungs).collect::<Vec<_>>(), expect.clone());
        let joined: Vec<usize> = joined.iter().map(Vec::len).collect();
        let trials = expect.iter().map(|bracket| usize::try_from(bracket[0].0).unwrap());
        prop_assert_eq!(joined, trials.collect::<Vec<_>>());
    }

    /// "P6 a rung never promotes more than it may": one job at a time, and the best of each rung first and then at places
    /// 2 eta, 3 eta, ...: at every level are exactly those that the paper promotes to it, and each trial is given exactly
    /// the epochs of the last level that it was compared at.
    #[test]
    fn one_at_a_time_the_trials_at_every_level_are_those_of_the_paper(
        (min, max, eta) in plans(),
        seed in any::<u64>(),
        minimize in any::<bool>(),
    ) {
        let table = table(min, max, eta);
        let (mut definition, joined) = full_set((min, max, eta), 1);
        let mut rng = Rng::new(child(seed, "values", 0));
        let mut draw = |most: i32| whole(rng.next_f64() * f64::from(most));
        let epochs = usize::try_from(max).unwrap() + 2;
        let trials: usize = joined.iter().map(Vec::len).sum();
        // Between levels anything goes: it must not matter.
        let mut program = || Program { values: (0..epochs).map(|_| Some(draw(150))).collect(), fails: false };
        let mut programs: Vec<Program> = (0..trials).map(|_| program()).collect();
        for (trials, bracket) in joined.iter().zip(&table) {
            arrange(&mut programs, trials, bracket, usize::try_from(eta).unwrap(), &mut draw);
        }
        let shown = |trial: u32, epoch: u32| {
            let program: &Program = &programs[usize::try_from(trial).unwrap()];
            program.values[usize::try_from(epoch).unwrap() - 1].map_or(Shown::NotANumber, Shown::Value)
        };
        let expect: Vec<_> =
            joined.iter().zip(&table).map(|(trials, bracket)| halving(trials, bracket, eta, shown)).collect();
        let mut given = programs.clone();
        if minimize {
            definition.objective = Objective::Minimize;
            given.iter_mut().flat_map(|p| &mut p.values).flatten().for_each(|value| *value = -*value);
        }

        let bench = Bench::play(&definition, given, |_| 0);

        prop_assert_eq!(&compared(&bench, &joined, &table), &expect);
        let mut best = i32::MIN;
        for (bracket, compared) in table.iter().zip(&expect) {
            for trial in &compared[0] {
                let rung = compared.iter().rposition(|there| there.contains(trial)).unwrap();
                let level = bracket[rung].1;
                let trial = usize::try_from(*trial).unwrap();
                prop_assert_eq!(bench.epochs()[trial], level, "trial {}", trial);
                let emitted = &programs[trial].values[..usize::try_from(level).unwrap()];
                best = best.max(emitted.iter().flatten().copied().max().unwrap_or(best));
            }
        }
        let incumbent = bench.run.state.incumbent.as_ref().unwrap().value;
        prop_assert_eq!(whole(incumbent.abs()), best, "the best value seen at any epoch");
    }

    /// Whatever the order of arrival and however many run at once: where curves do not cross, the leader of each bracket
    /// reaches the maximum resource as it does in the paper, and the best of the leaders is the incumbent. Ties go to the
    /// earlier trial; who diverges or fails leads nothing.
    #[test]
    fn the_leader_of_each_bracket_and_the_incumbent_are_those_of_the_paper(
        (min, max, eta) in plans(),
        parallel in 1_u32..9,
        heights in prop::collection::vec(prop_oneof![8 => (0_i32..12).prop_map(Shown::Value),
            1 => Just(Shown::NotANumber), 1 => Just(Shown::Failed)], 1..200),
        order in prop::collection::vec(any::<usize>(), 1..60),
        minimize in any::<bool>(),
    ) {
        let table = table(min, max, eta);
        let (mut definition, joined) = full_set((min, max, eta), parallel);
        let height = |trial: u32| match heights[usize::try_from(trial).unwrap() % heights.len()] {
            // Something is to be found.
            _ if trial == 0 => Shown::Value(5),
            height => height,
        };
        let shown = |trial: u32, epoch: u32| match height(trial) {
            Shown::Value(height) => Shown::Value(height * 1_000 + i32::try_from(epoch).unwrap()),
            bad => bad,
        };
        let program = |trial: u32| {
            let value = |epoch| match shown(trial, epoch) {
                Shown::Value(value) => Some(if minimize { -value } else { value }),
                Shown::NotANumber | Shown::Failed => None,
            };
            let fails = height(trial) == Shown::Failed;
            Program { values: if fails { Vec::new() } else { (1..=max).map(value).collect() }, fails }
        };
        let trials: usize = joined.iter().map(Vec::len).sum();
        let programs = (0..u32::try_from(trials).unwrap()).map(program).collect();
        if minimize {
            definition.objective = Objective::Minimize;
        }

        let mut turn = 0;
        let bench = Bench::play(&definition, programs, |running| {
            turn += 1;
            order[turn % order.len()] % running
        });

        let epochs = bench.epochs();
        let mut leaders = Vec::new();
        for (trials, bracket) in joined.iter().zip(&table) {
            let finalists = halving(trials, bracket, eta, shown).pop().unwrap();
            let numbers = finalists.into_iter().filter(|trial| matches!(height(*trial), Shown::Value(_)));
            let Some(leader) = numbers.min_by(|a, b| better_first(shown(*a, max), shown(*b, max))) else {
                continue;
            };
            prop_assert_eq!(epochs[usize::try_from(leader).unwrap()], max, "trial {} leads", leader);
            leaders.push(shown(leader, max));
        }
        leaders.sort_by(|a, b| better_first(*a, *b));
        let incumbent = bench.run.state.incumbent.as_ref().unwrap();
        let Shown::Value(best) = leaders[0] else { panic!("trial 0 is a number") };
        prop_assert_eq!(whole(incumbent.value.abs()), best);
        prop_assert_eq!(shown(incumbent.trial, incumbent.resource), leaders[0]);
    }
}

#[test]
fn the_naive_plan_of_81_and_3_is_the_paper_s_table_by_its_own_formula() {
    let first: Vec<(u32, u32)> = table(1, 81, 3).iter().map(|bracket| bracket[0]).collect();
    assert_eq!(first, [(81, 1), (34, 3), (15, 9), (8, 27), (5, 81)]);
}
