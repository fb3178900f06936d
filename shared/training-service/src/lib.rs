//! SageMaker's training-job operations over HTTP, with training jobs as processes on this machine.
//!
//! The local training service runs the jobs. This crate adds the protocol (AWS JSON 1.1), and sends events and logs to
//! the endpoints of EventBridge and CloudWatch Logs. Clients are not authenticated: every client may perform every
//! operation. A slow or missing endpoint never delays a job.
#![warn(missing_docs)]

mod api;
mod events;
mod logs;
mod operations;
mod protocol;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws::SdkConfig;
use local::training::{Config, DamagedRecord, Feeds, OpenError, TrainingService};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// The log group of SageMaker's training jobs.
pub const LOG_GROUP: &str = "/aws/sagemaker/TrainingJobs";
/// The `source` of SageMaker's events.
pub const EVENT_SOURCE: &str = "aws.sagemaker";

/// How long a shutdown waits for pending events and log lines after the jobs have ended.
const FLUSH_TIME: Duration = Duration::from_secs(5);

/// The settings of a server.
#[derive(Clone)]
pub struct Settings {
    /// The settings of the local training service.
    pub training: Config,
    /// The receiver of state change events; `None` sends no events.
    pub events: Option<EventsTo>,
    /// The receiver of log lines; `None` keeps them only in the jobs' folders.
    pub logs: Option<LogsTo>,
    /// Receives progress and errors, one line per call.
    pub report: Report,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { training, events, logs, report: _ } = self;
        f.debug_struct("Settings")
            .field("training", training)
            .field("events", events)
            .field("logs", logs)
            .finish_non_exhaustive()
    }
}

/// The `default` event bus of an account.
#[derive(Debug, Clone)]
pub struct EventsTo {
    /// The account's endpoint, Region and credentials.
    pub account: SdkConfig,
    /// The `Source` of the events.
    pub source: String,
}

/// CloudWatch Logs of an account.
#[derive(Debug, Clone)]
pub struct LogsTo {
    /// The account's endpoint, Region and credentials.
    pub account: SdkConfig,
    /// The log group; created if missing.
    pub group: String,
}

/// A receiver of lines of text.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// An open training service.
pub struct Server {
    training: TrainingService,
    events: JoinHandle<()>,
    logs: JoinHandle<()>,
    report: Report,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { training, events: _, logs: _, report: _ } = self;
        f.debug_struct("Server").field("training", training).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the jobs' folder and continues the jobs of an earlier server. Does not serve requests yet.
    pub async fn open(settings: Settings) -> Result<Self, OpenError> {
        let Settings { training, events, logs, report } = settings;
        let (training, Feeds { events: event_feed, logs: log_feed }) =
            TrainingService::open(training).await?;
        for DamagedRecord { name, .. } in training.damaged().await {
            report(&format!("unreadable record of training job {name}: the job is shown as failed"));
        }
        Ok(Self {
            training,
            events: tokio::spawn(events::forward(event_feed, events, Arc::clone(&report))),
            logs: tokio::spawn(logs::forward(log_feed, logs, Arc::clone(&report))),
            report,
        })
    }

    /// Serves requests on `listener` until `until` completes. Then ends all training processes, as a crash would, and
    /// sends the pending events and log lines for up to 5 seconds.
    pub async fn serve(self, listener: TcpListener, until: impl Future<Output = ()>) {
        let Self { training, events, logs, report } = self;
        api::serve(listener, training.clone(), until).await;
        training.shutdown().await;
        // The last handle closes the feeds, which ends their forwarders.
        drop(training);
        let deadline = Instant::now() + FLUSH_TIME;
        for (kind, mut forwarder) in [("events", events), ("log lines", logs)] {
            if timeout_at(deadline, &mut forwarder).await.is_err() {
                forwarder.abort();
                report(&format!("dropped pending {kind}: the endpoint did not take them within 5 s"));
            }
        }
    }
}
