//! `hyperband watch`: a tuning followed to its end, wherever it runs.
//!
//! Only looks. What is shown is made from the recorded steps, as `run` makes it; money and status are what the stack
//! itself tells. Leaving it changes nothing for the tuning.

mod steps;

use std::time::Duration;

use client::ClientError;
use serde_json::json;
use tokio::time::sleep;

use crate::arguments::{Output, Watch, Where};
use crate::data::Data;
use crate::failure::{Exit, Failure};
use crate::follow::Follower;
use crate::output::{say, say_json, tell};
use crate::page::{Page, gone};
use crate::progress::Progress;
use crate::remote::Remote;
use crate::run::{Signals, Since};
use steps::{LookError, Stack};

/// Looks in a row that may fail before the watching ends; each is several tries by itself.
const FAILED_LOOKS_MAX: u32 = 10;
/// Longest time between two looks where the last ones failed.
const INTERVAL_MAX: Duration = Duration::from_mins(1);

/// Follows a tuning.
pub(crate) async fn watch(options: Watch) -> Result<Exit, Failure> {
    let (name, words) = (&options.name, options.place.words());
    match options.place.place().map_err(Failure::usage)? {
        Where::Endpoint(endpoint) => {
            let connected = Remote::connect(endpoint).await?;
            remote(&connected, name, &words, options.interval, options.output).await
        }
        Where::Folder(folder) => {
            let data = Data::existing(&folder).await?;
            local(&data, name, &words, options.interval, options.output).await
        }
    }
}

/// Follows a tuning of a stack; `words` lead a further command to the stack.
pub(crate) async fn remote(
    remote: &Remote,
    name: &str,
    words: &str,
    interval: Duration,
    output: Output,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    tokio::select! {
        ended = follow_stack(remote, name, interval) => ended?,
        () = signals.next() => return Ok(left(name, words)),
    }
    tokio::select! {
        page = remote.page(name) => Ok(told(&page?, words, output)),
        () = signals.next() => {
            tell(&format!("\n{name} has ended:\n  hyperband describe {name}{words}\n"));
            Ok(Exit::Interrupted)
        }
    }
}

/// Follows to the end.
async fn follow_stack(remote: &Remote, name: &str, interval: Duration) -> Result<(), Failure> {
    let described = remote.describe(name).await?;
    let mut stack = Stack::begin(remote, &described)?;
    let mut progress = Progress::begin(&stack.follower, Since::Submission);
    let mut failures = 0_u32;
    loop {
        match stack.look().await {
            Ok(look) => {
                if failures > 0 {
                    progress.note("the endpoint answers again");
                }
                failures = 0;
                progress.show(&stack.follower, &look.news);
                if look.ended {
                    return Ok(());
                }
            }
            Err(error) if failures.saturating_add(1) < FAILED_LOOKS_MAX && is_passing(&error) => {
                if failures == 0 {
                    progress.note(&format!(
                        "warning: {error}\nhint: the tuning goes on; looking again until it answers"
                    ));
                }
                failures = failures.saturating_add(1);
            }
            Err(LookError::Client(error)) => return Err(remote.told(error, name).await),
            Err(error @ LookError::Step { .. }) => return Err(Failure::endpoint(error)),
        }
        let slower = interval.saturating_mul(2_u32.saturating_pow(failures));
        sleep(slower.min(INTERVAL_MAX.max(interval))).await;
    }
}

fn is_passing(error: &LookError) -> bool {
    matches!(error, LookError::Client(ClientError::Busy { .. } | ClientError::Unreachable { .. }))
}

/// Follows a tuning of a data directory.
async fn local(
    data: &Data,
    name: &str,
    words: &str,
    interval: Duration,
    output: Output,
) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()?;
    let row = data.find(name).await?;
    let tuning = data.store.tuning(&row.id).await?.ok_or_else(|| gone(&row.id))?;
    let mut follower = Follower::from_start(tuning);
    let mut progress = Progress::begin(&follower, Since::Submission);
    let mut told_of_rest = false;
    loop {
        let news = follower.news(&data.store).await?;
        progress.show(&follower, &news);
        if follower.state.is_ended() {
            break;
        }
        if !told_of_rest && !data.is_running() {
            told_of_rest = true;
            progress.note(
                "no `hyperband run` is at work on it: nothing moves until its command line is run again",
            );
        }
        tokio::select! {
            () = sleep(interval) => {}
            () = signals.next() => {
                progress.end();
                return Ok(left(name, words));
            }
        }
    }
    progress.end();
    let page = Page::read(&data.store, &row.id).await?;
    Ok(told(&page, words, output))
}

fn left(name: &str, words: &str) -> Exit {
    tell(&format!(
        "\nleft {name}, which goes on by itself:\n  hyperband watch {name}{words}\n  hyperband stop {name}{words}\n"
    ));
    Exit::Interrupted
}

/// The result, as `run` prints it.
fn told(page: &Page, words: &str, output: Output) -> Exit {
    match output {
        Output::Json => say_json(&json!({"TuningJob": page.described, "TrainingJobs": page.jobs})),
        Output::Text => {
            let name = page.name();
            say(&format!("{}\n  hyperband describe {name}{words}\n", page.summary()));
        }
    }
    page.exit()
}
