//! Drives one job from its current state to its end: starts, watches, stops and restarts its hosts.
//!
//! A job has one driver. In every state, the driver reacts to a stop and to the shutdown of the service. It leaves no
//! process behind and does not panic: every error becomes the job's failure reason.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::clock;
use super::container::{self, RunPlan};
use super::failure::{self, FailedHost};
use super::hosts::{HostExit, Hosts};
use super::job::{Job, Shared, UpdateError};
use super::record::{End, Record, Run, Secondary, StopCause};
use super::seeded;
use super::slots::{Held, Slot};
use tuning::unit::time::{Millis, Time};

/// The longest grace period after another host has failed: there is nothing to save.
const FAILED_GRACE_MAX: Duration = Duration::from_secs(30);
/// The longest grace period at a shutdown, because the user waits at the terminal.
const SHUTDOWN_GRACE_MAX: Duration = Duration::from_secs(3);
/// The maximum number of attempts to write the record of an ended job. The first pause is 1 s, and each further pause
/// is twice as long, up to 64 s.
const SAVE_ATTEMPTS_MAX: u32 = 12;
const NEVER: Duration = Duration::from_hours(10 * 365 * 24);

enum RunEnd {
    /// The job ends too.
    Ended(End),
    /// The job restarts later.
    Interrupted,
    /// The service shuts down.
    Suspended,
}

/// Why the driver stopped watching a run.
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
    let driver = Driver {
        stopping: job.stopping(),
        closing: shared.closing.subscribe(),
        shared: &shared,
        job: &job,
        queued: OnceLock::new(),
    };
    if let Some(end) = driver.run_to_end().await {
        let saved = job.finish(&shared, end).await;
        if saved.is_err() {
            driver.retry_save().await;
        }
    }
}

struct Driver<'a> {
    shared: &'a Shared,
    job: &'a Job,
    stopping: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
    /// How long the job waited for slots. Other jobs of this machine took them, so this is no lack of capacity.
    queued: OnceLock<Millis>,
}

impl Driver<'_> {
    /// Runs the job, with restarts after interruptions, until it ends. Returns `None` when the service shuts down
    /// first.
    async fn run_to_end(&self) -> Option<End> {
        if let Some(reason) = self.shared.slots.refuses(self.job.request.instance_count) {
            return Some(End::Failed(reason));
        }
        let held = match self.wait_for_slots().await {
            Ok(slots) => slots,
            Err(Verdict::Shutdown) => return None,
            Err(_) => return Some(End::Completed),
        };
        loop {
            if self.job.read(|record| record.secondary).await == Secondary::Interrupted {
                match self.wait(self.shared.config.delays.restart).await {
                    Some(Verdict::Shutdown) => return None,
                    Some(Verdict::MaxWait) => return Some(End::MaxWait),
                    Some(_) => return Some(End::Completed),
                    None => {}
                }
                if let Err(error) = self.job.enter(self.shared, Secondary::Starting).await {
                    return Some(end_after(error));
                }
            }
            let ended = match self.run(&held.slots).await {
                Ok(ended) => ended,
                Err(error) => RunEnd::Ended(end_after(error)),
            };
            match ended {
                RunEnd::Ended(end) => return Some(end),
                RunEnd::Suspended => return self.suspend().await,
                RunEnd::Interrupted => {
                    if let Err(error) = self.job.interrupt(self.shared).await {
                        return Some(end_after(error));
                    }
                }
            }
        }
    }

    /// Waits for the slots of the job's hosts. The job keeps them until it ends, also over interruptions. Returns what
    /// ended the wait early, if anything.
    async fn wait_for_slots(&self) -> Result<Held, Verdict> {
        // A job that ran before has waited from its creation to its first run, and waits again now.
        let first_run = self.job.read(|record| record.runs.first().map(|run| run.stream)).await;
        let (before, begun) = match first_run {
            None => (Millis::ZERO, self.job.created),
            Some(first_run) => (first_run - self.job.created, clock::now()),
        };
        let (mut stopping, mut closing) = (self.stopping.clone(), self.closing.clone());
        let acquired = tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => return Err(Verdict::Stop),
            _ = closing.wait_for(|closing| *closing) => return Err(Verdict::Shutdown),
            acquired = self.shared.slots.acquire(self.job.request.instance_count) => acquired,
        };
        let _ = self.queued.set(before + (clock::now() - begun));
        acquired.ok_or(Verdict::Shutdown)
    }

    /// Records the shutdown of the service. A stopping job ends, and a running job is interrupted: it continues when the
    /// service opens again.
    async fn suspend(&self) -> Option<End> {
        if *self.stopping.borrow() {
            return Some(End::Completed);
        }
        let cut = self.job.read(|record| record.runs.last().is_some_and(|run| run.ended.is_none())).await;
        if !cut {
            return None;
        }
        match self.job.interrupt(self.shared).await {
            Err(UpdateError::Stopping) => Some(End::Completed),
            // Without this save, the next open finds an unfinished run and settles the job in the same way.
            Ok(()) | Err(UpdateError::Unsaved(_)) => None,
        }
    }

    /// Runs the job once, from `Starting` to the end of its last process.
    async fn run(&self, slots: &[Slot]) -> Result<RunEnd, UpdateError> {
        if let Some(verdict) = self.wait(self.shared.config.delays.start).await {
            return Ok(end_of_wait(&verdict));
        }
        let run = self.job.begin_run(self.shared).await?;
        self.job.enter(self.shared, Secondary::Downloading).await?;
        let containers = match self.prepare(&run, slots).await {
            Ok(containers) => containers,
            Err(reason) => return Ok(RunEnd::Ended(End::Failed(reason))),
        };
        let (errors, mut log_errors) = mpsc::unbounded_channel();
        let started = Hosts::start(self.shared, &self.job.request.name, &run, containers, &errors);
        // Only the hosts' pumps hold senders now.
        drop(errors);
        let mut hosts = match started {
            Ok(hosts) => hosts,
            Err(reason) => return Ok(RunEnd::Ended(End::Failed(format!("InternalServerError: {reason}")))),
        };
        let verdict = match self.job.enter(self.shared, Secondary::Training).await {
            Ok(()) => self.watch(&mut hosts, &mut log_errors, &run).await,
            Err(UpdateError::Stopping) => Verdict::Stop,
            Err(UpdateError::Unsaved(error)) => Verdict::Broken(error),
        };
        self.stop(&mut hosts, &verdict).await;
        let stderr = hosts.finish_logs().await;
        self.conclude(verdict, &mut log_errors, stderr).await
    }

    async fn prepare(&self, run: &Run, slots: &[Slot]) -> Result<Vec<container::Container>, String> {
        let request = self.job.request.clone();
        let addresses = self.shared.addresses(request.instance_count);
        let plan = RunPlan {
            arn: self.shared.owner_of(self.job).arn(&request.name),
            attempt: run.attempt.clone(),
            addresses: request.hosts().into_iter().zip(addresses).collect(),
            slots: slots.to_vec(),
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
        log_errors: &mut mpsc::UnboundedReceiver<String>,
        run: &Run,
    ) -> Verdict {
        let deadlines = self.job.read(|record| self.deadlines(run, record)).await;
        let (max_runtime, max_wait, interruption) = deadlines;
        let (mut stopping, mut closing) = (self.stopping.clone(), self.closing.clone());
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return Verdict::Stop,
                _ = closing.wait_for(|closing| *closing) => return Verdict::Shutdown,
                Some(error) = log_errors.recv() => return Verdict::Broken(error),
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

    /// Returns the ends of the maximum runtime and of the maximum wait time, and the time of a simulated interruption.
    fn deadlines(&self, run: &Run, record: &Record) -> (Instant, Instant, Instant) {
        let (now, time) = (Instant::now(), clock::now());
        let request = &self.job.request;
        let started = record.runs.last().and_then(|run| run.started).unwrap_or(run.stream);
        let ran = Duration::from(Millis::from_seconds(request.max_runtime_seconds) - record.ran());
        let runtime_left = ran.saturating_sub(Duration::from(time - started));
        // The wait for instances is over if none were lost: then only the running time is limited.
        let waited = record.interruptions() > 0;
        let wait_left = if waited { self.wait_left(record.created, time) } else { NEVER };
        let config = &self.shared.config;
        let rate = if request.spot { config.spot_interruptions_per_hour } else { 0.0 };
        let interruption = seeded::interruption(config.seed, &request.name, record.runs.len(), rate);
        (now + runtime_left, now + wait_left, now + interruption.unwrap_or(NEVER).min(NEVER))
    }

    fn wait_left(&self, created: Time, time: Time) -> Duration {
        let queued = self.queued.get().copied().unwrap_or(Millis::ZERO);
        self.job.request.max_wait_seconds.map_or(NEVER, |seconds| {
            let waited = time - created - queued - self.job.closed;
            Duration::from_secs(seconds).min(NEVER).saturating_sub(Duration::from(waited.or_zero()))
        })
    }

    /// Waits for `delay` without instances. Returns what ended the wait early, if anything.
    async fn wait(&self, delay: Duration) -> Option<Verdict> {
        self.wait_at_most(self.wait_left(self.job.created, clock::now()), delay).await
    }

    /// Waits for `delay`, but at most for `wait_left`. Returns what ended the wait early, if anything.
    async fn wait_at_most(&self, wait_left: Duration, delay: Duration) -> Option<Verdict> {
        let (mut stopping, mut closing) = (self.stopping.clone(), self.closing.clone());
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => Some(Verdict::Stop),
            _ = closing.wait_for(|closing| *closing) => Some(Verdict::Shutdown),
            () = sleep(wait_left) => Some(Verdict::MaxWait),
            () = sleep(delay) => None,
        }
    }

    /// Ends the remaining hosts, with a grace period that depends on the verdict.
    async fn stop(&self, hosts: &mut Hosts, verdict: &Verdict) {
        let grace = self.shared.config.grace;
        let grace = match verdict {
            Verdict::AllDone => return,
            Verdict::HostFailed(..) | Verdict::Broken(_) => grace.min(FAILED_GRACE_MAX),
            Verdict::Shutdown => grace.min(SHUTDOWN_GRACE_MAX),
            Verdict::MaxRuntime => self.record_stop(StopCause::MaxRuntime).await,
            Verdict::MaxWait => self.record_stop(StopCause::MaxWait).await,
            Verdict::Stop | Verdict::Interruption => grace,
        };
        let mut closing = self.closing.clone();
        let may_close = !matches!(verdict, Verdict::Shutdown);
        let killed = tokio::select! {
            killed = hosts.stop(grace) => Some(killed),
            // A shutdown during the grace period shortens it.
            _ = closing.wait_for(|closing| *closing), if may_close => None,
        };
        match killed {
            Some(true) if matches!(verdict, Verdict::Stop | Verdict::MaxRuntime) => {
                self.job.note_killed(grace).await;
            }
            Some(_) => {}
            None => {
                hosts.stop(grace.min(SHUTDOWN_GRACE_MAX)).await;
            }
        }
    }

    /// Records that a limit stops the job, unless a stop is recorded already. Returns the grace period.
    async fn record_stop(&self, cause: StopCause) -> Duration {
        let _ = self.job.stop(self.shared, cause).await;
        self.shared.config.grace
    }

    /// Returns how the run ended, after an upload if every host succeeded. `stderr` has the last lines of each host.
    async fn conclude(
        &self,
        verdict: Verdict,
        log_errors: &mut mpsc::UnboundedReceiver<String>,
        stderr: Vec<String>,
    ) -> Result<RunEnd, UpdateError> {
        match verdict {
            Verdict::Interruption => Ok(RunEnd::Interrupted),
            Verdict::Shutdown => Ok(RunEnd::Suspended),
            Verdict::Broken(error) => Err(UpdateError::Unsaved(error)),
            // The recorded stop decides the status.
            Verdict::Stop | Verdict::MaxRuntime | Verdict::MaxWait => Ok(RunEnd::Ended(End::Completed)),
            Verdict::HostFailed(index, exit) => {
                let stderr = stderr.into_iter().nth(index).unwrap_or_default();
                Ok(RunEnd::Ended(End::Failed(self.failure(index, exit, stderr).await)))
            }
            Verdict::AllDone => {
                if let Ok(error) = log_errors.try_recv() {
                    return Err(UpdateError::Unsaved(error));
                }
                self.job.enter(self.shared, Secondary::Uploading).await?;
                match self.upload().await {
                    Some(Verdict::Shutdown) | None => Ok(RunEnd::Ended(End::Completed)),
                    Some(other) => Ok(end_of_wait(&other)),
                }
            }
        }
    }

    async fn upload(&self) -> Option<Verdict> {
        self.wait_at_most(NEVER, self.shared.config.delays.upload).await
    }

    async fn failure(&self, index: usize, exit: HostExit, stderr: String) -> String {
        let hosts = self.job.request.hosts();
        let has_others = hosts.len() > 1;
        let name = hosts.into_iter().nth(index).unwrap_or_default();
        let file = self.shared.layout.host(&self.job.request.name, &name).join("output/failure");
        let host = FailedHost { name, exit, stderr, has_others };
        let reading = spawn_blocking(move || failure::reason(&host, &file));
        reading
            .await
            .unwrap_or_else(|error| format!("InternalServerError: cannot read the failure reason: {error}"))
    }

    /// Retries writing the record of the ended job, for example until the disk has space again.
    async fn retry_save(&self) {
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

/// Returns the end of a job whose record could not be updated.
fn end_after(error: UpdateError) -> End {
    match error {
        // The recorded stop decides the status.
        UpdateError::Stopping => End::Completed,
        UpdateError::Unsaved(error) => End::Failed(format!("InternalServerError: {error}")),
    }
}

/// Returns the end of a run whose wait ended early.
fn end_of_wait(verdict: &Verdict) -> RunEnd {
    match verdict {
        Verdict::Shutdown => RunEnd::Suspended,
        Verdict::MaxWait => RunEnd::Ended(End::MaxWait),
        Verdict::AllDone
        | Verdict::HostFailed(..)
        | Verdict::Stop
        | Verdict::MaxRuntime
        | Verdict::Interruption
        | Verdict::Broken(_) => RunEnd::Ended(End::Completed),
    }
}
