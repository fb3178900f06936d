//! Follows a tuning step by step and converts its facts and rulings to events.
//!
//! Keeps its own copy of the state, folded from the same facts and rulings as the decider's state. Makes no decisions.

use std::sync::Arc;

use tuning::change::fold::fold;
use tuning::log::fact::{Fact, JobKey, JobPhase};
use tuning::log::ruling::{AttemptRuling, Booking, Ruling, SearchRuling};
use tuning::state::State;
use tuning::state::search::Incumbent;
use tuning::step::Step;
use tuning::trial::summary::JobSummary;
use tuning::trial::summary::full_summary;
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use use_cases::ports::table::{Pages, Query, Table};
use use_cases::store::{Loaded, Store, StoreError, Tuning};
use wire::notice::Notice;
use wire::stored;

const STEPS_PER_PAGE: usize = 200;

/// A tuning after the last step that was read.
#[derive(Debug)]
pub struct Follower {
    /// Its immutable part.
    pub tuning: Arc<Tuning>,
    /// Its state after that step.
    pub state: State,
    /// Number of the last step.
    pub step: u64,
}

/// The first event that progress shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// All events since the submission.
    Submission,
    /// Only new events: an earlier process has shown the others.
    Now,
}

/// An event of a tuning.
#[derive(Debug)]
pub struct Event {
    /// Time, in milliseconds since 1970.
    pub at: i64,
    /// The kind of event and its data.
    pub what: What,
}

/// The kind of an event.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are rulings")]
pub enum What {
    /// A decision, and the job that it concludes.
    Ruled(Ruling, Option<Box<JobSummary>>),
    /// Another trial has the best value.
    Improved(Incumbent),
    /// A job lost its instances: SageMaker reclaimed them, or the local controller was interrupted.
    Interrupted(JobKey),
    /// An action of a job has to wait, with the reason.
    Deferred(JobKey, String),
    /// The logs of the tuning show a problem.
    Noticed(Box<Notice>),
    /// A user requested a stop.
    StopRequested,
    /// Limits were changed.
    LimitsChanged {
        /// New cost cap. `None` if unchanged.
        cap: Option<MicroUsd>,
        /// New maximum of parallel jobs. `None` if unchanged.
        max_parallel: Option<u32>,
        /// Whether the tuning is now paused. `None` if unchanged.
        paused: Option<bool>,
    },
}

impl What {
    /// Returns the trial that the event is about. `None` for the tuning.
    pub fn trial(&self) -> Option<TrialId> {
        match self {
            Self::Ruled(ruling, _) => ruling_trial(ruling),
            Self::Improved(best) => Some(best.trial),
            Self::Interrupted(job) | Self::Deferred(job, _) => Some(job.trial),
            Self::Noticed(_) | Self::StopRequested | Self::LimitsChanged { .. } => None,
        }
    }
}

/// Returns the trial that a ruling is about. `None` for the tuning.
fn ruling_trial(ruling: &Ruling) -> Option<TrialId> {
    match ruling {
        Ruling::Search(
            SearchRuling::TrialJudged { trial, .. }
            | SearchRuling::RungReached { trial, .. }
            | SearchRuling::TrialPromoted { trial, .. },
        )
        | Ruling::Attempt(AttemptRuling::TrialFinished { trial, .. }) => Some(*trial),
        Ruling::Attempt(
            AttemptRuling::ResourceRepeated { job, .. } | AttemptRuling::AttemptAwaited { job, .. },
        )
        | Ruling::Booking(
            Booking::ReservationExtended { job, .. }
            | Booking::SettledInFull { job, .. }
            | Booking::BillBooked { job, .. }
            | Booking::PoolClosed { job, .. },
        ) => Some(job.trial),
        Ruling::Order(order) => order.job().map(|job| job.trial),
        // The trial has no job yet.
        Ruling::Search(SearchRuling::TrialDrawn { .. }) | Ruling::TuningEnding { .. } => None,
    }
}

impl Follower {
    /// Follows from the current step.
    pub fn from_now(loaded: Loaded) -> Self {
        let Loaded { tuning, head, state } = loaded;
        Self { tuning, state: Arc::unwrap_or_clone(state), step: head.step }
    }

    /// Follows from the first step.
    pub fn from_start(tuning: Arc<Tuning>) -> Self {
        let state = State::new(&tuning.definition);
        Self { tuning, state, step: 0 }
    }

    /// Reads all new steps. Calls `see` with the state after each step and its events.
    pub async fn read<T: Table>(
        &mut self,
        store: &Store<T>,
        mut see: impl FnMut(&State, Vec<Event>),
    ) -> Result<(), StoreError> {
        let id = self.tuning.id.clone();
        let mut query = Query::prefix(stored::tuning_partition(&id), "STEP#", STEPS_PER_PAGE);
        query.after = Some(stored::step_key(&id, self.step).sk);
        let mut pages = Pages::of(query);
        while let Some(rows) = pages.next(&*store.table).await? {
            for row in &rows {
                let step = stored::step(row)?;
                let events = self.take(&step);
                see(&self.state, events);
            }
        }
        Ok(())
    }

    /// Returns the next steps of tuning `id` after step `n`, at most a page of them. `None` if there is none.
    pub async fn steps_after<T: Table>(
        store: &Store<T>,
        id: &str,
        n: u64,
    ) -> Result<Option<Vec<Step>>, StoreError> {
        let mut query = Query::prefix(stored::tuning_partition(id), "STEP#", STEPS_PER_PAGE);
        query.after = Some(stored::step_key(id, n).sk);
        let page = store.table.query(&query).await?;
        let steps: Vec<Step> = page.items.iter().map(stored::step).collect::<Result<_, _>>()?;
        Ok(Some(steps).filter(|steps| !steps.is_empty()))
    }

    /// Reads all new steps and returns their events.
    pub async fn news<T: Table>(&mut self, store: &Store<T>) -> Result<Vec<Event>, StoreError> {
        let mut news = Vec::new();
        self.read(store, |_, events| news.extend(events)).await?;
        Ok(news)
    }

    /// Applies the next step and returns its events.
    pub fn take(&mut self, step: &Step) -> Vec<Event> {
        let definition = &self.tuning.definition;
        let best_before = self.state.search.incumbent.as_ref().map(|best| best.trial);
        let noticed_before = Notice::of_tuning(definition, &self.state);
        let mut whats = Vec::new();
        for recorded in &step.facts {
            fold(definition, &mut self.state, recorded);
            whats.extend(fact_event(&recorded.fact));
        }
        let noticed = Notice::of_tuning(definition, &self.state).into_iter();
        let new = noticed.filter(|notice| noticed_before.iter().all(|known| known.code != notice.code));
        whats.extend(new.map(|notice| What::Noticed(Box::new(notice))));
        let best = self.state.search.incumbent.as_ref();
        // The same trial improves nearly every epoch.
        let improved = best.filter(|best| Some(best.trial) != best_before);
        whats.extend(improved.cloned().map(What::Improved));
        for ruling in &step.rulings {
            let job = ruling.concludes().and_then(|key| {
                let trial = self.state.trials.get(key.trial)?;
                let job = trial.job().filter(|job| job.is(key))?;
                Some(Box::new(full_summary(definition, key, trial, job)))
            });
            self.state.apply(definition, ruling);
            whats.push(What::Ruled(ruling.clone(), job));
        }
        self.step = step.n;
        whats.into_iter().map(|what| Event { at: step.at.0, what }).collect()
    }
}

/// Returns the event for a fact. `None` if users do not need to see it.
fn fact_event(fact: &Fact) -> Option<What> {
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
        | Fact::LogProblemSeen { .. }
        | Fact::FinalMetricsSeen { .. }
        | Fact::JobDescribed { .. }
        | Fact::BillsConfirmed { .. }
        | Fact::LogRead { .. }
        | Fact::RestRead { .. }
        | Fact::JobStarted { .. }
        | Fact::JobSeen { .. }
        | Fact::StartRefused { .. }
        | Fact::JobNeverStarted { .. }
        | Fact::StopAccepted { .. }
        | Fact::JobStopRequested { .. }
        | Fact::SilenceSeen { .. }
        | Fact::BudgetGranted { .. }
        | Fact::GrantReturned { .. }
        | Fact::PoolSeen { .. }
        | Fact::PoolOver { .. }
        | Fact::NoticeGiven { .. } => None,
    }
}
