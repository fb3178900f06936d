//! Plays one history in one thread: takes events from the queue one by one and polls the processes of the functions.
//!
//! A process is the future of a use case with a warm store and a clock of its own. At each port call other processes
//! run, and the process may crash. There is no async runtime: a process is polled only when its wake-up is due.

mod invoke;
mod look;

pub(crate) use invoke::actuator;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use tuning::log::fact::JobKey;
use use_cases::store::Store;

use crate::case::Case;
use crate::check;
use crate::dice::Dice;
use crate::fault::Kind;
#[cfg(feature = "planted")]
use crate::mutants::Mutant;
use crate::plan::{HOUR, MINUTE, Plan, Starts, TimeLimits};
use crate::report::History;
use crate::site::{Function, Site};
use crate::tally::LogWriter;
use crate::world::ports::Port;
use crate::world::queue::{Consumer, Delivery, Event, Record};
use crate::world::{Shared, World, lock};

/// How long an idle stack is played after all tunings have ended, so that idle minutes are checked, in ms.
const IDLE_MS: i64 = 4 * HOUR;
/// A history has at most this many events, and so many for each job.
const EVENTS_MIN: u64 = 200_000;
const EVENTS_PER_JOB: u64 = 20_000;
/// How much of that time counts in the tally, in ms.
const COUNTED_IDLE_MS: i64 = 2 * HOUR;

/// The ports of a process, with the planted bug that is on.
#[cfg(feature = "planted")]
type Ports = Mutant<Port>;
#[cfg(not(feature = "planted"))]
type Ports = Port;

/// The state that a process keeps between two invocations.
#[derive(Debug)]
struct Process {
    store: Arc<Store<Ports>>,
    port: Ports,
    /// Distinguishes it from other processes.
    number: u64,
}

/// The task of a process. It is scheduled again when the process crashes.
#[derive(Debug, Clone)]
enum Task {
    Submit(usize),
    UserStop(usize),
    UserStopJob(usize, JobKey),
    UserChange(usize, usize, bool),
    Look(usize),
    Delivery(Delivery),
    Batch(Consumer, usize),
    Repeat,
    Sweep,
}

/// The outcome of an invocation.
enum Outcome {
    Done,
    /// The task must be retried.
    Retry,
    /// The sequence numbers of failed records in the response to a batch.
    Failed(Vec<String>),
}

type Running = Pin<Box<dyn Future<Output = (Process, Outcome)>>>;

/// A history that is being played.
struct Runner {
    world: Shared,
    running: BTreeMap<u64, (Function, Task, Running)>,
    /// Start time of each running process.
    began: BTreeMap<u64, i64>,
    idle: BTreeMap<Function, Vec<Process>>,
    started: u64,
    events: u64,
    /// Time since which the stack is idle.
    idle_since: Option<i64>,
    dice: Dice,
}

/// A history to play.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The seed of all draws.
    pub seed: u64,
    /// The fault plan.
    pub plan: Plan,
    /// The tunings.
    pub cases: Vec<Case>,
    /// Whether to write a trace.
    pub trace: bool,
}

impl Run {
    /// Draws the whole history from `seed`.
    pub fn drawn(seed: u64) -> Self {
        Self { seed, plan: Plan::drawn(seed), cases: Case::all_drawn(seed, false), trace: false }
    }

    /// Draws the history of `seed` without the features of tunings that were added later. Old seeds found their
    /// failures in such histories.
    #[must_use]
    pub fn drawn_plain(seed: u64) -> Self {
        let run = Self::drawn(seed);
        Self { cases: Case::all_drawn(seed, true), plan: Plan { starts: Starts::Here, ..run.plan }, ..run }
    }

    /// Draws the history of `seed` with more frequent faults at `site`.
    pub fn focused(seed: u64, site: Site) -> Self {
        let run = Self::drawn(seed);
        Self { plan: run.plan.focused(site), ..run }
    }

    /// Plays the history.
    pub fn history(self) -> History {
        self.play(None)
    }

    /// Plays the history and counts the log bytes of the functions with `log_writer`.
    pub fn history_with_logs(self, log_writer: Box<dyn LogWriter>) -> History {
        self.play(Some(log_writer))
    }

    fn play(self, log_writer: Option<Box<dyn LogWriter>>) -> History {
        let world = World { log_writer, ..World::new(self.seed, self.plan, self.cases, self.trace) };
        Runner::new(self.seed, Arc::new(Mutex::new(world))).run(self.seed)
    }
}

impl Runner {
    fn new(seed: u64, world: Shared) -> Self {
        Self {
            world,
            running: BTreeMap::new(),
            began: BTreeMap::new(),
            idle: BTreeMap::new(),
            started: 0,
            events: 0,
            idle_since: None,
            dice: Dice::new(seed, "runner", 0),
        }
    }

    fn run(mut self, seed: u64) -> History {
        let limit = self.prepare();
        let most = self.events_max();
        let mut counted = false;
        loop {
            if self.events >= most {
                let mut world = lock(&self.world);
                let now = world.now;
                world.check.violation(now, &format!("P3: the history is not over after {most} events"));
                break;
            }
            let next = lock(&self.world).queue.pop();
            let Some((at, event)) = next.filter(|(at, _)| *at <= limit) else { break };
            lock(&self.world).now = at;
            self.events += 1;
            self.step(event);
            // What follows a violation shows nothing, and may have no end.
            if lock(&self.world).check.is_violated() {
                break;
            }
            let idle_ms = self.idle_since.map_or(0, |since| at - since);
            if idle_ms < COUNTED_IDLE_MS {
                let mut world = lock(&self.world);
                if self.idle_since == Some(at) {
                    let busy_ms = at - world.start;
                    world.tally.begin_idle(busy_ms);
                    if let Some(log_writer) = &mut world.log_writer {
                        log_writer.begin_idle();
                    }
                }
            }
            if idle_ms >= COUNTED_IDLE_MS && !counted {
                counted = true;
                let mut world = lock(&self.world);
                world.tally_at_end = world.tally.clone();
            }
            if idle_ms >= IDLE_MS && self.running.is_empty() {
                break;
            }
        }
        let mut world = lock(&self.world);
        if !world.check.is_violated() {
            check::end::check(&mut world);
        }
        History::of(seed, self.events, &mut world)
    }

    /// Returns the number of events by which the history must be over: many times that of any history so far. A function
    /// that repeats its work without end would fill the time up to the limit.
    fn events_max(&self) -> u64 {
        let jobs = lock(&self.world).cases.iter().map(|case| u64::from(case.jobs_max())).sum::<u64>();
        EVENTS_MIN + jobs * EVENTS_PER_JOB
    }

    /// Puts the first events into the queue. Returns the time by which the history must be over.
    fn prepare(&mut self) -> i64 {
        let mut world = lock(&self.world);
        let (start, safety) = (world.start, world.plan.safety_ms);
        let mut first = vec![(start, Event::Sweep), (start + safety, Event::FaultsEnd)];
        let mut bound = 12 * HOUR + world.cases.iter().map(|case| case.submit_at).max().unwrap_or(0);
        for (index, case) in world.cases.iter().enumerate() {
            first.push((start + case.submit_at, Event::Submit(index)));
            first.extend(case.stop_at.map(|at| (start + at, Event::UserStop(index))));
            first.extend(case.stop_jobs_at.iter().map(|at| (start + at, Event::UserStopJob(index))));
            first.extend(case.looks_at.iter().map(|at| (start + at, Event::Look(index))));
            first.extend(
                case.changes
                    .iter()
                    .enumerate()
                    .map(|(n, change)| (start + change.at, Event::UserChange(index, n, false))),
            );
            first.extend(case.submit_again_at.map(|at| (start + at, Event::Submit(index))));
            // Enough time for all jobs one after another, each at its longest and with its back-off.
            bound += i64::from(case.jobs_max()) * (case.job_ms_max + 90 * MINUTE) + case.paused_ms();
        }
        for (at, event) in first {
            world.queue.push(at, event);
        }
        start + safety.max(world.plan.outages_end()) + bound
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Wake(task) => self.poll(task),
            Event::TimeOut(task) => self.time_out(task),
            Event::CreateLands(function, request) => lock(&self.world).create_lands(function, &request),
            Event::Tick { job, generation, tick } => lock(&self.world).tick(job, generation, tick),
            Event::Flush { job, stream } => lock(&self.world).flush(job, stream),
            Event::FaultsEnd => lock(&self.world).faults_end(),
            Event::Submit(case) => self.begin(Function::Api, Task::Submit(case), None),
            Event::UserStop(case) => self.begin(Function::Api, Task::UserStop(case), None),
            Event::UserChange(case, n, resumes) => {
                self.begin(Function::Api, Task::UserChange(case, n, resumes), None);
            }
            Event::UserStopJob(case) => {
                let job = lock(&self.world).running_job(case);
                if let Some(job) = job {
                    self.begin(Function::Api, Task::UserStopJob(case, job), None);
                }
            }
            Event::Look(case) => self.begin(Function::Api, Task::Look(case), None),
            Event::Pump(consumer, shard) => {
                let batch = lock(&self.world).next_batch(consumer, shard);
                if let Some(batch) = batch {
                    self.begin(function_of(consumer), Task::Batch(consumer, shard), Some(&batch));
                }
            }
            Event::Redeliver(consumer, batch) => {
                self.begin(function_of(consumer), Task::Repeat, Some(&batch));
            }
            Event::Deliver(delivery) => {
                let function = invoke::function_of(&delivery.what);
                self.begin(function, Task::Delivery(delivery), None);
            }
            Event::Sweep => self.sweep_due(),
            Event::SweepNow => self.begin(Function::Sweeper, Task::Sweep, None),
        }
    }

    fn sweep_due(&mut self) {
        let mut world = lock(&self.world);
        let now = world.now;
        world.queue.push(now + MINUTE, Event::Sweep);
        let skipped = world.faults.strikes(Kind::SweepSkipped);
        let late = world.faults.strikes(Kind::SweepLate);
        let twice = world.faults.strikes(Kind::SweepOverlapping);
        let ended = world.check.all_ended(world.cases.len()) && world.check.active == 0;
        world.watch(ended);
        let idle = ended && !world.faults_on;
        // A tuning that the month's cap refused can be submitted again later.
        self.idle_since = if idle { self.idle_since.or(Some(now)) } else { None };
        if !skipped {
            let wait = if late { self.dice.between(1, 10) * MINUTE } else { 0 };
            world.queue.push(now + wait, Event::SweepNow);
            if twice {
                world.queue.push(now + wait + self.dice.between(0, 500), Event::SweepNow);
            }
        }
    }

    /// Starts an invocation for a task, in a warm process if there is one.
    fn begin(&mut self, function: Function, task: Task, batch: Option<&[Record]>) {
        let cold = lock(&self.world).faults.strikes_at(Kind::ColdStart, Site::Function(function));
        let warm = self.idle.entry(function).or_default().pop().filter(|_| !cold);
        let process = warm.unwrap_or_else(|| {
            let skew_max = lock(&self.world).plan.skew_ms_max;
            let skew_ms = self.dice.between(-skew_max, skew_max);
            let port = Port::new(Arc::clone(&self.world), skew_ms);
            #[cfg(feature = "planted")]
            let port = Mutant::new(port);
            Process { store: Arc::new(Store::new(Arc::new(port.clone()))), port, number: self.started }
        });
        self.started += 1;
        let id = self.started;
        {
            let mut world = lock(&self.world);
            let now = world.now;
            world.trace.line(now, || format!("{id} {function:?} begins {}", invoke::text(&task, batch)));
            if let Some(limit) = time_limit(world.plan.time_limits, function) {
                world.queue.push(now + limit, Event::TimeOut(id));
            }
        }
        let future = invoke::invoke(process, &task, batch);
        self.running.insert(id, (function, task, future));
        let now = {
            let mut world = lock(&self.world);
            world.tally.of(function).invocations += 1;
            world.now
        };
        self.began.insert(id, now);
        self.poll(id);
    }

    fn poll(&mut self, id: u64) {
        let Some((function, _, future)) = self.running.get_mut(&id) else { return };
        let function = *function;
        {
            let mut world = lock(&self.world);
            world.task = id;
            world.function = function;
            world.dead = false;
        }
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let dead = lock(&self.world).dead;
        if !dead && polled.is_pending() {
            return;
        }
        let Some((_, task, _)) = self.running.remove(&id) else { return };
        self.count_time(id, function);
        let outcome = match polled {
            Poll::Ready((process, outcome)) => {
                self.idle.entry(function).or_default().push(process);
                Some(outcome)
            }
            Poll::Pending => None,
        };
        let mut world = lock(&self.world);
        let now = world.now;
        world.trace.line(now, || {
            let end = match &outcome {
                None => "crashes",
                Some(Outcome::Done) => "is done",
                Some(Outcome::Retry) => "fails",
                Some(Outcome::Failed(failed)) if failed.is_empty() => "is done with its batch",
                Some(Outcome::Failed(_)) => "reports failed records of its batch",
            };
            format!("{id} {function:?} {end}")
        });
        drop(world);
        self.finish(id, task, outcome);
    }

    fn count_time(&mut self, id: u64, function: Function) {
        let Some(began) = self.began.remove(&id) else { return };
        let mut world = lock(&self.world);
        let ms = u64::try_from(world.now - began).unwrap_or(0);
        world.tally.of(function).ms += ms;
    }

    /// Ends a process that still runs at the time limit of its function, like a crash.
    fn time_out(&mut self, id: u64) {
        let Some((function, _, _)) = self.running.get(&id) else { return };
        let function = *function;
        let mut world = lock(&self.world);
        let now = world.now;
        if let Some(frozen) = world.frozen_ms.remove(&id) {
            return world.queue.push(now + frozen, Event::TimeOut(id));
        }
        world.faults.count(Kind::TimedOut, Site::Function(function));
        world.trace.line(now, || format!("{id} {function:?} reaches its time limit"));
        drop(world);
        let Some((_, task, _)) = self.running.remove(&id) else { return };
        self.count_time(id, function);
        self.finish(id, task, None);
    }

    /// Handles the end of an invocation; `None` = the process crashed.
    fn finish(&mut self, id: u64, task: Task, outcome: Option<Outcome>) {
        let mut world = lock(&self.world);
        let now = world.now;
        let is_whole = match &outcome {
            Some(Outcome::Done) => true,
            Some(Outcome::Failed(failed)) => failed.is_empty(),
            Some(Outcome::Retry) | None => false,
        };
        world.end_readings(id, is_whole);
        let retry = !matches!(outcome, Some(Outcome::Done | Outcome::Failed(_)));
        match task {
            Task::Look(case) if retry => world.queue.push(now + 30_000, Event::Look(case)),
            Task::Submit(case) if retry => world.queue.push(now + 30_000, Event::Submit(case)),
            Task::UserStop(case) if retry => world.queue.push(now + 30_000, Event::UserStop(case)),
            Task::UserStopJob(case, _) if retry => world.queue.push(now + 30_000, Event::UserStopJob(case)),
            Task::UserChange(case, n, resumes) if retry => {
                world.queue.push(now + 30_000, Event::UserChange(case, n, resumes));
            }
            // The user ends an accepted pause later.
            Task::UserChange(case, n, false) => {
                if let Some(pause) = world.cases[case].changes[n].pause_ms {
                    world.queue.push(now + pause, Event::UserChange(case, n, true));
                }
            }
            Task::Delivery(delivery) if retry => world.deliver_again(delivery),
            Task::Batch(consumer, shard) => match outcome {
                Some(Outcome::Failed(failed)) => world.batch_done(consumer, shard, Some(&failed)),
                Some(Outcome::Done | Outcome::Retry) | None => world.batch_done(consumer, shard, None),
            },
            Task::Submit(_)
            | Task::UserStop(_)
            | Task::UserStopJob(..)
            | Task::UserChange(..)
            | Task::Look(_)
            | Task::Delivery(_)
            | Task::Repeat
            | Task::Sweep => {}
        }
    }
}

fn function_of(consumer: Consumer) -> Function {
    match consumer {
        Consumer::Decider => Function::Decider,
        Consumer::Actuator => Function::Actuator,
    }
}

fn time_limit(limits: Option<TimeLimits>, function: Function) -> Option<i64> {
    limits.map(|limits| match function {
        Function::Api | Function::JobEvents | Function::JobLogs | Function::Decider => limits.short,
        Function::Actuator => limits.actuator,
        Function::Sweeper => limits.sweeper,
    })
}
