//! The state of a tuning: what the steps so far amount to. Only live trials are in it; concluded jobs leave it.
//!
//! Changed by [`crate::fold`] (facts) and [`State::apply`] (rulings), and by nothing else. Its serialised form is the
//! snapshot; a field may be added with a default, never renamed.

mod apply;
mod cohort;
mod rung;

use std::collections::{BTreeMap, BTreeSet};

use search::Configuration;
use serde::{Deserialize, Serialize};

use crate::changes::Changes;
use crate::definition::{Definition, JobLimits};
use crate::fact::{JobEnd, JobKey, JobPhase};
use crate::grants::Grants;
use crate::held::Held;
use crate::ledger::Ledger;
use crate::money::MicroUsd;
use crate::pool::Pool;
use crate::ruling::{EndReason, StopWhy};
use crate::runtime::Timings;
use crate::summary::JobSummary;

pub use cohort::{Arrival, Cohort};
pub use rung::RungState;

/// The state of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Greatest time on a folded fact, ms since the epoch: the decider's only clock.
    pub now: i64,
    /// Greatest time that the sweeper told: never ahead of the facts it read before, unlike `now`.
    #[serde(default)]
    pub clock: i64,
    /// Whether its submission was folded: nothing is decided before.
    pub submitted: bool,
    /// Whether it goes on.
    pub status: Status,
    /// Money.
    pub ledger: Ledger,
    /// Number of the next new trial.
    pub next_trial: u32,
    /// Jobs launched (ordered, less those that never started).
    pub launched: u32,
    /// Trials that joined each bracket.
    pub joined: Vec<u32>,
    /// Arrivals, per bracket and rung.
    pub rungs: Vec<Vec<RungState>>,
    /// Where trials are promoted: those that are promoted among each other. A round that is over is counted in `rungs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cohorts: Vec<Cohort>,
    /// Live trials: a job is not concluded, or a further one is awaited.
    pub trials: BTreeMap<u32, Trial>,
    /// Trials that have come to their rung's level and wait there to be promoted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<u32, Trial>,
    /// Instances kept after jobs, whose cost is not known yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<Pool>,
    /// Running times of concluded jobs.
    pub timings: Timings,
    /// Best value seen at any epoch.
    pub incumbent: Option<Incumbent>,
    /// The concluded job with the best final value (AMT's best training job).
    pub best: Option<Box<JobSummary>>,
    /// Concluded jobs by kind.
    pub counters: Counters,
    /// Trials finished since the incumbent last changed.
    pub since_improved: u32,
    /// Trials finished while no value had ever been seen.
    pub fruitless: u32,
    /// Refused starts in a row.
    pub refusals: u32,
    /// No start before this time: the service lacks capacity or throttles.
    pub hold_starts_until: Option<i64>,
    /// Since when starts are put off and nothing runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Until when the request's choices of instances are taken to lack capacity, by choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_until: Vec<i64>,
    /// Whether people were told of a bill above its reservation.
    #[serde(default)]
    pub overrun_told: bool,
    /// The share of the cap, in percent, of which people were told last.
    #[serde(default)]
    pub cap_told: u32,
    /// Notices that were ordered and are not known to have gone out, by their action. (That of the end is not among
    /// them: nothing is folded any more then.)
    #[serde(default)]
    pub notices: BTreeSet<String>,
    /// The latest job that trains the best configuration once more, once it was ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<JobKey>,
    /// What its user has changed.
    #[serde(default, skip_serializing_if = "Changes::is_none")]
    pub changes: Changes,
    /// Money out of the month's cap.
    #[serde(default)]
    pub grants: Grants,
    /// Message of the last failure.
    pub last_failure: Option<String>,
}

/// Whether a tuning goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// It goes on.
    Active,
    /// No further job; running ones end.
    Ending(EndReason),
    /// Over.
    Ended {
        /// Why.
        why: EndReason,
        /// When, ms.
        at: i64,
    },
}

/// A live trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its bracket.
    pub bracket: u32,
    /// Its hyperparameters.
    pub configuration: Configuration,
    /// The round of its bracket, where rungs close.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
    /// Set for the one that trains the best configuration once more: the epochs to which it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<u32>,
    /// First rung at which it has not been judged; where trials are promoted, the rung to which it trains or waits at.
    pub next_rung: u32,
    /// Set when it is not to go on.
    pub out: Option<StopWhy>,
    /// First value at each epoch, by epoch.
    pub curve: BTreeMap<u32, Option<f64>>,
    /// Its log streams, oldest first.
    pub streams: Vec<Stream>,
    /// How many streams it had when reading its stored log was last ordered, and when that was last done.
    #[serde(default)]
    pub read_ordered: u32,
    /// See `read_ordered`.
    #[serde(default)]
    pub streams_read: u32,
    /// Its last line so far: time, id, value.
    pub last_line: Option<(i64, String, Option<f64>)>,
    /// The attempt that emitted it.
    #[serde(default)]
    pub last_line_attempt: u32,
    /// Attempts ordered so far.
    pub attempts: u32,
    /// Attempts that belong to rungs it has passed: what is still heard of them changes nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub past_attempts: u32,
    /// Of these, further ones for lack of capacity and the like.
    pub retries: u32,
    /// Choices of instances left for lack of capacity since it last waited for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub moves: u32,
    /// Whether the next attempt gets the user's own running-time limit.
    pub full_limit: bool,
    /// Whether the next attempt runs on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// When it waits for a further attempt: not before this time.
    pub retry_at: Option<i64>,
    /// The job that is not concluded.
    pub job: Option<Job>,
}

/// A log stream of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// The attempt that wrote it.
    #[serde(default)]
    pub attempt: u32,
    /// Epochs its trial had before this stream began.
    pub offset: u32,
    /// Time and id of the line that proved the offset.
    #[serde(default)]
    pub proof: Option<(i64, String)>,
    /// Time and id of its lines in order, kept only where the epoch is the line's rank.
    pub lines: Vec<(i64, String, Option<f64>)>,
    /// Whether its place is not known yet: its program went on from a checkpoint and counts from there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unplaced: bool,
    /// The lines of one that is not placed, by their own epoch, with their values; where the epoch is captured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub held: BTreeMap<u32, Option<f64>>,
    /// Time and epoch of its first and of its last line.
    pub span: Option<((i64, u32), (i64, u32))>,
    /// Whether all its lines at the epoch with which its trial was promoted show the value of then, bit for bit; `None` = it
    /// has none there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_again: Option<bool>,
}

/// A training job that is not concluded.
#[expect(clippy::struct_excessive_bools, reason = "each says that one thing was seen, in any order")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Rung it was started for.
    pub rung: u32,
    /// Attempt, from 1.
    pub attempt: u32,
    /// When it was ordered.
    pub ordered: i64,
    /// Limits sent.
    pub limits: JobLimits,
    /// Whether it runs on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Which of the request's choices of instances it runs on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub instances: u32,
    /// The level to which it trains, in epochs; `None` = the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// Epochs that its trial had been promoted with: it should go on from there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub had: u32,
    /// The epochs with which it began although its trial had more, once that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_from: Option<u32>,
    /// Its worst case, reserved until it is billed.
    pub reservation: MicroUsd,
    /// Whether the service has accepted it (or it was seen running).
    pub accepted: bool,
    /// Its latest state, and when it entered it.
    pub phase: JobPhase,
    /// Time of that state.
    pub phase_at: i64,
    /// Latest sign of life of any kind.
    pub seen_at: i64,
    /// The first time that the sweeper told at which it should have ended by its own limits, counted from that sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_since: Option<i64>,
    /// When its instances began to run.
    pub started: Option<i64>,
    /// When they ceased to.
    pub ended: Option<i64>,
    /// How it ended: the first end seen.
    pub end: Option<JobEnd>,
    /// When that end was.
    pub end_at: i64,
    /// Why we ordered it to stop.
    pub stop: Option<StopWhy>,
    /// Whether the service has accepted that.
    pub stop_accepted: bool,
    /// Whether its bill was ordered to be read.
    pub bill_ordered: bool,
    /// When.
    #[serde(default)]
    pub bill_ordered_at: i64,
    /// The first time that the sweeper told after that.
    #[serde(default)]
    pub bill_awaited_since: Option<i64>,
    /// Its bill.
    pub bill: Option<Bill>,
    /// It was called off before it started.
    pub never_started: bool,
    /// The service will not take it, and why.
    pub refused: Option<String>,
    /// Whether it could not be started for a quota of the account.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
    /// The latest time to which one of its actions was put off, and why; in the past once that is over.
    pub deferred: Option<(i64, String)>,
    /// The beginning of the silence for which it was ordered to be looked at.
    #[serde(default)]
    pub look_ordered: Option<i64>,
    /// The beginning of the silence that a look confirmed.
    #[serde(default)]
    pub silence_seen: Option<i64>,
    /// Failure reason.
    pub message: Option<String>,
    /// Interruptions so far.
    pub interruptions: u32,
}

/// A job's bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    /// Seconds billed; `None` when it was settled in full without a bill.
    pub seconds: Option<u64>,
    /// The amount.
    pub amount: MicroUsd,
}

/// The best value seen at any epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incumbent {
    /// The value.
    pub value: f64,
    /// Its trial.
    pub trial: u32,
    /// Its epoch.
    pub resource: u32,
    /// Its hyperparameters, where they are to be trained once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Configuration>,
}

/// Concluded jobs by kind (AMT's counters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Ended well.
    pub completed: u32,
    /// Stopped by an order or a limit.
    pub stopped: u32,
    /// Ended for lack of capacity or by a service fault.
    pub retryable_error: u32,
    /// Failed by their own fault, or refused.
    pub non_retryable_error: u32,
    /// With a final objective value.
    pub objective_succeeded: u32,
    /// Without one.
    pub objective_failed: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl State {
    /// The state before the first fact.
    pub fn new(definition: &Definition) -> Self {
        let plan = definition.plan();
        Self {
            now: definition.created,
            clock: definition.created,
            submitted: false,
            status: Status::Active,
            ledger: Ledger::new(definition.cap, definition.grants),
            next_trial: 0,
            launched: 0,
            joined: vec![0; plan.brackets().len()],
            rungs: plan.brackets().iter().map(|b| vec![RungState::default(); b.rungs().len()]).collect(),
            cohorts: Vec::new(),
            trials: BTreeMap::new(),
            waiting: BTreeMap::new(),
            pools: Vec::new(),
            timings: Timings::default(),
            incumbent: None,
            best: None,
            counters: Counters::default(),
            since_improved: 0,
            fruitless: 0,
            refusals: 0,
            hold_starts_until: None,
            held: None,
            short_until: Vec::new(),
            overrun_told: false,
            cap_told: 0,
            notices: BTreeSet::new(),
            refit: None,
            changes: Changes::default(),
            grants: Grants::default(),
            last_failure: None,
        }
    }

    /// The live job `key`, if it is one.
    pub fn job(&self, key: JobKey) -> Option<&Job> {
        self.trials.get(&key.trial)?.job.as_ref().filter(|job| job.is(key))
    }

    /// Live jobs with their trial numbers, in order of trial.
    pub fn jobs(&self) -> impl Iterator<Item = (JobKey, &Trial, &Job)> {
        self.trials.iter().filter_map(|(number, trial)| {
            let job = trial.job.as_ref()?;
            Some((JobKey { trial: *number, rung: job.rung, attempt: job.attempt }, trial, job))
        })
    }

    /// Jobs that hold a slot: ordered and not seen to have ended.
    pub fn running(&self) -> u32 {
        let count = self.jobs().filter(|(_, _, job)| job.holds_slot()).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Jobs that may still be launched, besides the one that is to train the best configuration once more.
    pub fn jobs_left(&self, definition: &Definition) -> u32 {
        let kept = definition.refit && self.refit.is_none() && !crate::planted!(RefitJobUsed);
        definition.limits.max_jobs.saturating_sub(u32::from(kept)).saturating_sub(self.launched)
    }

    /// Most jobs at once, as it is now.
    pub fn max_parallel(&self, definition: &Definition) -> u32 {
        let first = definition.limits.max_parallel;
        let now = self.changes.max_parallel.as_ref().map_or(first, |change| change.value);
        if crate::planted!(FewerJobsIgnored) { now.max(first) } else { now }
    }

    /// Whether no further job is started for now, by its user's order.
    pub fn is_paused(&self) -> bool {
        self.changes.paused.as_ref().is_some_and(|change| change.value) && !crate::planted!(PauseIgnored)
    }

    /// Instances of the jobs that hold a slot.
    pub fn instances(&self, definition: &Definition) -> u32 {
        let running = self.jobs().filter(|(_, _, job)| job.holds_slot());
        running.fold(0, |sum: u32, (_, _, job)| {
            sum.saturating_add(definition.job.instances(job.instances).count)
        })
    }

    /// Whether nothing is left to do or to wait for.
    pub fn is_ended(&self) -> bool {
        matches!(self.status, Status::Ended { .. })
    }
}

impl Job {
    /// Whether this is job `key` of its trial.
    pub fn is(&self, key: JobKey) -> bool {
        self.rung == key.rung && self.attempt == key.attempt
    }

    /// Whether it holds a slot: a slot is free only when the job has ended, not when its stop was ordered.
    pub fn holds_slot(&self) -> bool {
        if self.stop.is_some() && crate::planted!(StopFreesSlot) {
            return false;
        }
        self.end.is_none() && !self.never_started && self.refused.is_none()
    }

    /// Whether all is known of it: its end and its bill, or that it never ran.
    pub fn is_closed(&self) -> bool {
        self.bill.is_some() || self.never_started || self.refused.is_some()
    }
}

impl Trial {
    /// The epochs at which its present job is done.
    pub fn goal(&self, definition: &Definition) -> u32 {
        self.refit.unwrap_or_else(|| definition.goal(self.bracket, self.next_rung))
    }

    /// It has come to a rung: what is known of its attempts is settled, and their log streams are forgotten.
    fn settle_streams(&mut self) {
        self.past_attempts = self.attempts;
        self.streams.clear();
        self.read_ordered = 0;
        self.streams_read = 0;
    }

    /// Epochs it has reached.
    pub fn resource(&self) -> u32 {
        let placed = self.curve.last_key_value().map_or(0, |(resource, _)| *resource);
        // The first start of a trial begins at the beginning, also while that is not certain yet.
        let first = self
            .streams
            .first()
            .filter(|stream| stream.unplaced && self.next_rung == 0 && self.streams.len() == 1);
        placed.max(first.and_then(|stream| stream.span).map_or(0, |(_, (_, last))| last))
    }
}
