//! Records the objective's values in a batch of log lines, as CloudWatch Logs delivers it.
//!
//! All training jobs of the account share the log group, so a batch is dropped by its stream's name before anything
//! else. Only the metric host's lines count, so that a value is never counted once per host.

use std::sync::Arc;

use serde_json::Value;
use wire::events::logs::{LogBatch, lines_to_facts};
use wire::names::{log_stream, parse_training_job_name};

use crate::job_events::{About, RecordError, Recorded};
use crate::ports::Clock;
use crate::ports::table::Table;
use crate::record;
use crate::store::{Store, StoreError};

/// The use case with what it needs.
#[derive(Debug)]
pub struct JobLogs<T, C> {
    /// Reads tunings.
    pub store: Arc<Store<T>>,
    /// Time.
    pub clock: C,
}

impl<T: Table, C: Clock> JobLogs<T, C> {
    /// Takes one delivery of a log subscription; `about` is filled in on the way.
    pub async fn handle(&self, event: &Value, about: &mut About) -> Result<Recorded, RecordError> {
        let batch = LogBatch::parse(event).map_err(|error| RecordError::Unreadable(error.to_string()))?;
        let Some(stream) = log_stream(&batch.log_stream) else { return Ok(Recorded::NotOurs) };
        let Some((id, job)) = parse_training_job_name(&stream.job) else { return Ok(Recorded::NotOurs) };
        // Told even if it comes to nothing: that the table could not be asked is told with the tuning it was asked for.
        (about.tuning, about.job) = (Some(id.clone()), Some(job));
        let Some(tuning) = self.store.tuning(&id).await? else { return Ok(Recorded::NotOurs) };
        if stream.host != tuning.request.metric_host() {
            return Ok(Recorded::NotOurs);
        }
        let Some(pattern) = &tuning.pattern else { return Ok(Recorded::NotOurs) };
        let lines: Vec<_> = batch.events.iter().filter_map(|event| pattern.line(event)).collect();
        about.lines = lines.len();
        let facts = lines_to_facts(job, &batch.log_stream, lines);
        let delivered = record::deliver(&*self.store.table, &id, &facts, self.clock.now()).await;
        about.facts = delivered.map_err(StoreError::from)?;
        Ok(Recorded::Stored)
    }
}
