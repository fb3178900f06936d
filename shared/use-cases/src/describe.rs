//! Describes a tuning and its training jobs, in the shapes of Automatic Model Tuning (AMT).
//!
//! Combines the state as of the last step with a stored stop request that is not folded yet. A client therefore sees
//! the effect of its own call.

mod costs;
mod jobs;
mod listed;
pub(crate) mod overall;
mod training;

use std::path::PathBuf;

use serde_json::Value;
use tuning::definition::Definition;
use tuning::log::fact::JobEnd;
use tuning::log::reasons::EndReason;
use tuning::rules::doubt;
use tuning::state::{State, Status};
use tuning::unit::ids::{BracketId, RungId};
use tuning::unit::time::{Millis, Time};
use wire::describe::{
    BestModel, BestSeen, Bracket, Compared, CompletionDetails, ConsumedResources, FailureCause, JobCounters,
    Model, ObjectiveCounters, RequestEcho, Rung, SummaryController, Totals, TrainingJobSummary, TuningBase,
    TuningController, TuningJob, TuningSummary, WaitingFor, failure_reason, finite, resource_limits,
    settings, tuning_job_event,
};
use wire::names::training_job_name;
use wire::notice::Notice;
use wire::request::Request;
use wire::stored;

use crate::ports::table::Table;
use crate::stops::STOP;
use crate::store::{Loaded, Store, StoreError, Tuning};

pub use jobs::{JobPage, jobs, jobs_after, state_of, stop_word, summaries};
pub use listed::listed;
pub use training::{Found, training_job};

/// An ordered start that was not performed for this long waits for its turn.
const START_WAIT: Millis = Millis::from_seconds(15);

/// Account and region, for ARNs, and where models are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// AWS partition, for example `aws`.
    pub partition: String,
    /// Region.
    pub region: String,
    /// Account ID.
    pub account: String,
    /// Where models are.
    pub models: Models,
}

/// Where the models of training jobs are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Models {
    /// Below `S3OutputPath` of the request, as SageMaker saves them.
    #[default]
    Output,
    /// In a folder of each training job on this machine.
    Folders {
        /// The folder of all training jobs.
        jobs: PathBuf,
        /// The path of the model in the folder of a job.
        model: PathBuf,
    },
}

impl Place {
    /// Returns the place in an ARN, for example that of the running function. Missing parts become empty.
    ///
    /// ```
    /// let place = use_cases::describe::Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:api");
    /// assert_eq!(place.training_arn("Hb1-x"), "arn:aws:sagemaker:us-east-1:111122223333:training-job/hb1-x");
    /// ```
    pub fn of_arn(arn: &str) -> Self {
        let mut parts = arn.split(':').skip(1).map(str::to_owned);
        let partition = parts.next().unwrap_or_default();
        let region = parts.nth(1).unwrap_or_default();
        Self { partition, region, account: parts.next().unwrap_or_default(), models: Models::default() }
    }

    /// Returns whether an ARN has this partition, Region and account.
    pub fn has(&self, arn: &str) -> bool {
        let of = Self::of_arn(arn);
        (of.partition, of.region, of.account)
            == (self.partition.clone(), self.region.clone(), self.account.clone())
    }

    /// Returns the URI of the model of training job `name`. It exists if the job left a model.
    pub fn model(&self, request: &Request, name: &str) -> String {
        match &self.models {
            Models::Folders { jobs, model } => format!("file://{}", jobs.join(name).join(model).display()),
            Models::Output => {
                let output = |member| request.at(&format!("TrainingJobDefinition.OutputDataConfig.{member}"));
                let path = output("S3OutputPath").and_then(Value::as_str).unwrap_or_default();
                let is_archive = output("CompressionType").and_then(Value::as_str) != Some("NONE");
                let file = if is_archive { "model.tar.gz" } else { "model/" };
                format!("{}/{name}/output/{file}", path.trim_end_matches('/'))
            }
        }
    }

    /// Returns the ARN of the tuning job `name`.
    pub fn tuning_arn(&self, name: &str) -> String {
        self.arn("hyper-parameter-tuning-job", name)
    }

    /// Returns the ARN of the training job `name`.
    pub fn training_arn(&self, name: &str) -> String {
        self.arn("training-job", name)
    }

    fn arn(&self, kind: &str, name: &str) -> String {
        let Self { partition, region, account, .. } = self;
        format!("arn:{partition}:sagemaker:{region}:{account}:{kind}/{}", name.to_ascii_lowercase())
    }
}

/// Returns the answer of `DescribeHyperParameterTuningJob` for tuning `id`.
pub async fn describe<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
) -> Result<Option<TuningJob>, StoreError> {
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let status = status(store, id, &loaded).await?;
    let mut job = tuning_job(&loaded, place, status);
    job.controller.best_model = best_model(store, place, &loaded).await?;
    job.overall_best_training_job = Box::pin(overall::best(store, place, &loaded, &job)).await?;
    Ok(Some(job))
}

/// Returns the model of the refit, if it completed, else that of the best training job.
async fn best_model<T: Table>(
    store: &Store<T>,
    place: &Place,
    Loaded { tuning, state, .. }: &Loaded,
) -> Result<Option<BestModel>, StoreError> {
    let refit = match state.refit {
        Some(key) => store.table.get(&stored::job_key(&tuning.id, key)).await?,
        None => None,
    };
    let refit = refit.as_ref().map(stored::job).transpose()?;
    let completed = refit.as_ref().filter(|job| job.end == Some(JobEnd::Completed));
    Ok(completed.or(state.results.best.as_deref()).map(|job| {
        let training_job_name = training_job_name(&tuning.id, job.job);
        let location = place.model(tuning.request_of(job.job.trial), &training_job_name);
        BestModel {
            training_job_name,
            trial: job.job.trial.0,
            resource: job.resource.0,
            value: job.last_value.and_then(finite),
            location,
        }
    }))
}

/// Returns the answer of `DescribeHyperParameterTuningJob` for a tuning that was loaded.
pub fn of_loaded(loaded: &Loaded, place: &Place) -> TuningJob {
    tuning_job(loaded, place, loaded.head.status.clone())
}

/// Returns the entry of tuning `id` in `ListHyperParameterTuningJobs`.
pub async fn summary<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
) -> Result<Option<TuningSummary>, StoreError> {
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let status = status(store, id, &loaded).await?;
    let request = &loaded.tuning.request;
    Ok(Some(TuningSummary {
        base: base(&loaded, place, status),
        strategy: Some(request.strategy().word().to_owned()),
        resource_limits: Some(resource_limits(request)),
        controller: SummaryController::Readable(totals(&loaded)),
    }))
}

/// Returns the detail of the event that the status of a tuning has changed to the one in `loaded`.
pub(crate) fn state_change(loaded: &Loaded, place: &Place) -> Value {
    let job = of_loaded(loaded, place);
    tuning_job_event(&job, &loaded.tuning.request)
}

/// Returns the status with a stop request that is not folded yet.
async fn status<T: Table>(store: &Store<T>, id: &str, loaded: &Loaded) -> Result<String, StoreError> {
    let stopping = loaded.state.status == Status::Active && stop_is_stored(store, id).await?;
    Ok(if stopping { "Stopping".to_owned() } else { loaded.head.status.clone() })
}

async fn stop_is_stored<T: Table>(store: &Store<T>, id: &str) -> Result<bool, StoreError> {
    let sk = format!("{}{STOP}", stored::fact_prefix(None));
    let key = wire::item::Key::new(stored::fact_partition(id), sk);
    Ok(store.table.get(&key).await?.is_some())
}

fn base(loaded: &Loaded, place: &Place, status: String) -> TuningBase {
    let Loaded { tuning, head, state } = loaded;
    TuningBase {
        name: tuning.request.name().to_owned(),
        arn: place.tuning_arn(&tuning.definition.name),
        status,
        created_ms: tuning.definition.created.0,
        modified_ms: head.at.0,
        ended_ms: end(state).1.map(|time| time.0),
        counters: Some(counters(state)),
        objectives: Some(objectives(state)),
    }
}

/// Returns why a tuning ends, and when it ended.
fn end(state: &State) -> (Option<&EndReason>, Option<Time>) {
    match &state.status {
        Status::Active => (None, None),
        Status::Ending(why) => (Some(why), None),
        Status::Ended { why, at } => (Some(why), Some(*at)),
    }
}

fn totals(Loaded { tuning, state, .. }: &Loaded) -> Totals {
    let (why, ended) = end(state);
    let best = state.search.incumbent.as_ref();
    Totals {
        submitter: tuning.submitter.clone(),
        spent_usd: state.money.ledger.spent,
        reserved_usd: state.money.ledger.reserved,
        granted_usd: state.money.ledger.granted,
        cap_usd: state.money.ledger.cap,
        price_unknown: !tuning.definition.job.is_priced(),
        training_jobs_launched: state.results.launched,
        best_seen: best.and_then(|best| {
            Some(BestSeen { value: finite(best.value)?, trial: best.trial.0, resource: best.resource.0 })
        }),
        paused: state.is_paused(),
        paused_since_ms: paused_since(state).map(|since| since.0),
        end_reason: why.filter(|_| ended.is_some()).map(|why| why.word().to_owned()),
    }
}

/// Returns since when the user has paused the start of training jobs.
fn paused_since(state: &State) -> Option<Time> {
    let pause = state.changes.paused.as_ref().filter(|change| change.value && !state.is_ended());
    pause.map(|change| change.made.0)
}

fn tuning_job(loaded: &Loaded, place: &Place, status: String) -> TuningJob {
    let Loaded { tuning, state, .. } = loaded;
    let base = base(loaded, place, status);
    let (why, ended) = end(state);
    TuningJob {
        request: RequestEcho::of(&tuning.request, &base.arn),
        failure_reason: state.failure().map(failure_reason),
        best_training_job: best_training_job(loaded, place),
        overall_best_training_job: None,
        consumed_resources: ConsumedResources::of(&base),
        tuning_job_completion_details: tuning.definition.limits.not_improving.map(|_| CompletionDetails {
            not_improving: state.search.since_improved,
            converged_ms: base.ended_ms.filter(|_| has_converged(tuning, state)),
        }),
        controller: TuningController {
            totals: totals(loaded),
            ending_reason: why.filter(|_| ended.is_none()).map(|why| why.word().to_owned()),
            max_parallel_training_jobs: state.changes.max_parallel.as_ref().map(|change| change.value),
            waiting_for: waiting_for(&tuning.definition, state),
            best_model: None,
            refit_training_job_name: state.refit.map(|job| training_job_name(&tuning.id, job)),
            trials_started: state.search.all_started(),
            trials_training: tuning
                .definition
                .promotes()
                .map(|_| u32::try_from(state.trials.len()).unwrap_or(u32::MAX)),
            failures: failures(&tuning.id, state),
            notices: Notice::of_tuning(&tuning.definition, state),
            brackets: brackets(tuning, state),
            costs: costs::costs(tuning, state),
            settings: settings(&tuning.request),
        },
        base,
    }
}

fn best_training_job(Loaded { tuning, state, .. }: &Loaded, place: &Place) -> Option<TrainingJobSummary> {
    let best = state.results.best.as_deref()?;
    let mut shown = jobs::shown(tuning, place, best);
    if let Some(last) = &mut shown.final_objective {
        last.direction = Some(tuning.request.objective());
    }
    let model = match best.end {
        Some(JobEnd::Completed) => Model::Left,
        Some(JobEnd::Stopped | JobEnd::MaxRuntime) => tuning.request.stopped_job_model(),
        Some(JobEnd::AlgorithmError | JobEnd::CapacityError | JobEnd::ServiceError | JobEnd::MaxWait)
        | None => Model::None,
    };
    shown.controller.model = Some(model.word().to_owned());
    Some(shown)
}

/// Returns whether the search has ended because so many results in a row did not improve the best value that it has
/// converged.
fn has_converged(tuning: &Tuning, state: &State) -> bool {
    let enough = tuning.request.convergence_jobs().is_some_and(|jobs| state.search.since_improved >= jobs);
    enough && end(state).0 == Some(&EndReason::NotImproving)
}

/// Returns why the next training job cannot start yet, or why the tuning has not ended, if it waits for something that it
/// does not control.
fn waiting_for(definition: &Definition, state: &State) -> Option<WaitingFor> {
    let since = state.money.billing.iter().map(|(_, job)| job.bill.read_at().unwrap_or(Time::EPOCH)).min();
    if let Some(since) = since.filter(|_| state.trials.is_empty() && state.search.waiting.is_empty()) {
        let (reason, since_ms) = ("Bills".to_owned(), since.0);
        return Some(WaitingFor { reason, since_ms, next_attempt_ms: None, message: None });
    }
    if state.status != Status::Active && state.refit.is_none() || state.is_ended() {
        return None;
    }
    let quota = state
        .capacity
        .deferral
        .as_ref()
        .and_then(|deferral| Some((deferral.quota_since?, deferral.last_answer.clone())));
    if let Some(lack) = state.lack(definition) {
        let next_attempt_ms = Some(lack.until.0);
        Some(WaitingFor {
            reason: "Capacity".to_owned(),
            since_ms: lack.since.0,
            next_attempt_ms,
            message: None,
        })
    } else if let Some((since, message)) = quota {
        let (since_ms, message) = (since.0, message.as_deref().map(failure_reason));
        Some(WaitingFor { reason: "Quota".to_owned(), since_ms, next_attempt_ms: None, message })
    } else if let Some(message) = doubt(definition, state) {
        Some(WaitingFor {
            reason: "RunningTrials".to_owned(),
            since_ms: state.results.fruitless.at.0,
            next_attempt_ms: None,
            message: Some(failure_reason(&message)),
        })
    } else if let Some(denied) = state.money.grants.denied {
        Some(WaitingFor {
            reason: "MonthlyCap".to_owned(),
            since_ms: denied.since.0,
            next_attempt_ms: Some(denied.retry_at.0),
            message: None,
        })
    } else {
        let (since, deferred) = untaken_start(state)?;
        Some(WaitingFor {
            reason: "Starts".to_owned(),
            since_ms: since.0,
            next_attempt_ms: deferred.map(|(until, _)| until.0),
            message: deferred.map(|(_, reason)| failure_reason(reason)),
        })
    }
}

/// Returns since when the oldest ordered start waits, if it has waited for long, and the latest time to which it was
/// deferred with the reason.
fn untaken_start(state: &State) -> Option<(Time, Option<&(Time, String)>)> {
    let waiting = state
        .jobs()
        .map(|(_, _, job)| job)
        .filter(|job| job.awaits_start() && !job.is_blocked_by_quota() && job.stop.is_none());
    let oldest = waiting.min_by_key(|job| job.order.at)?;
    let waited = state.now - oldest.order.at >= START_WAIT || oldest.deferred.is_some();
    waited.then_some((oldest.order.at, oldest.deferred.as_ref()))
}

/// Returns the causes of failed jobs, most frequent first.
fn failures(id: &str, state: &State) -> Vec<FailureCause> {
    let known = state.results.failures.causes.iter().map(|cause| FailureCause {
        count: cause.count,
        reason: cause.reason.clone(),
        training_job_name: Some(training_job_name(id, cause.job)),
    });
    let mut causes: Vec<FailureCause> = known.collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    let others = state.results.failures.others;
    let rest = FailureCause { count: others, reason: "other causes".to_owned(), training_job_name: None };
    causes.extend((others > 0).then_some(rest));
    causes
}

fn counters(state: &State) -> JobCounters {
    let counters = state.results.counters;
    JobCounters {
        completed: counters.completed,
        in_progress: state.running(),
        retryable_error: counters.retryable_error,
        non_retryable_error: counters.non_retryable_error,
        stopped: counters.stopped,
    }
}

fn objectives(state: &State) -> ObjectiveCounters {
    ObjectiveCounters {
        succeeded: state.results.counters.objective_succeeded,
        pending: u32::try_from(state.jobs().count()).unwrap_or(u32::MAX),
        failed: state.results.counters.objective_failed,
    }
}

fn brackets(tuning: &Tuning, state: &State) -> Vec<Bracket> {
    let Some(plan) = tuning.definition.compared() else { return Vec::new() };
    let in_plan = |bracket| plan.brackets().get(tuning.definition.in_plan(bracket));
    let promotes = tuning.definition.promotes().is_some();
    let compared = |(bracket, rung): (BracketId, usize)| {
        let rung = RungId::at(rung);
        let (arrived, went_on) = state.search.rung_totals(bracket, rung);
        Compared { arrived, went_on, waiting: promotes.then(|| state.search.waiting_at(bracket, rung)) }
    };
    let all = tuning.definition.brackets().zip(&state.search.joined);
    all.filter_map(|(id, joined)| Some((id, joined, in_plan(id)?)))
        .map(|(id, joined, bracket)| Bracket {
            trials_started: *joined,
            rungs: (0..)
                .zip(bracket.rungs())
                .map(|(number, planned)| Rung {
                    resource: planned.resource,
                    compared: (number + 1 < bracket.rungs().len()).then(|| compared((id, number))),
                })
                .collect(),
        })
        .collect()
}
