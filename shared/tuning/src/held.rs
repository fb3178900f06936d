//! Starts that are put off while nothing of a tuning runs: since when, and whether a quota of the account is why.
//!
//! A tuning that waits for others takes little from them: after a while it keeps one job ordered, as a probe, and the money
//! for it; and it does not wait for ever for what only a person can change. When the service accepts a job all that is over.

use serde::{Deserialize, Serialize};

use crate::limits::{IDLE_MS, QUOTA_PATIENCE_MS};
use crate::state::State;

/// Nothing runs, and starts are put off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// When the first of them was, ms.
    pub since: i64,
    /// When that was first for a quota, ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_since: Option<i64>,
    /// What the training service said of the quota last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl State {
    fn runs(&self) -> bool {
        self.jobs().any(|(_, _, job)| job.accepted && job.holds_slot())
    }

    /// A start was put off at `at`; `limited` = for a quota, in these words.
    pub(crate) fn put_off(&mut self, at: i64, limited: Option<String>) {
        if self.runs() {
            return;
        }
        let held = self.held.get_or_insert(Held { since: at, limited_since: None, words: None });
        if limited.is_some() {
            held.limited_since = held.limited_since.or(Some(at));
            held.words = limited;
        }
    }

    /// Something has happened: if a job runs now, nothing is held.
    pub(crate) fn let_go(&mut self) {
        if self.held.is_some() && self.runs() {
            self.held = None;
        }
    }

    /// When starts will have been put off for long.
    pub(crate) fn held_long_at(&self) -> Option<i64> {
        self.held.as_ref().map(|held| held.since.saturating_add(IDLE_MS))
    }

    /// Whether they have been.
    pub(crate) fn is_held_long(&self) -> bool {
        self.held_long_at().is_some_and(|at| at <= self.now)
    }

    /// When a quota that is used up will have been waited for in vain.
    pub(crate) fn quota_in_vain_at(&self) -> Option<i64> {
        let since = self.held.as_ref().and_then(|held| held.limited_since);
        since.map(|since| since.saturating_add(QUOTA_PATIENCE_MS))
    }

    /// Whether it has been: by the time that the sweeper told, since a start may have been accepted and not be folded yet.
    pub(crate) fn quota_is_in_vain(&self) -> bool {
        self.quota_in_vain_at().is_some_and(|at| at <= self.clock)
    }
}
