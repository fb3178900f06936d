//! The plan of the definition, and the values in the logs, which comparisons and promotions rank.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::log::Fact;
use crate::rows::{Definition, Objective};

#[cfg(test)]
mod tests;

/// The numbers of a plan, as the definition stores them.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Plan {
    min_resource: u32,
    max_resource: u32,
    pub(crate) eta: u32,
    brackets: Option<Brackets>,
    #[serde(default)]
    pub(crate) strictness: u64,
    #[serde(default)]
    pub(crate) by_evidence: bool,
}

#[derive(Debug, Clone, Deserialize)]
struct Brackets {
    start: usize,
    end: usize,
}

impl Plan {
    /// Returns the levels of each bracket, ascending (Hyperband, Algorithm 1).
    fn levels(&self) -> Vec<Vec<u32>> {
        let most = (self.max_resource / self.min_resource.max(1)).checked_ilog(self.eta).unwrap_or(0);
        let level = |below: u32| self.max_resource / self.eta.pow(below);
        let all: Vec<Vec<u32>> = (0..=most).rev().map(|s| (0..=s).rev().map(level).collect()).collect();
        match &self.brackets {
            Some(part) => all.get(part.start..part.end).map(<[Vec<u32>]>::to_vec).unwrap_or_default(),
            None => all,
        }
    }
}

/// A trial that arrived at a level or rung, with the value that counts.
pub(crate) type Arrival = (u32, Option<f64>);

/// The definition and the log, as the rungs need them.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) maximize: bool,
    pub(crate) definitions: u32,
    /// `None` = the strategy has no rungs.
    pub(crate) plan: Option<Plan>,
    levels: Vec<Vec<u32>>,
    target: Option<f64>,
    /// The values that the log of each trial showed, as bits.
    logged: BTreeMap<u32, BTreeSet<u64>>,
}

impl Ground {
    pub(crate) fn new(definition: &Definition) -> Result<Self, serde_json::Error> {
        let hyperband = definition.strategy.get("Hyperband").and_then(|strategy| strategy.get("plan"));
        let plan: Option<Plan> = hyperband.map(Plan::deserialize).transpose()?;
        Ok(Self {
            maximize: definition.objective == Objective::Maximize,
            definitions: u32::try_from(definition.others.len()).unwrap_or(0) + 1,
            levels: plan.as_ref().map(Plan::levels).unwrap_or_default(),
            plan,
            target: definition.limits.target,
            logged: BTreeMap::new(),
        })
    }

    /// Returns the ground of a strategy without rungs.
    #[cfg(test)]
    pub(crate) fn by_median(maximize: bool) -> Self {
        Self {
            maximize,
            definitions: 1,
            plan: None,
            levels: Vec::new(),
            target: None,
            logged: BTreeMap::new(),
        }
    }

    /// Returns the ground of a plan whose objective is maximized.
    #[cfg(test)]
    pub(crate) fn of_plan(plan: Plan) -> Self {
        Self { levels: plan.levels(), plan: Some(plan), ..Self::by_median(true) }
    }

    /// Adds a value to the log of a trial.
    #[cfg(test)]
    pub(crate) fn log(&mut self, trial: u32, value: f64) {
        self.logged.entry(trial).or_default().insert(value.to_bits());
    }

    pub(crate) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::MetricsLogged(logged) => {
                let values = self.logged.entry(logged.job.trial).or_default();
                values.extend(logged.lines.iter().filter_map(|line| line.value).map(f64::to_bits));
            }
            Fact::FinalMetricsSeen(seen) => {
                let values = self.logged.entry(seen.job.trial).or_default();
                values.extend(seen.values.iter().map(|(_, value)| value.to_bits()));
            }
            _ => {}
        }
    }

    /// Returns the levels of a bracket. Each training job definition has all brackets of the plan, one after another.
    pub(crate) fn levels_of(&self, bracket: u32) -> &[u32] {
        let place = number(bracket).checked_rem(self.levels.len()).unwrap_or(0);
        self.levels.get(place).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn was_logged(&self, trial: u32, value: Option<f64>) -> bool {
        value
            .is_none_or(|value| self.logged.get(&trial).is_some_and(|known| known.contains(&value.to_bits())))
    }

    /// Returns whether the log of a trial shows a value that reaches the target.
    pub(crate) fn reaches_target(&self, trial: u32) -> bool {
        let Some(target) = self.target else { return false };
        let reaches = |value: f64| if self.maximize { value >= target } else { value <= target };
        self.logged.get(&trial).into_iter().flatten().any(|bits| reaches(f64::from_bits(*bits)))
    }

    /// Returns whether an arrival ranks before another: the better value, then the lower number.
    pub(crate) fn is_better(&self, a: Arrival, b: Arrival) -> bool {
        let order = match (a.1, b.1) {
            (Some(x), Some(y)) => {
                let ascending = x.partial_cmp(&y).unwrap_or(Ordering::Equal);
                if self.maximize { ascending.reverse() } else { ascending }
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        order.then(a.0.cmp(&b.0)) == Ordering::Less
    }

    pub(crate) fn rank(&self, arrivals: &[Arrival], arrival: Arrival) -> u32 {
        let better = arrivals.iter().filter(|other| other.0 != arrival.0 && self.is_better(**other, arrival));
        count(better.count())
    }
}

pub(crate) fn number(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns a value for a message.
pub(crate) fn shown(value: Option<f64>) -> String {
    value.map_or_else(|| "no value".to_owned(), |value| value.to_string())
}
