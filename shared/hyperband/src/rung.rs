//! The verdict on a running trial that arrives at a rung: whether it continues.
//!
//! This is stopping-type ASHA (MLSys 2020, section 3.2, in the form that stops running jobs instead of pausing them).
//! An arriving trial continues only if it is among the best `1/eta` of all arrived trials, including itself. At least
//! one trial may always continue. A trial that failed or diverged never continues. Each trial gets one verdict, which
//! is never revised. This module works on counts only; [`crate::ranking`] ranks the trials.
//!
//! The median rule ([`Rule::Median`]) comes from Vizier (Golovin et al., *Google Vizier: A Service for Black-Box
//! Optimization*, KDD 2017, section 3.2.2). SageMaker's `TrainingJobEarlyStoppingType` `Auto` uses it too.

use crate::ranking::{Score, order_alike};

/// The rule by which the trials at a level are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The best `1/eta` of the arrivals continue.
    TopShare {
        /// The reduction factor in percent: 250 = two of five continue.
        eta_percent: u32,
    },
    /// A trial continues unless its best value is worse than the median of the running averages of those that arrived
    /// before. The first [`MEDIAN_RIVALS`] arrivals continue.
    Median,
}

/// The earlier arrivals that [`Rule::Median`] needs to stop a trial.
pub const MEDIAN_RIVALS: u32 = 5;

/// The most trials whose values [`predicts`] compares: the latest ones.
pub const EVIDENCE_MAX: usize = 20;
/// The fewest trials that show that a level does not predict.
const EVIDENCE_MIN: usize = 4;
/// The least association of both values, as the reciprocal.
const ASSOCIATION: i64 = 10;

/// Returns whether the values at a level predict later ones. Each trial has its value at the level and a later one.
///
/// The measure is Somers' D of the earlier values by the later ones (Somers 1962, "A new asymmetric measure of
/// association for ordinal variables", section 2): of all pairs of trials that differ later, the share that the level
/// orders alike minus the share that it orders oppositely. It must be at least 0.1. With slow starters it is negative
/// among the good trials, although the level separates good trials from bad ones.
///
/// ```
/// use hyperband::rung::predicts;
/// assert!(predicts(&[(0.1, 0.7), (0.2, 0.8), (0.3, 0.6), (0.4, 0.9)]));
/// assert!(!predicts(&[(0.1, 0.9), (0.2, 0.8), (0.3, 0.7), (0.4, 0.6)]));
/// assert!(predicts(&[(0.1, 0.9), (0.2, 0.8), (0.3, 0.7)]), "three trials prove nothing");
/// ```
pub fn predicts(trials: &[(f64, f64)]) -> bool {
    let (pairs, balance) = order_alike(trials);
    trials.len() < EVIDENCE_MIN || balance.saturating_mul(ASSOCIATION) >= pairs
}

impl Rule {
    /// Returns how many of `seen` arrivals may continue, where the last one is judged.
    pub fn allowed(self, seen: u32) -> u32 {
        let others = seen.saturating_sub(1);
        match self {
            Self::TopShare { eta_percent } => {
                seen.saturating_mul(100).checked_div(eta_percent).unwrap_or(0).max(1)
            }
            Self::Median if others < MEDIAN_RIVALS => seen,
            // Worse than the median: more than half of the others are better.
            Self::Median => (others / 2).saturating_add(1),
        }
    }
}

/// The verdict on one arrival, with the numbers it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The rank among all arrivals so far; 0 = best.
    pub rank: u32,
    /// Arrivals so far, this one included.
    pub seen: u32,
    /// How many of them may continue (see [`Rule::allowed`]).
    pub allowed: u32,
    /// Whether this trial continues: `rank < allowed` and its value is a number.
    pub continues: bool,
}

impl Verdict {
    /// Returns the verdict on an arrival with `score`; `rank` of the `others` that arrived before are better.
    ///
    /// ```
    /// use hyperband::{ranking::Score, rung::{Rule, Verdict}};
    /// let third = Rule::TopShare { eta_percent: 300 };
    /// let of = |rank, others| Verdict::of(rank, others, third, Score::Value(0.5));
    /// assert!(of(0, 0).continues);     // the first may always continue
    /// assert!(!of(1, 4).continues);    // one of five
    /// assert!(of(1, 5).continues);     // two of six
    /// assert!(!Verdict::of(0, 0, third, Score::NotFinite).continues);
    ///
    /// let median = |rank, others| Verdict::of(rank, others, Rule::Median, Score::Value(0.5));
    /// assert!(median(4, 4).continues);     // too few rivals
    /// assert!(median(2, 5).continues);     // between the second and the third of five
    /// assert!(!median(3, 5).continues);    // worse than the third of five
    /// ```
    pub fn of(rank: u32, others: u32, rule: Rule, score: Score) -> Self {
        let seen = others.saturating_add(1);
        let allowed = rule.allowed(seen);
        Self { rank, seen, allowed, continues: rank < allowed && score.can_continue() }
    }

    /// Returns the verdict at a level that does not predict ([`predicts`]): each trial with a value continues.
    ///
    /// ```
    /// use hyperband::{ranking::Score, rung::{Rule, Verdict}};
    /// let last_of_three = Verdict::of(2, 2, Rule::TopShare { eta_percent: 300 }, Score::Value(0.5));
    /// let verdict = last_of_three.of_all(true);
    /// assert_eq!((verdict.rank, verdict.seen, verdict.allowed, verdict.continues), (2, 3, 3, true));
    /// assert!(!last_of_three.of_all(false).continues);
    /// ```
    #[must_use]
    pub fn of_all(self, has_value: bool) -> Self {
        Self { allowed: self.seen, continues: has_value, ..self }
    }
}
