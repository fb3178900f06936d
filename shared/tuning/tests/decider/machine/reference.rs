//! A deliberately naive account of a tuning: the ledger is a list of entries, what is running a filter over them, a verdict
//! a count. It hears the same facts as the decider; which rulings they allow and call for stands in `rules`.
//!
//! Must never: take a sum, a rank or a status from the decider's state. Only the time (`now`) is the decider's own.

mod rules;

use std::collections::BTreeMap;

use tuning::definition::{Definition, Objective, Strategy};
use tuning::fact::{Fact, JobEnd, JobKey, JobPhase, Recorded};

use crate::paper;

/// What a job of these tests reserves, micro-dollars: its two minutes, the grace of a stop, the upload.
pub(crate) const RESERVED: u64 = (120 + 120 + 180) * SECOND;

/// Price of a second.
pub(crate) const SECOND: u64 = 100;

const HOUR: i64 = 3_600_000;

/// A job that was ordered: an entry of the ledger, kept for ever.
#[expect(clippy::struct_excessive_bools, reason = "each says that one thing was seen or ruled, in any order")]
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) job: JobKey,
    pub(crate) bill: Option<u64>,
    /// It never started, or was refused.
    void: bool,
    refused: bool,
    /// The service was seen to have it.
    exists: bool,
    pub(crate) end: Option<JobEnd>,
    stop_ordered: bool,
    /// When.
    bill_ordered: Option<i64>,
    /// The first time that was told after its bill was ordered, and was later than that.
    awaited: Option<i64>,
    last_sign: i64,
    /// The first time told at which it should have ended, counted from its last sign.
    missed: Option<i64>,
    deferred: Option<i64>,
    /// A quota kept it from starting, and it is called off for that.
    limited: bool,
    quota: bool,
    concluded: bool,
}

impl Entry {
    /// When it must have ended, if nothing more is heard of it.
    fn must_end(&self) -> i64 {
        self.last_sign + (120 + 120 + 180) * 1_000
    }

    fn closed(&self) -> bool {
        self.bill.is_some() || self.void
    }

    fn running(&self) -> bool {
        !self.concluded && !self.void && self.end.is_none()
    }
}

#[derive(Debug, Default)]
struct Trial {
    bracket: usize,
    curve: BTreeMap<u32, Option<f64>>,
    next_rung: usize,
    out: bool,
    attempts: u32,
    retries: u32,
    waits_until: Option<i64>,
    finished: bool,
}

impl Trial {
    fn resource(&self) -> u32 {
        self.curve.keys().max().copied().unwrap_or(0)
    }
}

/// Trial, value, whether it goes on.
type Arrival = (u32, Option<f64>, bool);

/// The word of an end, and whether it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Active,
    Ending(&'static str),
    Ended(&'static str),
}

#[derive(Debug)]
pub(crate) struct Reference {
    definition: Definition,
    /// (trials, epochs) of each rung of each bracket; of a search without early stopping none.
    table: Vec<Vec<(u32, u32)>>,
    eta: usize,
    max_resource: u32,
    submitted: bool,
    pub(crate) phase: Phase,
    clock: i64,
    hold: i64,
    /// Since when starts are put off with nothing running, and since when for a quota.
    held: Option<i64>,
    limited: Option<i64>,
    pub(crate) entries: Vec<Entry>,
    trials: Vec<Trial>,
    /// Who arrived at a rung, with what, and whether it went on.
    arrived: BTreeMap<(usize, usize), Vec<Arrival>>,
    /// Best value, and the trial that first showed it.
    pub(crate) best: Option<(f64, u32)>,
    since_improved: u32,
    fruitless: u32,
    refusals: u32,
    overrun_told: bool,
    cap_told: u32,
}

impl Reference {
    pub(crate) fn new(definition: &Definition) -> Self {
        let (table, eta, max_resource) = match definition.strategy {
            Strategy::Hyperband { min_resource, max_resource, eta } => {
                (paper::table(min_resource, max_resource, eta), eta, max_resource)
            }
            Strategy::Random => (vec![vec![(1, u32::MAX)]], 2, u32::MAX),
        };
        Self {
            definition: definition.clone(),
            table,
            eta: usize::try_from(eta).unwrap(),
            max_resource,
            submitted: false,
            phase: Phase::Active,
            clock: definition.created,
            hold: i64::MIN,
            held: None,
            limited: None,
            entries: Vec::new(),
            trials: Vec::new(),
            arrived: BTreeMap::new(),
            best: None,
            since_improved: 0,
            fruitless: 0,
            refusals: 0,
            overrun_told: false,
            cap_told: 0,
        }
    }

    pub(crate) fn spent(&self) -> u64 {
        self.entries.iter().filter_map(|entry| entry.bill).sum()
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.entries.iter().filter(|entry| !entry.closed()).map(|_| RESERVED).sum()
    }

    /// A bill was above its reservation.
    pub(crate) fn overrun(&self) -> bool {
        self.entries.iter().any(|entry| entry.bill.is_some_and(|bill| bill > RESERVED))
    }

    pub(crate) fn running(&self) -> Vec<JobKey> {
        self.entries.iter().filter(|entry| entry.running()).map(|entry| entry.job).collect()
    }

    /// Jobs that run and were not told to stop.
    pub(crate) fn may_run(&self) -> Vec<JobKey> {
        let free = self.entries.iter().filter(|entry| entry.running() && !entry.stop_ordered);
        free.map(|entry| entry.job).collect()
    }

    pub(crate) fn launched(&self) -> usize {
        self.entries.iter().filter(|entry| !(entry.void && entry.concluded)).count()
    }

    /// Trials that have begun and not finished.
    pub(crate) fn live(&self) -> Vec<u32> {
        (0..).zip(&self.trials).filter(|(_, trial)| !trial.finished).map(|(number, _)| number).collect()
    }

    /// How many went on, and how many arrived, at each rung.
    pub(crate) fn rungs(&self) -> BTreeMap<(usize, usize), (usize, usize)> {
        let counts = |list: &Vec<Arrival>| (list.iter().filter(|a| a.2).count(), list.len());
        self.arrived.iter().map(|(rung, list)| (*rung, counts(list))).collect()
    }

    fn entry(&mut self, job: JobKey) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.job == job && !entry.concluded)
    }

    /// Whether the service was seen to have the job, and it is not over.
    pub(crate) fn exists(&self, job: JobKey) -> bool {
        self.entries.iter().any(|entry| entry.job == job && entry.exists && !entry.concluded)
    }

    /// Hears of `recorded`, for the first time or again.
    pub(crate) fn hears(&mut self, recorded: &Recorded) {
        let at = recorded.at;
        match &recorded.fact {
            Fact::TuningSubmitted => self.submitted = true,
            Fact::StopRequested => {
                if self.phase == Phase::Active {
                    self.phase = Phase::Ending("Stopped");
                }
            }
            Fact::TimePassed => self.hears_the_time(at),
            fact => self.hears_of_job(fact.job().unwrap(), fact, at),
        }
        if self.something_runs() {
            (self.held, self.limited) = (None, None);
        }
    }

    fn something_runs(&self) -> bool {
        self.entries.iter().any(|entry| entry.running() && entry.exists)
    }

    fn hears_the_time(&mut self, at: i64) {
        if at > self.clock {
            self.clock = at;
            for entry in self.entries.iter_mut().filter(|entry| !entry.concluded) {
                if entry.bill_ordered.is_some_and(|ordered| ordered <= at) {
                    entry.awaited = entry.awaited.or(Some(at));
                }
                let missed_since = entry.missed.filter(|since| *since >= entry.must_end());
                if entry.running() && entry.exists && at >= entry.must_end() {
                    entry.missed = missed_since.or(Some(at));
                }
            }
        }
    }

    fn hears_of_job(&mut self, job: JobKey, fact: &Fact, at: i64) {
        if let Fact::MetricsLogged { lines, .. } = fact {
            let trial = &mut self.trials[usize::try_from(job.trial).unwrap()];
            if trial.finished {
                return;
            }
            for line in lines {
                let epoch = u32::try_from(line.index.unwrap()).unwrap();
                if trial.curve.contains_key(&epoch) {
                    continue;
                }
                trial.curve.insert(epoch, line.value);
                let minimize = self.definition.objective == Objective::Minimize;
                let improved = |value: &f64| {
                    self.best.is_none_or(|(best, _)| if minimize { *value < best } else { *value > best })
                };
                if let Some(value) = line.value.filter(improved) {
                    self.best = Some((value, job.trial));
                    self.since_improved = 0;
                }
            }
        }
        let Some(entry) = self.entry(job) else { return };
        match fact {
            Fact::StartRefused { .. } | Fact::JobNeverStarted { .. } => {
                if !entry.exists && !entry.closed() {
                    entry.void = true;
                    entry.refused = matches!(fact, Fact::StartRefused { .. });
                }
                return;
            }
            Fact::ActionDeferred { not_before, limited, .. } => {
                let later = entry.deferred.is_none_or(|until| until < *not_before) && !entry.closed();
                if later {
                    entry.deferred = Some(*not_before);
                    if !entry.exists {
                        entry.limited |= *limited;
                        self.hold = self.hold.max(*not_before);
                        if !self.something_runs() {
                            self.held = self.held.or(Some(at));
                            self.limited = self.limited.or(limited.then_some(at));
                        }
                    }
                }
                return;
            }
            Fact::JobStateChanged { phase: JobPhase::Ended(end), .. } | Fact::JobDescribed { end, .. } => {
                entry.end = entry.end.or(Some(*end));
            }
            _ => {}
        }
        if let Fact::JobDescribed { billable_seconds, .. } = fact {
            entry.bill = entry.bill.or(Some(billable_seconds * SECOND));
        }
        entry.last_sign = entry.last_sign.max(at);
        entry.exists = true;
    }
}
