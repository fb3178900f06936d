//! Follows a tuning step by step: every step is read once, and what it brought is told as events.
//!
//! Keeps its own state, made from the same facts and rulings as the decider's; decides nothing.

use std::sync::Arc;

use service::ports::table::{Query, Table};
use service::store::{Loaded, Store, StoreError, Tuning};
use tuning::conclude::full_summary;
use tuning::fact::{Fact, JobKey, JobPhase};
use tuning::fold::fold;
use tuning::money::MicroUsd;
use tuning::ruling::Ruling;
use tuning::state::{Incumbent, State};
use tuning::step::Step;
use tuning::summary::JobSummary;
use wire::stored;

/// Steps read at once.
const STEPS_PER_PAGE: usize = 200;

/// A tuning as of the last step that was read.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) tuning: Arc<Tuning>,
    pub(crate) state: State,
    /// Number of that step.
    pub(crate) step: u64,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) struct Event {
    /// When, ms since the epoch.
    pub(crate) at: i64,
    /// What.
    pub(crate) what: What,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum What {
    /// Something was decided; with it the job that is over by it.
    Ruled(Ruling, Option<Box<JobSummary>>),
    /// The best value changed.
    Improved(Incumbent),
    /// Spot instances were taken away.
    Interrupted(JobKey),
    /// Something could not be done yet.
    Deferred(JobKey, String),
    /// The order to stop was taken.
    StopRequested,
    /// Limits were changed.
    LimitsChanged {
        /// The cap.
        cap: Option<MicroUsd>,
        /// Jobs at once.
        max_parallel: Option<u32>,
        /// Whether it is paused.
        paused: Option<bool>,
    },
}

impl Follower {
    /// Follows from now on.
    pub(crate) fn from_now(loaded: Loaded) -> Self {
        let Loaded { tuning, head, state } = loaded;
        Self { tuning, state, step: head.step }
    }

    /// Follows from the beginning.
    pub(crate) fn from_start(tuning: Arc<Tuning>) -> Self {
        let state = State::new(&tuning.definition);
        Self { tuning, state, step: 0 }
    }

    /// Reads the steps after the last one; for each, its events and the state after it go to `see`.
    pub(crate) async fn read<T: Table>(
        &mut self,
        store: &Store<T>,
        mut see: impl FnMut(&State, Vec<Event>),
    ) -> Result<(), StoreError> {
        let id = self.tuning.id.clone();
        let mut query = Query::prefix(stored::tuning_partition(&id), "STEP#", STEPS_PER_PAGE);
        query.after = Some(stored::step_key(&id, self.step).sk);
        loop {
            let page = store.table.query(&query).await?;
            for item in &page.items {
                let step = stored::step(item)?;
                let events = self.take(&step);
                see(&self.state, events);
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// The events of the steps after the last one.
    pub(crate) async fn news<T: Table>(&mut self, store: &Store<T>) -> Result<Vec<Event>, StoreError> {
        let mut news = Vec::new();
        self.read(store, |_, events| news.extend(events)).await?;
        Ok(news)
    }

    /// Takes the next step.
    pub(crate) fn take(&mut self, step: &Step) -> Vec<Event> {
        let definition = &self.tuning.definition;
        let best_before = self.state.incumbent.as_ref().map(|best| best.value.to_bits());
        let mut whats = Vec::new();
        for recorded in &step.facts {
            fold(definition, &mut self.state, recorded);
            whats.extend(told(&recorded.fact));
        }
        let best = self.state.incumbent.as_ref();
        let improved = best.filter(|best| Some(best.value.to_bits()) != best_before);
        whats.extend(improved.cloned().map(What::Improved));
        for ruling in &step.rulings {
            let job = ruling.concludes().and_then(|key| {
                let trial = self.state.trials.get(&key.trial)?;
                let job = trial.job.as_ref().filter(|job| job.is(key))?;
                Some(Box::new(full_summary(definition, key, trial, job)))
            });
            self.state.apply(definition, ruling);
            whats.push(What::Ruled(ruling.clone(), job));
        }
        self.step = step.n;
        whats.into_iter().map(|what| Event { at: step.at, what }).collect()
    }
}

/// The facts that are events by themselves.
fn told(fact: &Fact) -> Option<What> {
    match fact {
        Fact::StopRequested => Some(What::StopRequested),
        Fact::LimitsChanged { cap, max_parallel, paused } => {
            Some(What::LimitsChanged { cap: *cap, max_parallel: *max_parallel, paused: *paused })
        }
        Fact::JobStateChanged { job, phase: JobPhase::Interrupted, .. } => Some(What::Interrupted(*job)),
        Fact::ActionDeferred { job, reason, .. } => Some(What::Deferred(*job, reason.clone())),
        Fact::TuningSubmitted
        | Fact::TimePassed
        | Fact::JobStateChanged { .. }
        | Fact::MetricsLogged { .. }
        | Fact::JobDescribed { .. }
        | Fact::LogRead { .. }
        | Fact::JobStarted { .. }
        | Fact::JobSeen { .. }
        | Fact::StartRefused { .. }
        | Fact::JobNeverStarted { .. }
        | Fact::StopAccepted { .. }
        | Fact::SilenceSeen { .. }
        | Fact::BudgetGranted { .. }
        | Fact::GrantReturned { .. }
        | Fact::PoolSeen { .. }
        | Fact::PoolOver { .. }
        | Fact::NoticeGiven { .. } => None,
    }
}
