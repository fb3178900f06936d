//! An exhaustive check of a small tuning: every place of a fault, not a sample.
//!
//! The tuning has two trials, two rungs, and money for three training jobs, one or two of them at a time. A *deviation*
//! is a fault or an act of the user ([`Kind`]). Each kind occurs at most once, at any place. [`explore`] visits all
//! worlds that at most N deviations reach. It plays the deployed use cases and the real decider. Only the table and the
//! training service are in memory.
//!
//! It is a search of its own rather than a library of model checking, since the state is a table that asynchronous use
//! cases write. Each move starts from a copy of the world, and a process can stop between two of its calls. Worlds are
//! equal if their tables, jobs, messages, clocks and remaining deviations are.
//!
//! Limits: jobs move in turn, at one speed. A process starts with an empty cache, and stands still for at most one other.
//! No time passes while it stands still. Bills are late, programs fail and backups are made only when no message waits.

mod moves;
mod ports;
mod small;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use use_cases::replay::replay;
use use_cases::store::Store;
use wire::stored::{self, action_partition, tuning_partition};
use wire::{row_json, sample};

use crate::world::ports::now;
use moves::{Move, Task, after, moves, one_call_later, run};
use small::{Budget, Known, Small};

const NAME: &str = "small";
const EPOCHS: u32 = 2;
/// The price of the instances: 0.36 dollars an hour.
const MICRO_USD_PER_SECOND: u64 = 100;
/// Seconds that a training job may run, and those beside them that its reservation pays.
const MAX_RUNTIME: u64 = 600;
const ALLOWED_SECONDS: u64 = 300;
/// Sweeps of a world at rest until everything has ended.
const IDLE_SWEEPS_MAX: u32 = 60;

/// A kind of deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A process crashes after any call.
    Crash,
    /// A message arrives twice.
    Duplicate,
    /// A message is lost.
    Loss,
    /// A message overtakes others, or a job moves on before they arrive.
    Reorder,
    /// A second process runs between two calls of the first.
    Overlap,
    /// A training program fails.
    Failure,
    /// A bill is late, or too low at first.
    Bill,
    /// The service does not show a new job at once.
    Unseen,
    /// The sweeper runs between messages, after the time between two sweeps.
    Sweep,
    /// The user stops the tuning.
    Stop,
    /// The table is restored from a backup.
    Restore,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { deviations, worlds, ends, depth, is_exhausted, violation } = self;
        let whole = if *is_exhausted { "exhausted" } else { "not exhausted" };
        write!(f, "{deviations} deviations: {worlds} worlds, {ends} ends, {depth} moves deep, {whole}")?;
        violation.as_ref().map_or(Ok(()), |violation| write!(f, "\n{violation}"))
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Crash,
        Self::Duplicate,
        Self::Loss,
        Self::Reorder,
        Self::Overlap,
        Self::Failure,
        Self::Bill,
        Self::Unseen,
        Self::Sweep,
        Self::Stop,
        Self::Restore,
    ];
}

/// How trials move from rung to rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rungs {
    /// Each rung has a training job of its own.
    Promote,
    /// A training job is stopped at a rung unless it is among the best.
    Stop,
}

impl Rungs {
    /// Returns the cap in micro-dollars: money for two jobs at once, or for one.
    fn cap(self) -> u64 {
        match self {
            Self::Promote => 200_000,
            Self::Stop => 150_000,
        }
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explored {
    /// The greatest number of deviations.
    pub deviations: u32,
    /// Different worlds.
    pub worlds: usize,
    /// Worlds in which everything has ended.
    pub ends: usize,
    /// The most moves from the first world to another.
    pub depth: usize,
    /// Whether all worlds were visited.
    pub is_exhausted: bool,
    /// The first violation, and the moves that lead to it.
    pub violation: Option<String>,
}

/// Visits all worlds that at most `deviations` deviations can reach, until `deadline`, if there is one.
pub fn explore(rungs: Rungs, deviations: u32, deadline: Option<Instant>) -> Explored {
    let mut explored =
        Explored { deviations, worlds: 0, ends: 0, depth: 0, is_exhausted: true, violation: None };
    let (mut seen, mut known) = (HashSet::new(), Known::default());
    let mut path: Vec<Step> = first_world(rungs, deviations).map(Step::new).into_iter().collect();
    while let Some(step) = path.last_mut() {
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            explored.is_exhausted = false;
            break;
        }
        let Some((made, world)) = step.next() else {
            path.pop();
            continue;
        };
        if seen.insert(world.fingerprint(&mut known)) || !world.violations.is_empty() {
            let (is_end, wrong) = verdict(&world);
            explored.ends += usize::from(is_end);
            if let Some(wrong) = wrong {
                explored.violation = Some(format!("{wrong}\n{}", text(&path, &made)));
                break;
            }
            if !is_end {
                path.push(Step::new(world));
                explored.depth = explored.depth.max(path.len());
            }
        }
    }
    explored.worlds = seen.len();
    explored
}

/// Searches with 0, 1, 2 and more deviations, until the time is over, `most` are exhausted, or a promise is broken.
/// Returns all searches.
pub fn deepen(rungs: Rungs, most: u32, time: Duration) -> Vec<Explored> {
    let deadline = Instant::now().checked_add(time);
    let mut all = Vec::new();
    for deviations in 0..=most {
        let explored = explore(rungs, deviations, deadline);
        let is_last = !explored.is_exhausted || explored.violation.is_some();
        all.push(explored);
        if is_last {
            break;
        }
    }
    all
}

/// A world on the path, with the moves that were not made yet.
struct Step {
    world: Small,
    moves: Vec<Move>,
    made: Option<Move>,
}

impl Step {
    fn new(world: Small) -> Self {
        let mut moves = moves(&world);
        moves.reverse();
        Self { world, moves, made: None }
    }

    /// Makes the next move that is possible.
    fn next(&mut self) -> Option<(Move, Small)> {
        loop {
            let made = self.moves.pop()?;
            if let Some(world) = after(&self.world, &made) {
                self.moves.extend(one_call_later(&made));
                self.made = Some(made.clone());
                return Some((made, world));
            }
        }
    }
}

fn text(path: &[Step], last: &Move) -> String {
    let before = path.iter().filter_map(|step| {
        let made = step.made.as_ref()?;
        let next = step.world.queue.front().map_or("-".to_owned(), small::Message::name);
        Some(format!("  {made:?} ({next})\n"))
    });
    format!("{}  last: {last:?}", before.collect::<String>())
}

fn first_world(rungs: Rungs, deviations: u32) -> Option<Small> {
    let world = Small::new(rungs.cap(), Budget::of(deviations));
    run(world, &Task::Submit(request(rungs).to_string()), None, None)
}

fn request(rungs: Rungs) -> Value {
    let (execution, jobs) = match rungs {
        Rungs::Promote => (json!({"RungExecution": "Promote", "ResourceHyperParameter": "epochs"}), 3),
        Rungs::Stop => (json!({"RungExecution": "Stop"}), 2),
    };
    let changes = json!({
        "HyperParameterTuningJobConfig": {
            "StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": EPOCHS}},
            "ResourceLimits": {"MaxNumberOfTrainingJobs": jobs, "MaxParallelTrainingJobs": 2},
            "RandomSeed": 1,
        },
        "TrainingJobDefinition": {
            "AlgorithmSpecification": {"MetricDefinitions": [{"Name": "auc", "Regex": r"auc=([0-9.]+)"}]},
            "StoppingCondition": {"MaxRuntimeInSeconds": MAX_RUNTIME},
        },
        "Controller": {
            "MaxCostUsd": if rungs == Rungs::Promote { 0.2 } else { 0.15 },
            "ReductionFactor": 2,
            "EpochPattern": r"epoch=([0-9]+)",
            "InstancePricesUsdPerHour": {"ml.m5.large": 0.36},
        },
    });
    sample::with(sample::with(sample::request(NAME), changes), json!({"Controller": execution}))
}

/// Returns whether everything has ended in a world, and the first promise that it breaks.
fn verdict(world: &Small) -> (bool, Option<String>) {
    if let Some(violation) = world.violations.first() {
        return (false, Some(violation.clone()));
    }
    let is_at_rest = world.queue.is_empty() && world.next_job().is_none();
    if !is_at_rest {
        return (false, None);
    }
    let is_late = world.idle_sweeps > IDLE_SWEEPS_MAX;
    if !world.has_ended() {
        let wrong = || format!("P3: the tuning has not ended after {IDLE_SWEEPS_MAX} sweeps at rest");
        return (false, is_late.then(wrong));
    }
    (true, broken_promise(world))
}

/// Returns the first promise that an ended tuning breaks.
fn broken_promise(world: &Small) -> Option<String> {
    let rows = world.table.rows();
    let head = rows.iter().find(|row| row.key.sk == stored::HEAD)?;
    let id = head.key.pk.strip_prefix("T#")?;
    let partitions = [tuning_partition(id), action_partition(id)];
    let own: Vec<_> =
        rows.iter().filter(|row| partitions.contains(&row.key.pk)).map(row_json::encode).collect();
    match audit::audit(id, &own) {
        Err(error) => return Some(error.to_string()),
        Ok(report) => {
            if let Some(first) = report.violations.first() {
                return Some(first.to_string());
            }
            let seconds: u64 = world.jobs.values().filter_map(small::Job::billed_seconds).sum();
            let billed = seconds * MICRO_USD_PER_SECOND;
            // After a restore the table does not know all jobs.
            if report.spent != billed && report.without_bill == 0 && !world.is_restored {
                return Some(format!(
                    "P1: the service bills {billed} micro-dollars, and {} are booked",
                    report.spent
                ));
            }
        }
    }
    match now(replay(&Store::new(Arc::new(world.table.clone())), id)) {
        Ok(Some(replayed)) => {
            replayed.difference.map(|(step, ..)| format!("P5: step {step} is decided otherwise"))
        }
        other => Some(format!("P5: no replay: {other:?}")),
    }
}
