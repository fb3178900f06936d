//! `OverallBestTrainingJob`: the best training job of a tuning and of the parents that it started from.

use hyperband::ranking::{Direction, improves};
use search::WarmStartType;
use serde_json::Value;
use wire::describe::{JobController, TrainingJobSummary, TuningJob};

use super::{Place, best_training_job};
use crate::lookup::{self, LookupError};
use crate::ports::table::Table;
use crate::store::{Loaded, Store, StoreError};

/// Returns the best training job of the tuning in `loaded`, described as `job`, and of its parents. `None` unless the
/// tuning has a warm start with the same data and algorithm. A deleted parent does not count.
pub(super) async fn best<T: Table>(
    store: &Store<T>,
    place: &Place,
    loaded: &Loaded,
    job: &TuningJob,
) -> Result<Option<Box<TrainingJobSummary>>, StoreError> {
    let Some((WarmStartType::IdenticalDataAndAlgorithm, parents)) = loaded.tuning.request.warm_start() else {
        return Ok(None);
    };
    let direction = loaded.tuning.definition.direction();
    let named = |job: TrainingJobSummary, name: &str| TrainingJobSummary {
        tuning_job_name: Some(name.to_owned()),
        ..job
    };
    let of_others = loaded.tuning.other_parents.iter().filter_map(of_another_controller);
    let own = job.best_training_job.clone().map(|best| named(best, &job.base.name));
    let mut all: Vec<_> = own.into_iter().chain(of_others).collect();
    for name in parents {
        let row = match lookup::find(store, name).await {
            Ok(row) => row,
            Err(LookupError::Store(error)) => return Err(error),
            Err(LookupError::NotFound(_) | LookupError::AlreadyEnded(_)) => continue,
        };
        // One that was created later only has the name of a deleted parent.
        if row.created > loaded.tuning.definition.created {
            continue;
        }
        let Some(parent) = store.load(&row.id).await? else { continue };
        all.extend(best_training_job(&parent, place).map(|other| named(other, parent.tuning.request.name())));
    }
    let value = |job: &TrainingJobSummary| job.final_objective.as_ref().map(|last| last.value);
    let better = |best, other| if is_better(value(&other), value(&best), direction) { other } else { best };
    Ok(all.into_iter().reduce(better).map(Box::new))
}

/// Returns a training job as another controller described it. The members that only this controller has are empty.
fn of_another_controller(job: &Value) -> Option<TrainingJobSummary> {
    let mut job = job.as_object()?.clone();
    job.entry("ObjectiveStatus").or_insert_with(|| "Succeeded".into());
    job.insert("Controller".to_owned(), serde_json::to_value(JobController::default()).ok()?);
    serde_json::from_value(job.into()).ok()
}

/// Returns whether a value is better than another one, or the only one.
fn is_better(new: Option<f64>, old: Option<f64>, direction: Direction) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => improves(direction, new, old),
        (new, old) => new.is_some() && old.is_none(),
    }
}
