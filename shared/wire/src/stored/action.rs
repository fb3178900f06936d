//! The outbox: one row per ordered action, with who is performing it.
//!
//! `Pending -> Performing (claimed until T) -> Done | Cancelled`; every change is conditional on the row's revision.

use tuning::ruling::Ruling;

use super::{DATA, StoredError, action_key, checked, data, json, row};
use crate::item::Item;

/// Where an action stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionStatus {
    /// Nobody has taken it up, or it was put back.
    Pending,
    /// Somebody is performing it.
    Performing,
    /// It was performed, or refused for good; its outcome is a fact.
    Done,
    /// It will never be performed.
    Cancelled,
}

impl ActionStatus {
    /// The stored word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Performing => "Performing",
            Self::Done => "Done",
            Self::Cancelled => "Cancelled",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Pending, Self::Performing, Self::Done, Self::Cancelled].into_iter().find(|s| s.word() == word)
    }
}

/// A row of the outbox.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRow {
    /// Natural id of the action in its tuning.
    pub action: String,
    /// The ruling that ordered it, with every detail.
    pub ruling: Ruling,
    /// Where it stands.
    pub status: ActionStatus,
    /// Counts every change of the row; the condition of the next one.
    pub revision: i64,
    /// While performing: the claim is good until then, ms.
    pub claimed_until: i64,
    /// Not to be tried before this time, ms.
    pub not_before: i64,
    /// How often it was taken up.
    pub tries: i64,
}

/// Attribute with the row's revision.
pub const REVISION: &str = "revision";

impl ActionRow {
    /// A new row for an action that `ruling` orders.
    pub fn pending(action: String, ruling: Ruling) -> Self {
        let status = ActionStatus::Pending;
        Self { action, ruling, status, revision: 0, claimed_until: 0, not_before: 0, tries: 0 }
    }

    /// The stored form.
    pub fn row(&self, id: &str) -> Item {
        row(action_key(id, &self.action), "action")
            .with("status", self.status.word())
            .with(REVISION, self.revision)
            .with("claimed_until", self.claimed_until)
            .with("not_before", self.not_before)
            .with("tries", self.tries)
            .with(DATA, json(&self.ruling))
    }

    /// The action in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "action")?;
        let missing = |name: &str| StoredError::unreadable(&item.key, format!("no {name}"));
        let number = |name: &str| item.number(name).ok_or_else(|| missing(name));
        let status = item.text("status").and_then(ActionStatus::of).ok_or_else(|| missing("status"))?;
        Ok(Self {
            action: item.key.sk.clone(),
            ruling: data(item, DATA)?,
            status,
            revision: number(REVISION)?,
            claimed_until: number("claimed_until")?,
            not_before: number("not_before")?,
            tries: number("tries")?,
        })
    }
}
