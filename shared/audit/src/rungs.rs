//! The comparisons of running trials (P6): levels, ranks, counts and shares, computed anew from the values in the steps.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::Findings;
use crate::log::{Fact, Job, Judged, Ruling};
use crate::plan::{Arrival, Ground, count, number, shown};

#[cfg(test)]
mod tests;

/// A level that does not predict stops no trial: so many of the latest trials show it, from the least number on.
const EVIDENCE: (usize, usize) = (4, 20);
/// The least share by which the pairs of trials that a level orders as later exceed those that it orders oppositely.
const ASSOCIATION: (i64, i64) = (1, 10);
/// How much greater the reduction factor of the last two comparisons is at full strictness.
const STRICTEST: [u64; 2] = [4, 2];
/// The earlier arrivals that the median rule needs.
const MEDIAN_RIVALS: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct Rungs {
    /// The arrivals at each level, of each training job definition.
    judged: BTreeMap<(u32, u32), Vec<Arrival>>,
    /// The trials and levels that were judged.
    verdicts: BTreeSet<(u32, u32)>,
    /// The values with which a trial passed each level.
    passed: BTreeMap<u32, BTreeMap<u32, f64>>,
    /// The trials that were judged at the last level, in their order, by definition.
    passages: BTreeMap<u32, Vec<u32>>,
    /// The job of each trial that runs and was not ordered to stop.
    running: BTreeMap<u32, Job>,
    /// The losers whose jobs run on, with the level.
    losers: BTreeMap<u32, u32>,
}

impl Rungs {
    pub(crate) fn fact(&mut self, fact: &Fact) {
        if let Some((job, _)) = fact.end_of()
            && self.running.get(&job.trial) == Some(&job)
        {
            self.running.remove(&job.trial);
        }
    }

    pub(crate) fn ruling(&mut self, ground: &Ground, ruling: &Ruling, findings: &mut Findings) {
        match ruling {
            Ruling::Start(start) => _ = self.running.insert(start.job.trial, start.job),
            // A job that is settled in full is presumed deleted.
            Ruling::SettledInFull(settled) => _ = self.running.remove(&settled.job.trial),
            Ruling::TrialJudged(judged) => {
                let is_first = self.verdicts.insert((judged.trial, judged.level));
                findings.check("P6", is_first, || {
                    format!("trial {} is compared twice at {} epochs", judged.trial, judged.level)
                });
                self.judge(ground, judged, findings);
            }
            Ruling::Stop(stop) => {
                if let Some(because) = &stop.because {
                    let lost = self.losers.get(&stop.job.trial) == Some(&because.level);
                    findings.check("P6", lost && !because.verdict.continues, || {
                        format!(
                            "job {} is stopped at {} epochs, where it lost no comparison",
                            stop.job, because.level
                        )
                    });
                }
                self.losers.remove(&stop.job.trial);
                self.running.remove(&stop.job.trial);
            }
            Ruling::TrialFinished(finished) => _ = self.losers.remove(&finished.trial),
            _ => {}
        }
    }

    /// A loser is stopped in the step of its comparison, unless its job has ended or stops already.
    pub(crate) fn step_ends(&mut self, findings: &mut Findings) {
        for (trial, level) in std::mem::take(&mut self.losers) {
            let job = self.running.get(&trial);
            findings.check("P6", job.is_none(), || {
                format!("trial {trial} loses at {level} epochs, and its job is not stopped")
            });
        }
    }

    /// Checks a comparison of a running trial.
    fn judge(&mut self, ground: &Ground, judged: &Judged, findings: &mut Findings) {
        let Judged { trial, bracket, rung, level, value, verdict, .. } = *judged;
        findings.check("P6", ground.was_logged(trial, value), || {
            format!("trial {trial} is compared with {}, which its log never showed", shown(value))
        });
        let of = trial % ground.definitions;
        let Some(plan) = &ground.plan else { return self.judge_by_median(ground, judged, of, findings) };
        let levels = ground.levels_of(bracket);
        let rung = number(rung);
        findings.check("P6", levels.get(rung) == Some(&level), || {
            format!("trial {trial} is compared at {level} epochs as rung {rung}; the levels are {levels:?}")
        });
        let above = levels.len().saturating_sub(rung + 2);
        let before = self.judged.get(&(of, level)).cloned().unwrap_or_default();
        let seen = count(before.len()).saturating_add(1);
        let rank = ground.rank(&before, (trial, value));
        let stricter = STRICTEST.get(above).map_or(0, |most| most * plan.strictness);
        let share = u64::from(seen) * 100 / (u64::from(plan.eta) * 100 + stricter);
        let share = u32::try_from(share.max(1)).unwrap_or(u32::MAX);
        let last = levels.len().checked_sub(2).and_then(|last| levels.get(last)).copied();
        let predicts = !plan.by_evidence || self.predicts(of, level, last);
        let (allowed, continues) =
            if predicts { (share, rank < share && value.is_some()) } else { (seen, value.is_some()) };
        let expected = (rank, seen, allowed, continues);
        let recorded = (verdict.rank, verdict.seen, verdict.allowed, verdict.continues);
        findings.check("P6", recorded == expected, || {
            format!(
                "trial {trial} at {level} epochs with {}: (rank, seen, allowed, continues) is {recorded:?}; the values \
                 in the steps give {expected:?}",
                shown(value)
            )
        });
        self.judged.entry((of, level)).or_default().push((trial, value));
        if let Some(value) = value {
            self.passed.entry(trial).or_default().insert(level, value);
            if Some(level) == last {
                self.passages.entry(of).or_default().push(trial);
            }
        }
        if !verdict.continues {
            self.losers.insert(trial, level);
        }
    }

    /// Returns whether the values at a level order the latest trials as those at the last comparison (Somers' D).
    fn predicts(&self, of: u32, level: u32, last: Option<u32>) -> bool {
        let Some(last) = last.filter(|last| level < *last) else { return true };
        let trials = self.passages.get(&of).into_iter().flatten().rev();
        let both = |trial: &u32| {
            let passed = self.passed.get(trial)?;
            Some((*passed.get(&level)?, *passed.get(&last)?))
        };
        let pairs: Vec<(f64, f64)> = trials.take(EVIDENCE.1).filter_map(both).collect();
        if pairs.len() < EVIDENCE.0 {
            return true;
        }
        let order = |one: f64, other: f64| one.partial_cmp(&other).unwrap_or(Ordering::Equal);
        let (mut all, mut balance) = (0_i64, 0_i64);
        for (index, (early, late)) in pairs.iter().enumerate() {
            for (other_early, other_late) in pairs.iter().skip(index + 1) {
                let (earlier, later) = (order(*early, *other_early), order(*late, *other_late));
                if later.is_ne() {
                    all += 1;
                    balance += i64::from(earlier == later) - i64::from(earlier == later.reverse());
                }
            }
        }
        balance * ASSOCIATION.1 >= all * ASSOCIATION.0
    }

    fn judge_by_median(&mut self, ground: &Ground, judged: &Judged, of: u32, findings: &mut Findings) {
        let Judged { trial, level, value, average, verdict, .. } = *judged;
        let before = self.judged.entry((of, level)).or_default();
        let better = |other: &&(u32, Option<f64>)| match (other.1, value) {
            (Some(other), Some(value)) => {
                if ground.maximize {
                    other > value
                } else {
                    other < value
                }
            }
            (Some(_), None) => true,
            (None, _) => false,
        };
        let rank = before.iter().filter(better).count();
        let allowed = if before.len() < MEDIAN_RIVALS { before.len() + 1 } else { before.len() / 2 + 1 };
        let expected = (rank, before.len() + 1, allowed, rank < allowed && value.is_some());
        let recorded =
            (number(verdict.rank), number(verdict.seen), number(verdict.allowed), verdict.continues);
        before.push((trial, average));
        findings.check("P6", recorded == expected, || {
            format!(
                "trial {trial} at {level} epochs with {}: (rank, seen, allowed, continues) is {recorded:?}; the averages \
                 in the steps give {expected:?}",
                shown(value)
            )
        });
        if !verdict.continues {
            self.losers.insert(trial, level);
        }
    }
}
