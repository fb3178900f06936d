//! Rival methods, written without the controller: an event loop over the same world as `curves`.
//!
//! Like `curves`, it breaks ties of time by the order in which events were scheduled. Decisions, starts and stops take
//! no time. This world has no jitter, interruptions or outages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use curves::{Checkpoint, Row, Setting, Table, TableError, milliseconds, noise, seconds};
use hyperband::plan::Plan;
use hyperband::rung::{EVIDENCE_MAX, Rule, predicts};
use search::sampler::point;
use search::{SamplerKind, Space};

use crate::world::Run;

/// The rule of ASHA: of the trials at a rung, one in three continues.
const THIRD: Rule = Rule::TopShare { eta_percent: 300 };

/// How a rival ends jobs. All but [`Rival::Late`] draw configurations at random, as the controller's sampler `Random` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rival {
    /// Every job trains to its end.
    Random,
    /// ASHA (L. Li et al., "A system for massively parallel hyperparameter tuning", `MLSys` 2020, section 3) with one
    /// bracket, and with the running trials stopped instead of promoted: a trial that reports at a rung continues if it
    /// is among the best third of the values there so far, or the best of fewer than six.
    Asha {
        /// Epochs before the first rung, which is at this epoch. The next ones are at three times the one before.
        grace: u32,
    },
    /// The rungs of the controller's defaults, with the points of its sampler `Sobol`: it shows what the model adds. A
    /// trial competes with its best value so far, and a rung that does not predict stops no trial.
    Late(Plan),
}

/// A running job; times in ms.
#[derive(Debug)]
struct Job<'t> {
    row: &'t Row,
    /// When its first epoch began or begins.
    ready: i64,
    epoch: u32,
    /// Its best value so far, and that at each rung that it passed.
    best: f64,
    passed: Vec<f64>,
}

struct Loop<'t> {
    table: &'t Table,
    space: &'t Space,
    setting: &'t Setting,
    is_late: bool,
    seed: u64,
    max_jobs: u32,
    scale: f64,
    noise: f64,
    /// The time in ms, the order and the trial of each running job's next epoch.
    queue: BinaryHeap<Reverse<(i64, u64, u32)>>,
    pushed: u64,
    jobs: BTreeMap<u32, Job<'t>>,
    taken: BTreeSet<usize>,
    /// The epoch of each rung, its rule, and its values; more is better.
    rungs: Vec<(u32, Rule, Vec<f64>)>,
    /// The values at each rung of the trials that reached the last one, oldest first.
    passages: Vec<Vec<f64>>,
    trials: u32,
    /// The best reported value (more is better) with its recorded value, and the last value of its row.
    best: Option<(f64, f64, f64)>,
    best_full: Option<f64>,
    /// Start-up and training time of ended jobs, in ms.
    ended: (i64, i64),
}

/// Plays a tuning of at most `max_jobs` jobs. Returns an error if the table lacks a hyperparameter of the space.
pub fn play(
    rival: &Rival,
    table: &Table,
    space: &Space,
    setting: &Setting,
    max_jobs: u32,
    seed: u64,
) -> Result<Run, TableError> {
    let rungs: Vec<(u32, Rule)> = match rival {
        Rival::Random => Vec::new(),
        Rival::Asha { grace } => {
            let levels = std::iter::successors(Some(*grace), |level| level.checked_mul(3));
            levels.take_while(|level| *level < table.max_resource).map(|level| (level, THIRD)).collect()
        }
        Rival::Late(plan) => {
            let rungs = (0..plan.rung_count(0)).map(|rung| (plan.level(0, rung), plan.rule(0, rung)));
            rungs.filter(|(level, _)| *level < table.max_resource).collect()
        }
    };
    let mut playing = Loop {
        table,
        space,
        setting,
        is_late: matches!(rival, Rival::Late(_)),
        seed,
        max_jobs,
        scale: table.time_scale(setting.mean_job_seconds),
        noise: setting.noise * table.spread(),
        queue: BinaryHeap::new(),
        pushed: 0,
        jobs: BTreeMap::new(),
        taken: BTreeSet::new(),
        rungs: rungs.into_iter().map(|(level, rule)| (level, rule, Vec::new())).collect(),
        passages: Vec::new(),
        trials: 0,
        best: None,
        best_full: None,
        ended: (0, 0),
    };
    let checkpoints = playing.play()?;
    Ok(Run { trials: playing.trials, checkpoints })
}

impl Loop<'_> {
    fn play(&mut self) -> Result<Vec<Checkpoint>, TableError> {
        let until = self.setting.until_seconds.map_or(i64::MAX, milliseconds);
        let mut times = self.setting.checkpoints.iter().map(|at| milliseconds(*at)).peekable();
        let mut checkpoints = Vec::new();
        for _ in 0..self.setting.workers {
            self.start(0)?;
        }
        let mut now = 0;
        while let Some(Reverse((at, _, trial))) = self.queue.pop().filter(|Reverse((at, ..))| *at <= until) {
            while let Some(time) = times.next_if(|time| *time < at) {
                checkpoints.push(self.checkpoint(time));
            }
            now = at;
            self.epoch(trial, at)?;
        }
        checkpoints.extend(times.map(|time| self.checkpoint(time)));
        if self.setting.checkpoints.is_empty() {
            checkpoints.push(self.checkpoint(now));
        }
        Ok(checkpoints)
    }

    /// Starts the next trial, unless no job or no row is left.
    fn start(&mut self, now: i64) -> Result<(), TableError> {
        let (table, trial) = (self.table, self.trials);
        if trial >= self.max_jobs {
            return Ok(());
        }
        let sampler = if self.is_late { SamplerKind::Sobol } else { SamplerKind::Random };
        let drawn = point(self.space.dimensions(), sampler, self.seed, trial);
        let place = table.point(&self.space.decode(&drawn))?;
        let is_free = |row: usize| !self.setting.unique_rows || !self.taken.contains(&row);
        let Some(index) = table.nearest(&place, is_free) else { return Ok(()) };
        let Some(row) = table.rows.get(index) else { return Ok(()) };
        self.taken.insert(index);
        self.trials = trial.saturating_add(1);
        let ready = now.saturating_add(milliseconds(self.setting.startup_seconds));
        self.jobs.insert(trial, Job { row, ready, epoch: 0, best: f64::NEG_INFINITY, passed: Vec::new() });
        self.schedule(trial, ready);
        Ok(())
    }

    /// Schedules the next epoch of a job, which begins at `from` ms.
    fn schedule(&mut self, trial: u32, from: i64) {
        let Some(job) = self.jobs.get(&trial) else { return };
        let epoch = milliseconds(job.row.seconds_per_epoch * self.scale).max(1);
        self.pushed = self.pushed.saturating_add(1);
        self.queue.push(Reverse((from.saturating_add(epoch), self.pushed, trial)));
    }

    /// Reports the epoch that a job has just trained. The job continues, or the next trial starts.
    fn epoch(&mut self, trial: u32, now: i64) -> Result<(), TableError> {
        let Some(job) = self.jobs.get_mut(&trial) else { return Ok(()) };
        job.epoch = job.epoch.saturating_add(1);
        let (epoch, ready, values) = (job.epoch, job.ready, &job.row.values);
        let index = usize::try_from(epoch).unwrap_or(usize::MAX).saturating_sub(1);
        let Some(value) = values.get(index).copied() else { return Ok(()) };
        let last = values.last().copied().unwrap_or(value);
        let oriented = |value: f64| if self.table.maximize { value } else { -value };
        let reported = oriented(value + self.noise * noise(self.seed, trial, epoch));
        job.best = job.best.max(reported);
        let best = if self.is_late { job.best } else { reported };
        if self.best.is_none_or(|(best, _, _)| reported > best) {
            self.best = Some((reported, value, last));
        }
        let is_last = epoch >= self.table.max_resource;
        if is_last && self.best_full.is_none_or(|best| oriented(value) > oriented(best)) {
            self.best_full = Some(value);
        }
        if is_last || !self.continues(trial, epoch, best) {
            self.jobs.remove(&trial);
            self.ended.0 = self.ended.0.saturating_add(milliseconds(self.setting.startup_seconds));
            self.ended.1 = self.ended.1.saturating_add(now.saturating_sub(ready));
            return self.start(now);
        }
        self.schedule(trial, now);
        Ok(())
    }

    /// Records a value at its rung, and returns whether its trial continues.
    fn continues(&mut self, trial: u32, epoch: u32, value: f64) -> bool {
        let count = self.rungs.len();
        let at = self.rungs.iter().position(|(level, ..)| *level == epoch);
        let Some((index, (_, rule, values))) = at.and_then(|at| Some((at, self.rungs.get_mut(at)?))) else {
            return true;
        };
        values.push(value);
        let better = values.iter().filter(|other| **other > value).count();
        let seen = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let is_ahead = u32::try_from(better).is_ok_and(|better| better < rule.allowed(seen));
        if !self.is_late {
            return is_ahead;
        }
        let both = |values: &Vec<f64>| Some((*values.get(index)?, *values.last()?));
        let latest = self.passages.iter().rev().take(EVIDENCE_MAX).filter_map(both);
        let continues = is_ahead || !predicts(&latest.collect::<Vec<_>>());
        if let Some(job) = self.jobs.get_mut(&trial) {
            job.passed.push(value);
            if job.passed.len() == count {
                self.passages.push(std::mem::take(&mut job.passed));
            }
        }
        continues
    }

    /// Returns the state at `at` ms, up to which all events are played.
    fn checkpoint(&self, at: i64) -> Checkpoint {
        let startup = milliseconds(self.setting.startup_seconds);
        let (mut startups, mut training) = self.ended;
        for job in self.jobs.values() {
            startups =
                startups.saturating_add(startup.min(at.saturating_sub(job.ready.saturating_sub(startup))));
            training = training.saturating_add(at.saturating_sub(job.ready).max(0));
        }
        Checkpoint {
            seconds: seconds(at),
            best_observed: self.best.map(|(_, value, _)| value),
            best_full: self.best_full,
            incumbent_final: self.best.map(|(_, _, last)| last),
            billed_seconds: seconds(startups.saturating_add(training)),
            billed_training_seconds: seconds(training),
        }
    }
}
