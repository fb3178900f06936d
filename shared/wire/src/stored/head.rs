//! The head of a tuning (its last step and the data of listings) and its row in the index of names.

use tuning::state::{State, Status};
use tuning::unit::time::Time;

use super::{INDEX, STEP_NUMBER, StoredError, checked, head_key, row};
use crate::item::{Item, Key};

/// The head of a tuning: the last step, the newest snapshot, and the data of listings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Number of the last step; 0 before the first.
    pub step: u64,
    /// Number of the step after which the newest snapshot was taken; 0 = no snapshot.
    pub snapshot: u64,
    /// AMT's status: `InProgress`, `Stopping`, `Completed`, `Failed` or `Stopped`.
    pub status: String,
    /// Time of the last step, in ms since the epoch.
    pub at: Time,
    /// Time at which the decider must run again, in ms since the epoch; `None` = only after a new fact.
    pub deadline: Option<Time>,
}

impl Head {
    /// Returns the head before the first step.
    pub fn first(created: Time) -> Self {
        Self { step: 0, snapshot: 0, status: "InProgress".to_owned(), at: created, deadline: None }
    }

    /// Returns the stored row.
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

    /// Reads the head in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "head")?;
        let missing = |name: &str| StoredError::missing(&item.key, name);
        let whole =
            |name: &str| item.number(name).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| missing(name));
        Ok(Self {
            step: whole(STEP_NUMBER)?,
            snapshot: whole("snapshot")?,
            status: item.text("status").ok_or_else(|| missing("status"))?.to_owned(),
            at: item.time("at").ok_or_else(|| missing("at"))?,
            deadline: item.time("deadline"),
        })
    }
}

/// Returns AMT's status of a state.
pub fn status_word(state: &State) -> &'static str {
    use tuning::log::reasons::EndReason;
    match &state.status {
        Status::Ended { .. } if state.failure().is_some() => "Failed",
        Status::Ending(EndReason::Stopped) => "Stopping",
        Status::Active | Status::Ending(_) => "InProgress",
        Status::Ended { why: EndReason::Stopped, .. } => "Stopped",
        Status::Ended { .. } => "Completed",
    }
}

/// A tuning's row in the index of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRow {
    /// Name of the tuning job in the user's spelling.
    pub name: String,
    /// Tuning ID.
    pub id: String,
    /// Time of submission, in ms since the epoch.
    pub created: Time,
    /// ARN of the principal that submitted the tuning; `None` = unknown.
    pub submitter: Option<String>,
}

impl IndexRow {
    /// Returns the key of a name. Names are unique regardless of case.
    pub fn key(name: &str) -> Key {
        Key::new(INDEX, name.to_ascii_lowercase())
    }

    /// Returns the stored row.
    pub fn row(&self) -> Item {
        let row = row(Self::key(&self.name), "index")
            .with("name", self.name.as_str())
            .with("id", self.id.as_str())
            .with("created", self.created);
        super::with_submitter(row, self.submitter.as_deref())
    }

    /// Reads the index entry in a row.
    pub fn read(item: &Item) -> Result<Self, StoredError> {
        let item = checked(item, "index")?;
        let missing = |name: &str| StoredError::missing(&item.key, name);
        Ok(Self {
            name: item.text("name").ok_or_else(|| missing("name"))?.to_owned(),
            id: item.text("id").ok_or_else(|| missing("id"))?.to_owned(),
            created: item.time("created").ok_or_else(|| missing("created"))?,
            submitter: super::submitter(item),
        })
    }
}

fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
