//! Tells the event bus what people want to hear of: the end of a tuning, and money.

use serde_json::{Value, json};
use tuning::fact::Fact;
use tuning::ruling::Ruling;
use wire::request::usd;
use wire::stored::ActionRow;

use super::{Actuator, Outcome};
use crate::describe::state_change;
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, BusError, Clock};
use crate::store::{Loaded, StoreError};

/// Detail type of the notice of an end, after AMT's.
pub const TUNING_STATE_CHANGE: &str = "SageMaker HyperParameter Tuning Job State Change";
/// Detail type of the notices of money.
pub const COST_ALARM: &str = "Hyperband Tuning Job Cost Alarm";

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    pub(super) async fn notice(&self, id: &str, row: &ActionRow) -> Result<Outcome, StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let ended = matches!(row.ruling, Ruling::TuningEnded { .. });
        let published = if ended {
            self.bus.publish(TUNING_STATE_CHANGE, &state_change(&loaded, &self.place)).await
        } else {
            self.bus.publish(COST_ALARM, &cost_alarm(&loaded, &row.ruling)).await
        };
        match published {
            // After the end nothing is folded any more; the row itself says that its notice is out.
            Ok(()) | Err(BusError::Refused(_)) if ended => Ok(Outcome::Done(Vec::new())),
            // A notice that the bus will never take must not keep the tuning from coming to rest.
            Ok(()) | Err(BusError::Refused(_)) => {
                let notice = row.action.clone();
                let fact = self.fact(format!("given#{notice}"), Fact::NoticeGiven { notice });
                Ok(Outcome::Done(vec![fact]))
            }
            Err(BusError::Unavailable(reason)) => Ok(Outcome::Later(reason)),
        }
    }
}

/// What happened, and where the money of the tuning stands now.
fn cost_alarm(loaded: &Loaded, ruling: &Ruling) -> Value {
    let (kind, percent, month) = match ruling {
        Ruling::CapReached { percent } => ("CapReached", Some(percent), None),
        Ruling::MonthCapReached { month, percent } => ("MonthlyCapReached", Some(percent), Some(month)),
        _ => ("Overrun", None, None),
    };
    let ledger = &loaded.state.ledger;
    let mut detail = json!({
        "HyperParameterTuningJobName": loaded.tuning.definition.name,
        "Alarm": kind,
        "SpentUsd": usd(ledger.spent),
        "ReservedUsd": usd(ledger.reserved),
    });
    let more = [
        ("CapUsd", ledger.cap.map(|cap| json!(usd(cap)))),
        ("Percent", percent.map(|percent| json!(percent))),
        ("Month", month.map(|month| json!(month))),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            detail[name] = value;
        }
    }
    detail
}
