//! What a tuning asks of the table, per training job, as the tuning grows: requests and DynamoDB capacity units.
//!
//! `cargo run --release -p simulator --example capacity` plays tunings without faults in virtual time, through the use
//! cases as they are; the sweeper's minutes are part of it. Each function here keeps what it read, as a warm one does. Units
//! are counted as DynamoDB would: a write per KB and twice in a transaction, a strong read per 4 KB.
#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use simulator::Run;
use simulator::case::{Case, Choices};
use simulator::plan::Plan;

fn main() {
    println!("  jobs  requests/job  write units/job  read units/job  steps/job");
    for (jobs, parallel) in [(10, 4), (100, 4), (1_000, 10), (10_000, 100)] {
        let choices = Choices {
            hyperband: Some((1, 27, 3)),
            max_jobs: jobs,
            max_parallel: parallel,
            ..Choices::plain()
        };
        let cases = vec![Case::of("sim0", &choices)];
        let history = Run { seed: 1, plan: Plan::calm(), cases, trace: false }.history();
        let usage = history.usage;
        let requests = usage.reads + usage.writes + usage.transactions + usage.queries;
        let per_job = |number: u64| number / u64::from(jobs);
        println!(
            "{jobs:6}  {:12}  {:15}  {:14}  {:9}   {} violations, ended {:?}",
            per_job(requests),
            per_job(usage.write_units),
            per_job(usage.read_units),
            per_job(history.steps),
            history.violations.len(),
            history.ended,
        );
    }
}
