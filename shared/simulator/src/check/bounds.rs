//! Bounds that a user sets (further attempts, instances), and what must be known before a trial is judged by rank.
//!
//! Counted anew from the recorded facts and rulings; reads nothing of the decider's state.

use std::collections::{BTreeMap, BTreeSet};

use tuning::fact::Fact;
use tuning::ruling::{RetryWhy, Ruling};
use tuning::step::Step;

use super::{Book, Money};

/// What is counted of one tuning.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// Further attempts of each trial that count against `MaxInterruptions`.
    retries: BTreeMap<u32, u32>,
    /// Log streams of each trial.
    streams: BTreeMap<u32, BTreeSet<String>>,
    /// How many streams each trial had when its stored log was last read for that.
    read: BTreeMap<u32, u32>,
}

impl Book {
    /// The facts of a step, before its rulings are looked at.
    pub(super) fn count_facts(&mut self, step: &Step) {
        for recorded in &step.facts {
            match &recorded.fact {
                Fact::MetricsLogged { job, stream, .. } => {
                    self.bounds.streams.entry(job.trial).or_default().insert(stream.clone());
                }
                Fact::LogRead { job, streams } => {
                    let read = self.bounds.read.entry(job.trial).or_default();
                    *read = (*read).max(*streams);
                }
                _ => {}
            }
        }
    }

    /// A ruling, after it entered the other books.
    pub(super) fn within_bounds(&mut self, ruling: &Ruling) -> Result<(), String> {
        match ruling {
            Ruling::AttemptAwaited {
                why: RetryWhy::RuntimeCutTooShort | RetryWhy::NextInstances | RetryWhy::Quota,
                ..
            } => Ok(()),
            // On demand it begins anew.
            Ruling::AttemptAwaited { why: RetryWhy::OnDemand, job, .. } => {
                self.bounds.retries.remove(&job.trial);
                Ok(())
            }
            Ruling::AttemptAwaited { job, .. } => {
                let retries = self.bounds.retries.entry(job.trial).or_default();
                *retries += 1;
                let most = self.definition.max_interruptions;
                let fine = *retries <= most;
                fine.then_some(()).ok_or_else(|| {
                    format!(
                        "MaxInterruptions: trial {} is tried again {retries} times, {most} are allowed",
                        job.trial
                    )
                })
            }
            // Each rung has its own.
            Ruling::TrialPromoted { trial, .. } => {
                self.bounds.retries.remove(trial);
                Ok(())
            }
            Ruling::StartOrdered { .. } => self.within_instances(),
            Ruling::TrialJudged { trial, .. } => self.log_was_read(*trial),
            _ => Ok(()),
        }
    }

    fn within_instances(&self) -> Result<(), String> {
        let Some(most) = self.definition.limits.max_instances else { return Ok(()) };
        let running = self.jobs.values().filter(|job| !job.end_seen);
        let instances: u32 = running.map(|job| self.case.cluster(job.launch.instances).count).sum();
        (instances <= most).then_some(()).ok_or_else(|| format!("MaxInstances: {instances} instances run"))
    }

    /// After a restart the ranks of lines hold only if none was lost: an open job's stored log is read first.
    fn log_was_read(&self, trial: u32) -> Result<(), String> {
        let streams = self.bounds.streams.get(&trial).map_or(0, BTreeSet::len);
        let read = self.bounds.read.get(&trial).copied().unwrap_or(0);
        let open = self.jobs.iter().any(|(key, job)| key.trial == trial && job.money == Money::Reserved);
        if self.definition.epochs.captured || streams < 2 || !open {
            return Ok(());
        }
        let fine = usize::try_from(read).is_ok_and(|read| read >= streams);
        fine.then_some(()).ok_or_else(|| {
            format!("P6: trial {trial} is judged by rank, {streams} streams are known and {read} were read")
        })
    }
}
