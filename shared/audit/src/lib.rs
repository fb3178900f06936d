//! An audit of the stored rows of a tuning: does the record keep the promises?
//!
//! The audit reads the rows as DynamoDB shows them, and depends on no crate of the decider: it knows the format of the
//! rows, the request's rules and the promises, and computes everything anew from the facts. An error of the decider, of
//! its checks or of its simulation is therefore not repeated here.
//!
//! | promise | what is checked |
//! |---|---|
//! | P1 | at each start, what is spent and reserved is within the cap and the grants; each bill is what the service billed, at the price of the definition; in the end no money is reserved |
//! | P2 | each order, fact and conclusion occurs once; each order has its row in the outbox, and each start of an ended tuning has an outcome |
//! | P5 | the steps are one chain, to the head; the summaries of jobs agree with it |
//! | P6 | levels, ranks, counts and shares at each rung; no promoted trial failed; each losing trial is stopped |

mod chain;
mod log;
mod money;
mod outbox;
mod plan;
mod promotions;
mod rows;
mod rungs;

use std::fmt;

use serde_json::Value;

pub use rows::AuditError;

use crate::log::Ruling;
use crate::rows::Tuning;

/// The most violations that a report keeps. The others are counted.
const VIOLATIONS_MAX: usize = 100;

/// The result of an audit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Steps.
    pub steps: u64,
    /// Facts in the steps.
    pub facts: u64,
    /// Rulings in the steps.
    pub rulings: u64,
    /// Training jobs that were ordered.
    pub jobs: u64,
    /// Rows of the outbox; `None` = the rows have none, as those that a stack's API returns.
    pub actions: Option<u64>,
    /// Booked money, in micro-dollars.
    pub spent: u64,
    /// Jobs without a bill, whose whole reservation is booked.
    pub without_bill: u64,
    /// The violations in the order of the steps, at most 100.
    pub violations: Vec<Violation>,
    /// The number of all violations.
    pub violation_count: u64,
}

/// A promise that the record breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The promise, for example `P1`.
    pub promise: &'static str,
    /// The step; `None` = the tuning as a whole.
    pub step: Option<u64>,
    /// The broken promise in words, with the numbers.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "{}, step {step}: {}", self.promise, self.what),
            None => write!(f, "{}: {}", self.promise, self.what),
        }
    }
}

/// Collects violations, with the step that is read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    step: Option<u64>,
    found: Vec<Violation>,
    count: u64,
}

impl Findings {
    /// Records a violation unless the condition is true.
    pub(crate) fn check(&mut self, promise: &'static str, is_kept: bool, what: impl FnOnce() -> String) {
        if is_kept {
            return;
        }
        self.count = self.count.saturating_add(1);
        if self.found.len() < VIOLATIONS_MAX {
            self.found.push(Violation { promise, step: self.step, what: what() });
        }
    }
}

/// Audits the rows of one tuning, in DynamoDB's JSON and any order. Rows of other tunings are ignored. `id` names the tuning as in
/// the keys of its rows.
pub fn audit(id: &str, rows: &[Value]) -> Result<Report, AuditError> {
    let tuning = Tuning::read(id, rows)?;
    let mut findings = Findings::default();
    let mut chain = chain::Chain::new(&tuning.definition.limits);
    let mut money = money::Money::new(&tuning.definition);
    let unreadable = |error: serde_json::Error| AuditError::Unreadable {
        key: format!("T#{id}/META"),
        reason: error.to_string(),
    };
    let mut ground = plan::Ground::new(&tuning.definition).map_err(unreadable)?;
    let (mut rungs, mut promotions) = (rungs::Rungs::default(), promotions::Promotions::default());
    let mut report = Report::default();
    for step in &tuning.steps {
        findings.step = Some(step.n);
        chain.step(step, &mut findings);
        for recorded in &step.facts {
            money.fact(recorded);
            ground.fact(&recorded.fact);
            rungs.fact(&recorded.fact);
            promotions.fact(&recorded.fact);
        }
        for ruling in &step.rulings {
            chain.ruling(ruling, &mut findings);
            money.ruling(ruling, &mut findings);
            rungs.ruling(&ground, ruling, &mut findings);
            promotions.ruling(&ground, ruling, &mut findings);
        }
        rungs.step_ends(&mut findings);
        report.steps += 1;
        report.facts += count(step.facts.len());
        report.rulings += count(step.rulings.len());
        report.jobs += count(step.rulings.iter().filter(|ruling| matches!(ruling, Ruling::Start(_))).count());
    }
    findings.step = None;
    chain.end(&tuning, &mut findings);
    money.end(&tuning, &mut findings);
    outbox::check(&tuning, &mut findings);
    report.actions = (!tuning.actions.is_empty()).then(|| count(tuning.actions.len()));
    report.spent = money.spent();
    report.without_bill = money.without_bill();
    report.violations = findings.found;
    report.violation_count = findings.count;
    Ok(report)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
