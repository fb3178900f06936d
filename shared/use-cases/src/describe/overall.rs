//! `OverallBestTrainingJob`: the best training job of a tuning and of the parents that it started from.

use hyperband::ranking::{Direction, improves};
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
    let direction = loaded.tuning.definition.direction();
    let named = |job: TrainingJobSummary, name: &str| TrainingJobSummary {
        tuning_job_name: Some(name.to_owned()),
        ..job
    };
    let of_others = loaded.tuning.parent_best.clone();
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
    Ok(all.into_iter().reduce(|best, other| best_of(best, other, direction)).map(Box::new))
}

/// Returns the better one of two training jobs; of equal ones, the first.
pub(crate) fn best_of(
    first: TrainingJobSummary,
    other: TrainingJobSummary,
    direction: Direction,
) -> TrainingJobSummary {
    let value = |job: &TrainingJobSummary| job.final_objective.as_ref().map(|last| last.value);
    let is_better = match (value(&other), value(&first)) {
        (Some(new), Some(old)) => improves(direction, new, old),
        (new, old) => new.is_some() && old.is_none(),
    };
    if is_better { other } else { first }
}
