//! Passes the starts of a batch to another invocation of the actuator.
//!
//! The payload has only the names of the actions, since an actuator reads their rows. Each invocation claims a row
//! before it acts, so a start in two invocations is performed once. The sweeper performs a start that is in no
//! invocation.

use serde_json::{Value, json};
use wire::names::parse_job_key;

use super::batch::{Act, Acts};
use crate::batch::{Part, Progress, Unreadable};
use crate::ports::{Elsewhere, HandOverError};

/// The member of the payload: pairs of a tuning's ID and an action's name.
const STARTS: &str = "hyperbandStarts";

/// No other invocation: for programs whose stops never wait for a start.
pub(super) enum Nowhere {}

impl Elsewhere for Nowhere {
    async fn hand_over(&self, _payload: &Value) -> Result<(), HandOverError> {
        match *self {}
    }
}

/// Returns whether an event is the payload of a hand-over.
pub(super) fn is_payload(event: &Value) -> bool {
    event.get(STARTS).is_some()
}

/// Hands the starts over, and marks them as done if that succeeds. Sends nothing if there are none.
pub(super) async fn hand_over(elsewhere: Option<&impl Elsewhere>, starts: &mut [Part<Act>]) {
    let Some(elsewhere) = elsewhere.filter(|_| !starts.is_empty()) else { return };
    let pairs: Vec<Value> = starts.iter().map(|part| json!([part.tuning, part.done.action])).collect();
    match elsewhere.hand_over(&json!({STARTS: pairs})).await {
        Ok(()) => starts.iter_mut().for_each(|part| part.progress = Progress::Done),
        Err(error) => starts.iter_mut().for_each(|part| part.done.kept = Some(error.to_string())),
    }
}

/// Reads the payload of a hand-over. Other actions than starts are unreadable: they are never handed over.
pub(super) fn read(payload: &Value, acts: &mut Acts) {
    for pair in payload[STARTS].as_array().into_iter().flatten() {
        match (pair[0].as_str(), pair[1].as_str()) {
            (Some(tuning), Some(action)) if is_start(action) => {
                let mut part = Part::<Act>::new(tuning);
                action.clone_into(&mut part.done.action);
                acts.parts.push(part);
            }
            _ => acts.unreadable.push(Unreadable {
                sequence: None,
                tuning: None,
                reason: format!("invalid {STARTS}: expected pairs of a tuning's ID and a start"),
            }),
        }
    }
}

fn is_start(action: &str) -> bool {
    action.strip_prefix("start-").is_some_and(|job| parse_job_key(job).is_some())
}
