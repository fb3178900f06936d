//! The life of a training job: its states and when they change.

use use_cases::ports::training::LogLine;

use super::World;
use super::queue::{Event, Tick};
use super::training::LogStream;
use crate::fault::Kind;
use crate::plan::MINUTE;
use tuning::unit::time::Time;

/// Failure reason of a job without capacity.
const NO_CAPACITY: &str = "CapacityError: Unable to provision requested ML compute capacity";

impl World {
    /// Returns a time as the service reports it, possibly cut to whole seconds.
    fn reported_time(&self, ms: i64) -> i64 {
        if self.plan.whole_seconds { ms.div_euclid(1_000) * 1_000 } else { ms }
    }

    pub(super) fn tick_after(&mut self, index: usize, ms: i64, tick: Tick) {
        let generation = self.training.jobs[index].generation;
        self.queue.push(self.now + ms, Event::Tick { job: index, generation, tick });
    }

    /// Moves the job to a state and sends an event.
    pub(crate) fn enter(&mut self, index: usize, status: &str, secondary: &str) {
        let (now, reported) = (self.now, self.reported_time(self.now));
        let job = &mut self.training.jobs[index];
        status.clone_into(&mut job.now.status);
        secondary.clone_into(&mut job.now.secondary_status);
        job.now.modified = Time(reported);
        job.transitions.push((secondary.to_owned(), reported));
        job.history.push((now, job.now.clone()));
        let name = job.now.name.clone();
        self.trace.line(now, || format!("job {name} is {status}/{secondary}"));
        self.send_job_event(index);
    }

    pub(crate) fn begin_job(&mut self, index: usize) {
        let startup = self.training.jobs[index].dice.between(5_000, 120_000);
        let pending = self.pending_ms(index);
        self.training.jobs[index].pended_ms = pending;
        if pending > 0 {
            self.tick_after(index, startup, Tick::Pends);
        }
        self.tick_after(index, startup + pending, Tick::Launched);
        let late = self.training.jobs[index].fate.limit_late_ms;
        if let Some(wait) = self.training.jobs[index].max_wait_ms {
            self.queue.push(
                self.now + wait + late,
                Event::Tick { job: index, generation: u32::MAX, tick: Tick::WaitOver },
            );
        }
    }

    /// Draws how long the job waits for its instances besides its startup, in ms. No event is sent meanwhile.
    fn pending_ms(&mut self, index: usize) -> i64 {
        let Some(most) = self.training.jobs[index].max_pending_ms else { return 0 };
        if !self.faults.strikes(Kind::JobPends) {
            return 0;
        }
        self.training.jobs[index].dice.between(10 * MINUTE, most)
    }

    /// Handles an event of a job, unless it is outdated.
    pub(crate) fn tick(&mut self, index: usize, generation: u32, tick: Tick) {
        if tick == Tick::Deleted {
            return self.delete_job(index);
        }
        let job = &self.training.jobs[index];
        let current =
            generation == job.generation || (generation == u32::MAX && job.now.status == "InProgress");
        if job.is_ended() || !current {
            return;
        }
        match tick {
            Tick::Pends => self.enter(index, "InProgress", "Pending"),
            Tick::Launched => self.launched(index),
            Tick::Trains => self.trains(index),
            Tick::Epoch => self.epoch(index),
            Tick::Saved => self.saved(index),
            Tick::Uploaded => self.end_job(index, "Completed", "Completed", None),
            Tick::Stopped(why) => self.end_job(index, "Stopped", why, None),
            Tick::RuntimeOver => self.stopping(index, Tick::Stopped("MaxRuntimeExceeded")),
            Tick::WaitOver => self.stopping(index, Tick::Stopped("MaxWaitTimeExceeded")),
            Tick::Deleted => {}
        }
    }

    fn launched(&mut self, index: usize) {
        let reported = self.reported_time(self.now);
        let job = &mut self.training.jobs[index];
        if job.fate.capacity_error {
            return self.end_job(index, "Failed", "Failed", Some(NO_CAPACITY));
        }
        if let Some(ends) = self.lacks_capacity(index) {
            return if ends {
                self.end_job(index, "Failed", "Failed", Some(NO_CAPACITY));
            } else {
                self.waits_for_capacity(index);
            };
        }
        let job = &mut self.training.jobs[index];
        job.now.started = job.now.started.or(Some(Time(reported)));
        job.runs_since = Some(self.now);
        self.training.take(index, self.now);
        let job = &mut self.training.jobs[index];
        let before = if self.plan.runtime_per_attempt { 0 } else { job.ran_ms };
        let left = (job.max_runtime_ms - before).max(0);
        let download = job.fate.download_ms.unwrap_or(job.dice.between(1_000, 30_000));
        let uncounted = job.fate.download_ms.unwrap_or(0) + job.fate.limit_late_ms;
        self.enter(index, "InProgress", "Downloading");
        self.tick_after(index, download, Tick::Trains);
        self.tick_after(index, left + uncounted, Tick::RuntimeOver);
    }

    fn trains(&mut self, index: usize) {
        self.find_checkpoint(index);
        let from_zero = self.faults.strikes(Kind::RestartFromZero);
        let (now, job) = (self.now, &mut self.training.jobs[index]);
        job.from = if from_zero { 0 } else { job.checkpoint };
        job.epoch = job.from;
        for host in 1..=job.program.hosts {
            let name = format!("{}/algo-{host}-{now}", job.now.name);
            job.streams.push(LogStream { name, lines: Vec::new(), sent: 0, flush_due: false });
        }
        let epoch_ms = job.program.epoch_ms;
        self.enter(index, "InProgress", "Training");
        self.tick_after(index, epoch_ms, Tick::Epoch);
    }

    fn epoch(&mut self, index: usize) {
        let job = &mut self.training.jobs[index];
        let stopping = job.now.status == "Stopping";
        if job.epoch < job.program.epochs {
            job.epoch += 1;
            if job.epoch.is_multiple_of(job.program.checkpoint_every) {
                self.save_checkpoint(index);
            }
            self.log(index);
        } else if job.epoch > 0 && job.from == job.epoch && job.program.repeats_last {
            self.log(index);
        }
        let job = &mut self.training.jobs[index];
        let (epoch, fate, next) = (job.epoch, job.fate, job.program.epoch_ms);
        if let Some((_, reason)) = fate.fails.filter(|(after, _)| *after <= epoch && !stopping) {
            return self.end_job(index, "Failed", "Failed", Some(reason));
        }
        if fate.deleted_after.is_some_and(|after| after <= epoch) {
            return self.delete_job(index);
        }
        if fate.interrupted_after.is_some_and(|after| after <= epoch) && !stopping {
            return self.interrupt(index);
        }
        if fate.hangs_after.is_some_and(|after| after <= epoch) {
            return;
        }
        if fate.stopped_after.is_some_and(|after| after <= epoch) && !stopping {
            job.fate.stopped_after = None;
            self.stopping(index, Tick::Stopped("Stopped"));
        }
        if epoch >= fate.ends_after.min(self.training.jobs[index].program.epochs) {
            let saves = self.training.jobs[index].program.saves_ms;
            return self.tick_after(index, saves, Tick::Saved);
        }
        self.tick_after(index, next, Tick::Epoch);
    }

    /// Ends the program of the job. Its model is saved.
    fn saved(&mut self, index: usize) {
        self.save_checkpoint(index);
        let job = &mut self.training.jobs[index];
        job.generation += 1;
        let upload = job.fate.upload_ms.unwrap_or(job.dice.between(500, 30_000));
        // A program that ends while it is being stopped can count as completed.
        let stopped = job.now.status == "Stopping" && job.dice.chance(0.5);
        let status = job.now.status.clone();
        self.enter(index, &status, "Uploading");
        let end = if stopped { Tick::Stopped("Stopped") } else { Tick::Uploaded };
        self.tick_after(index, upload, end);
    }

    /// Interrupts the job: its instances are taken away, and new ones start later.
    fn interrupt(&mut self, index: usize) {
        let again = self.faults.strikes(Kind::JobInterrupted);
        let now = self.now;
        let job = &mut self.training.jobs[index];
        job.generation += 1;
        job.ran_ms += job.runs_since.take().map_or(0, |since| now - since);
        job.now.interruptions += 1;
        let later = job.epoch.saturating_add(job.dice.count(1, 5));
        job.fate.interrupted_after = again.then_some(later);
        let wait = job.dice.between(20_000, 1_200_000);
        self.enter(index, "InProgress", "Interrupted");
        self.tick_after(index, wait, Tick::Launched);
    }

    /// Begins to stop the job: it stops within the grace period and uploads its model.
    pub(crate) fn stopping(&mut self, index: usize, end: Tick) {
        let job = &mut self.training.jobs[index];
        if job.now.status != "InProgress" {
            return;
        }
        let running = job.runs_since.is_some();
        let slowly = job.fate.stops_slowly && running;
        // The program of a slowly stopping job continues until it is killed. The pending ticks of other jobs are void.
        if !slowly || matches!(end, Tick::Stopped("MaxRuntimeExceeded" | "MaxWaitTimeExceeded")) {
            job.generation += 1;
        }
        let wait = match (running, slowly) {
            (false, _) => job.dice.between(100, 5_000),
            (true, false) => job.dice.between(1_000, 30_000),
            (true, true) => job.dice.between(60_000, 295_000),
        };
        let upload = job.fate.upload_ms.filter(|_| running).unwrap_or(0);
        self.enter(index, "Stopping", "Stopping");
        self.tick_after(index, wait + upload, end);
    }

    fn end_job(&mut self, index: usize, status: &str, secondary: &str, reason: Option<&str>) {
        let (now, reported) = (self.now, self.reported_time(self.now));
        let job = &mut self.training.jobs[index];
        job.generation += 1;
        job.ran_ms += job.runs_since.take().map_or(0, |since| now - since);
        if job.now.started.is_some() {
            job.now.ended = Some(Time(reported));
            // Managed spot training bills less than the running time.
            let billed = if job.max_wait_ms.is_some() {
                job.ran_ms * job.dice.between(30, 100) / 100
            } else {
                job.ran_ms
            };
            let most = if job.fate.is_unbounded() { i64::MAX } else { job.worst_seconds() };
            let mut seconds = (billed / 1_000).clamp(0, most);
            job.overran = seconds > job.worst_seconds();
            if let Some(more) = job.fate.overrun_seconds {
                seconds = job.worst_seconds() + more;
                job.overran = true;
            }
            job.now.billable_seconds = u64::try_from(seconds).ok();
            job.bill_at = now + job.fate.bill_late_ms.unwrap_or(0);
            let first = job.now.billable_seconds.map(|seconds| seconds / 2);
            job.first_bill = first.zip(job.fate.bill_rises_ms.map(|ms| job.bill_at + ms));
        }
        job.now.failure_reason = reason.map(str::to_owned);
        self.training.alive -= 1;
        let deleted = job.fate.deleted_after.is_some();
        self.training.keep(index, now);
        let job = &mut self.training.jobs[index];
        let soon = job.dice.between(0, 30 * MINUTE);
        self.enter(index, status, secondary);
        if deleted {
            self.tick_after(index, soon, Tick::Deleted);
        }
    }

    /// Deletes the job, running or not, without an event.
    fn delete_job(&mut self, index: usize) {
        let now = self.now;
        // The service does not delete a job whose instances it keeps.
        if self.training.keeps(index, now) {
            return;
        }
        let job = &mut self.training.jobs[index];
        job.deleted = true;
        job.generation += 1;
        let name = job.now.name.clone();
        self.check.deleted(&job.id, job.key);
        self.trace.line(now, || format!("job {name} is deleted"));
        if job.is_ended() {
            return;
        }
        job.ran_ms += job.runs_since.take().map_or(0, |since| now - since);
        "Stopped".clone_into(&mut job.now.status);
        job.now.billable_seconds = u64::try_from((job.ran_ms / 1_000).min(job.worst_seconds())).ok();
        self.training.alive -= 1;
    }

    /// Appends the line of an epoch to the job's log on each logging host.
    fn log(&mut self, index: usize) {
        let now = self.now;
        let job = &mut self.training.jobs[index];
        let hosts = usize::try_from(job.program.hosts).unwrap_or(1);
        if job.program.value(job.epoch).is_some() {
            let (first, last) = job.logged.unwrap_or((job.epoch, job.epoch));
            if job.epoch > last || job.logged.is_none() {
                job.furthest_at = now;
            }
            job.logged = Some((first.min(job.epoch), last.max(job.epoch)));
        }
        // The streams of the current run are the last ones.
        let first = job.streams.len().saturating_sub(hosts);
        for (host, stream) in job.streams.iter_mut().skip(first).enumerate() {
            let message = match host {
                0 => job.program.line(job.epoch, job.from),
                _ => job.program.nonsense(job.epoch, job.from),
            };
            let id = format!("{:020}{:06}", now, stream.lines.len());
            let name = stream.name.clone();
            stream.lines.push(LogLine { stream: name, id, timestamp: Time(now), message });
            if !std::mem::replace(&mut stream.flush_due, true) {
                let (least, most) = self.plan.log_gather_ms;
                let wait = job.dice.between(least, most);
                self.queue.push(now + wait, Event::Flush { job: index, stream: first + host });
            }
        }
    }
}
