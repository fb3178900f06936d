//! Measures of a simulated tuning.

use std::collections::{BTreeMap, BTreeSet};

use search::Configuration;
use serde::Serialize;
use tuning::definition::{Definition, Strategy};
use tuning::log::fact::{JobEnd, JobKey};
use tuning::log::ruling::{Ruling, SearchRuling};
use tuning::state::{State, Status};
use tuning::unit::ids::TrialId;

use crate::setting::{Setting, milliseconds, seconds};
use crate::table::Table;

/// The outcome of one simulated tuning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Training jobs that ran.
    pub training_jobs: u32,
    /// Configurations that were started.
    pub trials: u32,
    /// Epochs trained, repeated ones included.
    pub epochs: u64,
    /// When the tuning ended, in seconds.
    pub end_seconds: f64,
    /// Mean number of busy workers until the last job started.
    pub slots_used: f64,
    /// Spent share of the cap; `None` without a cap.
    pub cap_spent: Option<f64>,
    /// Share of the epochs that were trained after a verdict without a rival, or in a bracket without verdicts.
    pub epochs_unopposed: f64,
    /// Trials that reached `MaxResource`.
    pub trials_at_max: u32,
    /// Jobs ended by a limit that the controller had shortened.
    pub jobs_cut: u32,
    /// Mean time from the arrival of a trial at its rung to the start of its promotion; `None` without promotions.
    pub promotion_wait_seconds: Option<f64>,
    /// Billed time, summed over all instances, in seconds.
    pub instance_seconds: f64,
    /// Why the tuning ended, as one word.
    pub end_reason: String,
    /// The state at fixed times.
    pub checkpoints: Vec<Checkpoint>,
    /// The configuration with the best value; `None` without a value.
    pub best: Option<Best>,
    /// Each new best value, in the order of time.
    pub improvements: Vec<Improvement>,
}

/// A new best value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Improvement {
    /// The time, in seconds.
    pub seconds: f64,
    /// Billed time up to then, summed over all instances, in seconds.
    pub instance_seconds: f64,
    /// The recorded value.
    pub value: f64,
}

/// The state of a tuning at a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checkpoint {
    /// The time, in seconds.
    pub seconds: f64,
    /// The best value reported so far, at any epoch. With noise: the recorded value of the epoch that looked best.
    pub best_observed: Option<f64>,
    /// The best recorded value at `MaxResource` so far.
    pub best_full: Option<f64>,
    /// The last recorded value of the configuration with the best value so far.
    pub incumbent_final: Option<f64>,
    /// Billed time, summed over workers, in seconds.
    pub billed_seconds: f64,
    /// Billed time without start-ups.
    pub billed_training_seconds: f64,
}

/// The best configuration of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// Its hyperparameters.
    pub hyperparameters: BTreeMap<String, String>,
    /// Its best value.
    pub value: f64,
}

/// The best value so far.
#[derive(Debug, Clone, Copy)]
struct Incumbent {
    reported: f64,
    recorded: f64,
    /// The last recorded value of its configuration.
    last: f64,
    trial: TrialId,
}

/// A running job. Times are in ms.
#[derive(Debug)]
struct Running {
    start: i64,
    /// The start-up times of its runs: begin and length.
    startups: Vec<(i64, i64)>,
    instances: u32,
    is_cut: bool,
}

/// The counts of a simulation in progress.
#[derive(Debug)]
pub(crate) struct Measure<'t> {
    table: &'t Table,
    maximize: bool,
    without_verdicts: Vec<bool>,
    /// The times of the checkpoints to come, in ms, the last first.
    times: Vec<i64>,
    checkpoints: Vec<Checkpoint>,
    now: i64,
    facts: u64,
    jobs: u32,
    epochs: u64,
    unopposed: u64,
    /// Whether each trial trains without a rival since its last verdict.
    is_unopposed: BTreeMap<TrialId, bool>,
    configurations: BTreeMap<TrialId, Configuration>,
    at_max: BTreeSet<TrialId>,
    cut: u32,
    /// When each trial arrived at the rung where it waits, in ms.
    arrived: BTreeMap<TrialId, i64>,
    /// Promotions that started, and the sum of their waits in ms.
    promotions: (u32, i64),
    best: Option<Incumbent>,
    best_full: Option<f64>,
    running: BTreeMap<JobKey, Running>,
    /// Billed and start-up time of ended jobs, in ms.
    billed: (i64, i64),
    /// Their billed time, summed over all instances, in ms.
    instance_ms: i64,
    improvements: Vec<Improvement>,
    /// Busy time of all workers up to `now`, in ms.
    busy: i64,
    /// When the last job started, and the busy time up to then.
    last_start: (i64, i64),
    at_end: bool,
}

impl<'t> Measure<'t> {
    pub(crate) fn new(definition: &Definition, table: &'t Table, setting: &Setting) -> Self {
        let without_verdicts = match &definition.strategy {
            Strategy::Hyperband { plan, .. } => {
                plan.brackets().iter().map(|bracket| bracket.rungs().len() < 2).collect()
            }
            Strategy::Independent | Strategy::Median => vec![true],
        };
        let mut times: Vec<i64> = setting.checkpoints.iter().map(|at| milliseconds(*at)).collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            table,
            maximize: table.maximize,
            without_verdicts,
            at_end: times.is_empty(),
            times,
            checkpoints: Vec::new(),
            now: 0,
            facts: 0,
            jobs: 0,
            epochs: 0,
            unopposed: 0,
            is_unopposed: BTreeMap::new(),
            configurations: BTreeMap::new(),
            at_max: BTreeSet::new(),
            cut: 0,
            arrived: BTreeMap::new(),
            promotions: (0, 0),
            best: None,
            best_full: None,
            running: BTreeMap::new(),
            billed: (0, 0),
            instance_ms: 0,
            improvements: Vec::new(),
            busy: 0,
            last_start: (0, 0),
        }
    }

    /// Returns the number of the next fact.
    pub(crate) fn count_fact(&mut self) -> u64 {
        self.facts = self.facts.saturating_add(1);
        self.facts
    }

    /// Moves the time to `now` (ms), and measures the state at the checkpoints up to then.
    pub(crate) fn pass_to(&mut self, now: i64) {
        while let Some(at) = self.times.pop_if(|at| *at < now) {
            let checkpoint = self.checkpoint(at);
            self.checkpoints.push(checkpoint);
        }
        let workers = i64::try_from(self.running.len()).unwrap_or(i64::MAX);
        self.busy = self.busy.saturating_add(now.saturating_sub(self.now).saturating_mul(workers));
        self.now = now;
    }

    /// Takes what a ruling says about rivals and waits.
    pub(crate) fn rule(&mut self, ruling: &Ruling) {
        if let Ruling::Search(SearchRuling::RungReached { trial, .. }) = ruling {
            self.arrived.insert(*trial, self.now);
        }
        if let Ruling::Search(
            SearchRuling::TrialJudged { trial, verdict, .. }
            | SearchRuling::TrialPromoted { trial, verdict, .. },
        ) = ruling
        {
            self.is_unopposed.insert(*trial, verdict.seen < 2);
        }
    }

    pub(crate) fn starts(
        &mut self,
        job: JobKey,
        bracket: usize,
        configuration: &Configuration,
        (instances, is_cut): (u32, bool),
    ) {
        self.jobs = self.jobs.saturating_add(1);
        let without = self.without_verdicts.get(bracket).copied().unwrap_or(false);
        self.is_unopposed.entry(job.trial).or_insert(without);
        self.configurations.entry(job.trial).or_insert_with(|| configuration.clone());
        self.running.insert(job, Running { start: self.now, startups: Vec::new(), instances, is_cut });
        self.last_start = (self.now, self.busy);
        if let Some(arrived) = self.arrived.remove(&job.trial) {
            let (promotions, waited) = self.promotions;
            self.promotions =
                (promotions.saturating_add(1), waited.saturating_add(self.now.saturating_sub(arrived)));
        }
    }

    /// Notes that a job begins to run, with a start-up of so many ms.
    pub(crate) fn runs(&mut self, job: JobKey, startup: i64) {
        let now = self.now;
        if let Some(running) = self.running.get_mut(&job) {
            running.startups.push((now, startup));
        }
    }

    /// Counts an epoch with its recorded and its reported value; `last` is the last recorded value of the trial.
    pub(crate) fn trains(&mut self, job: JobKey, epoch: u32, (recorded, reported): (f64, f64), last: f64) {
        self.epochs = self.epochs.saturating_add(1);
        let unopposed = self.is_unopposed.get(&job.trial).copied().unwrap_or(false);
        self.unopposed = self.unopposed.saturating_add(u64::from(unopposed));
        if self.best.is_none_or(|best| self.is_better(reported, best.reported)) {
            self.best = Some(Incumbent { reported, recorded, last, trial: job.trial });
            let (now, so_far) = (seconds(self.now), seconds(self.instance_ms_so_far()));
            self.improvements.push(Improvement { seconds: now, instance_seconds: so_far, value: recorded });
        }
        if epoch >= self.table.max_resource {
            self.at_max.insert(job.trial);
            if self.best_full.is_none_or(|best| self.is_better(recorded, best)) {
                self.best_full = Some(recorded);
            }
        }
    }

    pub(crate) fn ends(&mut self, job: JobKey, end: JobEnd) {
        let Some(running) = self.running.remove(&job) else { return };
        self.instance_ms = self.instance_ms.saturating_add(running.instance_ms(self.now));
        let (billed, startup) = running.billed(self.now);
        self.billed = (self.billed.0.saturating_add(billed), self.billed.1.saturating_add(startup));
        self.cut = self.cut.saturating_add(u32::from(running.is_cut && end == JobEnd::MaxRuntime));
    }

    /// Returns the billed time so far, summed over all instances, in ms.
    fn instance_ms_so_far(&self) -> i64 {
        let running = self.running.values().map(|running| running.instance_ms(self.now));
        running.fold(self.instance_ms, i64::saturating_add)
    }

    fn is_better(&self, value: f64, than: f64) -> bool {
        if self.maximize { value > than } else { value < than }
    }

    /// Returns the state at `at` (ms), which is not before the last event.
    fn checkpoint(&self, at: i64) -> Checkpoint {
        let running = self.running.values().map(|running| running.billed(at));
        let (billed, startup) =
            running.fold(self.billed, |sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
        Checkpoint {
            seconds: seconds(at),
            best_observed: self.best.map(|best| best.recorded),
            best_full: self.best_full,
            incumbent_final: self.best.map(|best| best.last),
            billed_seconds: seconds(billed),
            billed_training_seconds: seconds(billed.saturating_sub(startup)),
        }
    }

    pub(crate) fn outcome(mut self, state: &State, seed: u64) -> Outcome {
        if self.at_end {
            let checkpoint = self.checkpoint(self.now);
            self.checkpoints.push(checkpoint);
        }
        while let Some(at) = self.times.pop() {
            let checkpoint = self.checkpoint(at);
            self.checkpoints.push(checkpoint);
        }
        let (last_start, busy) = self.last_start;
        let (promotions, waited) = self.promotions;
        let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let cap = state.money.ledger.cap;
        Outcome {
            seed,
            training_jobs: self.jobs,
            trials: u32::try_from(self.configurations.len()).unwrap_or(u32::MAX),
            epochs: self.epochs,
            end_seconds: seconds(self.now),
            slots_used: share(seconds(busy), seconds(last_start)),
            cap_spent: cap.map(|cap| share(amount(state.money.ledger.spent.0), amount(cap.0))),
            epochs_unopposed: share(amount(self.unopposed), amount(self.epochs)),
            trials_at_max: u32::try_from(self.at_max.len()).unwrap_or(u32::MAX),
            jobs_cut: self.cut,
            promotion_wait_seconds: (promotions > 0).then(|| seconds(waited) / f64::from(promotions)),
            instance_seconds: seconds(self.instance_ms_so_far()),
            end_reason: end_reason(state),
            best: self.best.map(|best| Best {
                hyperparameters: self.configurations.get(&best.trial).cloned().unwrap_or_default().0,
                value: best.recorded,
            }),
            checkpoints: self.checkpoints,
            improvements: self.improvements,
        }
    }
}

impl Running {
    /// Returns the billed time up to `now`, summed over all instances, in ms.
    fn instance_ms(&self, now: i64) -> i64 {
        now.saturating_sub(self.start).saturating_mul(i64::from(self.instances))
    }

    /// Returns the billed time and the start-up time up to `now`, in ms.
    fn billed(&self, now: i64) -> (i64, i64) {
        let startups = self.startups.iter().map(|(at, length)| (*length).min(now.saturating_sub(*at)).max(0));
        (now.saturating_sub(self.start), startups.fold(0, i64::saturating_add))
    }
}

/// Returns why the tuning ended, as one word; `Running` if the simulation ended first.
fn end_reason(state: &State) -> String {
    match &state.status {
        Status::Ended { why, .. } | Status::Ending(why) => why.word().to_owned(),
        Status::Active => "Running".to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts and amounts are far below 2^53")]
fn amount(number: u64) -> f64 {
    number as f64
}
