//! Records the objective values in a batch of log lines, as delivered by CloudWatch Logs.
//!
//! All training jobs of the account share the log group. A batch of another job or host is dropped by the name of its
//! stream, before its events are read. Only lines of the metric host count, so that a value is not counted once per
//! host.

use std::sync::Arc;

use serde_json::Value;
use wire::events::logs::{Delivery, StreamLines};
use wire::events::surplus::Surplus;
use wire::names::{log_stream, parse_training_job_name};

use crate::job_events::{About, RecordError, Recorded};
use crate::ports::Clock;
use crate::ports::table::Table;
use crate::record;
use crate::store::{Store, StoreError};

/// The use case and its dependencies.
#[derive(Debug)]
pub struct JobLogs<T, C> {
    store: Arc<Store<T>>,
    clock: C,
    /// Counts the lines of streams from call to call.
    surplus: Surplus,
}

impl<T: Table, C: Clock> JobLogs<T, C> {
    /// Returns the use case for one process.
    pub fn new(store: Arc<Store<T>>, clock: C) -> Self {
        Self { store, clock, surplus: Surplus::default() }
    }

    /// Processes one delivery of a log subscription. Fills in `about` on the way.
    pub async fn handle(&self, event: &Value, about: &mut About) -> Result<Recorded, RecordError> {
        let delivery = Delivery::parse(event).map_err(|error| RecordError::Unreadable(error.to_string()))?;
        let Some(stream) = log_stream(&delivery.log_stream) else { return Ok(Recorded::NotOurs) };
        let Some((id, job)) = parse_training_job_name(&stream.job) else { return Ok(Recorded::NotOurs) };
        // Set early, so that table errors are logged with the tuning ID.
        (about.tuning, about.job) = (Some(id.clone()), Some(job));
        let Some(tuning) = self.store.tuning(&id).await? else { return Ok(Recorded::NotOurs) };
        if stream.host != tuning.request.metric_host() {
            return Ok(Recorded::NotOurs);
        }
        let Some(pattern) = tuning.pattern(job.trial) else { return Ok(Recorded::NotOurs) };
        let batch = delivery.batch().map_err(|error| RecordError::Unreadable(error.to_string()))?;
        let mut lines = StreamLines::default();
        for event in &batch.events {
            lines.add(event, &pattern.read(&event.message));
        }
        about.lines = lines.len();
        lines.drop_surplus(&delivery.log_stream, pattern.epoch_source(), &self.surplus);
        let facts = lines.into_facts(job, &delivery.log_stream);
        let delivered = record::deliver(&*self.store.table, &id, &facts, self.clock.now()).await;
        about.facts = delivered.map_err(StoreError::from)?;
        Ok(Recorded::Stored)
    }
}
