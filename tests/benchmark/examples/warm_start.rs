//! `cargo run --release -p benchmark --example warm_start -- [OPTIONS]` plays tunings with and without a parent in virtual
//! time, and prints their regrets as a table in Markdown.
#![expect(clippy::print_stdout, reason = "a command-line program prints its results")]

use std::path::PathBuf;
use std::process::ExitCode;

use benchmark::case::Case;
use benchmark::error::{BenchmarkError, exit};
use benchmark::play::Seeds;
use benchmark::report::Estimate;
use benchmark::tables::cases_with;
use benchmark::warm::{Pair, Played, Player, Relation, TIMES};
use clap::{Parser, ValueEnum};
use search::WarmStartType;

const EXAMPLES: &str = "\
Examples:
  cargo run --release -p benchmark --example warm_start -- --pair digits-mlp:digits-mlp --type identical
  cargo run --release -p benchmark --example warm_start -- --pair digits-mlp:logreg-noisy --seeds 0..20
  cargo run --release -p benchmark --example warm_start -- --pair cnn-lite+gbm-class:xgb-friedman --relation ordered";

/// Plays tunings with and without parents in virtual time on tables of learning curves, and prints their regrets
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Options {
    /// The tables of one to five parents, and that of the child; repeat it for more
    #[arg(long = "pair", value_name = "PARENT[+PARENT...]:CHILD", required = true)]
    pairs: Vec<String>,
    /// How the parent's configurations and values become those of the child's table
    #[arg(long, value_enum, default_value = "named")]
    relation: Relation,
    /// The type of the warm start
    #[arg(long = "type", value_enum, default_value = "transfer")]
    kind: Kind,
    /// A further folder with tables
    #[arg(long, value_name = "FOLDER")]
    tables: Option<PathBuf>,
    #[command(flatten)]
    seeds: Seeds,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Identical,
    Transfer,
}

fn main() -> ExitCode {
    exit(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), BenchmarkError> {
    let split = |pair: &String| -> (Vec<String>, String) {
        let (parents, child) = pair.split_once(':').unwrap_or((pair, pair));
        (parents.split('+').map(str::to_owned).collect(), child.to_owned())
    };
    let pairs: Vec<(Vec<String>, String)> = options.pairs.iter().map(split).collect();
    let names: Vec<String> =
        pairs.iter().flat_map(|(parents, child)| parents.iter().chain([child])).cloned().collect();
    let cases = cases_with(&names, options.tables.as_deref())?;
    let all = Player::default();
    let kind = match options.kind {
        Kind::Identical => WarmStartType::IdenticalDataAndAlgorithm,
        Kind::Transfer => WarmStartType::TransferLearning,
    };
    println!("| parent | child | cold at {TIMES:?} s | warm | warm / cold | time to the parent's best |");
    println!("|---|---|---|---|---|---|");
    let mut logs: Vec<Vec<(f64, f64)>> = Vec::new();
    for (parents, child) in &pairs {
        let of = |name: &String| cases.iter().find(|case| case.name == *name);
        let known: Vec<&Case> = parents.iter().filter_map(of).collect();
        let Some(child) = of(child) else { continue };
        let pair = Pair { parents: known, child, relation: options.relation, kind };
        let played = all.play(&pair, &options.seeds)?;
        println!("| {} | {} |{}", parents.join(", "), child.name, row(&played));
        logs.push((0..TIMES.len()).filter_map(|time| played.log_ratio(time)).collect());
    }
    let of_time =
        |time: usize| mean(&logs.iter().filter_map(|ratios| ratios.get(time).copied()).collect::<Vec<_>>());
    let each: Vec<String> = (0..TIMES.len()).map(of_time).collect();
    println!("\nGeometric means of warm / cold: {}; over all: {}", each.join(", "), mean(&logs.concat()));
    Ok(())
}

/// Returns the cells of a pair.
fn row(played: &Played) -> String {
    let shown = |estimate: Option<Estimate>| {
        estimate
            .map_or_else(String::new, |Estimate { mean, se }| format!("{mean:.3} ({:.3})", se.unwrap_or(0.0)))
    };
    let regrets = |of: &dyn Fn(usize) -> Option<Estimate>| {
        (0..TIMES.len()).map(|time| shown(of(time))).collect::<Vec<_>>().join(", ")
    };
    let ratios = (0..TIMES.len()).filter_map(|time| played.log_ratio(time));
    let ratios: Vec<String> = ratios.map(|ratio| mean(&[ratio])).collect();
    let mut shares = played.shares.clone();
    shares.sort_unstable_by(f64::total_cmp);
    let quartile =
        |quarter: usize| shares.get((shares.len() * quarter / 4).min(shares.len().saturating_sub(1)));
    let shares = match (quartile(1), quartile(2), quartile(3)) {
        (Some(low), Some(median), Some(high)) => format!("{median:.3} ({low:.3} to {high:.3})"),
        _ => "-".to_owned(),
    };
    let (cold, warm) = (regrets(&|time| played.cold.at(time)), regrets(&|time| played.warm.at(time)));
    format!(" {cold} | {warm} | {} | {shares} |", ratios.join(", "))
}

/// Returns the geometric mean of ratios with its standard error.
fn mean(logs: &[(f64, f64)]) -> String {
    let count = f64::from(u32::try_from(logs.len()).unwrap_or(u32::MAX)).max(1.0);
    let (log, square) = logs.iter().fold((0.0, 0.0), |sum, (log, se)| (sum.0 + log, sum.1 + se * se));
    let ratio = libm::exp(log / count);
    format!("{ratio:.2} ({:.2})", ratio * libm::sqrt(square) / count)
}
