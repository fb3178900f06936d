//! Passes the starts of a batch to another invocation of the actuator.
//!
//! The payload has only the names of the actions, since an actuator reads their rows. Each invocation claims a row
//! before it acts, so a start in two invocations is performed once. The sweeper performs a start that is in no
//! invocation.

use serde_json::{Value, json};
use wire::names::parse_job_key;

use crate::ports::{HandOver, HandOverError};

/// The member of the payload: pairs of a tuning's ID and an action's name.
const STARTS: &str = "hyperbandStarts";

/// No other invocation: for programs whose stops never wait for a start.
pub(super) enum NoHandOver {}

impl HandOver for NoHandOver {
    async fn hand_over(&self, _payload: &Value) -> Result<(), HandOverError> {
        match *self {}
    }
}

/// Returns whether an event is the payload of a hand-over.
pub(super) fn is_payload(event: &Value) -> bool {
    event.get(STARTS).is_some()
}

/// Returns the payload that hands over starts: pairs of a tuning's ID and an action's name.
pub(super) fn payload<'a>(starts: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    json!({STARTS: starts.collect::<Vec<_>>()})
}

/// Reads the payload of a hand-over, or the reason why a pair is invalid. Other actions than starts are never handed
/// over.
pub(super) fn read(payload: &Value) -> impl Iterator<Item = Result<(&str, &str), String>> {
    payload[STARTS].as_array().into_iter().flatten().map(|pair| {
        let pair = pair[0].as_str().zip(pair[1].as_str()).filter(|(_, action)| is_start(action));
        pair.ok_or_else(|| format!("invalid {STARTS}: expected pairs of a tuning's ID and a start"))
    })
}

fn is_start(action: &str) -> bool {
    action.strip_prefix("start-").is_some_and(|job| parse_job_key(job).is_some())
}
