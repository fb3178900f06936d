//! A rung as it is stored: who arrived at it with what, best first. Decides nothing.

use hyperband::ranking::{Direction, Score, better_first};
use hyperband::rung::{Rung, Verdict};
use serde::{Deserialize, Serialize};

/// A rung in stored form.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RungState {
    /// Arrivals (trial, value), best first; `None` = not a number.
    pub arrivals: Vec<(u32, Option<f64>)>,
    /// How many of them were let go on.
    pub went_on: u32,
}

fn score(value: Option<f64>) -> Score {
    value.map_or(Score::NotFinite, Score::of)
}

impl RungState {
    /// The rung it stores.
    pub fn rung(&self, direction: Direction) -> Rung {
        let arrivals = self.arrivals.iter().map(|entry| (entry.0, score(entry.1)));
        Rung::from_entries(direction, arrivals.collect())
    }

    /// The verdict on `trial` if it arrived now, without rebuilding the rung.
    pub fn judge(&self, direction: Direction, eta: u32, trial: u32, value: Option<f64>) -> Verdict {
        Verdict::of(self.position(direction, trial, value), self.arrivals.len(), eta, score(value))
    }

    /// Takes the arrival of `trial`, which goes on or not.
    pub fn arrive(&mut self, direction: Direction, trial: u32, value: Option<f64>, goes_on: bool) {
        self.arrivals.insert(self.position(direction, trial, value), (trial, value));
        self.went_on = self.went_on.saturating_add(u32::from(goes_on));
    }

    /// How many of the arrivals are better than `value` of `trial`: its rank.
    pub fn position(&self, direction: Direction, trial: u32, value: Option<f64>) -> usize {
        let new = (score(value), trial);
        self.arrivals.partition_point(|entry| better_first(direction, (score(entry.1), entry.0), new).is_lt())
    }
}
