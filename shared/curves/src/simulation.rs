//! Plays one tuning: moves virtual time from event to event, passes facts to the decider, and performs its orders.

use std::collections::BTreeMap;

use tuning::decide::deadline;
use tuning::definition::Definition;
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::log::ruling::{NoticeOrder, Order, ReadOrder, Ruling};
use tuning::state::State;
use tuning::step::{Step, advance};
use tuning::unit::ids::TrialId;
use tuning::unit::time::{Millis, Time};

use crate::measure::{Measure, Outcome};
use crate::service::{Draws, Event, Job, Queue, noise};
use crate::setting::{Setting, milliseconds, seconds};
use crate::table::{Table, TableError};

/// Plays the tuning of `definition` against `table` to its end, with the sampler's seed `seed`.
pub fn simulate(
    table: &Table,
    definition: &Definition,
    setting: &Setting,
    seed: u64,
) -> Result<Outcome, TableError> {
    simulate_steps(table, definition, setting, seed, &mut |_, _| {})
}

/// Like [`simulate`], and shows each step of the tuning to `see`, with the state after it.
pub fn simulate_steps(
    table: &Table,
    definition: &Definition,
    setting: &Setting,
    seed: u64,
    see: &mut dyn FnMut(&Step, &State),
) -> Result<Outcome, TableError> {
    let mut definition = definition.clone();
    (definition.seed, definition.created) = (seed, Time::EPOCH);
    definition.limits.max_parallel = setting.workers;
    // Neither exists in virtual time.
    (definition.job.keep_alive_seconds, definition.grants) = (0, false);
    definition.others.iter_mut().for_each(|other| other.terms.keep_alive_seconds = 0);
    let mut simulation = Simulation {
        table,
        setting,
        state: State::new(&definition),
        measure: Measure::new(&definition, table, setting),
        draws: Draws::new(seed, setting),
        scale: table.time_scale(setting.mean_job_seconds),
        noise: setting.noise * table.spread(),
        definition,
        steps: 0,
        now: 0,
        queue: Queue::default(),
        jobs: BTreeMap::new(),
        rows: BTreeMap::new(),
        trained: BTreeMap::new(),
        inbox: Vec::new(),
        see,
    };
    simulation.play()?;
    Ok(simulation.measure.outcome(&simulation.state, seed))
}

struct Simulation<'t> {
    table: &'t Table,
    setting: &'t Setting,
    definition: Definition,
    state: State,
    measure: Measure<'t>,
    draws: Draws,
    /// Factor of recorded times.
    scale: f64,
    /// Standard deviation of the noise.
    noise: f64,
    steps: u64,
    /// Milliseconds since the submission.
    now: i64,
    queue: Queue,
    /// Running jobs, and ended ones whose bill is not known.
    jobs: BTreeMap<JobKey, Job>,
    /// The row that answers each trial.
    rows: BTreeMap<TrialId, usize>,
    /// The epochs in the checkpoint of each trial.
    trained: BTreeMap<TrialId, u32>,
    inbox: Vec<Recorded>,
    see: &'t mut dyn FnMut(&Step, &State),
}

impl Simulation<'_> {
    fn play(&mut self) -> Result<(), TableError> {
        let until = self.setting.until_seconds.map_or(i64::MAX, milliseconds);
        self.happens(Fact::TuningSubmitted);
        self.deliver()?;
        while !self.state.is_ended() {
            let deadline = deadline(&self.definition, &self.state).map(|at| at.0);
            let next = self.queue.next_at();
            let Some(at) = next.into_iter().chain(deadline).min() else { break };
            if at > until {
                self.measure.pass_to(until);
                return Ok(());
            }
            self.now = self.now.max(at);
            self.measure.pass_to(self.now);
            if next == Some(at) {
                if let Some(event) = self.queue.pop() {
                    self.event(event);
                }
            } else {
                self.happens(Fact::TimePassed);
            }
            self.deliver()?;
        }
        self.measure.pass_to(self.now);
        Ok(())
    }

    fn happens(&mut self, fact: Fact) {
        let key = format!("{}", self.measure.count_fact());
        self.inbox.push(Recorded { key, at: Time(self.now), fact });
    }

    /// Gives the decider all facts, and performs what it orders, until nothing is left to do now.
    fn deliver(&mut self) -> Result<(), TableError> {
        while !self.inbox.is_empty() {
            let mut facts = std::mem::take(&mut self.inbox);
            loop {
                let advanced =
                    advance(&self.definition, &mut self.state, self.steps.saturating_add(1), &facts);
                facts.drain(..advanced.taken.min(facts.len()));
                if let Some(step) = advanced.step {
                    self.steps = step.n;
                    (self.see)(&step, &self.state);
                    for ruling in &step.rulings {
                        self.measure.rule(ruling);
                        if let Ruling::Order(order) = ruling {
                            self.perform(order)?;
                        }
                    }
                }
                if facts.is_empty() && !advanced.has_more {
                    break;
                }
            }
        }
        Ok(())
    }

    fn perform(&mut self, order: &Order) -> Result<(), TableError> {
        match order {
            Order::Start { .. } => self.start(order)?,
            Order::Stop { job, .. } => {
                self.happens(Fact::StopAccepted { job: *job });
                self.end(*job, JobEnd::Stopped);
            }
            Order::Read(ReadOrder::Bill { job }) => {
                let ended = self.jobs.get(job).and_then(|job| job.ended).unwrap_or(self.now);
                let shows = ended.saturating_add(milliseconds(self.setting.settle_seconds));
                self.queue.push(shows.max(self.now), Event::Billed(*job));
            }
            Order::Read(ReadOrder::Rest { job, .. }) => self.happens(Fact::RestRead { job: *job }),
            Order::Read(ReadOrder::Log { job, streams }) => {
                self.happens(Fact::LogRead { job: *job, streams: *streams });
            }
            Order::Read(ReadOrder::Silence { job, since }) => {
                self.happens(Fact::SilenceSeen { job: *job, since: *since });
            }
            Order::Notice(
                NoticeOrder::CapReached { .. }
                | NoticeOrder::MonthCapReached { .. }
                | NoticeOrder::OverrunSeen
                | NoticeOrder::CapacityLacking { .. },
            ) => {
                self.happens(Fact::NoticeGiven { notice: order.action() });
            }
            Order::Pool(_) | Order::Grant(_) | Order::Notice(NoticeOrder::TuningEnded { .. }) => {}
        }
        Ok(())
    }

    fn start(&mut self, order: &Order) -> Result<(), TableError> {
        let Order::Start { job: key, bracket, configuration, limits, launch, .. } = order else {
            return Ok(());
        };
        self.happens(Fact::JobStarted { job: *key });
        if !self.rows.contains_key(&key.trial) {
            let point = self.table.point(configuration)?;
            let count = self.definition.job.instances(launch.instances).count;
            let fits = |row: usize| self.table.is_of(row, count);
            if !(0..self.table.rows.len()).any(fits) {
                return Err(TableError::UnknownCount(count));
            }
            let taken =
                |row: usize| self.setting.unique_rows && self.rows.values().any(|other| *other == row);
            let row = self
                .table
                .nearest(&point, |row| fits(row) && !taken(row))
                .ok_or(TableError::UsedUp(self.rows.len()))?;
            self.rows.insert(key.trial, row);
        }
        let outage = self.setting.capacity_outage.as_ref();
        let lacks = outage.is_some_and(|outage| outage.contains(&seconds(self.now)));
        let from = self.trained.get(&key.trial).copied().filter(|_| self.setting.resumes).unwrap_or(0);
        let to =
            launch.resource.map_or(self.table.max_resource, |level| level.0.min(self.table.max_resource));
        let job = Job::new(self.now, from, to, limits.max_runtime_seconds);
        self.jobs.insert(*key, job);
        if lacks {
            self.end(*key, JobEnd::CapacityError);
            return Ok(());
        }
        let is_cut =
            limits.max_runtime_seconds < self.definition.terms_on(launch.instances).max_runtime_seconds;
        let instances = self.definition.job.instances(launch.instances).count;
        self.measure.starts(*key, bracket.index(), configuration, (instances, is_cut));
        self.run(*key);
        Ok(())
    }

    /// Begins to run a job, or runs it again after an interruption.
    fn run(&mut self, key: JobKey) {
        let startup = self.draws.jittered(self.setting.startup_seconds);
        let interrupted = self.draws.until_interruption();
        let (now, resumes) = (self.now, self.setting.resumes);
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.run(now, milliseconds(startup), interrupted.map(milliseconds), resumes);
        let started = Some(Time(job.started));
        self.measure.runs(key, milliseconds(startup));
        self.happens(Fact::JobStateChanged {
            job: key,
            phase: JobPhase::Training,
            started,
            ended: None,
            message: None,
        });
        self.next_of(key);
    }

    /// Schedules what happens next to a running job: its next epoch, its limit or an interruption.
    fn next_of(&mut self, key: JobKey) {
        let Some(row) = self.rows.get(&key.trial).and_then(|row| self.table.rows.get(*row)) else { return };
        let epoch = milliseconds(self.draws.jittered(row.seconds_per_epoch * self.scale)).max(1);
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let (at, event) = job.next(self.now, epoch, key);
        self.queue.push(at, event);
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Epoch(key, generation) => {
                if self.is_current(key, generation) {
                    self.epoch(key);
                }
            }
            Event::Limit(key, generation) => {
                if self.is_current(key, generation) {
                    self.end(key, JobEnd::MaxRuntime);
                }
            }
            Event::Interrupted(key, generation) => {
                if self.is_current(key, generation) {
                    self.happens(Fact::JobStateChanged {
                        job: key,
                        phase: JobPhase::Interrupted,
                        started: None,
                        ended: None,
                        message: None,
                    });
                    self.run(key);
                }
            }
            Event::Ends(key, generation) => {
                if self.is_current(key, generation) {
                    self.end(key, JobEnd::Completed);
                }
            }
            Event::Billed(key) => self.bill(key),
        }
    }

    fn is_current(&self, key: JobKey, generation: u32) -> bool {
        self.jobs.get(&key).is_some_and(|job| job.generation == generation && job.ended.is_none())
    }

    /// Reports the value of the epoch that a job has just trained.
    fn epoch(&mut self, key: JobKey) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(&key) else { return };
        job.trains(now);
        let (epoch, line, stream, is_last) = (job.epoch, job.line, job.stream, job.epoch >= job.to);
        let best_trained = self.trained.entry(key.trial).or_default();
        *best_trained = (*best_trained).max(epoch);
        let index = usize::try_from(epoch).unwrap_or(usize::MAX).saturating_sub(1);
        let row = self.rows.get(&key.trial).and_then(|row| self.table.rows.get(*row));
        let Some(value) = row.and_then(|row| row.values.get(index).copied()) else { return };
        let loss = self.loss(key.trial);
        let value = value - loss;
        let reported = value + self.noise * noise(self.definition.seed, key.trial.0, epoch);
        let last = row.and_then(|row| row.values.last().copied()).map_or(value, |last| last - loss);
        self.measure.trains(key, epoch, (value, reported), last);
        let rule = self.definition.epochs;
        let own = if rule.per_attempt { line } else { epoch };
        let own = u64::from(own.saturating_sub(1).saturating_add(rule.base));
        let line = MetricLine {
            id: format!("{line:06}"),
            at: Time(now),
            index: rule.captured.then_some(own),
            value: Some(reported),
        };
        self.happens(Fact::MetricsLogged {
            job: key,
            stream: format!("{key}/{stream}"),
            lines: vec![line],
            began: None,
        });
        if is_last {
            let generation = self.jobs.get(&key).map_or(0, |job| job.generation);
            self.queue.push(now, Event::Ends(key, generation));
        } else {
            self.next_of(key);
        }
    }

    /// Returns what the values of a trial lack, by its training job definition.
    fn loss(&self, trial: TrialId) -> f64 {
        let share = self.setting.handicaps.get(self.definition.definition_of(trial).index());
        let sign = if self.table.maximize { 1.0 } else { -1.0 };
        share.map_or(0.0, |share| sign * share * self.table.spread())
    }

    fn end(&mut self, key: JobKey, end: JobEnd) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(&key).filter(|job| job.ended.is_none()) else { return };
        job.end(now, end);
        let started = (end != JobEnd::CapacityError).then_some(Time(job.started));
        self.measure.ends(key, end);
        self.happens(Fact::JobStateChanged {
            job: key,
            phase: JobPhase::Ended(end),
            started,
            ended: started.map(|_| Time(now)),
            message: None,
        });
    }

    fn bill(&mut self, key: JobKey) {
        let Some(job) = self.jobs.remove(&key) else { return };
        let (Some(end), Some(ended)) = (job.how, job.ended) else { return };
        let ran = end != JobEnd::CapacityError;
        let billable_seconds = if ran { Millis(ended - job.started).seconds_rounded_up() } else { 0 };
        self.happens(Fact::JobDescribed {
            job: key,
            end,
            started: ran.then_some(Time(job.started)),
            ended: ran.then_some(Time(ended)),
            billable_seconds,
            message: None,
            interruptions: job.stream,
        });
        self.happens(Fact::BillsConfirmed { bills: vec![(key, billable_seconds)] });
    }
}
