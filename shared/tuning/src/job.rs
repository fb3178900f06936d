//! A training job, from its order until its bill is final.

pub mod bill;
pub mod inquiry;
pub(crate) mod instances;
pub mod pool;
pub mod run;

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, JobLimits};
use crate::job::bill::Bill;
use crate::job::inquiry::{Asked, Inquiry};
use crate::job::run::{Run, Trace};
use crate::log::fact::{JobEnd, JobKey, JobPhase};
use crate::log::reasons::StopWhy;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{ChoiceId, RungId, TrialId};
use crate::unit::limits::MAX_MESSAGE_CHARS;
use crate::unit::money::MicroUsd;
use crate::unit::time::{Millis, Time};

/// A training job that is not concluded, or whose bill is not final.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its order.
    pub order: Ordered,
    /// How far it has come.
    pub run: Run,
    /// The order to stop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Its reservation and its bill.
    pub bill: Bill,
    /// The read of the rest of its log.
    pub final_log: Inquiry,
    /// The checks of its silence, by the beginning of the silence.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub silence_check: Asked<Time>,
    /// The epoch from which it started again although its trial had more; `None` until that is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_from: Option<Epochs>,
    /// The latest time to which one of its actions was deferred, and why; in the past once that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<(Time, String)>,
    /// The failure reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The last values of its metrics, by their place in `MetricDefinitions`, once it has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<(u8, f64)>,
}

/// The order of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    /// The rung for which it was started.
    pub rung: RungId,
    /// Attempt, from 1.
    pub attempt: u32,
    /// When it was ordered.
    pub at: Time,
    /// The limits sent.
    pub limits: JobLimits,
    /// Whether it runs on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Its instance choice.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub instances: ChoiceId,
    /// The level to which it trains, in epochs; `None` = the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Epochs>,
    /// Epochs that its trial had when it was promoted: the job should resume from there.
    #[serde(default, skip_serializing_if = "Epochs::is_zero")]
    pub checkpoint_epochs: Epochs,
}

/// The order to stop a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The reason.
    pub why: StopWhy,
    /// Whether the service has accepted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

impl Job {
    pub(crate) fn new(order: Ordered, reservation: MicroUsd) -> Self {
        Self {
            order,
            run: Run::Waiting { quota_exceeded: false },
            stop: None,
            bill: Bill::reserved(reservation),
            final_log: Inquiry::Idle,
            silence_check: Asked::Never,
            repeats_from: None,
            deferred: None,
            message: None,
            metrics: Vec::new(),
        }
    }

    /// Returns the key of the job of `trial`.
    pub fn key(&self, trial: TrialId) -> JobKey {
        JobKey { trial, rung: self.order.rung, attempt: self.order.attempt }
    }

    /// Returns whether this is job `key` of its trial.
    pub fn is(&self, key: JobKey) -> bool {
        self.order.rung == key.rung && self.order.attempt == key.attempt
    }

    /// Returns whether the service is known to have it, or to have had it.
    pub fn is_accepted(&self) -> bool {
        self.run.trace().is_some()
    }

    /// Returns whether the service has it, and no fact shows its end.
    pub fn is_known(&self) -> bool {
        matches!(self.run, Run::Known(_))
    }

    /// Returns whether its start is ordered, and nothing shows that the service has it or never will.
    pub fn awaits_start(&self) -> bool {
        matches!(self.run, Run::Waiting { .. })
    }

    /// Returns its latest state.
    pub fn phase(&self) -> JobPhase {
        match &self.run {
            Run::Ended { end, .. } => JobPhase::Ended(*end),
            Run::Known(trace) => trace.phase.map_or(JobPhase::Starting, |(_, phase)| phase),
            Run::Waiting { .. } | Run::Void { .. } => JobPhase::Starting,
        }
    }

    /// Returns when it entered that state; `None` before the first one.
    pub fn phase_at(&self) -> Option<Time> {
        match &self.run {
            Run::Ended { at, .. } => Some(*at),
            Run::Known(trace) => trace.phase.map(|(at, _)| at),
            Run::Waiting { .. } | Run::Void { .. } => None,
        }
    }

    /// Returns when it entered `phase`, if that is its latest state.
    pub fn entered(&self, phase: JobPhase) -> Option<Time> {
        self.phase_at().filter(|_| self.phase() == phase)
    }

    /// Returns the latest sign of life of any kind.
    pub fn seen_at(&self) -> Time {
        self.run.trace().map_or(self.order.at, |trace| trace.seen_at)
    }

    /// Returns when its instances began to run.
    pub fn started(&self) -> Option<Time> {
        self.run.trace()?.started
    }

    /// Returns when its instances stopped running, as the service reports it.
    pub fn ended(&self) -> Option<Time> {
        self.run.trace()?.ended
    }

    /// Returns how often it was interrupted.
    pub fn interruptions(&self) -> u32 {
        self.run.trace().map_or(0, |trace| trace.interruptions)
    }

    /// Returns the total time of its interruptions that are over.
    pub(crate) fn idle(&self) -> Millis {
        self.run.trace().map_or(Millis::ZERO, |trace| trace.idle)
    }

    /// Returns how it ended.
    pub fn end(&self) -> Option<JobEnd> {
        match &self.run {
            Run::Ended { end, .. } => Some(*end),
            Run::Waiting { .. } | Run::Known(_) | Run::Void { .. } => None,
        }
    }

    /// Returns when its instances stopped running, else when its end was reported; `None` before its end.
    pub(crate) fn stopped_running_at(&self) -> Option<Time> {
        match &self.run {
            Run::Ended { at, trace, .. } => Some(trace.ended.unwrap_or(*at)),
            Run::Waiting { .. } | Run::Known(_) | Run::Void { .. } => None,
        }
    }

    /// Returns how the job ended. Its time limit ended it too if the decider stopped it for its reservation.
    pub(crate) fn end_by_limit(&self) -> Option<JobEnd> {
        let by_clock = matches!(self.stop_why(), Some(StopWhy::ReservationUsed { .. }));
        self.end().map(|end| if by_clock && end == JobEnd::Stopped { JobEnd::MaxRuntime } else { end })
    }

    /// Returns why it was ordered to stop.
    pub fn stop_why(&self) -> Option<StopWhy> {
        self.stop.map(|stop| stop.why)
    }

    /// Returns why the decider ended the trial of the job with a stop; `None` if it stopped the job for its time limit.
    pub(crate) fn trial_stop(&self) -> Option<StopWhy> {
        self.stop_why().filter(|why| !matches!(why, StopWhy::ReservationUsed { .. }))
    }

    /// Returns whether it never runs: it was cancelled or refused.
    pub fn is_void(&self) -> bool {
        matches!(self.run, Run::Void { .. })
    }

    /// Returns whether it was cancelled before it started.
    pub(crate) fn is_cancelled(&self) -> bool {
        matches!(self.run, Run::Void { refused: None })
    }

    /// Returns the answer of a service that refused it for good.
    pub fn refused(&self) -> Option<&str> {
        match &self.run {
            Run::Void { refused } => refused.as_deref(),
            Run::Waiting { .. } | Run::Known(_) | Run::Ended { .. } => None,
        }
    }

    /// Returns whether a quota blocks its start.
    pub fn is_blocked_by_quota(&self) -> bool {
        matches!(self.run, Run::Waiting { quota_exceeded: true })
    }

    /// Returns whether the job holds a slot. Only its end frees the slot, not the order to stop it.
    pub fn holds_slot(&self) -> bool {
        matches!(self.run, Run::Waiting { .. } | Run::Known(_))
    }

    /// Returns whether the job's money is settled: its bill is known, or it never ran.
    pub fn is_closed(&self) -> bool {
        self.is_void() || self.bill.amount().is_some()
    }

    /// Returns the concluded job with what its bill needs, unless its bill is final.
    pub(crate) fn awaiting_final_bill(&self, trial: TrialId) -> Option<(JobKey, Self)> {
        let awaits = !self.is_void() && !self.bill.is_final();
        awaits.then(|| (self.key(trial), Self { message: None, deferred: None, ..self.clone() }))
    }

    /// Records a state that the service reports. Returns whether anything is new.
    pub(crate) fn note_state(
        &mut self,
        at: Time,
        phase: JobPhase,
        (started, ended): (Option<Time>, Option<Time>),
        message: Option<&str>,
    ) -> bool {
        let before = (self.run.clone(), self.message.is_some());
        let Some(trace) = self.run.show(self.order.at) else { return false };
        trace.note_seen(at);
        trace.note_times(at, phase, started, ended);
        match (phase, &mut self.run) {
            (JobPhase::Ended(end), run) => run.end(end, at),
            (_, Run::Known(trace)) => trace.enter(at, phase),
            (_, Run::Waiting { .. } | Run::Ended { .. } | Run::Void { .. }) => {}
        }
        self.message = self.message.take().or_else(|| message.map(shortened));
        (&before.0, before.1) != (&self.run, self.message.is_some())
    }

    /// Records a sign of life at `at`; returns the trace, unless the job never runs.
    pub(crate) fn note_seen(&mut self, at: Time) -> Option<&mut Trace> {
        let trace = self.run.show(self.order.at)?;
        trace.note_seen(at);
        Some(trace)
    }

    /// Records a time that the sweeper reports.
    pub(crate) fn tick(&mut self, definition: &Definition, at: Time) {
        if let Some(inquiry) = self.bill.inquiry_mut() {
            inquiry.tick(at);
        }
        self.final_log.tick(at);
        // A late time that comes after newer signs of life does not show how long the job has been gone: count from this
        // report on.
        let end = must_end_at(definition, self);
        if let Run::Known(trace) = &mut self.run
            && end.is_some_and(|end| at >= end && trace.overdue_since < Some(end))
        {
            trace.overdue_since = Some(at);
        }
    }
}

/// Returns a message from outside, cut to its maximum length.
pub(crate) fn shortened(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Returns when the limits of a running job must have ended it.
///
/// Counts from the job's last sign of life: limits do not bind a job that waits for instances, and every look that
/// finds the job is a sign of life. `None` for a job that does not run, and while its start is pending, which will have
/// an outcome.
pub(crate) fn must_end_at(definition: &Definition, job: &Job) -> Option<Time> {
    match &job.run {
        Run::Known(trace) if !job.is_closed() => {
            Some(trace.seen_at + Millis::from_seconds(definition.reserved_seconds(job.order.limits)))
        }
        Run::Waiting { .. } | Run::Known(_) | Run::Ended { .. } | Run::Void { .. } => None,
    }
}

/// Returns the beginning of the silence of `job` whose check was ordered and has no outcome yet.
pub fn open_silence_check(job: &Job) -> Option<Time> {
    job.silence_check.open().filter(|_| job.holds_slot())
}

pub(crate) fn failure_message(job: &Job) -> String {
    job.message.clone().unwrap_or_else(|| "the training job failed without a reason".to_owned())
}

/// Returns whether a job ended without ever having had instances, for lack of capacity or by a stop, and was billed
/// nothing. Such an attempt does not count as a training job. One that failed for another reason counts: otherwise a
/// tuning whose jobs all fail would start them without end.
pub(crate) fn ended_without_instances(job: &Job) -> bool {
    let end = matches!(job.end(), Some(JobEnd::CapacityError | JobEnd::MaxWait | JobEnd::Stopped));
    end && job.bill.seconds() == Some(0) && !job.had_instances()
}
