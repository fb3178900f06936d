//! What one sweep carries along: its lease, what it has found to be done, and what it tells at its end.

use std::collections::BTreeSet;

use wire::stored::ActionRow;

use super::Swept;
use super::lease::Lease;
use super::round::FirstPage;
use crate::perform::{Effect, News, Performed};
use crate::ports::Millis;
use crate::store::StoreError;

/// So many failures are told one by one; all are counted.
const FAILURES_TOLD: usize = 20;
/// What is stored of a tuning that has made no step for so long has waited too long.
const STUCK_MS: Millis = 600_000;
/// So long after a step, what it ordered has reached the actuator, if anything reaches it.
const MISSED_MS: Millis = 15_000;

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
    /// What people are to be told of at its end.
    pub(super) news: Vec<(String, News)>,
    /// How long ago the tuning that is being visited made its last step.
    pub(super) since_step: Millis,
    /// Tunings of which something that is stored waits for the decider for too long.
    stuck: BTreeSet<String>,
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
            news: Vec::new(),
            since_step: 0,
            stuck: BTreeSet::new(),
        }
    }

    /// Something failed; the next sweep tries again.
    pub(super) fn failed(&mut self, error: StoreError) {
        self.swept.failed += 1;
        self.swept.last_error = Some(error);
    }

    /// The same, for tuning `id`.
    pub(super) fn failed_for(&mut self, id: &str, error: StoreError) {
        if self.swept.failures.len() < FAILURES_TOLD {
            self.swept.failures.push((id.to_owned(), error.clone()));
        }
        self.failed(error);
    }

    /// Something that is stored of tuning `id` waits for the decider, which made its last step of it so long ago.
    pub(super) fn waits(&mut self, id: &str, since_step: Millis) {
        if since_step >= STUCK_MS && self.stuck.insert(id.to_owned()) {
            self.swept.stuck += 1;
        }
    }

    /// An action of the tuning that is being visited is due.
    pub(super) fn found(&mut self, row: &ActionRow) {
        self.swept.missed += usize::from(row.tries == 0 && self.since_step >= MISSED_MS);
    }

    /// Takes note of what became of an action.
    pub(super) fn performed(&mut self, id: &str, action: &str, performed: &Performed) {
        let counts = &mut self.swept.performed;
        match performed {
            Performed::NotNow | Performed::Done(Effect::Before) => return,
            Performed::PutOff(_) => counts.put_off += 1,
            Performed::Done(effect) => {
                counts.done += 1;
                counts.started += usize::from(*effect == Effect::Started);
                counts.stopped += usize::from(matches!(effect, Effect::Stopped { .. }));
                if *effect == Effect::LogCut {
                    self.swept.logs_cut.push((id.to_owned(), action.to_owned()));
                }
            }
        }
        self.news.extend(News::of(action, performed).map(|news| (id.to_owned(), news)));
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
