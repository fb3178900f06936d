//! The outbox: one row per ordered action, with its status.
//!
//! `Pending -> Performing (claimed until T) -> Done | Cancelled`. Every change is conditional on the revision of the
//! row.

use tuning::log::ruling::Order;
use tuning::unit::time::Time;

use super::{DATA, StoredError, action_key, checked, data, json, row};
use crate::item::Item;

/// Status of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionStatus {
    /// Not claimed, or released after an attempt.
    Pending,
    /// Claimed until a time.
    Performing,
    /// Performed, or permanently rejected. A fact has the outcome.
    Done,
    /// Canceled before it was performed.
    Cancelled,
}

impl ActionStatus {
    /// Returns the stored name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Performing => "Performing",
            Self::Done => "Done",
            Self::Cancelled => "Cancelled",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Pending, Self::Performing, Self::Done, Self::Cancelled].into_iter().find(|s| s.word() == word)
    }
}

/// A row of the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRow {
    /// ID of the action, unique in its tuning.
    pub action: String,
    /// The order.
    pub order: Order,
    /// Status of the action.
    pub status: ActionStatus,
    /// Number of changes of the row. Each change is conditional on it.
    pub revision: i64,
    /// End of the claim while the action is performed, in ms since the epoch.
    pub claimed_until: Time,
    /// Earliest time of the next attempt, in ms since the epoch.
    pub not_before: Time,
    /// Number of claims so far.
    pub tries: i64,
    /// Whether a create found the name of its job taken, so that the job exists or has existed.
    pub name_taken: bool,
}

/// Attribute with the revision of a row.
pub const REVISION: &str = "revision";
/// Attribute of a row whose create found the name of its job taken.
const NAME_TAKEN: &str = "name_taken";

impl ActionRow {
    /// Returns the new row of an order.
    pub fn pending(order: Order) -> Self {
        let (action, status) = (order.action(), ActionStatus::Pending);
        Self {
            action,
            order,
            status,
            revision: 0,
            claimed_until: Time::EPOCH,
            not_before: Time::EPOCH,
            tries: 0,
            name_taken: false,
        }
    }

    /// Returns the stored row.
    pub fn row(&self, id: &str) -> Item {
        let row = row(action_key(id, &self.action), "action")
            .with("status", self.status.word())
            .with(REVISION, self.revision)
            .with("claimed_until", self.claimed_until)
            .with("not_before", self.not_before)
            .with("tries", self.tries)
            .with(DATA, json(&self.order));
        if self.name_taken { row.with(NAME_TAKEN, 1_i64) } else { row }
    }

    /// Reads the action in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "action")?;
        let missing = |name: &str| StoredError::missing(&item.key, name);
        let number = |name: &str| item.number(name).ok_or_else(|| missing(name));
        let time = |name: &str| item.time(name).ok_or_else(|| missing(name));
        let status =
            item.text("status").and_then(ActionStatus::from_word).ok_or_else(|| missing("status"))?;
        Ok(Self {
            action: item.key.sk.clone(),
            order: data(item, DATA)?,
            status,
            revision: number(REVISION)?,
            claimed_until: time("claimed_until")?,
            not_before: time("not_before")?,
            tries: number("tries")?,
            name_taken: item.number(NAME_TAKEN).is_some(),
        })
    }
}
