//! One job in memory: its record behind a lock, and the functions that change, save and announce it.
//!
//! A job has one driver. A stop by the user takes precedence over the driver's changes. A change is announced only
//! after the attempt to save it; the driver treats a failed save as the job's failure.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard, mpsc, watch};

use super::clock;
use super::config::Config;
use super::describe::{self, Owner};
use super::record::{End, Record, Run, Secondary, Status, StopCause};
use super::region::Region;
use super::request::{JobRequest, TAGS_MAX};
use super::seeded;
use super::slots::Slots;
use super::store::{self, Layout};
use tuning::unit::time::{Millis, Time};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) layout: Layout,
    pub(crate) owner: Owner,
    /// Unbounded, so that a slow reader never delays a stop. A job has few changes.
    pub(crate) events: mpsc::UnboundedSender<Value>,
    pub(crate) logs: mpsc::Sender<Vec<u8>>,
    /// Becomes true when the service shuts down.
    pub(crate) closing: watch::Sender<bool>,
    /// The number of the next loopback address.
    pub(crate) next_address: AtomicU32,
    /// Part of the attempt IDs of this service, different for every open service.
    pub(crate) mark: u64,
    pub(crate) slots: Slots,
}

impl Shared {
    /// Returns the owner of a job, with the job's Region.
    pub(crate) fn owner_of(&self, job: &Job) -> Owner {
        self.owner.in_region(job.region.as_ref())
    }

    /// Returns `count` loopback addresses. They repeat after 16 million, so no running job has them.
    pub(crate) fn addresses(&self, count: u32) -> Vec<String> {
        let first = self.next_address.fetch_add(count, Ordering::Relaxed);
        (0..count).map(|index| address(first.wrapping_add(index))).collect()
    }
}

/// Returns address 127.x.y.z, where x is not 0 and z is neither 0 nor 255.
fn address(number: u32) -> String {
    let (low, rest) = (number % 254 + 1, number / 254);
    format!("127.{}.{}.{low}", rest / 256 % 254 + 1, rest % 256)
}

/// Why the driver could not update the job.
#[derive(Debug)]
pub(crate) enum UpdateError {
    /// A stop was requested.
    Stopping,
    /// The record could not be written.
    Unsaved(String),
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) request: JobRequest,
    pub(crate) created: Time,
    /// For how long no service was open since then.
    pub(crate) closed: Millis,
    region: Option<Region>,
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
            closed: record.closed,
            region: record.region.clone(),
            ended: AtomicBool::new(record.status.ended()),
            in_progress: AtomicBool::new(record.status == Status::InProgress),
            stopping: watch::Sender::new(record.status == Status::Stopping),
            record: Mutex::new(record),
        })
    }

    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn in_progress(&self) -> bool {
        self.in_progress.load(Ordering::Acquire)
    }

    /// Reads the record. Gives out no lock, because a caller that awaited under it would block every other one.
    pub(crate) async fn read<R>(&self, read: impl FnOnce(&Record) -> R) -> R {
        read(&*self.record.lock().await)
    }

    /// Returns a receiver that becomes true when a stop is requested.
    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Requests a stop. Returns the status as an error when the job has ended.
    pub(crate) async fn stop(&self, shared: &Shared, cause: StopCause) -> Result<(), Status> {
        let mut record = self.record.lock().await;
        match record.status {
            Status::Completed | Status::Failed | Status::Stopped => Err(record.status),
            Status::Stopping => Ok(()),
            Status::InProgress => {
                record.request_stop(cause, clock::now());
                // The stop counts even if it cannot be saved. After a crash, the job then counts as interrupted.
                let _ = self.settle(shared, &mut record).await;
                self.stopping.send_replace(true);
                Ok(())
            }
        }
    }

    pub(crate) async fn begin_run(&self, shared: &Shared) -> Result<Run, UpdateError> {
        let mut record = self.lock_in_progress().await?;
        let name = &self.request.name;
        let mark = shared.mark;
        let attempt = |number: usize, stream| format!("{name}-{number}-{stream}-{mark:016x}");
        let run = record.begin_run(attempt, clock::now()).clone();
        self.save(shared, &record).await.map_err(|error| UpdateError::Unsaved(error.to_string()))?;
        Ok(run)
    }

    pub(crate) async fn enter(&self, shared: &Shared, secondary: Secondary) -> Result<(), UpdateError> {
        let mut record = self.lock_in_progress().await?;
        record.enter(secondary, clock::now());
        self.settle(shared, &mut record).await
    }

    /// Records an interruption: the job waits for capacity.
    pub(crate) async fn interrupt(&self, shared: &Shared) -> Result<(), UpdateError> {
        let mut record = self.lock_in_progress().await?;
        record.interrupt(clock::now());
        self.settle(shared, &mut record).await
    }

    /// Notes, for the record of the end, that a process did not end within `grace` of SIGTERM.
    pub(crate) async fn note_killed(&self, grace: Duration) {
        let reason =
            format!("the program did not end within {} s of SIGTERM and was killed", grace.as_secs());
        self.record.lock().await.failure_reason = Some(reason);
    }

    pub(crate) async fn finish(&self, shared: &Shared, end: End) -> Result<(), UpdateError> {
        let mut record = self.record.lock().await;
        record.finish(end, clock::now());
        self.settle(shared, &mut record).await
    }

    /// Releases the warm pool to the job `to`, or for good. Returns false if no pool is available. If the release
    /// cannot be saved, the pool stays available.
    pub(crate) async fn release_instances(&self, shared: &Shared, to: Option<&str>) -> io::Result<bool> {
        let mut record = self.record.lock().await;
        let mut changed = record.clone();
        if !changed.release_pool(to.map(ToOwned::to_owned), clock::now()) {
            return Ok(false);
        }
        self.save(shared, &changed).await?;
        *record = changed;
        Ok(true)
    }

    /// Adds tags. Returns false, without a change, if the job would have more than [`TAGS_MAX`].
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

    pub(crate) async fn save_again(&self, shared: &Shared) -> io::Result<()> {
        let record = self.record.lock().await;
        self.save(shared, &record).await
    }

    /// Sends the event of the last change, possibly again.
    pub(crate) async fn announce(&self, shared: &Shared) {
        let record = self.record.lock().await;
        self.send(shared, &record);
    }

    async fn lock_in_progress(&self) -> Result<MutexGuard<'_, Record>, UpdateError> {
        let record = self.record.lock().await;
        if record.status == Status::InProgress { Ok(record) } else { Err(UpdateError::Stopping) }
    }

    /// Saves and announces a change.
    async fn settle(&self, shared: &Shared, record: &mut Record) -> Result<(), UpdateError> {
        let saved = self.save(shared, record).await;
        self.in_progress.store(record.status == Status::InProgress, Ordering::Release);
        self.ended.store(record.status.ended(), Ordering::Release);
        self.send(shared, record);
        saved.map_err(|error| UpdateError::Unsaved(error.to_string()))
    }

    fn send(&self, shared: &Shared, record: &Record) {
        let model = shared.layout.model(&self.request.name);
        // Fails only when the feed is closed.
        let _ = shared.events.send(describe::event(&shared.owner_of(self), record, &self.request, &model));
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

/// Returns a number that is unique to this open service, from its folder, its process and the time.
pub(crate) fn service_mark(layout: &Layout) -> u64 {
    let root = layout.root().as_os_str().as_encoded_bytes();
    let process = std::process::id().to_le_bytes();
    seeded::hash(&[b"service", root, &process, &clock::now().0.to_le_bytes()])
}

#[cfg(test)]
mod tests {
    #[test]
    fn addresses_are_distinct_and_usable() {
        let all: std::collections::BTreeSet<String> = (0..70_000).map(super::address).collect();
        assert_eq!(all.len(), 70_000);
        for number in [0, 253, 254, u32::MAX] {
            let address: std::net::Ipv4Addr = super::address(number).parse().unwrap();
            assert!(address.is_loopback() && address.octets()[3] != 0 && address.octets()[3] != 255);
        }
    }
}
