//! The controller costs less than a tenth of a cent per training job in a tuning of any size. The documents contain
//! the counted figures.
//!
//! Tunings of 10,000 jobs take minutes, so the tests check only their row in the document against the goal. The nightly
//! run of `cargo run --release -p cost -- --check` compares the row with the count.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;

use cost::job::{Counted, EPOCHS, GOAL, GROWTH_MAX, HOSTS, Workload};
use cost::{idle, show};
use simulator::site::Function;
use stack_template::{Template, root};

/// Maximum number of deliveries of a host's log, unless each line is a delivery.
const DELIVERIES_MAX: u64 = 20;

fn assert_contains(path: &str, text: &str) {
    let document = fs::read_to_string(root().join(path)).unwrap();
    assert!(show::contains(&document, text), "missing in {path}, with figures like these:\n{text}");
}

/// Plays a tuning and checks its cost against the goal and the document.
fn play_and_check(workload: Workload, jobs: u32) -> Counted {
    let counted = Counted::play(workload, jobs);
    let bill = counted.per_job();
    let parts = [bill.writes, bill.reads, bill.functions, bill.logs, bill.other, bill.storage];
    assert!(parts.iter().all(|part| *part > 0.0), "{bill:?}");
    assert!(bill.sum() < GOAL, "{bill:?}");
    assert_contains("docs/COST.md", &show::jobs(&counted));
    counted
}

#[test]
fn a_job_in_a_tuning_of_10_jobs_costs_what_the_documents_say() {
    assert_contains("docs/PERFORMANCE.md", &show::units(&play_and_check(Workload::Hyperband, 10)));
}

#[test]
fn a_job_in_a_tuning_of_100_jobs_and_an_idle_stack_cost_what_the_documents_say() {
    let counted = play_and_check(Workload::Hyperband, 100);
    assert_contains("docs/PERFORMANCE.md", &show::units(&counted));
    assert_contains("docs/COST.md", &show::stored(&counted));
    for line in show::functions(&counted) {
        assert_contains("docs/COST.md", &line);
    }
    let template = Template::read();
    for line in show::idle(&template, &counted) {
        assert_contains("docs/COST.md", &line);
    }
    for (path, words) in show::standing(&template, &counted) {
        assert_contains(path, &words);
    }
    // In an idle stack only the sweeper works: a query a minute, a listing with a query an hour, and the writes of its own
    // row.
    let idle_work = counted.history.tally.idle[&Function::Sweeper];
    assert_eq!((idle_work.invocations, idle_work.usage.queries, idle_work.calls), (120, 122, 2));
    assert!(idle_work.usage.requests() <= 130, "{idle_work:?}");
    let charges = idle::charges(&template, &counted);
    let defaults: BTreeMap<&str, &str> =
        charges.iter().filter_map(|charge| charge.parameter.split_once('=')).collect();
    assert_eq!(defaults.keys().copied().collect::<Vec<_>>(), ["CreateAlarms"]);
    for (name, default) in defaults {
        assert_eq!(template.0["Parameters"][name]["Default"], default, "{name}");
    }
    let by_default: f64 =
        charges.iter().filter(|charge| charge.is_default()).map(|charge| charge.month).sum();
    assert!(by_default <= 3.0, "a stack at rest costs at most 3 USD a month, with alarms: {by_default}");
}

#[test]
fn a_job_in_a_tuning_of_1000_jobs_costs_no_more_than_in_one_of_100() {
    let thousand = play_and_check(Workload::Hyperband, 1_000);
    assert_contains("docs/PERFORMANCE.md", &show::units(&thousand));
    let hundred = Counted::play(Workload::Hyperband, 100);
    let [most, least] = [&thousand, &hundred].map(|counted| counted.per_job().sum());
    assert!(most <= least * GROWTH_MAX, "{most} USD with 1,000 jobs, {least} USD with 100");
}

#[test]
fn a_job_that_runs_to_its_end_costs_what_the_documents_say() {
    for jobs in [10, 100] {
        let counted = play_and_check(Workload::FullLength, jobs);
        let tally = &counted.history.tally;
        assert_eq!(tally.lines, u64::from(HOSTS * EPOCHS * jobs));
        assert!(tally.batches <= DELIVERIES_MAX * u64::from(HOSTS * jobs), "{}", tally.batches);
    }
}

#[test]
fn a_job_with_one_delivery_per_line_costs_what_the_documents_say() {
    let counted = play_and_check(Workload::LineByLine, 10);
    assert_eq!(counted.history.tally.batches, counted.history.tally.lines);
}

/// Returns the sums in the document's rows of a workload, by number of training jobs.
fn documented_sums(document: &str, workload: Workload) -> BTreeMap<u32, f64> {
    let begin = format!("| {} | ", workload.name());
    let rows = document.lines().filter_map(|line| line.strip_prefix(&begin)?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>()).filter(|cells| cells.len() == 8);
    cells.map(|cells| (cells[0].parse().unwrap(), cells[7].parse().unwrap())).collect()
}

/// The row for 10,000 jobs is counted only at night; here its figures in the document are checked against the goal.
#[test]
fn the_documents_agree_on_the_cost_of_training_jobs() {
    let document = fs::read_to_string(root().join("docs/COST.md")).unwrap();
    let hyperband = documented_sums(&document, Workload::Hyperband);
    assert_eq!(hyperband.keys().copied().collect::<Vec<_>>(), [10, 100, 1_000, 10_000]);
    let [hundred, most] = [hyperband[&100], hyperband[&10_000]];
    assert!(most < GOAL * 1_000.0 && most <= hundred * GROWTH_MAX, "{most} {hundred}");
    let workloads = [Workload::Hyperband, Workload::FullLength, Workload::LineByLine];
    let sums: Vec<f64> =
        workloads.iter().flat_map(|workload| documented_sums(&document, *workload).into_values()).collect();
    assert_eq!(sums.len(), 8);
    for path in ["README.md", "docs/COST.md"] {
        assert_contains(path, &show::range(&sums));
    }
}
