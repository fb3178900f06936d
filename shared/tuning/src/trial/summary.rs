//! The summary of a training job: stored when the job leaves the state, and computed for Describe while it runs.

use hyperband::ranking::improves;
use search::Configuration;
use serde::{Deserialize, Serialize};

use crate::definition::{Definition, JobLimits};
use crate::job::Job;
use crate::log::fact::{JobEnd, JobKey, JobPhase};
use crate::log::reasons::StopWhy;
use crate::log::ruling::{Booking, Ruling};
use crate::trial::Trial;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, ChoiceId};
use crate::unit::limits::CURVE_POINTS_KEPT;
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// The summary of a training job.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing about the job, independent of the others"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// The job.
    pub job: JobKey,
    /// The bracket of its trial.
    pub bracket: BracketId,
    /// Its tuned hyperparameters.
    pub configuration: Configuration,
    /// Its last known state.
    pub phase: JobPhase,
    /// How it ended; `None` while it runs, or when it never started.
    pub end: Option<JobEnd>,
    /// When it was ordered.
    pub ordered: Time,
    /// When its instances began to run.
    pub started: Option<Time>,
    /// When its instances stopped running.
    pub ended: Option<Time>,
    /// Why the decider stopped it.
    pub stop: Option<StopWhy>,
    /// The reason of a failure or refusal.
    pub message: Option<String>,
    /// Whether it never started.
    pub never_started: bool,
    /// The last value that it logged.
    pub last_value: Option<f64>,
    /// The best value of its trial.
    pub best_value: Option<f64>,
    /// The highest epoch that its trial has reached.
    pub resource: Epochs,
    /// How many rungs its trial has passed.
    pub rungs_passed: u32,
    /// The epoch up to which it trains, where trials are promoted; `None` = the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Epochs>,
    /// The epoch from which it resumed, where its trial had been promoted; `None` before its first value, or if it did
    /// not resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<Epochs>,
    /// The epoch from which it started again although its trial had more: the epochs in between were trained twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_from: Option<Epochs>,
    /// Whether it was concluded: its end and its last value are final, its cost may follow.
    #[serde(default)]
    pub concluded: bool,
    /// The limits sent.
    pub limits: JobLimits,
    /// Whether it ran on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Its instance choice.
    #[serde(default)]
    pub instances: ChoiceId,
    /// Its reserved worst case.
    pub reservation: MicroUsd,
    /// Billed seconds; `None` = not known yet.
    pub billable_seconds: Option<u64>,
    /// Its cost; `None` = not known yet.
    pub cost: Option<MicroUsd>,
    /// For how many seconds its instances were kept after its end; `None` = not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retained_seconds: Option<u64>,
    /// The booked cost of keeping them; without `retained_seconds` it is the whole reservation for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retained_cost: Option<MicroUsd>,
    /// Whether its bill never came and the whole reservation was booked.
    pub settled_in_full: bool,
    /// Interruptions so far.
    pub interruptions: u32,
    /// The last values of its metrics, by their place in `MetricDefinitions`, once it has ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<(u8, f64)>,
    /// The (epoch, value) points of its trial, thinned to at most 201 points.
    pub curve: Vec<(Epochs, Option<f64>)>,
}

impl JobSummary {
    /// Takes what `ruling` books for the concluded job.
    pub fn book(&mut self, ruling: &Ruling) {
        match ruling {
            Ruling::Booking(Booking::BillBooked { seconds, amount, .. }) => {
                (self.billable_seconds, self.cost) = (Some(*seconds), Some(*amount));
            }
            Ruling::Booking(Booking::SettledInFull { amount, .. }) => {
                (self.cost, self.settled_in_full) = (Some(*amount), true);
            }
            Ruling::Booking(Booking::PoolClosed { seconds, amount, .. }) => {
                (self.retained_seconds, self.retained_cost) = (*seconds, Some(*amount));
            }
            Ruling::Search(_)
            | Ruling::Attempt(_)
            | Ruling::Booking(Booking::ReservationExtended { .. })
            | Ruling::TuningEnding { .. }
            | Ruling::Order(_) => {}
        }
    }
}

/// Returns the summary of a job of `trial` as the job is now, without its best value.
pub fn summary(definition: &Definition, key: JobKey, trial: &Trial, job: &Job) -> JobSummary {
    let never_started = job.is_void();
    // The values of a trial do not belong to an attempt that never ran or logged nothing.
    let emitted = !never_started && trial.last_line_of(job.order.attempt).is_some();
    let last_value = trial.last_value(job.order.attempt).filter(|_| emitted);
    JobSummary {
        job: key,
        bracket: trial.bracket(definition),
        configuration: trial.configuration.clone(),
        phase: job.phase(),
        end: job.end(),
        ordered: job.order.at,
        started: job.started(),
        ended: job.ended(),
        stop: job.stop_why(),
        message: job.message.clone().or_else(|| job.refused().map(str::to_owned)),
        never_started,
        last_value,
        best_value: None,
        resource: trial.resource(),
        rungs_passed: trial.next_rung().0,
        level: job.order.level,
        resumed_from: resumed_from(trial, job),
        repeats_from: job.repeats_from,
        concluded: false,
        limits: job.order.limits,
        on_demand: job.order.on_demand,
        instances: job.order.instances,
        reservation: job.bill.reservation,
        billable_seconds: job.bill.seconds(),
        cost: job.bill.amount(),
        retained_seconds: None,
        retained_cost: None,
        settled_in_full: job.bill.is_in_full(),
        interruptions: job.interruptions(),
        metrics: job.metrics.clone(),
        curve: thinned(trial),
    }
}

/// Returns the epoch from which a job resumed its checkpoint, once a line of the job shows that it did.
fn resumed_from(trial: &Trial, job: &Job) -> Option<Epochs> {
    let mut own =
        trial.streams.iter().filter(|stream| stream.attempt == job.order.attempt && !stream.unplaced);
    let shown = own.any(|stream| stream.span.is_some());
    (!job.order.checkpoint_epochs.is_zero() && job.repeats_from.is_none() && shown)
        .then_some(job.order.checkpoint_epochs)
}

/// Like [`summary`], but with the best value, which depends on the direction of the objective.
pub fn full_summary(definition: &Definition, key: JobKey, trial: &Trial, job: &Job) -> JobSummary {
    let direction = definition.direction();
    let last = trial.last_value(job.order.attempt);
    let values = trial.curve.values().flatten().copied().chain(last);
    let best = values.fold(None, |best: Option<f64>, value| {
        Some(best.filter(|best| !improves(direction, value, *best)).unwrap_or(value))
    });
    JobSummary { best_value: best, ..summary(definition, key, trial, job) }
}

/// Returns the points of the curve of a trial that its rows keep.
pub(crate) fn thinned(trial: &Trial) -> Vec<(Epochs, Option<f64>)> {
    let step = trial.curve.len().div_ceil(CURVE_POINTS_KEPT).max(1);
    let last = trial.curve.last_key_value();
    let mut points: Vec<_> =
        trial.curve.iter().step_by(step).map(|(epoch, value)| (*epoch, *value)).collect();
    if let Some((epoch, value)) = last
        && points.last().is_some_and(|point| point.0 != *epoch)
    {
        points.push((*epoch, *value));
    }
    points
}

#[cfg(test)]
mod tests;
