//! The local stand-in for `SageMaker`'s training service: jobs are processes of one command on this machine.
//!
//! What it keeps is in one folder and survives a crash at any moment; what it tells goes out as the same events and
//! log batches that AWS would send. Assumes Linux. Must never let a process outlive its job or the controller.

mod account;
mod channel;
mod clock;
mod config;
mod container;
mod describe;
mod driver;
mod failure;
mod hosts;
mod job;
mod lines;
mod log_reader;
mod log_stream;
mod pool;
mod ports;
mod processes;
mod record;
mod records;
mod recovery;
mod request;
mod seeded;
pub mod shim;
mod store;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use serde_json::Value;
use service::ports::training::TrainingJobsError;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, timeout};

pub use account::Summary;
pub use config::{Config, DamagedRecord, Delays, OpenError, Quota};
pub use records::JobRecords;

use describe::Owner;
use job::{Job, Shared};
use recovery::Settled;
use store::{Found, Layout};

/// Events that wait for a reader.
const EVENTS_WAITING_MAX: usize = 256;
/// Log batches that wait for a reader; each has at most about 256 KB of text.
const LOG_BATCHES_WAITING_MAX: usize = 32;
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
/// How long a shutdown waits for jobs beyond their grace.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(30);

/// What the service tells the world. Read both: a full log feed holds the training processes back.
#[derive(Debug)]
pub struct Feeds {
    /// `EventBridge` envelopes "SageMaker Training Job State Change", one for each change of status or secondary
    /// status.
    pub events: mpsc::Receiver<Value>,
    /// `{"awslogs":{"data":…}}` as CloudWatch Logs sends it to a subscribed function.
    pub logs: mpsc::Receiver<Vec<u8>>,
}

/// The service. Cloning gives another handle of the same service. When the last handle is dropped, or the process ends
/// in any way, all training processes are killed at once and their jobs are as after a crash; better is
/// [`TrainingService::shutdown`].
#[derive(Debug, Clone)]
pub struct TrainingService {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    jobs: Mutex<BTreeMap<String, Entry>>,
    drivers: Mutex<JoinSet<()>>,
    /// Held while the service is open.
    claim: Mutex<Option<File>>,
}

/// A job by name.
#[derive(Debug)]
enum Entry {
    Job(Arc<Job>),
    Damaged(DamagedRecord),
}

impl TrainingService {
    /// Opens the service on its folder, which is made if need be. Jobs that an earlier controller left are taken up:
    /// what ran counts as interrupted (see the crate's contract). Needs a tokio runtime with time and I/O.
    pub async fn open(config: Config) -> Result<(Self, Feeds), OpenError> {
        config.check()?;
        let root = config.root.clone();
        let opened = spawn_blocking(move || open_folder(&root)).await;
        let Opened { layout, claim, alive, sign, found } = opened.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(OpenError::Io { doing: "read", path: config.root.clone(), source })
        })?;
        let (announced, waiting) = mpsc::unbounded_channel();
        let (events, event_feed) = mpsc::channel(EVENTS_WAITING_MAX);
        let (logs, log_feed) = mpsc::channel(LOG_BATCHES_WAITING_MAX);
        let mark = job::service_mark(&layout);
        let shared = Arc::new(Shared {
            owner: Owner { account: config.account.clone(), region: config.region.clone() },
            config,
            layout,
            events: announced,
            logs,
            closing: watch::Sender::new(false),
            next_address: AtomicU32::new(u32::try_from(mark >> 40).unwrap_or(0)),
            mark,
        });
        tokio::spawn(forward(waiting, events));
        tokio::spawn(give_signs_of_life(sign, shared.closing.subscribe()));
        let inner = Inner {
            shared,
            jobs: Mutex::default(),
            drivers: Mutex::default(),
            claim: Mutex::new(Some(claim)),
        };
        let service = Self { inner: Arc::new(inner) };
        for job in found {
            service.take_up(job, alive).await;
        }
        Ok((service, Feeds { events: event_feed, logs: log_feed }))
    }

    /// Jobs whose records could not be read.
    pub async fn damaged(&self) -> Vec<DamagedRecord> {
        let jobs = self.inner.jobs.lock().await;
        let damaged = |entry: &Entry| match entry {
            Entry::Job(_) => None,
            Entry::Damaged(job) => Some(job.clone()),
        };
        jobs.values().filter_map(damaged).collect()
    }

    /// The answer of `DescribeTrainingJob`, times as seconds.
    pub async fn describe_json(&self, name: &str) -> Result<Value, TrainingJobsError> {
        let shared = &self.inner.shared;
        let job = match self.inner.jobs.lock().await.get(name) {
            None => return Err(ports::not_found()),
            Some(Entry::Damaged(job)) => return Ok(describe::damaged_json(&shared.owner, job)),
            Some(Entry::Job(job)) => Arc::clone(job),
        };
        let record = job.record().await;
        let model = shared.layout.model(name);
        Ok(describe::describe_json(&shared.owner, &record, &job.request, &model, clock::now()))
    }

    /// Ends all processes quickly and closes the service; jobs that ran can be taken up by opening it again. Later
    /// calls that change something are answered with `Unavailable`.
    pub async fn shutdown(&self) {
        self.inner.shared.closing.send_replace(true);
        let mut drivers = self.inner.drivers.lock().await;
        let ended = async { while drivers.join_next().await.is_some() {} };
        // What is not over by then ends when the process does, since the shims' pipes close.
        let _ = timeout(SHUTDOWN_WAIT, ended).await;
        drivers.abort_all();
        self.inner.claim.lock().await.take();
    }

    /// The folder of a job's host, `$SM_ROOT`, where its model and output are.
    pub fn host_folder(&self, job: &str, host: &str) -> PathBuf {
        self.inner.shared.layout.host(job, host)
    }

    async fn take_up(&self, job: Found, alive: Option<i64>) {
        let (mut record, request) = match job {
            Found::Job(record, request) => (record, request),
            Found::Damaged(job) => {
                self.inner.jobs.lock().await.insert(job.name.clone(), Entry::Damaged(job));
                return;
            }
        };
        let settled = recovery::settle(&mut record, alive, clock::now());
        let name = request.name.clone();
        let job = Job::new(*request, *record);
        self.inner.jobs.lock().await.insert(name, Entry::Job(Arc::clone(&job)));
        let shared = &self.inner.shared;
        if settled == Settled::Old {
            return;
        }
        if matches!(settled, Settled::EndedNow | Settled::Interrupted) {
            // A record that cannot be written now is settled the same way by the next open.
            let _ = job.save_again(shared).await;
        }
        job.announce(shared).await;
        if matches!(settled, Settled::GoesOn | Settled::Interrupted) {
            self.drive(job).await;
        }
    }

    async fn drive(&self, job: Arc<Job>) {
        let mut drivers = self.inner.drivers.lock().await;
        while drivers.try_join_next().is_some() {}
        drivers.spawn(driver::drive(Arc::clone(&self.inner.shared), job));
    }
}

/// The folder as it was found, claimed and free of old processes.
struct Opened {
    layout: Layout,
    claim: File,
    alive: Option<i64>,
    sign: File,
    found: Vec<Found>,
}

fn open_folder(root: &std::path::Path) -> Result<Opened, OpenError> {
    let layout = Layout::make(root)?;
    let claim = store::claim(&layout)?;
    let alive = store::last_alive(&layout);
    let found = store::load(&layout)?;
    recovery::end_old_processes(&layout, &found)?;
    let sign = store::open_alive(&layout)?;
    Ok(Opened { layout, claim, alive, sign, found })
}

/// Carries events to their reader, who may be slow, or gone.
async fn forward(mut from: mpsc::UnboundedReceiver<Value>, to: mpsc::Sender<Value>) {
    while let Some(event) = from.recv().await {
        let _ = to.send(event).await;
    }
}

async fn give_signs_of_life(sign: File, mut closing: watch::Receiver<bool>) {
    let mut ticks = interval(SIGN_OF_LIFE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        // A disk that refuses this shortens what a crash would bill, nothing else.
        let _ = store::touch(&sign);
    }
}
