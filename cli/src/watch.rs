//! `hyperband watch`: follows a tuning in a data directory or at a stack until it ends.
//!
//! Changes nothing. Computes events from the recorded steps, like `run`. For a stack, cost and status come from
//! Describe.

mod steps;

use std::time::Duration;

use api_client::ClientError;
use serde_json::json;
use tokio::time::sleep;

use crate::arguments::{Output, Watch, Where};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::follow::{Follower, Since};
use crate::log_hint::LogHint;
use crate::output::{print_err, print_json, print_out};
use crate::page::{Page, gone};
use crate::progress::Progress;
use crate::remote::Remote;
use crate::signals::Signals;
use steps::{LookError, Stack};

/// Consecutive failed updates before `watch` gives up. Each update includes several retries.
const FAILED_LOOKS_MAX: u32 = 10;
/// Maximum time between two updates after failures.
const INTERVAL_MAX: Duration = Duration::from_mins(1);

pub(crate) async fn watch(options: Watch) -> Result<Exit, Failure> {
    let (name, location_options) = (&options.name, options.place.location_options());
    match options.place.place().map_err(Failure::usage)? {
        Where::Endpoint(endpoint) => {
            let connected = Remote::connect(endpoint).await?;
            remote(&connected, name, &location_options, options.interval, options.output).await
        }
        Where::Folder(folder) => {
            let data = Data::existing(&folder).await?;
            local(&data, name, &location_options, options.interval, options.output).await
        }
    }
}

/// Follows a tuning of a stack. `location_options` are the options that a suggested command needs to reach the stack.
pub(crate) async fn remote(
    remote: &Remote,
    name: &str,
    location_options: &str,
    interval: Duration,
    output: Output,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        ended = follow_stack(remote, name, location_options, interval) => ended?,
        () = signals.next() => return Ok(print_interrupted(name, location_options)),
    }
    let logs = LogHint::at(location_options, None);
    tokio::select! {
        page = remote.page(name) => Ok(print_result(&page?, location_options, &logs, output)),
        () = signals.next() => {
            print_err(&format!("\n{name} has ended:\n  hyperband describe {name}{location_options}\n"));
            Ok(Exit::Interrupted)
        }
    }
}

/// Follows a tuning of a stack until it ends.
async fn follow_stack(
    remote: &Remote,
    name: &str,
    location_options: &str,
    interval: Duration,
) -> Result<(), Failure> {
    let described = remote.describe(name).await?;
    let mut stack = Stack::begin(remote, &described)?;
    let logs = LogHint::at(location_options, None);
    let mut progress = Progress::begin(&stack.follower, Since::Submission, logs);
    let mut failures = 0_u32;
    loop {
        match stack.look().await {
            Ok(look) => {
                if failures > 0 {
                    progress.note("the endpoint responds again");
                }
                failures = 0;
                progress.show(&stack.follower, &look.news);
                if look.ended {
                    return Ok(());
                }
            }
            Err(error) if failures.saturating_add(1) < FAILED_LOOKS_MAX && is_transient(&error) => {
                if failures == 0 {
                    progress.note(&format!(
                        "warning: {error}\nhint: the tuning continues; retrying until the endpoint responds"
                    ));
                }
                failures = failures.saturating_add(1);
            }
            Err(LookError::Client(error)) => return Err(remote.tuning_failure(error, name).await),
            Err(error @ LookError::Step { .. }) => return Err(Failure::endpoint(error)),
            Err(error @ LookError::Replaced(_)) => {
                let again = format!("hyperband watch {name}{location_options}");
                return Err(Failure::endpoint(error).hint(format!("watch the new one: {again}")));
            }
        }
        let slower = interval.saturating_mul(2_u32.saturating_pow(failures));
        sleep(slower.min(INTERVAL_MAX.max(interval))).await;
    }
}

fn is_transient(error: &LookError) -> bool {
    matches!(error, LookError::Client(ClientError::Busy { .. } | ClientError::Unreachable { .. }))
}

/// Follows a tuning of a data directory.
async fn local(
    data: &Data,
    name: &str,
    location_options: &str,
    interval: Duration,
    output: Output,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let row = data.find(name).await?;
    let tuning = data.store.tuning(&row.id).await?.ok_or_else(|| gone(&row.id))?;
    let mut follower = Follower::from_start(tuning);
    let logs = || LogHint::at(location_options, Some(data.training_jobs()));
    let mut progress = Progress::begin(&follower, Since::Submission, logs());
    let mut warned = false;
    loop {
        let news = follower.news(&data.store).await?;
        progress.show(&follower, &news);
        if follower.state.is_ended() {
            break;
        }
        // A copy never changes.
        data.require_writable()?;
        if !warned && !data.is_running() {
            warned = true;
            progress.note(&format!(
                "interrupted: no `hyperband run` is active; to continue it: hyperband resume {name}{location_options}"
            ));
        }
        tokio::select! {
            () = sleep(interval) => {}
            () = signals.next() => {
                progress.end();
                if data.is_running() {
                    return Ok(print_interrupted(name, location_options));
                }
                print_err(&format!("\nstopped watching; to continue {name}:\n  hyperband resume {name}{location_options}\n"));
                return Ok(Exit::Interrupted);
            }
        }
    }
    progress.end();
    let page = Page::of_folder(&data.store, data.folder(), &row.id).await?;
    Ok(print_result(&page, location_options, &logs(), output))
}

fn print_interrupted(name: &str, location_options: &str) -> Exit {
    print_err(&format!(
        "\nstopped watching; {name} continues:\n  hyperband watch {name}{location_options}\n  hyperband stop \
         {name}{location_options}\n"
    ));
    Exit::Interrupted
}

/// Prints the result like `run`, and returns the exit code.
fn print_result(page: &Page, location_options: &str, logs: &LogHint, output: Output) -> Exit {
    match output {
        Output::Json => print_json(&json!({"TuningJob": page.json(), "TrainingJobs": page.jobs})),
        Output::Text => {
            let name = page.name();
            let (summary, log) = (page.summary(), page.see_log(logs));
            print_out(&format!("{summary}{log}\n  hyperband describe {name}{location_options}\n"));
        }
    }
    page.exit()
}
