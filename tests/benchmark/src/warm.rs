//! Warm starts: a parent tuning on one table, and a child on the same or another table, with and without the parent.

use std::collections::BTreeMap;
use std::sync::Mutex;

use clap::ValueEnum;
use curves::{Outcome, Setting, TableError, simulate, simulate_steps};
use search::{Configuration, History, Parent, Space, WarmStart, WarmStartType};
use serde_json::json;
use tuning::definition::Definition;
use tuning::state::State;
use tuning::step::Step;
use tuning::unit::limits::MAX_TRAINING_JOBS;

use crate::case::Case;
use crate::error::BenchmarkError;
use crate::play::Seeds;
use crate::report::{Estimate, REGRET_MIN};

/// Virtual times at which children are measured, in seconds. At the last one they end.
pub const TIMES: [u32; 3] = [600, 1_800, 3_600];
/// The virtual time after which parents end, in seconds.
pub const PARENT_SECONDS: u32 = 7_200;
/// The resolution of times to a value, in seconds.
const STEP: u32 = 10;
/// Added to the seed of a child for that of its parent.
const PARENT_SEED: u64 = 1_000_000;

/// How a parent's configurations and values become those of the child's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Relation {
    /// Hyperparameters with the same name are the same
    Named,
    /// The same, and the parent's table has the negated values: its best is the child's worst
    Reversed,
    /// The first hyperparameter of the parent is the first one of the child, whatever their names, and so on
    Ordered,
}

/// The tunings of a child, by seed: the regrets at [`TIMES`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Regrets(Vec<Vec<f64>>);

/// A parent and a child.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The parents: one tuning on each of these cases.
    pub parents: Vec<&'a Case>,
    /// The case of the child.
    pub child: &'a Case,
    /// How they are related.
    pub relation: Relation,
    /// The type of the warm start.
    pub kind: WarmStartType,
}

/// The figures of the tunings of a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// The children without a parent.
    pub cold: Regrets,
    /// The children with one.
    pub warm: Regrets,
    /// The time of the child to the first parent's best value, as a share of the parent's time to it; infinite if it
    /// was not reached. Empty unless the tables are the same.
    pub shares: Vec<f64>,
}

impl Regrets {
    /// Returns the mean at one of [`TIMES`].
    pub fn at(&self, time: usize) -> Option<Estimate> {
        Estimate::of(self.0.iter().map(|regrets| regrets.get(time).copied()))
    }
}

impl Played {
    /// Returns the logarithm of the ratio of the mean regrets at one of [`TIMES`], and its standard error, by which the
    /// tunings with and without parent are independent.
    pub fn log_ratio(&self, time: usize) -> Option<(f64, f64)> {
        let (warm, cold) = (self.warm.at(time)?, self.cold.at(time)?);
        let relative = |estimate: Estimate| estimate.se.unwrap_or(0.0) / estimate.mean.max(REGRET_MIN);
        let (a, b) = (relative(warm), relative(cold));
        let log = libm::log(warm.mean.max(REGRET_MIN) / cold.mean.max(REGRET_MIN));
        Some((log, libm::sqrt(a * a + b * b)))
    }
}

type ParentKey = (String, bool, u64);
/// The regrets without and with a parent, and the share of its time.
type One = (Vec<f64>, Vec<f64>, Option<f64>);

/// Plays pairs. It keeps the tunings that several pairs need.
#[derive(Debug, Default)]
pub struct Player {
    parents: Mutex<BTreeMap<ParentKey, (Outcome, History)>>,
    cold: Mutex<BTreeMap<(String, u64), Vec<f64>>>,
}

impl Player {
    /// Plays a pair with each seed.
    pub fn play(&self, pair: &Pair<'_>, seeds: &Seeds) -> Result<Played, BenchmarkError> {
        let mut played = Played { cold: Regrets::default(), warm: Regrets::default(), shares: Vec::new() };
        for (cold, warm, share) in seeds.play(|seed| self.one(pair, seed))? {
            played.cold.0.push(cold);
            played.warm.0.push(warm);
            played.shares.extend(share);
        }
        Ok(played)
    }

    fn one(&self, pair: &Pair<'_>, seed: u64) -> Result<One, BenchmarkError> {
        let child = pair.child;
        let definition = definition(child)?;
        let mut parents = Vec::new();
        let mut first = None;
        for (index, parent) in (0..).zip(&pair.parents) {
            let (outcome, history) = self.parent(parent, pair.relation, seed + (index + 1) * PARENT_SEED)?;
            parents.push(translated(pair, parent, &history, &definition.space)?);
            first.get_or_insert(outcome);
        }
        let cold = self.cold(child, &definition, seed)?;
        let warm_start = Some(WarmStart { kind: pair.kind, names: Vec::new(), parents });
        let definition = Definition { warm_start, ..definition };
        let last = TIMES.last().copied().unwrap_or(0);
        let warm = simulate(&child.table, &definition, &setting(last), seed).map_err(unusable(child))?;
        let is_same = pair.relation == Relation::Named
            && pair.parents.first().is_some_and(|first| first.name == child.name);
        let share = first.filter(|_| is_same).and_then(|first| share(child, &first, &warm));
        Ok((cold, regrets(child, &warm), share))
    }

    fn parent(
        &self,
        case: &Case,
        relation: Relation,
        seed: u64,
    ) -> Result<(Outcome, History), BenchmarkError> {
        let reversed = relation == Relation::Reversed;
        let key = (case.name.clone(), reversed, seed);
        if let Some(known) = self.parents.lock().ok().and_then(|known| known.get(&key).cloned()) {
            return Ok(known);
        }
        let mut table = case.table.clone();
        if reversed {
            table.rows.iter_mut().flat_map(|row| &mut row.values).for_each(|value| *value = -*value);
        }
        let mut history = History::default();
        let mut note = |_: &Step, state: &State| history.clone_from(&state.search.history);
        let outcome = simulate_steps(&table, &definition(case)?, &setting(PARENT_SECONDS), seed, &mut note)
            .map_err(unusable(case))?;
        let played = (outcome, history);
        if let Ok(mut known) = self.parents.lock() {
            known.insert(key, played.clone());
        }
        Ok(played)
    }

    fn cold(&self, case: &Case, definition: &Definition, seed: u64) -> Result<Vec<f64>, BenchmarkError> {
        let key = (case.name.clone(), seed);
        if let Some(known) = self.cold.lock().ok().and_then(|known| known.get(&key).cloned()) {
            return Ok(known);
        }
        let last = TIMES.last().copied().unwrap_or(0);
        let outcome = simulate(&case.table, definition, &setting(last), seed).map_err(unusable(case))?;
        let regrets = regrets(case, &outcome);
        if let Ok(mut known) = self.cold.lock() {
            known.insert(key, regrets.clone());
        }
        Ok(regrets)
    }
}

fn unusable(case: &Case) -> impl Fn(TableError) -> BenchmarkError {
    |why| BenchmarkError::Table { table: case.name.clone(), why }
}

fn definition(case: &Case) -> Result<Definition, BenchmarkError> {
    case.definition(&json!({}), MAX_TRAINING_JOBS)
}

/// Returns the world of a tuning that ends after so many seconds.
fn setting(seconds: u32) -> Setting {
    let checkpoints = (1..=seconds / STEP).map(|step| f64::from(step * STEP)).collect();
    Setting { checkpoints, until_seconds: Some(f64::from(seconds)), ..Setting::default() }
}

/// Returns the regrets at [`TIMES`]: that of a configuration of median value while there is no value.
fn regrets(case: &Case, outcome: &Outcome) -> Vec<f64> {
    let at = |time: &u32| {
        let checkpoint = usize::try_from(time / STEP).ok().and_then(|step| outcome.checkpoints.get(step - 1));
        checkpoint.and_then(|checkpoint| checkpoint.best_observed).map_or(1.0, |value| case.regret(value))
    };
    TIMES.iter().map(at).collect()
}

/// Returns the time of the child to the parent's best value, as a share of the parent's time; `None` if the parent has no
/// value.
fn share(case: &Case, parent: &Outcome, child: &Outcome) -> Option<f64> {
    let best = parent.checkpoints.last()?.best_observed?;
    let reached = |outcome: &Outcome| {
        let is_there = |value: f64| if case.table.maximize { value >= best } else { value <= best };
        let mut reached =
            outcome.checkpoints.iter().filter(|point| point.best_observed.is_some_and(is_there));
        reached.next().map(|point| point.seconds)
    };
    Some(reached(child).unwrap_or(f64::INFINITY) / reached(parent)?)
}

/// Returns a history as a parent of the child.
fn translated(
    pair: &Pair<'_>,
    parent: &Case,
    history: &History,
    space: &Space,
) -> Result<Parent, BenchmarkError> {
    let own = definition(parent)?.space;
    let maximize = pair.child.table.maximize;
    let sign = if parent.table.maximize == maximize { 1.0 } else { -1.0 };
    let by_order = |configuration: Configuration| {
        let mut point = own.encode(&configuration).unwrap_or_default();
        point.resize(space.dimensions(), 0.5);
        space.decode(&point)
    };
    let trials = history.iter().filter_map(|(_, seen)| {
        let configuration = seen.place.configuration(&own);
        let is_by_order = pair.relation == Relation::Ordered;
        let configuration = if is_by_order { by_order(configuration) } else { configuration };
        Some((configuration, sign * seen.best?))
    });
    Ok(Parent::new(space, trials, maximize))
}
