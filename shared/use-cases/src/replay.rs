//! Replays a tuning: decides every step again from its facts and compares the rulings with the recorded ones (P5).

use tuning::state::State;
use tuning::step::replay as decide_again;
use wire::stored;

use crate::ports::table::{Pages, Query, Table};
use crate::store::{Store, StoreError};

/// The result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// Number of steps decided again.
    pub steps: u64,
    /// Number of facts in them.
    pub facts: u64,
    /// Number of rulings in them.
    pub rulings: u64,
    /// The first step with different rulings: its number, the recorded rulings, and the new rulings (both as JSON).
    pub difference: Option<(u64, String, String)>,
    /// The state after the last step.
    pub state: State,
}

/// Replays tuning `id`. Returns `None` if the tuning does not exist.
pub async fn replay<T: Table>(store: &Store<T>, id: &str) -> Result<Option<Replayed>, StoreError> {
    let Some(tuning) = store.tuning(id).await? else { return Ok(None) };
    let definition = &tuning.definition;
    let state = State::new(definition);
    let mut replayed = Replayed { steps: 0, facts: 0, rulings: 0, difference: None, state };
    let mut pages = Pages::of(Query::prefix(stored::tuning_partition(id), "STEP#", 200));
    while let Some(rows) = pages.next(&*store.table).await? {
        for row in &rows {
            let step = stored::step(row)?;
            let rulings = decide_again(definition, &mut replayed.state, &step);
            replayed.steps = step.n;
            replayed.facts += u64::try_from(step.facts.len()).unwrap_or(0);
            replayed.rulings += u64::try_from(step.rulings.len()).unwrap_or(0);
            let text = |rulings| serde_json::to_string(rulings).unwrap_or_default();
            let (recorded, decided) = (text(&step.rulings), text(&rulings));
            if recorded != decided {
                replayed.difference = Some((step.n, recorded, decided));
                return Ok(Some(replayed));
            }
        }
    }
    Ok(Some(replayed))
}
