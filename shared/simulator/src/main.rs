//! `cargo run --release -p simulator -- --seeds A..B [--jobs N]` plays the histories A to B-1; see `--help`.
//!
//! Prints each failing history as a command to paste, and a smaller version of the first history of each kind of
//! failure. The last line is `N histories, E events, V violations`; the exit code is 1 when V > 0.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program prints its results")]

mod arguments;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arguments::{Arguments, command};
use simulator::Run;
use simulator::exhaustive::{Rungs, deepen};
use simulator::report::{History, Report};
use simulator::shrink::{history, kind, shrink};

/// Number of histories between two progress lines.
const PROGRESS_EVERY: u64 = 20;

#[cfg(feature = "planted")]
mod planted {
    //! Turns on the bug that `--planted` names. Each thread has its own switch.

    use simulator::planted::{Mutation, plant};

    /// Turns on the bug for this thread.
    pub(crate) fn set(name: &str) -> Result<(), String> {
        let found = Mutation::ALL.iter().find(|mutation| mutation.name() == name);
        let unknown = || format!("unknown planted bug {name}: --planted list prints the names");
        plant(Some(*found.ok_or_else(unknown)?));
        Ok(())
    }

    /// Returns a line for each bug that can be planted.
    #[expect(clippy::unnecessary_wraps, reason = "without the feature there is no list")]
    pub(crate) fn list() -> Result<String, String> {
        let line = |mutation: &Mutation| format!("{:<24}{}\n", mutation.name(), mutation.what());
        Ok(Mutation::ALL.iter().map(line).collect())
    }
}

#[cfg(not(feature = "planted"))]
mod planted {
    //! Without the feature `planted` no bug can be turned on.

    /// Returns the error that the feature is missing.
    pub(crate) fn set(_: &str) -> Result<(), String> {
        Err("--planted needs the feature: run cargo with --features planted".to_owned())
    }

    /// Like [`set`], returns the error.
    pub(crate) fn list() -> Result<String, String> {
        set("").map(|()| String::new())
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::read(std::env::args()).unwrap_or_else(|error| error.exit());
    let planted = match arguments.planted.as_deref() {
        Some(_) if arguments.lists_planted() => planted::list().map(Some),
        Some(name) => planted::set(name).map(|()| None),
        None => Ok(None),
    };
    match planted {
        Ok(None) => {}
        Ok(Some(list)) => {
            print!("{list}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("simulator: {error}");
            return ExitCode::from(2);
        }
    }
    if let Some(most) = arguments.exhaustive {
        return visit_all(most, arguments.seconds);
    }
    let (report, failures) = run_all(&arguments);
    let mut kinds = BTreeSet::new();
    for (run, failed) in failures.values() {
        show_failure(run, failed, &arguments);
        let first = failed.violations.first().map(|violation| kind(violation)).unwrap_or_default();
        if arguments.shrink_runs() > 0 && kinds.insert(first) {
            show_shrunk(run, failed, &arguments);
        }
    }
    if arguments.report {
        print!("{}", report.text());
    }
    println!("{} histories, {} events, {} violations", report.histories, report.events, report.violations);
    if report.violations > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Visits the worlds of the small tunings: with a job for each rung, and with jobs that are stopped at rungs.
fn visit_all(most: u32, seconds: Option<u32>) -> ExitCode {
    let time = seconds.map_or(Duration::MAX, |seconds| Duration::from_secs(seconds.into()) / 2);
    let mut is_kept = true;
    for rungs in [Rungs::Promote, Rungs::Stop] {
        for explored in deepen(rungs, most, time) {
            is_kept &= explored.violation.is_none();
            println!("{rungs:?}, {explored}");
        }
    }
    if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays all histories and returns the report and the failing histories, in the order of their index.
fn run_all(arguments: &Arguments) -> (Report, BTreeMap<u64, (Run, History)>) {
    let next = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    let failures = Mutex::new(BTreeMap::new());
    let watched = std::io::stderr().is_terminal() && !arguments.trace;
    let runs = arguments.runs();
    let count = runs.len();
    let limit = arguments.seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let started_at = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                if let Some(name) = &arguments.planted {
                    // The main thread has already checked the name.
                    let _ = planted::set(name);
                }
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || limit.is_some_and(|limit| started_at.elapsed() >= limit) {
                        break;
                    }
                    let run = Run { trace: arguments.trace, ..runs.get(index) };
                    let history = history(&run);
                    if let Some(trace) = &history.trace {
                        print!("{trace}");
                    }
                    report.lock().expect("no thread panics while it holds the lock").add(&history);
                    if !history.violations.is_empty() {
                        failures
                            .lock()
                            .expect("no thread panics while it holds the lock")
                            .insert(index, (run, history));
                    }
                    if watched && index.is_multiple_of(PROGRESS_EVERY) {
                        eprint!("\r{index} of {count} histories");
                        // Losing a progress line is harmless.
                        let _ = std::io::stderr().flush();
                    }
                }
            });
        }
    });
    if watched {
        eprint!("\r{:40}\r", "");
    }
    let report = report.into_inner().expect("no thread panics while it holds the lock");
    (report, failures.into_inner().expect("no thread panics while it holds the lock"))
}

fn show_failure(run: &Run, failed: &History, arguments: &Arguments) {
    println!("{}", command(run, arguments.planted.as_deref()));
    println!("  seed {}, ended: {:?}", run.seed, failed.ended);
    for violation in &failed.violations {
        println!("  {violation}");
    }
}

fn show_shrunk(run: &Run, failed: &History, arguments: &Arguments) {
    let Some(shrunk) = shrink(run, failed, arguments.shrink_runs()) else { return };
    let (from, to) = (shrunk.from, shrunk.to);
    println!(
        "  shrunk in {} runs: {} -> {} kinds of faults, {} -> {} tunings, {} -> {} events",
        shrunk.runs, from.faults, to.faults, from.cases, to.cases, from.events, to.events
    );
    println!("  {}", shrunk.violation);
    println!("{}", command(&shrunk.run, arguments.planted.as_deref()));
}
