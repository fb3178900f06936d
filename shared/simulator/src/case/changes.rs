//! Changes of limits that a user makes while a tuning runs: the cap, the number of parallel jobs, and pauses. The user
//! ends each pause.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Case;
use super::request::dollars;
use crate::dice::Dice;
use crate::plan::{HOUR, MINUTE};

/// A change of limits. Limits that are `None` stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Time of the change, ms since the start.
    pub at: i64,
    /// The new cap, in micro-dollars and whole cents.
    pub cap: Option<u64>,
    /// The new maximum number of parallel jobs.
    pub max_parallel: Option<u32>,
    /// Pauses the tuning for this long after the pause was accepted, in ms. Longer than the largest clock skew, so
    /// that the end of the pause has the later time.
    pub pause_ms: Option<i64>,
}

impl Change {
    /// Returns the body of the request; with `resumes`, of the request that ends the pause.
    pub(crate) fn body(&self, resumes: bool) -> Value {
        if resumes {
            return json!({"paused": false});
        }
        let mut body = json!({});
        if let Some(cap) = self.cap {
            body["MaxCostUsd"] = dollars(cap);
        }
        if let Some(most) = self.max_parallel {
            body["MaxParallelTrainingJobs"] = json!(most);
        }
        if self.pause_ms.is_some() {
            body["paused"] = json!(true);
        }
        body
    }

    /// Draws the changes of `case`, which is tuning `n` of `seed`.
    pub(super) fn drawn(seed: u64, n: u64, case: &Case) -> Vec<Self> {
        let mut dice = Dice::new(seed, "changes", n);
        if !dice.chance(0.3) {
            return Vec::new();
        }
        let latest = dice.pick(&[10 * MINUTE, 90 * MINUTE, 4 * HOUR]);
        let one = case.dearest(case.choices.longest_seconds() + 300);
        let count = dice.count(1, 4);
        let mut changes: Vec<Self> = Vec::new();
        for _ in 0..count {
            // Sometimes two changes are made at the same time. Their clocks differ, and they arrive in any order.
            let (again, new) = (dice.chance(0.3), case.submit_at + dice.between(0, latest));
            let at = changes.last().filter(|_| again).map_or(new, |last| last.at);
            let (cap, most, pause) = (dice.chance(0.4), dice.chance(0.4), dice.chance(0.4));
            // From less than the worst case of a job to a cap that hardly binds.
            let hundredths = u64::try_from(dice.between(20, 800)).unwrap_or(100);
            let cap = cap.then(|| (one.saturating_mul(hundredths) / 100).div_ceil(10_000) * 10_000);
            let (max_parallel, pause_ms) = (dice.count(1, 8), dice.between(1, 120) * MINUTE);
            changes.push(Self {
                at,
                cap,
                max_parallel: most.then_some(max_parallel),
                pause_ms: (pause || (cap.is_none() && !most)).then_some(pause_ms),
            });
        }
        changes
    }
}

impl Case {
    /// Returns the total length of all pauses plus the time of the last change, in ms.
    pub(crate) fn paused_ms(&self) -> i64 {
        let pauses: i64 = self.changes.iter().filter_map(|change| change.pause_ms).sum();
        pauses + self.changes.iter().map(|change| change.at).max().unwrap_or(0)
    }
}
