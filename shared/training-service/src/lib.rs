//! SageMaker's training-job operations on the wire, with jobs as processes on this machine.
//!
//! The local training service does the work; here are its protocol (AWS JSON 1.1), its events and its logs, sent where
//! AWS would send them. Assumes callers that may do all it offers: nobody is authenticated. Must never let a slow or
//! absent endpoint hold up a job.
#![warn(missing_docs)]

mod api;
mod events;
mod logs;
mod operations;
mod protocol;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_connection::SdkConfig;
use local::training::{Config, DamagedRecord, Feeds, OpenError, TrainingService};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// The log group of an account's training jobs.
pub const LOG_GROUP: &str = "/aws/sagemaker/TrainingJobs";
/// The source of SageMaker's events.
pub const EVENT_SOURCE: &str = "aws.sagemaker";

/// How long what is still to be told may take once the jobs are over.
const TELLING_TIME: Duration = Duration::from_secs(5);

/// What a server is made of.
#[derive(Clone)]
pub struct Settings {
    /// The jobs.
    pub training: Config,
    /// Where changes of state are told, if anywhere.
    pub events: Option<EventsTo>,
    /// Where the lines that jobs print are kept, if anywhere but in their folder.
    pub logs: Option<LogsTo>,
    /// Told, a line at a time, what happens.
    pub tell: Tell,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { training, events, logs, tell: _ } = self;
        f.debug_struct("Settings")
            .field("training", training)
            .field("events", events)
            .field("logs", logs)
            .finish_non_exhaustive()
    }
}

/// The event bus `default` of an account.
#[derive(Debug, Clone)]
pub struct EventsTo {
    /// The account.
    pub account: SdkConfig,
    /// `Source` of the events.
    pub source: String,
}

/// CloudWatch Logs of an account.
#[derive(Debug, Clone)]
pub struct LogsTo {
    /// The account.
    pub account: SdkConfig,
    /// The log group; made if there is none.
    pub group: String,
}

/// Whom to tell.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// The service, its jobs at work.
pub struct Server {
    training: TrainingService,
    events: JoinHandle<()>,
    logs: JoinHandle<()>,
    tell: Tell,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { training, events: _, logs: _, tell: _ } = self;
        f.debug_struct("Server").field("training", training).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the jobs' folder; what an earlier server left goes on. Nobody is listened to yet.
    pub async fn open(settings: Settings) -> Result<Self, OpenError> {
        let Settings { training, events, logs, tell } = settings;
        let (training, Feeds { events: event_feed, logs: log_feed }) =
            TrainingService::open(training).await?;
        for DamagedRecord { name, .. } in training.damaged().await {
            tell(&format!("the record of {name} cannot be read: it is shown as failed"));
        }
        Ok(Self {
            training,
            events: tokio::spawn(events::carry(event_feed, events, Arc::clone(&tell))),
            logs: tokio::spawn(logs::carry(log_feed, logs, Arc::clone(&tell))),
            tell,
        })
    }

    /// Answers on `listener` until `until`; then ends all jobs' processes, as if the controller had died, and tells what
    /// is left to tell.
    pub async fn serve(self, listener: TcpListener, until: impl Future<Output = ()>) {
        let Self { training, events, logs, tell } = self;
        api::serve(listener, training.clone(), until).await;
        training.shutdown().await;
        // With the last handle the feeds end, and with them who carries them.
        drop(training);
        let deadline = Instant::now() + TELLING_TIME;
        for (what, mut carrier) in [("events", events), ("lines of logs", logs)] {
            if timeout_at(deadline, &mut carrier).await.is_err() {
                carrier.abort();
                tell(&format!("{what} that still waited were given up"));
            }
        }
    }
}
