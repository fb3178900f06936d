//! What a training job costs: a tuning played to its end, its counts, and their price.
//!
//! What cannot be counted is assumed here, on the dear side: lines that Lambda writes of its own, computing beside calls, a
//! table call of 10 ms and a SageMaker call of 160 ms in the mean (the simulator's), the access log of the API.

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

use crate::price;
use crate::tell::{Logs, Names};

/// Instances of each training job; all write logs.
pub const HOSTS: u32 = 3;
/// Epochs of a training job at most, each a line of the log with a value.
pub const EPOCHS: u32 = 81;
/// Training jobs at once.
const PARALLEL: u32 = 10;
/// Times that somebody looks at the tuning and at all its training jobs.
const LOOKS: u32 = 5;
/// What Lambda writes of each invocation: START, END and REPORT.
const LAMBDA_LOG_BYTES: u64 = 300;
/// A line of the API's access log.
const ACCESS_LOG_BYTES: u64 = 450;
/// State changes of a job that SageMaker may send. The simulator's jobs have fewer; each that is missing is taken for an
/// invocation of its own of the function that records it and of the decider.
const STATE_CHANGES: u64 = 8;
/// Computing of an invocation beside its calls, ms; billed time is rounded up, too.
const COMPUTING_MS: u64 = 5;
/// Months that rows are paid for here. Those that are kept for ever go on after that.
const MONTHS_KEPT: f64 = 12.0;

/// What a training job may cost at most, all told: USD.
pub const GOAL: f64 = 0.001;
/// How much more a job of a tuning of 10,000 may cost than one of a tuning of 100.
pub const GROWTH_MAX: f64 = 1.2;

/// How tunings use their jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// Hyperband: most jobs are stopped at a rung.
    Hyperband,
    /// Random search: every job runs to its end, its log in at most 20 deliveries a host.
    Whole,
    /// The same, and each line of the log is a delivery by itself.
    LineByLine,
}

impl Workload {
    /// As the document calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hyperband => "Hyperband",
            Self::Whole => "every job to its end",
            Self::LineByLine => "the same, a delivery a line",
        }
    }
}

/// A tuning's counts.
#[derive(Debug)]
pub struct Counted {
    /// How it used its jobs.
    pub workload: Workload,
    /// Its training jobs.
    pub jobs: u32,
    /// The history.
    pub history: History,
    /// The metrics that were written.
    pub metrics: Names,
    /// Memory of each function, GB.
    memory: BTreeMap<Function, f64>,
}

/// USD.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bill {
    /// Requests to the table: writes.
    pub writes: f64,
    /// And reads.
    pub reads: f64,
    /// Invocations and their time.
    pub functions: f64,
    /// Logs of the functions and of the API.
    pub logs: f64,
    /// Events, requests of the API, ticks of the scheduler.
    pub other: f64,
    /// Rows, for as many months as `cost` assumes they are kept (facts: one).
    pub storage: f64,
}

impl Bill {
    /// All of it.
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

/// The name of the program of a function.
pub fn program(function: Function) -> &'static str {
    match function {
        Function::Api => "api",
        Function::JobEvents => "job-events",
        Function::JobLogs => "job-logs",
        Function::Decider => "decider",
        Function::Actuator => "actuator",
        Function::Sweeper => "sweeper",
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

/// A tuning of `jobs` training jobs without a fault.
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
    // A cap that does not bind: money is reserved, granted and booked for every job.
    let cap = u64::from(jobs) * 1_000;
    case.cap = Some(cap * 1_000_000);
    case.request["Controller"]["MaxCostUsd"] = json!(cap);
    case.looks_at = (1..=i64::from(LOOKS)).map(|n| n * 10 * MINUTE).collect();
    let plan = Plan {
        safety_ms: 0,
        // The facts of a tuning are one partition, its actions another.
        shards: 1,
        batches: Batches::As {
            decider: mapping(template, "DeciderStream"),
            actuator: mapping(template, "ActuatorStream"),
        },
        // Epochs of 2 to 8 s; a delivery holds at least five of them, or one.
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
        let (logs, names) = Logs::new();
        let history = run(&template, workload, jobs).history_told(Box::new(logs));
        assert_eq!(history.violations, [""; 0]);
        assert_eq!(history.ended, [("sim0".to_owned(), "MaxJobs".to_owned())]);
        assert_eq!(u32::try_from(history.jobs), Ok(jobs));
        let memory = FUNCTIONS.map(|function| (function, memory(&template, function)));
        let metrics = names.lock().unwrap().clone();
        Self { workload, jobs, history, metrics, memory: memory.into() }
    }

    /// What a function used until the tuning was at rest; the API's shows are two requests each.
    pub fn work(&self, function: Function) -> Work {
        let mut work = self.history.tally.busy.get(&function).copied().unwrap_or_default();
        if function == Function::Api {
            work.invocations += u64::from(LOOKS);
            work.log_bytes += work.invocations * ACCESS_LOG_BYTES;
        }
        work
    }

    /// What all functions used.
    pub fn all(&self) -> Work {
        let mut sum = Work::default();
        for function in FUNCTIONS {
            sum += self.work(function);
        }
        sum
    }

    /// What a function used, priced.
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

    /// Bytes of rows per training job: those kept for ever, and facts.
    pub fn stored(&self) -> (f64, f64) {
        let bytes = |expires: bool| -> u64 {
            let kept = self.history.tally.kept.iter().filter(|((_, expiring), _)| *expiring == expires);
            kept.map(|(_, kept)| kept.bytes + kept.rows * price::ROW_OVERHEAD).sum()
        };
        (number(bytes(false)) / f64::from(self.jobs), number(bytes(true)) / f64::from(self.jobs))
    }

    /// What a training job costs.
    pub fn per_job(&self) -> Bill {
        let mut sum = Bill::default();
        for function in FUNCTIONS {
            sum = sum.plus(self.bill_of(function, self.work(function)));
        }
        let told = self.work(Function::JobEvents).invocations;
        let untold = number((STATE_CHANGES * u64::from(self.jobs)).saturating_sub(told));
        for function in [Function::JobEvents, Function::Decider] {
            let work = self.work(function);
            sum = sum.plus(self.bill_of(function, work).scaled(untold / number(work.invocations)));
        }
        let (for_ever, facts) = self.stored();
        let gb_months = (for_ever * MONTHS_KEPT + facts) / price::GB;
        Bill {
            storage: gb_months * (price::STORED_GB + price::BACKUP_GB),
            ..sum.scaled(1.0 / f64::from(self.jobs))
        }
    }
}

/// A count as a number.
pub fn number(count: u64) -> f64 {
    u32::try_from(count).map_or_else(|_| f64::from(u32::try_from(count / 1_000).unwrap()) * 1e3, f64::from)
}
