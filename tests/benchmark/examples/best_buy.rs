//! `cargo run --release -p benchmark --example best_buy -- [OPTIONS]` plays tunings with and without `ValueTolerance` in
//! virtual time, and prints what their best buys cost as a table in Markdown.
#![expect(clippy::print_stdout, reason = "a command-line program prints its results")]

use std::process::ExitCode;

use benchmark::case::{Case, Source};
use benchmark::error::{BenchmarkError, exit};
use benchmark::play::Seeds;
use benchmark::tables::cases;
use clap::Parser;
use curves::{Setting, TableError, simulate_steps};
use search::Configuration;
use serde_json::{Value, json};
use tuning::unit::limits::MAX_TRAINING_JOBS;

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p benchmark --example best_buy
  cargo run --release -p benchmark --example best_buy -- --table cnn-lite --seeds 0..20 --tolerance 0.2";

/// Plays tunings with and without a tolerance of values in virtual time, and prints what their best buys cost
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Options {
    #[command(flatten)]
    seeds: Seeds,
    /// A table to play; repeat it for more [default: all recorded ones]
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// The tolerance, as a share of (best - median) of the table
    #[arg(long, value_name = "F", default_value_t = 0.1)]
    tolerance: f64,
    /// Seconds of a tuning
    #[arg(long, value_name = "S", default_value_t = 3_600.0)]
    seconds: f64,
}

/// What one tuning found, by the recorded curves.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The regret of the best value.
    regret: f64,
    /// The cost of the cheapest trial within the tolerance of the best recorded value, as a share of the mean training. If no
    /// trial is within it, that of the dearest recorded configuration.
    cost: f64,
    /// The cost of a training of the best buy, as a share of that of the configuration with the best value.
    share: f64,
    /// The same of the cheapest recorded configuration within the tolerance of the best value.
    least: f64,
    /// Whether the recorded value of the best buy is within the tolerance.
    is_within: bool,
}

fn main() -> ExitCode {
    exit(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), BenchmarkError> {
    println!("| table | recorded | found | within | cost | without | regret | without |");
    println!("|---|---|---|---|---|---|---|---|");
    for case in cases(&options.tables)?.iter().filter(|case| case.source == Source::Recorded) {
        let scale = case.observable();
        let tolerance = options.tolerance * (scale.best - scale.median).abs();
        let of = |controller: &Value| -> Result<Vec<Found>, BenchmarkError> {
            let play = |seed| play(case, controller, tolerance, options.seconds, seed);
            Ok(options.seeds.play(play)?.into_iter().flatten().collect())
        };
        let (with, without) = (of(&json!({"ValueTolerance": tolerance}))?, of(&json!({}))?);
        println!(
            "| {} | {:.2} | {:.2} | {} of {} | {:.2} | {:.2} | {:.3} | {:.3} |",
            case.name,
            median(&with, |found| found.least),
            median(&with, |found| found.share),
            with.iter().filter(|found| found.is_within).count(),
            with.len(),
            mean(&with, |found| found.cost),
            mean(&without, |found| found.cost),
            mean(&with, |found| found.regret),
            mean(&without, |found| found.regret),
        );
    }
    Ok(())
}

/// Plays a tuning. Returns `None` if it found no value.
fn play(
    case: &Case,
    controller: &Value,
    tolerance: f64,
    seconds: f64,
    seed: u64,
) -> Result<Option<Found>, BenchmarkError> {
    let setting = Setting { until_seconds: Some(seconds), ..Setting::default() };
    let definition = case.definition(controller, MAX_TRAINING_JOBS)?;
    let mut results = None;
    let mut see = |_: &_, state: &tuning::state::State| results = Some(state.results.clone());
    let unusable = |why: TableError| BenchmarkError::Table { table: case.name.clone(), why };
    simulate_steps(&case.table, &definition, &setting, seed, &mut see).map_err(unusable)?;
    let Some(results) = results else { return Ok(None) };
    let front = &results.front;
    let buy = front.best_buy(&definition, &results.timings, tolerance);
    let Some((best, buy)) = front.best().zip(buy) else { return Ok(None) };
    // The best value and the cost of each recorded configuration.
    let scale = case.table.time_scale(setting.mean_job_seconds) * f64::from(case.table.max_resource);
    let better = |a: f64, b: f64| if case.table.maximize { a.max(b) } else { a.min(b) };
    let best_of = |values: &[f64]| values.iter().copied().reduce(better).unwrap_or(f64::NAN);
    let rows = case.table.rows.iter();
    let rows: Vec<(f64, f64)> = rows
        .map(|row| (best_of(&row.values), setting.startup_seconds + scale * row.seconds_per_epoch))
        .collect();
    let row = |configuration: &Configuration| {
        let nearest = case.table.nearest(&case.table.point(configuration)?, |_| true);
        Ok(nearest.and_then(|index| rows.get(index).copied()).unwrap_or((f64::NAN, f64::NAN)))
    };
    let ((best, best_cost), (value, cost)) =
        (row(&best.configuration).map_err(unusable)?, row(&buy.configuration).map_err(unusable)?);
    let trials: Result<Vec<_>, _> = front.iter().map(|point| row(&point.configuration)).collect();
    let cheapest = |rows: &[(f64, f64)], best: f64| {
        let close = rows.iter().filter(|(value, _)| (value - best).abs() <= tolerance);
        close.map(|(_, cost)| *cost).reduce(f64::min)
    };
    let dearest = rows.iter().map(|(_, cost)| *cost).fold(0.0, f64::max);
    let found = cheapest(&trials.map_err(unusable)?, case.observable().best).unwrap_or(dearest);
    Ok(Some(Found {
        regret: case.regret(best),
        cost: found / (setting.startup_seconds + setting.mean_job_seconds),
        share: cost / best_cost,
        least: cheapest(&rows, best).unwrap_or(best_cost) / best_cost,
        is_within: (value - best).abs() <= tolerance,
    }))
}

fn median(found: &[Found], of: impl Fn(&Found) -> f64) -> f64 {
    let mut values: Vec<f64> = found.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn mean(found: &[Found], of: impl Fn(&Found) -> f64) -> f64 {
    let count = u32::try_from(found.len()).map_or(f64::NAN, f64::from);
    found.iter().fold(0.0, |sum, found| sum + of(found)) / count
}
