//! The verdict on a running trial that arrives at a rung: whether it continues.
//!
//! This is stopping-type ASHA (MLSys 2020, section 3.2, in the form that stops running jobs instead of pausing them).
//! A trial that arrives continues only if it is among the best `1/eta` of all trials that have arrived, itself
//! included; at least one trial may always continue. A trial that failed or diverged never continues. Each trial gets
//! one verdict, which is never revised. This module works on counts only; [`crate::ranking`] ranks the trials.

use crate::ranking::Score;

/// The verdict on one arrival, with the numbers it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The rank among all arrivals so far; 0 = best.
    pub rank: u32,
    /// Arrivals so far, this one included.
    pub seen: u32,
    /// How many of them may continue: `max(1, seen / eta)`.
    pub allowed: u32,
    /// Whether this trial continues: `rank < allowed` and its value is a number.
    pub continues: bool,
}

impl Verdict {
    /// Returns the verdict on an arrival with `score`; `rank` of the `others` that arrived before are better.
    ///
    /// ```
    /// use hyperband::{ranking::Score, rung::Verdict};
    /// let of = |rank, others| Verdict::of(rank, others, 3, Score::Value(0.5));
    /// assert!(of(0, 0).continues);     // the first may always continue
    /// assert!(!of(1, 4).continues);    // one of five
    /// assert!(of(1, 5).continues);     // two of six
    /// assert!(!Verdict::of(0, 0, 3, Score::NotFinite).continues);
    /// ```
    pub fn of(rank: u32, others: u32, eta: u32, score: Score) -> Self {
        let seen = others.saturating_add(1);
        let allowed = seen.checked_div(eta).unwrap_or(0).max(1);
        Self { rank, seen, allowed, continues: rank < allowed && score.can_continue() }
    }
}
