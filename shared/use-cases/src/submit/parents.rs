//! The parents of a tuning: the observations of ended tunings of the same table, copied into its definition. So a replay
//! is identical, and a deleted parent changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyperband::ranking::Direction;
use search::{Configuration, Domain, Parent, WarmStart, WarmStartType};
use serde_json::Value;
use tuning::definition::{Definition, INSTANCE_COUNT, Objective};
use tuning::log::fact::JobEnd;
use tuning::log::reasons::StopWhy;
use tuning::trial::summary::JobSummary;
use tuning::unit::ids::TrialId;
use wire::request::{OBJECTIVE_HYPERPARAMETER, Request, RequestError};
use wire::stored;

use super::{SubmitError, Submitter};
use crate::lookup::{self, LookupError};
use crate::ports::table::{Pages, Query, Table};
use crate::ports::{OtherTunings, OtherTuningsError};
use crate::store::{Store, StoreError, Tuning};

/// The most training jobs of all parents together that are read: the first ones of each, or the best ones where another
/// controller lists them.
const PARENT_JOBS_MAX: usize = 2_000;
/// The most bytes of all copied observations. The request and the rest of the definition share the row.
const PARENTS_BYTES_MAX: usize = 150_000;
/// Bytes of a number in a copied observation.
const NUMBER_BYTES: usize = 22;
const PAGE_ROWS: usize = 200;
/// The name of the results in the request, among the names of the parents.
const KNOWN_RESULTS: &str = "KnownResults";
const PARENTS: &str = "WarmStartConfig.ParentHyperParameterTuningJobs";

/// An ended tuning that can be a parent.
struct Ended {
    request: Request,
    /// The number of instances of its training jobs, where its trials have none of their own.
    instance_count: u32,
    /// The configuration and the best known value of each trial that has a value and did not fail.
    trials: Vec<(Configuration, f64)>,
    /// Its best training job, if another controller ran it.
    best: Option<Value>,
}

/// Returns the warm start of a request; `None` without `WarmStartConfig` and `KnownResults`. `room` is the most bytes that
/// all observations may take. Also returns the best training job of each parent that another controller ran: such a parent
/// is not in the table.
pub(super) async fn warm_start<T: Table>(
    sources: &Sources<'_, T>,
    request: &Request,
    definition: &Definition,
    room: usize,
) -> Result<Option<(WarmStart, Vec<Value>)>, SubmitError> {
    let known = request.known_result_count() > 0;
    let given = request.warm_start();
    if given.is_none() && !known {
        return Ok(None);
    }
    let kind = given.map_or(WarmStartType::IdenticalDataAndAlgorithm, |(kind, _)| kind);
    let maximize = definition.direction() == Direction::Maximize;
    let tunings = of_request(sources, request).await?;
    let count = tunings.len().saturating_add(usize::from(known));
    let others: Vec<Value> = tunings.iter().filter_map(|tuning| tuning.best.clone()).collect();
    let room = room.saturating_sub(stored::other_parents_bytes(&others));
    let most = observations_max(definition, count, room.min(PARENTS_BYTES_MAX));
    let (mut names, mut parents) = (Vec::new(), Vec::new());
    for (index, tuning) in tunings.iter().enumerate() {
        let trials = tuning.trials.iter().map(|(configuration, value)| {
            let all = with_fixed(definition, tuning, configuration.clone());
            (descaled(request, definition, tuning, all), *value)
        });
        let parent = Parent::new(&definition.space, trials, maximize);
        if parent.observations().is_empty() {
            let message = format!(
                "no trial of the parent tuning job {} counts: none has a value, and hyperparameters in the ranges of this \
                 tuning; name another parent, or widen the ranges",
                tuning.request.name()
            );
            return Err(wrong(index, &message));
        }
        names.push(tuning.request.name().to_owned());
        parents.push(parent.at_most(most, maximize));
    }
    if known {
        let results = known_results(request, definition)?;
        names.push(KNOWN_RESULTS.to_owned());
        parents.push(results.at_most(most, maximize));
    }
    Ok(Some((WarmStart { kind, names, parents }, others)))
}

/// Returns the parents of a request, or why one cannot be its parent.
async fn of_request<T: Table>(
    sources: &Sources<'_, T>,
    request: &Request,
) -> Result<Vec<Ended>, SubmitError> {
    let names = request.warm_start().map_or(Vec::new(), |(_, names)| names);
    let jobs = PARENT_JOBS_MAX.checked_div(names.len()).unwrap_or(PARENT_JOBS_MAX);
    let mut parents = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let unknown = || format!("no hyperparameter tuning job is named {name}; name one that has ended");
        let found = sources.find(name).await?.ok_or_else(unknown);
        let checked = found.and_then(|found| match found.status.as_str() {
            "InProgress" | "Stopping" | "Deleting" => {
                Err(format!("the parent tuning job {name} is {}; wait for its end, or stop it", found.status))
            }
            _ => request.check_parent(name, &found.request).map(|()| found),
        });
        let found = checked.map_err(|message| wrong(index, &message))?;
        let trials = sources.trials(&found, name, jobs).await?;
        let Found { request, instance_count, best, .. } = found;
        parents.push(Ended { request, instance_count, trials, best });
    }
    Ok(parents)
}

fn wrong(index: usize, message: &str) -> SubmitError {
    let path = format!("{PARENTS}[{index}].HyperParameterTuningJobName");
    RequestError::field(&path, message).into()
}

/// Returns the results in the request as those of a parent.
fn known_results(request: &Request, definition: &Definition) -> Result<Parent, SubmitError> {
    let maximize = definition.direction() == Direction::Maximize;
    let parent = Parent::new(&definition.space, request.known_results(), maximize);
    if parent.observations().is_empty() {
        let message =
            "no result is in the ranges of ParameterRanges; widen the ranges, or remove KnownResults";
        return Err(RequestError::field(&format!("Controller.{KNOWN_RESULTS}"), message).into());
    }
    Ok(parent)
}

/// Returns a configuration of a parent with the values that all its trials have in common: its static hyperparameters, and
/// its number of instances if the new tuning searches over it.
fn with_fixed(definition: &Definition, parent: &Ended, configuration: Configuration) -> Configuration {
    let mut all = parent.request.static_configuration();
    if !definition.job.sizes.is_empty() {
        all.0.insert(INSTANCE_COUNT.to_owned(), parent.instance_count.to_string());
    }
    all.0.extend(configuration.0);
    all
}

/// Returns a configuration of a parent with the values for which the new tuning sends its training jobs the same values:
/// one of both may multiply other hyperparameters by the number of instances (`ScaleWithInstances`).
fn descaled(
    request: &Request,
    definition: &Definition,
    parent: &Ended,
    configuration: Configuration,
) -> Configuration {
    let own = configuration.get(INSTANCE_COUNT).and_then(|count| count.parse::<f64>().ok());
    let count = own.unwrap_or_else(|| f64::from(parent.instance_count));
    let factor = |request: &Request, name: &str| {
        if request.scaled_hyperparameters().iter().any(|scaled| scaled == name) { count } else { 1.0 }
    };
    let mut all = configuration;
    for parameter in definition.space.parameters() {
        let name = parameter.name.as_str();
        let change = factor(&parent.request, name) / factor(request, name);
        let value = all.0.get_mut(name).filter(|_| change.to_bits() != 1.0_f64.to_bits());
        if let Some((value, number)) = value.and_then(|value| value.parse::<f64>().ok().map(|n| (value, n))) {
            let product = number * change;
            // A quotient of integers may have a fraction.
            let is_integer = matches!(parameter.domain, Domain::Integer { .. });
            *value = if is_integer { product.round() } else { product }.to_string();
        }
    }
    all
}

/// Returns how many observations of each parent are copied, so that all together take at most `room` bytes.
fn observations_max(definition: &Definition, parents: usize, room: usize) -> usize {
    let bytes = definition.space.parameters().len().saturating_mul(NUMBER_BYTES).saturating_add(NUMBER_BYTES);
    room.checked_div(bytes.saturating_mul(parents)).unwrap_or(0)
}

/// A tuning that has the name of a parent.
struct Found<'a> {
    status: String,
    request: Request,
    instance_count: u32,
    /// Its best training job, if another controller ran it.
    best: Option<Value>,
    source: Source<'a>,
}

/// Where the trials of a parent are.
enum Source<'a> {
    Own(Arc<Tuning>),
    Other(&'a dyn OtherTunings),
}

/// Where the parents of a request are, and who submits it.
pub(super) struct Sources<'a, T> {
    pub(super) store: &'a Store<T>,
    pub(super) others: Option<&'a dyn OtherTunings>,
    pub(super) submitter: Submitter<'a>,
}

impl<'a, T: Table> Sources<'a, T> {
    /// Returns the tuning of this name; `None` if there is none that exists for the submitter.
    async fn find(&self, name: &str) -> Result<Option<Found<'a>>, SubmitError> {
        match self.own(name).await? {
            Some(found) => Ok(Some(found)),
            None => self.other(name).await,
        }
    }

    async fn own(&self, name: &str) -> Result<Option<Found<'a>>, SubmitError> {
        let row = match lookup::find(self.store, name).await {
            Ok(row) if self.submitter.sees(row.submitter.as_deref()) => row,
            Err(LookupError::Store(error)) => return Err(error.into()),
            Ok(_) | Err(LookupError::NotFound(_) | LookupError::AlreadyEnded(_)) => return Ok(None),
        };
        let (head, tuning) = (self.store.head(&row.id).await?, self.store.tuning(&row.id).await?);
        let (Some(head), Some(tuning)) = (head, tuning) else { return Ok(None) };
        Ok(Some(Found {
            status: head.status.as_str().to_owned(),
            request: tuning.request.clone(),
            instance_count: tuning.definition.job.instance_count,
            best: None,
            source: Source::Own(tuning),
        }))
    }

    async fn other(&self, name: &str) -> Result<Option<Found<'a>>, SubmitError> {
        // Nothing shows who submitted the tunings of another controller.
        let Some(others) = self.others.filter(|_| self.submitter.sees(None)) else { return Ok(None) };
        let described = others.description(name).await.map_err(|why| unread(name, why))?;
        let Some(mut description) = described else { return Ok(None) };
        // The service adds it to the static hyperparameters.
        for job in ["/TrainingJobDefinition", "/TrainingJobDefinitions/0"] {
            let fixed = description.pointer_mut(&format!("{job}/StaticHyperParameters"));
            fixed.and_then(Value::as_object_mut).map(|fixed| fixed.remove(OBJECTIVE_HYPERPARAMETER));
        }
        let status = description["HyperParameterTuningJobStatus"].as_str().unwrap_or_default().to_owned();
        let best = Some(best_job(name, &description));
        let request = Request::from_stored(description);
        let instance_count = request.instance_choices().first().map_or(1, |choice| choice.count);
        Ok(Some(Found { status, request, instance_count, best, source: Source::Other(others) }))
    }

    async fn trials(
        &self,
        found: &Found<'_>,
        name: &str,
        jobs: usize,
    ) -> Result<Vec<(Configuration, f64)>, SubmitError> {
        match &found.source {
            Source::Own(own) => trials(self.store, own, jobs).await,
            Source::Other(others) => {
                let maximize = found.request.objective() == Objective::Maximize;
                others.trials(name, maximize, jobs).await.map_err(|why| unread(name, why))
            }
        }
    }
}

/// Returns `BestTrainingJob` in the description of a tuning job of another controller, with the name of that tuning job.
fn best_job(name: &str, description: &Value) -> Value {
    let job = description.get("BestTrainingJob").and_then(Value::as_object);
    let mut job = job.cloned().unwrap_or_default();
    job.insert("TuningJobName".to_owned(), name.into());
    job.into()
}

fn unread(name: &str, why: OtherTuningsError) -> SubmitError {
    SubmitError::Parent { name: name.to_owned(), why }
}

/// Returns the configuration and the best value of each trial of a tuning that has a value and did not fail: the model
/// learns from a failed or diverged trial that its configuration is bad, whatever it logged before.
async fn trials<T: Table>(
    store: &Store<T>,
    parent: &Tuning,
    most: usize,
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
        if jobs >= most {
            break;
        }
    }
    let is_bad = |job: &JobSummary| {
        let diverged = match job.stop {
            Some(StopWhy::Diverged { .. }) => true,
            Some(StopWhy::Rung { .. }) => job.last_value.is_none(),
            _ => false,
        };
        job.end == Some(JobEnd::AlgorithmError) || diverged
    };
    let good = trials.into_values().filter(|job| !is_bad(job));
    Ok(good.filter_map(|job| Some((job.configuration, job.best_value?))).collect())
}
