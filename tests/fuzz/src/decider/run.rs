//! The tuning under test: its state, its steps, and the checks after each step.

use std::collections::BTreeSet;

use tuning::change::fold::fold;
use tuning::definition::Definition;
use tuning::invariant;
use tuning::log::fact::Recorded;
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{AttemptRuling, Order, Ruling, SearchRuling};
use tuning::state::{State, Status};
use tuning::step::{Advance, Step, advance, load, replay};
use tuning::unit::ids::TrialId;
use tuning::unit::limits::{MAX_FACTS_PER_STEP, MAX_RULINGS_PER_STEP};
use wire::stored::{self, ActionRow};

use super::facts::Maker;
use crate::check_row;

/// DynamoDB's maximum number of writes in a transaction.
const TRANSACTION_WRITES_MAX: usize = 100;
/// Maximum number of rounds of bills after the stop request. A bill can follow the order of another job.
const ROUNDS_MAX: usize = 10;

pub(super) struct Run {
    definition: Definition,
    pub(super) state: State,
    steps: u64,
    actions: BTreeSet<String>,
    finished: BTreeSet<TrialId>,
}

impl Run {
    pub(super) fn new(definition: Definition) -> Self {
        let state = State::new(&definition);
        Self { definition, state, steps: 0, actions: BTreeSet::new(), finished: BTreeSet::new() }
    }

    /// Applies a delivery, in as many steps as needed.
    pub(super) fn take(&mut self, facts: &[Recorded]) {
        let mut rest = facts;
        let ended = self.state.is_ended();
        loop {
            let before = self.state.clone();
            let advanced = advance(&self.definition, &mut self.state, self.steps + 1, rest);
            assert!(advanced.taken <= rest.len());
            assert!(
                advanced.taken > 0 || advanced.step.is_some() || rest.is_empty(),
                "the decider makes no progress"
            );
            rest = &rest[advanced.taken..];
            match &advanced.step {
                Some(step) => {
                    self.steps += 1;
                    assert!(!ended || step.rulings.is_empty(), "a ruling was made after the end");
                    self.check_bounds(step, &advanced);
                    self.check_rulings(step);
                    self.check_log(&before, step);
                }
                None => assert!(
                    before == self.state && !advanced.has_more,
                    "the state changed, or work is left, without a step"
                ),
            }
            if rest.is_empty() && !advanced.has_more {
                return;
            }
        }
    }

    /// Checks that the step, its actions and its summaries fit into rows and one transaction.
    fn check_bounds(&self, step: &Step, advanced: &Advance) {
        let id = self.definition.id();
        assert!(step.facts.len() <= MAX_FACTS_PER_STEP, "{} facts", step.facts.len());
        // Only a violated promise could add one more ruling.
        assert!(step.rulings.len() <= MAX_RULINGS_PER_STEP, "{} rulings", step.rulings.len());
        let row = stored::step_row(&id, step);
        check_row(&row);
        assert_eq!(stored::step(&row).as_ref(), Ok(step), "the step reads back the same");
        let orders = step.rulings.iter().filter_map(Ruling::order);
        let actions = orders.map(|order| ActionRow::pending(order.clone()).row(&id));
        let summaries = advanced.concluded.iter().map(|job| stored::job_row(&id, job));
        let rows: Vec<_> = actions.chain(summaries).collect();
        rows.iter().for_each(check_row);
        assert!(rows.len() + 2 <= TRANSACTION_WRITES_MAX, "{} rows in one transaction", rows.len());
    }

    /// Checks P1, P2 and P6.
    fn check_rulings(&mut self, step: &Step) {
        let failed = matches!(&self.state.status, Status::Ended { why: EndReason::Failed(_), .. });
        let broken = invariant::broken(&self.definition, &self.state).filter(|_| !failed);
        assert_eq!(broken, None);
        let ledger = &self.state.money.ledger;
        let total = ledger.spent.plus(ledger.reserved);
        // Amounts that were booked before the cap was lowered, or above a reservation, stay booked.
        let stands = ledger.standing.is_some_and(|standing| total <= standing);
        assert!(
            stands || ledger.cap.is_none_or(|cap| total <= cap),
            "P1: the booked amount exceeds the cap: {ledger:?}"
        );
        for ruling in &step.rulings {
            if let Some(action) = ruling.order().map(Order::action) {
                assert!(self.actions.insert(action.clone()), "P2: action {action} was ordered twice");
            }
            match ruling {
                Ruling::TuningEnding { why: EndReason::Failed(why) } => {
                    assert!(!why.contains("promise"), "{why}");
                }
                Ruling::Search(SearchRuling::TrialJudged { value, verdict, .. }) if verdict.continues => {
                    assert!(value.is_some_and(f64::is_finite), "P6: the verdict does not allow {ruling:?}");
                    let allowed = (verdict.seen / self.definition.plan().eta()).max(1);
                    assert!(verdict.rank < allowed, "P6: the verdict does not allow {ruling:?}");
                }
                Ruling::Search(SearchRuling::TrialPromoted { value, verdict, .. }) => {
                    assert!(value.is_some_and(f64::is_finite), "P6: the verdict does not allow {ruling:?}");
                    let allowed = verdict.allowed.min(verdict.seen.max(1));
                    assert!(verdict.rank < allowed, "P6: the verdict does not allow {ruling:?}");
                }
                Ruling::Attempt(AttemptRuling::TrialFinished { trial, .. }) => {
                    assert!(self.finished.insert(*trial), "trial {trial} ended twice");
                }
                _ => {}
            }
        }
    }

    /// Checks P5: the recorded step leads to the same state, and replay to the same rulings. Repeated facts change
    /// nothing.
    fn check_log(&self, before: &State, step: &Step) {
        let mut loaded = before.clone();
        load(&self.definition, &mut loaded, step);
        assert!(loaded == self.state, "the loaded step leads to another state");
        let mut again = before.clone();
        let rulings = replay(&self.definition, &mut again, step);
        let text = |rulings: &[Ruling]| serde_json::to_string(rulings).unwrap_or_default();
        assert_eq!(text(&rulings), text(&step.rulings), "P5: replay gives other rulings");
        for recorded in &step.facts {
            let changed = fold(&self.definition, &mut loaded, recorded);
            assert!(!changed, "a repeated fact has an effect: {recorded:?}");
        }
        assert!(loaded == self.state, "repeated facts change the state");
    }

    /// Stops the tuning, sends and confirms all bills, and reads all logs. The tuning must end, with an end for every trial and nothing reserved.
    pub(super) fn finish(&mut self, maker: &mut Maker) {
        self.take(&[maker.stop()]);
        for _ in 0..ROUNDS_MAX {
            if self.state.is_ended() {
                break;
            }
            let billed: Vec<_> = self.state.billed_jobs().map(|(key, _)| key).collect();
            let bills: Vec<_> = billed.into_iter().map(|job| maker.bill(job)).collect();
            self.take(&bills);
            let read: Vec<_> = self.state.jobs().map(|(key, _, _)| maker.read(key)).collect();
            self.take(&read);
            let booked =
                self.state.money.billing.iter().filter_map(|(key, job)| Some((*key, job.bill.seconds()?)));
            let confirmed = maker.confirmed(booked.collect());
            self.take(&[confirmed]);
        }
        assert!(self.state.is_ended(), "the tuning does not end: {:?}", self.state.status);
        assert_eq!(self.state.money.ledger.reserved.0, 0, "money is still reserved at the end");
        let begun: BTreeSet<_> = (0..self.state.search.next_trial.0).map(TrialId).collect();
        assert_eq!(self.finished, begun, "every trial reaches an end");
        let stored = serde_json::to_vec(&self.state).unwrap_or_default();
        let read = serde_json::from_slice::<State>(&stored).ok();
        assert!(read.as_ref() == Some(&self.state), "the state reads back the same");
    }
}
