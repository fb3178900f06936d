//! The training service in virtual time: running jobs, their next events, and the random draws.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use search::seed::{Rng, child};
use tuning::log::fact::{JobEnd, JobKey};

use crate::setting::Setting;

/// What happens to a job, with the generation of the job for which it was scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Epoch(JobKey, u32),
    /// The running-time limit is reached.
    Limit(JobKey, u32),
    /// The instances are taken away.
    Interrupted(JobKey, u32),
    /// The program ends after its last epoch.
    Ends(JobKey, u32),
    Billed(JobKey),
}

/// Events by time, then by their order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(i64, u64, Event)>>,
    pushed: u64,
}

impl Queue {
    pub(crate) fn push(&mut self, at: i64, event: Event) {
        self.pushed = self.pushed.saturating_add(1);
        self.heap.push(Reverse((at, self.pushed, event)));
    }

    pub(crate) fn next_at(&self) -> Option<i64> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.heap.pop().map(|Reverse((_, _, event))| event)
    }
}

/// A training job. Times are in ms since the submission.
#[derive(Debug)]
pub(crate) struct Job {
    /// When its instances began to run.
    pub(crate) started: i64,
    /// The last trained epoch.
    pub(crate) epoch: u32,
    /// The epoch after which it ends.
    pub(crate) to: u32,
    /// The number of its log stream, from 0.
    pub(crate) stream: u32,
    /// Lines of its present log stream.
    pub(crate) line: u32,
    /// Changes when its scheduled events become void.
    pub(crate) generation: u32,
    pub(crate) ended: Option<i64>,
    pub(crate) how: Option<JobEnd>,
    /// When the present run begins its first epoch.
    ready: i64,
    /// When its limit ends it.
    limit: i64,
    /// When its instances are taken away.
    interruption: Option<i64>,
    runs: u32,
}

impl Job {
    /// Returns a job that trains the epochs after `from` up to `to`.
    pub(crate) fn new(now: i64, from: u32, to: u32, max_runtime_seconds: u64) -> Self {
        let limit = i64::try_from(max_runtime_seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
        Self {
            started: now,
            epoch: from.min(to.saturating_sub(1)),
            to,
            stream: 0,
            line: 0,
            generation: 0,
            ended: None,
            how: None,
            ready: now,
            limit: now.saturating_add(limit),
            interruption: None,
            runs: 0,
        }
    }

    /// Begins a run whose start-up takes `startup` ms, up to an interruption after so many ms. `resumes`: it continues
    /// after its last epoch.
    pub(crate) fn run(&mut self, now: i64, startup: i64, interruption: Option<i64>, resumes: bool) {
        if self.runs > 0 && !resumes {
            self.epoch = 0;
        }
        self.generation = self.generation.saturating_add(1);
        self.stream = self.runs;
        self.runs = self.runs.saturating_add(1);
        self.line = 0;
        self.ready = now.saturating_add(startup);
        self.interruption = interruption.map(|after| now.saturating_add(after));
    }

    /// Returns the next event of the job, whose next epoch takes `epoch` ms.
    pub(crate) fn next(&self, now: i64, epoch: i64, key: JobKey) -> (i64, Event) {
        let trained = now.max(self.ready).saturating_add(epoch);
        let interruption = self.interruption.unwrap_or(i64::MAX);
        if self.limit < trained.min(interruption) {
            (self.limit, Event::Limit(key, self.generation))
        } else if interruption < trained {
            (interruption, Event::Interrupted(key, self.generation))
        } else {
            (trained, Event::Epoch(key, self.generation))
        }
    }

    pub(crate) fn trains(&mut self, now: i64) {
        self.epoch = self.epoch.saturating_add(1);
        self.line = self.line.saturating_add(1);
        self.ready = now;
    }

    pub(crate) fn end(&mut self, now: i64, how: JobEnd) {
        self.ended = Some(now);
        self.how = Some(how);
    }
}

#[derive(Debug)]
pub(crate) struct Draws {
    times: Rng,
    interruptions: Rng,
    jitter: f64,
    rate: f64,
}

impl Draws {
    pub(crate) fn new(seed: u64, setting: &Setting) -> Self {
        Self {
            times: Rng::new(child(seed, "times", 0)),
            interruptions: Rng::new(child(seed, "interruptions", 0)),
            jitter: setting.time_jitter,
            rate: setting.interruptions_per_hour,
        }
    }

    /// Returns how long something takes that usually takes `seconds`.
    pub(crate) fn jittered(&mut self, seconds: f64) -> f64 {
        if self.jitter > 0.0 { seconds * libm::exp(self.jitter * normal(&mut self.times)) } else { seconds }
    }

    /// Returns the seconds to the next interruption of a job; `None` = never.
    pub(crate) fn until_interruption(&mut self) -> Option<f64> {
        let uniform = 1.0 - self.interruptions.next_f64();
        (self.rate > 0.0).then(|| -libm::log(uniform) * 3_600.0 / self.rate)
    }
}

/// Returns the noise of an epoch of a trial, a standard normal number. It is the same in each job of the trial.
pub fn noise(seed: u64, trial: u32, epoch: u32) -> f64 {
    let index = u64::from(trial) << 32 | u64::from(epoch);
    normal(&mut Rng::new(child(seed, "noise", index)))
}

/// Returns a standard normal number: G. Box, M. Muller, "A note on the generation of random normal deviates", 1958.
fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = (1.0 - rng.next_f64(), rng.next_f64());
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)
}
