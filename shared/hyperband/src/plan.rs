//! The plan: the brackets, their rungs, and the resource and the number of trials of each rung.
//!
//! A plan is made once, when a tuning is submitted, and never changes. It uses integer arithmetic only: in floating
//! point, `floor(ln 243 / ln 3)` is 4 and would lose a bracket.

use std::fmt;
use std::ops::Range;

use crate::rung::Rule;

/// The largest resource of a plan, in epochs (the documented limit of AMT's `MaxResource`).
pub const MAX_RESOURCE: u32 = 20_000;

/// The most comparisons of [`Plan::highest`].
const HIGHEST_COMPARISONS: u32 = 3;

/// A rung of a bracket: trials that reach `resource` epochs are compared there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RungPlan {
    /// Epochs (metric emissions) that a trial has used when it arrives here.
    pub resource: u32,
    /// Trials that reach the rung in one full run of the bracket.
    pub slots: u32,
}

/// A bracket: one trade-off between many short trials and few long ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BracketPlan {
    rungs: Vec<RungPlan>,
}

impl BracketPlan {
    /// Returns the rungs, lowest resource first. There is at least one; the last is at the maximum resource.
    pub fn rungs(&self) -> &[RungPlan] {
        &self.rungs
    }

    /// Returns the trials that one full run of this bracket starts.
    pub fn trials(&self) -> u32 {
        self.rungs.first().map_or(0, |rung| rung.slots)
    }

    /// Returns the training jobs of one full run of this bracket where each promotion is a job of its own.
    pub fn jobs(&self) -> u32 {
        self.rungs.iter().fold(0, |sum, rung| sum.saturating_add(rung.slots))
    }
}

/// All brackets of a tuning, from the one that explores most (lowest first rung) to the one without early stopping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    min_resource: u32,
    max_resource: u32,
    eta: u32,
    rule: Rule,
    /// The brackets of Algorithm 1 that it has, the one that explores most first.
    chosen: Range<usize>,
    brackets: Vec<BracketPlan>,
}

/// Why numbers make no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanError {
    /// `MinResource` is below 1.
    MinResourceIsZero,
    /// `MaxResource` is below `MinResource`.
    MaxBelowMin,
    /// `MaxResource` is above [`MAX_RESOURCE`].
    MaxTooLarge,
    /// The reduction factor is below 2.
    EtaBelowTwo,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MinResourceIsZero => "MinResource must be at least 1",
            Self::MaxBelowMin => "MaxResource must not be below MinResource",
            Self::MaxTooLarge => "MaxResource must not be above 20000",
            Self::EtaBelowTwo => "the reduction factor must be at least 2",
        })
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Returns Hyperband's plan for resources from `min_resource` to `max_resource` and the reduction factor `eta`
    /// (JMLR 18, Algorithm 1, with R = `max_resource / min_resource` in whole units).
    ///
    /// With `s_max = ilog_eta(R)`, bracket s starts `n = ceil((s_max + 1) * eta^s / (s + 1))` trials. Its rung i
    /// compares `n / eta^i` trials at `max_resource / eta^(s - i)` epochs.
    pub fn hyperband(min_resource: u32, max_resource: u32, eta: u32) -> Result<Self, PlanError> {
        if min_resource == 0 {
            return Err(PlanError::MinResourceIsZero);
        }
        if eta < 2 {
            return Err(PlanError::EtaBelowTwo);
        }
        if max_resource > MAX_RESOURCE {
            return Err(PlanError::MaxTooLarge);
        }
        let ratio = max_resource.checked_div(min_resource).unwrap_or(0);
        let s_max = ratio.checked_ilog(eta).ok_or(PlanError::MaxBelowMin)?;
        let brackets: Vec<_> = (0..=s_max).rev().map(|s| bracket(s, s_max, max_resource, eta)).collect();
        let rule = Rule::TopShare { eta };
        Ok(Self { min_resource, max_resource, eta, rule, chosen: 0..brackets.len(), brackets })
    }

    /// Returns the plan with a part of its brackets; `None` if it has not all of them, or if the part is empty.
    pub fn part(&self, brackets: Range<usize>) -> Option<Self> {
        let part = self.brackets.get(brackets.clone()).filter(|part| !part.is_empty())?.to_vec();
        let at = |index: usize| self.chosen.start.saturating_add(index);
        Some(Self { chosen: at(brackets.start)..at(brackets.end), brackets: part, ..self.clone() })
    }

    /// Returns the part of the plan that `jobs` training jobs can fill: the whole plan if they are enough for a full
    /// set of brackets.
    ///
    /// With too few trials a bracket compares too few at its rungs: most of its epochs go to trials without a rival. A
    /// bracket of s comparisons needs `eta^s` trials to send the best of them to its end. So the part is the bracket
    /// with the most comparisons among those that `jobs` trials can fill, and the next one if that compares trials,
    /// too. `promotes`: each promotion is a job of its own.
    ///
    /// ```
    /// use hyperband::plan::Plan;
    /// let plan = Plan::hyperband(1, 81, 3)?;
    /// let levels = |jobs| {
    ///     let plan = plan.fitting(jobs, false);
    ///     plan.brackets().iter().map(|bracket| bracket.rungs()[0].resource).collect::<Vec<_>>()
    /// };
    /// assert_eq!(levels(30), [3, 9]);                    // 27 <= 30 < 81
    /// assert_eq!(levels(143), [1, 3, 9, 27, 81]);        // 81 + 34 + 15 + 8 + 5 trials
    /// assert_eq!(levels(5), [27]);
    /// assert_eq!(levels(2), [81]);
    /// # Ok::<(), hyperband::plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn fitting(&self, jobs: u32, promotes: bool) -> Self {
        let full_set = if promotes { self.jobs() } else { self.trials() };
        if jobs >= full_set {
            return self.clone();
        }
        let most = usize::try_from(jobs.max(1).checked_ilog(self.eta).unwrap_or(0)).unwrap_or(0);
        let comparisons = |bracket: &BracketPlan| bracket.rungs.len().saturating_sub(1);
        let fits = |bracket: &BracketPlan| comparisons(bracket) <= most;
        let first = self.brackets.iter().position(fits).unwrap_or(0);
        let next = self.brackets.get(first.saturating_add(1)).filter(|next| comparisons(next) > 0);
        let end = first.saturating_add(if next.is_some() { 2 } else { 1 });
        self.part(first..end).unwrap_or_else(|| self.clone())
    }

    /// Returns the part of the plan for a sampler that learns: one bracket, whose rungs are the highest ones. It has at
    /// most three comparisons, and not more than `jobs` trials can fill.
    ///
    /// The sampler explores, so brackets with lower first rungs are not needed. A low rung costs more than it saves: a
    /// start-up takes longer than the epochs up to it, and the first epochs often rank trials in another order than the
    /// last ones.
    ///
    /// ```
    /// use hyperband::plan::Plan;
    /// let plan = Plan::hyperband(1, 81, 2)?;
    /// let levels = |jobs| {
    ///     let part = plan.highest(jobs);
    ///     part.brackets()[0].rungs().iter().map(|rung| rung.resource).collect::<Vec<_>>()
    /// };
    /// assert_eq!(levels(30), [10, 20, 40, 81]);
    /// assert_eq!(levels(5), [20, 40, 81]);
    /// # Ok::<(), hyperband::plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn highest(&self, jobs: u32) -> Self {
        let most = jobs.max(1).checked_ilog(self.eta).unwrap_or(0).min(HIGHEST_COMPARISONS);
        let most = usize::try_from(most).unwrap_or(0);
        let fits = |bracket: &BracketPlan| bracket.rungs.len().saturating_sub(1) <= most;
        let first = self.brackets.iter().position(fits).unwrap_or(0);
        self.part(first..first.saturating_add(1)).unwrap_or_else(|| self.clone())
    }

    /// Returns the plan without early stopping: one bracket with one rung, at the end of a job, however late.
    pub fn without_stopping() -> Self {
        let rung = RungPlan { resource: u32::MAX, slots: 1 };
        Self {
            min_resource: 1,
            max_resource: u32::MAX,
            eta: 2,
            rule: Rule::TopShare { eta: 2 },
            chosen: 0..1,
            brackets: vec![BracketPlan { rungs: vec![rung] }],
        }
    }

    /// Returns the plan of the median rule: one bracket, whose levels are 2, 4, 8, ... up to [`MAX_RESOURCE`] epochs. A
    /// job that is never stopped runs to its own end.
    ///
    /// The levels are few, so that the state stays small, and close enough to stop a bad job before it has trained
    /// twice as long as necessary.
    pub fn median() -> Self {
        let levels =
            (1..).map_while(|exponent| 1_u32.checked_shl(exponent)).take_while(|at| *at <= MAX_RESOURCE);
        let levels = levels.chain([u32::MAX]);
        let rungs = levels.map(|resource| RungPlan { resource, slots: 1 }).collect();
        Self { rule: Rule::Median, brackets: vec![BracketPlan { rungs }], ..Self::without_stopping() }
    }

    /// Returns the smallest resource, in epochs.
    pub fn min_resource(&self) -> u32 {
        self.min_resource
    }

    /// Returns the rule by which running trials are compared at a level.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Returns the reduction factor.
    pub fn eta(&self) -> u32 {
        self.eta
    }

    /// Returns the largest resource, in epochs; `u32::MAX` when a job runs to its own end.
    pub fn max_resource(&self) -> u32 {
        self.max_resource
    }

    /// Returns which of the brackets of Algorithm 1 the plan has; 0 is the one that explores most.
    pub fn chosen(&self) -> Range<usize> {
        self.chosen.clone()
    }

    /// Returns the brackets, the one that explores most first. There is at least one.
    pub fn brackets(&self) -> &[BracketPlan] {
        &self.brackets
    }

    /// Returns the level of a rung of a bracket, in epochs; beyond the last rung the largest resource.
    pub fn level(&self, bracket: usize, rung: usize) -> u32 {
        let rungs = self.brackets.get(bracket).map(BracketPlan::rungs);
        rungs.and_then(|rungs| rungs.get(rung)).map_or(self.max_resource, |rung| rung.resource)
    }

    /// Returns the number of rungs of a bracket, at least 1. The last one is at the largest resource.
    pub fn rung_count(&self, bracket: usize) -> usize {
        self.brackets.get(bracket).map_or(1, |bracket| bracket.rungs.len())
    }

    /// Returns the trials of one full set of brackets.
    pub fn trials(&self) -> u32 {
        self.brackets.iter().fold(0, |sum, bracket| sum.saturating_add(bracket.trials()))
    }

    /// Returns the training jobs of one full set of brackets where each promotion is a job of its own.
    ///
    /// ```
    /// let plan = hyperband::plan::Plan::hyperband(1, 9, 3)?;
    /// assert_eq!(plan.jobs(), (9 + 3 + 1) + (5 + 1) + 3);
    /// # Ok::<(), hyperband::plan::PlanError>(())
    /// ```
    pub fn jobs(&self) -> u32 {
        self.brackets.iter().fold(0, |sum, bracket| sum.saturating_add(bracket.jobs()))
    }

    /// Returns the bracket that the next trial joins when `started[b]` trials have joined bracket b.
    ///
    /// This is the bracket that has started the smallest share of its planned trials; a tie goes to the one that
    /// explores most. A full set starts exactly the planned numbers, and any prefix of it keeps their proportions.
    ///
    /// ```
    /// let plan = hyperband::plan::Plan::hyperband(1, 9, 3)?;   // 9, 5 and 3 trials
    /// let mut started = [0_u32; 3];
    /// for _ in 0..17 {
    ///     started[plan.next_bracket(&started)] += 1;
    /// }
    /// assert_eq!(started, [9, 5, 3]);
    /// # Ok::<(), hyperband::plan::PlanError>(())
    /// ```
    pub fn next_bracket(&self, started: &[u32]) -> usize {
        self.next_bracket_of(started, |_| true).unwrap_or(0)
    }

    /// Like [`Plan::next_bracket`], but chooses among the brackets that are `open`; `None` when none is.
    pub fn next_bracket_of(&self, started: &[u32], open: impl Fn(usize) -> bool) -> Option<usize> {
        let joined = |index: usize| u64::from(started.get(index).copied().unwrap_or(0)).saturating_add(1);
        let mut best = None;
        for (index, bracket) in self.brackets.iter().enumerate().filter(|(index, _)| open(*index)) {
            let better = best.is_none_or(|(other, other_trials): (usize, u32)| {
                // (joined + 1) / trials is compared by cross-multiplication: no division, no rounding.
                let here = joined(index).saturating_mul(u64::from(other_trials));
                let there = joined(other).saturating_mul(u64::from(bracket.trials()));
                here < there
            });
            if better {
                best = Some((index, bracket.trials()));
            }
        }
        best.map(|(index, _)| index)
    }
}

fn bracket(s: u32, s_max: u32, max_resource: u32, eta: u32) -> BracketPlan {
    let power = |exponent: u32| u64::from(eta).saturating_pow(exponent);
    let divisor = u64::from(s).saturating_add(1);
    let trials = u64::from(s_max).saturating_add(1).saturating_mul(power(s)).div_ceil(divisor);
    let rungs = (0..=s)
        .map(|i| {
            let slots = trials.checked_div(power(i)).unwrap_or(0).max(1);
            let resource = u64::from(max_resource).checked_div(power(s.saturating_sub(i))).unwrap_or(1);
            RungPlan {
                resource: u32::try_from(resource).unwrap_or(u32::MAX).max(1),
                slots: u32::try_from(slots).unwrap_or(u32::MAX),
            }
        })
        .collect();
    BracketPlan { rungs }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn table(min: u32, max: u32, eta: u32) -> Vec<Vec<(u32, u32)>> {
        let plan = Plan::hyperband(min, max, eta).unwrap();
        plan.brackets().iter().map(|b| b.rungs().iter().map(|r| (r.slots, r.resource)).collect()).collect()
    }

    #[test]
    fn the_plan_for_1_to_30_epochs_matches_the_article() {
        let expected: Vec<Vec<(u32, u32)>> = vec![
            vec![(27, 1), (9, 3), (3, 10), (1, 30)],
            vec![(12, 3), (4, 10), (1, 30)],
            vec![(6, 10), (2, 30)],
            vec![(4, 30)],
        ];
        assert_eq!(table(1, 30, 3), expected);
    }

    #[test]
    fn powers_with_an_inexact_float_logarithm_keep_their_bracket() {
        assert_eq!(Plan::hyperband(1, 243, 3).unwrap().brackets().len(), 6);
        assert_eq!(Plan::hyperband(1, 19_683, 3).unwrap().brackets().len(), 10);
    }

    #[test]
    fn a_min_resource_above_one_raises_the_first_rung() {
        assert_eq!(table(3, 30, 3)[0], [(9, 3), (3, 10), (1, 30)]);
        assert_eq!(table(30, 30, 3), [[(1, 30)]]);
    }

    #[test]
    fn invalid_numbers_are_refused() {
        assert_eq!(Plan::hyperband(0, 9, 3), Err(PlanError::MinResourceIsZero));
        assert_eq!(Plan::hyperband(10, 9, 3), Err(PlanError::MaxBelowMin));
        assert_eq!(Plan::hyperband(1, 9, 1), Err(PlanError::EtaBelowTwo));
        assert_eq!(Plan::hyperband(1, 20_001, 3), Err(PlanError::MaxTooLarge));
    }

    #[test]
    fn a_plan_fits_the_number_of_jobs() {
        let plan = Plan::hyperband(1, 81, 3).unwrap();
        let chosen = |jobs, promotes| plan.fitting(jobs, promotes).chosen();
        assert_eq!(chosen(80, false), 1..3);
        assert_eq!(chosen(81, false), 0..2);
        assert_eq!((chosen(142, false), chosen(143, false)), (0..2, 0..5));
        assert_eq!((chosen(143, true), chosen(plan.jobs(), true)), (0..2, 0..5));
        assert_eq!((chosen(9, false), chosen(8, false), chosen(1, false)), (2..4, 3..4, 4..5));
        // A plan without comparisons has one bracket, whatever the number of jobs.
        assert_eq!(Plan::hyperband(9, 9, 3).unwrap().fitting(1, false).chosen(), 0..1);
    }

    #[test]
    fn a_part_of_a_part_counts_from_the_whole_plan() {
        let plan = Plan::hyperband(1, 81, 3).unwrap();
        let part = plan.part(1..4).and_then(|part| part.part(1..2)).unwrap();
        assert_eq!((part.chosen(), part.brackets()), (2..3, &plan.brackets()[2..3]));
        assert_eq!((plan.part(2..2), plan.part(4..6)), (None, None));
    }

    #[test]
    fn the_maximum_resource_is_allowed() {
        let plan = Plan::hyperband(1, MAX_RESOURCE, 3).unwrap();
        assert_eq!(plan.brackets()[0].rungs().last().unwrap().resource, 20_000);
    }

    #[test]
    fn an_error_message_names_the_limit() {
        let refusal = |min, max, eta| Plan::hyperband(min, max, eta).unwrap_err().to_string();
        assert_eq!(refusal(0, 9, 3), "MinResource must be at least 1");
        assert_eq!(refusal(10, 9, 3), "MaxResource must not be below MinResource");
        assert_eq!(refusal(1, 20_001, 3), "MaxResource must not be above 20000");
        assert_eq!(refusal(1, 9, 1), "the reduction factor must be at least 2");
    }

    #[test]
    fn a_plan_returns_its_parameters() {
        let plan = Plan::hyperband(1, 30, 3).unwrap();
        assert_eq!((plan.eta(), plan.max_resource(), plan.trials()), (3, 30, 27 + 12 + 6 + 4));
    }

    #[test]
    fn a_plan_without_stopping_has_one_rung_at_the_end() {
        let plan = Plan::without_stopping();
        assert_eq!(plan.max_resource(), u32::MAX);
        assert_eq!(plan.brackets().len(), 1);
        assert_eq!(plan.brackets()[0].rungs(), [RungPlan { resource: u32::MAX, slots: 1 }]);
    }

    #[test]
    fn the_plan_of_the_median_rule_compares_at_powers_of_two() {
        let plan = Plan::median();
        let levels: Vec<_> = plan.brackets()[0].rungs().iter().map(|rung| rung.resource).collect();
        assert_eq!((&levels[..4], levels[13], levels[14]), (&[2, 4, 8, 16][..], 16_384, u32::MAX));
        assert_eq!((levels.len(), plan.max_resource(), plan.rule()), (15, u32::MAX, Rule::Median));
    }

    #[test]
    fn the_next_bracket_is_an_open_one() {
        let plan = Plan::hyperband(1, 9, 3).unwrap();
        assert_eq!(plan.next_bracket_of(&[0, 0, 0], |bracket| bracket > 0), Some(1));
        assert_eq!(plan.next_bracket_of(&[0, 5, 2], |bracket| bracket > 0), Some(2));
        assert_eq!(plan.next_bracket_of(&[0, 0, 0], |_| false), None);
    }

    #[test]
    fn a_tie_between_brackets_goes_to_the_one_that_explores_most() {
        // 9, 5 and 3 trials: one short of the plan in each, then all complete.
        let plan = Plan::hyperband(1, 9, 3).unwrap();
        assert_eq!(plan.next_bracket(&[8, 4, 2]), 0);
        assert_eq!(plan.next_bracket(&[9, 4, 2]), 1);
        assert_eq!(plan.next_bracket(&[9, 5, 2]), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// A naive version of Algorithm 1, by repeated multiplication, gives the same table.
        #[test]
        fn plan_equals_a_naive_version(min in 1_u32..50, factor in 1_u32..400, eta in 2_u32..6) {
            let max = min * factor;
            let mut s_max = 0_u32;
            let mut power = u64::from(eta);
            while power <= u64::from(max / min) {
                s_max += 1;
                power *= u64::from(eta);
            }
            let plan = Plan::hyperband(min, max, eta).unwrap();
            prop_assert_eq!(plan.brackets().len(), usize::try_from(s_max).unwrap() + 1);
            for (bracket, s) in plan.brackets().iter().zip((0..=s_max).rev()) {
                let eta_s = (0..s).fold(1_u64, |product, _| product * u64::from(eta));
                let numerator = u64::from(s_max + 1) * eta_s;
                let n = numerator / u64::from(s + 1) + u64::from(numerator % u64::from(s + 1) != 0);
                prop_assert_eq!(u64::from(bracket.trials()), n);
                let mut previous = 0;
                for rung in bracket.rungs() {
                    prop_assert!(rung.resource > previous, "levels rise: {:?}", bracket);
                    prop_assert!(rung.resource >= min);
                    previous = rung.resource;
                }
                prop_assert_eq!(previous, max);
            }
        }

        /// After any number of trials, no bracket is a whole trial ahead of the share of another.
        #[test]
        fn brackets_fill_in_proportion(max in 1_u32..300, eta in 2_u32..5, trials in 1_u32..500) {
            let plan = Plan::hyperband(1, max, eta).unwrap();
            let mut started = vec![0_u32; plan.brackets().len()];
            for _ in 0..trials {
                let next = plan.next_bracket(&started);
                started[next] += 1;
            }
            for (count, bracket) in started.iter().zip(plan.brackets()) {
                for (other_count, other) in started.iter().zip(plan.brackets()) {
                    prop_assert!(count * other.trials() <= (other_count + 1) * bracket.trials());
                }
            }
        }
    }
}
