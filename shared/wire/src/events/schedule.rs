//! The tick that starts the sweeper: a scheduled event of an EventBridge rule or of EventBridge Scheduler.

use serde_json::{Value, json};

use super::timestamp::{format_utc, parse_utc};
use super::{EventError, Unreadable, expect_kind, field};
use tuning::time::Time;

/// Sources of ticks: an EventBridge rule, and EventBridge Scheduler.
const SOURCES: [&str; 2] = ["aws.events", "aws.scheduler"];
const DETAIL_TYPE: &str = "Scheduled Event";

/// A tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// Scheduled time, in ms since the epoch.
    pub time: Time,
}

impl Tick {
    /// Reads a scheduled event.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        expect_kind(event, &SOURCES, DETAIL_TYPE)?;
        let time = parse_utc(field::text(event, "time", "time")?)
            .ok_or(Unreadable::Field { path: "time", expected: "a time such as 2026-09-10T00:30:00Z" })?;
        Ok(Self { time })
    }

    /// Returns the payload as a rule sends it.
    pub fn encode(self) -> Value {
        json!({
            "version": "0",
            "id": format!("tick-{}", self.time),
            "detail-type": DETAIL_TYPE,
            "source": SOURCES[0],
            "time": format_utc(self.time),
            "resources": [],
            "detail": {},
        })
    }
}
