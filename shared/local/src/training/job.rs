//! One job in memory: its record behind a lock, and the only ways to change it, each saved and announced.
//!
//! Assumes one driver a job; stops come from elsewhere and win over the driver. Must never announce a change before it
//! was saved (or saving it has failed, which the driver then treats as the job's failure).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde_json::Value;
use service::ports::Millis;
use tokio::sync::{Mutex, MutexGuard, mpsc, watch};

use super::clock;
use super::config::Config;
use super::describe::{self, Owner};
use super::record::{End, Record, Run, Secondary, Status, StopCause};
use super::request::{JobRequest, TAGS_MAX};
use super::seeded;
use super::store::{self, Layout};

/// What all jobs share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) layout: Layout,
    pub(crate) owner: Owner,
    /// Unbounded, so that a slow reader never delays a stop; a job has few changes.
    pub(crate) events: mpsc::UnboundedSender<Value>,
    pub(crate) logs: mpsc::Sender<Vec<u8>>,
    /// Becomes true when the service shuts down.
    pub(crate) closing: watch::Sender<bool>,
    /// Number of the next loopback address.
    pub(crate) next_address: AtomicU32,
    /// Tells this service's attempts apart from those of any other.
    pub(crate) mark: u64,
}

impl Shared {
    /// `count` loopback addresses that no running job has: there are 16 million before they come again.
    pub(crate) fn addresses(&self, count: u32) -> Vec<String> {
        let first = self.next_address.fetch_add(count, Ordering::Relaxed);
        (0..count).map(|index| address(first.wrapping_add(index))).collect()
    }
}

/// 127.x.y.z without x = 0 and without z = 0 and 255.
fn address(number: u32) -> String {
    let (low, rest) = (number % 254 + 1, number / 254);
    format!("127.{}.{}.{low}", rest / 256 % 254 + 1, rest % 256)
}

/// Why the driver could not move the job on.
#[derive(Debug)]
pub(crate) enum NotMoved {
    /// Somebody asked the job to stop.
    Stopping,
    /// The record could not be written.
    Unsaved(String),
}

/// A job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: JobRequest,
    pub(crate) created: Millis,
    record: Mutex<Record>,
    ended: AtomicBool,
    in_progress: AtomicBool,
    stopping: watch::Sender<bool>,
}

impl Job {
    pub(crate) fn new(request: JobRequest, record: Record) -> Arc<Self> {
        Arc::new(Self {
            request,
            created: record.created,
            ended: AtomicBool::new(record.status.ended()),
            in_progress: AtomicBool::new(record.status == Status::InProgress),
            stopping: watch::Sender::new(record.status == Status::Stopping),
            record: Mutex::new(record),
        })
    }

    /// Whether it uses no instance any more.
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether its status is `InProgress`.
    pub(crate) fn in_progress(&self) -> bool {
        self.in_progress.load(Ordering::Acquire)
    }

    pub(crate) async fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().await
    }

    /// Becomes true when the job is to stop.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Asks the job to stop; `Err` with its status when it has ended.
    pub(crate) async fn stop(&self, shared: &Shared, cause: StopCause) -> Result<(), Status> {
        let mut record = self.record.lock().await;
        match record.status {
            Status::Completed | Status::Failed | Status::Stopped => Err(record.status),
            Status::Stopping => Ok(()),
            Status::InProgress => {
                record.request_stop(cause, clock::now());
                // Stopped in memory even if this fails: after a crash the job then counts as interrupted.
                let _ = self.settle(shared, &mut record).await;
                self.stopping.send_replace(true);
                Ok(())
            }
        }
    }

    /// Notes that processes are about to start.
    pub(crate) async fn begin_run(&self, shared: &Shared) -> Result<Run, NotMoved> {
        let mut record = self.moving().await?;
        let name = &self.request.name;
        let mark = shared.mark;
        let attempt = |number: usize, stream| format!("{name}-{number}-{stream}-{mark:016x}");
        let run = record.begin_run(attempt, clock::now()).clone();
        self.save(shared, &record).await.map_err(|error| NotMoved::Unsaved(error.to_string()))?;
        Ok(run)
    }

    /// Moves the job on to its next state.
    pub(crate) async fn enter(&self, shared: &Shared, secondary: Secondary) -> Result<(), NotMoved> {
        let mut record = self.moving().await?;
        record.enter(secondary, clock::now());
        self.settle(shared, &mut record).await
    }

    /// Notes that the job lost its instances and waits.
    pub(crate) async fn interrupt(&self, shared: &Shared) -> Result<(), NotMoved> {
        let mut record = self.moving().await?;
        record.interrupt(clock::now());
        self.settle(shared, &mut record).await
    }

    /// Notes that no process runs, without a change of state.
    pub(crate) async fn end_run(&self, shared: &Shared) -> Result<(), NotMoved> {
        let mut record = self.record.lock().await;
        record.end_run(clock::now());
        self.save(shared, &record).await.map_err(|error| NotMoved::Unsaved(error.to_string()))
    }

    /// Ends the job.
    pub(crate) async fn finish(&self, shared: &Shared, end: End) -> Result<(), NotMoved> {
        let mut record = self.record.lock().await;
        record.finish(end, clock::now());
        self.settle(shared, &mut record).await
    }

    /// Lets the instances that are kept after the job go, to another job or for good; `false` when none are. They are
    /// kept on if that cannot be written.
    pub(crate) async fn let_go(&self, shared: &Shared, to: Option<&str>) -> io::Result<bool> {
        let mut record = self.record.lock().await;
        let mut changed = record.clone();
        if !changed.let_go(to.map(ToOwned::to_owned), clock::now()) {
            return Ok(false);
        }
        self.save(shared, &changed).await?;
        *record = changed;
        Ok(true)
    }

    /// Adds tags, if it then has no more than it may have; whether it did.
    pub(crate) async fn add_tags(&self, shared: &Shared, tags: BTreeMap<String, String>) -> io::Result<bool> {
        let mut record = self.record.lock().await;
        let mut changed = record.clone();
        changed.added_tags.extend(tags);
        if describe::tags(&changed, &self.request).len() > TAGS_MAX {
            return Ok(false);
        }
        self.save(shared, &changed).await?;
        *record = changed;
        Ok(true)
    }

    /// Tries again to write what could not be written.
    pub(crate) async fn save_again(&self, shared: &Shared) -> io::Result<()> {
        let record = self.record.lock().await;
        self.save(shared, &record).await
    }

    /// Sends the event of the last change (again).
    pub(crate) async fn announce(&self, shared: &Shared) {
        let record = self.record.lock().await;
        self.send(shared, &record);
    }

    async fn moving(&self) -> Result<MutexGuard<'_, Record>, NotMoved> {
        let record = self.record.lock().await;
        if record.status == Status::InProgress { Ok(record) } else { Err(NotMoved::Stopping) }
    }

    /// Saves and announces a change.
    async fn settle(&self, shared: &Shared, record: &mut Record) -> Result<(), NotMoved> {
        let saved = self.save(shared, record).await;
        self.in_progress.store(record.status == Status::InProgress, Ordering::Release);
        self.ended.store(record.status.ended(), Ordering::Release);
        self.send(shared, record);
        saved.map_err(|error| NotMoved::Unsaved(error.to_string()))
    }

    fn send(&self, shared: &Shared, record: &Record) {
        let model = shared.layout.model(&self.request.name);
        // Nobody listens when this fails.
        let _ = shared.events.send(describe::event(&shared.owner, record, &self.request, &model));
    }

    async fn save(&self, shared: &Shared, record: &Record) -> io::Result<()> {
        let (layout, name, record) = (shared.layout.clone(), self.request.name.clone(), record.clone());
        let path = layout.record(&name);
        let written = tokio::task::spawn_blocking(move || store::save(&layout, &name, &record)).await;
        written.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
        })
    }
}

/// A number that no other service has, from where and when it was opened.
pub(crate) fn service_mark(layout: &Layout) -> u64 {
    let root = layout.root().as_os_str().as_encoded_bytes();
    let process = std::process::id().to_le_bytes();
    seeded::hash(&[b"service", root, &process, &clock::now().to_le_bytes()])
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_are_different_and_usable() {
        let all: std::collections::BTreeSet<String> = (0..70_000).map(super::address).collect();
        assert_eq!(all.len(), 70_000);
        for number in [0, 253, 254, u32::MAX] {
            let address: std::net::Ipv4Addr = super::address(number).parse().unwrap();
            assert!(address.is_loopback() && address.octets()[3] != 0 && address.octets()[3] != 255);
        }
    }
}
