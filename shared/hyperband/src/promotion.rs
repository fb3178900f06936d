//! Promotion: how many waiting trials of a rung may be promoted to the next rung, each in its own job. Also computes
//! how many such jobs a cohort still needs.
//!
//! A *cohort* is a set of trials of one bracket that compete for promotion. Asynchronous (ASHA, MLSys 2020, section
//! 3.2, Algorithm 2): all trials that ever join the bracket. Synchronous (successive halving, JMLR 18, Algorithm 1):
//! the trials of one round of the bracket. This module works on counts only; [`crate::ranking`] ranks the trials. A
//! failed trial counts among the ended trials, so that every rung closes, but is never promoted.

/// Returns how many of the trials at a rung may be promoted.
///
/// While the rung is open (more trials may arrive), these are the best `ended / eta` of the `ended` trials whose job
/// has ended there, failed ones included. Once the rung is closed, it is the size of the next rung in the plan of a
/// bracket that `joined` trials have joined: `joined / eta^(rung + 1)`, but at least one, so that a bracket with few
/// or many failed trials still sends one to its last rung. The caller promotes only trials that wait and did not fail.
///
/// ```
/// use hyperband::promotion::allowed;
/// assert_eq!(allowed(9, 2, 3, 0, false), 0);      // two have ended: none yet
/// assert_eq!(allowed(9, 7, 3, 0, false), 2);
/// assert_eq!(allowed(9, 9, 3, 0, true), 3);
/// assert_eq!(allowed(9, 2, 3, 1, true), 1);       // one of the three failed below
/// assert_eq!(allowed(2, 2, 3, 0, true), 1);       // too few for a third, but closed
/// ```
pub fn allowed(joined: u32, ended: u32, eta: u32, rung: u32, closed: bool) -> u32 {
    if closed { planned(joined, eta, rung) } else { ended.checked_div(eta).unwrap_or(0) }
}

/// Returns how many trials the plan promotes from `rung` when `joined` trials have joined; at least one.
fn planned(joined: u32, eta: u32, rung: u32) -> u32 {
    let divisor = u64::from(eta).saturating_pow(rung.saturating_add(1));
    let share = u64::from(joined).checked_div(divisor).unwrap_or(0).max(1);
    u32::try_from(share).unwrap_or(u32::MAX)
}

/// The trials of a cohort that are done at one rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passage {
    /// Trials that ended there and can never be promoted: failed, diverged, or ruled out.
    pub failed: u32,
    /// Trials that were promoted to the next rung.
    pub promoted: u32,
}

/// Returns the most jobs that a cohort of `joined` trials still needs for its promotions.
///
/// The tuning must have this many jobs left for a trial of the cohort to reach the last rung. `rungs` holds all rungs
/// of the cohort, lowest first.
///
/// ```
/// use hyperband::promotion::{Passage, jobs_needed};
/// let fresh = [Passage::default(); 3];
/// assert_eq!(jobs_needed(9, 3, &fresh), 3 + 1);
/// assert_eq!(jobs_needed(1, 3, &fresh), 1 + 1);     // alone, but to the end
/// assert_eq!(jobs_needed(0, 3, &fresh), 0);
/// let emptied = [Passage { failed: 9, promoted: 0 }, Passage::default(), Passage::default()];
/// assert_eq!(jobs_needed(9, 3, &emptied), 0);
/// ```
pub fn jobs_needed(joined: u32, eta: u32, rungs: &[Passage]) -> u32 {
    let mut left = joined;
    let mut needed = 0_u32;
    let below_last = rungs.len().saturating_sub(1);
    for (rung, passage) in (0_u32..).zip(rungs).take(below_last) {
        let promotable = left.saturating_sub(passage.failed);
        let promoted = planned(joined, eta, rung).min(promotable).max(passage.promoted);
        needed = needed.saturating_add(promoted.saturating_sub(passage.promoted));
        left = promoted;
    }
    needed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::plan::Plan;

    #[test]
    fn a_full_round_promotes_the_planned_numbers() {
        let plan = Plan::hyperband(1, 81, 3).unwrap();
        for bracket in plan.brackets() {
            for (rung, (here, next)) in (0..).zip(bracket.rungs().iter().zip(&bracket.rungs()[1..])) {
                assert_eq!(allowed(bracket.trials(), here.slots, 3, rung, true), next.slots, "{bracket:?}");
            }
        }
    }

    #[test]
    fn failures_reduce_promotions_but_the_last_rung_is_reached() {
        // 9 joined, 7 failed: the two others are promoted, one of them to the last rung.
        let rungs = [Passage { failed: 7, promoted: 0 }, Passage::default(), Passage::default()];
        assert_eq!(jobs_needed(9, 3, &rungs), 2 + 1);
        // One of the two was promoted and then failed: the other one is left.
        let rungs =
            [Passage { failed: 7, promoted: 1 }, Passage { failed: 1, promoted: 0 }, Passage::default()];
        assert_eq!(jobs_needed(9, 3, &rungs), 1 + 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// Without failures, a bracket needs one job for each slot above its first rung, and one less after each
        /// promotion.
        #[test]
        fn the_needed_jobs_are_the_planned_minus_the_promoted(max in 1_u32..250, eta in 2_u32..5, order in prop::collection::vec(0_usize..8, 0..200)) {
            for bracket in Plan::hyperband(1, max, eta).unwrap().brackets() {
                let mut rungs = vec![Passage::default(); bracket.rungs().len()];
                let all: u32 = bracket.rungs()[1..].iter().map(|rung| rung.slots).sum();
                let mut promoted = 0;
                for pick in &order {
                    let rung = pick % bracket.rungs().len();
                    let Some(next) = bracket.rungs().get(rung + 1) else { continue };
                    let below = rung.checked_sub(1).map_or(bracket.trials(), |below| rungs[below].promoted);
                    if rungs[rung].promoted < next.slots.min(below) {
                        rungs[rung].promoted += 1;
                        promoted += 1;
                    }
                }
                prop_assert_eq!(jobs_needed(bracket.trials(), eta, &rungs), all - promoted);
            }
        }

        /// An open rung never promotes more trials than the plan does once it is closed.
        #[test]
        fn an_open_rung_allows_no_more_than_a_closed_one(joined in 1_u32..10_000, eta in 2_u32..6, rung in 0_u32..6, part in 0_u32..=100) {
            let arrived = u64::from(joined) / u64::from(eta).pow(rung);
            let ended = u32::try_from(arrived * u64::from(part) / 100).unwrap();
            prop_assert!(allowed(joined, ended, eta, rung, false) <= allowed(joined, ended, eta, rung, true));
        }
    }
}
