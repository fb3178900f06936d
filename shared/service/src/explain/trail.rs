//! The trail of one trial through the steps: each fact and each ruling about it becomes an entry.
//!
//! Keeps a state of its own in step with the decider's. Must never decide: what a ruling says is what was ruled.

use std::collections::{BTreeMap, BTreeSet};

use search::Configuration;
use tuning::fact::{Fact, JobKey, Recorded};
use tuning::fold::fold;
use tuning::ruling::Ruling;
use tuning::state::{Job, State};
use tuning::step::Step;
use wire::explain::{Comparison, Entry, EpochValue, Explanation, Kind};
use wire::names::training_job_name;

use super::jobs::Jobs;
use super::late::Late;
use super::{rung, words};
use crate::store::Tuning;

/// What there is to say of one fact or ruling.
pub(super) struct Said {
    pub(super) kind: Kind,
    pub(super) says: String,
    pub(super) job: Option<JobKey>,
    pub(super) rung: Option<Box<Comparison>>,
    pub(super) late: Vec<EpochValue>,
}

impl Said {
    pub(super) fn new(kind: Kind, job: Option<JobKey>, says: String) -> Self {
        Self { kind, says, job, rung: None, late: Vec::new() }
    }
}

/// The trail so far.
pub(super) struct Trail<'a> {
    pub(super) tuning: &'a Tuning,
    pub(super) trial: u32,
    /// Its bracket and configuration, as its first job was ordered with them.
    drawn: Option<(u32, Configuration)>,
    entries: Vec<Entry>,
    pub(super) jobs: Jobs,
    /// Trials that were let go on, by bracket and rung: the state keeps their number only.
    pub(super) went_on: BTreeMap<(u32, u32), BTreeSet<u32>>,
    pub(super) late: Late,
}

impl<'a> Trail<'a> {
    pub(super) fn new(tuning: &'a Tuning, trial: u32) -> Self {
        Self {
            tuning,
            trial,
            drawn: None,
            entries: Vec::new(),
            jobs: Jobs::default(),
            went_on: BTreeMap::new(),
            late: Late::default(),
        }
    }

    /// Brings `state` from before `step` to after it, and notes what it brought for the trial.
    pub(super) fn take(&mut self, state: &mut State, step: &Step) {
        let definition = &self.tuning.definition;
        for recorded in &step.facts {
            let ours = recorded.fact.job().is_some_and(|job| job.trial == self.trial);
            let before = self.live(state).filter(|_| ours).map(|(_, job)| job.clone());
            fold(definition, state, recorded);
            if ours {
                self.happened(state, recorded, before.as_ref(), step);
            }
        }
        for ruling in &step.rulings {
            let said = self.ruled(state, ruling);
            if let Some(said) = said {
                self.push(Some(step.n), step.at, said);
            }
            state.apply(definition, ruling);
            if let Some(trial) = state.trials.get(&self.trial) {
                self.late.decided(trial);
            }
        }
    }

    /// The trial's job that is not concluded.
    fn live<'s>(&self, state: &'s State) -> Option<(JobKey, &'s Job)> {
        let job = state.trials.get(&self.trial)?.job.as_ref()?;
        Some((JobKey { trial: self.trial, rung: job.rung, attempt: job.attempt }, job))
    }

    pub(super) fn push(&mut self, step: Option<u64>, at: i64, said: Said) {
        if let Some(last) = self.entries.last_mut().filter(|last| merges(last, step, &said)) {
            last.late_values.extend(said.late);
            last.says = words::late(&last.late_values);
            return;
        }
        let Said { kind, says, job, rung, late } = said;
        let training_job_name = job.map(|key| training_job_name(&self.tuning.id, key));
        self.entries.push(Entry { step, time: at, kind, says, training_job_name, rung, late_values: late });
    }

    /// What a fact about the trial changed, so far as people care; `before` is its job before the fact.
    fn happened(&mut self, state: &State, recorded: &Recorded, before: Option<&Job>, step: &Step) {
        if let (Fact::MetricsLogged { stream, lines, .. }, Some(trial)) =
            (&recorded.fact, state.trials.get(&self.trial))
        {
            let late = self.late.logged(stream, lines, trial);
            for said in late {
                self.push(Some(step.n), step.at, Said { job: recorded.fact.job(), ..said });
            }
        }
        let (Some((key, after)), Some(before)) = (self.live(state), before) else { return };
        let mut said = Vec::new();
        if after.started.is_some() && before.started.is_none() {
            said.push(Said::new(Kind::JobStarted, Some(key), "its instances began to run".to_owned()));
        }
        if after.interruptions > before.interruptions {
            said.push(Said::new(Kind::JobInterrupted, Some(key), words::interrupted(after.interruptions)));
        }
        if let Some((_, reason)) = after.deferred.as_ref().filter(|_| after.deferred != before.deferred) {
            said.push(Said::new(Kind::Deferred, Some(key), format!("it has to wait: {}", reason.trim())));
        }
        for said in said {
            self.push(Some(step.n), step.at, said);
        }
    }

    /// What `ruling`, made in `state`, says of the trial; `None` if it is about another one or about none. The one place
    /// that knows all rulings: a new one is one arm here.
    fn ruled(&mut self, state: &State, ruling: &Ruling) -> Option<Said> {
        let definition = &self.tuning.definition;
        let ours = |job: &JobKey| job.trial == self.trial;
        let say = |kind, job: &JobKey, says| Some(Said::new(kind, Some(*job), says));
        match ruling {
            Ruling::TrialJudged { trial, bracket, rung, verdict, .. } => {
                let went_on = self.went_on.entry((*bracket, *rung)).or_default();
                if verdict.goes_on {
                    went_on.insert(*trial);
                }
                if *trial != self.trial {
                    return None;
                }
                self.late.judged(ruling);
                let cost = self.jobs.cost_so_far(definition, state, self.trial);
                let compared = rung::comparison(state, definition, ruling, went_on, cost)?;
                let says = words::judged(&compared);
                let job = self.live(state).map(|(key, _)| key);
                Some(Said { rung: Some(Box::new(compared)), ..Said::new(Kind::Judged, job, says) })
            }
            Ruling::RungReached { .. } | Ruling::TrialPromoted { .. } | Ruling::ResourceRepeated { .. } => {
                self.promotion(state, ruling)
            }
            Ruling::PoolReadOrdered { .. }
            | Ruling::PoolReleaseOrdered { .. }
            | Ruling::PoolClosed { .. } => self.kept(ruling),
            Ruling::StartOrdered { job, bracket, configuration, limits, reservation, .. } if ours(job) => {
                self.drawn = Some((*bracket, configuration.clone()));
                let why = self.jobs.ordered(self.tuning, *job, state.now, *limits, *reservation);
                say(Kind::JobOrdered, job, words::ordered(definition, &why, *limits, *reservation))
            }
            Ruling::StopOrdered { job, why } if ours(job) => {
                say(Kind::StopOrdered, job, words::stop(*why, &state.status))
            }
            Ruling::BillOrdered { job } if ours(job) => {
                say(Kind::BillOrdered, job, words::BILL_ORDERED.to_owned())
            }
            Ruling::LogReadOrdered { job, .. } if ours(job) => {
                say(Kind::LogReadOrdered, job, words::LOG_READ_ORDERED.to_owned())
            }
            Ruling::LookOrdered { job, since } if ours(job) => {
                say(Kind::LogReadOrdered, job, words::look(*since))
            }
            Ruling::SettledInFull { job, amount } if ours(job) => {
                say(Kind::SettledInFull, job, words::settled(definition, *amount))
            }
            Ruling::AttemptAwaited { job, why, not_before } if ours(job) => {
                let ended = self.jobs.concluded(definition, state, *job);
                self.jobs.awaits(*why);
                say(Kind::AttemptAwaited, job, words::awaited(*why, *not_before, ended.as_ref()))
            }
            Ruling::TrialFinished { job, trial, how } if *trial == self.trial => {
                Some(self.finished(state, *job, how))
            }
            Ruling::StartOrdered { .. }
            | Ruling::StopOrdered { .. }
            | Ruling::BillOrdered { .. }
            | Ruling::LogReadOrdered { .. }
            | Ruling::LookOrdered { .. }
            | Ruling::SettledInFull { .. }
            | Ruling::AttemptAwaited { .. }
            | Ruling::TrialFinished { .. }
            | Ruling::GrantOrdered { .. }
            | Ruling::ReturnOrdered { .. }
            | Ruling::CapReached { .. }
            | Ruling::MonthCapReached { .. }
            | Ruling::OverrunSeen
            | Ruling::TuningEnding { .. }
            | Ruling::TuningEnded { .. } => None,
        }
    }

    /// What a ruling about kept instances says of the trial.
    fn kept(&self, ruling: &Ruling) -> Option<Said> {
        let (job, says) = match ruling {
            Ruling::PoolReleaseOrdered { job } => (*job, words::RELEASED.to_owned()),
            Ruling::PoolClosed { job, seconds, amount } => {
                (*job, words::kept(&self.tuning.definition, *seconds, *amount))
            }
            _ => return None,
        };
        (job.trial == self.trial).then(|| Said::new(Kind::InstancesKept, Some(job), says))
    }

    /// The explanation, `state` being that after the last step.
    pub(super) fn told(mut self, state: &State) -> Explanation {
        let definition = &self.tuning.definition;
        let live = self.live(state);
        if let Some((key, _)) = live {
            self.jobs.goes_on(definition, state, key);
        }
        let trial = state.trials.get(&self.trial);
        let (bracket, configuration) = self.drawn.unwrap_or_default();
        Explanation {
            tuning: definition.name.clone(),
            trial: self.trial,
            bracket,
            rungs: rung::levels(self.tuning, bracket),
            tuned_hyper_parameters: configuration.0,
            metric_name: self.tuning.request.objective_metric().to_owned(),
            direction: words::direction(definition.objective).to_owned(),
            training_jobs: self.jobs.list(),
            entries: self.entries,
            now: trial.map(|trial| words::standing(definition, state, trial)).or_else(|| {
                let waiting = state.waiting.get(&self.trial)?;
                Some(format!("it waits at rung {} to be promoted", waiting.next_rung))
            }),
        }
    }
}

/// Whether late values go on where the last entry ends, so that a slow end is one entry. A sentence that says more than
/// its values cannot be made anew from them.
fn merges(last: &Entry, step: Option<u64>, said: &Said) -> bool {
    let plain = |says: &str, values: &[EpochValue]| !values.is_empty() && says == words::late(values);
    last.step.is_some() == step.is_some()
        && plain(&last.says, &last.late_values)
        && plain(&said.says, &said.late)
}
