//! The state of a tuning: the sum of its steps so far. It holds live trials only; concluded jobs leave it.
//!
//! [`fold`](crate::change::fold::fold) (facts) and [`State::apply`] (rulings) change the state, and nothing else does. Its serialized form
//! is the snapshot: a field may be added with a default, but never renamed once released.

pub(crate) mod capacity;
pub mod changes;
mod cohorts;
pub mod failures;
mod memory;
mod money;
pub(crate) mod streams;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};

use search::{Configuration, History};
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::job::Job;
use crate::job::pool::Pool;
use crate::log::fact::{JobEnd, JobKey};
use crate::log::problem::LogProblem;
use crate::log::reasons::EndReason;
use crate::money::grants::Grants;
use crate::money::ledger::Ledger;
use crate::scheduler::{Cohort, ParkedTrials, Rung, Waiting};
use crate::state::changes::Changes;
use crate::state::failures::Failures;
use crate::trial::Trial;
use crate::trial::live::LiveTrials;
use crate::trial::summary::JobSummary;
use crate::trial::timing::Timings;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{TrialId, count};
use crate::unit::time::Time;

/// Number of equal values that shows that the objective does not change.
const MANY_VALUES: u32 = 10;

/// The state of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The greatest time on a folded fact: the only clock of the decider.
    pub now: Time,
    /// The greatest time that the sweeper reported. Unlike `now`, it is never ahead of facts that were stored before.
    #[serde(default)]
    pub clock: Time,
    /// Whether the submission was folded: nothing is decided before.
    pub submitted: bool,
    /// Whether the tuning is active, ending or ended.
    pub status: Status,
    /// The money of the tuning.
    pub ledger: Ledger,
    /// The number of the next new trial.
    pub next_trial: TrialId,
    /// Jobs launched: ordered jobs without those that never started.
    pub launched: u32,
    /// How many trials joined each bracket.
    pub joined: Vec<u32>,
    /// The trials that are compared with each other, and their rungs.
    pub cohorts: Vec<Cohort>,
    /// The rungs of the cohorts whose trials are all finished, summed by bracket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub past: Vec<Vec<Rung>>,
    /// Live trials: those with a job that is not concluded, or that wait for a further attempt.
    pub trials: LiveTrials,
    /// Trials that have reached the level of their rung and wait there to be promoted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<TrialId, Waiting>,
    /// Their configurations and curves, as far as they are at hand.
    #[serde(skip)]
    pub parked: ParkedTrials,
    /// What the sampler knows of trials that have ended or wait; empty unless the sampler learns.
    #[serde(default, skip_serializing_if = "History::is_empty")]
    pub history: History,
    /// Concluded jobs whose bill is not known or not confirmed yet, in the order of their conclusion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub billing: Vec<(JobKey, Job)>,
    /// Warm pools whose cost is not known yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
    /// Running times of concluded jobs.
    pub timings: Timings,
    /// The best value seen at any epoch.
    pub incumbent: Option<Incumbent>,
    /// What the refit trains; `None` without one, or while no job counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refittable: Option<Box<Refittable>>,
    /// The job with the best final value among concluded jobs that count (the best training job in AMT).
    pub best: Option<Box<JobSummary>>,
    /// Concluded jobs by kind.
    pub counters: Counters,
    /// Trials finished since the incumbent last changed.
    pub since_improved: u32,
    /// Trials that ended in a row without a finite value, since the last trial that logged its first one.
    pub fruitless: Fruitless,
    /// Whether any trial has logged the objective, also as NaN.
    pub has_logged: bool,
    /// The index of the first epoch, which the first logged index shows; `None` before, or where the request sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_base: Option<u32>,
    /// The trial that reached the target and trains to its end, and after that end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalist: Option<TrialId>,
    /// Refused starts in a row.
    pub refusals: u32,
    /// No job starts before this time: the service throttles, or a quota is used up.
    pub no_start_before: Option<Time>,
    /// Set while starts are deferred and nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferral: Option<Deferral>,
    /// Set while jobs get no instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack: Option<Lack>,
    /// Until when each instance choice counts as lacking capacity, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_capacity_until: Vec<Time>,
    /// Whether the notice of a bill above its reservation was ordered.
    #[serde(default)]
    pub overrun_published: bool,
    /// The level of the cap, in percent, whose notice was ordered last; 0 = none.
    #[serde(default)]
    pub cap_published_percent: u32,
    /// Ordered notices that are not known to be published, by action. The notice of the end is not among them: no fact
    /// is folded after it.
    #[serde(default)]
    pub notices: BTreeSet<String>,
    /// The latest job of the refit; `None` until it is ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<JobKey>,
    /// Limits that the user has changed.
    #[serde(default, skip_serializing_if = "Changes::is_none")]
    pub changes: Changes,
    /// Money granted from the month's cap.
    #[serde(default)]
    pub grants: Grants,
    /// The first finite value of the tuning, and how many values were equal to it before another one; `None` after that,
    /// and before the first value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_values: Option<(f64, u32)>,
    /// The problems that logs of jobs show, one of each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_problems: Vec<(JobKey, LogProblem)>,
    /// The message of the last failure.
    pub last_failure: Option<String>,
    /// Failed jobs by cause.
    #[serde(default, skip_serializing_if = "Failures::is_empty")]
    pub failures: Failures,
}

/// Whether a tuning is active.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Jobs may start.
    Active,
    /// No further job starts, and running jobs are being stopped.
    Ending(EndReason),
    /// The tuning has ended.
    Ended {
        /// The reason.
        why: EndReason,
        /// When it ended.
        at: Time,
    },
}

/// No job runs, and starts are deferred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferral {
    /// When a start was first deferred.
    pub since: Time,
    /// When a start was first deferred for a quota; `None` = no quota is exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_since: Option<Time>,
    /// The latest answer of the training service about the quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_answer: Option<String>,
}

/// Jobs get no instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    /// Since when no job has had instances, if none has them now.
    pub since: Time,
    /// How many probes in a row got no instances; 1 for the jobs with which the lack began.
    pub probes: u32,
    /// When a job last ended without instances. A job that was ordered later is a probe.
    pub failed_at: Time,
    /// No job starts before.
    pub until: Time,
    /// Whether the notice of this lack was ordered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub published: bool,
}

/// The best value seen at any epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incumbent {
    /// The value.
    pub value: f64,
    /// Its trial.
    pub trial: TrialId,
    /// Its epoch.
    pub resource: Epochs,
}

/// What the refit trains: the configuration with the best value among trials whose jobs count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refittable {
    /// The value.
    pub value: f64,
    /// Its epoch.
    pub resource: Epochs,
    /// The hyperparameters of its trial.
    pub configuration: Configuration,
}

/// Trials that ended in a row without a finite value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fruitless {
    /// How many.
    pub trials: u32,
    /// When the last of them ended.
    pub at: Time,
}

/// Concluded jobs by kind (the counters of AMT).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Completed.
    pub completed: u32,
    /// Stopped by a request or a limit.
    pub stopped: u32,
    /// Ended for lack of capacity or by a failure of the service.
    pub retryable_error: u32,
    /// Failed by a fault of the program, or refused.
    pub non_retryable_error: u32,
    /// With a final objective value.
    pub objective_succeeded: u32,
    /// Without a final objective value.
    pub objective_failed: u32,
}

impl State {
    /// Returns the state before the first fact.
    pub fn new(definition: &Definition) -> Self {
        Self {
            now: definition.created,
            clock: definition.created,
            submitted: false,
            status: Status::Active,
            ledger: Ledger::new(definition.cap, definition.grants),
            next_trial: TrialId(0),
            launched: 0,
            joined: vec![0; definition.plan().brackets().len()],
            cohorts: Vec::new(),
            past: Vec::new(),
            trials: LiveTrials::default(),
            waiting: BTreeMap::new(),
            parked: ParkedTrials::default(),
            history: History::default(),
            billing: Vec::new(),
            pools: Vec::new(),
            timings: Timings::default(),
            incumbent: None,
            refittable: None,
            best: None,
            counters: Counters::default(),
            since_improved: 0,
            fruitless: Fruitless::default(),
            has_logged: false,
            epoch_base: None,
            finalist: None,
            refusals: 0,
            no_start_before: None,
            deferral: None,
            lack: None,
            no_capacity_until: Vec::new(),
            overrun_published: false,
            cap_published_percent: 0,
            notices: BTreeSet::new(),
            refit: None,
            changes: Changes::default(),
            grants: Grants::default(),
            equal_values: None,
            log_problems: Vec::new(),
            last_failure: None,
            failures: Failures::default(),
        }
    }

    /// Returns the live job `key`.
    pub fn job(&self, key: JobKey) -> Option<&Job> {
        self.trials.get(key.trial)?.job().filter(|job| job.is(key))
    }

    /// Returns the live jobs with their keys and trials, by trial number.
    pub fn jobs(&self) -> impl Iterator<Item = (JobKey, &Trial, &Job)> {
        self.trials.iter().filter_map(|(number, trial)| {
            let job = trial.job()?;
            Some((job.key(*number), trial, job))
        })
    }

    /// Returns the number of jobs that hold a slot: ordered and not seen to have ended.
    pub fn running(&self) -> u32 {
        count(self.jobs().filter(|(_, _, job)| job.holds_slot()).count())
    }

    /// Returns how many jobs can still be launched, without the one reserved for the refit.
    pub fn jobs_left(&self, definition: &Definition) -> u32 {
        let kept = definition.refit && self.refit.is_none();
        definition.limits.max_jobs.saturating_sub(u32::from(kept)).saturating_sub(self.launched)
    }

    /// Returns the maximum of jobs that run at once, as changed by the user.
    pub fn max_parallel(&self, definition: &Definition) -> u32 {
        let first = definition.limits.max_parallel;
        self.changes.max_parallel.as_ref().map_or(first, |change| change.value)
    }

    /// Returns whether the user has paused starts.
    pub fn is_paused(&self) -> bool {
        self.changes.paused.as_ref().is_some_and(|change| change.value)
    }

    /// Returns the number of instances of all jobs that hold a slot.
    pub fn instances(&self, definition: &Definition) -> u32 {
        let running = self.jobs().filter(|(_, _, job)| job.holds_slot());
        running.fold(0, |sum: u32, (_, _, job)| {
            sum.saturating_add(definition.job.instances(job.order.instances).count)
        })
    }

    /// Counts values that are equal to all earlier ones.
    pub(crate) fn note_equal(&mut self, value: f64) {
        self.equal_values = match self.equal_values {
            None if self.incumbent.is_none() => Some((value, 1)),
            Some((known, count)) if known.to_bits() == value.to_bits() => {
                Some((known, count.saturating_add(1)))
            }
            Some(_) | None => None,
        };
    }

    /// Returns whether many values of several trials are all equal.
    pub fn is_constant(&self) -> bool {
        self.next_trial > TrialId(1) && self.equal_values.is_some_and(|(_, count)| count >= MANY_VALUES)
    }

    /// Returns why the tuning failed; `None` unless it has failed or is about to. A tuning that found no capacity has
    /// failed if it has no value either.
    pub fn failure(&self) -> Option<&str> {
        let (Status::Ending(why) | Status::Ended { why, .. }) = &self.status else { return None };
        why.fails(self.incumbent.is_some()).then(|| why.message())
    }

    /// Returns whether the tuning has ended.
    pub fn is_ended(&self) -> bool {
        matches!(self.status, Status::Ended { .. })
    }
}

/// Returns when the latest job got its instances, of the jobs that run or ended a short time ago.
pub(crate) fn latest_start(state: &State) -> Option<Time> {
    state.billed_jobs().filter_map(|(_, job)| job.started()).max()
}

/// Counts the end of a job in the counters of AMT.
pub(crate) fn count_end(state: &mut State, end: Option<JobEnd>) {
    let counters = &mut state.counters;
    let counter = match end {
        Some(JobEnd::Completed) => &mut counters.completed,
        Some(JobEnd::Stopped | JobEnd::MaxRuntime | JobEnd::MaxWait) => &mut counters.stopped,
        Some(JobEnd::CapacityError | JobEnd::ServiceError) => &mut counters.retryable_error,
        Some(JobEnd::AlgorithmError) | None => &mut counters.non_retryable_error,
    };
    *counter = counter.saturating_add(1);
}
