//! Compares the decider with naive Hyperband as in the paper (Li et al., JMLR 18 (2018), Algorithm 1).
//!
//! The model here has no concurrency, money, retries or floats. The decider stops running jobs (ASHA); the paper waits
//! for a whole rung and then promotes. For every order of arrival, both have the same plan and the same number of
//! trials in each bracket. A bracket on its own sends its leader to the maximum resource. All verdicts are equal if the
//! best trials of each rung arrive at places 1, 2 eta, 3 eta, ... Brackets that run together compare their trials with
//! each other, which the paper does not do. Then the leader of all of them reaches the maximum resource.

use std::cmp::Ordering;

use proptest::prelude::*;
use search::seed::{Rng, child};
use tuning::definition::{self, Definition, Objective};
use tuning::log::ruling::{Order, Ruling, SearchRuling};

use crate::support::bench::{Bench, Program};
use crate::support::build::*;
use crate::support::cases;
use crate::support::run::Run;

/// An upper bound of the trials in a bracket.
const MAX_TRIALS: u32 = 10_000;

/// The value of a trial at a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Failed,
    NotANumber,
    /// A larger value is better.
    Value(i32),
}

/// The rungs of each bracket: (trials compared, epochs).
type Table = Vec<Vec<(u32, u32)>>;

/// Returns the rungs of each bracket, lowest first: (trials compared, epochs). The bracket with most trials is first.
pub(crate) fn table(min: u32, max: u32, eta: u32) -> Table {
    // s_max = floor(log_eta(R)), R = max / min.
    let s_max = (0..max).take_while(|s| eta.pow(*s) * min <= max).last().unwrap();
    let bracket = |s: u32| {
        // n = ceil((s_max + 1) / (s + 1) * eta^s), r = R / eta^s.
        let n = (1..=MAX_TRIALS).find(|n| n * (s + 1) >= (s_max + 1) * eta.pow(s)).unwrap();
        let rung = |i: u32| {
            let slots = (0..=n).rev().find(|slots| slots * eta.pow(i) <= n).unwrap();
            (slots, (1..=max).rev().find(|level| level * eta.pow(s - i) <= max).unwrap())
        };
        (0..=s).map(rung).collect()
    };
    (0..=s_max).rev().map(bracket).collect()
}

/// Returns the trials of one bracket that are compared at each level.
///
/// After each level, the best `n_i / eta` trials are promoted, but never a failed or diverged trial.
fn halving(
    trials: &[u32],
    bracket: &[(u32, u32)],
    eta: u32,
    shown: impl Fn(u32, u32) -> Outcome,
) -> Vec<Vec<u32>> {
    let mut compared = vec![trials.to_vec()];
    for (slots, level) in &bracket[..bracket.len() - 1] {
        let mut rest = compared.last().unwrap().clone();
        let mut best = Vec::new();
        for _ in 0..slots / eta {
            let numbers = rest.iter().filter(|trial| matches!(shown(**trial, *level), Outcome::Value(_)));
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

/// Orders better values first. Equal values compare equal, so `min_by` returns the earlier trial.
fn better_first(a: Outcome, b: Outcome) -> Ordering {
    match (a, b) {
        (Outcome::Value(a), Outcome::Value(b)) => b.cmp(&a),
        (Outcome::Value(_), _) => Ordering::Less,
        (_, Outcome::Value(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}

/// Returns the definition of one full set of brackets, and its trials by bracket.
fn full_set((min, max, eta): (u32, u32, u32), parallel: u32) -> (Definition, Vec<Vec<u32>>) {
    let table = table(min, max, eta);
    let trials = table.iter().map(|bracket| bracket[0].0).sum();
    let mut definition = jobs(trials, parallel);
    definition.strategy = comparing(min, max, eta);
    let mut joined = vec![Vec::new(); table.len()];
    let mut all_at_once = definition.clone();
    all_at_once.limits.max_parallel = trials;
    for ruling in Run::new(&all_at_once).take(&[submitted()]) {
        if let Ruling::Order(Order::Start { job, bracket, .. }) = ruling {
            joined[bracket.index()].push(job.trial.0);
        }
    }
    (definition, joined)
}

/// Returns the definition of one bracket on its own, its trials, and its rungs. `pick` chooses the bracket.
fn one_bracket(
    (min, max, eta): (u32, u32, u32),
    pick: usize,
    parallel: u32,
) -> (Definition, Vec<Vec<u32>>, Table) {
    let mut table = table(min, max, eta);
    let pick = pick % table.len();
    let bracket = table.swap_remove(pick);
    let mut definition = jobs(bracket[0].0, parallel);
    definition.strategy = comparing(min, max, eta);
    let definition::Strategy::Hyperband { plan, .. } = &mut definition.strategy else { unreachable!() };
    *plan = plan.part(pick..pick + 1).unwrap();
    (definition, vec![(0..bracket[0].0).collect()], vec![bracket])
}

/// Returns the trials compared at each level of each bracket, in order of trial.
///
/// The decider does not judge the last level, so the trials there are found by their epochs.
fn compared(bench: &Bench, joined: &[Vec<u32>], table: &[Vec<(u32, u32)>]) -> Vec<Vec<Vec<u32>>> {
    let epochs = bench.epochs();
    let mut compared: Vec<Vec<Vec<u32>>> = table.iter().map(|b| vec![Vec::new(); b.len()]).collect();
    for ruling in &bench.run.rulings {
        if let Ruling::Search(SearchRuling::TrialJudged { trial, bracket, rung, .. }) = ruling {
            compared[bracket.index()][rung.index()].push(trial.0);
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

#[expect(clippy::cast_possible_truncation, reason = "the values of these tests are small integers")]
fn to_i32(value: f64) -> i32 {
    value as i32
}

fn plans() -> impl Strategy<Value = (u32, u32, u32)> {
    (1_u32..4, 1_u32..28, 2_u32..5).prop_map(|(min, factor, eta)| (min, min * factor + min / 2, eta))
}

/// Assigns values at the levels to `trials`, which arrive in this order.
///
/// At every rung, the first promoted trial is at place 1, and the `m`-th at place `m * eta`. Other values are random.
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
        let values = &mut programs[usize::try_from(*trial).unwrap()].values;
        // One value that is not a number can be a glitch: the trial diverges from the level on.
        let first = usize::try_from(*level).unwrap() - 1;
        let last = if value.is_none() { values.len() } else { first + 1 };
        values[first..last].fill(value);
    }
    assert!(level < next);
    arrange(programs, &going, &bracket[1..], eta, rng);
}

/// Raises the values at each level above those before it: the best value of a trial is then that of its last level.
fn rise(programs: &mut [Program], trials: &[u32], bracket: &[(u32, u32)]) {
    for trial in trials {
        let values = &mut programs[usize::try_from(*trial).unwrap()].values;
        for (height, (_, level)) in (1..).zip(bracket) {
            let value = &mut values[usize::try_from(*level).unwrap() - 1];
            *value = value.map(|value| value + 1_000 * height);
        }
    }
}

proptest! {
    #![proptest_config(cases(96))]

    /// The plan is the paper's, and a full set of brackets starts the planned number of trials.
    #[test]
    fn the_plan_and_the_trials_of_each_bracket_match_the_paper((min, max, eta) in plans()) {
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

    /// "P6 a rung never promotes more than it may". One job runs at a time, and the best trials of each rung arrive at
    /// places 1, 2 eta, 3 eta, ... Each level has exactly the trials that the paper promotes to it. Each trial gets the
    /// epochs of the last level at which it was compared.
    #[test]
    fn with_one_job_at_a_time_every_level_of_a_bracket_has_the_trials_of_the_paper(
        ((min, max, eta), pick) in (plans(), any::<usize>()),
        seed in any::<u64>(),
        minimize in any::<bool>(),
    ) {
        let (mut definition, joined, table) = one_bracket((min, max, eta), pick, 1);
        let mut rng = Rng::new(child(seed, "values", 0));
        let mut draw = |most: i32| to_i32(rng.next_f64() * f64::from(most));
        let epochs = usize::try_from(max).unwrap();
        let trials: usize = joined.iter().map(Vec::len).sum();
        // Values between levels are random and below those at levels: they must not matter.
        let mut program = || Program { values: (0..epochs).map(|_| Some(draw(150))).collect(), fails: false };
        let mut programs: Vec<Program> = (0..trials).map(|_| program()).collect();
        for (trials, bracket) in joined.iter().zip(&table) {
            arrange(&mut programs, trials, bracket, usize::try_from(eta).unwrap(), &mut draw);
            rise(&mut programs, trials, bracket);
        }
        let shown = |trial: u32, epoch: u32| {
            let program: &Program = &programs[usize::try_from(trial).unwrap()];
            program.values[usize::try_from(epoch).unwrap() - 1].map_or(Outcome::NotANumber, Outcome::Value)
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
                // The first value that is not a number may be a glitch: the next two epochs show that it is not.
                let diverged = level < max && programs[trial].values[usize::try_from(level).unwrap() - 1].is_none();
                let trained = if diverged { (level + 2).min(max) } else { level };
                prop_assert_eq!(bench.epochs()[trial], trained, "trial {}", trial);
                let emitted = &programs[trial].values[..usize::try_from(level).unwrap()];
                best = best.max(emitted.iter().flatten().copied().max().unwrap_or(best));
            }
        }
        let incumbent = bench.run.state.search.incumbent.as_ref().unwrap().value;
        prop_assert_eq!(to_i32(incumbent.abs()), best, "the best value seen at any epoch");
    }

    /// If curves do not cross, the leader of a bracket reaches the maximum resource, as in the paper, and so does the
    /// leader of all brackets that run together (`pick` is `None`). The order of arrival and the number of parallel
    /// jobs do not matter. The leader is the incumbent. Ties go to the earlier trial; a diverged or failed trial never
    /// leads.
    #[test]
    fn the_leader_of_a_bracket_and_of_all_brackets_reaches_the_maximum_resource(
        ((min, max, eta), pick) in (plans(), any::<Option<usize>>()),
        parallel in 1_u32..9,
        heights in prop::collection::vec(prop_oneof![8 => (0_i32..12).prop_map(Outcome::Value),
            1 => Just(Outcome::NotANumber), 1 => Just(Outcome::Failed)], 1..200),
        order in prop::collection::vec(any::<usize>(), 1..60),
        minimize in any::<bool>(),
    ) {
        let (mut definition, joined, table) = if let Some(pick) = pick {
            one_bracket((min, max, eta), pick, parallel)
        } else {
            let (definition, joined) = full_set((min, max, eta), parallel);
            (definition, joined, table(min, max, eta))
        };
        let height = |trial: u32| match heights[usize::try_from(trial).unwrap() % heights.len()] {
            // At least one trial has a value.
            _ if trial == 0 => Outcome::Value(5),
            height => height,
        };
        let shown = |trial: u32, epoch: u32| match height(trial) {
            Outcome::Value(height) => Outcome::Value(height * 1_000 + i32::try_from(epoch).unwrap()),
            bad => bad,
        };
        let program = |trial: u32| {
            let value = |epoch| match shown(trial, epoch) {
                Outcome::Value(value) => Some(if minimize { -value } else { value }),
                Outcome::NotANumber | Outcome::Failed => None,
            };
            let fails = height(trial) == Outcome::Failed;
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
        let mut leaders: Vec<u32> = Vec::new();
        for (trials, bracket) in joined.iter().zip(&table) {
            let finalists = halving(trials, bracket, eta, shown).pop().unwrap();
            let numbers = finalists.into_iter().filter(|trial| matches!(height(*trial), Outcome::Value(_)));
            let Some(leader) = numbers.min_by(|a, b| better_first(shown(*a, max), shown(*b, max))) else {
                continue;
            };
            leaders.push(leader);
        }
        let first = |a: &u32, b: &u32| better_first(shown(*a, max), shown(*b, max)).then(a.cmp(b));
        let leader = leaders.into_iter().min_by(first).unwrap();
        prop_assert_eq!(epochs[usize::try_from(leader).unwrap()], max, "trial {} leads", leader);
        let incumbent = bench.run.state.search.incumbent.as_ref().unwrap();
        let Outcome::Value(best) = shown(leader, max) else { panic!("trial 0 has a value") };
        prop_assert_eq!(to_i32(incumbent.value.abs()), best);
        prop_assert_eq!(shown(incumbent.trial.0, incumbent.resource.0), Outcome::Value(best));
    }
}

#[test]
fn the_naive_plan_for_81_epochs_and_eta_3_is_the_table_of_the_paper() {
    let first: Vec<(u32, u32)> = table(1, 81, 3).iter().map(|bracket| bracket[0]).collect();
    assert_eq!(first, [(81, 1), (34, 3), (15, 9), (8, 27), (5, 81)]);
}
