//! A tuning being followed from its first news to its end.

use std::time::Duration;

use local::host::{Host, HostConfig};
use service::ports::table::Table;
use tokio::time::{Instant, sleep, timeout};
use wire::stored::{self, ActionRow, ActionStatus};

use super::command;
use super::signals::Signals;
use crate::arguments::Run;
use crate::failure::Failure;
use crate::follow::Follower;
use crate::progress::Progress;

/// Least time between two looks at the table, so that a burst of metrics is one look and one drawing.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time between two drawings when nothing happens.
const DRAW_EVERY: Duration = Duration::from_secs(1);
/// How long the notice of the end may take.
const NOTICE_WAIT: Duration = Duration::from_secs(2);
/// Time between two sweeps. A sweep reads a few rows; it is the clock of deadlines and heals what was lost.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// How a session went.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The tuning (its id) has ended.
    Ended(String),
    /// A signal came first.
    Interrupted,
}

/// From when on a tuning's events are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// It was submitted by this process.
    Submission,
    /// What came before was told by an earlier one.
    Now,
}

/// The host that `options` ask for.
pub(super) fn config(options: &Run) -> Result<HostConfig, Failure> {
    Ok(HostConfig {
        data_dir: options.place.data_dir.clone(),
        command: options.command.clone(),
        shim: command::shim()?,
        grace: options.grace_seconds,
        spot_interruptions_per_hour: options.spot_interruptions,
        seed: 0,
        sweep_every: SWEEP_EVERY,
    })
}

/// Follows tuning `id` to its end and tells what happens.
pub(super) async fn follow(
    host: &Host,
    id: &str,
    since: Since,
    signals: &mut Signals,
) -> Result<Outcome, Failure> {
    // Before the first look, so that no change is missed.
    let mut changes = host.changes();
    let gone = || Failure::usage(format!("the tuning {id} was deleted"));
    let loaded = host.store().load(id).await?.ok_or_else(gone)?;
    let mut follower = match since {
        Since::Submission => Follower::from_start(loaded.tuning),
        Since::Now => Follower::from_now(loaded),
    };
    let mut progress = Progress::begin(&follower, since);
    let mut trouble = host.trouble();
    loop {
        changes.mark_unchanged();
        if trouble.has_changed().unwrap_or(false) {
            progress.warn(trouble.borrow_and_update().as_deref());
        }
        let news = follower.news(&**host.store()).await?;
        progress.show(&follower, &news);
        if follower.state.is_ended() {
            break;
        }
        let next = async {
            sleep(LOOK_EVERY).await;
            timeout(DRAW_EVERY, changes.changed()).await
        };
        tokio::select! {
            news = next => {
                if let Ok(Err(_)) = news {
                    return Err(Failure::endpoint(anyhow::anyhow!("the controller's pumps have stopped"))
                        .hint("the same command line goes on where it was"));
                }
            }
            () = signals.next() => {
                progress.end();
                return Ok(Outcome::Interrupted);
            }
        }
    }
    progress.end();
    notice(host, id).await?;
    Ok(Outcome::Ended(id.to_owned()))
}

/// Waits until the notice of the end is out. If it does not get out, the next run on this folder sends it.
async fn notice(host: &Host, id: &str) -> Result<(), Failure> {
    let deadline = Instant::now() + NOTICE_WAIT;
    let key = stored::action_key(id, "notice-ended");
    while Instant::now() < deadline {
        let row = host.store().table.get(&key).await?;
        let row = row.as_ref().map(ActionRow::read).transpose()?;
        if row.is_none_or(|row| matches!(row.status, ActionStatus::Done | ActionStatus::Cancelled)) {
            return Ok(());
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
