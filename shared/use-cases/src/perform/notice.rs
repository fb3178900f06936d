//! Publishes the notices that a tuning guarantees: its end, and alarms about its cost and its capacity.

use serde_json::{Value, json};
use tuning::log::fact::Fact;
use tuning::log::ruling::{NoticeOrder, Order};
use tuning::unit::time::Time;
use wire::request::usd;
use wire::stored::ActionRow;

use super::{Actuator, Outcome};
use crate::describe::state_change;
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, TrainingJobs};
use crate::ports::{Bus, BusError, Timer};
use crate::store::{Loaded, StoreError};

/// Detail type of the event when a tuning changes its status, named like AMT's.
pub const TUNING_STATE_CHANGE: &str = "SageMaker HyperParameter Tuning Job State Change";
/// Detail type of the event that a tuning gets no instances.
pub const CAPACITY_ALARM: &str = "Hyperband Tuning Job Capacity Alarm";
/// Detail type of the cost alarms.
pub const COST_ALARM: &str = "Hyperband Tuning Job Cost Alarm";

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Actuator<T, J, B, C> {
    pub(super) async fn notice(&self, id: &str, row: &ActionRow) -> Result<Outcome, StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let ended = matches!(row.order, Order::Notice(NoticeOrder::TuningEnded { .. }));
        let published = if ended {
            self.bus.publish(TUNING_STATE_CHANGE, &state_change(&loaded, &self.place)).await
        } else if let Order::Notice(NoticeOrder::CapacityLacking { since }) = row.order {
            self.bus.publish(CAPACITY_ALARM, &capacity_alarm(&loaded, since)).await
        } else {
            self.bus.publish(COST_ALARM, &cost_alarm(&loaded, &row.order)).await
        };
        match published {
            // After the end no fact is folded any more. The row itself records that the notice was published.
            Ok(()) | Err(BusError::Refused(_)) if ended => Ok(Outcome::Done(Vec::new())),
            // A notice that the event bus refuses permanently must not keep the tuning active.
            Ok(()) | Err(BusError::Refused(_)) => {
                let notice = row.action.clone();
                let fact = self.fact(format!("given#{notice}"), Fact::NoticeGiven { notice });
                Ok(Outcome::Done(vec![fact]))
            }
            Err(BusError::Unavailable(reason)) => Ok(Outcome::Later(reason)),
        }
    }
}

/// Returns the detail of a capacity alarm: since when no training job has had instances, and when the tuning ends if
/// that does not change, both in epoch seconds.
fn capacity_alarm(loaded: &Loaded, since: Time) -> Value {
    let definition = &loaded.tuning.definition;
    let wait = i64::try_from(definition.settings.capacity_wait_seconds).unwrap_or(i64::MAX);
    let since = since.as_seconds();
    json!({
        "HyperParameterTuningJobName": definition.name,
        "Alarm": "NoCapacity",
        "WaitingSince": since,
        "EndsAt": since.saturating_add(wait),
    })
}

/// Returns the detail of a cost alarm: the cause, and the tuning's present ledger.
fn cost_alarm(loaded: &Loaded, order: &Order) -> Value {
    let (kind, percent, month) = match order {
        Order::Notice(NoticeOrder::CapReached { percent }) => ("CapReached", Some(percent), None),
        Order::Notice(NoticeOrder::MonthCapReached { month, percent }) => {
            ("MonthlyCapReached", Some(percent), Some(month))
        }
        Order::Notice(
            NoticeOrder::OverrunSeen | NoticeOrder::CapacityLacking { .. } | NoticeOrder::TuningEnded { .. },
        )
        | Order::Start { .. }
        | Order::Stop { .. }
        | Order::Read(_)
        | Order::Pool(_)
        | Order::Grant(_) => ("Overrun", None, None),
    };
    let ledger = &loaded.state.money.ledger;
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
