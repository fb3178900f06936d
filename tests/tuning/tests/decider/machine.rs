//! A state machine test with random commands of the training service, its messages, the user and time. After every
//! command the decider must agree with a naive reference of the same tuning.
//!
//! Promises quoted: "P1 spent + reserved <= cap at every step", "P3 any order, duplication or loss of events ends in a
//! finished tuning", "P5 replay gives the same decisions" (`Run::take`), "P6 a rung never promotes more than it may,
//! and never a failure".

mod command;
mod reference;

use std::collections::BTreeMap;

use proptest::prelude::*;
use tuning::decide::deadline;
use tuning::definition::{Definition, Objective, Strategy as Resources};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::log::ruling::{NoticeOrder, Order, ReadOrder, Ruling};
use tuning::state::Status;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Millis;

use self::command::{Command, commands};
use self::reference::{Phase, RESERVED, Reference, SECOND};
use crate::support::build::*;
use crate::support::cases;
use crate::support::run::{Run, bills_confirmed};

/// The maximum number of epochs that a program runs.
const EPOCHS: u32 = 10;

fn definitions() -> impl Strategy<Value = Definition> {
    let resources = prop_oneof![
        5 => (1_u32..10, 2_u32..4).prop_map(|(max_resource, eta)| {
            comparing(1 + max_resource / 9, max_resource, eta)
        }),
        1 => Just(Resources::Independent),
        2 => Just(Resources::Median),
    ];
    let limits = (1_u32..10, 1_u32..5, prop::option::of(1_u64..8), 0_u32..3);
    let criteria = (
        prop::option::weighted(0.2, 5_i32..9),
        prop::option::weighted(0.2, 1_u32..5),
        prop::option::weighted(0.1, 100_u64..2_000),
    );
    (resources, limits, criteria, any::<bool>()).prop_map(|(strategy, limits, criteria, minimize)| {
        let (max_jobs, max_parallel, cap, max_interruptions) = limits;
        let mut definition = jobs(max_jobs, max_parallel);
        definition.strategy = strategy;
        // The shortest limit: the decider never shortens it, so each job reserves the same amount.
        definition.job.max_runtime_seconds = 60;
        definition.settings.max_interruptions = max_interruptions;
        definition.settings.max_diverged_epochs = max_parallel % 3;
        definition.cap = cap.map(|jobs| MicroUsd(jobs * RESERVED + 1_000));
        let sign = if minimize { -1.0 } else { 1.0 };
        definition.limits.target = criteria.0.map(|target| sign * f64::from(target));
        definition.limits.not_improving = criteria.1;
        definition.limits.max_runtime_seconds = criteria.2;
        if minimize {
            definition.objective = Objective::Minimize;
        }
        definition
    })
}

/// A job at the service.
#[derive(Debug)]
struct AtService {
    job: JobKey,
    emitted: u32,
    end: Option<(JobEnd, u64)>,
    /// Whether its bill was read once more: it is final then.
    confirmed: bool,
}

#[derive(Debug)]
struct Machine {
    run: Run,
    reference: Reference,
    /// Objective values, assigned to trials and epochs in a cycle.
    values: Vec<Option<i32>>,
    /// Seconds since the submission.
    now: i64,
    actions: Vec<Ruling>,
    service: Vec<AtService>,
    in_flight: Vec<Recorded>,
    arrived: Vec<Recorded>,
    lost: Vec<Recorded>,
    /// The booked and reserved sum, the worst case of a job, and the sum of the rises of bills, after the last delivery.
    sums: (u64, u64, u64),
}

/// Returns the place of the `index`-th item that `fits`, modulo the number of such items.
fn pick<T>(list: &[T], index: usize, fits: impl Fn(&T) -> bool) -> Option<usize> {
    let fitting: Vec<usize> = (0..list.len()).filter(|place| fits(&list[*place])).collect();
    (!fitting.is_empty()).then(|| fitting[index % fitting.len()])
}

impl Machine {
    fn new(definition: &Definition, values: Vec<Option<i32>>) -> Self {
        let mut run = Run::sampled(definition, 8);
        run.confirms_bills = false;
        Self {
            run,
            reference: Reference::new(definition),
            values,
            now: 0,
            actions: Vec::new(),
            service: Vec::new(),
            in_flight: vec![submitted()],
            arrived: Vec::new(),
            lost: Vec::new(),
            sums: (0, 0, 0),
        }
    }

    fn send(&mut self, fact: Fact) {
        self.in_flight.push(recorded(self.now, fact));
    }

    #[track_caller]
    fn apply(&mut self, command: &Command) {
        self.now += 1;
        let runs = |job: &AtService| job.end.is_none();
        match *command {
            Command::Perform(index) => {
                if let Some(index) = pick(&self.actions, index, |_| true) {
                    self.perform(index);
                }
            }
            Command::Refuse(index) => {
                let start = |action: &Ruling| matches!(action, Ruling::Order(Order::Start { .. }));
                if let Some(index) = pick(&self.actions, index, start) {
                    let job = job_of(&self.actions.remove(index));
                    self.in_flight.push(refused(self.now, job));
                }
            }
            Command::Defer(index, seconds, quota_exceeded) => {
                if let Some(index) = pick(&self.actions, index, |_| true) {
                    let job = job_of(&self.actions[index]);
                    let not_before = at(self.now + seconds);
                    self.send(Fact::ActionDeferred {
                        job,
                        not_before,
                        reason: "throttled".to_owned(),
                        quota_exceeded,
                    });
                }
            }
            Command::Emit(index, epochs) => {
                if let Some(index) = pick(&self.service, index, |job| runs(job) && job.emitted < EPOCHS) {
                    self.emit(index, epochs);
                }
            }
            Command::ChangeState(index, interrupted) => {
                if let Some(index) = pick(&self.service, index, runs) {
                    let new = if interrupted { JobPhase::Interrupted } else { JobPhase::Training };
                    self.in_flight.push(phase(self.now, self.service[index].job, new));
                }
            }
            Command::See(index) => {
                if let Some(index) = pick(&self.service, index, runs) {
                    self.send(Fact::JobSeen { job: self.service[index].job });
                }
            }
            Command::End(index, end, seconds) => {
                if let Some(index) = pick(&self.service, index, runs) {
                    self.end(index, end, seconds);
                }
            }
            Command::Describe(index) => {
                if let Some(index) = pick(&self.service, index, |job| !runs(job)) {
                    self.describe(self.service[index].job);
                }
            }
            Command::Raise(index, seconds) => {
                if let Some(index) = pick(&self.service, index, |job| !runs(job) && !job.confirmed) {
                    let job = &mut self.service[index];
                    job.end = job.end.map(|(end, billed)| (end, billed + seconds));
                    self.describe(self.service[index].job);
                }
            }
            Command::Confirm(index) => {
                if let Some(index) = pick(&self.service, index, |job| !runs(job)) {
                    self.confirm(self.service[index].job);
                }
            }
            ref other => self.apply_delivery(other),
        }
    }

    /// Applies a command on deliveries, the user or time.
    #[track_caller]
    fn apply_delivery(&mut self, command: &Command) {
        match *command {
            Command::Deliver(index, count) => {
                let first = index % self.in_flight.len().max(1);
                let end = (first + count).min(self.in_flight.len());
                let facts: Vec<Recorded> = self.in_flight.drain(first..end).collect();
                self.deliver(facts);
            }
            Command::Again(index) => {
                if let Some(index) = pick(&self.arrived, index, |_| true) {
                    self.deliver(vec![self.arrived[index].clone()]);
                }
            }
            Command::Drop(index) => {
                if let Some(index) = pick(&self.in_flight, index, |fact| fact.fact != Fact::TuningSubmitted) {
                    let fact = self.in_flight.remove(index);
                    self.lost.push(fact);
                }
            }
            Command::Stop => self.send(Fact::StopRequested),
            Command::Pass(seconds) => {
                self.now += seconds;
                self.deliver(vec![time_passed(self.now)]);
            }
            Command::Wait(seconds) => self.now += seconds,
            Command::DenyStart(index) => {
                if let Some(index) = pick(&self.service, index, |job| self.reference.exists(job.job)) {
                    self.deliver(vec![never_started(self.now, self.service[index].job)]);
                }
            }
            ref other => unreachable!("{other:?} is a command for the service"),
        }
    }

    fn perform(&mut self, index: usize) {
        match self.actions.remove(index) {
            Ruling::Order(Order::Start { job, .. }) => {
                self.service.push(AtService { job, emitted: 0, end: None, confirmed: false });
                self.send(Fact::JobStarted { job });
            }
            Ruling::Order(Order::Stop { job, .. }) => {
                let start = |action: &Ruling| matches!(action, Ruling::Order(Order::Start { job: other, .. }) if *other == job);
                if let Some(start) = self.actions.iter().position(start) {
                    self.actions.remove(start);
                    self.send(Fact::JobNeverStarted { job });
                } else if let Some(index) = self.service.iter().position(|other| other.job == job) {
                    self.send(Fact::StopAccepted { job });
                    if self.service[index].end.is_none() {
                        self.end(index, JobEnd::Stopped, 10);
                    }
                }
            }
            action => self.describe(job_of(&action)),
        }
    }

    fn emit(&mut self, index: usize, epochs: u32) {
        let AtService { job, emitted, .. } = self.service[index];
        let last = (emitted + epochs).min(EPOCHS);
        self.service[index].emitted = last;
        let metric = |epoch: u32| {
            let place = usize::try_from(job.trial.0 * 7 + epoch).unwrap() % self.values.len();
            let value = self.values[place].map(f64::from);
            MetricLine { value, ..line(self.now, &format!("{epoch:05}"), epoch.into(), 0.0) }
        };
        let batch = (emitted + 1..=last).map(metric).collect();
        self.in_flight.push(lines(self.now, job, &job.to_string(), batch));
    }

    fn end(&mut self, index: usize, end: JobEnd, seconds: u64) {
        let job = &mut self.service[index];
        // A job that emitted has run.
        job.end = Some((end, if job.emitted > 0 { seconds.max(1) } else { seconds }));
        let mut fact = ended(self.now, job.job, end);
        if let Fact::JobStateChanged { started, .. } = &mut fact.fact {
            *started = (job.emitted > 0).then_some(fact.at);
        }
        self.in_flight.push(fact);
    }

    fn describe(&mut self, job: JobKey) {
        let known = self.service.iter().find(|other| other.job == job).unwrap();
        let (end, seconds) = known.end.unwrap();
        self.in_flight.push(described(self.now, job, end, seconds));
    }

    /// Reads a bill once more, as the sweeper does: reports a higher one, or confirms the present one.
    fn confirm(&mut self, job: JobKey) {
        let known = self.service.iter_mut().find(|other| other.job == job).unwrap();
        known.confirmed = true;
        let (_, seconds) = known.end.unwrap();
        self.in_flight.push(bills_confirmed(at(self.now), vec![(job, seconds)]));
    }

    /// Delivers `facts` together and compares the decider with the reference.
    #[track_caller]
    fn deliver(&mut self, facts: Vec<Recorded>) {
        let before = self.run.state.now;
        let rulings = self.run.take(&facts);
        let now = self.run.state.now;
        let latest = facts.iter().map(|fact| fact.at).max().unwrap_or(before);
        assert!(
            now == before || now == latest || before < now && now < latest,
            "the clock must be the time of a fact"
        );
        let mut clock = before;
        for fact in &facts {
            self.reference.fold(fact, clock.0);
            clock = clock.max(fact.at);
        }
        for ruling in &rulings {
            self.reference.apply(ruling, now.0);
        }
        self.arrived.extend(facts);
        self.actions.extend(rulings.into_iter().filter(|ruling| {
            // Nothing happens after a notice, and reads were answered.
            let over = matches!(
                ruling,
                Ruling::Order(
                    Order::Notice(
                        NoticeOrder::OverrunSeen
                            | NoticeOrder::CapacityLacking { .. }
                            | NoticeOrder::CapReached { .. }
                            | NoticeOrder::TuningEnded { .. }
                    ) | Order::Read(ReadOrder::Rest { .. })
                )
            );
            ruling.order().map(Order::action).is_some() && !over
        }));
        self.compare(now.0);
    }

    #[track_caller]
    fn compare(&mut self, now: i64) {
        let (state, reference, sums) = (&self.run.state, &self.reference, &mut self.sums);
        reference.check_nothing_is_due(now);
        let ledger = &state.money.ledger;
        assert_eq!((ledger.spent.0, ledger.reserved.0), (reference.spent(), reference.reserved()));
        let total = reference.spent() + reference.reserved();
        // P1: only the excess or the later rise of a bill may exceed the cap.
        let (before, worst_case, risen) =
            std::mem::replace(sums, (total, reference.worst_case(), reference.risen));
        let grown = reference.risen - risen;
        let exempt = before > 0 && (total <= before + grown || worst_case < reference.worst_case());
        assert!(exempt || ledger.cap.is_none_or(|cap| total <= cap.0), "P1: {total} of {:?}", ledger.cap);
        let holding = state.jobs().filter(|(_, _, job)| job.holds_slot());
        let mut running = reference.running();
        running.sort_unstable();
        assert_eq!(holding.map(|(key, _, _)| key).collect::<Vec<_>>(), running);
        let mut may_run = reference.may_run();
        may_run.sort_unstable();
        let free = state.jobs().filter(|(_, _, job)| job.holds_slot() && job.stop.is_none());
        assert_eq!(free.map(|(key, _, _)| key).collect::<Vec<_>>(), may_run);
        assert_eq!(usize::try_from(state.results.launched).unwrap(), reference.launched());
        assert_eq!(state.trials.keys().map(|trial| trial.0).collect::<Vec<_>>(), reference.live());
        let incumbent = state.search.incumbent.as_ref().map(|best| (best.value, best.trial.0));
        assert_eq!(incumbent, reference.best);
        let status = match &state.status {
            Status::Active => Phase::Active,
            Status::Ending(why) => Phase::Ending(why.word()),
            Status::Ended { why, .. } => Phase::Ended(why.word()),
        };
        assert_eq!(status, reference.phase);
        let mut rungs = BTreeMap::new();
        for cohort in &state.search.cohorts {
            for (number, rung) in cohort.rungs().filter(|(_, rung)| !rung.arrivals.is_empty()) {
                let continued = usize::try_from(rung.continued).unwrap();
                rungs.insert((cohort.id.bracket.index(), number.index()), (continued, rung.arrivals.len()));
            }
        }
        assert_eq!(rungs, reference.rungs());
    }

    /// "P3 any order, duplication or loss of events and of stream records ends in a finished tuning": performs all
    /// ordered actions, delivers lost facts, runs programs to their end and moves time from deadline to deadline.
    #[track_caller]
    fn finish(&mut self) {
        for _ in 0..3_000 {
            self.now += 1;
            self.in_flight.append(&mut self.lost);
            if !self.in_flight.is_empty() {
                let facts = self.in_flight.drain(..1).collect();
                self.deliver(facts);
            } else if !self.actions.is_empty() {
                self.perform(0);
            } else if let Some(index) = pick(&self.service, 0, |job| job.end.is_none()) {
                if self.service[index].emitted < EPOCHS {
                    self.emit(index, 3);
                } else {
                    self.end(index, JobEnd::Completed, 60);
                }
            } else if self.run.state.is_ended() {
                return self.check_finished();
            } else if let Some((job, _)) =
                self.run.state.money.billing.iter().find(|(_, job)| job.bill.amount().is_some())
            {
                let job = *job;
                self.describe(job);
                self.confirm(job);
            } else {
                let at = deadline(&self.run.definition, &self.run.state)
                    .expect("P3: the tuning waits without a deadline");
                self.now = self.now.max((at - CREATED + Millis(999)).as_seconds());
                self.deliver(vec![time_passed(self.now)]);
            }
        }
        panic!("P3: the tuning did not end: {:#?}", self.run.state);
    }

    #[track_caller]
    fn check_finished(&mut self) {
        self.run.check_end();
        assert_eq!(self.reference.reserved(), 0);
        // P1, checked against the bills of the service: the ledger books at least each bill, except for overruns.
        for job in &self.service {
            let billed = job.end.map_or(0, |(_, seconds)| seconds * SECOND);
            let booked = self.reference.entries.iter().find(|entry| entry.job == job.job).unwrap().bill;
            assert!(
                booked.is_some_and(|booked| billed <= booked || billed > RESERVED),
                "{job:?}: {booked:?}"
            );
        }
        // An ended tuning ignores all repeated facts.
        let before = self.run.state.clone();
        let facts: Vec<Recorded> =
            self.arrived.iter().filter(|fact| fact.fact != Fact::TimePassed).cloned().collect();
        for fact in facts {
            assert_eq!(self.run.take(std::slice::from_ref(&fact)), []);
        }
        assert!(self.run.state == before);
    }
}

fn job_of(action: &Ruling) -> JobKey {
    match action {
        Ruling::Order(
            Order::Start { job, .. } | Order::Stop { job, .. } | Order::Read(ReadOrder::Bill { job }),
        ) => *job,
        _ => panic!("{action:?} has no job in these tests"),
    }
}

proptest! {
    #![proptest_config(cases(400))]

    /// After every command the decider and the reference have the same money, jobs, trials, incumbent, rungs and
    /// status. The reference allows each ruling and finds no ruling due. Then the tuning ends.
    #[test]
    fn after_every_command_the_decider_agrees_with_a_naive_reference(
        definition in definitions(),
        values in prop::collection::vec(prop::option::weighted(0.9, -4_i32..10), 1..30),
        commands in commands(),
    ) {
        let mut machine = Machine::new(&definition, values);
        for command in &commands {
            machine.apply(command);
        }
        machine.finish();
    }
}
