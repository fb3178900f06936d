//! The training jobs of one trial, from the order to the bill, and their cost up to any step.

use tuning::definition::{Definition, JobLimits};
use tuning::log::fact::JobKey;
use tuning::log::reasons::RetryWhy;
use tuning::state::State;
use tuning::trial::summary::JobSummary;
use tuning::trial::summary::full_summary;
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use wire::explain::{CostSoFar, ExplainedJob};
use wire::names::training_job_name;

use super::words;
use crate::store::Tuning;

/// The jobs so far.
#[derive(Default)]
pub(super) struct Jobs {
    list: Vec<(JobKey, ExplainedJob)>,
    /// Why the next attempt is awaited.
    retry: Option<RetryWhy>,
    billed_seconds: u64,
    billed: MicroUsd,
}

impl Jobs {
    /// Adds an ordered job. Returns the reason for this attempt.
    pub(super) fn ordered(
        &mut self,
        tuning: &Tuning,
        key: JobKey,
        at: Time,
        limits: JobLimits,
        reservation: MicroUsd,
    ) -> String {
        let why = words::attempt(key, self.retry.take());
        let job = ExplainedJob {
            training_job_name: training_job_name(&tuning.id, key),
            attempt: key.attempt,
            rung: key.rung,
            ordered_time: at.0,
            why: why.clone(),
            max_runtime_in_seconds: limits.max_runtime_seconds,
            max_wait_time_in_seconds: limits.max_wait_seconds,
            reserved_usd: tuning.definition.job.is_priced().then_some(reservation),
            ..ExplainedJob::default()
        };
        self.list.push((key, job));
        why
    }

    /// Records why a further attempt is awaited.
    pub(super) fn awaits(&mut self, why: RetryWhy) {
        self.retry = Some(why);
    }

    /// Takes the final data of job `key`, which is about to leave the state. Returns the job.
    pub(super) fn concluded(
        &mut self,
        definition: &Definition,
        state: &State,
        key: JobKey,
    ) -> Option<ExplainedJob> {
        let summary = self.update(definition, state, key)?;
        self.billed_seconds = self.billed_seconds.saturating_add(summary.billable_seconds.unwrap_or(0));
        self.billed = self.billed.plus(summary.cost.unwrap_or(MicroUsd::ZERO));
        self.list.iter().find(|(known, _)| *known == key).map(|(_, job)| job.clone())
    }

    /// Takes the bill of job `key`, which has left the state; `seconds` = `None` if the whole reservation was booked.
    pub(super) fn booked(
        &mut self,
        definition: &Definition,
        key: JobKey,
        seconds: Option<u64>,
        amount: MicroUsd,
    ) {
        let Some((_, job)) = self.list.iter_mut().find(|(known, _)| *known == key) else { return };
        let before = job.cost_usd.unwrap_or(MicroUsd::ZERO);
        let more = seconds.unwrap_or(0).saturating_sub(job.billable_seconds.unwrap_or(0));
        self.billed_seconds = self.billed_seconds.saturating_add(more);
        self.billed = self.billed.plus(amount.minus(before));
        job.billable_seconds = seconds;
        job.cost_usd = definition.job.is_priced().then_some(amount);
        job.settled_in_full = seconds.is_none();
    }

    /// Takes the present data of job `key`, if the job is in the state. Returns the data.
    pub(super) fn update(
        &mut self,
        definition: &Definition,
        state: &State,
        key: JobKey,
    ) -> Option<JobSummary> {
        let trial = state.trials.get(key.trial)?;
        let live = trial.job().filter(|job| job.is(key))?;
        let summary = full_summary(definition, key, trial, live);
        let (_, job) = self.list.iter_mut().find(|(known, _)| *known == key)?;
        job.training_start_time = summary.started.map(|time| time.0);
        job.training_end_time = summary.ended.map(|time| time.0);
        job.interruptions = summary.interruptions;
        job.end = end(&summary);
        job.failure_reason.clone_from(&summary.message);
        job.billable_seconds = summary.billable_seconds;
        job.cost_usd = summary.cost.filter(|_| definition.job.is_priced());
        job.settled_in_full = summary.settled_in_full;
        Some(summary)
    }

    /// Returns the cost of the trial in `state`: booked bills, and an estimate for a job without a bill.
    pub(super) fn cost_so_far(&self, definition: &Definition, state: &State, trial: TrialId) -> CostSoFar {
        let rate = definition.job.rate;
        let mut cost = CostSoFar {
            billed_seconds: self.billed_seconds,
            billed_usd: rate.map(|_| self.billed),
            estimated_seconds: None,
            estimated_usd: None,
        };
        let Some(job) = state.trials.get(trial).and_then(|trial| trial.job()) else { return cost };
        if let Some(amount) = job.bill.amount() {
            cost.billed_seconds = cost.billed_seconds.saturating_add(job.bill.seconds().unwrap_or(0));
            cost.billed_usd = cost.billed_usd.map(|billed| billed.plus(amount));
        } else if let Some(started) = job.started() {
            let until = job.ended().unwrap_or(state.now);
            let seconds = (until - started).seconds_rounded_up();
            cost.estimated_seconds = Some(seconds);
            // A job never costs more than its reservation.
            let instances = definition.job.instances(job.order.instances);
            cost.estimated_usd = instances.cost(seconds).map(|cost| cost.min(job.bill.reservation));
        }
        cost
    }

    /// Returns all jobs in the order in which they were ordered.
    pub(super) fn list(self) -> Vec<ExplainedJob> {
        self.list.into_iter().map(|(_, job)| job).collect()
    }
}

/// Returns how a job ended, as one word.
fn end(job: &JobSummary) -> Option<String> {
    match job.end {
        Some(end) => Some(format!("{end:?}")),
        None if job.never_started && job.message.is_some() => Some("Refused".to_owned()),
        None if job.never_started => Some("NeverStarted".to_owned()),
        None => None,
    }
}
