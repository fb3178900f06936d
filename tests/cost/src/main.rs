//! `cargo run --release -p cost`: plays all tunings of docs/COST.md and prints the figures of its tables; minutes.
//!
//! A number leaves out tunings of more training jobs. With `--check`, exit 1 when docs/COST.md or docs/PERFORMANCE.md does not have a line
//! that is printed, or README.md says something else.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to a person")]

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
    let mut tell = |line: &str| {
        println!("{line}");
        if check && !documents.lines().any(|told| told == line) {
            eprintln!("not in the documents: {line}");
            missing += 1;
        }
    };
    let [mut at_100, mut at_10_000] = [0.0; 2];
    let (mut sums, mut words) = (Vec::new(), Vec::new());
    for (workload, sizes) in [
        (Workload::Hyperband, [10, 100, 1_000, 10_000].as_slice()),
        (Workload::Whole, &[10, 100]),
        (Workload::LineByLine, &[10, 100]),
    ] {
        for jobs in sizes.iter().filter(|jobs| **jobs <= up_to) {
            let counted = Counted::play(workload, *jobs);
            let sum = counted.per_job().sum();
            sums.push(sum * 1_000.0);
            tell(&show::jobs(&counted));
            assert!(sum < GOAL, "{sum}");
            if *jobs == 100 {
                tell(&show::stored(&counted));
            }
            if workload == Workload::Hyperband {
                tell(&show::units(&counted));
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
                    tell(&line);
                }
            }
        }
    }
    words.extend(["README.md", "docs/COST.md"].map(|path| (path, show::range(&sums))));
    for (path, said) in words {
        println!("{path}: {said}");
        if check && !show::says(&read(path), &said) {
            eprintln!("not in {path}: {said}");
            missing += 1;
        }
    }
    assert!(up_to < 10_000 || at_10_000 <= at_100 * GROWTH_MAX, "{at_10_000} {at_100}");
    if missing > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
