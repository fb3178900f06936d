//! What a trial is at: its place among the trials that it is compared with, and how far it has trained.

use crate::definition::Definition;
use crate::epochs::Epochs;
use crate::ids::{CohortId, Place, RungId};
use crate::state::Trial;

impl Trial {
    /// Returns the trials that it is compared with.
    pub fn cohort(&self) -> CohortId {
        CohortId { bracket: self.bracket, round: self.round }
    }

    /// Returns its next rung.
    pub fn place(&self) -> Place {
        Place { cohort: self.cohort(), rung: self.next_rung }
    }

    /// Returns the rung for which its next job starts.
    pub fn start_rung(&self, definition: &Definition) -> RungId {
        if definition.promotes().is_some() { self.next_rung } else { RungId(0) }
    }

    /// Returns the epoch at which its present job is done.
    pub fn goal(&self, definition: &Definition) -> Epochs {
        self.refit.unwrap_or_else(|| definition.goal(self.bracket, self.next_rung))
    }

    /// Returns whether it has logged a finite value, also at an epoch that is not known yet.
    pub fn has_value(&self) -> bool {
        let held = self.streams.iter().filter(|stream| stream.unplaced);
        let held = held.flat_map(|stream| {
            stream.unplaced_lines.values().chain(stream.lines.iter().map(|(_, _, value)| value))
        });
        self.curve.values().chain(held).any(Option::is_some)
    }

    /// Returns whether the value of its last epoch is not finite.
    pub fn ends_diverged(&self) -> bool {
        self.curve.last_key_value().is_some_and(|(_, value)| value.is_none())
    }

    /// Returns the final value of an attempt: the first value of the last epoch in its latest stream. After a restart, an
    /// epoch of an earlier stream may have another value.
    pub fn last_value(&self, attempt: u32) -> Option<f64> {
        let own = self.streams.iter().filter(|stream| stream.attempt == attempt);
        let latest = own.filter_map(|stream| Some((stream.span?.1, stream))).max_by_key(|(last, _)| *last)?.1;
        let ranked = || latest.lines.last().map(|(_, _, value)| *value);
        latest.last.map(|(_, value)| value).or_else(ranked).flatten()
    }

    /// Returns the highest epoch it has reached.
    pub fn resource(&self) -> Epochs {
        let placed = self.curve.last_key_value().map_or(Epochs::ZERO, |(resource, _)| *resource);
        // The first start of a trial begins at epoch 1, also while its stream is unplaced.
        let first = self
            .streams
            .first()
            .filter(|stream| stream.unplaced && self.next_rung == RungId(0) && self.streams.len() == 1);
        placed.max(first.and_then(|stream| stream.span).map_or(Epochs::ZERO, |(_, (_, last))| last))
    }
}
