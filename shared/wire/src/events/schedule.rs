//! The tick that wakes the sweeper.
//!
//! Holds the time of a scheduled event of an EventBridge rule or of EventBridge Scheduler. Nothing else in it is used.

use serde_json::{Value, json};

use super::timestamp::{format_utc, parse_utc};
use super::{EventError, Unreadable, expect_kind, field};

/// A rule's ticks, and the Scheduler's.
const SOURCES: [&str; 2] = ["aws.events", "aws.scheduler"];
const DETAIL_TYPE: &str = "Scheduled Event";

/// A tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// When it was due, ms since the epoch.
    pub time: i64,
}

impl Tick {
    /// Reads a scheduled event.
    pub fn parse(event: &Value) -> Result<Self, EventError> {
        expect_kind(event, &SOURCES, DETAIL_TYPE)?;
        let time = parse_utc(field::text(event, "time", "time")?)
            .ok_or(Unreadable::Field { path: "time", expected: "a time such as 2026-09-10T00:30:00Z" })?;
        Ok(Self { time })
    }

    /// The payload, as a rule sends it.
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
