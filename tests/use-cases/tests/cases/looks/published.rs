//! The samples in `events/custom.hyperband` match the published events: the same fields, of the same types.
//!
//! Plays whole tunings with fake training jobs, collects all events that the actuator publishes, and compares each kind
//! with its sample.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use port_tests::memory::MemoryTable;
use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobPhase};
use tuning::state::Status;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::{Millis, Time};
use use_cases::describe::Place;
use use_cases::perform::{ActionBatch, Actuator, CLAIM, LOG_LAG};
use use_cases::ports::training::{Description, JobLogs, LogLine, Paged, TrainingJobs, TrainingJobsError};
use use_cases::ports::{Bus, BusError, Clock, SOURCE, Timer};
use wire::events::stream::{RecordKind, encode_payload, encode_record};
use wire::stored::{self, ActionRow, ActionStatus};

use super::world::{World, now};

/// The published events: detail type and detail.
type Published = Arc<Mutex<Vec<(String, Value)>>>;

/// An account that accepts every job and every event.
#[derive(Clone)]
struct Account {
    now: i64,
    published: Published,
}

impl Clock for Account {
    fn now(&self) -> Time {
        Time(self.now)
    }
}

impl Timer for Account {
    async fn pause(&self, span: Millis) {
        panic!("unexpected wait of {} ms", span.0);
    }
}

impl Bus for Account {
    async fn publish(&self, detail_type: &str, detail: &Value) -> Result<(), BusError> {
        self.published.lock().unwrap().push((detail_type.to_owned(), detail.clone()));
        Ok(())
    }
}

impl TrainingJobs for Account {
    async fn create(&self, _: &Value) -> Result<(), TrainingJobsError> {
        Ok(())
    }
    async fn stop(&self, _: &str) -> Result<(), TrainingJobsError> {
        Ok(())
    }
    async fn release(&self, _: &str) -> Result<(), TrainingJobsError> {
        Ok(())
    }
    async fn describe(&self, _: &str) -> Result<Description, TrainingJobsError> {
        Err(TrainingJobsError::Throttled)
    }
    async fn tags(&self, _: &str) -> Result<BTreeMap<String, String>, TrainingJobsError> {
        Err(TrainingJobsError::Throttled)
    }
}

impl JobLogs for Account {
    async fn read(
        &self,
        _: &str,
        _: &str,
        _: Time,
        _: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        Ok(Paged { items: Vec::new(), next: None })
    }
}

/// A tuning that is played, and the events it has published.
struct Played {
    world: World,
    monthly_cap: Option<MicroUsd>,
    published: Published,
}

impl Played {
    /// Creates the tuning of the samples, with these fields of `Controller` besides its cap.
    fn of(controller: &Value, monthly_cap: Option<MicroUsd>) -> Self {
        let mut request: Value = serde_json::from_str(include_str!(
            "../../../../../events/aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json"
        ))
        .unwrap();
        request["Controller"] =
            json!({"MaxCostUsd": 100, "InstancePricesUsdPerHour": {"ml.m5.2xlarge": 1.2}});
        for (name, value) in controller.as_object().unwrap() {
            request["Controller"][name] = value.clone();
        }
        let world = World::under(monthly_cap, MemoryTable::new(), &request);
        Self { world, monthly_cap, published: Published::default() }
    }

    /// Performs all ordered actions and those that follow from them.
    fn act(&mut self) {
        loop {
            let partition = stored::action_partition(&self.world.id);
            let rows = self.world.table.rows().into_iter().filter(|row| row.key.pk == partition);
            let due = rows.filter(|row| ActionRow::read(row).unwrap().status == ActionStatus::Pending);
            let records: Vec<Value> = (1..)
                .zip(due)
                .map(|(n, row)| encode_record(n, RecordKind::Insert, &row.key, Some(&row)))
                .collect();
            if records.is_empty() {
                return;
            }
            let account = Account { now: self.world.now, published: Arc::clone(&self.published) };
            let actuator = Actuator {
                store: Arc::clone(&self.world.store),
                jobs: account.clone(),
                bus: account.clone(),
                clock: account,
                pace: None,
                stack: "prod".to_owned(),
                log_lag_ms: LOG_LAG,
                bills_are_final: false,
                claim_ms: CLAIM,
                defer_ms: Millis(1_000),
                abandoned_ms: Millis(60_000),
                place: Place::of_arn("arn:aws:lambda:us-east-1:111122223333:function:prod-actuator"),
                monthly_cap: self.monthly_cap,
            };
            let mut acts = ActionBatch::default();
            now(actuator.handle(&encode_payload(records), || true, &mut acts));
            assert!(acts.failed().next().is_none(), "{acts:?}");
            assert!(acts.parts.iter().all(|part| part.done.unpublished.is_none()), "{acts:?}");
            self.world.catch_up();
        }
    }

    /// Returns the trials with a live job.
    fn live(&self) -> Vec<u32> {
        self.world.state().jobs().map(|(job, _, _)| job.trial.0).collect()
    }

    /// Lets each job train, with a slightly worse value than the one before, until it is stopped or has reached its
    /// level.
    fn round(&mut self) {
        for trial in self.live() {
            if !self.live().contains(&trial) {
                continue;
            }
            self.world.phase(trial, JobPhase::Training);
            for epoch in 1..=30_u32 {
                let state = self.world.state();
                let job = self.world.job(trial);
                if state.job(job).is_some_and(|job| job.stop.is_some()) {
                    break;
                }
                let value = 1.0 / f64::from(trial + 2) + 0.001 * f64::from(epoch);
                self.world.logged(trial, &[(u64::from(epoch), value)]);
                self.act();
            }
            let stopped = self.world.state().job(self.world.job(trial)).is_some_and(|job| job.stop.is_some());
            let end = if stopped { JobEnd::Stopped } else { JobEnd::Completed };
            self.world.billed(trial, end, 100);
            self.act();
        }
    }

    fn ended(&self) -> bool {
        matches!(self.world.state().status, Status::Ended { .. })
    }

    /// Plays the tuning to its end and returns the events.
    fn out(mut self) -> Vec<(String, Value)> {
        self.act();
        for _ in 0..100 {
            if self.ended() {
                break;
            }
            self.round();
        }
        assert!(self.ended());
        self.taken()
    }

    fn taken(self) -> Vec<(String, Value)> {
        self.published.lock().unwrap().clone()
    }
}

/// Returns the structure of a value: fields by name, and types. The elements of a list count as one, with all their
/// fields.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(elements) => Value::Array(elements.iter().map(shape).reduce(both).into_iter().collect()),
        Value::String(_) => "text".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "truth".into(),
        Value::Null => Value::Null,
    }
}

/// Merges two shapes.
fn both(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut members), Value::Object(more)) => {
            for (name, value) in more {
                let merged = match members.remove(&name) {
                    Some(known) => both(known, value),
                    None => value,
                };
                members.insert(name, merged);
            }
            Value::Object(members)
        }
        (Value::Array(one), Value::Array(other)) => {
            Value::Array(one.into_iter().chain(other).reduce(both).into_iter().collect())
        }
        (one, _) => one,
    }
}

/// Returns the name of the sample file for an event.
fn file(detail_type: &str, detail: &Value) -> String {
    let text = |name: &str| detail[name].as_str().unwrap_or_default();
    let (kind, case) = match detail_type {
        "Hyperband Tuning Job Cost Alarm" => ("cost-alarm", text("Alarm")),
        "Hyperband Tuning Job Capacity Alarm" => ("capacity-alarm", text("Alarm")),
        "Tuning Trial Decision" => ("tuning-trial-decision", text("Decision")),
        "SageMaker HyperParameter Tuning Job State Change" => {
            ("hyperparameter-tuning-job-state-change", text("HyperParameterTuningJobStatus"))
        }
        other => panic!("{other} has no sample"),
    };
    let mut name = String::new();
    for letter in case.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    format!("{kind}.{name}.json")
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../events/custom.hyperband")
}

/// Returns the fields in the first table of `docs/REFERENCE.md` after `words`.
fn documented(text: &str, words: &str) -> BTreeSet<String> {
    let table = text.split_once(words).unwrap().1.split_once("|---|---|\n").unwrap().1;
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split(" | ").next().unwrap());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn the_reference_documents_the_fields_of_the_samples() {
    let text = fs::read_to_string(folder().join("../../docs/REFERENCE.md")).unwrap();
    for (kind, words) in [
        ("tuning-trial-decision", "The detail of a `Tuning Trial Decision`:"),
        ("cost-alarm", "The detail of a `Hyperband Tuning Job Cost Alarm`:"),
        ("capacity-alarm", "The detail of a `Hyperband Tuning Job Capacity Alarm`:"),
    ] {
        let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(kind));
        let samples = files.map(|path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap());
        let fields: BTreeSet<String> = samples
            .flat_map(|sample| sample["detail"].as_object().unwrap().keys().cloned().collect::<Vec<_>>())
            .collect();
        assert_eq!(documented(&text, words), fields, "{kind}");
    }
}

#[test]
fn the_samples_match_the_published_events() {
    let mut all = Played::of(&json!({}), None).out();
    all.extend(Played::of(&json!({"RungExecution": "Promote"}), None).out());
    // The user stops it.
    let mut stopped = Played::of(&json!({}), None);
    stopped.act();
    stopped.world.fact(Fact::StopRequested);
    all.extend(stopped.out());
    // An impossibly high bill, above half of the cap.
    let mut dear = Played::of(&json!({"MaxCostUsd": 20}), None);
    dear.act();
    let first = dear.live()[0];
    dear.world.phase(first, JobPhase::Training);
    dear.world.billed(first, JobEnd::Completed, 11_000);
    all.extend(dear.out());
    // No job gets instances.
    let mut lacking = Played::of(&json!({}), None);
    lacking.act();
    for trial in lacking.live() {
        lacking.world.billed(trial, JobEnd::CapacityError, 0);
    }
    lacking.world.now += 3_600_000;
    lacking.world.fact(Fact::TimePassed);
    lacking.act();
    all.extend(lacking.taken());
    // One request takes the whole cap of the month.
    all.extend(Played::of(&json!({}), Some(MicroUsd(20_000_000))).out());

    let mut seen = BTreeSet::new();
    for (detail_type, detail) in &all {
        let file = file(detail_type, detail);
        let text = fs::read_to_string(folder().join(&file))
            .unwrap_or_else(|error| panic!("{file}: {error}\n{detail:#}"));
        let sample: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(sample["source"], SOURCE, "{file}");
        assert_eq!(sample["detail-type"], *detail_type, "{file}");
        if seen.insert(file.clone()) {
            assert_eq!(shape(&sample["detail"]), shape(detail), "{file}\n{detail:#}");
        }
    }
    // There are no other samples.
    let there =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(there.collect::<BTreeSet<_>>(), seen);
}
