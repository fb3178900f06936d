//! Tells the event bus that a tuning has ended.

use serde_json::json;

use super::{Actuator, Outcome};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, BusError, Clock};
use crate::store::StoreError;

/// Detail type of the notice, after AMT's.
pub(super) const TUNING_STATE_CHANGE: &str = "SageMaker HyperParameter Tuning Job State Change";

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    pub(super) async fn notice(&self, id: &str) -> Result<Outcome, StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let detail = json!({
            "HyperParameterTuningJobName": loaded.tuning.definition.name,
            "HyperParameterTuningJobStatus": loaded.head.status,
            "HyperParameterTuningEndTime": loaded.head.at,
            "Strategy": loaded.tuning.request.strategy(),
        });
        match self.bus.publish(TUNING_STATE_CHANGE, &detail).await {
            // A notice that the bus will never take must not keep the tuning from coming to rest.
            Ok(()) | Err(BusError::Refused(_)) => Ok(Outcome::Done(Vec::new())),
            Err(BusError::Unavailable(reason)) => Ok(Outcome::Later(reason)),
        }
    }
}
