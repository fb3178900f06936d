//! Planted bugs of the training service and its logs.

use std::collections::BTreeMap;

use crate::planted::{Mutation, is_on};
use serde_json::{Value, json};
use tuning::unit::time::Time;
use use_cases::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};
use wire::names::TAG_STACK;

use super::{Mutant, Ports};
use crate::site::Function;
use crate::world::watch::STACK;

impl<P: Ports> TrainingJobs for Mutant<P> {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        let mut request = request.clone();
        if is_on(Mutation::CheckpointPrefixOfAttempt) {
            checkpoint_under_name(&mut request);
        }
        let withheld = {
            let mut memory = self.memory();
            memory.still_at = None;
            memory.created = request.clone();
            memory.withheld.take()
        };
        let created = self.port.create(&request).await;
        self.memory().refused = matches!(created, Err(TrainingJobsError::Refused { .. }));
        if let Some(claim) = withheld {
            // The claim may come too late.
            let _ = self.port.write(claim).await;
        }
        created
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        if std::mem::take(&mut self.memory().start_cancelled) && is_on(Mutation::UndoForgotten) {
            return Ok(());
        }
        let stopped = self.port.stop(name).await;
        let mut memory = self.memory();
        memory.stop_not_found =
            memory.has_claimed("stop") && matches!(stopped, Err(TrainingJobsError::NotFound(_)));
        match stopped {
            Err(TrainingJobsError::Throttled) if is_on(Mutation::StopFailureIsDone) => Ok(()),
            stopped => stopped,
        }
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.port.release(name).await
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let claimed = self.memory().claimed.clone();
        if claimed.is_none() && self.runs(Function::Sweeper) && is_on(Mutation::SilentJobIgnored) {
            return Err(TrainingJobsError::Unavailable("no answer".to_owned()));
        }
        let mut description = self.port.describe(name).await?;
        let has_ended = matches!(description.status.as_str(), "Completed" | "Failed" | "Stopped");
        if has_ended && claimed.is_none() && self.runs(Function::Sweeper) && is_on(Mutation::BillNotReadAgain)
        {
            return Err(TrainingJobsError::NotFound(name.to_owned()));
        }
        let runs = description.status == "InProgress" && description.secondary_status == "Training";
        if runs && self.memory().has_claimed("bill") && is_on(Mutation::LagBelieved) {
            "Stopped".clone_into(&mut description.status);
            description.billable_seconds = Some(0);
        }
        Ok(description)
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        let (starts, refused, created) = {
            let mut memory = self.memory();
            memory.start_cancelled = false;
            (memory.has_claimed("start"), memory.refused, memory.created.clone())
        };
        if starts && refused && is_on(Mutation::RefusalBelieved) {
            return Ok([(TAG_STACK.to_owned(), "another stack".to_owned())].into());
        }
        let mut tags = self.port.tags(name).await?;
        if starts && created["TrainingJobName"] == name && is_on(Mutation::ForeignJobAdopted) {
            tags.extend(tags_of(&created));
        }
        if !starts && self.runs(Function::Sweeper) && is_on(Mutation::ForeignJobStopped) {
            tags.insert(TAG_STACK.to_owned(), STACK.to_owned());
        }
        Ok(tags)
    }
}

impl<P: Ports> TrainingJobListing for Mutant<P> {
    async fn in_progress(&self, from: Time, page: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        let mut listed = self.port.in_progress(from, page).await?;
        if is_on(Mutation::OrphanNeverStopped) {
            listed.items.clear();
        }
        Ok(listed)
    }
}

impl<P: Ports> JobLogs for Mutant<P> {
    async fn read(
        &self,
        name: &str,
        host: &str,
        from: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        if self.memory().has_claimed("rest") && is_on(Mutation::RestNotRead) {
            return Ok(Paged { items: Vec::new(), next: None });
        }
        self.port.read(name, host, from, page).await
    }
}

/// Names the checkpoints in a create request after the job, not after its trial.
fn checkpoint_under_name(request: &mut Value) {
    let uri = request["CheckpointConfig"]["S3Uri"].as_str().unwrap_or_default();
    let Some((prefix, _)) = uri.trim_end_matches('/').rsplit_once('/') else { return };
    let uri = format!("{prefix}/{}/", request["TrainingJobName"].as_str().unwrap_or_default());
    request["CheckpointConfig"]["S3Uri"] = json!(uri);
}

/// Returns the tags in a create request.
fn tags_of(request: &Value) -> BTreeMap<String, String> {
    let tags = request["Tags"].as_array().into_iter().flatten();
    tags.filter_map(|tag| Some((tag["Key"].as_str()?.to_owned(), tag["Value"].as_str()?.to_owned())))
        .collect()
}
