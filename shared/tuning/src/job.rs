//! A training job, from its order until its bill is final.

pub(crate) mod instances;
pub mod pool;

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, JobLimits};
use crate::log::fact::{JobEnd, JobKey, JobPhase};
use crate::log::reasons::StopWhy;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{ChoiceId, RungId};
use crate::unit::money::MicroUsd;
use crate::unit::time::{Millis, Time};

/// A training job that is not concluded, or whose bill is not final.
#[expect(clippy::struct_excessive_bools, reason = "each says that one thing was seen, in any order")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The rung for which it was started.
    pub rung: RungId,
    /// Attempt, from 1.
    pub attempt: u32,
    /// When it was ordered.
    pub ordered: Time,
    /// The limits sent.
    pub limits: JobLimits,
    /// Whether it runs on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Its instance choice.
    #[serde(default, skip_serializing_if = "ChoiceId::is_first")]
    pub instances: ChoiceId,
    /// The level to which it trains, in epochs; `None` = the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Epochs>,
    /// Epochs that its trial had when it was promoted: the job should resume from there.
    #[serde(default, skip_serializing_if = "Epochs::is_zero")]
    pub checkpoint_epochs: Epochs,
    /// The epoch from which it started again although its trial had more; `None` until that is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_from: Option<Epochs>,
    /// Its worst case, reserved until it is billed.
    pub reservation: MicroUsd,
    /// What it reserved more because it lasts longer than that.
    #[serde(default, skip_serializing_if = "Extension::is_none")]
    pub extension: Extension,
    /// Whether the service has accepted it (or it was seen running).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
    /// Its latest state.
    pub phase: JobPhase,
    /// When it entered that state.
    pub phase_at: Time,
    /// The latest sign of life of any kind.
    pub seen_at: Time,
    /// The first time reported by the sweeper after its own limits should have ended it, counted from that sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_since: Option<Time>,
    /// When its instances began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When its instances stopped running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// The latest time at which facts show that it had instances; `None` = they show none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_at: Option<Time>,
    /// When it last lost its instances to an interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_at: Option<Time>,
    /// The total time of its interruptions that are over. It had no instances then.
    #[serde(default, skip_serializing_if = "Millis::is_zero")]
    pub idle: Millis,
    /// How it ended: the first end seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<JobEnd>,
    /// When that end was.
    pub end_at: Time,
    /// Why it was ordered to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopWhy>,
    /// Whether the service has accepted the stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_accepted: bool,
    /// Whether its bill was ordered to be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bill_ordered: bool,
    /// When the bill was ordered to be read.
    #[serde(default)]
    pub bill_ordered_at: Time,
    /// The first time reported by the sweeper after that order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill_awaited_since: Option<Time>,
    /// When the rest of its log was ordered to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_ordered: Option<Time>,
    /// The first time reported by the sweeper after that order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_awaited_since: Option<Time>,
    /// Whether the rest of its log was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rest_read: bool,
    /// Its bill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill: Option<Bill>,
    /// Billed seconds that the service showed after the conclusion of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill_shown: Option<u64>,
    /// Billed seconds that the service showed once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bill_confirmed: Option<u64>,
    /// Whether it was cancelled before it started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_started: bool,
    /// The answer of a service that refused it for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Whether a quota of the account blocks its start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quota_exceeded: bool,
    /// The latest time to which one of its actions was deferred, and why; in the past once that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<(Time, String)>,
    /// The beginning of the silence for which a look was last ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_ordered: Option<Time>,
    /// The beginning of the silence that a look confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_seen: Option<Time>,
    /// The failure reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Interruptions so far.
    #[serde(default, skip_serializing_if = "crate::unit::is_zero")]
    pub interruptions: u32,
    /// The last values of its metrics, by their place in `MetricDefinitions`, once it has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<(u8, f64)>,
}

/// What a job past its first reservation reserved more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extension {
    /// The seconds that it pays for.
    pub seconds: u64,
    /// The part of the reservation.
    pub amount: MicroUsd,
}

impl Extension {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The bill of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    /// Billed seconds; `None` when it was settled in full without a bill.
    pub seconds: Option<u64>,
    /// The amount.
    pub amount: MicroUsd,
}

impl Job {
    /// Returns a job that is ordered at `now`.
    pub(crate) fn ordered(key: JobKey, now: Time, limits: JobLimits, reservation: MicroUsd) -> Self {
        Self {
            rung: key.rung,
            attempt: key.attempt,
            ordered: now,
            limits,
            on_demand: false,
            instances: ChoiceId(0),
            level: None,
            checkpoint_epochs: Epochs::ZERO,
            repeats_from: None,
            reservation,
            extension: Extension::default(),
            accepted: false,
            phase: JobPhase::Starting,
            phase_at: Time::MIN,
            seen_at: now,
            overdue_since: None,
            started: None,
            ended: None,
            instances_at: None,
            interrupted_at: None,
            idle: Millis::ZERO,
            end: None,
            end_at: Time::EPOCH,
            stop: None,
            stop_accepted: false,
            bill_ordered: false,
            bill_ordered_at: Time::EPOCH,
            bill_awaited_since: None,
            rest_ordered: None,
            rest_awaited_since: None,
            rest_read: false,
            bill: None,
            bill_shown: None,
            bill_confirmed: None,
            never_started: false,
            refused: None,
            quota_exceeded: false,
            deferred: None,
            look_ordered: None,
            silence_seen: None,
            message: None,
            interruptions: 0,
            metrics: Vec::new(),
        }
    }

    /// Returns whether this is job `key` of its trial.
    pub fn is(&self, key: JobKey) -> bool {
        self.rung == key.rung && self.attempt == key.attempt
    }

    /// Returns how the job ended. Its time limit ended it too if the decider stopped it for its reservation.
    pub(crate) fn end_by_limit(&self) -> Option<JobEnd> {
        let by_clock = matches!(self.stop, Some(StopWhy::ReservationUsed { .. }));
        self.end.map(|end| if by_clock && end == JobEnd::Stopped { JobEnd::MaxRuntime } else { end })
    }

    /// Returns why the decider ended the trial of the job with a stop; `None` if it stopped the job for its time limit.
    pub(crate) fn trial_stop(&self) -> Option<StopWhy> {
        self.stop.filter(|why| !matches!(why, StopWhy::ReservationUsed { .. }))
    }

    /// Returns whether the job holds a slot. Only its end frees the slot, not the order to stop it.
    pub fn holds_slot(&self) -> bool {
        self.end.is_none() && !self.never_started && self.refused.is_none()
    }

    /// Returns whether the job's money is settled: its bill is known, or it never ran.
    pub fn is_closed(&self) -> bool {
        self.bill.is_some() || self.never_started || self.refused.is_some()
    }
}

impl Job {
    /// Returns the concluded job with what its bill needs, unless its bill is final.
    pub(crate) fn awaiting_final_bill(&self, key: JobKey) -> Option<(JobKey, Self)> {
        let never_ran = self.never_started || self.refused.is_some();
        let awaits = !never_ran && !self.has_final_bill();
        awaits.then(|| (key, Self { message: None, deferred: None, ..self.clone() }))
    }

    /// Returns whether no other bill of the job will be booked: it was read once more, or it never came.
    pub(crate) fn has_final_bill(&self) -> bool {
        let shown = |seconds: Option<u64>| self.bill_shown.is_none() || seconds >= self.bill_shown;
        self.bill.is_some_and(|Bill { seconds, .. }| {
            crate::planted!(FirstBillFinal)
                || seconds.is_none()
                || (seconds == self.bill_confirmed && shown(seconds))
        })
    }

    /// Returns the billed seconds that the service showed for a concluded job and that are not booked.
    pub fn unbooked_seconds(&self) -> Option<u64> {
        let booked = self.bill.and_then(|bill| bill.seconds);
        self.bill_shown.filter(|_| self.bill_shown > booked)
    }
}

/// Returns when the limits of a running job must have ended it.
///
/// Counts from the job's last sign of life: limits do not bind a job that waits for instances, and every look that
/// finds the job is a sign of life. `None` for a job that does not run.
pub(crate) fn must_end_at(definition: &Definition, job: &Job) -> Option<Time> {
    // A job that the service has not accepted yet still has its start pending, which will have an outcome.
    let runs = job.accepted && job.end.is_none() && !job.is_closed();
    runs.then(|| job.seen_at + Millis::from_seconds(definition.reserved_seconds(job.limits)))
}

/// Returns the beginning of the silence for which a look at `job` was ordered and has no outcome yet.
pub fn open_look(job: &Job) -> Option<Time> {
    job.look_ordered.filter(|since| job.holds_slot() && job.silence_seen < Some(*since))
}

/// Returns whether the job never ran: it was cancelled or refused.
pub(crate) fn never_ran(job: &Job) -> bool {
    job.never_started || job.refused.is_some()
}

/// Returns the failure reason of a job.
pub(crate) fn failure_message(job: &Job) -> String {
    job.message.clone().unwrap_or_else(|| "the training job failed without a reason".to_owned())
}

/// Returns whether a job ended without ever having had instances, for lack of capacity or by a stop, and was billed
/// nothing. Such an attempt does not count as a training job. One that failed for another reason counts: otherwise a
/// tuning whose jobs all fail would start them without end.
pub(crate) fn ended_without_instances(job: &Job) -> bool {
    let end = matches!(job.end, Some(JobEnd::CapacityError | JobEnd::MaxWait | JobEnd::Stopped));
    let free = job.bill.is_some_and(|bill| bill.seconds == Some(0));
    end && free && !job.had_instances()
}
