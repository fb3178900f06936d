//! Takes one job from its present state to its end: starts, watches, stops and restarts its hosts.
//!
//! Assumes to be the job's only driver. Between two states it always listens for a stop and for the service's
//! shutdown. Must never leave a process behind, nor panic: whatever goes wrong is the job's failure reason.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::clock;
use super::container::{self, RunPlan};
use super::failure;
use super::hosts::{HostExit, Hosts};
use super::job::{Job, NotMoved, Shared};
use super::record::{End, Run, Secondary, StopCause};
use super::seeded;

/// Grace of hosts whose job has failed on another host: there is nothing to save.
const FAILED_GRACE_MAX: Duration = Duration::from_secs(30);
/// Grace at a shutdown of the service, when somebody waits at the terminal.
const SHUTDOWN_GRACE_MAX: Duration = Duration::from_secs(3);
/// Attempts to write the record of an ended job, a second and then twice as long apart.
const SAVE_ATTEMPTS_MAX: u32 = 12;
/// A timer that is not set.
const NEVER: Duration = Duration::from_hours(10 * 365 * 24);

/// How a run ended.
enum RunEnd {
    Over(End),
    Interrupted,
    /// The service shuts down.
    Suspended,
}

/// What made the driver stop watching.
#[derive(Debug)]
enum Verdict {
    AllDone,
    HostFailed(usize, HostExit),
    Stop,
    MaxRuntime,
    MaxWait,
    Interruption,
    Shutdown,
    Broken(String),
}

/// Drives the job to its end, or until the service shuts down.
pub(crate) async fn drive(shared: Arc<Shared>, job: Arc<Job>) {
    let driver =
        Driver { stopping: job.stopping(), closing: shared.closing.subscribe(), shared: &shared, job: &job };
    if let Some(end) = driver.live().await {
        let saved = job.finish(&shared, end).await;
        if saved.is_err() {
            driver.keep_saving().await;
        }
    }
}

struct Driver<'a> {
    shared: &'a Shared,
    job: &'a Job,
    stopping: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
}

impl Driver<'_> {
    /// Runs the job as often as it takes; `None` when the service shuts down first.
    async fn live(&self) -> Option<End> {
        loop {
            if self.job.record().await.secondary == Secondary::Interrupted {
                match self.wait(self.shared.config.delays.restart).await {
                    Some(Verdict::Shutdown) => return None,
                    Some(Verdict::MaxWait) => return Some(End::MaxWait),
                    Some(_) => return Some(End::Completed),
                    None => {}
                }
                if let Err(not_moved) = self.job.enter(self.shared, Secondary::Starting).await {
                    return Some(end_of(not_moved));
                }
            }
            let ended = match self.run().await {
                Ok(ended) => ended,
                Err(not_moved) => RunEnd::Over(end_of(not_moved)),
            };
            match ended {
                RunEnd::Over(end) => return Some(end),
                RunEnd::Suspended => return self.suspend().await,
                RunEnd::Interrupted => {
                    if let Err(not_moved) = self.job.interrupt(self.shared).await {
                        return Some(end_of(not_moved));
                    }
                }
            }
        }
    }

    /// What is noted when the service shuts down: a stop is over, a spot job waits, an on-demand job is lost when the
    /// service opens again.
    async fn suspend(&self) -> Option<End> {
        if *self.stopping.borrow() {
            return Some(End::Completed);
        }
        let cut = self.job.record().await.runs.last().is_some_and(|run| run.ended.is_none());
        if !cut {
            return None;
        }
        let saved = if self.job.request.spot {
            self.job.interrupt(self.shared).await
        } else {
            self.job.end_run(self.shared).await
        };
        match saved {
            Err(NotMoved::Stopping) => Some(End::Completed),
            // The record on disk says that the run was cut, which is as good.
            Ok(()) | Err(NotMoved::Unsaved(_)) => None,
        }
    }

    /// One start of the job, from `Starting` to the last process's end.
    async fn run(&self) -> Result<RunEnd, NotMoved> {
        if let Some(verdict) = self.wait(self.shared.config.delays.start).await {
            return Ok(without_instances(&verdict));
        }
        let run = self.job.begin_run(self.shared).await?;
        self.job.enter(self.shared, Secondary::Downloading).await?;
        let containers = match self.prepare(&run).await {
            Ok(containers) => containers,
            Err(reason) => return Ok(RunEnd::Over(End::Failed(reason))),
        };
        let (tell, mut troubles) = mpsc::unbounded_channel();
        let started = Hosts::start(self.shared, &self.job.request.name, &run, containers, &tell);
        drop(tell);
        let mut hosts = match started {
            Ok(hosts) => hosts,
            Err(reason) => return Ok(RunEnd::Over(End::Failed(format!("InternalServerError: {reason}")))),
        };
        let verdict = match self.job.enter(self.shared, Secondary::Training).await {
            Ok(()) => self.watch(&mut hosts, &mut troubles, &run).await,
            Err(NotMoved::Stopping) => Verdict::Stop,
            Err(NotMoved::Unsaved(error)) => Verdict::Broken(error),
        };
        self.stop(&mut hosts, &verdict).await;
        hosts.finish_logs().await;
        self.conclude(verdict, &mut troubles).await
    }

    async fn prepare(&self, run: &Run) -> Result<Vec<container::Container>, String> {
        let request = self.job.request.clone();
        let addresses = self.shared.addresses(request.instance_count);
        let plan = RunPlan {
            arn: self.shared.owner.arn(&request.name),
            attempt: run.attempt.clone(),
            addresses: request.hosts().into_iter().zip(addresses).collect(),
        };
        let layout = self.shared.layout.clone();
        match spawn_blocking(move || container::prepare(&layout, &request, &plan)).await {
            Ok(prepared) => prepared.map_err(|error| error.to_string()),
            Err(error) => Err(format!("InternalServerError: cannot prepare the hosts: {error}")),
        }
    }

    /// Waits until something ends the run.
    async fn watch(
        &self,
        hosts: &mut Hosts,
        troubles: &mut mpsc::UnboundedReceiver<String>,
        run: &Run,
    ) -> Verdict {
        let (max_runtime, max_wait, interruption) = self.deadlines(run).await;
        let (mut stopping, mut closing) = (self.stopping.clone(), self.closing.clone());
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return Verdict::Stop,
                _ = closing.wait_for(|closing| *closing) => return Verdict::Shutdown,
                Some(trouble) = troubles.recv() => return Verdict::Broken(trouble),
                exit = hosts.next_exit() => match exit {
                    None => return Verdict::AllDone,
                    Some((_, HostExit::Code(0))) => {}
                    Some((host, exit)) => return Verdict::HostFailed(host, exit),
                },
                () = sleep_until(max_runtime) => return Verdict::MaxRuntime,
                () = sleep_until(max_wait) => return Verdict::MaxWait,
                () = sleep_until(interruption) => return Verdict::Interruption,
            }
        }
    }

    /// When the run is stopped at the latest, when the job has waited too long, when it is interrupted.
    async fn deadlines(&self, run: &Run) -> (Instant, Instant, Instant) {
        let (now, time) = (Instant::now(), clock::now());
        let request = &self.job.request;
        let record = self.job.record().await;
        let started = record.runs.last().and_then(|run| run.started).unwrap_or(run.stream);
        let ran =
            clock::between(record.ran(), clock::length(Duration::from_secs(request.max_runtime_seconds)));
        let runtime_left = ran.saturating_sub(clock::between(started, time));
        let wait_left = self.wait_left(record.created, time);
        let config = &self.shared.config;
        let rate = if request.spot { config.spot_interruptions_per_hour } else { 0.0 };
        let interruption = seeded::interruption(config.seed, &request.name, record.runs.len(), rate);
        (now + runtime_left, now + wait_left, now + interruption.unwrap_or(NEVER).min(NEVER))
    }

    fn wait_left(&self, created: i64, time: i64) -> Duration {
        self.job.request.max_wait_seconds.map_or(NEVER, |seconds| {
            Duration::from_secs(seconds).min(NEVER).saturating_sub(clock::between(created, time))
        })
    }

    /// Waits without instances; what ended the waiting early.
    async fn wait(&self, delay: Duration) -> Option<Verdict> {
        let wait_left = self.wait_left(self.job.created, clock::now());
        let (mut stopping, mut closing) = (self.stopping.clone(), self.closing.clone());
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => Some(Verdict::Stop),
            _ = closing.wait_for(|closing| *closing) => Some(Verdict::Shutdown),
            () = sleep(wait_left) => Some(Verdict::MaxWait),
            () = sleep(delay) => None,
        }
    }

    /// Ends what still runs, with as much grace as the reason deserves.
    async fn stop(&self, hosts: &mut Hosts, verdict: &Verdict) {
        let grace = self.shared.config.grace;
        let grace = match verdict {
            Verdict::AllDone => return,
            Verdict::HostFailed(..) | Verdict::Broken(_) => grace.min(FAILED_GRACE_MAX),
            Verdict::Shutdown => grace.min(SHUTDOWN_GRACE_MAX),
            Verdict::MaxRuntime => self.note_stop(StopCause::MaxRuntime).await,
            Verdict::MaxWait => self.note_stop(StopCause::MaxWait).await,
            Verdict::Stop | Verdict::Interruption => grace,
        };
        let mut closing = self.closing.clone();
        let hurried = !matches!(verdict, Verdict::Shutdown);
        tokio::select! {
            () = hosts.stop(grace) => return,
            _ = closing.wait_for(|closing| *closing), if hurried => {}
        }
        hosts.stop(grace.min(SHUTDOWN_GRACE_MAX)).await;
    }

    /// A limit stops the job; somebody else's stop that came first stands.
    async fn note_stop(&self, cause: StopCause) -> Duration {
        let _ = self.job.stop(self.shared, cause).await;
        self.shared.config.grace
    }

    /// What the end of the run means for the job.
    async fn conclude(
        &self,
        verdict: Verdict,
        troubles: &mut mpsc::UnboundedReceiver<String>,
    ) -> Result<RunEnd, NotMoved> {
        match verdict {
            Verdict::Interruption => Ok(RunEnd::Interrupted),
            Verdict::Shutdown => Ok(RunEnd::Suspended),
            Verdict::Broken(trouble) => Err(NotMoved::Unsaved(trouble)),
            // A stop that was noted decides.
            Verdict::Stop | Verdict::MaxRuntime | Verdict::MaxWait => Ok(RunEnd::Over(End::Completed)),
            Verdict::HostFailed(index, exit) => {
                Ok(RunEnd::Over(End::Failed(self.failure(index, exit).await)))
            }
            Verdict::AllDone => {
                if let Ok(trouble) = troubles.try_recv() {
                    return Err(NotMoved::Unsaved(trouble));
                }
                self.job.enter(self.shared, Secondary::Uploading).await?;
                match self.upload().await {
                    Some(Verdict::Shutdown) | None => Ok(RunEnd::Over(End::Completed)),
                    Some(other) => Ok(without_instances(&other)),
                }
            }
        }
    }

    async fn upload(&self) -> Option<Verdict> {
        let delay = self.shared.config.delays.upload;
        let (mut stopping, mut closing) = (self.stopping.clone(), self.closing.clone());
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => Some(Verdict::Stop),
            _ = closing.wait_for(|closing| *closing) => Some(Verdict::Shutdown),
            () = sleep(delay) => None,
        }
    }

    async fn failure(&self, index: usize, exit: HostExit) -> String {
        let host = self.job.request.hosts().into_iter().nth(index).unwrap_or_default();
        let file = self.shared.layout.host(&self.job.request.name, &host).join("output/failure");
        let reading = spawn_blocking(move || failure::reason(&host, &exit, Path::new(&file)));
        reading
            .await
            .unwrap_or_else(|error| format!("InternalServerError: the failure cannot be read: {error}"))
    }

    /// The end of the job is true even if the disk is full; it is written as soon as there is room.
    async fn keep_saving(&self) {
        let mut closing = self.closing.clone();
        for attempt in 0..SAVE_ATTEMPTS_MAX {
            let delay = Duration::from_secs(1 << attempt.min(6));
            let closed = timeout(delay, closing.wait_for(|closing| *closing)).await.is_ok();
            if self.job.save_again(self.shared).await.is_ok() || closed {
                return;
            }
        }
    }
}

/// The end of a job that could not be moved on.
fn end_of(not_moved: NotMoved) -> End {
    match not_moved {
        // The stop decides how the job ends.
        NotMoved::Stopping => End::Completed,
        NotMoved::Unsaved(error) => End::Failed(format!("InternalServerError: {error}")),
    }
}

/// The end of a wait that was cut short.
fn without_instances(verdict: &Verdict) -> RunEnd {
    match verdict {
        Verdict::Shutdown => RunEnd::Suspended,
        Verdict::MaxWait => RunEnd::Over(End::MaxWait),
        _ => RunEnd::Over(End::Completed),
    }
}
