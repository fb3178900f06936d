//! Starts that are deferred while no job of a tuning runs: since when, and whether a quota of the account is the
//! reason.
//!
//! A tuning that waits must not block other tunings. After a while it keeps only one job ordered, as a probe, and
//! the money for it. Only a person can raise a quota, so the wait for one expires. The hold ends when the service
//! accepts a job.

use serde::{Deserialize, Serialize};

use crate::limits::{IDLE_MS, QUOTA_PATIENCE_MS};
use crate::state::State;

/// No job runs, and starts are deferred. Times are in ms since the epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// When a start was first deferred.
    pub since: i64,
    /// When a start was first deferred for a quota; `None` = no quota is exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_since: Option<i64>,
    /// The latest answer of the training service about the quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_answer: Option<String>,
}

impl State {
    fn runs(&self) -> bool {
        self.jobs().any(|(_, _, job)| job.accepted && job.holds_slot())
    }

    /// Records that a start was deferred at `at`; `quota_answer` = for a quota, with this answer of the service.
    pub(crate) fn note_deferred_start(&mut self, at: i64, quota_answer: Option<String>) {
        if self.runs() {
            return;
        }
        let held = self.held.get_or_insert(Held { since: at, quota_since: None, last_answer: None });
        if quota_answer.is_some() {
            held.quota_since = held.quota_since.or(Some(at));
            held.last_answer = quota_answer;
        }
    }

    /// Ends the hold if a job runs now.
    pub(crate) fn clear_hold(&mut self) {
        if self.held.is_some() && self.runs() {
            self.held = None;
        }
    }

    /// Returns when the hold counts as long, in ms since the epoch.
    pub(crate) fn long_hold_at(&self) -> Option<i64> {
        self.held.as_ref().map(|held| held.since.saturating_add(IDLE_MS))
    }

    /// Returns whether starts have been deferred for long.
    pub(crate) fn is_held_long(&self) -> bool {
        self.long_hold_at().is_some_and(|at| at <= self.now)
    }

    /// Returns when the wait for a quota expires, in ms since the epoch.
    pub(crate) fn quota_expires_at(&self) -> Option<i64> {
        let since = self.held.as_ref().and_then(|held| held.quota_since);
        since.map(|since| since.saturating_add(QUOTA_PATIENCE_MS))
    }

    /// Returns whether the wait for a quota has expired.
    ///
    /// Counts by the time that the sweeper reports: a stored fact that a job was accepted may not be folded yet.
    pub(crate) fn quota_has_expired(&self) -> bool {
        self.quota_expires_at().is_some_and(|at| at <= self.clock)
    }
}
