//! The trail of one trial through the steps: turns each fact and each ruling about the trial into an entry.
//!
//! Applies the steps to a state of its own. Makes no decisions: every entry follows from a recorded fact or ruling.

use std::collections::{BTreeMap, BTreeSet};

use search::{Configuration, Origin};
use tuning::change::fold::fold;
use tuning::job::Job;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::ruling::{AttemptRuling, Booking, Order, PoolOrder, ReadOrder, Ruling, SearchRuling};
use tuning::state::State;
use tuning::step::Step;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{BracketId, RungId, SizeId, TrialId};
use tuning::unit::time::Time;
use wire::explain::{Entry, EpochValue, Explanation, Kind};
use wire::names::training_job_name;

use super::entry::NewEntry;
use super::jobs::Jobs;
use super::late::Late;
use super::{rung, words};
use crate::store::Tuning;

/// The entries so far.
pub(super) struct Trail<'a> {
    pub(super) tuning: &'a Tuning,
    pub(super) trial: TrialId,
    /// Bracket, configuration and origin of the trial, from the order of its first job.
    drawn: Option<(BracketId, Configuration, Option<Origin>)>,
    /// The cluster size with which it was drawn, if it could not start at once.
    drawn_size: Option<SizeId>,
    entries: Vec<Entry>,
    pub(super) jobs: Jobs,
    /// Trials that continued, by level. The state keeps only their number.
    went_on: BTreeMap<Epochs, BTreeSet<TrialId>>,
    /// Trials that were promoted, by bracket and rung.
    pub(super) promoted: BTreeMap<(BracketId, RungId), BTreeSet<TrialId>>,
    pub(super) late: Late,
}

impl<'a> Trail<'a> {
    pub(super) fn new(tuning: &'a Tuning, trial: TrialId) -> Self {
        Self {
            tuning,
            trial,
            drawn: None,
            drawn_size: None,
            entries: Vec::new(),
            jobs: Jobs::default(),
            went_on: BTreeMap::new(),
            promoted: BTreeMap::new(),
            late: Late::default(),
        }
    }

    /// Applies `step` to `state`, and adds the entries about the trial.
    pub(super) fn take(&mut self, state: &mut State, step: &Step) {
        let definition = &self.tuning.definition;
        for recorded in &step.facts {
            let ours = recorded.fact.job().is_some_and(|job| job.trial == self.trial);
            let before = self.live(state).filter(|_| ours).map(|(_, job)| job.clone());
            fold(definition, state, recorded);
            if ours {
                self.take_fact(state, recorded, before.as_ref(), step);
            }
        }
        for ruling in &step.rulings {
            let entry = self.entry_for_ruling(state, ruling);
            if let Some(entry) = entry {
                self.push(Some(step.n), step.at, entry);
            }
            state.apply(definition, ruling);
            if let Some(trial) = state.trials.get(self.trial) {
                self.late.after_ruling(trial);
            }
        }
    }

    /// Returns the trial's job that is not concluded.
    fn live<'s>(&self, state: &'s State) -> Option<(JobKey, &'s Job)> {
        let job = state.trials.get(self.trial)?.job()?;
        Some((job.key(self.trial), job))
    }

    pub(super) fn push(&mut self, step: Option<u64>, at: Time, new: NewEntry) {
        if let Some(last) = self.entries.last_mut().filter(|last| new.continues(last, step)) {
            last.late_values.extend(new.late);
            last.says = words::late(&last.late_values);
            return;
        }
        let NewEntry { kind, says, job, rung, late } = new;
        let training_job_name = job.map(|key| training_job_name(&self.tuning.id, key));
        self.entries.push(Entry { step, time: at.0, kind, says, training_job_name, rung, late_values: late });
    }

    /// Adds the entries for the visible changes by a fact about the trial. `before` is its job before the fact.
    fn take_fact(&mut self, state: &State, recorded: &Recorded, before: Option<&Job>, step: &Step) {
        if let (Fact::MetricsLogged { stream, lines, .. }, Some(trial)) =
            (&recorded.fact, state.trials.get(self.trial))
        {
            let late = self.late.logged(stream, lines, trial);
            for entry in late {
                self.push(Some(step.n), step.at, NewEntry { job: recorded.fact.job(), ..entry });
            }
        }
        let (Some((key, after)), Some(before)) = (self.live(state), before) else { return };
        let mut entries = Vec::new();
        if after.started().is_some() && before.started().is_none() {
            entries.push(NewEntry::new(
                Kind::JobStarted,
                Some(key),
                "its instances started to run".to_owned(),
            ));
        }
        if after.interruptions() > before.interruptions() {
            entries.push(NewEntry::new(
                Kind::JobInterrupted,
                Some(key),
                words::interrupted(after.interruptions()),
            ));
        }
        if let Some((_, reason)) = after.deferred.as_ref().filter(|_| after.deferred != before.deferred) {
            entries.push(NewEntry::new(Kind::Deferred, Some(key), format!("deferred: {}", reason.trim())));
        }
        for entry in entries {
            self.push(Some(step.n), step.at, entry);
        }
    }

    /// Adds an entry for the log lines of a stored fact that no step contains.
    pub(super) fn take_unfolded(&mut self, recorded: &Recorded) {
        let Fact::MetricsLogged { job, stream, lines, .. } = &recorded.fact else { return };
        let unknown = lines.iter().filter(|line| !self.late.is_known(stream, line));
        let late: Vec<EpochValue> =
            unknown.map(|line| EpochValue { epoch: None, value: line.value }).collect();
        if !late.is_empty() {
            let says = words::after_the_end(late.len());
            let entry = NewEntry { late, ..NewEntry::new(Kind::LateResults, Some(*job), says) };
            self.push(None, recorded.at, entry);
        }
    }

    /// Returns the entry for `ruling`, made in `state`, or `None` if it is not about the trial. This and
    /// [`Self::entry_for_order`] are the only places that know all rulings: a new kind is one new arm.
    fn entry_for_ruling(&mut self, state: &State, ruling: &Ruling) -> Option<NewEntry> {
        let definition = &self.tuning.definition;
        let ours = |job: &JobKey| job.trial == self.trial;
        let entry = |kind, job: &JobKey, says| Some(NewEntry::new(kind, Some(*job), says));
        match ruling {
            Ruling::Search(SearchRuling::TrialJudged { trial, level, verdict, .. }) => {
                let went_on = self.went_on.entry(*level).or_default();
                if verdict.continues {
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
                Some(NewEntry { rung: Some(Box::new(compared)), ..NewEntry::new(Kind::Judged, job, says) })
            }
            Ruling::Search(SearchRuling::RungReached { .. } | SearchRuling::TrialPromoted { .. })
            | Ruling::Attempt(AttemptRuling::ResourceRepeated { .. }) => self.promotion(state, ruling),
            Ruling::Booking(Booking::PoolClosed { job, seconds, amount }) if ours(job) => {
                entry(Kind::InstancesKept, job, words::kept(definition, *seconds, *amount))
            }
            Ruling::Booking(Booking::BillBooked { job, seconds, amount }) if ours(job) => {
                self.jobs.booked(definition, *job, Some(*seconds), *amount);
                entry(Kind::BillBooked, job, words::booked(definition, *seconds, *amount))
            }
            Ruling::Booking(Booking::ReservationExtended { job, seconds, amount }) if ours(job) => {
                entry(Kind::ReservationExtended, job, words::extended(definition, *seconds, *amount))
            }
            Ruling::Booking(Booking::SettledInFull { job, amount }) if ours(job) => {
                if state.job(*job).is_none() {
                    self.jobs.booked(definition, *job, None, *amount);
                }
                entry(Kind::SettledInFull, job, words::settled(definition, *amount))
            }
            Ruling::Attempt(AttemptRuling::AttemptAwaited { job, why, not_before }) if ours(job) => {
                let ended = self.jobs.concluded(definition, state, *job);
                self.jobs.awaits(*why);
                entry(Kind::AttemptAwaited, job, words::awaited(*why, *not_before, ended.as_ref()))
            }
            Ruling::Attempt(AttemptRuling::TrialFinished { job, trial, how }) if *trial == self.trial => {
                Some(self.finished(state, *job, how))
            }
            Ruling::Search(SearchRuling::TrialDrawn { trial, configuration, .. }) => {
                if *trial == self.trial {
                    self.drawn_size = Some(definition.size_of(*trial, configuration));
                }
                None
            }
            Ruling::Booking(_)
            | Ruling::Attempt(AttemptRuling::AttemptAwaited { .. } | AttemptRuling::TrialFinished { .. })
            | Ruling::TuningEnding { .. } => None,
            Ruling::Order(order) => self.entry_for_order(state, order),
        }
    }

    /// Returns the entry for `order`, made in `state`, or `None` if it is not about the trial.
    fn entry_for_order(&mut self, state: &State, order: &Order) -> Option<NewEntry> {
        let definition = &self.tuning.definition;
        let ours = |job: &JobKey| job.trial == self.trial;
        let entry = |kind, job: &JobKey, says| Some(NewEntry::new(kind, Some(*job), says));
        match order {
            Order::Start { job, bracket, configuration, origin, limits, reservation, .. } if ours(job) => {
                // The order of a later job has no origin.
                let first = self.drawn.take().and_then(|(_, _, origin)| origin);
                self.drawn = Some((*bracket, configuration.clone(), origin.or(first)));
                let why = self.jobs.ordered(self.tuning, *job, state.now, *limits, *reservation);
                entry(Kind::JobOrdered, job, words::ordered(definition, &why, *limits, *reservation))
            }
            Order::Stop { job, why, .. } if ours(job) => {
                entry(Kind::StopOrdered, job, words::stop(*why, &state.status))
            }
            Order::Read(ReadOrder::Bill { job }) if ours(job) => {
                entry(Kind::BillOrdered, job, words::BILL_ORDERED.to_owned())
            }
            Order::Read(ReadOrder::Log { job, .. }) if ours(job) => {
                entry(Kind::LogReadOrdered, job, words::LOG_READ_ORDERED.to_owned())
            }
            Order::Read(ReadOrder::Rest { job, .. }) if ours(job) => {
                entry(Kind::LogReadOrdered, job, words::LOG_REST_ORDERED.to_owned())
            }
            Order::Read(ReadOrder::Silence { job, since }) if ours(job) => {
                entry(Kind::LogReadOrdered, job, words::silence_checked(*since))
            }
            Order::Pool(PoolOrder::Release { job }) if ours(job) => {
                entry(Kind::InstancesKept, job, words::RELEASED.to_owned())
            }
            Order::Start { .. }
            | Order::Stop { .. }
            | Order::Read(_)
            | Order::Grant(_)
            | Order::Notice(_)
            | Order::Pool(_) => None,
        }
    }

    /// Returns the explanation. `state` is the state after the last step.
    pub(super) fn into_explanation(mut self, state: &State) -> Explanation {
        let definition = &self.tuning.definition;
        let live = self.live(state);
        if let Some((key, _)) = live {
            self.jobs.update(definition, state, key);
        }
        let trial = state.trials.get(self.trial);
        let (bracket, configuration, origin) = self.drawn.unwrap_or_default();
        let (drawn_size, own_size) = (self.drawn_size, definition.size_of(self.trial, &configuration));
        Explanation {
            tuning: definition.name.clone(),
            trial: self.trial,
            definition: self.tuning.request.definition_name(self.trial.0).map(str::to_owned),
            bracket,
            rungs: rung::levels(self.tuning, bracket),
            rung_execution: rung::execution(self.tuning),
            drawn: words::drawn(definition, origin) + &words::resized(definition, drawn_size, own_size),
            tuned_hyper_parameters: configuration.0,
            metric_name: self.tuning.request.objective_metric().to_owned(),
            direction: format!("{:?}", definition.objective),
            training_jobs: self.jobs.list(),
            entries: self.entries,
            now: trial.map(|trial| words::standing(definition, state, trial)).or_else(|| {
                let waiting = state.search.waiting.get(&self.trial)?;
                Some(format!("it waits at rung {} for a promotion", waiting.rung))
            }),
        }
    }
}
