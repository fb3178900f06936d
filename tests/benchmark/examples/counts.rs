//! `cargo run --release -p benchmark --bin counts -- [SEEDS] [JOBS]` compares one tuning that searches over all cluster
//! sizes of a table with one tuning for each size, of the same number of training jobs in total.
#![expect(clippy::print_stdout, reason = "a command-line program prints its results")]

use benchmark::case::Case;
use benchmark::error::BenchmarkError;
use benchmark::tables::counts;
use curves::{Outcome, Setting, TableError, simulate};
use serde_json::json;

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

fn main() -> Result<(), BenchmarkError> {
    let argument = |n, default| std::env::args().nth(n).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (seeds, jobs): (u32, u32) = (argument(1, 100), argument(2, 90));
    println!("| table | reached | share of the cost, median | mean | with the others at their cost | gain |");
    println!("|---|---|---|---|---|---|");
    for (case, sizes) in counts()? {
        let pairs: Result<Vec<Pair>, BenchmarkError> =
            (0..u64::from(seeds)).map(|seed| pair(&case, &sizes, jobs, seed)).collect();
        println!("| `{}` | {} |", case.name, line(&pairs?));
    }
    Ok(())
}

fn line(pairs: &[Pair]) -> String {
    let mut shares: Vec<f64> = pairs.iter().filter_map(|pair| pair.share).collect();
    shares.sort_unstable_by(f64::total_cmp);
    let reached = shares.len();
    let median = shares.get(reached / 2).copied().unwrap_or(f64::NAN);
    let (mean, error) = mean(&shares);
    let all: Vec<f64> = pairs.iter().map(|pair| pair.share.unwrap_or(pair.whole.max(1.0))).collect();
    let (with_all, with_all_error) = self::mean(&all);
    let gains: Vec<f64> = pairs.iter().map(|pair| pair.gain).collect();
    let (gain, gain_error) = self::mean(&gains);
    format!(
        "{reached} of {} | {median:.2} | {mean:.2} ({error:.2}) | {with_all:.2} ({with_all_error:.2}) | \
         {gain:+.5} ({gain_error:.5})",
        pairs.len()
    )
}

/// Returns the mean and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = u32::try_from(values.len()).map_or(f64::NAN, f64::from);
    let mean = values.iter().fold(0.0, |sum, value| sum + value) / count;
    let squares = values.iter().fold(0.0, |sum, value| sum + (value - mean) * (value - mean));
    (mean, libm::sqrt(squares / (count - 1.0) / count))
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
