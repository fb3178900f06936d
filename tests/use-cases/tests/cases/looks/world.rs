//! A tuning in the in-memory table with facts made up by the tests, and a training service with scripted answers.
//!
//! Futures never wait, so one poll completes each. No runtime is needed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use tuning::state::State;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;
use use_cases::decide::Decider;
use use_cases::ports::training::{Description, TrainingJobs, TrainingJobsError};
use use_cases::store::Store;
use use_cases::submit::{Guardrails, Submit};
use wire::names::training_job_name;
use wire::sample;

pub(crate) use crate::support::now;
use crate::support::{PriceList, TestClock, audit_all, description, not_found};

/// Time of the first event.
pub(crate) const BEGIN: i64 = 1_790_000_000_000;

/// Returns a request for `jobs` jobs, all in parallel, of nine epochs.
pub(crate) fn request(name: &str, jobs: u32) -> Value {
    let limits = json!({"MaxNumberOfTrainingJobs": jobs, "MaxParallelTrainingJobs": jobs});
    let changes = json!({
        "HyperParameterTuningJobConfig": {"ResourceLimits": limits},
        "TrainingJobDefinition": {"ResourceConfig": {"InstanceCount": 2}},
        "Controller": {
            "MaxCostUsd": 1000,
            "EpochPattern": r"epoch (\d+)",
            // One cent a second for both instances together.
            "InstancePricesUsdPerHour": {"ml.m5.large": 18},
        },
    });
    sample::with(sample::request(name), changes)
}

/// One tuning.
pub(crate) struct World {
    pub(crate) table: MemoryTable,
    pub(crate) store: Arc<Store<MemoryTable>>,
    pub(crate) id: String,
    /// Time of the next fact. Each fact takes a second.
    pub(crate) now: i64,
    lines: u32,
}

impl World {
    /// Creates a tuning with all jobs ordered.
    pub(crate) fn new(jobs: u32) -> Self {
        Self::of(MemoryTable::new(), &request("t", jobs))
    }

    /// Creates the tuning of `request` in `table`.
    pub(crate) fn of(table: MemoryTable, request: &Value) -> Self {
        Self::under(None, table, request)
    }

    /// Like [`Self::of`], on a stack with a monthly cap.
    pub(crate) fn under(monthly_cap: Option<MicroUsd>, table: MemoryTable, request: &Value) -> Self {
        let store = Arc::new(Store::new(Arc::new(table.clone())));
        let submit = Submit {
            other_tunings: None,
            store: Arc::clone(&store),
            // The request contains the prices.
            prices: PriceList { instance: Ok(None), volume: Ok(Some(0)) },
            clock: TestClock::at(BEGIN),
            monthly_cap,
            guardrails: Guardrails::default(),
        };
        let id = now(submit.submit(request.to_string().as_bytes())).unwrap().id();
        let world = Self { table, store, id, now: BEGIN, lines: 0 };
        world.decide(&[]);
        world
    }

    fn decide(&self, facts: &[Recorded]) {
        now(Decider { store: Arc::clone(&self.store) }.decide(&self.id, facts, true)).unwrap();
    }

    pub(crate) fn recorded(&mut self, fact: Fact) -> Recorded {
        self.now += 1_000;
        self.lines += 1;
        Recorded { key: format!("made-up#{}", self.lines), at: Time(self.now), fact }
    }

    /// Delivers a fact, one second after the previous one.
    pub(crate) fn fact(&mut self, fact: Fact) {
        let recorded = self.recorded(fact);
        self.decide(&[recorded]);
    }

    /// Delivers exactly these facts through the stream.
    pub(crate) fn hears(&self, facts: &[Recorded]) {
        now(Decider { store: Arc::clone(&self.store) }.decide(&self.id, facts, false)).unwrap();
    }

    /// Makes the decider read the stored facts.
    pub(crate) fn catch_up(&self) {
        self.decide(&[]);
    }

    pub(crate) fn state(&self) -> State {
        (*now(self.store.load(&self.id)).unwrap().unwrap().state).clone()
    }

    /// Returns the live job of a trial.
    pub(crate) fn job(&self, trial: u32) -> JobKey {
        self.state().jobs().map(|(key, _, _)| key).find(|key| key.trial.0 == trial).unwrap()
    }

    pub(crate) fn name(&self, job: JobKey) -> String {
        training_job_name(&self.id, job)
    }

    /// Returns the trials of a bracket, in order.
    pub(crate) fn of_bracket(&self, bracket: u32) -> Vec<u32> {
        let state = self.state();
        state
            .trials
            .iter()
            .filter(|(_, trial)| trial.place().is_some_and(|place| place.cohort.bracket.0 == bracket))
            .map(|(number, _)| number.0)
            .collect()
    }

    /// Moves the trial's job to `phase`. The first call sets its start time.
    pub(crate) fn phase(&mut self, trial: u32, phase: JobPhase) {
        let (job, at) = (self.job(trial), self.now + 1_000);
        let started = (phase != JobPhase::Starting).then_some(Time(at));
        self.fact(Fact::JobStateChanged { job, phase, started, ended: None, message: None });
    }

    /// Logs a line with the values of some epochs.
    pub(crate) fn logged(&mut self, trial: u32, values: &[(u64, f64)]) {
        let fact = self.lines_of(self.job(trial), values);
        self.fact(fact);
    }

    pub(crate) fn lines_of(&mut self, job: JobKey, values: &[(u64, f64)]) -> Fact {
        let stream = format!("{}/algo-1-1", self.name(job));
        let line = |(epoch, value): &(u64, f64)| {
            self.lines += 1;
            let (id, at) = (format!("{:04}", self.lines), self.now);
            MetricLine { id, at: Time(at), index: Some(*epoch), value: value.is_finite().then_some(*value) }
        };
        Fact::MetricsLogged { job, stream, lines: values.iter().map(line).collect(), began: None }
    }

    /// Ends the trial's job, with a final bill of `seconds` and no further log line.
    pub(crate) fn billed(&mut self, trial: u32, end: JobEnd, seconds: u64) {
        let (job, ended) = (self.job(trial), self.now);
        let started = self.state().job(job).and_then(tuning::job::Job::started);
        let described = self.recorded(Fact::JobDescribed {
            job,
            end,
            started,
            ended: Some(Time(ended)),
            billable_seconds: seconds,
            message: (end != JobEnd::Completed).then(|| format!("{end:?}")),
            interruptions: 0,
        });
        let read = self.recorded(Fact::RestRead { job });
        let fact = Fact::BillsConfirmed { bills: vec![(job, seconds)] };
        let confirmed = Recorded { key: format!("confirmed#{job}"), at: read.at, fact };
        self.hears(&[described, read, confirmed]);
    }
}

/// A training service with scripted descriptions.
#[derive(Default)]
pub(crate) struct Service {
    pub(crate) jobs: BTreeMap<String, Description>,
    /// Names of the described jobs, in order.
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) throttles: bool,
}

impl Service {
    /// Adds a job with this status and, if it has a bill, this duration.
    pub(crate) fn has(&mut self, name: &str, status: &str, seconds: Option<u64>) {
        let ran = i64::try_from(seconds.unwrap_or(0)).unwrap() * 1_000;
        let described = Description {
            secondary_status: if status == "InProgress" { "Training" } else { status }.to_owned(),
            started: Some(Time(BEGIN)),
            ended: seconds.map(|_| Time(BEGIN + ran)),
            billable_seconds: seconds,
            ..description(name, status, BEGIN)
        };
        self.jobs.insert(name.to_owned(), described);
    }
}

impl TrainingJobs for Service {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        unreachable!("a read creates no job")
    }
    async fn stop(&self, _: &str) -> Result<(), TrainingJobsError> {
        unreachable!("a read stops no job")
    }
    async fn release(&self, _: &str) -> Result<(), TrainingJobsError> {
        unreachable!("a read releases no instances")
    }
    async fn describe(&self, name: &str) -> Result<Description, TrainingJobsError> {
        self.asked.lock().unwrap().push(name.to_owned());
        if self.throttles {
            return Err(TrainingJobsError::Throttled);
        }
        let known = self.jobs.get(name).cloned();
        known.ok_or_else(|| not_found(name))
    }
    async fn tags(&self, _: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        unreachable!("a bill is read without tags")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        audit_all(&self.table);
    }
}
