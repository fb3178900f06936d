//! The promotions (P6): who waits, with which value, and how many the rung allows, computed anew.

use std::collections::{BTreeMap, BTreeSet};

use crate::Findings;
use crate::log::{End, Fact, Job, Promoted, Reached, Ruling, Start};
use crate::plan::{Arrival, Ground, count, number, shown};

/// The trials of one bracket and round, which compete for promotion.
#[derive(Debug, Default)]
struct Cohort {
    joined: BTreeSet<u32>,
    /// The arrivals at each rung.
    reached: BTreeMap<u32, Vec<Arrival>>,
}

#[derive(Debug, Default)]
pub(crate) struct Promotions {
    /// By bracket and round.
    cohorts: BTreeMap<(u32, u32), Cohort>,
    /// The rungs from which each trial was promoted.
    promoted: BTreeSet<(u32, u32)>,
    /// The trials that wait to be promoted.
    waiting: BTreeSet<u32>,
    finished: BTreeSet<u32>,
    /// The jobs whose programs failed.
    failed: BTreeSet<Job>,
}

impl Promotions {
    pub(crate) fn fact(&mut self, fact: &Fact) {
        if let Some((job, Some(End::AlgorithmError))) = fact.end_of() {
            self.failed.insert(job);
        }
    }

    pub(crate) fn ruling(&mut self, ground: &Ground, ruling: &Ruling, findings: &mut Findings) {
        match ruling {
            Ruling::Start(start) => self.start(ground, start, findings),
            Ruling::RungReached(reached) => self.reach(ground, reached, findings),
            Ruling::TrialPromoted(promoted) => self.promote(ground, promoted, findings),
            Ruling::TrialFinished(finished) => {
                self.finished.insert(finished.trial);
                self.waiting.remove(&finished.trial);
            }
            _ => {}
        }
    }

    fn start(&mut self, ground: &Ground, start: &Start, findings: &mut Findings) {
        let Start { job, bracket, round, launch, .. } = start;
        if launch.refit {
            return;
        }
        self.cohorts.entry((*bracket, *round)).or_default().joined.insert(job.trial);
        let rose = job.rung.checked_sub(1).is_none_or(|below| self.promoted.contains(&(job.trial, below)));
        findings.check("P6", rose, || format!("job {job} starts, although its trial was not promoted"));
        let level = ground.levels_of(*bracket).get(number(job.rung)).copied();
        findings.check("P6", launch.resource.is_none() || launch.resource == level, || {
            let (resource, level) = (launch.resource.unwrap_or(0), level.unwrap_or(0));
            format!("job {job} trains to epoch {resource}; its rung is at {level}")
        });
    }

    fn reach(&mut self, ground: &Ground, reached: &Reached, findings: &mut Findings) {
        let Reached { job, trial, bracket, round, rung, level, value } = *reached;
        let expected = ground.levels_of(bracket).get(number(rung)).copied();
        findings.check("P6", expected == Some(level), || {
            let expected = expected.unwrap_or(0);
            format!("trial {trial} waits at {level} epochs as rung {rung}, which is at {expected}")
        });
        findings.check("P6", ground.was_logged(trial, value), || {
            format!("trial {trial} waits with {}, which its log never showed", shown(value))
        });
        let failed = job.filter(|job| self.failed.contains(job) && value.is_some());
        findings
            .check("P6", failed.is_none(), || format!("trial {trial} waits, although its program failed"));
        let cohort = self.cohorts.entry((bracket, round)).or_default();
        let arrivals = cohort.reached.entry(rung).or_default();
        let is_first = arrivals.iter().all(|(other, _)| *other != trial);
        findings.check("P6", is_first, || format!("trial {trial} arrives twice at rung {rung}"));
        arrivals.push((trial, value));
        self.waiting.insert(trial);
    }

    /// Checks a promotion: the trial waits with a value, its rank is right, and the share of the rung allows it.
    fn promote(&mut self, ground: &Ground, promoted: &Promoted, findings: &mut Findings) {
        let Promoted { trial, bracket, round, rung, value, verdict, reached_target } = *promoted;
        let is_first = self.promoted.insert((trial, rung));
        findings.check("P6", is_first, || format!("trial {trial} is promoted twice from rung {rung}"));
        let is_over = self.finished.contains(&trial);
        findings.check("P6", !is_over, || format!("trial {trial} is promoted, although it is finished"));
        self.waiting.remove(&trial);
        let none = Cohort::default();
        let cohort = self.cohorts.get(&(bracket, round)).unwrap_or(&none);
        let arrivals = cohort.reached.get(&rung).map_or([].as_slice(), Vec::as_slice);
        let own = arrivals.iter().find(|(other, _)| *other == trial);
        findings.check("P6", own == Some(&(trial, value)) && value.is_some(), || {
            let own = own.map_or_else(|| "never".to_owned(), |(_, own)| format!("with {}", shown(*own)));
            format!("trial {trial} is promoted with {}; it waited {own}", shown(value))
        });
        // A trial that can never be promoted ranks behind the others, whatever its value.
        let is_out = |other: &&Arrival| {
            let is_over = self.finished.contains(&other.0) && !self.promoted.contains(&(other.0, rung));
            is_over && ground.is_better(**other, (trial, value))
        };
        let most = ground.rank(arrivals, (trial, value));
        let least = most.saturating_sub(count(arrivals.iter().filter(is_out).count()));
        findings.check("P6", (least..=most).contains(&verdict.rank), || {
            format!("trial {trial} is promoted with rank {}; the values give {least} to {most}", verdict.rank)
        });
        if reached_target {
            findings.check("P6", ground.reaches_target(trial), || {
                format!("trial {trial} is promoted for the target, which its log does not reach")
            });
            return;
        }
        let arrived = |trial: &&u32| arrivals.iter().any(|(other, _)| other == *trial);
        let has_ended = |trial: &&u32| arrived(trial) || self.finished.contains(*trial);
        let ended = count(cohort.joined.iter().filter(has_ended).count());
        let is_closed = cohort.joined.iter().all(|trial| has_ended(&trial) || self.waiting.contains(trial));
        let eta = ground.plan.as_ref().map_or(0, |plan| plan.eta);
        let open = verdict.seen.checked_div(eta).unwrap_or(0);
        let joined = count(cohort.joined.len());
        let planned = joined.checked_div(eta.saturating_pow(rung + 1)).unwrap_or(0).max(1);
        let is_allowed = verdict.allowed == open || (is_closed && verdict.allowed == planned);
        let is_counted = (count(arrivals.len())..=ended).contains(&verdict.seen);
        findings.check("P6", verdict.rank < verdict.allowed && is_allowed && is_counted, || {
            let state = if is_closed { "closed" } else { "open" };
            format!(
                "trial {trial} is promoted with rank {} of {} allowed and {} seen; the rung is {state}: of {joined} trials, \
                 {ended} have ended, which allows {open}, or {planned} once it is closed",
                verdict.rank, verdict.allowed, verdict.seen
            )
        });
    }
}
