//! Records a state change of a training job, as delivered by EventBridge.
//!
//! An event belongs to this stack if its job's name has the controller's form and its tuning is known. No tag may name
//! another stack or tuning, but tags may be missing: AWS documents an event without tags. All other events are dropped.
//! An event with a name of another form needs no read of the table.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use tuning::log::fact::JobKey;
use wire::events::EventError;
use wire::events::job_state::JobStateChange;
use wire::names::{TAG_STACK, TAG_TUNING, parse_training_job_name};

use crate::ports::Clock;
use crate::ports::table::Table;
use crate::record;
use crate::store::{Store, StoreError};

/// The result of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// The facts are stored.
    Stored,
    /// The delivery is not about a job of this stack.
    NotOurs,
}

/// The subject and content of a delivery, as far as known. Also filled in for a delivery that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// ID of the tuning.
    pub tuning: Option<String>,
    /// Name of the training job.
    pub job: Option<JobKey>,
    /// Number of new facts.
    pub facts: usize,
    /// Number of log lines with the objective.
    pub lines: usize,
}

/// Why a delivery was not recorded.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RecordError {
    /// The delivery is unreadable. It goes to the failure queue and raises an alarm.
    #[error("unreadable event: {0}")]
    Unreadable(String),
    /// The table failed. The event is delivered again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The use case and its dependencies.
#[derive(Debug)]
pub struct JobEvents<T, C> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
    /// The current time.
    pub clock: C,
    /// Name of this stack.
    pub stack: String,
}

impl<T: Table, C: Clock> JobEvents<T, C> {
    /// Processes one EventBridge event. Fills in `about` on the way.
    pub async fn handle(&self, event: &Value, about: &mut About) -> Result<Recorded, RecordError> {
        // Before all else, so that an unreadable event of a foreign job raises no alarm.
        let name = event.pointer("/detail/TrainingJobName").and_then(Value::as_str);
        if name.is_some_and(|name| parse_training_job_name(name).is_none()) {
            return Ok(Recorded::NotOurs);
        }
        let change = match JobStateChange::parse(event) {
            Ok(change) => change,
            Err(EventError::NotOurs(_)) => return Ok(Recorded::NotOurs),
            Err(error) => return Err(RecordError::Unreadable(error.to_string())),
        };
        let Some((id, job)) = parse_training_job_name(&change.training_job_name) else {
            return Ok(Recorded::NotOurs);
        };
        let is_of_another = |key: &str, ours: &str| change.tags.get(key).is_some_and(|value| value != ours);
        if is_of_another(TAG_STACK, &self.stack) || is_of_another(TAG_TUNING, &id) {
            return Ok(Recorded::NotOurs);
        }
        (about.tuning, about.job) = (Some(id.clone()), Some(job));
        if self.store.tuning(&id).await?.is_none() {
            return Ok(Recorded::NotOurs);
        }
        let fact = change.to_recorded(job);
        let delivered = record::deliver(&*self.store.table, &id, &[fact], self.clock.now()).await;
        about.facts = delivered.map_err(StoreError::from)?;
        Ok(Recorded::Stored)
    }
}
