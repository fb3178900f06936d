//! `hyperband watch`: follows a tuning in a data directory or at a stack until it ends.
//!
//! Changes nothing. Computes events from the recorded steps, like `run`. Cost and status come from Describe.

mod steps;

use std::time::Duration;

use api_client::ClientError;
use tokio::time::sleep;

use crate::arguments::{Output, Watch};
use crate::failure::{Exit, Failure};
use crate::follow::Since;
use crate::output::print_err;
use crate::page::Page;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::tunings::Tunings;
use steps::{Steps, UpdateError};

/// Consecutive failed updates before `watch` gives up. Each update includes several retries.
const FAILED_UPDATES_MAX: u32 = 10;
/// Maximum time between two updates after failures.
const INTERVAL_MAX: Duration = Duration::from_mins(1);

pub(crate) async fn watch(options: Watch) -> Result<Exit, Failure> {
    let tunings = Tunings::open(&options.place).await?;
    follow(&tunings, &options.name, options.interval, options.output).await
}

/// Follows a tuning until it ends, and prints its result.
pub(crate) async fn follow(
    tunings: &Tunings,
    name: &str,
    interval: Duration,
    output: Output,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        ended = until_end(tunings, name, interval) => ended?,
        () = signals.next() => return Ok(print_interrupted(tunings, name)),
    }
    tokio::select! {
        page = tunings.page(name) => Ok(print_result(&page?, tunings, output)),
        () = signals.next() => {
            let place = &tunings.location_options;
            print_err(&format!("\n{name} has ended:\n  hyperband describe {name}{place}\n"));
            Ok(Exit::Interrupted)
        }
    }
}

/// Shows the progress of a tuning until it ends.
async fn until_end(tunings: &Tunings, name: &str, interval: Duration) -> Result<(), Failure> {
    let described = tunings.describe(name).await?;
    let mut steps = Steps::begin(&tunings.client, &described)?;
    let mut progress = Progress::begin(&steps.follower, Since::Submission, tunings.log_hint());
    let (mut failures, mut warned) = (0_u32, false);
    loop {
        match steps.update().await {
            Ok(update) => {
                if failures > 0 {
                    progress.note("the endpoint responds again");
                }
                failures = 0;
                progress.show(&steps.follower, &update.news);
                if update.ended {
                    return Ok(());
                }
                // A copy never changes.
                tunings.require_writable()?;
                if !warned && !tunings.is_running() {
                    warned = true;
                    let resume = tunings.resume(name);
                    progress.note(&format!(
                        "interrupted: no `hyperband run` is active; to continue it: {resume}"
                    ));
                }
            }
            Err(error) if failures.saturating_add(1) < FAILED_UPDATES_MAX && is_transient(&error) => {
                if failures == 0 {
                    progress.note(&format!(
                        "warning: {error}\nhint: the tuning continues; retrying until the endpoint responds"
                    ));
                }
                failures = failures.saturating_add(1);
            }
            Err(UpdateError::Client(error)) => return Err(tunings.failure(error, name).await),
            Err(error @ UpdateError::Step { .. }) => return Err(Failure::endpoint(error)),
            Err(error @ UpdateError::Replaced(_)) => {
                let again = format!("hyperband watch {name}{}", tunings.location_options);
                return Err(Failure::endpoint(error).hint(format!("watch the new one: {again}")));
            }
        }
        let slower = interval.saturating_mul(2_u32.saturating_pow(failures));
        sleep(slower.min(INTERVAL_MAX.max(interval))).await;
    }
}

fn is_transient(error: &UpdateError) -> bool {
    matches!(error, UpdateError::Client(ClientError::Busy { .. } | ClientError::Unreachable { .. }))
}

fn print_interrupted(tunings: &Tunings, name: &str) -> Exit {
    let place = &tunings.location_options;
    print_err(&if tunings.is_running() {
        format!(
            "\nstopped watching; {name} continues:\n  hyperband watch {name}{place}\n  hyperband stop {name}{place}\n"
        )
    } else {
        format!("\nstopped watching; to continue {name}:\n  {}\n", tunings.resume(name))
    });
    Exit::Interrupted
}

/// Prints the result like `run`, and returns the exit code.
fn print_result(page: &Page, tunings: &Tunings, output: Output) -> Exit {
    page.print_result(output, || {
        let (name, place) = (page.name(), &tunings.location_options);
        format!("{}\n  hyperband describe {name}{place}\n", page.see_log(&tunings.log_hint()))
    })
}
