//! Bounds that a user sets (`MaxInterruptions`, `MaxInstances`), and the log reads that must precede a judgement by
//! rank.
//!
//! Recounted from the recorded facts and rulings, without the decider's state.

use std::collections::{BTreeMap, BTreeSet};

use tuning::log::fact::Fact;
use tuning::log::reasons::RetryWhy;
use tuning::log::ruling::{AttemptRuling, Order, Ruling, SearchRuling};
use tuning::step::Step;
use tuning::unit::ids::TrialId;

use super::{Book, Money};

/// The counts of one tuning.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// Further attempts of each trial that count toward `MaxInterruptions`.
    retries: BTreeMap<TrialId, u32>,
    /// Trials that wait for another attempt since their running-time limit was cut too short.
    cut: BTreeSet<TrialId>,
    /// Known log streams of each trial.
    streams: BTreeMap<TrialId, BTreeSet<String>>,
    /// Number of streams of each trial that its last complete log read covered.
    read: BTreeMap<TrialId, u32>,
}

impl Book {
    /// Counts the facts of a step, before its rulings are checked.
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

    /// Checks a ruling that is already in the other books.
    pub(super) fn check_bounds(&mut self, ruling: &Ruling) -> Result<(), String> {
        match ruling {
            Ruling::Attempt(AttemptRuling::AttemptAwaited {
                why: RetryWhy::RuntimeCutTooShort, job, ..
            }) => {
                self.bounds.cut.insert(job.trial);
                Ok(())
            }
            Ruling::Attempt(AttemptRuling::AttemptAwaited {
                why: RetryWhy::NextInstances | RetryWhy::Quota | RetryWhy::Capacity | RetryWhy::MaxWait,
                ..
            }) => Ok(()),
            // The count starts again on demand.
            Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::OnDemand, job, .. }) => {
                self.bounds.retries.remove(&job.trial);
                Ok(())
            }
            Ruling::Attempt(AttemptRuling::AttemptAwaited { job, .. }) => {
                let retries = self.bounds.retries.entry(job.trial).or_default();
                *retries += 1;
                let most = self.case.choices.max_interruptions;
                let fine = *retries <= most;
                fine.then_some(()).ok_or_else(|| {
                    format!(
                        "MaxInterruptions: trial {} has {retries} further attempts, {most} are allowed",
                        job.trial
                    )
                })
            }
            // The count starts again at each rung.
            Ruling::Search(SearchRuling::TrialPromoted { trial, .. }) => {
                self.bounds.retries.remove(trial);
                Ok(())
            }
            Ruling::Attempt(AttemptRuling::TrialFinished { trial, .. }) => {
                self.bounds.cut.remove(trial);
                Ok(())
            }
            Ruling::Order(Order::Start { job, launch, .. }) => {
                self.bounds.cut.remove(&job.trial);
                let new = job.attempt == 1 && !launch.refit;
                self.check_cut_trials_first(new).and_then(|()| self.check_max_instances())
            }
            Ruling::Search(SearchRuling::TrialJudged { trial, .. }) => self.check_log_was_read(*trial),
            _ => Ok(()),
        }
    }

    /// Checks that no new trial starts while a trial waits whose limit was cut, if the cap can pay its longest job.
    fn check_cut_trials_first(&self, new: bool) -> Result<(), String> {
        let choices = &self.case.choices;
        let longest = choices.longest_seconds() + self.case.beyond_seconds();
        let worst = self.case.dearest(longest) + self.margin;
        let refit = if choices.refit { worst } else { 0 };
        let fits = self.limits.cap.is_none_or(|cap| self.money().0 + worst + refit <= cap);
        let trial = self.bounds.cut.first().filter(|_| new && fits);
        trial.map_or(Ok(()), |trial| {
            Err(format!(
                "MaxRuntime: a new trial started before trial {trial}, whose limit was cut too short"
            ))
        })
    }

    fn check_max_instances(&self) -> Result<(), String> {
        let Some(most) = self.case.max_instances() else { return Ok(()) };
        let running = self.jobs.values().filter(|job| !job.end_seen);
        let instances: u32 = running.map(|job| self.case.cluster(job.launch.instances).count).sum();
        (instances <= most)
            .then_some(())
            .ok_or_else(|| format!("MaxInstances: {instances} instances run, {most} are allowed"))
    }

    /// Checks that the stored log of an open job was read after a restart. The ranks of lines are only valid if no
    /// line was lost.
    fn check_log_was_read(&self, trial: TrialId) -> Result<(), String> {
        let streams = self.bounds.streams.get(&trial).map_or(0, BTreeSet::len);
        let read = self.bounds.read.get(&trial).copied().unwrap_or(0);
        let open = self.jobs.iter().any(|(key, job)| key.trial == trial && job.money == Money::Reserved);
        if self.case.has_epoch_numbers() || streams < 2 || !open {
            return Ok(());
        }
        let fine = usize::try_from(read).is_ok_and(|read| read >= streams);
        fine.then_some(()).ok_or_else(|| {
            format!("P6: trial {trial} was judged by rank after {read} of its {streams} known log streams were read")
        })
    }
}
