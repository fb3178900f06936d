//! What one sweep carries along: its lease, what it has found to be done, and what it tells at its end.

use super::Swept;
use super::lease::Lease;
use super::round::FirstPage;
use crate::ports::Millis;
use crate::store::StoreError;

/// A sweep under way.
#[derive(Debug)]
pub(super) struct Run {
    /// When it began.
    pub(super) begun: Millis,
    pub(super) first: FirstPage,
    pub(super) lease: Lease,
    pub(super) swept: Swept,
    /// Bills, logs and kept instances that are due to be read; never more than the sweep may read.
    pub(super) bills: Vec<Owed>,
    /// Starts that are due; never more than the sweep may make.
    pub(super) starts: Vec<Owed>,
    /// Whether the round of the active tunings came to its end.
    pub(super) whole: bool,
    /// Silent jobs seen in it.
    pub(super) silent: usize,
    /// Before the first tuning for which something was left undone.
    pub(super) left_after: Option<String>,
}

/// An action that is due.
#[derive(Debug)]
pub(super) struct Owed {
    pub(super) id: String,
    pub(super) action: String,
    /// The tuning that was visited before this one.
    pub(super) after: String,
}

impl Run {
    pub(super) fn new(begun: Millis, first: FirstPage, lease: Lease, swept: Swept) -> Self {
        Self {
            begun,
            first,
            lease,
            swept,
            bills: Vec::new(),
            starts: Vec::new(),
            whole: false,
            silent: 0,
            left_after: None,
        }
    }

    /// Something failed; the next sweep tries again.
    pub(super) fn failed(&mut self, error: StoreError) {
        self.swept.failed += 1;
        self.swept.last_error = Some(error);
    }

    /// Something that is due does not fit; the next sweep begins with the tuning after `after`, unless this one did not
    /// even see all tunings.
    pub(super) fn left(&mut self, after: &str) {
        self.swept.left += 1;
        self.left_after.get_or_insert_with(|| after.to_owned());
        if self.whole
            && let Some(after) = &self.left_after
        {
            self.swept.cursor.heal.clone_from(after);
        }
    }
}
