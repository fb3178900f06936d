//! A training job costs less than a tenth of a cent, however large its tuning; and the documents say what is counted.
//!
//! Tunings of 10,000 jobs take minutes: their row is held against the promise as the document has it, and against the
//! count by `cargo run --release -p cost -- --check` at night.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use cost::job::{Counted, EPOCHS, GOAL, GROWTH_MAX, HOSTS, Workload};
use cost::{idle, show};
use simulator::site::Function;
use stack_template::{Template, root};

/// Deliveries of a host's log at most, but where each line is one.
const DELIVERIES_MAX: u64 = 20;

fn assert_told(path: &str, line: &str) {
    let document = fs::read_to_string(root().join(path)).unwrap();
    assert!(document.lines().any(|told| told == line), "{path} needs the line\n{line}");
}

fn assert_said(path: &str, words: &str) {
    let document = fs::read_to_string(root().join(path)).unwrap();
    assert!(show::says(&document, words), "{path} needs the words\n{words}");
}

/// A tuning, below the goal and as the document has it.
fn played(workload: Workload, jobs: u32) -> Counted {
    let counted = Counted::play(workload, jobs);
    let bill = counted.per_job();
    let parts = [bill.writes, bill.reads, bill.functions, bill.logs, bill.other, bill.storage];
    assert!(parts.iter().all(|part| *part > 0.0), "{bill:?}");
    assert!(bill.sum() < GOAL, "{bill:?}");
    assert_told("docs/COST.md", &show::jobs(&counted));
    counted
}

#[test]
fn a_job_of_a_tuning_of_ten() {
    assert_told("docs/PERFORMANCE.md", &show::units(&played(Workload::Hyperband, 10)));
}

#[test]
fn a_job_of_a_tuning_of_a_hundred_and_a_stack_at_rest() {
    let counted = played(Workload::Hyperband, 100);
    assert_told("docs/PERFORMANCE.md", &show::units(&counted));
    assert_told("docs/COST.md", &show::stored(&counted));
    for line in show::functions(&counted) {
        assert_told("docs/COST.md", &line);
    }
    let template = Template::read();
    for line in show::idle(&template, &counted) {
        assert_told("docs/COST.md", &line);
    }
    for (path, words) in show::standing(&template, &counted) {
        assert_said(path, &words);
    }
    // At rest the sweeper alone is at work: a query a minute, a listing an hour and what keeps its place.
    let rest = counted.history.tally.idle[&Function::Sweeper];
    assert_eq!((rest.invocations, rest.usage.queries, rest.calls), (120, 120, 2));
    assert!(rest.usage.requests() <= 130, "{rest:?}");
    let charges = idle::charges(&template, &counted);
    let parameters = charges.iter().filter(|charge| charge.off != "no");
    let named: BTreeSet<&str> =
        parameters.map(|charge| charge.off.trim_matches('`').split('=').next().unwrap()).collect();
    assert_eq!(named, BTreeSet::from(["CreateAlarms", "CreateDashboard"]));
    assert!(named.iter().all(|name| template.0["Parameters"][*name]["Default"] == "true"));
}

#[test]
fn a_job_of_a_tuning_of_a_thousand_costs_no_more() {
    let thousand = played(Workload::Hyperband, 1_000);
    assert_told("docs/PERFORMANCE.md", &show::units(&thousand));
    let hundred = Counted::play(Workload::Hyperband, 100);
    let [most, least] = [&thousand, &hundred].map(|counted| counted.per_job().sum());
    assert!(most <= least * GROWTH_MAX, "{most} {least}");
}

#[test]
fn a_job_that_runs_to_its_end() {
    for jobs in [10, 100] {
        let counted = played(Workload::Whole, jobs);
        let tally = &counted.history.tally;
        assert_eq!(tally.lines, u64::from(HOSTS * EPOCHS * jobs));
        assert!(tally.batches <= DELIVERIES_MAX * u64::from(HOSTS * jobs), "{}", tally.batches);
    }
}

#[test]
fn a_job_whose_lines_come_one_by_one() {
    let counted = played(Workload::LineByLine, 10);
    assert_eq!(counted.history.tally.batches, counted.history.tally.lines);
}

/// The sums of the rows of a workload as the document has them, by training jobs.
fn told(document: &str, workload: Workload) -> BTreeMap<u32, f64> {
    let begin = format!("| {} | ", workload.name());
    let rows = document.lines().filter_map(|line| line.strip_prefix(&begin)?.strip_suffix(" |"));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>()).filter(|cells| cells.len() == 8);
    cells.map(|cells| (cells[0].parse().unwrap(), cells[7].parse().unwrap())).collect()
}

/// What is counted at night only is held to the promise as the document has it; all else is counted above.
#[test]
fn the_documents_agree_on_what_jobs_cost() {
    let document = fs::read_to_string(root().join("docs/COST.md")).unwrap();
    let hyperband = told(&document, Workload::Hyperband);
    assert_eq!(hyperband.keys().copied().collect::<Vec<_>>(), [10, 100, 1_000, 10_000]);
    let [hundred, most] = [hyperband[&100], hyperband[&10_000]];
    assert!(most < GOAL * 1_000.0 && most <= hundred * GROWTH_MAX, "{most} {hundred}");
    let workloads = [Workload::Hyperband, Workload::Whole, Workload::LineByLine];
    let sums: Vec<f64> =
        workloads.iter().flat_map(|workload| told(&document, *workload).into_values()).collect();
    assert_eq!(sums.len(), 8);
    for path in ["README.md", "docs/COST.md"] {
        assert_said(path, &show::range(&sums));
    }
}
