//! Tells the event bus that a tuning has ended, or that a bill was above its reservation.

use serde_json::{Value, json};
use wire::request::usd;

use super::{Actuator, Outcome};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, BusError, Clock};
use crate::store::StoreError;

/// Detail type of the notice of a bill above its reservation.
pub const OVERRUN: &str = "Hyperband Budget Overrun";
/// Detail type of the notice, after AMT's.
pub(super) const TUNING_STATE_CHANGE: &str = "SageMaker HyperParameter Tuning Job State Change";

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// Tells people that the service billed more than a job's limits allow: no further job of this tuning is started.
    pub(super) async fn overrun_notice(&self, id: &str) -> Result<Outcome, StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let ledger = &loaded.state.ledger;
        let detail = json!({
            "HyperParameterTuningJobName": loaded.tuning.definition.name,
            "SpentUsd": usd(ledger.spent),
            "ReservedUsd": usd(ledger.reserved),
            "CapUsd": ledger.cap.map(usd),
        });
        self.publish(OVERRUN, &detail).await
    }

    pub(super) async fn notice(&self, id: &str) -> Result<Outcome, StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let detail = json!({
            "HyperParameterTuningJobName": loaded.tuning.definition.name,
            "HyperParameterTuningJobStatus": loaded.head.status,
            "HyperParameterTuningEndTime": loaded.head.at,
            "Strategy": loaded.tuning.request.strategy(),
        });
        self.publish(TUNING_STATE_CHANGE, &detail).await
    }

    async fn publish(&self, detail_type: &str, detail: &Value) -> Result<Outcome, StoreError> {
        match self.bus.publish(detail_type, detail).await {
            // A notice that the bus will never take must not keep the tuning from coming to rest.
            Ok(()) | Err(BusError::Refused(_)) => Ok(Outcome::Done(Vec::new())),
            Err(BusError::Unavailable(reason)) => Ok(Outcome::Later(reason)),
        }
    }
}
