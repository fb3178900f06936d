//! The plan: the brackets, their rungs, and the resource and the number of trials of each rung.
//!
//! A plan is made once, when a tuning is submitted, and never changes. It uses integer arithmetic only: in floating
//! point, `floor(ln 243 / ln 3)` is 4 and would lose a bracket.

use std::fmt;
use std::ops::Range;

use crate::rung::Rule;

#[cfg(test)]
mod tests;

/// The largest resource of a plan, in epochs (the documented limit of AMT's `MaxResource`).
pub const MAX_RESOURCE: u32 = 20_000;

/// The most comparisons of [`Plan::highest`].
const HIGHEST_COMPARISONS: u32 = 3;

/// By how much the reduction factor of a rung of [`Plan::highest`] is greater at full strictness: at the last comparison,
/// and at the one before.
const STRICTEST: [u32; 2] = [4, 2];

/// The greatest number of trials with full strictness, and the least number without any.
const STRICT_TRIALS: (u32, u32) = (30, 100);

/// Returns the strictness, in percent, that suits a search of `trials` trials ([`Plan::highest`]).
///
/// In a small search, each trial that trains to its end costs a large part of all epochs. A large one finds better values
/// if half of the trials pass each rung. Between both, the strictness falls evenly, so one trial more never changes much.
///
/// ```
/// use hyperband::plan::strictness;
/// assert_eq!([10, 30, 65, 100, 1_000].map(strictness), [100, 100, 50, 0, 0]);
/// ```
pub fn strictness(trials: u32) -> u32 {
    let (few, many) = STRICT_TRIALS;
    let missing = many.saturating_sub(trials.max(few));
    missing.saturating_mul(100).checked_div(many.saturating_sub(few)).unwrap_or(0)
}

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
    median: bool,
    /// In percent: see [`Self::highest`].
    strictness: u32,
    by_evidence: bool,
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
        Ok(Self {
            min_resource,
            max_resource,
            eta,
            median: false,
            strictness: 0,
            by_evidence: true,
            chosen: 0..brackets.len(),
            brackets,
        })
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
    /// most three comparisons, and not more than `jobs` trials can fill. Of the running trials at a rung, `1/eta` continue
    /// with a strictness of 0 percent. With 100 percent, `1/(eta + 4)` continue at the last comparison and `1/(eta + 2)`
    /// at the one before ([`strictness`]). Promotions do not depend on the strictness.
    ///
    /// The sampler explores, so brackets with lower first rungs are not needed. A low rung costs more than it saves: a
    /// start-up takes longer than the epochs up to it, and the first epochs often rank trials in another order than the
    /// last ones.
    ///
    /// ```
    /// use hyperband::plan::Plan;
    /// let plan = Plan::hyperband(1, 81, 2)?;
    /// let levels = |jobs| {
    ///     let part = plan.highest(jobs, 0);
    ///     part.brackets()[0].rungs().iter().map(|rung| rung.resource).collect::<Vec<_>>()
    /// };
    /// assert_eq!(levels(30), [10, 20, 40, 81]);
    /// assert_eq!(levels(5), [20, 40, 81]);
    /// let continue_of_60 = |strictness| {
    ///     let part = plan.highest(30, strictness);
    ///     [0, 1, 2].map(|rung| part.rule(0, rung).allowed(60))
    /// };
    /// assert_eq!(continue_of_60(0), [30, 30, 30]);
    /// assert_eq!(continue_of_60(50), [30, 20, 15]);
    /// assert_eq!(continue_of_60(100), [30, 15, 10]);
    /// # Ok::<(), hyperband::plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn highest(&self, jobs: u32, strictness: u32) -> Self {
        let most = jobs.max(1).checked_ilog(self.eta).unwrap_or(0).min(HIGHEST_COMPARISONS);
        let most = usize::try_from(most).unwrap_or(0);
        let fits = |bracket: &BracketPlan| bracket.rungs.len().saturating_sub(1) <= most;
        let first = self.brackets.iter().position(fits).unwrap_or(0);
        self.part(first..first.saturating_add(1)).unwrap_or_else(|| self.clone()).with_strictness(strictness)
    }

    /// Returns the plan with this strictness, in percent, at most 100 ([`Self::highest`]).
    #[must_use]
    pub fn with_strictness(self, strictness: u32) -> Self {
        Self { strictness: strictness.min(100), ..self }
    }

    /// Returns the plan without the rule that a level that does not predict stops no trial
    /// ([`predicts`](crate::rung::predicts)).
    #[must_use]
    pub fn without_evidence(self) -> Self {
        Self { by_evidence: false, ..self }
    }

    /// Returns the plan without early stopping: one bracket with one rung, at the end of a job, however late.
    pub fn without_stopping() -> Self {
        let rung = RungPlan { resource: u32::MAX, slots: 1 };
        Self {
            min_resource: 1,
            max_resource: u32::MAX,
            eta: 2,
            median: false,
            strictness: 0,
            by_evidence: false,
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
        Self { median: true, brackets: vec![BracketPlan { rungs }], ..Self::without_stopping() }
    }

    /// Returns the smallest resource, in epochs.
    pub fn min_resource(&self) -> u32 {
        self.min_resource
    }

    /// Returns the rule by which running trials are compared at a rung of a bracket.
    pub fn rule(&self, bracket: usize, rung: usize) -> Rule {
        if self.median {
            return Rule::Median;
        }
        let above = self.rung_count(bracket).saturating_sub(rung.saturating_add(2));
        let stricter = STRICTEST.get(above).map_or(0, |most| most.saturating_mul(self.strictness));
        Rule::TopShare { eta_percent: self.eta.saturating_mul(100).saturating_add(stricter) }
    }

    /// Returns whether running trials are compared by the median rule ([`Rule::Median`]).
    pub fn is_median(&self) -> bool {
        self.median
    }

    /// Returns the strictness in percent ([`Self::highest`]).
    pub fn strictness(&self) -> u32 {
        self.strictness
    }

    /// Returns whether a level that does not predict stops no trial ([`predicts`](crate::rung::predicts)).
    pub fn is_by_evidence(&self) -> bool {
        self.by_evidence
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
