//! The controller's cost per training job: plays a tuning to its end, counts its use, and computes the price.
//!
//! High estimates replace use that cannot be counted: Lambda's own log lines, computing time besides calls, and the
//! API's access log. The simulator's calls take 10 ms (table) and 160 ms (SageMaker) on average.

use std::collections::BTreeMap;

use serde_json::json;
use simulator::Run;
use simulator::case::{Case, Choices};
use simulator::fault::Kind;
use simulator::plan::{Batches, MINUTE, Mapping, Plan};
use simulator::report::History;
use simulator::site::Function;
use simulator::tally::Work;
use stack_template::Template;

use crate::logs::{LogMeter, MetricNames};
use crate::price;

/// Number of instances of each training job; all write logs.
pub const HOSTS: u32 = 3;
/// Maximum number of epochs of a training job; each logs a line with a value.
pub const EPOCHS: u32 = 81;
/// Number of parallel training jobs.
const PARALLEL: u32 = 10;
/// Number of times that a user describes the tuning and lists its training jobs.
const LOOKS: u32 = 5;
/// Log bytes that Lambda itself writes for each invocation: START, END and REPORT.
const LAMBDA_LOG_BYTES: u64 = 300;
/// Bytes of a line in the API's access log.
const ACCESS_LOG_BYTES: u64 = 450;
/// Number of state changes that SageMaker can send for a job. The simulator sends fewer. Each missing one counts as an
/// invocation of `job-events` and of the decider.
const STATE_CHANGES: u64 = 8;
/// Computing time of an invocation beside its calls, in ms, including the rounding up of billed time.
const COMPUTING_MS: u64 = 5;
/// Number of months of storage that are counted. Rows without expiry cost more after that.
const MONTHS_KEPT: f64 = 12.0;

/// Upper bound of the cost per training job, in USD.
pub const GOAL: f64 = 0.001;
/// Highest ratio of the cost per job in a tuning of 10,000 jobs to that in a tuning of 100 jobs.
pub const GROWTH_MAX: f64 = 1.2;

/// The kind of tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Hyperband: most jobs stop at a rung.
    Hyperband,
    /// Random search: every job runs to its end, with at most 20 log deliveries per host.
    FullLength,
    /// Like [`Self::FullLength`], but each log line is a delivery of its own.
    LineByLine,
}

impl Workload {
    /// Returns its name in the tables of the documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hyperband => "Hyperband",
            Self::FullLength => "every job to its end",
            Self::LineByLine => "every job to its end, a delivery per line",
        }
    }
}

/// The counts of a tuning.
#[derive(Debug)]
pub struct Counted {
    /// The kind of tuning.
    pub workload: Workload,
    /// Number of training jobs.
    pub jobs: u32,
    /// The history of the simulated tuning.
    pub history: History,
    /// Names of the metrics that the functions wrote.
    pub metrics: MetricNames,
    /// Memory of each function, in GB.
    memory: BTreeMap<Function, f64>,
}

/// Costs by part, in USD.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bill {
    /// Write requests to the table.
    pub writes: f64,
    /// Read requests to the table.
    pub reads: f64,
    /// Invocations of functions and their duration.
    pub functions: f64,
    /// Logs of the functions and of the API.
    pub logs: f64,
    /// Events, API requests, ticks of the scheduler.
    pub other: f64,
    /// Rows: a year of storage, facts one month.
    pub storage: f64,
}

impl Bill {
    /// Returns the sum of all parts.
    pub fn sum(self) -> f64 {
        self.writes + self.reads + self.functions + self.logs + self.other + self.storage
    }

    fn plus(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
            functions: self.functions + other.functions,
            logs: self.logs + other.logs,
            other: self.other + other.other,
            storage: self.storage + other.storage,
        }
    }

    fn scaled(self, factor: f64) -> Self {
        Self {
            writes: self.writes * factor,
            reads: self.reads * factor,
            functions: self.functions * factor,
            logs: self.logs * factor,
            other: self.other * factor,
            storage: self.storage * factor,
        }
    }
}

/// All functions.
pub const FUNCTIONS: [Function; 6] = [
    Function::Api,
    Function::JobEvents,
    Function::JobLogs,
    Function::Decider,
    Function::Actuator,
    Function::Sweeper,
];

fn memory(template: &Template, function: Function) -> f64 {
    let megabytes = template.properties(&format!("{function:?}Function"))["MemorySize"].as_f64().unwrap();
    megabytes / 1_024.0
}

fn mapping(template: &Template, name: &str) -> Mapping {
    let mapping = template.properties(name);
    let number = |name: &str| mapping[name].as_i64().unwrap();
    Mapping {
        size: usize::try_from(number("BatchSize")).unwrap(),
        window_ms: number("MaximumBatchingWindowInSeconds") * 1_000,
    }
}

/// Returns a tuning of `jobs` training jobs without faults.
fn run(template: &Template, workload: Workload, jobs: u32) -> Run {
    let choices = Choices {
        hyperband: (workload == Workload::Hyperband).then_some((1, EPOCHS, 3)),
        max_jobs: jobs,
        max_parallel: PARALLEL,
        instances: HOSTS,
        ..Choices::plain()
    };
    let mut case = Case::of("sim0", &choices);
    case.program_epochs = EPOCHS;
    // A cap that does not bind, so that money is reserved and booked for every job.
    let cap = u64::from(jobs) * 1_000;
    case.cap = Some(cap * 1_000_000);
    case.request["Controller"]["MaxCostUsd"] = json!(cap);
    case.looks_at = (1..=i64::from(LOOKS)).map(|n| n * 10 * MINUTE).collect();
    let plan = Plan {
        safety_ms: 0,
        // The facts of a tuning are in one partition, its actions in another.
        shards: 1,
        batches: Batches::As {
            decider: mapping(template, "DeciderStream"),
            actuator: mapping(template, "ActuatorStream"),
        },
        // Epochs take 2 to 8 s. A delivery has at least five lines, or one.
        epoch_ms: 4_000,
        log_gather_ms: if workload == Workload::LineByLine { (500, 1_500) } else { (32_000, 40_000) },
        ..Plan::calm().with(Kind::ProgramAllHosts, 1.0)
    };
    Run { seed: 1, plan, cases: vec![case], trace: false }
}

impl Counted {
    /// Plays a tuning.
    pub fn play(workload: Workload, jobs: u32) -> Self {
        let template = Template::read();
        let (meter, names) = LogMeter::new();
        let history = run(&template, workload, jobs).history_with_logs(Box::new(meter));
        assert_eq!(history.violations, [""; 0]);
        assert_eq!(history.ended, [("sim0".to_owned(), "MaxJobs".to_owned())]);
        assert_eq!(u32::try_from(history.jobs), Ok(jobs));
        let memory = FUNCTIONS.map(|function| (function, memory(&template, function)));
        let metrics = names.lock().unwrap().clone();
        Self { workload, jobs, history, metrics, memory: memory.into() }
    }

    /// Returns the use of a function until the tuning ended. Each look of the user is two API requests.
    pub fn work(&self, function: Function) -> Work {
        let mut work = self.history.tally.busy.get(&function).copied().unwrap_or_default();
        if function == Function::Api {
            work.invocations += u64::from(LOOKS);
            work.log_bytes += work.invocations * ACCESS_LOG_BYTES;
        }
        work
    }

    /// Returns the use of all functions.
    pub fn all(&self) -> Work {
        let mut sum = Work::default();
        for function in FUNCTIONS {
            sum += self.work(function);
        }
        sum
    }

    /// Returns the cost of a function's use.
    pub fn bill_of(&self, function: Function, work: Work) -> Bill {
        let gb_seconds = self.memory[&function] * number(work.ms + COMPUTING_MS * work.invocations) / 1_000.0;
        let called = match function {
            Function::Api => price::API_REQUEST,
            Function::Sweeper => price::SCHEDULED,
            _ => 0.0,
        };
        let invocations = number(work.invocations);
        Bill {
            writes: number(work.usage.write_units) * price::WRITE_UNIT,
            reads: number(work.usage.read_units) * price::READ_UNIT,
            functions: invocations * price::INVOCATION + gb_seconds * price::GB_SECOND,
            logs: number(work.log_bytes + work.invocations * LAMBDA_LOG_BYTES) / price::GB * price::LOG_GB,
            other: number(work.published) * price::EVENT + invocations * called,
            storage: 0.0,
        }
    }

    /// Returns the bytes of rows per training job: rows without expiry, and facts.
    pub fn stored(&self) -> (f64, f64) {
        let bytes = |expires: bool| -> u64 {
            let stored = self.history.tally.stored.iter().filter(|((_, expiring), _)| *expiring == expires);
            stored.map(|(_, stored)| stored.bytes + stored.rows * price::ROW_OVERHEAD).sum()
        };
        (number(bytes(false)) / f64::from(self.jobs), number(bytes(true)) / f64::from(self.jobs))
    }

    /// Returns the cost per training job.
    pub fn per_job(&self) -> Bill {
        let mut sum = Bill::default();
        for function in FUNCTIONS {
            sum = sum.plus(self.bill_of(function, self.work(function)));
        }
        let counted = self.work(Function::JobEvents).invocations;
        let missing = number((STATE_CHANGES * u64::from(self.jobs)).saturating_sub(counted));
        for function in [Function::JobEvents, Function::Decider] {
            let work = self.work(function);
            sum = sum.plus(self.bill_of(function, work).scaled(missing / number(work.invocations)));
        }
        let (permanent, facts) = self.stored();
        let gb_months = (permanent * MONTHS_KEPT + facts) / price::GB;
        Bill {
            storage: gb_months * (price::STORED_GB + price::BACKUP_GB),
            ..sum.scaled(1.0 / f64::from(self.jobs))
        }
    }
}

/// Returns a count as a floating-point number. Counts above `u32::MAX` are rounded to thousands.
pub fn number(count: u64) -> f64 {
    u32::try_from(count).map_or_else(|_| f64::from(u32::try_from(count / 1_000).unwrap()) * 1e3, f64::from)
}
