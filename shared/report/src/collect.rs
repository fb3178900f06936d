//! Folds the steps of a tuning into its document, and later steps into changes of the document.
//!
//! Makes no decisions, and reads no clock. The numbers of the head come from the response of Describe, so that the page
//! and the API show the same numbers.

mod head;
mod parameters;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tuning::log::fact::Recorded;
use tuning::log::ruling::{Order, Ruling};
use tuning::step::Step;
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use use_cases::describe::{self, Place};
use use_cases::ports::table::Table;
use use_cases::store::{Store, StoreError, Tuning};
use wire::describe::TuningJob;

use crate::document::{Delta, Document, Event, Head, Money, Trial};
use crate::event_text::decision_line;
use crate::follow::{Follower, What};
use trial::Record;

/// Maximum points of all curves. They fit a file of 10 MB.
const POINTS_MAX: u32 = 1_000_000;
/// Minimum points of a long curve.
const CURVE_POINTS_MIN: u32 = 40;
/// Maximum points of a curve. A chart is not much wider.
const CURVE_POINTS_MAX: u32 = 200;

/// A document that follows its tuning.
#[derive(Debug)]
pub struct Live {
    follower: Follower,
    trials: BTreeMap<TrialId, Record>,
    money: Money,
    events: Vec<Event>,
    head: Head,
    /// Changed trials, and the points and events before the first new one, since the last delta.
    changed: BTreeSet<TrialId>,
    money_known: usize,
    events_known: usize,
}

/// Reads the document of tuning `id`. Returns `None` if the tuning does not exist.
pub async fn read<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
) -> Result<Option<Document>, StoreError> {
    Ok(Live::open(store, place, id).await?.map(|live| live.document()))
}

impl Live {
    /// Returns the document of a tuning before its first step. `described` is its response of Describe.
    pub fn new(tuning: Arc<Tuning>, described: &TuningJob) -> Self {
        let created = tuning.definition.created.0;
        let follower = Follower::from_start(tuning);
        let head = head::head(&follower, described, &BTreeMap::new());
        let mut live = Self {
            follower,
            trials: BTreeMap::new(),
            money: Money::default(),
            events: Vec::new(),
            head,
            changed: BTreeSet::new(),
            money_known: 0,
            events_known: 0,
        };
        let ledger = &live.follower.state.money.ledger;
        let amounts = (ledger.spent, ledger.reserved, ledger.cap);
        live.note_money(created, amounts);
        live.money_known = live.money.len();
        live
    }

    /// Reads tuning `id` up to its last step. Returns `None` if the tuning does not exist.
    pub async fn open<T: Table>(
        store: &Store<T>,
        place: &Place,
        id: &str,
    ) -> Result<Option<Self>, StoreError> {
        let Some(tuning) = store.tuning(id).await? else { return Ok(None) };
        let Some(described) = describe::describe(store, place, id).await? else { return Ok(None) };
        let mut live = Self::new(tuning, &described);
        while let Some(steps) = Follower::steps_after(store, id, live.follower.step).await? {
            for step in &steps {
                live.take(step);
            }
        }
        // After the steps, so that its numbers are not older.
        let Some(described) = describe::describe(store, place, id).await? else { return Ok(None) };
        live.commit(&described);
        Ok(Some(live))
    }

    /// Takes the next steps. `described` is the response of Describe after them.
    pub fn advance<'s>(&mut self, steps: impl IntoIterator<Item = &'s Step>, described: &TuningJob) -> Delta {
        for step in steps {
            self.take(step);
        }
        self.commit(described)
    }

    /// Returns the whole document as of the last update.
    pub fn document(&self) -> Document {
        Document {
            head: self.head.clone(),
            trials: self.trials.keys().filter_map(|number| self.trial(*number)).collect(),
            money: self.money.clone(),
            events: self.events.clone(),
        }
    }

    /// Returns whether the tuning has ended, so that no further change follows.
    pub fn is_ended(&self) -> bool {
        self.follower.state.is_ended()
    }

    /// Returns whether the tuning has ended and all bills are booked, so that nothing more follows.
    pub fn is_settled(&self) -> bool {
        self.is_ended() && self.head.reserved == MicroUsd::default()
    }

    /// Returns the number of the last step.
    pub fn step(&self) -> u64 {
        self.head.step
    }

    fn commit(&mut self, described: &TuningJob) -> Delta {
        let after = self.head.step;
        let totals = &described.controller.totals;
        if !self.is_priced() && !totals.price_unknown {
            let amounts = (totals.spent_usd, totals.reserved_usd, totals.cap_usd);
            self.note_money(described.base.modified_ms, amounts);
        }
        self.head = head::head(&self.follower, described, &self.trials);
        let changed = std::mem::take(&mut self.changed);
        let delta = Delta {
            after,
            head: self.head.clone(),
            trials: changed.into_iter().filter_map(|number| self.trial(number)).collect(),
            money: self.money.since(self.money_known),
            events: self.events.get(self.events_known..).unwrap_or_default().to_vec(),
        };
        (self.money_known, self.events_known) = (self.money.len(), self.events.len());
        delta
    }

    fn trial(&self, number: TrialId) -> Option<Trial> {
        let record = self.trials.get(&number)?;
        Some(record.shown(number, &self.follower, self.points_max()))
    }

    /// Returns the maximum points of a curve. It depends only on the request, so that a curve has the same points in a
    /// document and in a delta.
    fn points_max(&self) -> usize {
        let jobs = self.follower.tuning.definition.planned_jobs().max(1);
        let most = (POINTS_MAX / jobs).clamp(CURVE_POINTS_MIN, CURVE_POINTS_MAX);
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    fn take(&mut self, step: &Step) {
        for recorded in &step.facts {
            self.note_fact(recorded);
        }
        for event in self.follower.take(step) {
            self.note_event(event.at, &event.what);
        }
        if self.is_priced() {
            let ledger = &self.follower.state.money.ledger;
            let amounts = (ledger.spent, ledger.reserved, ledger.cap);
            self.note_money(step.at.0, amounts);
        }
    }

    /// Returns whether the steps give the amounts. A reader of a stack does not know the price list of the stack. Then the
    /// amounts come from Describe, and bills of single jobs are unknown.
    fn is_priced(&self) -> bool {
        self.follower.tuning.definition.job.is_priced()
    }

    fn note_fact(&mut self, Recorded { at, fact, .. }: &Recorded) {
        let Some(job) = fact.job() else { return };
        self.changed.insert(job.trial);
        if let Some(record) = self.trials.get_mut(&job.trial) {
            record.note_fact(at.0.saturating_sub(self.follower.tuning.definition.created.0), fact);
        }
    }

    fn note_event(&mut self, at: i64, what: &What) {
        let at = at.saturating_sub(self.follower.tuning.definition.created.0);
        let trial = what.trial();
        self.changed.extend(trial);
        if let (Some(number), What::Ruled(ruling, job)) = (trial, what) {
            if let Ruling::Order(order @ Order::Start { .. }) = ruling {
                let definition = &self.follower.tuning.definition;
                self.trials.entry(number).or_insert_with(|| Record::started(definition, order));
            }
            if let Some(record) = self.trials.get_mut(&number) {
                record.rule(at, ruling, job.as_deref());
            }
        }
        if let Some(line) = decision_line(&self.follower.tuning.definition, what) {
            // The page shows the trial beside the text.
            let own = trial.map(|trial| format!("trial {trial}"));
            let text = own.as_ref().and_then(|own| line.strip_prefix(own.as_str())).unwrap_or(&line);
            let text = text.trim_start_matches([':', ' ']).to_owned();
            self.events.push(Event { at, trial: trial.map(|trial| trial.0), text });
        }
    }

    /// Adds a point if the amounts have changed.
    fn note_money(&mut self, at: i64, amounts: (MicroUsd, MicroUsd, Option<MicroUsd>)) {
        let at = at.saturating_sub(self.follower.tuning.definition.created.0);
        let Money { at: times, spent, reserved, cap } = &mut self.money;
        if (spent.last(), reserved.last(), cap.last())
            == (Some(&amounts.0), Some(&amounts.1), Some(&amounts.2))
        {
            return;
        }
        times.push(at);
        spent.push(amounts.0);
        reserved.push(amounts.1);
        cap.push(amounts.2);
    }
}
