//! The chain of the steps (P5), and what may occur only once (P2).

use std::collections::{BTreeMap, BTreeSet};

use crate::Findings;
use crate::log::{End, Fact, Job, Latest, Ruling, Step};
use crate::rows::{Limits, Tuning};

#[derive(Debug, Default)]
pub(crate) struct Chain {
    last: Option<(u64, i64)>,
    facts: BTreeSet<(Option<Job>, String)>,
    /// The orders, by the names of their rows.
    orders: BTreeSet<String>,
    /// The jobs that were ordered, and whether each is concluded.
    jobs: BTreeMap<Job, bool>,
    /// The jobs that run, as far as the facts show.
    running: BTreeSet<Job>,
    /// The jobs that never had instances, which are no training jobs of the tuning.
    void: BTreeSet<Job>,
    /// The jobs that logged a value.
    seen: BTreeSet<Job>,
    finished: BTreeSet<u32>,
    max_jobs: u32,
    max_parallel: Latest<u32>,
    is_paused: Latest<bool>,
    has_ended: bool,
}

impl Chain {
    pub(crate) fn new(limits: &Limits) -> Self {
        let (max_jobs, max_parallel) = (limits.max_jobs, Latest::new(limits.max_parallel));
        Self { max_jobs, max_parallel, ..Self::default() }
    }

    pub(crate) fn step(&mut self, step: &Step, findings: &mut Findings) {
        let (before, at) = self.last.unwrap_or((0, step.at));
        findings.check("P5", step.n == before + 1 && step.at >= at, || {
            format!("it follows step {before} of {at} ms: the steps have a gap or go back in time")
        });
        self.last = Some((step.n, step.at));
        for recorded in &step.facts {
            let is_new = self.facts.insert((recorded.fact.job(), recorded.key.clone()));
            findings.check("P2", is_new, || format!("the fact {:?} had an effect before", recorded.key));
            if let Some((job, end)) = recorded.fact.end_of() {
                self.running.remove(&job);
                let is_void = match (&recorded.fact, end) {
                    (_, None) => true,
                    (
                        Fact::JobDescribed(described),
                        Some(End::CapacityError | End::MaxWait | End::Stopped),
                    ) => {
                        let never_ran = described.started.is_none() && described.billable_seconds == 0;
                        never_ran && !self.seen.contains(&job)
                    }
                    _ => false,
                };
                if is_void {
                    self.void.insert(job);
                }
            }
            match &recorded.fact {
                Fact::LimitsChanged(changed) => {
                    changed
                        .max_parallel
                        .into_iter()
                        .for_each(|most| self.max_parallel.change(recorded, most));
                    changed.paused.into_iter().for_each(|paused| self.is_paused.change(recorded, paused));
                }
                Fact::MetricsLogged(logged) => _ = self.seen.insert(logged.job),
                _ => {}
            }
        }
    }

    pub(crate) fn ruling(&mut self, ruling: &Ruling, findings: &mut Findings) {
        findings.check("P2", !self.has_ended, || {
            format!("a decision after the end of the tuning: {}", ruling.name())
        });
        if let Some(action) = ruling.action() {
            let is_new = !self.orders.contains(&action);
            findings.check("P2", is_new, || format!("the action {action} is ordered twice"));
            self.orders.insert(action);
        }
        match ruling {
            Ruling::Start(start) => self.start(start.job, findings),
            Ruling::Stop(stop) => self.open(stop.job, "stopped", findings),
            Ruling::AttemptAwaited(of) => self.conclude(of.job, findings),
            Ruling::RungReached(reached) => {
                if let Some(job) = reached.job {
                    self.conclude(job, findings);
                }
            }
            Ruling::TrialFinished(finished) => {
                if let Some(job) = finished.job {
                    self.conclude(job, findings);
                }
                let is_new = self.finished.insert(finished.trial);
                findings.check("P2", is_new, || format!("trial {} finishes twice", finished.trial));
            }
            Ruling::TuningEnded(_) => {
                self.has_ended = true;
                let open: Vec<String> =
                    self.jobs.iter().filter(|(_, done)| !**done).map(|(job, _)| job.to_string()).collect();
                findings.check("P2", open.is_empty(), || {
                    format!("the tuning ends, and no step concludes {}", open.join(", "))
                });
            }
            _ => {}
        }
    }

    fn start(&mut self, job: Job, findings: &mut Findings) {
        let open = self.jobs.iter().find(|(other, concluded)| other.trial == job.trial && !**concluded);
        findings.check("P2", open.is_none(), || {
            format!("job {job} starts while job {} of its trial runs", open.map_or(job, |(open, _)| *open))
        });
        let is_over = self.finished.contains(&job.trial);
        findings.check("P2", !is_over, || format!("job {job} starts, although its trial is finished"));
        self.jobs.insert(job, false);
        self.running.insert(job);
        findings
            .check("P1", !self.is_paused.value, || format!("job {job} starts while the tuning is paused"));
        let launched = self.jobs.len().saturating_sub(self.void.len());
        for (limit, most, count) in [
            ("MaxNumberOfTrainingJobs", self.max_jobs, launched),
            ("MaxParallelTrainingJobs", self.max_parallel.value, self.running.len()),
        ] {
            findings.check("P1", crate::count(count) <= most.into(), || {
                format!("with job {job} there are {count}; {limit} allows {most}")
            });
        }
    }

    fn open(&self, job: Job, what: &str, findings: &mut Findings) {
        let is_open = self.jobs.get(&job) == Some(&false);
        findings.check("P2", is_open, || format!("job {job} is {what}, but it does not run"));
    }

    fn conclude(&mut self, job: Job, findings: &mut Findings) {
        self.open(job, "concluded", findings);
        self.running.remove(&job);
        self.jobs.insert(job, true);
    }

    pub(crate) fn end(&self, tuning: &Tuning, findings: &mut Findings) {
        let last = self.last.map_or(0, |(n, _)| n);
        findings.check("P5", last == tuning.last_step, || {
            format!("the last step is {last}, and the head has {}", tuning.last_step)
        });
        findings.check("P5", tuning.is_ended == self.has_ended, || {
            format!("the head says ended: {}; the steps say ended: {}", tuning.is_ended, self.has_ended)
        });
        let concluded: BTreeSet<Job> =
            self.jobs.iter().filter(|(_, concluded)| **concluded).map(|(job, _)| *job).collect();
        let summarized: BTreeSet<Job> = tuning.jobs.iter().map(|summary| summary.job).collect();
        let without = concluded.difference(&summarized);
        // The rows of a running tuning may be newer than its head.
        let too_early = summarized.difference(&concluded).filter(|_| tuning.is_ended);
        let apart: Vec<String> = without.chain(too_early).map(Job::to_string).collect();
        findings.check("P5", apart.is_empty(), || {
            format!("steps and summaries differ in whether these jobs are concluded: {}", apart.join(", "))
        });
    }
}
