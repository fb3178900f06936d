//! A naive reference of a tuning: the ledger is a list of entries, the running jobs are a filter over it, a verdict is
//! a count. It folds the same facts as the decider. `rules` has the rulings that it allows and requires.
//!
//! Must never take a sum, a rank or a status from the decider's state. Only the time (`now`) comes from the decider.

mod rules;
mod verdicts;

use std::collections::BTreeMap;

use tuning::definition::{Definition, Objective, Strategy};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};

use crate::paper;

/// The reservation of a job in micro-dollars: its minute, the grace period of a stop and the upload.
pub(crate) const RESERVED: u64 = (60 + 120 + 180) * SECOND;

/// The price of a second, in micro-dollars.
pub(crate) const SECOND: u64 = 100;

const HOUR: i64 = 3_600_000;

/// A ledger entry of an ordered job. Entries are never removed.
#[expect(clippy::struct_excessive_bools, reason = "each flag records an independent observation or ruling")]
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) job: JobKey,
    pub(crate) bill: Option<u64>,
    /// The highest billed seconds that a description showed after the first.
    shown: Option<u64>,
    /// The billed seconds that a later reading confirmed.
    confirmed: Option<u64>,
    /// Whether the bill never came.
    in_full: bool,
    /// Whether the job never started or was refused.
    void: bool,
    refused: bool,
    /// Whether a fact proved that the service has the job.
    exists: bool,
    pub(crate) end: Option<JobEnd>,
    /// When the job was ordered.
    ordered: i64,
    /// When facts showed the job with instances.
    with_instances: Vec<i64>,
    /// When an interruption took the instances.
    interruptions: Vec<i64>,
    stop_ordered: bool,
    /// When the bill was ordered.
    bill_ordered: Option<i64>,
    /// The first reported time at or after the order of the bill.
    awaited: Option<i64>,
    last_sign: i64,
    /// The first reported time at which the job should have ended, counted from its last sign of life.
    missed: Option<i64>,
    deferred: Option<i64>,
    /// Whether a quota deferred the start.
    quota_exceeded: bool,
    /// Whether the job was stopped because of a quota.
    stopped_for_quota: bool,
    concluded: bool,
}

impl Entry {
    /// Returns when the job must have ended without a further sign of life.
    fn must_end(&self) -> i64 {
        self.last_sign + (60 + 120 + 180) * 1_000
    }

    fn is_closed(&self) -> bool {
        self.bill.is_some() || self.void
    }

    /// Returns whether no other bill will be booked.
    fn is_final(&self) -> bool {
        let booked = self.bill.map(|bill| bill / SECOND);
        self.void || self.in_full || (booked.is_some() && booked == self.confirmed && self.shown <= booked)
    }

    /// Returns whether a description showed another bill than the booked one.
    fn has_unbooked(&self) -> bool {
        self.shown > self.bill.map(|bill| bill / SECOND)
    }

    fn is_running(&self) -> bool {
        !self.concluded && !self.void && self.end.is_none()
    }

    fn has_instances(&self) -> bool {
        self.is_running() && self.regained_instances()
    }

    fn regained_instances(&self) -> bool {
        self.with_instances.iter().max() > self.interruptions.iter().max()
    }

    /// Returns whether the job does not count: it never had instances and was billed nothing.
    fn is_uncounted(&self) -> bool {
        let spared = [JobEnd::CapacityError, JobEnd::MaxWait, JobEnd::Stopped];
        let end = self.end.is_some_and(|end| spared.contains(&end));
        self.void || (end && self.bill == Some(0) && self.with_instances.is_empty())
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

/// Trial, value, whether the trial continues.
type Arrival = (u32, Option<f64>, bool);

/// A time in which jobs get no instances.
#[derive(Debug, Clone, Copy)]
struct Lack {
    since: i64,
    probes: u32,
    failed_at: i64,
    until: i64,
    published: bool,
}

/// The phase of the tuning, with the word of its end reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Active,
    Ending(&'static str),
    Ended(&'static str),
}

#[derive(Debug)]
pub(crate) struct Reference {
    definition: Definition,
    /// (trials, epochs) of each rung of each bracket. Without early stopping, one rung that no trial reaches.
    table: Vec<Vec<(u32, u32)>>,
    eta: usize,
    max_resource: u32,
    submitted: bool,
    pub(crate) phase: Phase,
    clock: i64,
    hold: i64,
    /// Since when starts are deferred while no job runs.
    held: Option<i64>,
    /// Since when a quota defers starts while no job runs.
    quota_exceeded: Option<i64>,
    lack: Option<Lack>,
    pub(crate) entries: Vec<Entry>,
    trials: Vec<Trial>,
    /// The arrivals at each rung, by bracket and rung.
    arrived: BTreeMap<(usize, usize), Vec<Arrival>>,
    /// The best value and the first trial that logged it.
    pub(crate) best: Option<(f64, u32)>,
    since_improved: u32,
    /// Trials without a finite value in succession.
    fruitless: u32,
    /// Whether any line was logged.
    logged: bool,
    /// The trial that reached the target.
    finalist: Option<u32>,
    refusals: u32,
    /// The sum of the rises of booked bills.
    pub(crate) risen: u64,
    overrun_published: bool,
    cap_published_percent: u32,
}

/// The epoch and the value that count at a rung, and the running average with the median rule.
type Due = (u32, Option<f64>, Option<f64>);

impl Reference {
    pub(crate) fn new(definition: &Definition) -> Self {
        let (table, eta, max_resource) = match &definition.strategy {
            Strategy::Hyperband { plan, .. } => {
                let (min, max, eta) = (plan.min_resource(), plan.max_resource(), plan.eta());
                (paper::table(min, max, eta), eta, max)
            }
            Strategy::Independent => (vec![vec![(1, u32::MAX)]], 2, u32::MAX),
            Strategy::Median => {
                let levels = (1..=14).map(|n| (1, 2_u32.pow(n))).chain([(1, u32::MAX)]);
                (vec![levels.collect()], 2, u32::MAX)
            }
        };
        Self {
            definition: definition.clone(),
            table,
            eta: usize::try_from(eta).unwrap(),
            max_resource,
            submitted: false,
            phase: Phase::Active,
            clock: definition.created.0,
            hold: i64::MIN,
            held: None,
            quota_exceeded: None,
            lack: None,
            entries: Vec::new(),
            trials: Vec::new(),
            arrived: BTreeMap::new(),
            best: None,
            since_improved: 0,
            fruitless: 0,
            logged: false,
            finalist: None,
            refusals: 0,
            risen: 0,
            overrun_published: false,
            cap_published_percent: 0,
        }
    }

    fn is_median(&self) -> bool {
        self.definition.strategy == Strategy::Median
    }

    /// Returns whether a job that a quota blocks must be cancelled. Only the first ordered job stays ordered.
    fn must_cancel(&self, job: JobKey, now: i64) -> bool {
        let entry = self.entries.iter().find(|entry| entry.job == job && !entry.concluded);
        let blocked = entry.is_some_and(|entry| entry.quota_exceeded && !entry.exists);
        blocked && self.is_deferred_long(now) && self.may_run().iter().any(|other| *other < job)
    }

    pub(crate) fn spent(&self) -> u64 {
        self.entries.iter().filter_map(|entry| entry.bill).sum()
    }

    pub(crate) fn reserved(&self) -> u64 {
        let worst_case = self.worst_case();
        self.entries.iter().filter(|entry| !entry.is_closed()).map(|_| worst_case).sum()
    }

    /// Returns what each job reserves: its limits, and the largest excess of a bill so far.
    pub(crate) fn worst_case(&self) -> u64 {
        RESERVED.max(self.entries.iter().filter_map(|entry| entry.bill).max().unwrap_or(0))
    }

    /// Returns whether a bill was above its reservation.
    pub(crate) fn overrun(&self) -> bool {
        self.worst_case() > RESERVED
    }

    pub(crate) fn running(&self) -> Vec<JobKey> {
        self.entries.iter().filter(|entry| entry.is_running()).map(|entry| entry.job).collect()
    }

    /// Returns the running jobs without an ordered stop.
    pub(crate) fn may_run(&self) -> Vec<JobKey> {
        let free = self.entries.iter().filter(|entry| entry.is_running() && !entry.stop_ordered);
        free.map(|entry| entry.job).collect()
    }

    pub(crate) fn launched(&self) -> usize {
        self.entries.iter().filter(|entry| !(entry.is_uncounted() && entry.concluded)).count()
    }

    /// Returns the trials that have begun and not finished.
    pub(crate) fn live(&self) -> Vec<u32> {
        (0..).zip(&self.trials).filter(|(_, trial)| !trial.finished).map(|(number, _)| number).collect()
    }

    /// Returns how many trials continued and how many arrived, at each rung.
    pub(crate) fn rungs(&self) -> BTreeMap<(usize, usize), (usize, usize)> {
        let counts = |list: &Vec<Arrival>| (list.iter().filter(|a| a.2).count(), list.len());
        self.arrived.iter().map(|(rung, list)| (*rung, counts(list))).collect()
    }

    fn entry(&mut self, job: JobKey) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.job == job && !entry.concluded)
    }

    /// Returns whether the service has the job and the job is not concluded.
    pub(crate) fn exists(&self, job: JobKey) -> bool {
        self.entries.iter().any(|entry| entry.job == job && entry.exists && !entry.concluded)
    }

    /// Folds a new or repeated fact. `now` is the decider's time before it.
    pub(crate) fn fold(&mut self, recorded: &Recorded, now: i64) {
        let at = recorded.at;
        match &recorded.fact {
            Fact::TuningSubmitted => self.submitted = true,
            Fact::StopRequested => {
                if self.phase == Phase::Active {
                    self.phase = Phase::Ending("Stopped");
                }
            }
            Fact::TimePassed => self.fold_time(at.0),
            Fact::BillsConfirmed { bills } => self.fold_confirmed(bills),
            fact => {
                let job = fact.job().unwrap();
                let before = self.open_entry(job);
                self.fold_job(job, fact, at.0);
                self.fold_instances(before, at.0, now.max(at.0));
            }
        }
        if self.has_started_jobs() {
            (self.held, self.quota_exceeded) = (None, None);
        }
    }

    fn open_entry(&self, job: JobKey) -> Option<Entry> {
        self.entries.iter().find(|entry| entry.job == job && !entry.concluded).cloned()
    }

    /// Folds what a fact of time `at` showed about the instances of a job, which was `before`.
    fn fold_instances(&mut self, before: Option<Entry>, at: i64, now: i64) {
        let Some(before) = before else { return };
        let after = self.open_entry(before.job).unwrap();
        if let Some(lack) = &mut self.lack {
            let first = before.with_instances.is_empty() && !after.with_instances.is_empty();
            let gained = first || (!before.regained_instances() && after.regained_instances());
            let latest = after.with_instances.iter().max().copied();
            if gained && latest >= Some(lack.failed_at) {
                self.lack = None;
            } else {
                let lost = (before.has_instances() && !after.has_instances()).then_some(at);
                lack.since = lack.since.max(latest.unwrap_or(i64::MIN)).max(lost.unwrap_or(i64::MIN));
            }
        }
        let lacks = matches!(after.end, Some(JobEnd::CapacityError | JobEnd::MaxWait));
        if before.end.is_none() && lacks {
            let lack = self.lack.unwrap_or(Lack {
                since: now,
                probes: 0,
                failed_at: i64::MIN,
                until: 0,
                published: false,
            });
            let probes = lack.probes + u32::from(after.ordered > lack.failed_at);
            let until = now + (30_000 * 2_i64.pow(probes - 1)).min(HOUR);
            self.lack = Some(Lack { probes, failed_at: now, until, ..lack });
        }
    }

    fn has_started_jobs(&self) -> bool {
        self.entries.iter().any(|entry| entry.is_running() && entry.exists)
    }

    fn fold_time(&mut self, at: i64) {
        if at > self.clock {
            self.clock = at;
            for entry in &mut self.entries {
                if entry.bill_ordered.is_some_and(|ordered| ordered <= at) {
                    entry.awaited = entry.awaited.or(Some(at));
                }
                let missed_since = entry.missed.filter(|since| *since >= entry.must_end());
                if entry.is_running() && entry.exists && at >= entry.must_end() {
                    entry.missed = missed_since.or(Some(at));
                }
            }
        }
    }

    /// Folds the bill of a job that is concluded, or that has a bill already.
    fn fold_later_bill(&mut self, job: JobKey, seconds: u64) {
        let later = |entry: &&mut Entry| entry.job == job && (entry.concluded || entry.bill.is_some());
        let entry = self.entries.iter_mut().find(later);
        let is_open = |entry: &&mut Entry| !(entry.in_full || (entry.concluded && entry.is_final()));
        if let Some(entry) = entry.filter(is_open) {
            let booked = entry.bill.map(|bill| bill / SECOND);
            entry.shown = entry.shown.max(Some(seconds).filter(|_| Some(seconds) > booked));
        }
    }

    fn fold_confirmed(&mut self, bills: &[(JobKey, u64)]) {
        for (job, seconds) in bills {
            let entry = self.entries.iter_mut().find(|entry| entry.job == *job);
            if let Some(entry) = entry.filter(|entry| !(entry.is_final() && entry.concluded)) {
                entry.confirmed = entry.confirmed.max(Some(*seconds));
            }
        }
    }

    /// Returns whether a line of a job can show that its trial, which is not being stopped, reached the target.
    fn can_be_finalist(&self, job: JobKey) -> bool {
        let trial = &self.trials[job.trial.index()];
        let entry = self.open_entry(job);
        let failed = [JobEnd::AlgorithmError, JobEnd::CapacityError, JobEnd::ServiceError, JobEnd::MaxWait];
        let ends = entry
            .is_some_and(|entry| entry.stop_ordered || entry.end.is_some_and(|end| failed.contains(&end)));
        self.phase == Phase::Active && job.attempt == trial.attempts && !trial.out && !ends
    }

    fn fold_lines(&mut self, job: JobKey, lines: &[MetricLine]) {
        if let Some(entry) = self.entry(job) {
            entry.with_instances.extend(lines.iter().map(|line| line.at.0));
        }
        let can_be_finalist = self.can_be_finalist(job);
        let trial = &mut self.trials[job.trial.index()];
        for line in lines {
            let epoch = u32::try_from(line.index.unwrap()).unwrap();
            if trial.curve.contains_key(&epoch) {
                continue;
            }
            if line.value.is_some() && trial.curve.values().all(Option::is_none) {
                self.fruitless = 0;
            }
            trial.curve.insert(epoch, line.value);
            self.logged = true;
            let minimize = self.definition.objective == Objective::Minimize;
            let target = self.definition.limits.target.zip(line.value);
            if target.is_some_and(|(target, value)| if minimize { value <= target } else { value >= target })
            {
                self.finalist = self.finalist.or(Some(job.trial.0).filter(|_| can_be_finalist));
            }
            let improved = |value: &f64| {
                self.best.is_none_or(|(best, _)| if minimize { *value < best } else { *value > best })
            };
            if let Some(value) = line.value.filter(improved) {
                self.best = Some((value, job.trial.0));
                self.since_improved = 0;
            }
        }
    }

    fn fold_job(&mut self, job: JobKey, fact: &Fact, at: i64) {
        if let Fact::MetricsLogged { lines, .. } = fact {
            if self.trials[job.trial.index()].finished {
                return;
            }
            self.fold_lines(job, lines);
        }
        if let Fact::JobDescribed { billable_seconds, .. } = fact {
            self.fold_later_bill(job, *billable_seconds);
        }
        let Some(entry) = self.entry(job) else { return };
        match fact {
            Fact::StartRefused { .. } | Fact::JobNeverStarted { .. } => {
                if !entry.exists && !entry.is_closed() {
                    entry.void = true;
                    entry.refused = matches!(fact, Fact::StartRefused { .. });
                }
                return;
            }
            Fact::ActionDeferred { not_before, quota_exceeded, .. } => {
                let later = entry.deferred.is_none_or(|until| until < not_before.0) && !entry.is_closed();
                if later {
                    entry.deferred = Some(not_before.0);
                    if !entry.exists {
                        entry.quota_exceeded |= *quota_exceeded;
                        self.hold = self.hold.max(not_before.0);
                        if !self.has_started_jobs() {
                            self.held = self.held.or(Some(at));
                            self.quota_exceeded = self.quota_exceeded.or(quota_exceeded.then_some(at));
                        }
                    }
                }
                return;
            }
            Fact::JobStateChanged { phase: JobPhase::Ended(end), started, .. }
            | Fact::JobDescribed { end, started, .. } => {
                entry.end = entry.end.or(Some(*end));
                entry.with_instances.extend(started.map(|started| started.0));
            }
            Fact::JobStateChanged { phase: JobPhase::Training, .. } => entry.with_instances.push(at),
            Fact::JobStateChanged { phase: JobPhase::Interrupted, .. } => entry.interruptions.push(at),
            _ => {}
        }
        if let Fact::JobDescribed { billable_seconds: 1.., .. } = fact {
            entry.with_instances.push(at);
        }
        if let Fact::JobDescribed { billable_seconds, .. } = fact {
            entry.bill = entry.bill.or(Some(billable_seconds * SECOND));
        }
        entry.last_sign = entry.last_sign.max(at);
        entry.exists = true;
    }
}
