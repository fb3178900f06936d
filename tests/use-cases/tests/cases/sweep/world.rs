//! A table, a training service, an event bus and a clock for sweeps. Time advances only in pauses, and every call is
//! recorded. A test can stall a sweep after any call, and later continue it, or drop it like a dead process. Futures
//! wait only where they are stalled, so one poll completes each.

mod service;

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::trial::summary::JobSummary;
use tuning::unit::time::{Millis, Time};
use use_cases::decide::Decider;
use use_cases::pace::Pace;
use use_cases::perform::{Actuator, CLAIM};
use use_cases::ports::table::{Condition, Page, Query, Table, TableError, Write};
use use_cases::ports::{Bus, BusError, Clock, Timer};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use use_cases::sweep::{CallKind, Limits, Sweeper, Swept};
use wire::item::{Attr, Item, Key};
use wire::names::{TAG_STACK, training_job_name};
use wire::sample;
use wire::stored::{self, ActionRow, ActionStatus};

use crate::support::{PriceList, audit_all, place};
pub(crate) use crate::support::{now, poll};

/// Time of the first event.
pub(crate) const BEGIN: i64 = 1_790_000_000_000;
pub(crate) const SECOND: i64 = 1_000;
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 3_600_000;
/// Name of the stack.
pub(crate) const STACK: &str = "ours";
/// A handle to a world. A clone is another handle to the same world.
#[derive(Debug, Clone)]
pub(crate) struct World(Arc<Mutex<Inner>>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) now: i64,
    pub(crate) table: MemoryTable,
    pub(crate) jobs: BTreeMap<String, Job>,
    /// Calls of the training service.
    pub(crate) calls: Vec<Call>,
    pub(crate) notices: usize,
    /// The statuses in the published events.
    pub(crate) statuses: Vec<String>,
    /// Number of calls of any kind so far.
    pub(crate) steps: usize,
    /// The number of the call after which the caller stalls.
    pub(crate) stall_at: Option<usize>,
    /// A partition key whose readers stall too.
    pub(crate) stall_on: Option<String>,
    /// Partition keys of rows that the table does not return.
    pub(crate) withheld: Option<String>,
    pub(crate) stalled: bool,
    /// Duration of a request of the table, in ms.
    pub(crate) table_ms: i64,
    /// The store of the decider, which has a warm cache.
    store: Option<Arc<Store<World>>>,
}

/// A training job.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) created: i64,
    pub(crate) status: &'static str,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) log_pages: usize,
    /// The lines of its log: time and text.
    pub(crate) lines: Vec<(i64, String)>,
    /// Whether its instances are kept after its end (`false`: no longer). `None` if they never were.
    pub(crate) kept: Option<bool>,
    /// Whether no call can describe it.
    pub(crate) is_unreadable: bool,
    pub(crate) trains: bool,
    /// Whether it uploads its model for hours, so that a stop has no effect.
    pub(crate) uploads: bool,
}

impl Job {
    fn begun(created: i64, tags: BTreeMap<String, String>) -> Self {
        let (status, lines) = ("InProgress", Vec::new());
        Self {
            created,
            status,
            tags,
            log_pages: 1,
            lines,
            kept: None,
            is_unreadable: false,
            trains: false,
            uploads: false,
        }
    }
}

/// A call of the training service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) sort: CallKind,
    pub(crate) name: String,
    pub(crate) at: i64,
}

/// A running sweep.
pub(crate) type Sweeping = Pin<Box<dyn Future<Output = Swept>>>;

/// The limits of the cloud, but without pauses between calls.
pub(crate) fn unpaced() -> Limits {
    let mut limits = Limits::CLOUD;
    for sort in
        [CallKind::Describe, CallKind::Tags, CallKind::List, CallKind::Log, CallKind::Create, CallKind::Stop]
    {
        limits.calls.of(sort).every_ms = Millis(0);
    }
    limits
}

impl World {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Inner {
            now: BEGIN,
            table: MemoryTable::new(),
            jobs: BTreeMap::new(),
            calls: Vec::new(),
            notices: 0,
            statuses: Vec::new(),
            steps: 0,
            stall_at: None,
            stall_on: None,
            withheld: None,
            stalled: false,
            table_ms: 0,
            store: None,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(crate) fn pass(&self, ms: i64) {
        self.lock().now += ms;
    }

    /// Takes the calls made so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().calls)
    }

    /// Creates an actuator with an empty cache, whose calls share the account's rates if `pace` says so.
    pub(crate) fn actuator(&self, pace: Option<Pace>) -> Actuator<Self, Self, Self, Self> {
        Actuator {
            store: Arc::new(Store::new(Arc::new(self.clone()))),
            jobs: self.clone(),
            pace,
            bus: self.clone(),
            clock: self.clone(),
            stack: STACK.to_owned(),
            log_lag_ms: Millis(0),
            bills_are_final: false,
            claim_ms: CLAIM,
            defer_ms: Millis(5_000),
            abandoned_ms: Millis(60_000),
            place: place(),
            monthly_cap: None,
        }
    }

    /// Runs a whole sweep, with an empty cache and the limits of the cloud.
    pub(crate) fn paced_sweep(&self) -> Swept {
        let actuator = self.actuator(Some(Pace::default()));
        now(Sweeper::new(actuator, Limits::CLOUD, "sweeper".to_owned()).sweep()).unwrap()
    }

    /// Creates a sweeper with an empty cache.
    pub(crate) fn sweeper(&self, owner: &str, limits: Limits) -> Sweeper<Self, Self, Self, Self> {
        Sweeper::new(self.actuator(None), limits, owner.to_owned())
    }

    /// Starts a sweep with an empty cache, and runs it until it ends or stalls.
    pub(crate) fn begin(&self, owner: &str, limits: Limits) -> (Sweeping, Option<Swept>) {
        let sweeper = self.sweeper(owner, limits);
        let mut sweeping: Sweeping = Box::pin(async move { sweeper.sweep().await.unwrap() });
        let swept = poll(sweeping.as_mut());
        (sweeping, swept)
    }

    /// Runs a whole sweep with an empty cache.
    pub(crate) fn sweep(&self, limits: Limits) -> Swept {
        self.begin("sweeper", limits).1.unwrap()
    }

    /// Creates a tuning whose decider has ordered its first jobs, `parallel` of them.
    pub(crate) fn submit(&self, name: &str, parallel: u32) -> String {
        self.submit_request(&request(name, parallel))
    }

    pub(crate) fn submit_request(&self, request: &Value) -> String {
        let id = self.store_undecided(request);
        self.decide(&id, &[]);
        id
    }

    /// Submits a tuning, without running the decider.
    pub(crate) fn store_undecided(&self, request: &Value) -> String {
        let store = Arc::new(Store::new(Arc::new(self.clone())));
        let submit = Submit {
            other_tunings: None,
            store,
            prices: PriceList::new(),
            clock: self.clone(),
            monthly_cap: None,
            guardrails: Guardrails::default(),
        };
        now(submit.submit(request.to_string().as_bytes())).unwrap().id()
    }

    /// Returns the row of a concluded job.
    pub(crate) fn row_of_job(&self, id: &str, job: JobKey) -> JobSummary {
        let row = now(self.lock().table.get(&stored::job_key(id, job))).unwrap().unwrap();
        stored::job(&row).unwrap()
    }

    /// Runs the decider with `facts` and all stored facts.
    pub(crate) fn decide(&self, id: &str, facts: &[Recorded]) {
        let store = self.lock().store.clone();
        let store = store.unwrap_or_else(|| Arc::new(Store::new(Arc::new(self.clone()))));
        self.lock().store = Some(Arc::clone(&store));
        now(Decider { store }.decide(id, facts, true)).unwrap();
    }

    /// Returns the live jobs of a tuning.
    pub(crate) fn live(&self, id: &str) -> Vec<JobKey> {
        let loaded = now(Store::new(Arc::new(self.clone())).load(id)).unwrap().unwrap();
        loaded.state.jobs().map(|(key, _, _)| key).collect()
    }

    /// Creates a tuning with all jobs running, as its decider knows.
    pub(crate) fn running(&self, name: &str, parallel: u32) -> String {
        let id = self.submit(name, parallel);
        let at = self.lock().now;
        let started = |job: JobKey| {
            self.create_job(&training_job_name(&id, job), STACK);
            let table = self.lock().table.clone();
            let row = now(table.get(&stored::action_key(&id, &format!("start-{job}")))).unwrap().unwrap();
            let row = ActionRow { status: ActionStatus::Done, ..ActionRow::read(&row).unwrap() };
            now(table.write(Write::Put(row.row(&id), Condition::Always))).unwrap();
            Recorded { key: format!("started#{job}"), at: Time(at), fact: Fact::JobStarted { job } }
        };
        let facts: Vec<Recorded> = self.live(&id).into_iter().map(started).collect();
        self.decide(&id, &facts);
        id
    }

    /// Copies the only tuning, `from`, with its running jobs. All names have the same length.
    pub(crate) fn copy(&self, from: &str, names: impl Iterator<Item = String>) {
        let mut inner = self.lock();
        let rows = inner.table.rows();
        let jobs = inner.jobs.clone();
        for to in names {
            let to = to.as_str();
            for mut row in rows.clone() {
                row.key = Key::new(row.key.pk.replace(from, to), row.key.sk.replace(from, to));
                for value in row.attributes.values_mut() {
                    if let Attr::S(text) = value {
                        *text = text.replace(from, to);
                    }
                }
                now(inner.table.write(Write::Put(row, Condition::NotExists))).unwrap();
            }
            inner.jobs.extend(jobs.iter().map(|(name, job)| (name.replace(from, to), job.clone())));
        }
    }

    /// Takes the content of another world.
    pub(crate) fn merge(&self, other: &Self) {
        let mut inner = self.lock();
        for row in other.lock().table.rows() {
            now(inner.table.write(Write::Put(row, Condition::NotExists))).unwrap();
        }
        inner.jobs.extend(other.lock().jobs.clone());
    }

    /// The user stops a tuning, so its jobs must be stopped.
    pub(crate) fn stop_tuning(&self, id: &str) {
        let at = self.lock().now;
        self.decide(
            id,
            &[Recorded { key: "stop-requested".to_owned(), at: Time(at), fact: Fact::StopRequested }],
        );
    }

    /// Creates a job of stack `stack` in the training service.
    pub(crate) fn create_job(&self, name: &str, stack: &str) {
        let mut inner = self.lock();
        let tags = [(TAG_STACK.to_owned(), stack.to_owned())].into();
        let job = Job::begun(inner.now, tags);
        inner.jobs.insert(name.to_owned(), job);
    }

    pub(crate) fn status(&self, name: &str) -> &'static str {
        self.lock().jobs[name].status
    }

    /// Returns the table for a request, which takes its time.
    fn table(&self) -> MemoryTable {
        let mut inner = self.lock();
        inner.now += inner.table_ms;
        inner.table.clone()
    }

    async fn step(&self, on: &str) {
        {
            let mut inner = self.lock();
            inner.steps += 1;
            if inner.stall_at != Some(inner.steps) && inner.stall_on.as_deref() != Some(on) {
                return;
            }
            inner.stalled = true;
        }
        let resume = || if self.lock().stalled { Poll::Pending } else { Poll::Ready(()) };
        poll_fn(|_| resume()).await;
    }

    async fn called<V>(&self, sort: CallKind, name: &str, effect: impl FnOnce(&mut Inner) -> V) -> V {
        let value = {
            let mut inner = self.lock();
            let at = inner.now;
            inner.calls.push(Call { sort, name: name.to_owned(), at });
            effect(&mut inner)
        };
        self.step(name).await;
        value
    }
}

pub(crate) fn request(name: &str, parallel: u32) -> Value {
    let limits = json!({"MaxNumberOfTrainingJobs": parallel, "MaxParallelTrainingJobs": parallel});
    let changes = json!({
        "HyperParameterTuningJobConfig": {"ResourceLimits": limits},
        "TrainingJobDefinition": {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}},
        "Controller": null,
    });
    sample::with(sample::request(name), changes)
}

impl Table for World {
    async fn get(&self, key: &Key) -> Result<Option<Item>, TableError> {
        let table = self.table();
        let item = table.get(key).await;
        self.step(&key.pk).await;
        if self.lock().withheld.as_ref() == Some(&key.pk) { Err(TableError::Throttled) } else { item }
    }

    async fn write(&self, write: Write) -> Result<(), TableError> {
        let table = self.table();
        let written = table.write(write).await;
        self.step("").await;
        written
    }

    async fn transact(&self, writes: Vec<Write>, token: &str) -> Result<(), TableError> {
        let table = self.table();
        let written = table.transact(writes, token).await;
        self.step("").await;
        written
    }

    async fn query(&self, query: &Query) -> Result<Page, TableError> {
        let table = self.table();
        let page = table.query(query).await;
        self.step("").await;
        page
    }
}

impl Bus for World {
    async fn publish(&self, _detail_type: &str, detail: &Value) -> Result<(), BusError> {
        // The events that a tuning has begun or is being stopped are best effort.
        let status = detail["HyperParameterTuningJobStatus"].as_str().unwrap_or_default();
        let best_effort = ["InProgress", "Stopping"].contains(&status);
        self.lock().notices += usize::from(!best_effort);
        self.lock().statuses.push(status.to_owned());
        self.step("").await;
        Ok(())
    }
}

impl Clock for World {
    fn now(&self) -> Time {
        Time(self.lock().now)
    }
}

impl Timer for World {
    async fn pause(&self, span: Millis) {
        self.pass(span.0);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        audit_all(&self.table);
    }
}
