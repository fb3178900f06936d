//! The small world: one tuning, its table, a training service, and the messages that wait. It is plain data, so that
//! each move starts from a copy.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::iter;

use port_tests::memory::{Change, MemoryTable};
use serde_json::{Value, json};
use tuning::log::fact::JobKey;
use wire::events::logs::{LogBatch, LogEvent, MessageType};
use wire::events::stream::{RecordKind, encode_record};
use wire::item::{Item, Key};
use wire::stored::{ACTION_PREFIX, FACT_PREFIX, HEAD, RING_PREFIX};

use super::Kind;
use crate::site::Function;

/// The time at which the tuning is submitted, in ms since the epoch.
const BEGIN: i64 = 1_800_000_000_000;
/// How long the service takes for one move of a job, in ms.
const MOVE_MS: i64 = 60_000;
/// The time between two sweeps of a world at rest, in ms.
const SWEEP_MS: i64 = 300_000;
/// How long a late bill takes, in ms. The next sweep sees it.
const BILL_MS: i64 = 240_000;
/// How often a message is delivered again after a failure. Then the sweeper must repair what it lost.
const TRIES: u32 = 4;

/// A message on its way to a function.
#[derive(Debug, Clone, Hash)]
pub(super) enum Message {
    /// A new row of the table, as its stream shows it.
    Row { consumer: Function, key: Key, item: Option<Item>, is_new: bool, tries: u32 },
    /// A state change of a training job.
    Event(String),
    /// Lines of a log.
    Log { stream: String, id: String, at: i64, line: String },
}

impl Message {
    /// Returns the message of a change of the table, if a function consumes it.
    fn of(change: Change) -> Option<Self> {
        let (pk, is_new) = (&change.key.pk, change.old.is_none());
        let consumer = if pk.starts_with(FACT_PREFIX) || pk.starts_with(RING_PREFIX) {
            Function::Decider
        } else if is_new && pk.starts_with(ACTION_PREFIX) {
            Function::Actuator
        } else {
            return None;
        };
        let item = Some(change.new?);
        Some(Self::Row { consumer, key: change.key, item, is_new, tries: 0 })
    }

    /// Returns the function that the message is for.
    pub(super) fn function(&self) -> Function {
        match self {
            Self::Row { consumer, .. } => *consumer,
            Self::Event(_) => Function::JobEvents,
            Self::Log { .. } => Function::JobLogs,
        }
    }

    /// Returns the message as the function receives it.
    pub(super) fn encode(&self) -> Value {
        match self {
            Self::Row { key, item, is_new, .. } => {
                let kind = if *is_new { RecordKind::Insert } else { RecordKind::Modify };
                json!({"Records": [encode_record(1, kind, key, item.as_ref())]})
            }
            Self::Event(event) => serde_json::from_str(event).unwrap_or_default(),
            Self::Log { stream, id, at, line } => {
                let event = LogEvent { id: id.clone(), timestamp: *at, message: line.clone() };
                let batch = LogBatch {
                    message_type: MessageType::Data,
                    log_group: "/aws/sagemaker/TrainingJobs".to_owned(),
                    log_stream: stream.clone(),
                    events: vec![event],
                };
                batch.encode()
            }
        }
    }

    /// Returns the message for its next delivery after a failure; `None` = there is none.
    fn again(self) -> Option<Self> {
        match self {
            Self::Row { consumer, key, item, is_new, tries } => {
                (tries < TRIES).then_some(Self::Row { consumer, key, item, is_new, tries: tries + 1 })
            }
            Self::Event(_) | Self::Log { .. } => Some(self),
        }
    }

    /// Returns whether the message orders a training job.
    pub(super) fn is_start(&self) -> bool {
        matches!(self, Self::Row { consumer: Function::Actuator, key, .. } if key.sk.starts_with("start-"))
    }

    /// Returns a short name for a trace.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Row { consumer, key, .. } => format!("{consumer:?} {}", key.sk),
            Self::Event(event) => {
                let event: Value = serde_json::from_str(event).unwrap_or_default();
                format!("event {} {}", event["detail"]["TrainingJobName"], event["detail"]["SecondaryStatus"])
            }
            Self::Log { stream, line, .. } => format!("log {stream} {line}"),
        }
    }
}

/// How a training job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Starting,
    Training,
    Ended(&'static str),
}

/// A training job of the service.
#[derive(Debug, Clone, Hash)]
pub(super) struct Job {
    pub(super) key: JobKey,
    pub(super) tags: BTreeMap<String, String>,
    pub(super) stage: Stage,
    /// The epochs that its program trains in all.
    epochs: u32,
    /// The seconds that the service bills at most.
    limit_seconds: u64,
    pub(super) trained: u32,
    pub(super) stop_asked: bool,
    /// When the service shows the job, and its whole bill.
    visible_at: i64,
    billed_at: i64,
    /// Seconds of the bill that it shows before; `None` = no bill.
    billed_before: Option<u64>,
    pub(super) created: i64,
    pub(super) started: Option<i64>,
    pub(super) ended: Option<i64>,
    pub(super) lines: Vec<(i64, String)>,
}

impl Job {
    pub(super) fn is_running(&self) -> bool {
        !matches!(self.stage, Stage::Ended(_))
    }

    pub(super) fn is_visible(&self, now: i64) -> bool {
        self.visible_at <= now
    }

    /// Returns the bill that the service shows.
    pub(super) fn shown_bill(&self, now: i64) -> Option<u64> {
        if self.billed_at <= now { self.billed_seconds() } else { self.billed_before }
    }

    pub(super) fn billed_seconds(&self) -> Option<u64> {
        let ended = self.ended?;
        Some(self.started.map_or(0, |started| u64::try_from((ended - started) / 1_000).unwrap_or(0)))
    }

    /// Returns `TrainingJobStatus` and `SecondaryStatus`.
    pub(super) fn status(&self) -> (&'static str, &'static str) {
        match self.stage {
            Stage::Starting => ("InProgress", "Starting"),
            Stage::Training if self.stop_asked => ("Stopping", "Stopping"),
            Stage::Training => ("InProgress", "Training"),
            Stage::Ended(how) => (how, how),
        }
    }

    pub(super) fn changed_at(&self) -> i64 {
        self.ended.or(self.started).unwrap_or(self.created)
    }

    pub(super) fn stream(&self, name: &str) -> String {
        format!("{name}/algo-1-{}", self.created / 1_000)
    }
}

/// The deviations that are left: each kind can occur once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    /// How many deviations of any kind are left.
    all: u32,
    left: [bool; Kind::ALL.len()],
}

impl Budget {
    pub(super) fn of(all: u32) -> Self {
        Self { all, left: [true; Kind::ALL.len()] }
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.all > 0 && self.left.get(kind as usize) == Some(&true)
    }

    pub(super) fn has_both(&self, one: Kind, other: Kind) -> bool {
        self.all > 1 && self.has(one) && self.has(other)
    }

    pub(super) fn spend(&mut self, kind: Kind) {
        self.all = self.all.saturating_sub(1);
        if let Some(left) = self.left.get_mut(kind as usize) {
            *left = false;
        }
        if self.all == 0 {
            // Spent kinds make no difference where nothing is left.
            self.left = [false; Kind::ALL.len()];
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Small {
    pub(super) table: MemoryTable,
    pub(super) now: i64,
    pub(super) function: Function,
    /// How many calls the running process may make before it stands still; `None` = any number.
    pub(super) calls_left: Option<u32>,
    pub(super) jobs: BTreeMap<String, Job>,
    pub(super) queue: VecDeque<Message>,
    pub(super) budget: Budget,
    /// A copy of the table that may be restored.
    pub(super) backup: Option<MemoryTable>,
    pub(super) is_restored: bool,
    pub(super) violations: Vec<String>,
    /// Whether the service does not show the next job before the time passes.
    pub(super) is_next_unseen: bool,
    /// Sweeps since the last move of a job.
    pub(super) idle_sweeps: u32,
    /// In micro-dollars.
    cap: u64,
}

impl Small {
    pub(super) fn new(cap: u64, budget: Budget) -> Self {
        Self {
            table: MemoryTable::recording(),
            now: BEGIN,
            function: Function::Api,
            calls_left: None,
            jobs: BTreeMap::new(),
            queue: VecDeque::new(),
            budget,
            backup: None,
            is_restored: false,
            violations: Vec::new(),
            is_next_unseen: false,
            idle_sweeps: 0,
            cap,
        }
    }

    /// Returns a world of its own.
    pub(super) fn copy(&self) -> Self {
        Self { table: self.table.copy(), ..self.clone() }
    }

    /// Puts the changes of the table into the queue.
    pub(super) fn publish(&mut self) {
        self.queue.extend(self.table.changes().into_iter().filter_map(Message::of));
    }

    /// Puts a message back that was not handled.
    pub(super) fn failed(&mut self, message: Message) {
        if let Some(again) = message.again() {
            self.queue.push_front(again);
        }
    }

    /// `CreateTrainingJob`.
    pub(super) fn create(&mut self, name: &str, key: JobKey, request: &Value) {
        let tags = request["Tags"].as_array().into_iter().flatten();
        let tags =
            tags.filter_map(|tag| Some((tag["Key"].as_str()?.to_owned(), tag["Value"].as_str()?.to_owned())));
        let epochs = request["HyperParameters"]["epochs"].as_str().and_then(|text| text.parse().ok());
        let runtime = request["StoppingCondition"]["MaxRuntimeInSeconds"].as_u64().unwrap_or(0);
        let job = Job {
            key,
            limit_seconds: runtime + super::ALLOWED_SECONDS,
            tags: tags.collect(),
            stage: Stage::Starting,
            epochs: epochs.unwrap_or(super::EPOCHS),
            trained: self
                .jobs
                .values()
                .filter(|job| job.key.trial == key.trial)
                .map(|job| job.trained)
                .max()
                .unwrap_or(0),
            stop_asked: false,
            visible_at: self.now + i64::from(self.is_next_unseen),
            billed_at: self.now,
            billed_before: None,
            created: self.now,
            started: None,
            ended: None,
            lines: Vec::new(),
        };
        let twice = self.jobs.values().find(|other| other.is_running() && other.key.trial == key.trial);
        if let Some(other) = twice.filter(|_| !self.is_restored) {
            self.violations.push(format!("P2: job {key} is created while {} of its trial runs", other.key));
        }
        self.jobs.insert(name.to_owned(), job);
        let seconds: u64 =
            self.jobs.values().map(|job| job.billed_seconds().unwrap_or(job.limit_seconds)).sum();
        let most = seconds * super::MICRO_USD_PER_SECOND;
        let cap = self.cap;
        if most > cap && !self.is_restored {
            self.violations
                .push(format!("P1: with job {key} the service may bill {most} of {cap} micro-dollars"));
        }
    }

    /// Returns the name of the job that moves next: each job moves in turn.
    pub(super) fn next_job(&self) -> Option<String> {
        let running = self.jobs.iter().filter(|(_, job)| job.is_running());
        running
            .min_by_key(|(_, job)| (job.changed_at(), job.lines.len(), job.key))
            .map(|(name, _)| name.clone())
    }

    /// Returns whether the next move of a job ends it.
    pub(super) fn ends_next(&self, name: &str) -> bool {
        let ends = |job: &Job| job.stop_asked || (job.stage == Stage::Training && job.trained >= job.epochs);
        self.jobs.get(name).is_some_and(ends)
    }

    /// Shows a lower bill of an ended job, or none, until the time has passed.
    pub(super) fn bill_late(&mut self, name: &str, is_low: bool) {
        if let Some(job) = self.jobs.get_mut(name) {
            job.billed_at = self.now + BILL_MS;
            job.billed_before =
                job.billed_seconds().filter(|_| is_low).map(|seconds| seconds.saturating_sub(30));
        }
    }

    /// Moves a job on by one state or one epoch; with `fails` its program ends with an error.
    pub(super) fn progress(&mut self, name: &str, fails: bool) {
        self.now += MOVE_MS;
        self.idle_sweeps = 0;
        let now = self.now;
        let Some(job) = self.jobs.get_mut(name) else { return };
        let ended = match job.stage {
            Stage::Ended(_) => return,
            _ if job.stop_asked => Some("Stopped"),
            _ if fails => Some("Failed"),
            Stage::Starting => {
                (job.stage, job.started) = (Stage::Training, Some(now));
                None
            }
            Stage::Training if job.trained < job.epochs => {
                job.trained += 1;
                let value = u64::from(job.key.trial.0 + 1) * 10 + u64::from(job.trained);
                let line = format!("epoch={} auc=0.{value}", job.trained);
                job.lines.push((now, line.clone()));
                let id = format!("{:020}", job.lines.len());
                let stream = job.stream(name);
                self.queue.push_back(Message::Log { stream, id, at: now, line });
                return;
            }
            Stage::Training => Some("Completed"),
        };
        if let Some(how) = ended {
            (job.stage, job.ended) = (Stage::Ended(how), Some(now));
        }
        let event = event(name, job);
        self.queue.push_back(Message::Event(event));
    }

    /// Passes the time until the next sweep.
    pub(super) fn wait(&mut self) {
        self.now += SWEEP_MS;
        self.idle_sweeps += 1;
    }

    /// Returns whether the head says that the tuning has ended.
    pub(super) fn has_ended(&self) -> bool {
        let rows = self.table.rows();
        let head = rows.iter().find(|row| row.key.sk == HEAD);
        head.and_then(|head| head.text("status"))
            .is_some_and(|status| !matches!(status, "InProgress" | "Stopping"))
    }

    /// Returns a number by which worlds are compared. Two that differ share it with a probability of 2^-64.
    ///
    /// Of the tuning's own rows it has the facts and rulings of the steps, in any order: two orders of the same facts and
    /// rulings count as one world. What the decider derives from them, such as snapshots, is left out.
    pub(super) fn fingerprint(&self, known: &mut Known) -> u64 {
        let mut hasher = DefaultHasher::new();
        for table in iter::once(&self.table).chain(&self.backup) {
            let mut log = 0_u64;
            table.visit(|row| {
                let (pk, sk) = (&row.key.pk, &row.key.sk);
                if !pk.starts_with("T#") {
                    row.hash(&mut hasher);
                } else if sk.starts_with("STEP#") {
                    log = log.wrapping_add(known.of_step(row));
                }
            });
            log.hash(&mut hasher);
        }
        self.jobs.hash(&mut hasher);
        self.queue.hash(&mut hasher);
        (self.now, self.budget, self.is_restored, self.idle_sweeps).hash(&mut hasher);
        hasher.finish()
    }
}

/// The numbers of the steps that were seen.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<u64, u64>);

impl Known {
    fn of_step(&mut self, row: &Item) -> u64 {
        let data = row.text("data").unwrap_or_default();
        *self.0.entry(hash(&data)).or_insert_with(|| {
            let step: Value = serde_json::from_str(data).unwrap_or_default();
            let parts =
                ["facts", "rulings"].into_iter().flat_map(|part| step[part].as_array().into_iter().flatten());
            parts.fold(0_u64, |sum, part| sum.wrapping_add(hash(&part.to_string())))
        })
    }
}

fn hash(text: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn event(name: &str, job: &Job) -> String {
    let (status, secondary) = job.status();
    let transition = json!({"Status": secondary, "StartTime": job.changed_at(), "StatusMessage": ""});
    json!({
        "version": "0",
        "detail-type": "SageMaker Training Job State Change",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "region": "us-east-1",
        "detail": {
            "TrainingJobName": name,
            "TrainingJobStatus": status,
            "SecondaryStatus": secondary,
            "FailureReason": null,
            "CreationTime": job.created,
            "TrainingStartTime": job.started,
            "TrainingEndTime": job.ended,
            "LastModifiedTime": job.changed_at(),
            "SecondaryStatusTransitions": [transition],
            "Tags": job.tags,
        },
    })
    .to_string()
}
