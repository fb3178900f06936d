//! Records a state change of a training job, as EventBridge delivers it.
//!
//! Ours is what carries our stack's tag, a name of ours and the id of a tuning we know; all else is dropped.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;
use tuning::fact::JobKey;
use wire::events::EventError;
use wire::events::job_state::JobStateChange;
use wire::names::{TAG_STACK, TAG_TUNING, parse_training_job_name};

use crate::ports::Clock;
use crate::ports::table::Table;
use crate::record;
use crate::store::{Store, StoreError};

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is stored.
    Stored,
    /// It is not about a job of ours.
    NotOurs,
}

/// What a delivery is about and what it brought, as far as that is known, also of one that failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The tuning.
    pub tuning: Option<String>,
    /// The training job.
    pub job: Option<JobKey>,
    /// Facts that were new.
    pub facts: usize,
    /// Log lines with the objective.
    pub lines: usize,
}

/// Why a delivery was not recorded.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RecordError {
    /// It cannot be read: to the failure queue, with an alarm.
    #[error("the event cannot be read: {0}")]
    Unreadable(String),
    /// The table: to be delivered again.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The use case with what it needs.
#[derive(Debug)]
pub struct JobEvents<T, C> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
    /// Time.
    pub clock: C,
    /// Name of this stack.
    pub stack: String,
}

impl<T: Table, C: Clock> JobEvents<T, C> {
    /// Takes one EventBridge event; `about` is filled in on the way.
    pub async fn handle(&self, event: &Value, about: &mut About) -> Result<Recorded, RecordError> {
        let change = match JobStateChange::parse(event) {
            Ok(change) => change,
            Err(EventError::NotOurs(_)) => return Ok(Recorded::NotOurs),
            Err(error) => return Err(RecordError::Unreadable(error.to_string())),
        };
        let Some((id, job)) = parse_training_job_name(&change.training_job_name) else {
            return Ok(Recorded::NotOurs);
        };
        let tag = |key: &str| change.tags.get(key).map(String::as_str);
        if tag(TAG_STACK) != Some(self.stack.as_str()) || tag(TAG_TUNING) != Some(id.as_str()) {
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
