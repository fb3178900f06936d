//! The brackets of a tuning, computed from `MinResource`, `MaxResource` and eta, without code of the decider.

use tuning::unit::ids::{BracketId, RungId};

use crate::case::{Case, Late};

/// The brackets of Hyperband, as in the paper (Algorithm 1).
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    max_resource: u32,
    pub(super) eta: u32,
    /// `s` of the paper's bracket with the most trials.
    s_max: u32,
    /// The values of `s` that the tuning has, lowest first.
    used: (u32, u32),
    /// The training job definitions, each of which has all brackets.
    definitions: u32,
}

impl Shape {
    pub(super) fn of(case: &Case) -> Option<Self> {
        let (min_resource, max_resource, eta) = case.choices.hyperband?;
        let fits = |s: &u32| u64::from(eta).pow(*s) * u64::from(min_resource) <= u64::from(max_resource);
        let s_max = (0..20).take_while(fits).last()?;
        let definitions = case.choices.definitions;
        let whole = Self { max_resource, eta, s_max, used: (0, s_max), definitions };
        let used = whole.used_by(case);
        Some(Self { used, ..whole })
    }

    /// Returns the brackets that the jobs of a tuning fill: the one with the most rungs whose trials are at least
    /// eta^s, and the next one unless it has a single rung; all brackets if the jobs are a full set.
    fn used_by(self, case: &Case) -> (u32, u32) {
        let jobs = case.counted_jobs() - u32::from(case.choices.refit);
        let rungs = |s: u32| if case.promotes() { s } else { 0 };
        let slots = |s: u32, rung: u32| (self.slots(s) / self.eta.pow(rung)).max(1);
        if case.choices.late.is_some() {
            let last =
                (0..=3).take_while(|s| 2_u32.pow(*s) <= jobs.max(1)).last().unwrap_or(0).min(self.s_max);
            return (last, last);
        }
        let full_set: u32 =
            (0..=self.s_max).flat_map(|s| (0..=rungs(s)).map(move |rung| slots(s, rung))).sum();
        if jobs >= full_set {
            return (0, self.s_max);
        }
        let most = (0..=self.s_max).filter(|s| self.eta.pow(*s) <= jobs.max(1)).max().unwrap_or(0);
        (if most >= 2 { most - 1 } else { most }, most)
    }

    /// Returns how many of `arrived` running trials go on at a rung.
    pub(super) fn going_on(self, case: &Case, arrived: usize, bracket: BracketId, rung: RungId) -> usize {
        let jobs = case.counted_jobs() - u32::from(case.choices.refit);
        // How many of 70 jobs less than 100 the tuning has.
        let lacking = match case.choices.late {
            None | Some(Late::Value) => 0,
            Some(Late::Cost) => 70,
            Some(Late::ByJobs) => 100 - jobs.clamp(30, 100),
        };
        let percent = lacking * 100 / 70;
        let one_of = match self.last_rung(bracket).0 - rung.0 {
            1 => 100 * self.eta + 4 * percent,
            2 => 100 * self.eta + 2 * percent,
            _ => 100 * self.eta,
        };
        arrived * 100 / usize::try_from(one_of).unwrap_or(usize::MAX)
    }

    /// Returns the number of brackets of a training job definition.
    fn each(self) -> u32 {
        self.used.1 - self.used.0 + 1
    }

    /// Returns whether the tuning has a bracket, for trials of this training job definition.
    pub(super) fn has(self, bracket: BracketId, definition: u32) -> bool {
        bracket.0 / self.each() == definition && definition < self.definitions
    }

    pub(super) fn last_rung(self, bracket: BracketId) -> RungId {
        RungId(self.used.1.saturating_sub(bracket.0 % self.each()))
    }

    pub(super) fn level(self, bracket: BracketId, rung: RungId) -> u32 {
        self.max_resource / self.eta.pow(self.last_rung(bracket).0.saturating_sub(rung.0))
    }

    /// Returns the number of trials in one round of a bracket.
    pub(super) fn trials(self, bracket: BracketId) -> u32 {
        self.slots(self.last_rung(bracket).0)
    }

    /// Returns the trials of the paper's bracket `s`.
    fn slots(self, s: u32) -> u32 {
        ((self.s_max + 1) * self.eta.pow(s)).div_ceil(s + 1)
    }

    /// Returns how many of `joined` trials are promoted from a rung once it is closed.
    pub(super) fn promoted_in_total(self, joined: usize, rung: RungId) -> usize {
        let share = u64::from(self.eta).pow(rung.next().0);
        (joined / usize::try_from(share).unwrap_or(usize::MAX)).max(1)
    }
}
