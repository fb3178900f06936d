//! A tuning under test: its state, its steps, and the checks after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tuning::change::fold::fold;
use tuning::decide::next_by_rule;
use tuning::definition::{Definition, Strategy};
use tuning::invariant;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{AttemptRuling, Order, ReadOrder, Ruling, SearchRuling};
use tuning::money::ledger::Ledger;
use tuning::scheduler::Parked;
use tuning::state::State;
use tuning::step::{Step, advance, load, replay};
use tuning::trial::summary::JobSummary;
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;

/// A tuning under test.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) definition: Definition,
    pub(crate) state: State,
    pub(crate) rulings: Vec<Ruling>,
    pub(crate) concluded: Vec<JobSummary>,
    pub(crate) log: Vec<Step>,
    pub(crate) steps: u64,
    /// The rows of the concluded jobs.
    rows: BTreeMap<JobKey, JobSummary>,
    /// The size of the largest checked state, in bytes of JSON.
    pub(crate) largest: usize,
    pub(crate) actions: BTreeSet<String>,
    /// Whether `rules` is kept.
    pub(crate) notes_rules: bool,
    /// The places of the rules that made the rulings.
    pub(crate) rules: BTreeSet<usize>,
    ended: BTreeSet<TrialId>,
    /// Whether each ordered read of a log is answered at once: the log has no further line.
    pub(crate) answers_reads: bool,
    /// Whether each bill is confirmed at once.
    pub(crate) confirms_bills: bool,
    /// One step in `every` is checked against the log, because the check costs time in proportion to the state.
    every: u64,
}

impl Run {
    pub(crate) fn new(definition: &Definition) -> Self {
        Self {
            definition: definition.clone(),
            state: State::new(definition),
            rulings: Vec::new(),
            concluded: Vec::new(),
            log: Vec::new(),
            rows: BTreeMap::new(),
            steps: 0,
            largest: 0,
            actions: BTreeSet::new(),
            notes_rules: false,
            rules: BTreeSet::new(),
            ended: BTreeSet::new(),
            answers_reads: true,
            confirms_bills: true,
            every: 1,
        }
    }

    /// Returns a run for long histories, which checks the log at one step in `every`.
    pub(crate) fn sampled(definition: &Definition, every: u64) -> Self {
        Self { every, ..Self::new(definition) }
    }

    /// Returns whether the next step is checked against the log.
    pub(crate) fn is_sampled(&self) -> bool {
        self.steps.is_multiple_of(self.every)
    }

    /// Takes `facts`, in as many steps as they need, and returns the rulings.
    ///
    /// After every step, checks P1, P5 (replay), P6, the invariants, and that no action is ordered twice. Checks also
    /// that the loaded and the stored state equal the live state, and that repeated facts change nothing.
    #[track_caller]
    pub(crate) fn take(&mut self, facts: &[Recorded]) -> Vec<Ruling> {
        let facts = &self.with_reads(facts);
        let mut rest = facts.as_slice();
        let mut rulings = Vec::new();
        loop {
            let before = self.is_sampled().then(|| self.state.clone());
            let noted = self.notes_rules.then(|| self.state.clone());
            let advanced = advance(&self.definition, &mut self.state, self.steps + 1, rest);
            rest = &rest[advanced.taken..];
            self.concluded.extend(advanced.concluded.iter().cloned());
            if let Some(step) = advanced.step {
                self.steps += 1;
                self.check_step(&step);
                if let Some(before) = noted {
                    self.note_rules(before, &step);
                }
                if let Some(before) = before {
                    self.check_cold(&before, &step);
                    self.check_log(before, &step);
                }
                self.write_rows(advanced.concluded, &step);
                rulings.extend(step.rulings.iter().cloned());
                self.log.push(step);
            } else if let Some(before) = before {
                assert_eq!(before, self.state, "without a step, the state stays the same");
            }
            if rest.is_empty() && !advanced.has_more {
                break;
            }
        }
        if self.is_sampled() {
            self.check_idempotence(facts);
        }
        self.rulings.extend(rulings.iter().cloned());
        let reads = rulings.iter().filter_map(Ruling::order).filter_map(|order| match order {
            Order::Read(ReadOrder::Rest { job, .. }) if self.answers_reads => {
                Some(rest_read(*job, self.state.now))
            }
            _ => None,
        });
        let read: Vec<_> = reads.collect();
        if !read.is_empty() {
            rulings.extend(self.take(&read));
        }
        rulings
    }

    /// Returns `facts` with the read of the log after each bill, if reads are answered at once, and its confirmation, if
    /// bills are confirmed at once.
    fn with_reads(&self, facts: &[Recorded]) -> Vec<Recorded> {
        let read = |recorded: &Recorded| match recorded.fact {
            Fact::JobDescribed { job, .. } if self.answers_reads => Some(rest_read(job, recorded.at)),
            _ => None,
        };
        let confirmed = |recorded: &Recorded| match recorded.fact {
            Fact::JobDescribed { job, billable_seconds, .. } if self.confirms_bills => {
                Some(bills_confirmed(recorded.at, vec![(job, billable_seconds)]))
            }
            _ => None,
        };
        facts.iter().flat_map(|fact| [Some(fact.clone()), read(fact), confirmed(fact)]).flatten().collect()
    }

    #[track_caller]
    fn check_step(&mut self, step: &Step) {
        for ruling in &step.rulings {
            self.check_ruling(ruling);
        }
        assert_eq!(invariant::broken(&self.definition, &self.state), None);
        let ledger = &self.state.money.ledger;
        let total = ledger.spent.plus(ledger.reserved);
        let within = |bound: Option<MicroUsd>| bound.is_none_or(|bound| total <= bound);
        // Money booked before the user lowered the cap, or above a reservation, stays booked.
        let stands = ledger.standing.is_some_and(|standing| total <= standing);
        assert!(stands || (within(ledger.cap) && within(ledger.granted)), "P1: {ledger:?}");
    }

    /// Notes which rules made the rulings of a step.
    fn note_rules(&mut self, mut state: State, step: &Step) {
        for fact in &step.facts {
            fold(&self.definition, &mut state, fact);
        }
        for ruling in &step.rulings {
            self.rules.extend(next_by_rule(&self.definition, &state).map(|(place, _)| place));
            state.apply(&self.definition, ruling);
        }
    }

    /// Writes the rows of the jobs of a step as the use case does.
    fn write_rows(&mut self, concluded: Vec<JobSummary>, step: &Step) {
        self.rows.extend(concluded.into_iter().map(|summary| (summary.job, summary)));
        for (job, parked) in step.rulings.iter().filter_map(|ruling| self.state.search.parked_late(ruling)) {
            let row = self.rows.get_mut(&job).expect("the last job has a row");
            row.curve = parked.curve.iter().map(|(epoch, value)| (*epoch, *value)).collect();
        }
    }

    /// Checks that a state from a snapshot, which lacks the configurations of waiting trials, comes to the same step with
    /// the rows of their jobs.
    #[track_caller]
    fn check_cold(&self, before: &State, step: &Step) {
        let mut cold: State = serde_json::from_str(&serde_json::to_string(before).unwrap()).unwrap();
        loop {
            let mut state = cold.clone();
            let advanced = advance(&self.definition, &mut state, step.n, &step.facts);
            let Some(job) = advanced.missing else {
                let text = |step: &Step| serde_json::to_string(step).unwrap();
                assert_eq!(advanced.step.as_ref().map(text), Some(text(step)), "a state from a snapshot");
                assert!(state == self.state, "cold:\n{state:#?}\nlive:\n{:#?}", self.state);
                return;
            };
            let row = self.rows.get(&job).unwrap_or_else(|| panic!("job {job} has no row"));
            cold.search.bring(job.trial, Arc::new(Parked::from(row)));
        }
    }

    /// Checks that the recorded step loads to the same state and replays to the same rulings.
    #[track_caller]
    fn check_log(&mut self, mut before: State, step: &Step) {
        let mut loaded = before.clone();
        load(&self.definition, &mut loaded, step);
        assert!(loaded == self.state, "loaded:\n{loaded:#?}\nlive:\n{:#?}", self.state);
        let again = replay(&self.definition, &mut before, step);
        let text = |rulings: &Vec<Ruling>| serde_json::to_string(rulings).unwrap();
        assert_eq!(text(&again), text(&step.rulings), "P5");
        let stored = serde_json::to_string(&self.state).unwrap();
        self.largest = self.largest.max(stored.len());
        let read: State = serde_json::from_str(&stored).unwrap();
        assert!(read == self.state, "the stored state equals the live state");
    }

    #[track_caller]
    fn check_ruling(&mut self, ruling: &Ruling) {
        if let Some(action) = ruling.order().map(Order::action) {
            assert!(self.actions.insert(action.clone()), "{action} is ordered twice");
        }
        match ruling {
            Ruling::TuningEnding { why: EndReason::Failed(why) } => {
                assert!(!why.contains("promise"), "{why}");
            }
            Ruling::Search(SearchRuling::TrialJudged { value, verdict, .. }) if verdict.continues => {
                assert!(value.is_some_and(f64::is_finite), "P6: {ruling:?}");
                // At a level that does not predict. The histories of the simulator recount which one does not.
                let is_passed = verdict.allowed == verdict.seen && self.state.search.passages.len() >= 4;
                let is_ahead = verdict.rank < allowed(&self.definition, verdict.seen);
                assert!(is_ahead || is_passed, "P6: {ruling:?}");
            }
            Ruling::Search(SearchRuling::TrialPromoted { value, verdict, .. }) => {
                assert!(value.is_some_and(f64::is_finite), "P6: {ruling:?}");
                assert!(
                    verdict.rank < verdict.allowed && verdict.allowed <= verdict.seen.max(1),
                    "P6: {ruling:?}"
                );
            }
            Ruling::Attempt(AttemptRuling::TrialFinished { trial, .. }) => {
                assert!(self.ended.insert(*trial), "trial {trial} ends twice");
            }
            Ruling::Search(
                SearchRuling::TrialDrawn { .. }
                | SearchRuling::TrialJudged { .. }
                | SearchRuling::RungReached { .. },
            )
            | Ruling::Attempt(
                AttemptRuling::ResourceRepeated { .. } | AttemptRuling::AttemptAwaited { .. },
            )
            | Ruling::Booking(_)
            | Ruling::TuningEnding { .. }
            | Ruling::Order(_) => {}
        }
    }

    #[track_caller]
    fn check_idempotence(&self, facts: &[Recorded]) {
        let mut again = self.state.clone();
        for fact in facts {
            assert!(!fold(&self.definition, &mut again, fact), "a repeated fact changes the state: {fact:?}");
        }
        assert!(again == self.state, "a repeated fact leaves the state the same");
    }

    /// Checks the conditions at the end of a tuning.
    #[track_caller]
    pub(crate) fn check_end(&self) {
        assert!(self.state.is_ended(), "{:#?}", self.state);
        assert_eq!(self.state.money.ledger.reserved.0, 0, "no money stays reserved");
        let Ledger { spent, granted, standing, .. } = self.state.money.ledger;
        let stands = standing == Some(spent);
        assert!(stands || granted.is_none_or(|granted| granted == spent), "unused money is returned");
        // Of several training job definitions, one may have started fewer trials.
        let has_begun = |trial: &TrialId| {
            let of = self.definition.definition_of(*trial);
            let is_refit = self.state.refit.is_some_and(|refit| refit.trial == *trial);
            *trial < self.state.search.next_trial_of(&self.definition, of) || is_refit
        };
        let begun: BTreeSet<_> = (0..self.state.search.next_trial.0).map(TrialId).filter(has_begun).collect();
        assert_eq!(self.ended, begun, "every trial ends");
    }

    /// Returns the curve of a live trial: (epoch, value).
    pub(crate) fn curve(&self, trial: u32) -> Vec<(u32, f64)> {
        let curve = &self.state.trials[&TrialId(trial)].curve;
        curve.iter().map(|(epoch, value)| (epoch.0, value.unwrap_or(f64::NAN))).collect()
    }
}

/// Returns the confirmation of these bills.
pub(crate) fn bills_confirmed(at: Time, bills: Vec<(JobKey, u64)>) -> Recorded {
    Recorded { key: format!("bills#{bills:?}"), at, fact: Fact::BillsConfirmed { bills } }
}

fn rest_read(job: JobKey, at: Time) -> Recorded {
    Recorded { key: format!("rest-read#{job}"), at, fact: Fact::RestRead { job } }
}

/// Returns how many of `seen` arrivals may continue.
fn allowed(definition: &Definition, seen: u32) -> u32 {
    match definition.strategy {
        Strategy::Median if seen <= 5 => seen,
        Strategy::Median => (seen - 1) / 2 + 1,
        Strategy::Hyperband { .. } | Strategy::Independent => (seen / definition.plan().eta()).max(1),
    }
}
