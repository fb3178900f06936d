//! The state of one sweep: its lease, the due actions that it found, and its result.

use std::collections::BTreeSet;

use tuning::log::fact::JobKey;
use tuning::log::ruling::{Order, ReadOrder};
use tuning::unit::time::{Millis, Time};
use wire::stored::ActionRow;

use super::Swept;
use super::lease::Lease;
use super::round::FirstPage;
use crate::perform::{Announcement, Effect, Performed};
use crate::store::StoreError;

/// Number of errors that are kept for the log. All errors are counted.
const FAILURES_LISTED: usize = 20;
/// Time without a step after which a tuning with stored but unprocessed facts counts as stuck.
const STUCK: Millis = Millis::from_seconds(600);
/// Time after a step after which the actuator should have tried the actions ordered by it.
const MISSED: Millis = Millis::from_seconds(15);
/// The same of reads.
const LEFT: Millis = Millis::from_seconds(120);

/// A booked bill that is due to be read once more.
#[derive(Debug)]
pub(super) struct BookedBill {
    pub(super) id: String,
    pub(super) job: JobKey,
    pub(super) seconds: u64,
    /// When the bill counts as confirmed although it cannot be read.
    pub(super) expires: Time,
    /// The tuning that was visited before this one.
    pub(super) after: String,
}

#[derive(Debug)]
pub(super) struct Run {
    /// When the sweep began.
    pub(super) begun: Time,
    pub(super) first: FirstPage,
    pub(super) lease: Lease,
    pub(super) swept: Swept,
    /// Due reads of bills, logs and kept instances. At most as many as the sweep may read.
    pub(super) bills: Vec<DueAction>,
    /// Booked bills to read once more. At most as many as the sweep may read.
    pub(super) booked: Vec<BookedBill>,
    /// Due starts. Bounded, but more than the sweep may make.
    pub(super) starts: Vec<DueAction>,
    /// Whether this sweep completed the hourly listing of all running jobs.
    pub(super) listed_all: bool,
    /// Whether the sweep has visited all active tunings.
    pub(super) whole: bool,
    /// Number of silent jobs seen.
    pub(super) silent: usize,
    /// The ID before the first tuning with work left to the next sweep.
    pub(super) left_after: Option<String>,
    /// Events to publish at the end: tuning ID and event.
    pub(super) announcements: Vec<(String, Announcement)>,
    /// Time since the last step of the tuning that is being visited.
    pub(super) since_step: Millis,
    /// Tunings with a stored fact or outcome that has waited too long for the decider.
    stuck: BTreeSet<String>,
}

#[derive(Debug)]
pub(super) struct DueAction {
    pub(super) id: String,
    pub(super) action: String,
    /// The tuning that was visited before this one.
    pub(super) after: String,
}

impl Run {
    pub(super) fn new(begun: Time, first: FirstPage, lease: Lease, swept: Swept) -> Self {
        Self {
            begun,
            first,
            lease,
            swept,
            bills: Vec::new(),
            booked: Vec::new(),
            starts: Vec::new(),
            listed_all: false,
            whole: false,
            silent: 0,
            left_after: None,
            announcements: Vec::new(),
            since_step: Millis::ZERO,
            stuck: BTreeSet::new(),
        }
    }

    /// Counts an error. The next sweep retries the operation.
    pub(super) fn failed(&mut self, error: StoreError) {
        self.swept.failed += 1;
        self.swept.last_error = Some(error);
    }

    /// Like [`Self::failed`], for tuning `id`.
    pub(super) fn failed_for(&mut self, id: &str, error: StoreError) {
        if self.swept.failures.len() < FAILURES_LISTED {
            self.swept.failures.push((id.to_owned(), error.clone()));
        }
        self.failed(error);
    }

    /// Counts a tuning whose stored facts or outcomes wait for the decider, if its last step was too long ago.
    pub(super) fn count_if_stuck(&mut self, id: &str, since_step: Millis) {
        if since_step >= STUCK && self.stuck.insert(id.to_owned()) {
            self.swept.stuck += 1;
        }
    }

    /// Counts a due action of the current tuning as missed, if the actuator should have tried it already. A start may wait
    /// long for its turn, and a busy actuator leaves reads to a sweep.
    pub(super) fn count_if_missed(&mut self, row: &ActionRow) {
        if matches!(row.order, Order::Start { .. }) {
            return;
        }
        let is_left = matches!(
            row.order,
            Order::Read(ReadOrder::Rest { .. } | ReadOrder::Log { .. } | ReadOrder::Silence { .. })
        );
        let late = if is_left { LEFT } else { MISSED };
        self.swept.missed += usize::from(row.tries == 0 && self.since_step >= late);
    }

    /// Counts the result of an action, and keeps the event to publish.
    pub(super) fn record_result(&mut self, id: &str, action: &str, performed: &Performed) {
        let counts = &mut self.swept.performed;
        match performed {
            Performed::NotNow | Performed::Done(Effect::AlreadySettled) => return,
            Performed::Deferred(_) => counts.deferred += 1,
            Performed::Done(effect) => {
                counts.done += 1;
                counts.started += usize::from(matches!(effect, Effect::Started { .. }));
                counts.stopped += usize::from(matches!(effect, Effect::Stopped { .. }));
                if *effect == Effect::LogCut {
                    self.swept.logs_cut.push((id.to_owned(), action.to_owned()));
                }
                if let Effect::AssumedStarted(why) = effect {
                    self.swept.assumed_started.push((id.to_owned(), action.to_owned(), why.clone()));
                }
            }
        }
        self.announcements.extend(Announcement::of(action, performed).map(|event| (id.to_owned(), event)));
    }

    /// Counts due work that does not fit. The next sweep begins with the tuning after `after`, unless this sweep could
    /// not even visit all tunings.
    pub(super) fn leave_to_next_sweep(&mut self, after: &str) {
        self.swept.left += 1;
        self.left_after.get_or_insert_with(|| after.to_owned());
        if self.whole
            && let Some(after) = &self.left_after
        {
            self.swept.cursor.heal.clone_from(after);
        }
    }
}
