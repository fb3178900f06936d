//! `cargo run --release -p benchmark --example counts -- [OPTIONS]` compares one tuning that searches over all cluster
//! sizes of a table with one tuning for each size, of the same number of training jobs in total.
#![expect(clippy::print_stdout, reason = "a command-line program prints its results")]

use std::process::ExitCode;

use benchmark::case::Case;
use benchmark::error::{BenchmarkError, exit};
use benchmark::play::Seeds;
use benchmark::report::Estimate;
use benchmark::tables::counts;
use clap::Parser;
use curves::{Outcome, Setting, TableError, simulate};
use serde_json::json;

/// Compares one tuning over all cluster sizes of a table with one tuning for each size, by their cost
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    seeds: Seeds,
    /// Training jobs of the one tuning, and of the others together
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    jobs_allowed: u32,
}

/// What one seed shows.
struct Pair {
    /// The best value of the tuning over all sizes, minus that of the others; positive = better.
    gain: f64,
    /// Its instance seconds until it reached the best value of the others, as a share of all of theirs; `None` = it did
    /// not reach that value.
    share: Option<f64>,
    /// All of its instance seconds, as a share of all of theirs.
    whole: f64,
}

fn main() -> ExitCode {
    exit(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), BenchmarkError> {
    println!("| table | reached | share of the cost, median | mean | mean of all seeds | gain in value |");
    println!("|---|---|---|---|---|---|");
    for (case, sizes) in counts()? {
        let pairs = options.seeds.play(|seed| pair(&case, &sizes, options.jobs_allowed, seed))?;
        println!("| `{}` | {} |", case.name, line(&pairs));
    }
    Ok(())
}

fn line(pairs: &[Pair]) -> String {
    let mut shares: Vec<f64> = pairs.iter().filter_map(|pair| pair.share).collect();
    shares.sort_unstable_by(f64::total_cmp);
    let reached = shares.len();
    let median = shares.get(reached / 2).copied().unwrap_or(f64::NAN);
    let shown = |values: &mut dyn Iterator<Item = f64>, digits: usize| {
        let estimate = Estimate::of(values.map(Some));
        estimate.map_or_else(
            || "-".to_owned(),
            |Estimate { mean, se }| format!("{mean:.digits$} ({:.digits$})", se.unwrap_or(0.0)),
        )
    };
    let whole = |pair: &Pair| pair.share.unwrap_or(pair.whole.max(1.0));
    format!(
        "{reached} of {} | {median:.2} | {} | {} | {}",
        pairs.len(),
        shown(&mut shares.iter().copied(), 2),
        shown(&mut pairs.iter().map(whole), 2),
        shown(&mut pairs.iter().map(|pair| pair.gain), 5)
    )
}

fn pair(case: &Case, sizes: &[u32], jobs: u32, seed: u64) -> Result<Pair, BenchmarkError> {
    let each = jobs / u32::try_from(sizes.len()).unwrap_or(1).max(1);
    let joint = play(case, sizes, jobs, seed)?;
    let alone: Result<Vec<Outcome>, BenchmarkError> =
        sizes.iter().map(|size| play(case, &[*size], each, seed)).collect();
    let alone = alone?;
    let best_of = |outcome: &Outcome| outcome.best.as_ref().map_or(f64::NAN, |best| best.value);
    let better = |a: f64, b: f64| if case.table.maximize { a.max(b) } else { a.min(b) };
    let target = alone.iter().map(best_of).reduce(better).unwrap_or(f64::NAN);
    let cost = alone.iter().fold(0.0, |sum, outcome| sum + outcome.instance_seconds);
    let first =
        joint.improvements.iter().find(|one| better(one.value, target).to_bits() == one.value.to_bits());
    let sign = if case.table.maximize { 1.0 } else { -1.0 };
    Ok(Pair {
        gain: sign * (best_of(&joint) - target),
        share: first.map(|one| one.instance_seconds / cost),
        whole: joint.instance_seconds / cost,
    })
}

fn play(case: &Case, sizes: &[u32], jobs: u32, seed: u64) -> Result<Outcome, BenchmarkError> {
    let definition = case.definition(&json!({"InstanceCounts": sizes}), jobs)?;
    let unusable = |why: TableError| BenchmarkError::Table { table: case.name.clone(), why };
    simulate(&case.table, &definition, &Setting::default(), seed).map_err(unusable)
}
