//! `OverallBestTrainingJob`: the best training job of a tuning and of the parents that it started from.

use hyperband::ranking::improves;
use search::WarmStartType;
use wire::describe::{TrainingJobSummary, TuningJob};

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
    let value = |job: &TrainingJobSummary| job.final_objective.as_ref().map(|last| last.value);
    let direction = loaded.tuning.definition.direction();
    let named = |job: TrainingJobSummary, name: &str| TrainingJobSummary {
        tuning_job_name: Some(name.to_owned()),
        ..job
    };
    let mut best = job.best_training_job.clone().map(|best| named(best, &job.base.name));
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
        let Some(other) = best_training_job(&parent, place) else { continue };
        let is_better = match (value(&other), best.as_ref().and_then(value)) {
            (Some(new), Some(old)) => improves(direction, new, old),
            (new, old) => new.is_some() && old.is_none(),
        };
        if is_better {
            best = Some(named(other, parent.tuning.request.name()));
        }
    }
    Ok(best.map(Box::new))
}
