//! `cargo run --release -p benchmark --example definitions -- [OPTIONS]` plays tunings with two training job definitions in
//! virtual time, and prints where their money goes as a table in Markdown.
#![expect(clippy::print_stdout, reason = "a command-line program prints its results")]

use std::process::ExitCode;

use benchmark::case::{Case, Source};
use benchmark::error::{BenchmarkError, exit};
use benchmark::play::Seeds;
use benchmark::report::Estimate;
use benchmark::tables::cases;
use clap::Parser;
use curves::{Setting, TableError, simulate_steps};
use serde_json::json;
use tuning::log::fact::Fact;
use tuning::unit::ids::{BracketId, DefinitionId};
use tuning::unit::limits::MAX_TRAINING_JOBS;

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p benchmark --example definitions
  cargo run --release -p benchmark --example definitions -- --table cnn-lite --seeds 0..20 --handicap 0.5";

/// Plays tunings with one definition, with two equal ones, and with two of which one is worse, in virtual time
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Options {
    #[command(flatten)]
    seeds: Seeds,
    /// A table to play; repeat it for more [default: all recorded ones]
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// How much worse each value of the second definition is, as a share of (best - median) of the table
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    handicap: f64,
    /// Seconds of a tuning
    #[arg(long, value_name = "S", default_value_t = 3_600.0)]
    seconds: f64,
}

/// The result of one tuning.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The regret of the best value.
    regret: f64,
    /// The share of the first definition in the billed time of trials that started after each definition had the trials of
    /// its first bracket.
    share: f64,
}

fn main() -> ExitCode {
    exit(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), BenchmarkError> {
    println!("| table | one: regret | two equal: regret | second worse: regret | money of the first |");
    println!("|---|---|---|---|---|");
    for case in cases(&options.tables)?.iter().filter(|case| case.source == Source::Recorded) {
        let of = |handicaps: &[f64]| -> Result<Vec<Found>, BenchmarkError> {
            options.seeds.play(|seed| play(case, handicaps, options.seconds, seed))
        };
        let (one, equal, worse) = (of(&[0.0])?, of(&[0.0, 0.0])?, of(&[0.0, options.handicap])?);
        println!(
            "| {} | {} | {} | {} | {} |",
            case.name,
            mean(&one, |found| found.regret),
            mean(&equal, |found| found.regret),
            mean(&worse, |found| found.regret),
            mean(&worse, |found| found.share),
        );
    }
    Ok(())
}

fn play(case: &Case, handicaps: &[f64], seconds: f64, seed: u64) -> Result<Found, BenchmarkError> {
    let until_seconds = Some(seconds);
    let setting = Setting { until_seconds, handicaps: handicaps.to_vec(), ..Setting::default() };
    let mut definition = case.definition(&json!({}), MAX_TRAINING_JOBS)?;
    let alone = definition.clone();
    handicaps.iter().skip(1).for_each(|_| definition.join(alone.clone()));
    let first = definition.round_of(BracketId(0));
    let (mut from, mut billed) = (None, [0_u64; 2]);
    let mut see = |step: &tuning::step::Step, state: &tuning::state::State| {
        let has_bracket = |of: DefinitionId| state.search.started(&definition, of) >= first;
        if from.is_none() && definition.definitions().all(has_bracket) {
            from = Some(state.search.next_trial);
        }
        for recorded in &step.facts {
            if let Fact::JobDescribed { job, billable_seconds, .. } = recorded.fact
                && from.is_some_and(|from| job.trial >= from)
                && let Some(sum) = billed.get_mut(definition.definition_of(job.trial).index())
            {
                *sum += billable_seconds;
            }
        }
    };
    let unusable = |why: TableError| BenchmarkError::Table { table: case.name.clone(), why };
    let outcome = simulate_steps(&case.table, &definition, &setting, seed, &mut see).map_err(unusable)?;
    let best = outcome.improvements.last().map_or(f64::NAN, |last| last.value);
    let [own, other] = billed.map(|seconds| u32::try_from(seconds).map_or(f64::NAN, f64::from));
    Ok(Found { regret: case.regret(best), share: own / (own + other) })
}

/// Returns the mean and its standard error. A tuning that ends before both definitions had a bracket has no share.
fn mean(found: &[Found], of: impl Fn(&Found) -> f64) -> String {
    let values = found.iter().map(of).filter(|value| value.is_finite()).map(Some);
    let estimate = Estimate::of(values);
    estimate.map_or_else(
        || "-".to_owned(),
        |Estimate { mean, se }| format!("{mean:.3} ± {:.3}", se.unwrap_or(f64::NAN)),
    )
}
