//! Explains one trial: everything that was decided about it and why, from the recorded steps alone.
//!
//! The steps are taken in order, as a replay does, but nothing is decided anew: before each ruling the state is what the
//! decider saw, so the values of the others at a rung are those that had arrived then. Reads only.

mod jobs;
mod late;
mod promotion;
mod rung;
mod trail;
mod words;

use thiserror::Error;
use tuning::fact::JobKey;
use tuning::state::State;
use wire::explain::Explanation;
use wire::names::{parse_training_job_name, training_job_name};
use wire::stored;

use crate::ports::table::{Query, Table};
use crate::store::{Store, StoreError};
use trail::Trail;

/// Steps read at once.
const STEPS_PER_PAGE: usize = 200;

/// Why a trial could not be explained.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExplainError {
    /// Neither a number nor the name of a training job: 400 `ValidationException`.
    #[error("'{0}' is neither the number of a trial nor the name of a training job")]
    Malformed(String),
    /// The tuning has no such trial: 400 `ResourceNotFound`.
    #[error("{tuning} has no trial {trial}: {}", there_are(*trials))]
    UnknownTrial {
        /// Name of the tuning.
        tuning: String,
        /// What was asked for.
        trial: u32,
        /// How many trials there are.
        trials: u32,
    },
    /// The training job is another tuning's: 400 `ResourceNotFound`.
    #[error("the training job {job} is not one of {tuning}, whose jobs are named {id}-…")]
    OtherTuning {
        /// Name of the tuning.
        tuning: String,
        /// Its id, with which the names of its jobs begin.
        id: String,
        /// What was asked for.
        job: String,
    },
    /// The trial has no such training job: 400 `ResourceNotFound`.
    #[error("there is no training job {job}; trial {trial} has {}", jobs.join(", "))]
    UnknownJob {
        /// What was asked for.
        job: String,
        /// The trial it would belong to.
        trial: u32,
        /// The trial's jobs.
        jobs: Vec<String>,
    },
    /// To be tried again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn there_are(trials: u32) -> String {
    match trials {
        0 => "none has begun yet".to_owned(),
        1 => "there is trial 0 only".to_owned(),
        trials => format!("there are trials 0 to {}", trials.saturating_sub(1)),
    }
}

/// Explains a trial of tuning `id`, named by its number or by one of its training jobs; `None` if there is no such
/// tuning.
pub async fn explain<T: Table>(
    store: &Store<T>,
    id: &str,
    asked: &str,
) -> Result<Option<Explanation>, ExplainError> {
    let Some(loaded) = store.load(id).await? else { return Ok(None) };
    let tuning = loaded.tuning;
    let name = || tuning.definition.name.clone();
    let (trial, job) = wanted(asked, id, &name())?;
    let trials = loaded.state.next_trial;
    if trial >= trials {
        return Err(ExplainError::UnknownTrial { tuning: name(), trial, trials });
    }
    let mut trail = Trail::new(&tuning, trial);
    let mut state = State::new(&tuning.definition);
    let mut query = Query::prefix(stored::tuning_partition(id), "STEP#", STEPS_PER_PAGE);
    loop {
        let page = store.table.query(&query).await.map_err(StoreError::from)?;
        for item in &page.items {
            trail.take(&mut state, &stored::step(item).map_err(StoreError::from)?);
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    if !state.trials.contains_key(&trial) {
        late::unfolded(store, id, &mut trail).await?;
    }
    let explanation = trail.told(&state);
    let jobs = || explanation.training_jobs.iter().map(|job| job.training_job_name.clone());
    match job.map(|key| training_job_name(id, key)) {
        Some(job) if !jobs().any(|known| known == job) => {
            Err(ExplainError::UnknownJob { job, trial, jobs: jobs().collect() })
        }
        Some(_) | None => Ok(Some(explanation)),
    }
}

/// The trial that is meant, and the training job if one was named.
fn wanted(asked: &str, id: &str, tuning: &str) -> Result<(u32, Option<JobKey>), ExplainError> {
    if let Ok(trial) = asked.parse::<u32>() {
        return Ok((trial, None));
    }
    let (of, key) =
        parse_training_job_name(asked).ok_or_else(|| ExplainError::Malformed(asked.to_owned()))?;
    if of == id {
        return Ok((key.trial, Some(key)));
    }
    Err(ExplainError::OtherTuning { tuning: tuning.to_owned(), id: id.to_owned(), job: asked.to_owned() })
}
