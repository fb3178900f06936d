//! Plays methods on a case, one tuning for each seed, in several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args, ValueEnum};
use curves::{TableError, simulate};
use serde_json::{Value, json};

use crate::case::Case;
use crate::error::BenchmarkError;
use crate::rival::{self, Rival};
use crate::world::{Run, World};

/// A method of search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// The controller with its defaults
    Hyperband,
    /// The controller with `Sampler` `Sobol` and `ReductionFactor` 3
    SobolHyperband,
    /// The controller with `Sampler` `Random` and `ReductionFactor` 3
    RandomHyperband,
    /// Random search, each job to its end
    Random,
    /// ASHA that stops trials, from epoch 1
    Asha,
    /// ASHA that stops trials, from epoch 9
    AshaG9,
}

impl Method {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hyperband => "hyperband",
            Self::SobolHyperband => "sobol-hyperband",
            Self::RandomHyperband => "random-hyperband",
            Self::Random => "random",
            Self::Asha => "asha",
            Self::AshaG9 => "asha-g9",
        }
    }

    /// Returns the rival, or the controller's fields of the request.
    fn player(self) -> Result<Rival, Value> {
        match self {
            Self::Hyperband => Err(json!({})),
            Self::SobolHyperband => Err(json!({"Sampler": "Sobol", "ReductionFactor": 3})),
            Self::RandomHyperband => Err(json!({"Sampler": "Random", "ReductionFactor": 3})),
            Self::Random => Ok(Rival::Random),
            Self::Asha => Ok(Rival::Asha { grace: 1 }),
            Self::AshaG9 => Ok(Rival::Asha { grace: 9 }),
        }
    }

    /// Returns whether the method is the controller.
    pub fn is_controller(self) -> bool {
        self.player().is_err()
    }
}

/// Plays each method with each seed, in so many threads. Returns the runs of each method by seed.
pub fn play_all(
    case: &Case,
    methods: &[Method],
    world: &World,
    Seeds { seeds, jobs }: &Seeds,
) -> Result<Vec<Vec<Run>>, BenchmarkError> {
    let units: Vec<(usize, Method, u64)> = (0..)
        .zip(methods)
        .flat_map(|(index, method)| seeds.clone().map(move |seed| (index, *method, seed)))
        .collect();
    let done = in_threads(&units, usize::from(*jobs), |(index, method, seed)| {
        (*index, play(case, *method, world, *seed))
    });
    let mut runs = vec![Vec::new(); methods.len()];
    for (index, run) in done {
        if let Some(of_method) = runs.get_mut(index) {
            of_method.push(run?);
        }
    }
    Ok(runs)
}

/// The seeds of a benchmark, and the threads that play them.
#[derive(Debug, Args)]
pub struct Seeds {
    /// The seeds; each plays one tuning of each kind
    #[arg(long, value_name = "A..B", default_value = "0..100", value_parser = parse_seeds)]
    pub seeds: Range<u64>,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: u16,
}

impl Seeds {
    /// Returns the answer of `play` to each seed, in their order.
    ///
    /// # Errors
    ///
    /// The first error of a seed.
    pub fn play<A: Send>(
        &self,
        play: impl Fn(u64) -> Result<A, BenchmarkError> + Sync,
    ) -> Result<Vec<A>, BenchmarkError> {
        let seeds: Vec<u64> = self.seeds.clone().collect();
        in_threads(&seeds, usize::from(self.jobs), |seed| play(*seed)).into_iter().collect()
    }
}

/// Reads a range of seeds, for example `0..100`.
fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range
        .filter(|range| !range.is_empty())
        .ok_or_else(|| "expected A..B with A < B, for example 0..100".to_owned())
}

/// Returns the answer of `work` to each unit, in the order of the units. So many threads work.
fn in_threads<U: Sync, A: Send>(units: &[U], threads: usize, work: impl Fn(&U) -> A + Sync) -> Vec<A> {
    let next = AtomicUsize::new(0);
    let one_thread = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(index) else { return done };
            done.push((index, work(unit)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(one_thread)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Vec<_>>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect::<Vec<_>>()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, answer)| answer).collect()
}

fn play(case: &Case, method: Method, world: &World, seed: u64) -> Result<Run, BenchmarkError> {
    let World { max_jobs, setting } = world;
    let unusable = |why: TableError| BenchmarkError::Table { table: case.name.clone(), why };
    match method.player() {
        Ok(rival) => {
            let space = case.definition(&json!({}), *max_jobs)?.space;
            rival::play(rival, &case.table, &space, setting, *max_jobs, seed).map_err(unusable)
        }
        Err(controller) => {
            let simulated =
                |jobs| Ok(simulate(&case.table, &case.definition(&controller, jobs)?, setting, seed));
            let rows = u32::try_from(case.table.rows.len()).unwrap_or(u32::MAX);
            let outcome = match simulated(*max_jobs)? {
                // All rows have answered: the same tuning with a job for each row.
                Err(TableError::UsedUp(_)) if rows < *max_jobs => simulated(rows)?,
                outcome => outcome,
            };
            let outcome = outcome.map_err(unusable)?;
            Ok(Run { trials: outcome.trials, checkpoints: outcome.checkpoints })
        }
    }
}
