//! Follows a local tuning until it ends, and shows its progress.

use std::time::Duration;

use local::host::Host;
use tokio::time::{Instant, sleep, timeout};
use use_cases::ports::table::Table;
use wire::stored::{self, ActionRow, ActionStatus};

use crate::failure::Failure;
use crate::follow::{Follower, Since};
use crate::log_hint::LogHint;
use crate::progress::Progress;
use crate::signals::Signals;

/// Minimum time between two reads of the table. Combines a burst of metrics into one update.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time between two updates without news.
const DRAW_EVERY: Duration = Duration::from_secs(1);
/// Maximum wait for the event about the end of the tuning.
const NOTICE_WAIT: Duration = Duration::from_secs(2);
/// Time between two sweeps. A sweep reads a few rows, enforces deadlines and repairs lost work.
pub(crate) const SWEEP_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) enum Outcome {
    /// The tuning has ended.
    Ended,
    /// A signal interrupted the session.
    Interrupted,
}

/// Follows the tuning `id` until it ends or a signal arrives.
pub(super) async fn follow(
    host: &Host,
    id: &str,
    since: Since,
    logs: LogHint,
    signals: &mut Signals,
) -> Result<Outcome, Failure> {
    // Subscribed before the first read, so that no change is missed.
    let mut changes = host.changes();
    let gone = || Failure::usage(format!("the tuning {id} was deleted"));
    let loaded = host.store().load(id).await?.ok_or_else(gone)?;
    let mut follower = match since {
        Since::Submission => Follower::from_start(loaded.tuning),
        Since::Now => Follower::from_now(loaded),
    };
    let mut progress = Progress::begin(&follower, since, logs);
    let mut trouble = host.table_error();
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
                    return Err(Failure::endpoint(anyhow::anyhow!("the controller has stopped unexpectedly"))
                        .hint("repeat the command line to continue the tuning"));
                }
            }
            () = signals.next() => {
                progress.end();
                return Ok(Outcome::Interrupted);
            }
        }
    }
    progress.end();
    wait_for_end_notice(host, id).await?;
    Ok(Outcome::Ended)
}

/// Waits until the event about the end is published. After a time-out, the next run on this folder publishes it.
async fn wait_for_end_notice(host: &Host, id: &str) -> Result<(), Failure> {
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
