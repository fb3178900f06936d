//! `cargo run --release -p simulator -- --seeds A..B [--jobs N]`: runs the histories A to B-1; `--help` says what else.
//!
//! The last line is `N histories, E events, V violations`; exit 1 when V > 0, after each failing history as a command to
//! paste, and the first of each kind of failure made smaller.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to a person")]

mod arguments;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arguments::{Arguments, HELP, command};
use simulator::Run;
use simulator::report::{History, Report};
use simulator::shrink::{history, kind, shrink};

/// Histories between two progress lines.
const PROGRESS_EVERY: u64 = 20;

#[cfg(feature = "planted")]
mod planted {
    //! The bug that `--planted` names, to be turned on in every thread.

    use tuning::planted::{Mutation, plant};

    /// Turns it on; what is wrong with the name.
    pub(crate) fn set(name: &str) -> Result<(), String> {
        if name == "list" {
            let lines =
                Mutation::ALL.iter().map(|mutation| format!("{:<24}{}\n", mutation.name(), mutation.what()));
            return Err(format!("the bugs that can be planted:\n{}", lines.collect::<String>()));
        }
        let found = Mutation::ALL.iter().find(|mutation| mutation.name() == name);
        plant(Some(*found.ok_or_else(|| format!("no bug is named {name}; --planted list names them"))?));
        Ok(())
    }
}

#[cfg(not(feature = "planted"))]
mod planted {
    //! No bug can be planted.

    /// Always wrong.
    pub(crate) fn set(name: &str) -> Result<(), String> {
        Err(format!("--planted {name} needs cargo's --features planted"))
    }
}

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("simulator: {wrong}; see --help");
            return ExitCode::from(2);
        }
    };
    if let Some(Err(wrong)) = arguments.planted.as_deref().map(planted::set) {
        eprintln!("simulator: {wrong}");
        return ExitCode::from(2);
    }
    let (report, failures) = run_all(&arguments);
    let mut kinds = BTreeSet::new();
    for (run, failed) in failures.values() {
        show_failure(run, failed, &arguments);
        let first = failed.violations.first().map(|violation| kind(violation)).unwrap_or_default();
        if arguments.shrink_runs > 0 && kinds.insert(first) {
            show_smaller(run, failed, &arguments);
        }
    }
    if arguments.report {
        print!("{}", report.text());
    }
    println!("{} histories, {} events, {} violations", report.histories, report.events, report.violations);
    if report.violations > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Makes all histories; the failing ones are kept in order, however many threads there are.
fn run_all(arguments: &Arguments) -> (Report, BTreeMap<u64, (Run, History)>) {
    let next = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    let failures = Mutex::new(BTreeMap::new());
    let watched = std::io::stderr().is_terminal() && !arguments.trace;
    let count = arguments.runs.len();
    let (begun, limit) = (Instant::now(), arguments.seconds.map(Duration::from_secs));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                if let Some(name) = &arguments.planted {
                    // It was right in the main thread.
                    let _ = planted::set(name);
                }
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || limit.is_some_and(|limit| begun.elapsed() >= limit) {
                        break;
                    }
                    let run = Run { trace: arguments.trace, ..arguments.runs.get(index) };
                    let history = history(&run);
                    if let Some(trace) = &history.trace {
                        print!("{trace}");
                    }
                    report.lock().expect("no thread panics with it").add(&history);
                    if !history.violations.is_empty() {
                        failures.lock().expect("no thread panics with it").insert(index, (run, history));
                    }
                    if watched && index.is_multiple_of(PROGRESS_EVERY) {
                        eprint!("\r{index} of {count} histories");
                        // Only what a person sees.
                        let _ = std::io::stderr().flush();
                    }
                }
            });
        }
    });
    if watched {
        eprint!("\r{:40}\r", "");
    }
    let report = report.into_inner().expect("no thread panics with it");
    (report, failures.into_inner().expect("no thread panics with it"))
}

fn show_failure(run: &Run, failed: &History, arguments: &Arguments) {
    println!("{}", command(run, arguments.planted.as_deref()));
    println!("  seed {}, ended: {:?}", run.seed, failed.ended);
    for violation in &failed.violations {
        println!("  {violation}");
    }
}

fn show_smaller(run: &Run, failed: &History, arguments: &Arguments) {
    let Some(shrunk) = shrink(run, failed, arguments.shrink_runs) else { return };
    let (from, to) = (shrunk.from, shrunk.to);
    println!(
        "  made smaller in {} runs: {} -> {} kinds of faults, {} -> {} tunings, {} -> {} events",
        shrunk.runs, from.faults, to.faults, from.cases, to.cases, from.events, to.events
    );
    println!("  {}", shrunk.violation);
    println!("{}", command(&shrunk.run, arguments.planted.as_deref()));
}
