//! `cargo run --release -p benchmark -- [OPTIONS]` plays tunings of the controller and of other methods in virtual
//! time, and prints their regrets as tables in Markdown or as lines of JSON.
#![expect(clippy::print_stdout, reason = "a command-line program prints its results")]

use std::path::PathBuf;
use std::process::ExitCode;

use benchmark::error::{BenchmarkError, exit};
use benchmark::peers::Peers;
use benchmark::play::{Method, Seeds, play_all};
use benchmark::report::{overall, report};
use benchmark::tables::cases_with;
use benchmark::text;
use benchmark::world::{Axis, World};
use clap::{Parser, ValueEnum};
use serde_json::json;
use tuning::unit::limits::MAX_TRAINING_JOBS;

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p benchmark
  cargo run --release -p benchmark -- --seeds 0..20 --table digits-mlp --table branin --jobs 2
  cargo run --release -p benchmark -- --method hyperband --method asha --noise 0.03 --unique-rows
  cargo run --release -p benchmark -- --against billed
  cargo run --release -p benchmark -- --jobs-allowed 30 --output json";

/// Plays tunings of the controller and of other methods in virtual time on tables of learning curves, and prints their
/// regrets
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Options {
    #[command(flatten)]
    seeds: Seeds,
    /// A table to play; repeat it for more [default: all]
    #[arg(long = "table", value_name = "NAME")]
    tables: Vec<String>,
    /// A further folder with held-out tables
    #[arg(long = "tables", value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// A method to play; repeat it for more [default: all]
    #[arg(long = "method", value_name = "NAME")]
    methods: Vec<Method>,
    /// Standard deviation of the noise of each value, as a share of (best - median) of the table
    #[arg(long, value_name = "F", default_value_t = 0.0, value_parser = parse_noise)]
    noise: f64,
    /// Each row of a table answers one trial of a tuning only
    #[arg(long)]
    unique_rows: bool,
    /// What regrets are measured against, where tunings end after a time
    #[arg(long, value_enum, default_value = "time")]
    against: Axis,
    /// Training jobs of a tuning, which ends after them; with 10000, it ends after 7,200 s, or 14,400 s with `billed`
    #[arg(long, value_name = "N", default_value_t = MAX_TRAINING_JOBS,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_TRAINING_JOBS)))]
    jobs_allowed: u32,
    /// Tables in Markdown, or a line of JSON for each table and one for the geometric means
    #[arg(long, value_enum, default_value = "text")]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

fn parse_noise(text: &str) -> Result<f64, String> {
    let noise = text.parse().ok().filter(|noise: &f64| noise.is_finite() && *noise >= 0.0);
    noise.ok_or_else(|| "expected a number of at least 0, for example 0.03".to_owned())
}

fn main() -> ExitCode {
    exit(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), BenchmarkError> {
    let is_timed = options.jobs_allowed >= MAX_TRAINING_JOBS;
    if options.against == Axis::Billed && !is_timed {
        return Err(BenchmarkError::Options(
            "cannot measure tunings of --jobs-allowed against billed: they are measured at their end; remove one of the options",
        ));
    }
    if is_timed && options.methods.contains(&Method::RandomBilled) {
        return Err(BenchmarkError::Options(
            "random-billed needs tunings that end after --jobs-allowed, for example --jobs-allowed 30",
        ));
    }
    let (cases, peers) = (cases_with(&options.tables, options.folder.as_deref())?, Peers::read()?);
    let world = World::new(options.jobs_allowed, options.against, options.noise, options.unique_rows);
    let all = Method::value_variants().iter().copied();
    // In a given time all methods occupy as many instances.
    let all: Vec<Method> =
        all.filter(|method| !(world.is_timed() && *method == Method::RandomBilled)).collect();
    let methods = if options.methods.is_empty() { &all } else { &options.methods };
    let mut reports = Vec::new();
    for case in &cases {
        let runs = play_all(case, methods, &world, &options.seeds)?;
        let report = report(case, methods, &runs, &world, &peers);
        match options.output {
            Output::Text => println!("{}", text::of_case(&report, &world)),
            Output::Json => println!("{}", json!(report)),
        }
        reports.push(report);
    }
    let means = overall(&reports);
    match options.output {
        Output::Text if means.is_empty() => {}
        Output::Text => print!("{}", text::of_overall(&means, &world)),
        Output::Json => println!("{}", json!({"geometric_means": means})),
    }
    Ok(())
}
