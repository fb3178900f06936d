//! The head of a tuning (its last step and what listings show) and its row in the index of names.

use tuning::state::{State, Status};

use super::{INDEX, STEP_NUMBER, StoredError, checked, head_key, row};
use crate::item::{Item, Key};

/// The head: which step is the last, where the snapshot is, and what a listing shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Number of the last step; 0 before the first.
    pub step: u64,
    /// Step after which the newest snapshot was taken; 0 = none.
    pub snapshot: u64,
    /// `InProgress`, `Stopping`, `Completed`, `Failed` or `Stopped`.
    pub status: String,
    /// Time of the last step, ms.
    pub at: i64,
    /// When the decider wants to be told the time, ms.
    pub deadline: Option<i64>,
}

impl Head {
    /// The head before the first step.
    pub fn first(created: i64) -> Self {
        Self { step: 0, snapshot: 0, status: "InProgress".to_owned(), at: created, deadline: None }
    }

    /// The row of this head.
    pub fn row(&self, id: &str) -> Item {
        let item = row(head_key(id), "head")
            .with(STEP_NUMBER, number(self.step))
            .with("snapshot", number(self.snapshot))
            .with("status", self.status.as_str())
            .with("at", self.at);
        match self.deadline {
            Some(deadline) => item.with("deadline", deadline),
            None => item,
        }
    }

    /// The head in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "head")?;
        let missing = |name: &str| StoredError::unreadable(&item.key, format!("no {name}"));
        let whole =
            |name: &str| item.number(name).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| missing(name));
        Ok(Self {
            step: whole(STEP_NUMBER)?,
            snapshot: whole("snapshot")?,
            status: item.text("status").ok_or_else(|| missing("status"))?.to_owned(),
            at: item.number("at").ok_or_else(|| missing("at"))?,
            deadline: item.number("deadline"),
        })
    }
}

/// AMT's status word for a state.
pub fn status_word(state: &State) -> &'static str {
    use tuning::ruling::EndReason;
    match &state.status {
        Status::Ending(EndReason::Stopped) => "Stopping",
        Status::Active | Status::Ending(_) => "InProgress",
        Status::Ended { why: EndReason::Stopped, .. } => "Stopped",
        Status::Ended { why: EndReason::Failed(_), .. } => "Failed",
        Status::Ended { .. } => "Completed",
    }
}

/// A tuning's row in the index of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRow {
    /// Tuning name as the user wrote it.
    pub name: String,
    /// Its id.
    pub id: String,
    /// When it was submitted, ms.
    pub created: i64,
}

impl IndexRow {
    /// The key of a name's row: names are unique without regard to case.
    pub fn key(name: &str) -> Key {
        Key::new(INDEX, name.to_ascii_lowercase())
    }

    /// The row.
    pub fn row(&self) -> Item {
        row(Self::key(&self.name), "index")
            .with("name", self.name.as_str())
            .with("id", self.id.as_str())
            .with("created", self.created)
    }

    /// The index entry in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "index")?;
        let missing = |name: &str| StoredError::unreadable(&item.key, format!("no {name}"));
        Ok(Self {
            name: item.text("name").ok_or_else(|| missing("name"))?.to_owned(),
            id: item.text("id").ok_or_else(|| missing("id"))?.to_owned(),
            created: item.number("created").ok_or_else(|| missing("created"))?,
        })
    }
}

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
