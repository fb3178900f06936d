//! The whole controller in one process: the same use cases that run in Lambda, on the embedded table and the local
//! training service.
//!
//! What AWS does between the functions is done by the pumps (`host/pumps.rs`): state changes and log batches reach ingest as
//! the JSON that EventBridge and CloudWatch Logs would send, table changes reach decider and actuator as stream records,
//! minutes reach the sweeper. Killed at any moment, it goes on from the table when it is opened again.

mod bus;
mod pumps;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dynamodb::{DynamoTable, Embedded, StreamStart};
use pumps::Failures;
use serde_json::Value;
use service::decide::Decider;
use service::describe::{self, Place};
use service::job_events::JobEvents;
use service::job_logs::JobLogs;
use service::lookup::{self, LookupError};
use service::perform::Actuator;
use service::ports::{Clock, Millis, Prices, PricesError, Timer};
use service::record;
use service::store::{Store, StoreError};
use service::submit::{Guardrails, Submit, SubmitError};
use service::sweep::{Limits, PerSort, Rate, Sweeper};
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tuning::definition::Definition;
use wire::stored::{ACTIVE, active_id};

use crate::training::{Config, OpenError, TrainingService};

pub use bus::EventFile;

/// Stack name of everything on this machine.
pub const STACK: &str = "local";
/// Claim on an action: nothing in one process takes long, and a process that died holds nothing.
const CLAIM_MS: i64 = 5_000;
/// What a process sent died with it: nothing of it takes effect later.
const ABANDONED_MS: i64 = 0;
/// First wait before a deferred action is tried again.
const DEFER_MS: i64 = 1_000;
/// The training service is this process's own: its calls need no pace, and a sweep of this machine has no time limit
/// but the lease.
const SWEEP: Limits = Limits {
    calls: PerSort {
        describe: UNPACED,
        tags: UNPACED,
        list: UNPACED,
        log: UNPACED,
        create: UNPACED,
        stop: UNPACED,
    },
    time_ms: 55_000,
    lease_ms: 60_000,
    silence_ms: 60_000,
};
const UNPACED: Rate = Rate { per_sweep: 10_000, every_ms: 0 };

/// File of the table in the data directory.
pub fn table_path(data_dir: &Path) -> PathBuf {
    data_dir.join("table.sqlite")
}

/// Folder of the training service in the data directory.
pub fn training_path(data_dir: &Path) -> PathBuf {
    data_dir.join("training")
}

/// Where this machine's tuning jobs are, as far as names go.
pub fn place() -> Place {
    Place { partition: "aws".to_owned(), region: "local".to_owned(), account: "000000000000".to_owned() }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

impl Timer for SystemClock {
    async fn pause(&self, ms: Millis) {
        tokio::time::sleep(Duration::from_millis(ms.unsigned_abs())).await;
    }
}

/// No price list on this machine: prices come with the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPrices;

impl Prices for NoPrices {
    async fn instance_hour(&self, _instance_type: &str) -> Result<Option<u64>, PricesError> {
        Ok(None)
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        // A local volume costs nothing.
        Ok(Some(0))
    }
}

/// How a host is opened.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// Folder with the table, the jobs and their checkpoints.
    pub data_dir: PathBuf,
    /// Program and arguments of every host of every job.
    pub command: Vec<OsString>,
    /// Program and arguments of the host shim.
    pub shim: Vec<OsString>,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Made-up spot interruptions, per job-hour.
    pub spot_interruptions_per_hour: f64,
    /// Seed of those.
    pub seed: u64,
    /// Time between two sweeps.
    pub sweep_every: Duration,
}

/// Why a host did not open.
#[derive(Debug, Error)]
pub enum HostError {
    /// The data directory cannot be made.
    #[error("cannot make the data directory {}", path.display())]
    DataDir {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The table.
    #[error(transparent)]
    Table(#[from] dynamodb::OpenError),
    /// The training service.
    #[error(transparent)]
    Training(#[from] OpenError),
    /// The table's rows.
    #[error(transparent)]
    Store(#[from] StoreError),
}

type LocalActuator = Actuator<DynamoTable, TrainingService, EventFile, SystemClock>;

/// The controller on this machine.
#[derive(Debug)]
pub struct Host {
    store: Arc<Store<DynamoTable>>,
    submit: Submit<DynamoTable, NoPrices, SystemClock>,
    training: TrainingService,
    table: Embedded,
    changed: watch::Receiver<u64>,
    trouble: watch::Receiver<Option<String>>,
    pumps: JoinSet<()>,
}

impl Host {
    /// Opens the host on its data directory and begins to pump; what was going on when it last ended goes on.
    pub async fn open(config: HostConfig) -> Result<Self, HostError> {
        let HostConfig { data_dir, sweep_every, .. } = config.clone();
        std::fs::create_dir_all(&data_dir)
            .map_err(|source| HostError::DataDir { path: data_dir.clone(), source })?;
        let table = Embedded::open(table_path(&data_dir)).await?;
        let store = Arc::new(Store::new(Arc::new(table.table())));
        // From the newest on: what came before is found by the ring below.
        let stream = table.stream(StreamStart::Latest).await.map_err(StoreError::from)?;
        let (training, feeds) = TrainingService::open(training_config(config)).await?;
        let actuator = || LocalActuator {
            store: Arc::clone(&store),
            jobs: training.clone(),
            bus: EventFile::new(data_dir.join("events.jsonl")),
            clock: SystemClock,
            stack: STACK.to_owned(),
            log_lag_ms: 0,
            claim_ms: CLAIM_MS,
            defer_ms: DEFER_MS,
            abandoned_ms: ABANDONED_MS,
            place: place(),
            monthly_cap: None,
        };
        // One process works on a data directory: a lease that is left is that of its predecessor, which was killed.
        let sweeper = Sweeper::new(actuator(), SWEEP, STACK.to_owned());
        let (steps, changed) = watch::channel(0);
        let mut pumps = JoinSet::new();
        let decider = Decider { store: Arc::clone(&store) };
        pumps::table(&mut pumps, stream, decider, Arc::new(actuator()), steps);
        let events = JobEvents { store: Arc::clone(&store), clock: SystemClock, stack: STACK.to_owned() };
        let (troubles, trouble) = watch::channel(None);
        let failures = Failures { unreadable: data_dir.join("unreadable.jsonl"), trouble: troubles.clone() };
        pumps.spawn(pumps::events(feeds.events, events, failures.clone()));
        let logs = JobLogs { store: Arc::clone(&store), clock: SystemClock };
        pumps.spawn(pumps::logs(feeds.logs, logs, failures));
        for row in store.all(ACTIVE, "").await? {
            let Some(id) = active_id(&row) else { continue };
            record::ring(&*store.table, id, SystemClock.now()).await.map_err(StoreError::from)?;
        }
        let claim = Duration::from_millis(CLAIM_MS.unsigned_abs().saturating_add(500));
        pumps.spawn(pumps::minutes(sweeper, table.clone(), sweep_every, claim, troubles));
        let submit = Submit {
            store: Arc::clone(&store),
            prices: NoPrices,
            clock: SystemClock,
            monthly_cap: None,
            guardrails: Guardrails::default(),
        };
        Ok(Self { store, submit, training, table, changed, trouble, pumps })
    }

    /// Submits a request.
    pub async fn submit(&self, body: &[u8]) -> Result<Definition, SubmitError> {
        self.submit.submit(body).await
    }

    /// Reads tunings.
    pub fn store(&self) -> &Arc<Store<DynamoTable>> {
        &self.store
    }

    /// The embedded table.
    pub fn table(&self) -> &Embedded {
        &self.table
    }

    /// Changes whenever the decider has taken news.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Why the table cannot be worked with, while that is so (a full disk, say); everything goes on by itself after it.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.clone()
    }

    /// Takes the order to stop a tuning.
    pub async fn stop(&self, name: &str) -> Result<(), LookupError> {
        lookup::stop(&self.store, name, SystemClock.now()).await
    }

    /// The answer of `DescribeHyperParameterTuningJob`.
    pub async fn describe(&self, id: &str) -> Result<Option<Value>, StoreError> {
        describe::describe(&self.store, &place(), id).await
    }

    /// Waits until tuning `id` has ended.
    pub async fn ended(&self, id: &str) -> Result<(), StoreError> {
        let mut changed = self.changed.clone();
        loop {
            let head = self.store.head(id).await?;
            if head.is_none_or(|head| !matches!(head.status.as_str(), "InProgress" | "Stopping")) {
                return Ok(());
            }
            // The table may also be changed by another process, which wakes nobody here.
            let _ = tokio::time::timeout(Duration::from_secs(1), changed.changed()).await;
        }
    }

    /// Ends all training processes (they can be taken up again) and the pumps.
    pub async fn shutdown(mut self) {
        self.training.shutdown().await;
        self.pumps.shutdown().await;
    }
}

fn training_config(config: HostConfig) -> Config {
    let root = training_path(&config.data_dir);
    let mut training = Config::new(root, config.command, config.shim);
    training.grace = config.grace;
    training.spot_interruptions_per_hour = config.spot_interruptions_per_hour;
    training.seed = config.seed;
    let Place { region, account, .. } = place();
    training.region = region;
    training.account = account;
    training
}
