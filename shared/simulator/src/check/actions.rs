//! P2, the outbox: every ordered action has a row from the same commit, and a row passes through its states in order.

use port_tests::memory::Change;
use wire::stored::{self, ActionRow, ActionStatus};

use super::Checker;

/// Checks a change of an action's row.
pub(super) fn changed(id: &str, change: &Change) -> Result<(), String> {
    let name = format!("{id}/{}", change.key.sk);
    let Some(new) = &change.new else { return Err(format!("P2: the row of action {name} was deleted")) };
    let new = ActionRow::read(new).map_err(|error| error.to_string())?;
    let Some(old) = &change.old else {
        let fresh = new.status == ActionStatus::Pending && new.revision == 0 && new.tries == 0;
        return fresh
            .then_some(())
            .ok_or_else(|| format!("P2: the new row of action {name} is not pending: {new:?}"));
    };
    let old = ActionRow::read(old).map_err(|error| error.to_string())?;
    let follows = matches!(
        (old.status, new.status),
        (
            ActionStatus::Pending | ActionStatus::Performing,
            ActionStatus::Performing | ActionStatus::Cancelled
        ) | (ActionStatus::Performing, ActionStatus::Pending | ActionStatus::Done)
    );
    let same_order = old.order == new.order && new.revision == old.revision + 1;
    if follows && same_order {
        Ok(())
    } else {
        Err(format!(
            "P2: the row of action {name} went from {:?} (revision {}) to {:?} (revision {})",
            old.status, old.revision, new.status, new.revision
        ))
    }
}

impl Checker {
    /// Checks that every ruling with an action has its row in the same commit, and that no row comes without a ruling.
    pub(super) fn rows_of_rulings(&mut self, now: i64, changes: &[Change]) {
        let mut ordered = Vec::new();
        let mut rows = Vec::new();
        for change in changes {
            let Some(new) = change.new.as_ref().filter(|_| change.old.is_none()) else { continue };
            if change.key.sk.starts_with("STEP#") {
                let rulings = stored::step(new).map(|step| step.rulings).unwrap_or_default();
                ordered.extend(rulings.iter().filter_map(|ruling| Some(ruling.order()?.action())));
            } else if change.key.pk.starts_with(stored::ACTION_PREFIX) {
                rows.push(change.key.sk.clone());
            }
        }
        ordered.sort();
        rows.sort();
        if ordered != rows {
            self.violation(
                now,
                &format!("P2: a commit ordered the actions {ordered:?} but wrote the rows {rows:?}"),
            );
        }
    }
}
