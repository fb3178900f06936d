//! Doubles of the ports, and the actuator and the rows that tests of actions begin with.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use port_tests::memory::MemoryTable;
use serde_json::Value;
use tuning::definition::JobLimits;
use tuning::log::fact::JobKey;
use tuning::log::ruling::{Launch, Order};
use tuning::unit::money::MicroUsd;
use tuning::unit::time::{Millis, Time};
use use_cases::describe::Place;
use use_cases::perform::{Actuator, CLAIM};
use use_cases::ports::table::{Condition, Table, Write};
use use_cases::ports::training::{
    Description, JobLogs, Listed, LogLine, Paged, TrainingJobListing, TrainingJobs, TrainingJobsError,
};
use use_cases::ports::{Bus, BusError, Clock, Prices, PricesError, Timer};
use use_cases::store::Store;
use wire::item::Item;
use wire::request::{PriceAnswer, Request};
use wire::row_json;
use wire::stored::{self, ActionRow, Head};

/// Returns the output of the future, or `None` if it waits.
pub(crate) fn poll<T>(future: Pin<&mut (impl Future<Output = T> + ?Sized)>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// Returns the output of a future that does not wait, like those of the in-memory table.
#[track_caller]
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    poll(pin!(future)).expect("a future must not wait here")
}

/// A clock that advances only in pauses and by its test. A clone is another handle to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestClock(Arc<AtomicI64>);

impl TestClock {
    pub(crate) fn at(now: i64) -> Self {
        Self(Arc::new(AtomicI64::new(now)))
    }

    pub(crate) fn set(&self, now: i64) {
        self.0.store(now, Ordering::Relaxed);
    }

    pub(crate) fn pass(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }
}

impl Timer for TestClock {
    async fn pause(&self, span: Millis) {
        self.pass(span.0);
    }
}

/// An event bus.
#[derive(Debug, Default)]
pub(crate) struct TestBus {
    /// Whether the test allows events.
    pub(crate) accepts: bool,
    pub(crate) published: Mutex<Vec<Value>>,
}

impl Bus for TestBus {
    async fn publish(&self, kind: &str, detail: &Value) -> Result<(), BusError> {
        assert!(self.accepts, "unexpected event: {kind}");
        self.published.lock().unwrap().push(detail.clone());
        Ok(())
    }
}

/// A price list: the answers for an instance of type `ml.m5.large`, and for volumes.
#[derive(Debug, Clone)]
pub(crate) struct PriceList {
    pub(crate) instance: Result<Option<u64>, PricesError>,
    pub(crate) volume: Result<Option<u64>, PricesError>,
}

impl PriceList {
    pub(crate) fn new() -> Self {
        Self { instance: Ok(Some(115_000)), volume: Ok(Some(191_781)) }
    }
}

impl Prices for PriceList {
    async fn instance_hour(&self, instance_type: &str) -> Result<Option<u64>, PricesError> {
        Ok(self.instance.clone()?.filter(|_| instance_type == "ml.m5.large"))
    }

    async fn volume_kilo_gib_hour(&self) -> Result<Option<u64>, PricesError> {
        self.volume.clone()
    }
}

/// The answer to every call of one operation. `None`: the test allows no call.
pub(crate) type Answer<T> = Option<Result<T, TrainingJobsError>>;

/// The answers of a training service, and the calls that it received.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) create: Answer<()>,
    pub(crate) stop: Answer<()>,
    pub(crate) release: Answer<()>,
    pub(crate) describe: Answer<Description>,
    pub(crate) tags: Answer<BTreeMap<String, String>>,
    /// The number of pages of a log, all empty.
    pub(crate) read: Answer<usize>,
    /// Number of further log pages until the service throttles; `None`: it never does.
    pub(crate) pages_left: Option<usize>,
    /// The lines of the logs, in order: host, time and text. Each is a page of its own. If empty, `read` counts the pages.
    pub(crate) lines: Vec<(&'static str, i64, &'static str)>,
    /// How long a log page takes, in ms.
    pub(crate) page_ms: i64,
    /// Whether a stop is never answered.
    pub(crate) stop_hangs: bool,
    /// Whether a description is never answered.
    pub(crate) describe_hangs: bool,
    /// How long the caller of a stop is frozen after its answer, in ms.
    pub(crate) stop_ms: i64,
    /// Operation and training job of each call.
    pub(crate) calls: Vec<(&'static str, String)>,
    /// The requests to create a training job.
    pub(crate) created: Vec<Value>,
}

impl Script {
    /// Returns page `number`, which is at least 1, of the lines of `host` since `after`.
    fn page(&self, name: &str, host: &str, after: Time, number: usize) -> Paged<LogLine> {
        let lines = self.lines.iter().filter(|(of, at, _)| *of == host && *at >= after.0);
        let mut rest = lines.enumerate().skip(number - 1).map(|(n, (_, at, text))| LogLine {
            stream: format!("{name}/{host}-1"),
            id: format!("{at:020}{n:036}"),
            timestamp: Time(*at),
            message: (*text).to_owned(),
        });
        let items = rest.next().into_iter().collect();
        Paged { items, next: rest.next().map(|_| number.to_string()) }
    }
}

/// A training service with scripted answers. A clone is another handle to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Service {
    script: Arc<Mutex<Script>>,
    pub(crate) time: TestClock,
}

impl Service {
    pub(crate) fn new(time: &TestClock, script: Script) -> Self {
        Self { script: Arc::new(Mutex::new(script)), time: time.clone() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// Takes the calls made so far.
    pub(crate) fn calls(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.lock().calls)
    }

    fn answer<T: Clone>(
        &self,
        call: &'static str,
        name: &str,
        of: impl Fn(&Script) -> &Answer<T>,
    ) -> Result<T, TrainingJobsError> {
        let mut script = self.lock();
        script.calls.push((call, name.to_owned()));
        of(&script).clone().unwrap_or_else(|| panic!("unexpected call: {call} {name}"))
    }
}

impl TrainingJobs for Service {
    async fn create(&self, request: &Value) -> Result<(), TrainingJobsError> {
        let name = request["TrainingJobName"].as_str().unwrap();
        self.lock().created.push(request.clone());
        self.answer("create", name, |script| &script.create)
    }

    async fn stop(&self, name: &str) -> Result<(), TrainingJobsError> {
        let answer = self.answer("stop", name, |script| &script.stop);
        self.time.pass(self.lock().stop_ms);
        if self.lock().stop_hangs {
            pending::<()>().await;
        }
        answer
    }

    async fn release(&self, name: &str) -> Result<(), TrainingJobsError> {
        self.answer("release", name, |script| &script.release)
    }

    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        let answer = self.answer("describe", name, |script| &script.describe);
        if self.lock().describe_hangs {
            pending::<()>().await;
        }
        answer
    }

    async fn tags(&self, name: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        self.answer("tags", name, |script| &script.tags)
    }
}

impl JobLogs for Service {
    async fn read(
        &self,
        name: &str,
        host: &str,
        after: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        let pages = self.answer("read", name, |script| &script.read)?;
        let mut script = self.lock();
        if let Some(left) = &mut script.pages_left {
            *left = left.checked_sub(1).ok_or(TrainingJobsError::Throttled)?;
        }
        self.time.pass(script.page_ms);
        let next = page.map_or(0, |page| page.parse().unwrap()) + 1;
        if !script.lines.is_empty() {
            return Ok(script.page(name, host, after, next));
        }
        let line = LogLine {
            stream: format!("{name}/algo-1-1"),
            id: format!("{next:056}"),
            timestamp: after,
            message: "the model is saved".to_owned(),
        };
        Ok(Paged { items: vec![line], next: (next < pages).then(|| next.to_string()) })
    }
}

impl TrainingJobListing for Service {
    async fn in_progress(&self, _: Time, _: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        Ok(Paged { items: Vec::new(), next: None })
    }
}

/// Returns an error about a missing training job.
pub(crate) fn not_found(name: &str) -> TrainingJobsError {
    TrainingJobsError::NotFound(name.to_owned())
}

/// Returns the description of a job that was created and modified at `at` and has not run.
pub(crate) fn description(name: &str, status: &str, at: i64) -> Description {
    Description {
        name: name.to_owned(),
        status: status.to_owned(),
        secondary_status: status.to_owned(),
        created: Time(at),
        started: None,
        ended: None,
        modified: Time(at),
        billable_seconds: None,
        failure_reason: None,
        interruptions: 0,
        final_metrics: Vec::new(),
        warm_pool: None,
    }
}

pub(crate) fn place() -> Place {
    Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:f")
}

/// Returns the actuator of stack `prod`, without events and without a monthly cap. A log is complete at the end of its job.
pub(crate) fn actuator<T: Table>(
    table: &Arc<T>,
    service: &Service,
) -> Actuator<T, Service, TestBus, TestClock> {
    Actuator {
        store: Arc::new(Store::new(Arc::clone(table))),
        jobs: service.clone(),
        bus: TestBus::default(),
        clock: service.time.clone(),
        pace: None,
        stack: "prod".to_owned(),
        log_lag_ms: Millis(0),
        bills_are_final: false,
        claim_ms: CLAIM,
        defer_ms: Millis(1_000),
        abandoned_ms: Millis(60_000),
        place: place(),
        monthly_cap: None,
    }
}

/// Returns a table with the tuning of a sample request, and the tuning's ID.
pub(crate) fn table_with_tuning(created: i64) -> (MemoryTable, String) {
    table_with(created, |_| {})
}

/// Like [`table_with_tuning`], with a changed request.
pub(crate) fn table_with(created: i64, change: impl FnOnce(&mut Value)) -> (MemoryTable, String) {
    let mut body = serde_json::from_slice(include_bytes!(
        "../../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json"
    ))
    .unwrap();
    change(&mut body);
    let request = Request::check(body).unwrap();
    let prices = PriceAnswer::uniform(&request, 461_000, 0);
    let definition = request.definition(Time(created), "3fa1c2", &prices).unwrap();
    let (table, id) = (MemoryTable::recording(), definition.id());
    put(&table, stored::meta_row(&definition, &request.body().to_string()));
    put(&table, Head::first(Time(created)).row(&id));
    (table, id)
}

pub(crate) fn put(table: &impl Table, row: Item) {
    now(table.write(Write::Put(row, Condition::Always))).unwrap();
}

/// Stores the row of `order`. Returns the ID of the action.
pub(crate) fn order(table: &impl Table, id: &str, order: Order) -> String {
    let action = order.action();
    put(table, ActionRow::pending(order).row(id));
    action
}

/// Returns the row of an action.
pub(crate) fn action_row(table: &impl Table, id: &str, action: &str) -> ActionRow {
    let item = now(table.get(&stored::action_key(id, action))).unwrap();
    ActionRow::read(&item.unwrap()).unwrap()
}

/// Returns the order to start `job` on spot instances.
pub(crate) fn start_of(job: JobKey) -> Order {
    Order::Start {
        job,
        bracket: tuning::unit::ids::BracketId(0),
        configuration: search::Configuration::default(),
        origin: None,
        limits: JobLimits { max_runtime_seconds: 600, max_wait_seconds: Some(900), keep_alive_seconds: 0 },
        reservation: MicroUsd(1),
        round: 0,
        launch: Launch::default(),
        promoted: None,
    }
}

/// Audits each tuning of a table: P1, P2, P5 and P6, computed anew from its rows.
pub(crate) fn audit_all(table: &MemoryTable) {
    if std::thread::panicking() {
        return;
    }
    let rows: Vec<_> = table.rows().iter().map(row_json::encode).collect();
    for head in table.rows().iter().filter(|row| row.key.sk == stored::HEAD) {
        let Some(id) = head.key.pk.strip_prefix("T#") else { continue };
        let report = audit::audit(id, &rows).expect("readable rows");
        assert!(report.violations.is_empty(), "{:#?}", report.violations);
    }
}
