//! The format of the rows, as far as the audit reads it. Names and shapes are those of the stored JSON.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::log::{Job, Step};

/// The rows cannot be audited.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AuditError {
    /// The rows have no definition of the tuning: they are incomplete, or of another tuning.
    #[error("no definition of the tuning {id:?} among the rows: give all rows of its partitions")]
    NoDefinition {
        /// The tuning.
        id: String,
    },
    /// A row is damaged, or a newer release wrote it.
    #[error("unreadable row {key}: {reason}; if a newer release wrote it, use that release")]
    Unreadable {
        /// Partition key and sort key.
        key: String,
        /// The reason.
        reason: String,
    },
}

/// All rows of a tuning.
#[derive(Debug)]
pub(crate) struct Tuning {
    pub(crate) definition: Definition,
    /// The steps, in the order of their numbers.
    pub(crate) steps: Vec<Step>,
    /// The number of the last step, as the head has it.
    pub(crate) last_step: u64,
    pub(crate) is_ended: bool,
    /// The summaries of jobs that have ended.
    pub(crate) jobs: Vec<Summary>,
    /// The status of each row of the outbox, by its name.
    pub(crate) actions: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Definition {
    pub(crate) objective: Objective,
    pub(crate) strategy: Value,
    #[serde(default)]
    pub(crate) others: Vec<Value>,
    pub(crate) limits: Limits,
    pub(crate) job: JobShape,
    pub(crate) cap: Option<u64>,
    #[serde(default)]
    pub(crate) grants: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Objective {
    Maximize,
    Minimize,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Limits {
    pub(crate) max_jobs: u32,
    pub(crate) max_parallel: u32,
    pub(crate) target: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct JobShape {
    instance_count: u32,
    volume_gib: u32,
    rate: Option<Rate>,
    #[serde(default)]
    fallbacks: Vec<Instances>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Instances {
    count: u32,
    volume_gib: u32,
    rate: Option<Rate>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Rate {
    /// Micro-dollars per hour.
    instance_hour: u64,
    /// Micro-dollars per 1,000 GiB-hours.
    volume_kilo_gib_hour: u64,
}

impl JobShape {
    /// Returns the cost of so many billed seconds of an instance choice, in micro-dollars, rounded up; `None` = no price.
    pub(crate) fn cost(&self, choice: usize, seconds: u64) -> Option<u64> {
        let first = Instances { count: self.instance_count, volume_gib: self.volume_gib, rate: self.rate };
        let instances = match choice.checked_sub(1) {
            None => first,
            Some(other) => *self.fallbacks.get(other)?,
        };
        let rate = instances.rate?;
        let thousandths_per_hour = u128::from(rate.instance_hour) * 1_000
            + u128::from(rate.volume_kilo_gib_hour) * u128::from(instances.volume_gib);
        let cost = thousandths_per_hour
            .checked_mul(u128::from(instances.count))?
            .checked_mul(u128::from(seconds))?
            .div_ceil(3_600_000);
        u64::try_from(cost).ok()
    }
}

/// The summary of a job that has ended.
#[derive(Debug, Deserialize)]
pub(crate) struct Summary {
    pub(crate) job: Job,
    pub(crate) cost: Option<u64>,
}

impl Tuning {
    /// Reads the rows of a tuning among others.
    pub(crate) fn read(id: &str, rows: &[Value]) -> Result<Self, AuditError> {
        let (state, outbox) = (format!("T#{id}"), format!("A#{id}"));
        let (mut definition, mut head, mut steps) = (None, None, Vec::new());
        let (mut jobs, mut actions) = (Vec::new(), BTreeMap::new());
        for row in rows {
            let text = |name: &str| row.get(name).and_then(|value| value.get("S")).and_then(Value::as_str);
            let (Some(pk), Some(sk)) = (text("pk"), text("sk")) else { continue };
            let unreadable = |reason: String| AuditError::Unreadable { key: format!("{pk}/{sk}"), reason };
            if pk == outbox {
                let status = text("status").ok_or_else(|| unreadable("no status".to_owned()))?;
                actions.insert(sk.to_owned(), status.to_owned());
            }
            if pk != state {
                continue;
            }
            let json = |name: &str| text(name).ok_or_else(|| unreadable(format!("no {name}")));
            let invalid = |error: serde_json::Error| unreadable(error.to_string());
            match sk.split('#').next() {
                Some("META") => {
                    definition = Some(serde_json::from_str(json("definition")?).map_err(invalid)?);
                }
                Some("HEAD") => {
                    let number = row.get("step").and_then(|value| value.get("N")).and_then(Value::as_str);
                    let step = number.and_then(|number| number.parse().ok());
                    let status = json("status")?.to_owned();
                    head = Some((step.ok_or_else(|| unreadable("no step".to_owned()))?, status));
                }
                Some("STEP") => {
                    steps.push(serde_json::from_str::<Step>(json("data")?).map_err(invalid)?);
                }
                Some("JOB") => jobs.push(serde_json::from_str(json("data")?).map_err(invalid)?),
                Some(_) | None => {}
            }
        }
        let missing = || AuditError::NoDefinition { id: id.to_owned() };
        let (last_step, status): (u64, String) = head.ok_or_else(missing)?;
        steps.sort_by_key(|step| step.n);
        // A copy of a running tuning may have later steps than its head.
        steps.retain(|step| step.n <= last_step);
        Ok(Self {
            definition: definition.ok_or_else(missing)?,
            steps,
            last_step,
            is_ended: !matches!(status.as_str(), "InProgress" | "Stopping"),
            jobs,
            actions,
        })
    }
}
