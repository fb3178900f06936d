//! The parents of a tuning: the observations of ended tunings of the same table, copied into its definition. So a replay
//! is identical, and a deleted parent changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperband::ranking::Direction;
use search::{Configuration, Parent, WarmStart, WarmStartType};
use tuning::definition::{Definition, INSTANCE_COUNT};
use tuning::log::fact::JobEnd;
use tuning::log::reasons::StopWhy;
use tuning::trial::summary::JobSummary;
use tuning::unit::ids::TrialId;
use wire::request::{Request, RequestError};
use wire::stored;

use super::SubmitError;
use crate::lookup::{self, LookupError};
use crate::ports::table::{Pages, Query, Table};
use crate::store::{Store, StoreError, Tuning};

/// The most training jobs of a parent that are read, the first ones.
const PARENT_JOBS_MAX: usize = 2_000;
/// The most bytes of all copied observations. The request and the rest of the definition share the row.
const PARENTS_BYTES_MAX: usize = 150_000;
/// Bytes of a number in a copied observation.
const NUMBER_BYTES: usize = 22;
const PAGE_ROWS: usize = 200;
/// The name of the results in the request, among the names of the parents.
const KNOWN_RESULTS: &str = "KnownResults";
const PARENTS: &str = "WarmStartConfig.ParentHyperParameterTuningJobs";

/// Returns the warm start of a request; `None` without `WarmStartConfig`.
pub(super) async fn warm_start<T: Table>(
    store: &Store<T>,
    request: &Request,
    definition: &Definition,
) -> Result<Option<WarmStart>, SubmitError> {
    let known = request.known_result_count() > 0;
    let given = request.warm_start();
    if given.is_none() && !known {
        return Ok(None);
    }
    let (kind, names) = given.unwrap_or((WarmStartType::IdenticalDataAndAlgorithm, Vec::new()));
    let maximize = definition.direction() == Direction::Maximize;
    let most = observations_max(definition, names.len().saturating_add(usize::from(known)));
    let mut parents = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let wrong = |message: &str| {
            let path = format!("{PARENTS}[{index}].HyperParameterTuningJobName");
            SubmitError::from(RequestError::field(&path, message))
        };
        let parent = match ended(store, name).await? {
            Ok(parent) => parent,
            Err(message) => return Err(wrong(&message)),
        };
        request.check_parent(name, &parent.request).map_err(|message| wrong(&message))?;
        let trials = trials(store, &parent).await?;
        let fixed = fixed(definition, &parent);
        parents.push(Parent::new(&definition.space, &fixed, trials, maximize).at_most(most, maximize));
    }
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    if known {
        let results = known_results(request, definition)?;
        names.push(KNOWN_RESULTS.to_owned());
        parents.push(results.at_most(most, maximize));
    }
    Ok(Some(WarmStart { kind, names, parents }))
}

/// Returns the results in the request as those of a parent.
fn known_results(request: &Request, definition: &Definition) -> Result<Parent, SubmitError> {
    let maximize = definition.direction() == Direction::Maximize;
    let parent = Parent::new(&definition.space, &Configuration::default(), request.known_results(), maximize);
    if parent.observations().is_empty() {
        let message =
            "no result is in the ranges of ParameterRanges; widen the ranges, or remove KnownResults";
        return Err(RequestError::field(&format!("Controller.{KNOWN_RESULTS}"), message).into());
    }
    Ok(parent)
}

/// Returns the values that all trials of a parent have in common: its static hyperparameters, and its number of instances
/// if the new tuning searches over it.
fn fixed(definition: &Definition, parent: &Tuning) -> Configuration {
    let mut fixed = parent.request.static_configuration();
    let count = parent.definition.job.instance_count;
    if definition.job.sizes.contains(&count) {
        fixed.0.insert(INSTANCE_COUNT.to_owned(), count.to_string());
    }
    fixed
}

/// Returns how many observations of each parent are copied, so that they fit the row of the definition.
fn observations_max(definition: &Definition, parents: usize) -> usize {
    let bytes = definition.space.parameters().len().saturating_mul(NUMBER_BYTES).saturating_add(NUMBER_BYTES);
    PARENTS_BYTES_MAX.checked_div(bytes.saturating_mul(parents)).unwrap_or(0)
}

/// Returns the ended tuning named `name`, or why it cannot be a parent.
async fn ended<T: Table>(store: &Store<T>, name: &str) -> Result<Result<Arc<Tuning>, String>, SubmitError> {
    let unknown = || format!("no hyperparameter tuning job is named {name}; name one that has ended");
    let row = match lookup::find(store, name).await {
        Ok(row) => row,
        Err(LookupError::Store(error)) => return Err(error.into()),
        Err(LookupError::NotFound(_) | LookupError::AlreadyEnded(_)) => return Ok(Err(unknown())),
    };
    let (head, tuning) = (store.head(&row.id).await?, store.tuning(&row.id).await?);
    let (Some(head), Some(tuning)) = (head, tuning) else { return Ok(Err(unknown())) };
    if matches!(head.status.as_str(), "InProgress" | "Stopping") {
        return Ok(Err(format!(
            "the parent tuning job {name} is {}; wait for its end, or stop it",
            head.status
        )));
    }
    Ok(Ok(tuning))
}

/// Returns the configuration and the best value of each trial of a tuning that has a value and did not fail: the model
/// learns from a failed or diverged trial that its configuration is bad, whatever it logged before.
async fn trials<T: Table>(
    store: &Store<T>,
    parent: &Tuning,
) -> Result<Vec<(Configuration, f64)>, SubmitError> {
    let mut pages = Pages::of(Query::prefix(stored::tuning_partition(&parent.id), "JOB#", PAGE_ROWS));
    let mut trials: BTreeMap<TrialId, JobSummary> = BTreeMap::new();
    let mut jobs = 0;
    while let Some(page) = pages.next(&*store.table).await.map_err(StoreError::from)? {
        for row in &page {
            let summary = stored::job(row).map_err(StoreError::from)?;
            // The last job of a trial has its best value.
            trials.insert(summary.job.trial, summary);
        }
        jobs += page.len();
        if jobs >= PARENT_JOBS_MAX {
            break;
        }
    }
    let is_bad = |job: &JobSummary| {
        job.end == Some(JobEnd::AlgorithmError) || matches!(job.stop, Some(StopWhy::Diverged { .. }))
    };
    let good = trials.into_values().filter(|job| !is_bad(job));
    Ok(good.filter_map(|job| Some((job.configuration, job.best_value?))).collect())
}
