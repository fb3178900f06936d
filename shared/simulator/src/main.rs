//! `cargo run --release -p simulator -- --seeds A..B [--jobs N] [--trace] [--report]`: runs the histories A to B-1.
//!
//! The last line is `N histories, E events, V violations`; exit 1 when V > 0, after each failing seed as a command to
//! paste.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to a person")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use simulator::Run;
use simulator::report::{History, Report};

const USAGE: &str = "usage: simulator --seeds A..B [--jobs N] [--trace] [--report]";

struct Arguments {
    seeds: Range<u64>,
    jobs: u64,
    trace: bool,
    report: bool,
}

fn arguments() -> Option<Arguments> {
    let mut parsed = Arguments { seeds: 0..0, jobs: 1, trace: false, report: false };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--seeds" => {
                let text = given.next()?;
                let (from, to) = text.split_once("..")?;
                parsed.seeds = from.parse().ok()?..to.parse().ok()?;
            }
            "--jobs" => parsed.jobs = given.next()?.parse().ok()?,
            "--trace" => parsed.trace = true,
            "--report" => parsed.report = true,
            _ => return None,
        }
    }
    (!parsed.seeds.is_empty() && parsed.jobs > 0).then_some(parsed)
}

fn history(seed: u64, trace: bool) -> History {
    let run = Run { trace, ..Run::drawn(seed) };
    catch_unwind(AssertUnwindSafe(|| run.history())).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        History::panicked(seed, &message.unwrap_or_default())
    })
}

fn show_failure(history: &History) {
    let run = Run::drawn(history.seed);
    println!("cargo run --release -p simulator -- --seeds {0}..{1} --trace", history.seed, history.seed + 1);
    println!("  {:?}", run.plan);
    for case in &run.cases {
        println!("  submitted at {} ms, stopped at {:?}: {}", case.submit_at, case.stop_at, case.request);
    }
    println!("  ended: {:?}", history.ended);
    for violation in &history.violations {
        println!("  {violation}");
    }
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let next = AtomicU64::new(arguments.seeds.start);
    let report = Mutex::new(Report::default());
    // Failures are shown in order of seeds, however many threads there are.
    let failures = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= arguments.seeds.end {
                        break;
                    }
                    let history = history(seed, arguments.trace);
                    if let Some(trace) = &history.trace {
                        print!("{trace}");
                    }
                    report.lock().expect("no thread panics with it").add(&history);
                    if !history.violations.is_empty() {
                        failures.lock().expect("no thread panics with it").insert(seed, history);
                    }
                }
            });
        }
    });
    let report = report.into_inner().expect("no thread panics with it");
    for history in failures.into_inner().expect("no thread panics with it").values() {
        show_failure(history);
    }
    if arguments.report {
        print!("{}", report.text());
    }
    println!("{} histories, {} events, {} violations", report.histories, report.events, report.violations);
    if report.violations > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
