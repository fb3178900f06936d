//! `cargo run --release -p cost` plays all tunings of docs/COST.md and prints the rows of its tables. This takes
//! minutes.
//!
//! A number as an argument skips tunings with more training jobs. With `--check`, the exit code is 1 if docs/COST.md or
//! docs/PERFORMANCE.md lacks a printed row, or if README.md lacks a printed sentence.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program prints its results")]

use std::process::ExitCode;

use cost::job::{Counted, GOAL, GROWTH_MAX, Workload};
use cost::show;
use stack_template::{Template, root};

fn main() -> ExitCode {
    let up_to: u32 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(u32::MAX);
    let check = std::env::args().any(|argument| argument == "--check");
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let documents = [read("docs/COST.md"), read("docs/PERFORMANCE.md")].concat();
    let mut missing = 0;
    let mut report = |line: &str| {
        println!("{line}");
        if check && !show::contains(&documents, line) {
            eprintln!("missing in docs/COST.md and docs/PERFORMANCE.md: {line}");
            missing += 1;
        }
    };
    let [mut at_100, mut at_10_000] = [0.0; 2];
    let (mut sums, mut words) = (Vec::new(), Vec::new());
    for (workload, sizes) in [
        (Workload::Hyperband, [10, 100, 1_000, 10_000].as_slice()),
        (Workload::FullLength, &[10, 100]),
        (Workload::LineByLine, &[10, 100]),
    ] {
        for jobs in sizes.iter().filter(|jobs| **jobs <= up_to) {
            let counted = Counted::play(workload, *jobs);
            let sum = counted.per_job().sum();
            sums.push(sum * 1_000.0);
            report(&show::jobs(&counted));
            assert!(sum < GOAL, "a training job costs {sum} USD, the goal is below {GOAL} USD");
            if *jobs == 100 {
                report(&show::stored(&counted));
            }
            if workload == Workload::Hyperband {
                report(&show::units(&counted));
                match jobs {
                    100 => at_100 = sum,
                    10_000 => at_10_000 = sum,
                    _ => {}
                }
            }
            if (workload, *jobs) == (Workload::Hyperband, 100) {
                let template = Template::read();
                let mut rows = show::functions(&counted);
                rows.extend(show::idle(&template, &counted));
                words.extend(show::standing(&template, &counted));
                for line in rows {
                    report(&line);
                }
            }
        }
    }
    words.extend(["README.md", "docs/COST.md"].map(|path| (path, show::range(&sums))));
    for (path, sentence) in words {
        println!("{path}: {sentence}");
        if check && !show::contains(&read(path), &sentence) {
            eprintln!("missing in {path}: {sentence}");
            missing += 1;
        }
    }
    assert!(
        up_to < 10_000 || at_10_000 <= at_100 * GROWTH_MAX,
        "a job costs {at_100} USD in a tuning of 100 jobs, but {at_10_000} USD in a tuning of 10,000"
    );
    if missing > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
