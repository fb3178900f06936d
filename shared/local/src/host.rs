//! The whole controller in one process: the use cases of the Lambda functions, on the embedded table and the local
//! training service.
//!
//! The pumps (`host/pumps.rs`) replace AWS's event routing. Ingest receives state changes and log batches as the JSON
//! of EventBridge and CloudWatch Logs. The decider and the actuator receive table changes as stream records. A timer
//! starts the sweeper. After a kill at any moment, the next open continues from the table.

mod bus;
mod pumps;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dynamodb::{DynamoTable, Embedded, StreamStart};
use pumps::Failures;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tuning::definition::Definition;
use tuning::unit::time::{Millis, Time};
use use_cases::decide::Decider;
use use_cases::describe::{self, Place};
use use_cases::job_events::JobEvents;
use use_cases::job_logs::JobLogs;
use use_cases::lookup::{self, LookupError};
use use_cases::perform::Actuator;
use use_cases::ports::{Clock, Prices, PricesError, Timer};
use use_cases::record;
use use_cases::store::{Store, StoreError};
use use_cases::submit::{Guardrails, Submit, SubmitError};
use use_cases::sweep::{Limits, PerCallKind, Rate, Silence, Sweeper};
use wire::describe::TuningJob;
use wire::stored::{ACTIVE, active_id};

use crate::training::{Config, JobRecords, OpenError, TrainingService};

pub use bus::EventFile;

/// The stack name of all tunings on this machine.
pub const STACK: &str = "local";
/// How long an action stays claimed. Short, because calls within one process are fast.
const CLAIM: Millis = Millis::from_seconds(5);
/// How long a call of a dead process may still take effect: not at all, because the training service died with it.
const ABANDONED: Millis = Millis::ZERO;
/// The first delay of a deferred action.
const DEFER: Millis = Millis::from_seconds(1);
/// How long a shutdown waits for the statement that a pump left behind.
const RELEASE: Duration = Duration::from_secs(10);
/// Calls to the training service of this process need no pacing, and only the lease limits the time of a sweep.
const SWEEP: Limits = Limits {
    calls: PerCallKind {
        describe: UNPACED,
        tags: UNPACED,
        list: UNPACED,
        log: UNPACED,
        create: UNPACED,
        stop: UNPACED,
    },
    time_ms: Millis::from_seconds(55),
    lease_ms: Millis::from_seconds(60),
    silence: Silence::After(Millis::from_seconds(60)),
    retention: None,
};
const UNPACED: Rate = Rate { per_sweep: 10_000, every_ms: Millis::ZERO };

/// Returns the table file in the data directory.
pub fn table_path(data_dir: &Path) -> PathBuf {
    data_dir.join("table.sqlite")
}

/// Returns the folder of the training service in the data directory.
pub fn training_path(data_dir: &Path) -> PathBuf {
    data_dir.join("training")
}

/// Returns partition, Region and account in the ARNs of this machine's tuning jobs, without the place of models.
pub fn place() -> Place {
    Place::of_arn("arn:aws:sagemaker:local:000000000000:")
}

/// Returns the place of the tuning jobs of a data directory, with the folders of their models.
pub fn place_of(data_dir: &Path) -> Place {
    let data_dir = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.to_owned());
    Place { models: JobRecords::at(&training_path(&data_dir)).models(), ..place() }
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Time::EPOCH + Millis::from(since)
    }
}

impl Timer for SystemClock {
    async fn pause(&self, span: Millis) {
        tokio::time::sleep(Duration::from(span)).await;
    }
}

/// An empty price list: on this machine, prices come with the request.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPrices;

impl Prices for NoPrices {
    async fn instance_hour(&self, _instance_type: &str) -> Result<Option<u64>, PricesError> {
        Ok(None)
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        // Local volumes are free.
        Ok(Some(0))
    }
}

/// The settings of a [`Host`].
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// The folder of the table, the jobs and their checkpoints.
    pub data_dir: PathBuf,
    /// The training service in [`training_path`]. The host sets its account, its Region and the stopped tunings.
    pub training: Config,
    /// The time between two sweeps.
    pub sweep_every: Duration,
}

/// Why a host did not open.
#[derive(Debug, Error)]
pub enum HostError {
    /// The data directory cannot be created.
    #[error("cannot create the data directory {}", path.display())]
    DataDir {
        /// The data directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The table file cannot be opened.
    #[error(transparent)]
    Table(#[from] dynamodb::OpenError),
    /// The training service cannot be opened.
    #[error(transparent)]
    Training(#[from] OpenError),
    /// The table's rows cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

type LocalActuator = Actuator<DynamoTable, TrainingService, EventFile, SystemClock>;

/// A data directory that this process has locked. Nothing runs in it yet.
#[derive(Debug)]
pub struct Claimed {
    config: HostConfig,
    table: Embedded,
    store: Arc<Store<DynamoTable>>,
}

/// The controller on this machine.
#[derive(Debug)]
pub struct Host {
    store: Arc<Store<DynamoTable>>,
    submit: Submit<DynamoTable, NoPrices, SystemClock>,
    training: TrainingService,
    table: Embedded,
    changed: watch::Receiver<u64>,
    table_error: watch::Receiver<Option<String>>,
    pumps: JoinSet<()>,
}

impl Claimed {
    /// Creates the data directory if missing, and locks it.
    pub async fn claim(config: HostConfig) -> Result<Self, HostError> {
        let data_dir = &config.data_dir;
        std::fs::create_dir_all(data_dir)
            .map_err(|source| HostError::DataDir { path: data_dir.clone(), source })?;
        let table = Embedded::open(table_path(data_dir)).await?;
        let store = Arc::new(Store::new(Arc::new(table.table())));
        Ok(Self { config, table, store })
    }

    /// Returns the store of the tunings.
    pub fn store(&self) -> &Arc<Store<DynamoTable>> {
        &self.store
    }

    /// Starts the pumps and continues the unfinished tunings.
    pub async fn open(self) -> Result<Host, HostError> {
        let Self { config, table, store } = self;
        let HostConfig { data_dir, training, sweep_every } = config;
        let stream = table.stream(StreamStart::Latest).await.map_err(StoreError::from)?;
        // The first records of the stream make the decider read all earlier changes. Otherwise the news of a job could start
        // another one although the user has stopped the tuning.
        for row in store.all(ACTIVE, "").await? {
            let Some(id) = active_id(&row) else { continue };
            record::ring(&*store.table, id, SystemClock.now()).await.map_err(StoreError::from)?;
        }
        let Place { region, account, .. } = place();
        let training = Config { stopping: stopping(&store).await?, region, account, ..training };
        let (training, feeds) = TrainingService::open(training).await?;
        let actuator = || LocalActuator {
            store: Arc::clone(&store),
            jobs: training.clone(),
            bus: EventFile::new(data_dir.join("events.jsonl")),
            clock: SystemClock,
            pace: None,
            stack: STACK.to_owned(),
            log_lag_ms: Millis::ZERO,
            bills_are_final: true,
            claim_ms: CLAIM,
            defer_ms: DEFER,
            abandoned_ms: ABANDONED,
            place: place_of(&data_dir),
            monthly_cap: None,
        };
        // A data directory has one process, so an existing lease belongs to a killed predecessor.
        let sweeper = Sweeper::new(actuator(), SWEEP, STACK.to_owned());
        let (steps, changed) = watch::channel(0);
        let mut pumps = JoinSet::new();
        let decider = Decider { store: Arc::clone(&store) };
        pumps::table(&mut pumps, stream, decider, Arc::new(actuator()), steps);
        let events = JobEvents { store: Arc::clone(&store), clock: SystemClock, stack: STACK.to_owned() };
        let (errors, table_error) = watch::channel(None);
        let failures =
            Failures { unreadable: data_dir.join("unreadable.jsonl"), table_error: errors.clone() };
        pumps.spawn(pumps::events(feeds.events, events, failures.clone()));
        let logs = JobLogs::new(Arc::clone(&store), SystemClock);
        pumps.spawn(pumps::logs(feeds.logs, logs, failures));
        let claim = Duration::from(CLAIM + Millis(500));
        pumps.spawn(pumps::sweeps(sweeper, (table.clone(), Arc::clone(&store)), sweep_every, claim, errors));
        let submit = Submit {
            other_tunings: None,
            store: Arc::clone(&store),
            prices: NoPrices,
            clock: SystemClock,
            monthly_cap: None,
            guardrails: Guardrails::default(),
        };
        Ok(Host { store, submit, training, table, changed, table_error, pumps })
    }
}

impl Host {
    /// Claims the data directory and opens the host on it.
    pub async fn open(config: HostConfig) -> Result<Self, HostError> {
        Claimed::claim(config).await?.open().await
    }

    /// Submits a request.
    pub async fn submit(&self, body: &[u8]) -> Result<Definition, SubmitError> {
        self.submit.submit(body).await
    }

    /// Returns the store of the tunings.
    pub fn store(&self) -> &Arc<Store<DynamoTable>> {
        &self.store
    }

    /// Returns the embedded table.
    pub fn table(&self) -> &Embedded {
        &self.table
    }

    /// Returns a receiver that changes after each batch of the decider.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Returns the current table error, for example a full disk, or `None`. The host recovers by itself when the error
    /// ends.
    pub fn table_error(&self) -> watch::Receiver<Option<String>> {
        self.table_error.clone()
    }

    /// Requests the stop of a tuning.
    pub async fn stop(&self, name: &str) -> Result<(), LookupError> {
        lookup::stop(&self.store, name, SystemClock.now()).await
    }

    /// Returns the answer of `DescribeHyperParameterTuningJob`, or `None` for an unknown ID.
    pub async fn describe(&self, id: &str) -> Result<Option<TuningJob>, StoreError> {
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
            // Changes by another process do not wake this receiver, so poll as well.
            let _ = tokio::time::timeout(Duration::from_secs(1), changed.changed()).await;
        }
    }

    /// Ends the pumps and all training processes, and releases the data directory. The next open resumes the jobs.
    pub async fn shutdown(self) {
        let Self { store, submit, training, table, changed: _, table_error: _, mut pumps } = self;
        training.shutdown().await;
        pumps.shutdown().await;
        drop((store, submit, training, pumps));
        // Bounded, because a caller may keep the store.
        let _ = tokio::time::timeout(RELEASE, table.close()).await;
    }
}

/// Returns the tunings that a user has stopped and that have not ended. Their jobs must not continue until the decider
/// orders their stops, because this process may have another training command than theirs.
async fn stopping(store: &Store<DynamoTable>) -> Result<BTreeSet<String>, StoreError> {
    let mut found = BTreeSet::new();
    for row in store.all(ACTIVE, "").await? {
        let Some(id) = active_id(&row) else { continue };
        match describe::summary(store, &place(), id).await {
            Ok(Some(tuning)) if tuning.base.is_stopping() => {
                found.insert(id.to_owned());
            }
            // Its own reader reports an unreadable tuning. The other ones continue.
            Ok(_) | Err(StoreError::Stored(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
