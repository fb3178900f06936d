//! Describes a tuning and its training jobs, in the shapes of Automatic Model Tuning (AMT).
//!
//! Combines the state as of the last step with a stored stop request that is not folded yet, so that a client sees the
//! effect of its own call.

mod jobs;
mod listed;

use serde_json::Value;
use tuning::fact::JobEnd;
use tuning::ids::{BracketId, RungId};
use tuning::ruling::EndReason;
use tuning::state::{State, Status};
use wire::describe::{
    BestSeen, BracketView, ComparedView, ControllerView, JobCounters, Model, ObjectiveCounters, RungView,
    TuningView, tuning_job, tuning_job_event, tuning_job_summary,
};
use wire::names::training_job_name;
use wire::stored;

use crate::ports::table::Table;
use crate::store::{Loaded, Store, StoreError, Tuning};

use jobs::JobText;
pub use jobs::{JobPage, jobs, jobs_after, state_of, stop_word, summaries};
pub use listed::listed;

/// Account and region, for ARNs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// AWS partition, for example `aws`.
    pub partition: String,
    /// Region.
    pub region: String,
    /// Account ID.
    pub account: String,
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
        Self { partition, region, account: parts.next().unwrap_or_default() }
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
        let Self { partition, region, account } = self;
        format!("arn:{partition}:sagemaker:{region}:{account}:{kind}/{}", name.to_ascii_lowercase())
    }
}

/// Returns the answer of `DescribeHyperParameterTuningJob` for tuning `id`.
pub async fn describe<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
) -> Result<Option<Value>, StoreError> {
    view(store, place, id, tuning_job).await
}

/// Returns the entry of tuning `id` in `ListHyperParameterTuningJobs`.
pub async fn summary<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
) -> Result<Option<Value>, StoreError> {
    view(store, place, id, tuning_job_summary).await
}

/// Returns the detail of the event that the status of a tuning has changed to the one in `loaded`.
pub(crate) fn state_change(loaded: &Loaded, place: &Place) -> Value {
    with_view(loaded, place, &loaded.head.status, tuning_job_event)
}

async fn view<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
    show: fn(&TuningView<'_>) -> Value,
) -> Result<Option<Value>, StoreError> {
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let stopping = loaded.state.status == Status::Active && stop_is_stored(store, id).await?;
    let status = if stopping { "Stopping" } else { loaded.head.status.as_str() };
    Ok(Some(with_view(&loaded, place, status, show)))
}

pub(crate) async fn stop_is_stored<T: Table>(store: &Store<T>, id: &str) -> Result<bool, StoreError> {
    let sk = format!("{}stop-requested", stored::fact_prefix(None));
    let key = wire::item::Key::new(stored::fact_partition(id), sk);
    Ok(store.table.get(&key).await?.is_some())
}

fn with_view(loaded: &Loaded, place: &Place, status: &str, show: fn(&TuningView<'_>) -> Value) -> Value {
    let Loaded { tuning, head, state } = loaded;
    let arn = place.tuning_arn(&tuning.definition.name);
    let (why, ended_ms) = match &state.status {
        Status::Active => (None, None),
        Status::Ending(why) => (Some(why), None),
        Status::Ended { why, at } => (Some(why), Some(*at)),
    };
    let failure_reason = match why {
        Some(EndReason::Failed(message)) => Some(message.as_str()),
        _ => None,
    };
    let best = state.best.as_deref().map(|best| JobText::new(tuning, place, best));
    let refit = state.refit.map(|job| training_job_name(&tuning.id, job));
    let best_model = state.best.as_deref().map(|best| match best.end {
        Some(JobEnd::Completed) => Model::Left,
        Some(JobEnd::Stopped | JobEnd::MaxRuntime) => tuning.request.stopped_job_model(),
        Some(_) | None => Model::None,
    });
    let controller = ControllerView {
        spent: state.ledger.spent,
        reserved: state.ledger.reserved,
        cap: state.ledger.cap,
        granted: state.ledger.granted,
        price_unknown: tuning.definition.job.rate.is_none(),
        launched: state.launched,
        best_seen: state.incumbent.as_ref().map(|best| BestSeen {
            value: best.value,
            trial: best.trial.0,
            resource: best.resource,
        }),
        end_reason: why.filter(|_| ended_ms.is_some()).map(EndReason::word),
        ending_reason: why.filter(|_| ended_ms.is_none()).map(EndReason::word),
        trials_started: state.next_trial.0.saturating_sub(u32::from(state.refit.is_some())),
        trials_training: tuning
            .definition
            .promotes()
            .map(|_| u32::try_from(state.trials.len()).unwrap_or(u32::MAX)),
        max_parallel: state.changes.max_parallel.as_ref().map(|change| change.value),
        paused: state.is_paused(),
        refit: refit.as_deref(),
        best_model,
        brackets: brackets(tuning, state),
    };
    show(&TuningView {
        request: &tuning.request,
        arn: &arn,
        status,
        created_ms: tuning.definition.created,
        ended_ms,
        modified_ms: head.at,
        counters: counters(state),
        objectives: objectives(state),
        best: best.as_ref().zip(state.best.as_deref()).map(|(text, best)| text.view(best)),
        failure_reason,
        not_improving: tuning.definition.limits.not_improving.map(|_| state.since_improved),
        controller,
    })
}

fn counters(state: &State) -> JobCounters {
    let counters = state.counters;
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
        succeeded: state.counters.objective_succeeded,
        pending: u32::try_from(state.jobs().count()).unwrap_or(u32::MAX),
        failed: state.counters.objective_failed,
    }
}

fn brackets(tuning: &Tuning, state: &State) -> Vec<BracketView> {
    let Some(plan) = tuning.definition.compared() else { return Vec::new() };
    let promotes = tuning.definition.promotes().is_some();
    let compared = |(bracket, rung): (usize, usize)| {
        let (bracket, rung) = (BracketId::at(bracket), RungId::at(rung));
        let (arrived, went_on) = state.rung_totals(bracket, rung);
        ComparedView { arrived, went_on, waiting: promotes.then(|| state.waiting_at(bracket, rung)) }
    };
    let brackets = plan.brackets().iter().zip(&state.joined).enumerate();
    brackets
        .map(|(index, (bracket, joined))| BracketView {
            trials_started: *joined,
            rungs: (0..)
                .zip(bracket.rungs())
                .map(|(number, planned)| RungView {
                    resource: planned.resource,
                    compared: (number + 1 < bracket.rungs().len()).then(|| compared((index, number))),
                })
                .collect(),
        })
        .collect()
}
