//! Describes training jobs: concluded jobs from their summary rows, live jobs from the state.

use std::collections::BTreeMap;

use tuning::log::fact::{JobEnd, JobKey, JobPhase};
use tuning::log::reasons::StopWhy;
use tuning::trial::summary::JobSummary;
use tuning::trial::summary::full_summary;
use wire::describe::{FinalObjective, JobController, TrainingJobSummary, failure_reason, finite};
use wire::names::training_job_name;
use wire::stored;

use super::Place;
use crate::ports::table::{Query, Table};
use crate::store::{Loaded, Store, StoreError, Tuning};

pub(super) fn shown(tuning: &Tuning, place: &Place, job: &JobSummary) -> TrainingJobSummary {
    let name = training_job_name(&tuning.id, job.job);
    let over = job.concluded || job.cost.is_some() || job.never_started;
    TrainingJobSummary {
        arn: place.training_arn(&name),
        name,
        status: status(job).to_owned(),
        created_ms: job.ordered.0,
        started_ms: job.started.map(|time| time.0),
        ended_ms: job.ended.map(|time| time.0),
        tuned: job.configuration.0.clone(),
        final_objective: FinalObjective::new(tuning.request.objective_metric(), job.last_value),
        failure_reason: job.message.as_deref().map(failure_reason),
        // The value of a failed job, or of one whose end is unknown, is shown, but it is no result.
        objective_status: match (job.last_value.filter(|_| job.end.is_some_and(JobEnd::counts)), over) {
            (_, false) => "Pending",
            (Some(_), true) => "Succeeded",
            (None, true) => "Failed",
        }
        .to_owned(),
        tuning_job_name: None,
        training_job_definition_name: tuning.request.definition_name(job.job.trial.0).map(str::to_owned),
        controller: JobController {
            trial: job.job.trial.0,
            attempt: job.job.attempt,
            bracket: job.bracket.0,
            resource: job.resource.0,
            state: state_of(job).to_owned(),
            rung: job.level.map(|_| job.job.rung.0),
            level: job.level.map(|level| level.0),
            resumed_from: job.level.and(job.resumed_from).map(|epoch| epoch.0),
            repeated_from: job.level.and(job.repeats_from).map(|epoch| epoch.0),
            billable_seconds: job.billable_seconds,
            best_value: job.best_value.and_then(finite),
            stop_reason: job.stop.map(stop_word),
            reserved_usd: (job.cost.is_none() && !job.never_started).then_some(job.reservation),
            // As in the other views, with the instances that were kept for later jobs.
            cost_usd: job.cost.map(|running| running.plus(job.retained_cost.unwrap_or_default())),
            model: None,
            metrics: tuning.request_of(job.job.trial).other_metrics(&job.metrics),
        },
    }
}

/// Returns why a job was stopped, as one word.
pub fn stop_word(why: StopWhy) -> String {
    match why {
        StopWhy::Rung { rung } => format!("Rung{rung}"),
        StopWhy::PastLevel { .. } => "PastLevel".to_owned(),
        StopWhy::MaxResource => "MaxResource".to_owned(),
        StopWhy::Interruptions { .. } => "Interruptions".to_owned(),
        StopWhy::NextInstances => "NextInstances".to_owned(),
        StopWhy::Quota => "Quota".to_owned(),
        StopWhy::OutOfReach => "OutOfReach".to_owned(),
        StopWhy::TuningEnding => "TuningEnding".to_owned(),
        StopWhy::TargetReached { .. } => "TargetReached".to_owned(),
        StopWhy::Requested => "Requested".to_owned(),
        StopWhy::NoObjective { .. } => "NoObjective".to_owned(),
        StopWhy::Diverged { .. } => "Diverged".to_owned(),
        StopWhy::ReservationUsed { .. } => "ReservationUsed".to_owned(),
        StopWhy::CapExceeded { .. } => "CapExceeded".to_owned(),
    }
}

fn status(job: &JobSummary) -> &'static str {
    match (job.end, job.phase) {
        (Some(JobEnd::Completed), _) => "Completed",
        (Some(JobEnd::Stopped | JobEnd::MaxRuntime | JobEnd::MaxWait), _) => "Stopped",
        (Some(JobEnd::AlgorithmError | JobEnd::CapacityError | JobEnd::ServiceError), _) => "Failed",
        (None, _) if job.never_started && job.message.is_some() => "Failed",
        (None, _) if job.never_started => "Stopped",
        (None, _) if job.concluded => concluded_without_end(job),
        (None, JobPhase::Stopping) => "Stopping",
        (None, _) if job.stop.is_some() => "Stopping",
        (None, _) => "InProgress",
    }
}

/// Returns the status of a concluded job whose end never arrived, for example because the job was deleted. No later fact
/// changes it, and its trial has ended in the same way.
fn concluded_without_end(job: &JobSummary) -> &'static str {
    match job.stop {
        // Nothing shows that this stop took effect.
        None | Some(StopWhy::ReservationUsed { .. }) => "Failed",
        Some(_) => "Stopped",
    }
}

/// Returns how a job ended, or its present state, as one word.
pub fn state_of(job: &JobSummary) -> &'static str {
    match (job.end, job.phase) {
        (Some(JobEnd::Completed), _) => "Completed",
        (Some(JobEnd::Stopped), _) => "Stopped",
        (Some(JobEnd::MaxRuntime), _) => "MaxRuntime",
        (Some(JobEnd::MaxWait), _) => "MaxWait",
        (Some(JobEnd::AlgorithmError), _) => "Failed",
        (Some(JobEnd::CapacityError), _) => "NoCapacity",
        (Some(JobEnd::ServiceError), _) => "ServiceError",
        (None, _) if job.never_started && job.message.is_some() => "Refused",
        (None, _) if job.never_started => "NotStarted",
        (None, _) if job.concluded => concluded_without_end(job),
        (None, _) if job.stop.is_some() => "Stopping",
        (None, JobPhase::Starting) => "Starting",
        (None, JobPhase::Downloading) => "Downloading",
        (None, JobPhase::Training) => "Training",
        (None, JobPhase::Interrupted) => "Interrupted",
        (None, JobPhase::Stopping) => "Stopping",
        (None, JobPhase::Uploading) => "Uploading",
        (None, JobPhase::Other | JobPhase::Ended(_)) => "InProgress",
    }
}

/// Returns the summaries of all training jobs of tuning `id`, by trial and attempt.
pub async fn summaries<T: Table>(
    store: &Store<T>,
    id: &str,
) -> Result<Option<(Loaded, Vec<JobSummary>)>, StoreError> {
    // The state is read first: a job that leaves it between the two reads is then among the rows, and its row is used.
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let rows = store.all(&stored::tuning_partition(id), "JOB#").await?;
    let mut summaries: Vec<JobSummary> = rows.iter().map(stored::job).collect::<Result<_, _>>()?;
    for (key, trial, job) in loaded.state.jobs() {
        summaries.push(full_summary(&loaded.tuning.definition, key, trial, job));
    }
    summaries.sort_by_key(|summary| summary.job);
    summaries.dedup_by_key(|summary| summary.job);
    Ok(Some((loaded, summaries)))
}

/// Returns the entries of `ListTrainingJobsForHyperParameterTuningJob` for tuning `id`, by trial and attempt.
pub async fn jobs<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
) -> Result<Option<Vec<TrainingJobSummary>>, StoreError> {
    let Some((loaded, summaries)) = summaries(store, id).await? else { return Ok(None) };
    Ok(Some(summaries.iter().map(|job| shown(&loaded.tuning, place, job)).collect()))
}

/// One page of the training jobs of a tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct JobPage {
    /// Entries as in [`jobs`], in the order of their keys.
    pub jobs: Vec<(JobKey, TrainingJobSummary)>,
    /// Whether more entries follow.
    pub more: bool,
}

/// Returns at most `limit` (>= 1) entries of the training jobs of tuning `id` that follow `after` in key order. Reads
/// at most `limit` rows.
pub async fn jobs_after<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
    after: Option<JobKey>,
    descending: bool,
    limit: usize,
) -> Result<Option<JobPage>, StoreError> {
    // The state is read first, as in `summaries`.
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let is_before = |one: JobKey, other: JobKey| if descending { one > other } else { one < other };
    let query = Query {
        after: after.map(|job| stored::job_key(id, job).sk),
        descending,
        ..Query::prefix(stored::tuning_partition(id), "JOB#", limit)
    };
    let rows = store.table.query(&query).await?;
    let ended: Vec<JobSummary> = rows.items.iter().map(stored::job).collect::<Result<_, _>>()?;
    // Live jobs after the last row belong to a later page.
    let end = ended.last().filter(|_| rows.next.is_some()).map(|last| last.job);
    let mut found: BTreeMap<JobKey, JobSummary> = ended.into_iter().map(|job| (job.job, job)).collect();
    for (key, trial, job) in loaded.state.jobs() {
        if after.is_none_or(|after| is_before(after, key)) && end.is_none_or(|end| is_before(key, end)) {
            found.entry(key).or_insert_with(|| full_summary(&loaded.tuning.definition, key, trial, job));
        }
    }
    let show = |(key, job): (&JobKey, &JobSummary)| (*key, shown(&loaded.tuning, place, job));
    let more = rows.next.is_some() || found.len() > limit;
    let jobs = if descending {
        found.iter().rev().take(limit).map(show).collect()
    } else {
        found.iter().take(limit).map(show).collect()
    };
    Ok(Some(JobPage { jobs, more }))
}
