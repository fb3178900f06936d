//! Plays methods on a case, one tuning for each seed, in several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args, ValueEnum};
use curves::{TableError, simulate};
use hyperband::plan::Plan;
use serde_json::{Value, json};
use tuning::unit::limits::MAX_TRAINING_JOBS;

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
    /// Points of Sobol's sequence with the rungs of the controller's defaults: the controller without its model
    SobolLate,
    /// Random search, each job to its end
    Random,
    /// With --jobs-allowed: random search that ends when it has billed as much as the controller with the same seed
    RandomBilled,
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
            Self::SobolLate => "sobol-late",
            Self::Random => "random",
            Self::RandomBilled => "random-billed",
            Self::Asha => "asha",
            Self::AshaG9 => "asha-g9",
        }
    }

    /// Returns the rival, or the controller's fields of the request. The defaults have this plan.
    fn player(self, plan: &Plan) -> Result<Rival, Value> {
        match self {
            Self::Hyperband => Err(json!({})),
            Self::SobolHyperband => Err(json!({"Sampler": "Sobol", "ReductionFactor": 3})),
            Self::RandomHyperband => Err(json!({"Sampler": "Random", "ReductionFactor": 3})),
            Self::SobolLate => Ok(Rival::Late(plan.clone())),
            Self::Random | Self::RandomBilled => Ok(Rival::Random),
            Self::Asha => Ok(Rival::Asha { grace: 1 }),
            Self::AshaG9 => Ok(Rival::Asha { grace: 9 }),
        }
    }

    /// Returns the group of methods to whose best the controller is compared; `None` for the controller.
    pub fn group(self) -> Option<&'static str> {
        match self {
            Self::Hyperband | Self::SobolHyperband | Self::RandomHyperband => None,
            Self::Random | Self::Asha | Self::AshaG9 => Some("rivals"),
            Self::SobolLate => Some("Sobol' points with the same rungs"),
            Self::RandomBilled => Some("random search with the same billed time"),
        }
    }

    /// Returns whether the method is the controller.
    pub fn is_controller(self) -> bool {
        self.group().is_none()
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
    let World { max_jobs, setting, .. } = world;
    let unusable = |why: TableError| BenchmarkError::Table { table: case.name.clone(), why };
    let definition = case.definition(&json!({}), *max_jobs)?;
    match method.player(definition.plan()) {
        Ok(rival) => {
            let (mut setting, mut max_jobs) = (setting.clone(), *max_jobs);
            if method == Method::RandomBilled && !world.is_timed() {
                let ours = play(case, Method::Hyperband, world, seed)?;
                let billed = ours.checkpoints.last().map_or(0.0, |end| end.billed_seconds);
                // All workers of random search are always busy.
                let until = billed / f64::from(setting.workers);
                (setting.until_seconds, setting.checkpoints, max_jobs) =
                    (Some(until), vec![until], MAX_TRAINING_JOBS);
            }
            let run = rival::play(&rival, &case.table, &definition.space, &setting, max_jobs, seed);
            run.map(|run| Run { checkpoints: world.measured(run.checkpoints), ..run }).map_err(unusable)
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
            Ok(Run { trials: outcome.trials, checkpoints: world.measured(outcome.checkpoints) })
        }
    }
}
