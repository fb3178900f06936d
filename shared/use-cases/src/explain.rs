//! Explains one trial: every decision about it and the reason, from the recorded steps alone.
//!
//! Applies the steps in order, like a replay, but makes no decisions of its own. Before each ruling, the state is the
//! one that the decider saw. So a rung shows the values of the other trials that had arrived by then. Reads only.

mod entry;
mod jobs;
mod late;
mod promotion;
mod rung;
mod trail;
mod words;

use thiserror::Error;
use tuning::log::fact::JobKey;
use tuning::state::State;
use tuning::unit::ids::TrialId;
use wire::explain::Explanation;
use wire::names::{parse_training_job_name, training_job_name};
use wire::stored;

use crate::ports::table::{Pages, Query, Table};
use crate::store::{Store, StoreError, readable};
use trail::Trail;

const STEPS_PER_PAGE: usize = 200;

/// Why a trial could not be explained.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExplainError {
    /// Neither a trial number nor the name of a training job: 400 `ValidationException`.
    #[error(
        "invalid trial '{0}': expected the number of a trial, for example 0, or the name of a training job"
    )]
    Malformed(String),
    /// The tuning has no such trial: 400 `ResourceNotFound`.
    #[error("{tuning} has no trial {trial}: {}", trial_range(*trials, *last))]
    UnknownTrial {
        /// Name of the tuning.
        tuning: String,
        /// The requested trial.
        trial: TrialId,
        /// Number of trials in the tuning.
        trials: u32,
        /// The last one; any number without one.
        last: TrialId,
    },
    /// The training job belongs to another tuning: 400 `ResourceNotFound`.
    #[error("the training job {job} does not belong to {tuning}, whose jobs have names of the form {id}-…")]
    OtherTuning {
        /// Name of the tuning.
        tuning: String,
        /// ID of the tuning, which is the prefix of the names of its jobs.
        id: String,
        /// The requested training job.
        job: String,
    },
    /// The trial has no such training job: 400 `ResourceNotFound`.
    #[error("no training job is named {job}; trial {trial} has {}", jobs.join(", "))]
    UnknownJob {
        /// The requested training job.
        job: String,
        /// The trial in its name.
        trial: TrialId,
        /// The trial's training jobs.
        jobs: Vec<String>,
    },
    /// The table failed. A retry may help.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns which trials there are. With several training job definitions, their numbers have gaps.
fn trial_range(trials: u32, last: TrialId) -> String {
    match trials {
        0 => "no trial has started yet".to_owned(),
        1 => "the only trial is 0".to_owned(),
        trials if last.0 >= trials => format!("it has {trials} trials, the last one is {last}"),
        _ => format!("its trials are 0 to {last}"),
    }
}

/// Explains a trial of tuning `id`, given by its number or by the name of one of its training jobs. Returns `None` if
/// the tuning does not exist.
pub async fn explain<T: Table>(
    store: &Store<T>,
    id: &str,
    asked: &str,
) -> Result<Option<Explanation>, ExplainError> {
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let tuning = loaded.tuning;
    let name = || tuning.definition.name.clone();
    let (trial, job) = parse_subject(asked, id, &name())?;
    let trials = loaded.state.search.all_started();
    let search = &loaded.state.search;
    let is_refit = loaded.state.refit.is_some_and(|refit| refit.trial == trial);
    if search.is_new(&tuning.definition, trial) && !is_refit {
        let definition = &tuning.definition;
        let last_of = |of| definition.trial(of, search.started(definition, of).checked_sub(1)?).into();
        let last = definition.definitions().filter_map(last_of).max().unwrap_or_default();
        return Err(ExplainError::UnknownTrial { tuning: name(), trial, trials, last });
    }
    let mut trail = Trail::new(&tuning, trial);
    let mut state = State::new(&tuning.definition);
    let mut pages = Pages::of(Query::prefix(stored::tuning_partition(id), "STEP#", STEPS_PER_PAGE));
    while let Some(rows) = pages.next(&*store.table).await.map_err(StoreError::from)? {
        for row in &rows {
            trail.take(&mut state, &stored::step(row).map_err(StoreError::from)?);
        }
    }
    if !state.trials.contains_key(trial) {
        // Lines of a finished trial that arrived after its end are in no step.
        let rows = store.all(&stored::fact_partition(id), &format!("{trial}-")).await?;
        for recorded in readable(&rows)? {
            trail.take_unfolded(&recorded);
        }
    }
    let explanation = trail.into_explanation(&state);
    let jobs = || explanation.training_jobs.iter().map(|job| job.training_job_name.clone());
    match job.map(|key| training_job_name(id, key)) {
        Some(job) if !jobs().any(|known| known == job) => {
            Err(ExplainError::UnknownJob { job, trial, jobs: jobs().collect() })
        }
        Some(_) | None => Ok(Some(explanation)),
    }
}

/// Returns the requested trial, and the training job if the request names one.
fn parse_subject(asked: &str, id: &str, tuning: &str) -> Result<(TrialId, Option<JobKey>), ExplainError> {
    if let Ok(trial) = asked.parse::<u32>() {
        return Ok((TrialId(trial), None));
    }
    let (of, key) =
        parse_training_job_name(asked).ok_or_else(|| ExplainError::Malformed(asked.to_owned()))?;
    if of == id {
        return Ok((key.trial, Some(key)));
    }
    Err(ExplainError::OtherTuning { tuning: tuning.to_owned(), id: id.to_owned(), job: asked.to_owned() })
}
