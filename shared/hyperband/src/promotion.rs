//! Promotion: how many of the trials that wait at a rung may go on to the next one, in jobs of their own, and how many
//! such jobs are still owed to the trials that have joined.
//!
//! A *cohort* is a set of trials of one bracket that are promoted among each other: all that ever join the bracket
//! (asynchronous: ASHA, MLSys 2020, section 3.2, Algorithm 2), or the trials of one round of it (synchronous: successive
//! halving, JMLR 18, Algorithm 1). Counts only; who is best is [`crate::ranking`]'s. A trial that failed keeps its place
//! among those that have ended, so that a rung always closes, and never goes on.

/// How many of the trials at a rung may go on to the next.
///
/// While the rung is open, that is while more trials may arrive: the best `ended / eta` of those whose job has ended
/// there, well or not. Once it is closed: the plan's next rung for a bracket that `joined` trials have joined,
/// `joined / eta^(rung + 1)`, and one at least, so that no bracket ends without a trial at its last rung only because
/// few have joined or many have failed. (The caller promotes at most those that are there and did not fail.)
///
/// ```
/// use hyperband::promotion::allowed;
/// assert_eq!(allowed(9, 2, 3, 0, false), 0);      // two have ended: not yet
/// assert_eq!(allowed(9, 7, 3, 0, false), 2);
/// assert_eq!(allowed(9, 9, 3, 0, true), 3);
/// assert_eq!(allowed(9, 2, 3, 1, true), 1);       // one of the three failed below
/// assert_eq!(allowed(2, 2, 3, 0, true), 1);       // too few for a third, but closed
/// ```
pub fn allowed(joined: u32, ended: u32, eta: u32, rung: u32, closed: bool) -> u32 {
    if closed { planned(joined, eta, rung) } else { ended.checked_div(eta).unwrap_or(0) }
}

/// What the plan sends on from `rung` when `joined` trials have joined below; one at least.
fn planned(joined: u32, eta: u32, rung: u32) -> u32 {
    let divisor = u64::from(eta).saturating_pow(rung.saturating_add(1));
    let share = u64::from(joined).checked_div(divisor).unwrap_or(0).max(1);
    u32::try_from(share).unwrap_or(u32::MAX)
}

/// What has become of the trials of a cohort at one rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passage {
    /// Trials that ended there and can never go on: failed, diverged, or left out.
    pub failed: u32,
    /// Trials that were let go on to the next rung.
    pub promoted: u32,
}

/// Jobs that a cohort which `joined` trials have joined still needs for its promotions, at most: what must be left of a
/// tuning's number of jobs so that a trial of it reaches the last rung. `rungs` = all its rungs, lowest first.
///
/// ```
/// use hyperband::promotion::{Passage, jobs_owed};
/// let fresh = [Passage::default(); 3];
/// assert_eq!(jobs_owed(9, 3, &fresh), 3 + 1);
/// assert_eq!(jobs_owed(1, 3, &fresh), 1 + 1);     // alone, but to the end
/// assert_eq!(jobs_owed(0, 3, &fresh), 0);
/// let emptied = [Passage { failed: 9, promoted: 0 }, Passage::default(), Passage::default()];
/// assert_eq!(jobs_owed(9, 3, &emptied), 0);
/// ```
pub fn jobs_owed(joined: u32, eta: u32, rungs: &[Passage]) -> u32 {
    let mut left = joined;
    let mut owed = 0_u32;
    let below_last = rungs.len().saturating_sub(1);
    for (rung, passage) in (0_u32..).zip(rungs).take(below_last) {
        let able = left.saturating_sub(passage.failed);
        let going_on = planned(joined, eta, rung).min(able).max(passage.promoted);
        owed = owed.saturating_add(going_on.saturating_sub(passage.promoted));
        left = going_on;
    }
    owed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::plan::Plan;

    #[test]
    fn promoted_as_often_as_one_third_of_those_that_have_ended() {
        let open: Vec<u32> = (0..=9).map(|ended| allowed(9, ended, 3, 0, false)).collect();
        assert_eq!(open, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn a_whole_round_promotes_what_the_plan_says() {
        let plan = Plan::hyperband(1, 81, 3).unwrap();
        for bracket in plan.brackets() {
            for (rung, (here, next)) in (0..).zip(bracket.rungs().iter().zip(&bracket.rungs()[1..])) {
                assert_eq!(allowed(bracket.trials(), here.slots, 3, rung, true), next.slots, "{bracket:?}");
            }
        }
    }

    #[test]
    fn a_failure_below_leaves_fewer_to_promote_and_the_last_rung_is_still_reached() {
        // 9 joined, 7 failed: the two others go on, one of them to the end.
        let rungs = [Passage { failed: 7, promoted: 0 }, Passage::default(), Passage::default()];
        assert_eq!(jobs_owed(9, 3, &rungs), 2 + 1);
        // One of the two was promoted and failed: the other one is left.
        let rungs =
            [Passage { failed: 7, promoted: 1 }, Passage { failed: 1, promoted: 0 }, Passage::default()];
        assert_eq!(jobs_owed(9, 3, &rungs), 1 + 1);
    }

    #[test]
    fn a_rung_never_owes_less_than_nothing() {
        let rungs =
            [Passage { failed: 2, promoted: 4 }, Passage { failed: 4, promoted: 0 }, Passage::default()];
        assert_eq!(jobs_owed(3, 3, &rungs), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// Where nothing fails, a bracket owes all slots above its first rung, and one job less after each promotion.
        #[test]
        fn what_is_owed_is_the_plan_less_what_was_promoted(max in 1_u32..250, eta in 2_u32..5, order in prop::collection::vec(0_usize..8, 0..200)) {
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
                prop_assert_eq!(jobs_owed(bracket.trials(), eta, &rungs), all - promoted);
            }
        }

        /// An open rung never lets more go on than it will when it is closed: what was promoted early is no more than
        /// the plan's.
        #[test]
        fn an_open_rung_allows_no_more_than_a_closed_one(joined in 1_u32..10_000, eta in 2_u32..6, rung in 0_u32..6, part in 0_u32..=100) {
            let arrived = u64::from(joined) / u64::from(eta).pow(rung);
            let ended = u32::try_from(arrived * u64::from(part) / 100).unwrap();
            prop_assert!(allowed(joined, ended, eta, rung, false) <= allowed(joined, ended, eta, rung, true));
        }
    }
}
