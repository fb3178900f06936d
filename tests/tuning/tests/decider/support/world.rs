//! A simulated world in virtual time: it performs the ordered actions and delivers facts with [`Faults`].
//!
//! The safety phase has faults. When no event is left, the liveness phase begins: the world delivers the lost facts,
//! loses no further fact, and the tuning must end.

use std::collections::{BTreeMap, BTreeSet};

use search::seed::{Rng, child};
use tuning::change::fold::fold;
use tuning::decide::{deadline, next};
use tuning::definition::{Definition, JobLimits};
use tuning::log::fact::{Fact, JobEnd, JobKey, Recorded};
use tuning::log::pool::Retained;
use tuning::log::ruling::{GrantOrder, NoticeOrder, Order, PoolOrder, ReadOrder, Ruling};
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::{Millis, Time};

use super::build::CREATED;
use super::pools::Pools;
use super::run::Run;
use super::service::{Faults, Life, Work, program_epochs};

/// The number of events after which a history counts as hung, far above the longest history.
const EVENTS_MAX: u32 = 1_000_000;

#[derive(Debug)]
enum Event {
    /// The service starts an ordered job.
    Start(JobKey, JobLimits, Option<u32>),
    /// A fact happens at the service.
    Happens(JobKey, Fact),
    /// The job ends without a stop.
    Ends(JobKey),
    /// The description of the job is requested.
    Described(JobKey),
    /// The description of the job is read once more.
    Confirmed(JobKey),
    /// The warm pool of the job is read until it is closed.
    PoolRead(JobKey),
    /// A fact arrives.
    Arrives(Recorded),
}

/// The world around one tuning.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) run: Run,
    /// The real bills by job, in micro-dollars.
    pub(crate) bills: BTreeMap<JobKey, u64>,
    /// Facts in order of delivery.
    pub(crate) delivered: Vec<Recorded>,
    /// The number of facts that happened.
    pub(crate) happened: usize,
    /// Whether every action is performed twice.
    pub(crate) twice: bool,
    /// The number of the fact that is lost, in order of occurrence.
    pub(crate) lose: Option<usize>,
    /// The epochs that each job trains, in order of start.
    pub(crate) trained: Vec<(JobKey, Work)>,
    /// The rest of the month's cap, in micro-dollars.
    pub(crate) month_left: u64,
    /// The warm pools of the jobs.
    pub(crate) pools: Pools,
    keeps: BTreeMap<JobKey, u64>,
    faults: Faults,
    rng: Rng,
    now: i64,
    queue: BTreeMap<(i64, u64), Event>,
    scheduled: u64,
    lives: BTreeMap<JobKey, Life>,
    inbox: Vec<Recorded>,
    lost: Vec<Recorded>,
    answered: BTreeSet<String>,
    /// The next deadline, and the step after which it was computed: only a step changes it.
    due: (u64, Option<Time>),
}

impl World {
    pub(crate) fn new(run: Run, faults: Faults) -> Self {
        let mut world = Self {
            run,
            bills: BTreeMap::new(),
            delivered: Vec::new(),
            happened: 0,
            twice: false,
            lose: None,
            trained: Vec::new(),
            month_left: u64::MAX,
            pools: Pools::default(),
            keeps: BTreeMap::new(),
            faults,
            rng: Rng::new(child(faults.seed, "world", 0)),
            now: CREATED.0,
            queue: BTreeMap::new(),
            scheduled: 0,
            lives: BTreeMap::new(),
            inbox: Vec::new(),
            lost: Vec::new(),
            answered: BTreeSet::new(),
            due: (u64::MAX, None),
        };
        (world.run.answers_reads, world.run.confirms_bills) = (false, false);
        world.happened(Fact::TuningSubmitted, CREATED.0);
        world
    }

    /// Returns a world with a perfect service that delivers every fact at once and alone.
    pub(crate) fn perfect(definition: &Definition) -> Self {
        Self::new(Run::new(definition), Faults::default())
    }

    /// Schedules a stop request of the user `seconds` after submission.
    pub(crate) fn stop_at(&mut self, seconds: i64) {
        let at = CREATED + Millis(seconds * 1_000);
        let fact = Recorded { key: "stop".to_owned(), at, fact: Fact::StopRequested };
        self.schedule(at.0, Event::Arrives(fact));
    }

    /// Plays until the tuning has ended and all facts have arrived.
    #[track_caller]
    pub(crate) fn play(&mut self) {
        for _ in 0..EVENTS_MAX {
            if !self.advance() {
                self.run.check_end();
                return;
            }
        }
        panic!("the tuning does not end: {:#?}", self.run.state);
    }

    /// Plays one event, and returns whether there was an event.
    #[track_caller]
    pub(crate) fn advance(&mut self) -> bool {
        if self.inbox.is_empty() && self.run.is_sampled() && self.scheduled.is_multiple_of(3) {
            self.check_nothing_is_due_early();
        }
        let next = self.queue.first_key_value().map(|((at, _), _)| *at);
        let batch = self.rng.next_f64() < self.faults.batched && next.is_some();
        let due = |deadline: &Time| next.is_none_or(|next| *deadline < Time(next));
        if !self.inbox.is_empty() && !batch {
            self.flush();
        } else if let Some(deadline) = self.deadline().filter(due) {
            self.now = self.now.max(deadline.0);
            self.happened(Fact::TimePassed, self.now);
            self.flush();
        } else if let Some(((at, _), event)) = self.queue.pop_first() {
            self.now = self.now.max(at);
            self.event(event);
        } else if self.lost.is_empty() {
            assert!(self.run.state.is_ended(), "no event is left: {:#?}", self.run.state);
            return false;
        } else {
            self.faults = Faults { seed: self.faults.seed, ..Faults::default() };
            self.inbox.append(&mut self.lost);
            self.flush();
        }
        true
    }

    fn deadline(&mut self) -> Option<Time> {
        if self.due.0 != self.run.steps {
            self.due = (self.run.steps, deadline(&self.run.definition, &self.run.state));
        }
        self.due.1
    }

    /// Checks that no ruling is due before the deadline: the rule that makes it would not be woken.
    #[track_caller]
    fn check_nothing_is_due_early(&self) {
        let (definition, mut state) = (&self.run.definition, self.run.state.clone());
        let far = Time(self.now) + Millis::from_seconds(30 * 86_400);
        let until = deadline(definition, &state).map_or(far, |at| at - Millis(1));
        if until <= state.now {
            return;
        }
        let passed = Recorded { key: "early".to_owned(), at: until, fact: Fact::TimePassed };
        fold(definition, &mut state, &passed);
        let early = next(definition, &state);
        assert_eq!(early, None, "due before the deadline, at {until:?}: {:#?}", self.run.state);
    }

    fn schedule(&mut self, at: i64, event: Event) {
        self.scheduled += 1;
        self.queue.insert((at, self.scheduled), event);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Start(job, limits, level) => self.start(job, limits, level),
            Event::Happens(job, fact) => {
                if self.lives.get(&job).is_some_and(|life| self.now <= life.end_at) {
                    self.happened(fact, self.now);
                }
            }
            Event::Ends(job) => {
                let life = &self.lives[&job];
                // A stop changes the end, so an earlier event may be outdated.
                if life.end_at == self.now && !self.bills.contains_key(&job) {
                    let rate = self.run.definition.job.rate.map_or(0, |rate| rate.cost(1, 1, 0).0);
                    self.bills.insert(job, life.billable_seconds() * rate);
                    let fact = life.ended(job);
                    if let (Some(seconds), Some(_)) = (self.keeps.get(&job), life.started) {
                        self.pools.keep(job, self.now, *seconds);
                    }
                    self.happened(fact, self.now);
                }
            }
            Event::Described(job) => {
                let life = &self.lives[&job];
                let (mut fact, at) = (life.described(job), life.end_at);
                if let Fact::JobDescribed { billable_seconds, .. } = &mut fact
                    && self.rng.next_f64() < self.faults.risen
                {
                    *billable_seconds = billable_seconds.div_ceil(2);
                }
                self.happened(fact, at);
                self.schedule(self.now + 60_000, Event::Confirmed(job));
            }
            Event::Confirmed(job) => self.confirm(job),
            Event::PoolRead(job) => match self.pools.retained(job, self.now) {
                Some(seconds) => {
                    let retained = Retained::Seconds(seconds);
                    self.happened(Fact::PoolOver { job, retained }, self.now);
                }
                None => self.schedule(self.pools.until(job), Event::PoolRead(job)),
            },
            Event::Arrives(fact) => self.inbox.push(fact),
        }
    }

    /// Reads a bill once more, as the sweeper does: it reports a higher one, and confirms the booked one.
    fn confirm(&mut self, job: JobKey) {
        let state = &self.run.state;
        let Some((_, concluded)) = state.money.billing.iter().find(|(key, _)| *key == job) else {
            if state.job(job).is_some() {
                self.schedule(self.now + 60_000, Event::Confirmed(job));
            }
            return;
        };
        let seconds = self.lives[&job].billable_seconds();
        match concluded.bill.seconds() {
            Some(booked) if booked >= seconds => {
                self.happened(Fact::BillsConfirmed { bills: vec![(job, booked)] }, self.now);
            }
            Some(_) => self.happened(self.lives[&job].described(job), self.now),
            None => {}
        }
        self.schedule(self.now + 60_000, Event::Confirmed(job));
    }

    fn start(&mut self, job: JobKey, limits: JobLimits, level: Option<u32>) {
        if self.lives.contains_key(&job) {
            // The service already has a job of this name.
            return;
        }
        if self.rng.next_f64() < self.faults.refused {
            return self.happened(
                Fact::StartRefused { job, message: "no such role".to_owned(), name_is_foreign: false },
                self.now,
            );
        }
        let definition = &self.run.definition;
        let to = program_epochs(definition, job.trial.0, level);
        let work = Work { from: level.map_or(0, |_| self.checkpoint(job.trial)), to };
        let life = Life::new(&self.run.definition, &self.faults, job, (limits, work), self.now);
        if let Some(started) = life.started {
            self.pools.take(started.min(life.end_at));
        }
        if limits.keep_alive_seconds > 0 {
            self.keeps.insert(job, limits.keep_alive_seconds);
        }
        self.trained.push((job, work));
        for (at, fact) in life.happens.clone() {
            self.schedule(at, Event::Happens(job, fact));
        }
        self.schedule(life.end_at, Event::Ends(job));
        self.lives.insert(job, life);
    }

    /// Returns the epochs in the checkpoint of a trial; a lost checkpoint has fewer.
    fn checkpoint(&mut self, trial: TrialId) -> u32 {
        let from = self.lives.range(JobKey::new(trial.0, 0, 0)..);
        let of_trial = from.take_while(|(key, _)| key.trial == trial);
        let saved = of_trial.flat_map(|(_, life)| {
            life.checkpoints.iter().filter(|(at, _)| *at <= life.end_at).map(|(_, done)| *done)
        });
        let saved = saved.max().unwrap_or(0);
        if self.faults.unsaved > 0.0 && self.rng.next_f64() < self.faults.unsaved {
            return if self.rng.next_f64() < 0.5 { 0 } else { saved / 2 };
        }
        saved
    }

    /// Records a fact and schedules its arrival with faults.
    fn happened(&mut self, fact: Fact, at: i64) {
        let key = format!("{}#{at}", fact.job().map_or_else(String::new, |job| job.to_string()));
        let time = matches!(fact, Fact::TimePassed | Fact::TuningSubmitted);
        let recorded = Recorded { key, at: Time(at), fact };
        self.happened += 1;
        let chosen = self.lose == Some(self.happened);
        if self.rng.next_f64() < self.faults.duplicated {
            self.schedule(self.now + 7_000, Event::Arrives(recorded.clone()));
        }
        if time {
            self.inbox.push(recorded);
        } else if chosen || self.rng.next_f64() < self.faults.lost {
            self.lost.push(recorded);
        } else if self.rng.next_f64() < self.faults.delayed {
            let seconds = [3, 20, 90, 4_000]
                [usize::from(self.rng.next_f64() < 0.5) + usize::from(self.rng.next_f64() < 0.3)];
            self.schedule(self.now + seconds * 1_000, Event::Arrives(recorded));
        } else {
            self.inbox.push(recorded);
        }
    }

    /// Hands the inbox to the decider and performs what it orders.
    #[track_caller]
    fn flush(&mut self) {
        let facts = std::mem::take(&mut self.inbox);
        let rulings = self.run.take(&facts);
        self.delivered.extend(facts);
        for order in rulings.iter().filter_map(Ruling::order) {
            self.perform(order);
            if self.twice {
                self.perform(order);
            }
        }
    }

    fn perform(&mut self, order: &Order) {
        match order {
            Order::Start { job, limits, launch, .. } => {
                let mut at = self.now;
                if self.rng.next_f64() < self.faults.deferred {
                    at += 60_000;
                    let reason = "throttled".to_owned();
                    let limited = self.run.definition.job.choices().count() > 1 && self.rng.next_f64() < 0.5;
                    self.happened(
                        Fact::ActionDeferred {
                            job: *job,
                            not_before: Time(at),
                            reason,
                            quota_exceeded: limited,
                        },
                        self.now,
                    );
                }
                self.schedule(at, Event::Start(*job, *limits, launch.resource.map(|level| level.0)));
            }
            Order::Stop { job, .. } => self.stop(*job),
            Order::Read(ReadOrder::Bill { job }) => {
                if self.rng.next_f64() >= self.faults.unbilled {
                    self.schedule(self.now + 3_000, Event::Described(*job));
                }
            }
            Order::Read(ReadOrder::Rest { job, .. }) => self.happened(Fact::RestRead { job: *job }, self.now),
            Order::Read(ReadOrder::Log { job, streams }) => {
                self.read_log(*job);
                self.happened(Fact::LogRead { job: *job, streams: *streams }, self.now);
            }
            Order::Read(ReadOrder::Silence { job, since }) => {
                self.read_log(*job);
                self.happened(Fact::SilenceSeen { job: *job, since: *since }, self.now);
            }
            Order::Pool(PoolOrder::Read { job, last, .. }) if *last => self.read_pool(*job),
            Order::Pool(PoolOrder::Read { job, n, .. }) => match self.pools.retained(*job, self.now) {
                Some(_) => self.read_pool(*job),
                None => self.happened(Fact::PoolSeen { job: *job, n: *n }, self.now),
            },
            Order::Pool(PoolOrder::Release { job }) => {
                self.pools.release(*job, self.now);
                self.read_pool(*job);
            }
            Order::Grant(GrantOrder::Request { n, least, wanted }) => {
                // Like the service, the world answers each request once.
                if self.answered.insert(order.action()) {
                    let enough = self.month_left >= least.0;
                    let amount = if enough { wanted.0.min(self.month_left) } else { 0 };
                    self.month_left -= amount;
                    let (month, amount) = ("2026-11".to_owned(), MicroUsd(amount));
                    let reached = (!enough).then_some(100);
                    self.happened(Fact::BudgetGranted { n: *n, month, amount, reached }, self.now);
                }
            }
            Order::Grant(GrantOrder::Return { n, amount, moved_to, .. }) => {
                if self.answered.insert(order.action()) {
                    let returned = if moved_to.is_none() { amount.0 } else { 0 };
                    self.month_left = self.month_left.saturating_add(returned);
                    self.happened(Fact::GrantReturned { n: *n }, self.now);
                }
            }
            Order::Notice(
                NoticeOrder::CapReached { .. }
                | NoticeOrder::MonthCapReached { .. }
                | NoticeOrder::OverrunSeen
                | NoticeOrder::CapacityLacking { .. },
            ) => {
                self.happened(Fact::NoticeGiven { notice: order.action() }, self.now);
            }
            Order::Notice(NoticeOrder::TuningEnded { .. }) => {}
        }
    }

    /// Schedules the read of a warm pool; some reads never return.
    fn read_pool(&mut self, job: JobKey) {
        if self.rng.next_f64() >= self.faults.unbilled {
            self.schedule(self.now + 2_000, Event::PoolRead(job));
        }
    }

    /// Delivers all lines so far, with keys of their own.
    fn read_log(&mut self, job: JobKey) {
        let happens = self.lives.get(&job).map_or(&[][..], |life| &life.happens);
        for (at, fact) in happens.iter().filter(|(at, _)| *at <= self.now) {
            if matches!(fact, Fact::MetricsLogged { .. }) {
                self.inbox.push(Recorded {
                    key: format!("read#{job}#{at}"),
                    at: Time(*at),
                    fact: fact.clone(),
                });
            }
        }
    }

    fn stop(&mut self, job: JobKey) {
        let now = self.now;
        let Some(life) = self.lives.get_mut(&job) else {
            // The job is refused or not started: cancel its start.
            let before = self.queue.len();
            self.queue.retain(|_, event| !matches!(event, Event::Start(other, ..) if *other == job));
            if self.queue.len() < before {
                self.happened(Fact::JobNeverStarted { job }, now);
            }
            return;
        };
        if life.end_at > now + 2_000 && !self.bills.contains_key(&job) {
            life.end = JobEnd::Stopped;
            life.end_at = now + 2_000;
            let end_at = life.end_at;
            self.schedule(end_at, Event::Ends(job));
        }
        self.happened(Fact::StopAccepted { job }, now);
    }
}
