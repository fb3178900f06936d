//! `hyperband simulate`: simulates tunings of a request in virtual time against recorded learning curves, and prints
//! one line of JSON for each seed.

use std::fs;
use std::path::{Path, PathBuf};

use curves::{Setting, Table, simulate as play};
use tuning::definition::Definition;
use tuning::unit::limits::MAX_TRAINING_JOBS;
use tuning::unit::time::Time;
use wire::forecast::Times;
use wire::request::{PriceAnswer, Request, RungExecution};

use crate::arguments;
use crate::failure::{Exit, Failure};
use crate::output::print_out_raw;
use crate::request;

/// Virtual times at which the state is measured, in seconds.
const CHECKPOINTS: [f64; 4] = [600.0, 1_800.0, 3_600.0, 7_200.0];

pub(crate) fn simulate(options: &arguments::Simulate) -> Result<Exit, Failure> {
    let request = request::read_local(&options.request, request::Edits::default())?;
    let table = read_table(&options.curves)?;
    let times = Times {
        startup_ms: milliseconds(options.startup_seconds),
        epoch_ms: milliseconds(options.mean_job_seconds / f64::from(table.max_resource())),
    };
    let job = define(&request)?.job;
    let (execution, _) = with_jobs(&request, options.trials).rungs(&job, times);
    let jobs = options.trials.map(|trials| jobs_of(&request, execution, trials));
    let request = with_jobs(&request.with_rungs(execution), jobs);
    let definition = define(&request)?;
    let checkpoints =
        CHECKPOINTS.iter().copied().filter(|at| options.until_seconds.is_some_and(|until| *at <= until));
    let setting = Setting {
        workers: options.workers,
        startup_seconds: options.startup_seconds,
        mean_job_seconds: options.mean_job_seconds,
        until_seconds: options.until_seconds,
        checkpoints: checkpoints.collect(),
        interruptions_per_hour: options.spot_interruptions,
        capacity_outage: options.capacity_outage.clone(),
        handicaps: Vec::new(),
        noise: options.noise,
        unique_rows: options.unique_rows,
        time_jitter: options.time_jitter,
        settle_seconds: options.settle_seconds,
        resumes: request.resumes(),
    };
    for seed in options.seeds.clone() {
        let outcome = play(&table, &definition, &setting, seed);
        let outcome = outcome.map_err(|error| Failure::usage(error.to_string()))?;
        print_out_raw(&(serde_json::to_string(&outcome)? + "\n"));
    }
    Ok(Exit::Done)
}

fn define(request: &Request) -> Result<Definition, Failure> {
    let definition = request.definition(Time::EPOCH, "000000", &PriceAnswer::default());
    definition.map_err(|error| Failure::invalid_request(&request::local_error(request, error)))
}

fn milliseconds(seconds: f64) -> u64 {
    u64::try_from(curves::milliseconds(seconds)).unwrap_or(0)
}

/// Returns the training jobs that `trials` configurations need. With promotions this is in proportion to a full set of
/// brackets, so the number of configurations is approximate. The jobs choose the brackets.
fn jobs_of(request: &Request, execution: RungExecution, trials: u32) -> u32 {
    let Some(plan) = request.plan().filter(|_| execution == RungExecution::Promote) else { return trials };
    let jobs = u64::from(trials).saturating_mul(u64::from(plan.jobs()));
    u32::try_from(jobs.div_ceil(u64::from(plan.trials().max(1)))).unwrap_or(u32::MAX)
}

/// Returns the request with so many training jobs; unchanged without a number.
fn with_jobs(request: &Request, jobs: Option<u32>) -> Request {
    let mut body = request.body().clone();
    if let Some(jobs) = jobs {
        body["HyperParameterTuningJobConfig"]["ResourceLimits"]["MaxNumberOfTrainingJobs"] =
            jobs.min(MAX_TRAINING_JOBS).into();
    }
    Request::from_stored(body)
}

fn read_table(path: &Path) -> Result<Table, Failure> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = name.strip_suffix(".jsonl.gz").or_else(|| name.strip_suffix(".jsonl"));
    let Some(stem) = stem else {
        return Err(Failure::usage(format!(
            "invalid --curves '{}': expected a .jsonl or .jsonl.gz file",
            path.display()
        )));
    };
    let space: PathBuf = path.with_file_name(format!("{stem}.space.json"));
    let read = |path: &Path| {
        fs::read(path).map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))
    };
    let table = Table::read(&read(path)?, &read(&space)?);
    table.map_err(|error| Failure::file("cannot use", path, &error))
}
