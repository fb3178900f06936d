//! A rung in stored form: which trials arrived with which values, best first. Decides nothing.

use hyperband::ranking::{Direction, Score, better_first};
use hyperband::rung::{Rung, Verdict};
use serde::{Deserialize, Serialize};

/// A rung in stored form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RungState {
    /// Arrivals (trial, value), best first; `None` = not a number.
    pub arrivals: Vec<(u32, Option<f64>)>,
    /// How many of the arrivals continued.
    pub continued: u32,
}

fn score(value: Option<f64>) -> Score {
    value.map_or(Score::NotFinite, Score::of)
}

impl RungState {
    /// Returns the rung that it stores.
    pub fn rung(&self, direction: Direction) -> Rung {
        let arrivals = self.arrivals.iter().map(|entry| (entry.0, score(entry.1)));
        Rung::from_entries(direction, arrivals.collect())
    }

    /// Returns the verdict on `trial` if it arrived now, without rebuilding the rung.
    pub fn judge(&self, direction: Direction, eta: u32, trial: u32, value: Option<f64>) -> Verdict {
        Verdict::of(self.position(direction, trial, value), self.arrivals.len(), eta, score(value))
    }

    /// Records the arrival of `trial`, which continues or not.
    pub fn arrive(&mut self, direction: Direction, trial: u32, value: Option<f64>, continues: bool) {
        self.arrivals.insert(self.position(direction, trial, value), (trial, value));
        self.continued = self.continued.saturating_add(u32::from(continues));
    }

    /// Returns the rank of `value` of `trial`: how many arrivals are better.
    pub fn position(&self, direction: Direction, trial: u32, value: Option<f64>) -> usize {
        let new = (score(value), trial);
        self.arrivals.partition_point(|entry| better_first(direction, (score(entry.1), entry.0), new).is_lt())
    }
}
