//! A local implementation of `SageMaker`'s training service: jobs are processes of one command on this machine.
//!
//! All state is in one folder and survives a crash at any moment. State changes and log lines are published in the form
//! of AWS's events and log batches. No process outlives its job or the controller. Needs Linux.

mod account;
mod arguments;
mod channel;
mod clock;
mod config;
mod container;
mod describe;
mod driver;
mod failure;
mod final_metrics;
mod hosts;
mod job;
mod job_log;
mod lines;
mod log_reader;
mod log_stream;
mod plain_text;
mod pool;
mod ports;
mod processes;
mod record;
mod records;
mod recovery;
mod region;
mod request;
mod seeded;
mod series;
pub mod shim;
mod slots;
mod stderr_tail;
mod store;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use tuning::unit::time::Time;

use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, timeout};
use use_cases::ports::training::TrainingJobsError;
use wire::names::TAG_TUNING;

pub use account::Summary;
pub use config::{Config, DamagedRecord, Delays, OpenError, Quota};
pub use job_log::{JobLog, LoggedLine};
pub use plain_text::plain_text;
pub use records::JobRecords;
pub use region::Region;
pub use series::{emissions, series};

use describe::Owner;
use final_metrics::Final;
use job::{Job, Shared};
use recovery::Settled;
use slots::Slots;
use store::{Found, Layout};

const EVENTS_WAITING_MAX: usize = 256;
/// Capacity of the log feed, in batches of at most about 256 KB of text.
const LOG_BATCHES_WAITING_MAX: usize = 32;
/// How long a shutdown waits for jobs to end, their grace period included.
const SHUTDOWN_WAIT: Duration = Duration::from_secs(30);

/// The service's output. Read both feeds: a full log feed blocks the training processes.
#[derive(Debug)]
pub struct Feeds {
    /// `EventBridge` events "SageMaker Training Job State Change", one for each change of status or secondary status.
    pub events: mpsc::Receiver<Value>,
    /// Batches `{"awslogs":{"data":…}}`, as CloudWatch Logs sends them to a subscribed function.
    pub logs: mpsc::Receiver<Vec<u8>>,
}

/// The service. Clones are handles of the same service.
///
/// When the last handle is dropped, or the process ends in any way, all training processes are killed at once and their
/// jobs count as interrupted. Prefer [`TrainingService::shutdown`].
#[derive(Debug, Clone)]
pub struct TrainingService {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    jobs: Mutex<BTreeMap<String, Entry>>,
    drivers: Mutex<JoinSet<()>>,
    /// The lock of the folder, held while the service is open.
    claim: Mutex<Option<File>>,
}

#[derive(Debug)]
enum Entry {
    Job(Arc<Job>),
    Damaged(DamagedRecord),
}

impl TrainingService {
    /// Opens the service on its folder, which is created if missing. Resumes the jobs of an earlier controller: running
    /// jobs count as interrupted. Needs a tokio runtime with time and I/O.
    pub async fn open(config: Config) -> Result<(Self, Feeds), OpenError> {
        config.check()?;
        let root = config.root.clone();
        let opened = spawn_blocking(move || open_folder(&root)).await;
        let Opened { layout, claim, last_heartbeat, heartbeat, found } = opened.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(OpenError::Io { doing: "read", path: config.root.clone(), source })
        })?;
        let (announced, waiting) = mpsc::unbounded_channel();
        let (events, event_feed) = mpsc::channel(EVENTS_WAITING_MAX);
        let (logs, log_feed) = mpsc::channel(LOG_BATCHES_WAITING_MAX);
        let mark = job::service_mark(&layout);
        let shared = Arc::new(Shared {
            owner: Owner { account: config.account.clone(), region: config.region.clone() },
            slots: Slots::new(config.slots, config.devices.clone()),
            config,
            layout,
            events: announced,
            logs,
            closing: watch::Sender::new(false),
            next_address: AtomicU32::new(u32::try_from(mark >> 40).unwrap_or(0)),
            mark,
        });
        tokio::spawn(forward(waiting, events));
        tokio::spawn(write_heartbeats(heartbeat, shared.closing.subscribe()));
        let inner = Inner {
            shared,
            jobs: Mutex::default(),
            drivers: Mutex::default(),
            claim: Mutex::new(Some(claim)),
        };
        let service = Self { inner: Arc::new(inner) };
        for job in found {
            service.resume(job, last_heartbeat).await;
        }
        Ok((service, Feeds { events: event_feed, logs: log_feed }))
    }

    /// Returns the jobs with unreadable records.
    pub async fn damaged(&self) -> Vec<DamagedRecord> {
        let jobs = self.inner.jobs.lock().await;
        let damaged = |entry: &Entry| match entry {
            Entry::Job(_) => None,
            Entry::Damaged(job) => Some(job.clone()),
        };
        jobs.values().filter_map(damaged).collect()
    }

    /// Returns the answer of `DescribeTrainingJob`, with times in seconds since the epoch. After the job's end, reads
    /// the final metrics from its log.
    pub async fn describe_json(&self, name: &str) -> Result<Value, TrainingJobsError> {
        let shared = &self.inner.shared;
        let job = match self.inner.jobs.lock().await.get(name) {
            None => return Err(ports::not_found()),
            Some(Entry::Damaged(job)) => return Ok(describe::damaged_json(&shared.owner, job)),
            Some(Entry::Job(job)) => Arc::clone(job),
        };
        // A copy, so that no change of the job waits for the disk.
        let record = job.read(Clone::clone).await;
        let model = shared.layout.model(name);
        let mut answer =
            describe::describe_json(&shared.owner_of(&job), &record, &job.request, &model, clock::now());
        let metric = |last: Final| json!({ "MetricName": last.name, "Value": last.value, "Timestamp": clock::seconds(last.at) });
        let metrics: Vec<Value> = self.final_metrics(&job).await.into_iter().map(metric).collect();
        if !metrics.is_empty() {
            answer["FinalMetricDataList"] = Value::Array(metrics);
        }
        Ok(answer)
    }

    /// Returns the last values of an ended job's metrics. The state of a job is worth more than its metrics: an unreadable
    /// log hides only these.
    async fn final_metrics(&self, job: &Job) -> Vec<Final> {
        let request = job.read(|record| record.status.ended().then(|| record.request.clone())).await;
        let Some(request) = request else { return Vec::new() };
        let logs = self.inner.shared.layout.logs(&job.request.name);
        let read = spawn_blocking(move || final_metrics::read(&logs, &request)).await;
        read.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Ends all processes with a grace of a few seconds and closes the service. Opening the service again resumes the
    /// running jobs. Later calls that change something fail with `Unavailable`.
    pub async fn shutdown(&self) {
        self.inner.shared.closing.send_replace(true);
        let mut drivers = self.inner.drivers.lock().await;
        let ended = async { while drivers.join_next().await.is_some() {} };
        // Remaining processes end with this process, because the shims' pipes close.
        let _ = timeout(SHUTDOWN_WAIT, ended).await;
        drivers.abort_all();
        self.inner.claim.lock().await.take();
    }

    /// Returns the folder of a job's host, `$SM_ROOT`, which has its model and output.
    pub fn host_folder(&self, job: &str, host: &str) -> PathBuf {
        self.inner.shared.layout.host(job, host)
    }

    async fn resume(&self, job: Found, last_heartbeat: Option<Time>) {
        let (mut record, request) = match job {
            Found::Job(record, request) => (record, request),
            Found::Damaged(job) => {
                self.inner.jobs.lock().await.insert(job.name.clone(), Entry::Damaged(job));
                return;
            }
        };
        let stopping = &self.inner.shared.config.stopping;
        let is_stopping = request.tags.get(TAG_TUNING).is_some_and(|tuning| stopping.contains(tuning));
        let settled = recovery::settle(&mut record, is_stopping, last_heartbeat, clock::now());
        let name = request.name.clone();
        let job = Job::new(*request, *record);
        self.inner.jobs.lock().await.insert(name, Entry::Job(Arc::clone(&job)));
        let shared = &self.inner.shared;
        if settled == Settled::Old {
            return;
        }
        if matches!(settled, Settled::JustEnded | Settled::Interrupted) {
            // If the record cannot be written, the next open settles the job in the same way.
            let _ = job.save_again(shared).await;
        }
        job.announce(shared).await;
        if matches!(settled, Settled::Continues | Settled::Interrupted) {
            self.drive(job).await;
        }
    }

    async fn drive(&self, job: Arc<Job>) {
        let mut drivers = self.inner.drivers.lock().await;
        while drivers.try_join_next().is_some() {}
        drivers.spawn(driver::drive(Arc::clone(&self.inner.shared), job));
    }
}

/// The locked folder, without processes of an earlier controller.
struct Opened {
    layout: Layout,
    claim: File,
    last_heartbeat: Option<Time>,
    heartbeat: File,
    found: Vec<Found>,
}

fn open_folder(root: &std::path::Path) -> Result<Opened, OpenError> {
    let layout = Layout::create(root)?;
    let claim = store::claim(&layout)?;
    let last_heartbeat = store::last_heartbeat(&layout);
    let found = store::load(&layout)?;
    recovery::end_old_processes(&layout, &found)?;
    let heartbeat = store::open_heartbeat(&layout)?;
    Ok(Opened { layout, claim, last_heartbeat, heartbeat, found })
}

/// Forwards events to their reader, which may be slow or closed.
async fn forward(mut from: mpsc::UnboundedReceiver<Value>, to: mpsc::Sender<Value>) {
    while let Some(event) = from.recv().await {
        let _ = to.send(event).await;
    }
}

async fn write_heartbeats(heartbeat: File, mut closing: watch::Receiver<bool>) {
    let mut ticks = interval(recovery::HEARTBEAT_EVERY.into());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        // A failed write only shortens the bill after a crash.
        let _ = store::touch(&heartbeat);
    }
}
