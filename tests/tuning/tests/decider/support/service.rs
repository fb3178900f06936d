//! The life of one training job in virtual time, as a list of facts.

use search::seed::{Rng, child};
use tuning::definition::{Definition, JobLimits};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine};
use tuning::unit::time::Time;

/// The probability of each fault, from 0 to 1. The default is a perfect service.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    pub(crate) seed: u64,
    /// A fact does not arrive until the liveness phase.
    pub(crate) lost: f64,
    /// A fact arrives twice.
    pub(crate) duplicated: f64,
    /// A fact arrives late, and so after other facts.
    pub(crate) delayed: f64,
    /// Facts arrive in batches.
    pub(crate) batched: f64,
    /// A program fails or ends early, or its job is stopped from outside.
    pub(crate) failed: f64,
    /// A program hangs after an epoch, up to its runtime limit.
    pub(crate) hung: f64,
    /// A capacity error or a service error.
    pub(crate) unserved: f64,
    /// A job is interrupted after an epoch.
    pub(crate) interrupted: f64,
    /// A start is refused.
    pub(crate) refused: f64,
    /// An action is deferred.
    pub(crate) deferred: f64,
    /// A bill never arrives.
    pub(crate) unbilled: f64,
    /// A bill is lower at first.
    pub(crate) risen: f64,
    /// A checkpoint is lost, or an older one is found.
    pub(crate) unsaved: f64,
    /// A value is not a number.
    pub(crate) diverged: f64,
}

/// The life of a job that is not stopped.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    /// The time at which the instances begin to run, in ms; `None` = never.
    pub(crate) started: Option<i64>,
    pub(crate) end: JobEnd,
    pub(crate) end_at: i64,
    pub(crate) interruptions: u32,
    /// The facts and their times, without the end.
    pub(crate) happens: Vec<(i64, Fact)>,
    /// The checkpoints of the trial: (time, epochs).
    pub(crate) checkpoints: Vec<(i64, u32)>,
}

/// The epochs that a job trains.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// Returns the value of a trial at an epoch, which rises to a height of its own for each trial.
pub(crate) fn value(trial: u32, epoch: u32) -> f64 {
    let height = Rng::new(child(1, "height", u64::from(trial))).next_f64();
    height * f64::from(epoch) / (f64::from(epoch) + 1.0)
}

/// Returns the epochs that the program of a trial runs.
///
/// Most programs run to their level or to the maximum resource; some run longer.
pub(crate) fn program_epochs(definition: &Definition, trial: u32, level: Option<u32>) -> u32 {
    let Some(plan) = definition.compared() else { return 3 };
    match level {
        Some(level) if trial % 10 != 3 => level,
        _ if trial % 5 == 3 => plan.max_resource() * 2,
        _ => plan.max_resource(),
    }
}

impl Life {
    /// Returns the life of `key` from `now` on.
    pub(crate) fn new(
        definition: &Definition,
        faults: &Faults,
        key: JobKey,
        (limits, work): (JobLimits, Work),
        now: i64,
    ) -> Self {
        let draws = child(faults.seed, "life", u64::from(key.trial.0) * 1_000 + u64::from(key.attempt));
        let mut rng = Rng::new(draws);
        let mut life = Self {
            started: None,
            end: JobEnd::Completed,
            end_at: now,
            interruptions: 0,
            happens: Vec::new(),
            checkpoints: Vec::new(),
        };
        if rng.next_f64() < faults.unserved {
            let ends = [JobEnd::CapacityError, JobEnd::ServiceError];
            life.end = if definition.terms_of(key.trial).spot {
                JobEnd::MaxWait
            } else {
                ends[usize::from(rng.next_f64() < 0.5)]
            };
            life.end_at = now + 60_000;
            return life;
        }
        life.happens.push((now + 1_000, Fact::JobStarted { job: key }));
        life.phase(now + 2_000, key, JobPhase::Starting);
        life.started = Some(now + 10_000);
        life.phase(now + 10_000, key, JobPhase::Training);
        let ends = (now + 10_000).saturating_add(i64::try_from(limits.max_runtime_seconds * 1_000).unwrap());
        let (end, end_at) = life.train(definition, faults, (key, work), &mut rng, ends);
        life.end = end;
        life.end_at = end_at;
        life.happens.retain(|(at, _)| *at <= end_at);
        life
    }

    /// Trains to the end of the job, and returns how and when the job ends.
    fn train(
        &mut self,
        definition: &Definition,
        faults: &Faults,
        (key, work): (JobKey, Work),
        rng: &mut Rng,
        ends: i64,
    ) -> (JobEnd, i64) {
        let seconds = 5 + i64::from(key.trial.0 % 7);
        let mut now = self.started.unwrap_or(ends) + 5_000;
        let (mut stream, mut done, mut line) = (0, work.from, 0);
        while done < work.to {
            now += seconds * 1_000;
            if now >= ends {
                return (JobEnd::MaxRuntime, ends);
            }
            done += 1;
            line += 1;
            self.checkpoints.push((now, done));
            let index = if definition.epochs.per_attempt { line } else { done } - 1 + definition.epochs.base;
            let diverged = rng.next_f64() < faults.diverged;
            let metric = MetricLine {
                id: format!("{line:05}"),
                at: Time(now),
                index: Some(u64::from(index)),
                value: (!diverged).then(|| value(key.trial.0, done)),
            };
            let name = format!("{key}/{stream}");
            self.happens.push((
                now,
                Fact::MetricsLogged { job: key, stream: name, lines: vec![metric], began: None },
            ));
            if rng.next_f64() < faults.failed {
                let ends = [JobEnd::AlgorithmError, JobEnd::Completed, JobEnd::Stopped, JobEnd::ServiceError];
                let end = ends[usize::from(rng.next_f64() < 0.5) + 2 * usize::from(rng.next_f64() < 0.5)];
                return (end, now + 1_000);
            }
            if rng.next_f64() < faults.hung {
                return (JobEnd::MaxRuntime, ends);
            }
            if rng.next_f64() < faults.interrupted {
                self.interruptions += 1;
                self.phase(now + 1_000, key, JobPhase::Interrupted);
                self.phase(now + 30_000, key, JobPhase::Starting);
                self.phase(now + 35_000, key, JobPhase::Training);
                now += 40_000;
                stream += 1;
                line = 0;
                done = if rng.next_f64() < 0.5 { done } else { done / 2 };
            }
        }
        (JobEnd::Completed, now + 1_000)
    }

    fn phase(&mut self, at: i64, job: JobKey, phase: JobPhase) {
        let fact =
            Fact::JobStateChanged { job, phase, started: self.started.map(Time), ended: None, message: None };
        self.happens.push((at, fact));
    }

    /// Returns the billable seconds.
    pub(crate) fn billable_seconds(&self) -> u64 {
        let running = self.started.map_or(0, |started| (self.end_at - started).max(0));
        u64::try_from(running).unwrap().div_ceil(1_000)
    }

    /// Returns the fact that the job has ended.
    pub(crate) fn ended(&self, job: JobKey) -> Fact {
        Fact::JobStateChanged {
            job,
            phase: JobPhase::Ended(self.end),
            started: self.started.map(Time),
            ended: Some(Time(self.end_at)),
            message: None,
        }
    }

    /// Returns the description of the ended job.
    pub(crate) fn described(&self, job: JobKey) -> Fact {
        Fact::JobDescribed {
            job,
            end: self.end,
            started: self.started.map(Time),
            ended: Some(Time(self.end_at)),
            billable_seconds: self.billable_seconds(),
            message: (self.end == JobEnd::AlgorithmError).then(|| "exit code 1".to_owned()),
            interruptions: self.interruptions,
        }
    }
}
