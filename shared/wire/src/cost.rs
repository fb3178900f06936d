//! The comparison of a tuning job's ledger with the bills of its training jobs, one page of training jobs at a time.
//!
//! This module only has the data types; the use case that reads the table and the training service fills them. Money is
//! in dollars.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tuning::unit::money::MicroUsd;

use crate::shape::{dollars, optional_dollars};

/// One page of training jobs, with the ledger as of the same step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct CostPage {
    /// Name of the tuning job.
    #[serde(rename = "HyperParameterTuningJobName")]
    pub tuning: String,
    /// Number of the step of the ledger. Pages with different steps show different moments.
    pub step: u64,
    /// The ledger as of that step.
    pub ledger: LedgerView,
    /// The training jobs, in order of trial and attempt.
    pub training_jobs: Vec<JobCost>,
    /// Token of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

/// The ledger of a tuning job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct LedgerView {
    /// The hard cap; absent = no cap.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub cap_usd: Option<MicroUsd>,
    /// Sum of the booked bills.
    #[serde(with = "dollars")]
    #[schemars(with = "f64")]
    pub spent_usd: MicroUsd,
    /// Sum of the reservations: the maximum cost of each job without a booked bill.
    #[serde(with = "dollars")]
    #[schemars(with = "f64")]
    pub reserved_usd: MicroUsd,
    /// The cap less spent and reserved amounts; absent without a cap.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub available_usd: Option<MicroUsd>,
    /// Whether a bill exceeded the reservation of its job.
    pub overrun: bool,
    /// Amount granted from the monthly cap of the stack, less returned grants; absent without a monthly cap.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub granted_usd: Option<MicroUsd>,
    /// Granted amounts by month, such as `2026-11`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub granted_usd_by_month: BTreeMap<String, Dollars>,
    /// Whether the price is known; otherwise only seconds are.
    pub priced: bool,
    /// Whether the jobs use managed spot training, where billed seconds may be fewer than training seconds.
    pub spot: bool,
}

/// An amount in dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Dollars(
    #[serde(with = "dollars")]
    #[schemars(with = "f64")]
    pub MicroUsd,
);

/// The cost of a training job by the ledger and by the training service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "PascalCase")]
pub struct JobCost {
    /// Name of the training job.
    pub training_job_name: String,
    /// Number of the trial.
    pub trial: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Instance type.
    pub instance_type: String,
    /// Number of instances.
    pub instance_count: u32,
    /// Price of one instance for one hour; absent = unknown.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub price_usd_per_hour: Option<MicroUsd>,
    /// Current `TrainingJobStatus`; absent = the training service does not know the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_status: Option<String>,
    /// Current `BillableTimeInSeconds`; absent until the training service reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billable_seconds: Option<u64>,
    /// Seconds from the start to the end of training; absent unless the training service reports both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_seconds: Option<u64>,
    /// Booked billable seconds; absent if none are booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked_seconds: Option<u64>,
    /// Seconds for which the training service kept the instances after the job; absent until they are released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retained_seconds: Option<u64>,
    /// Booked seconds of kept instances; absent if none are booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked_retained_seconds: Option<u64>,
    /// Booked amount; absent if none is booked.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub booked_usd: Option<MicroUsd>,
    /// Reserved amount: for a job without a booked bill, or for instances that are kept.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub reserved_usd: Option<MicroUsd>,
    /// Cost of the training service's billable seconds and kept seconds at the price.
    #[serde(with = "optional_dollars", default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub computed_usd: Option<MicroUsd>,
    /// Booked less computed amount; absent unless both are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub difference_usd: Option<SignedUsd>,
    /// State of the bill; absent if it is booked and unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The note as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Whether ledger and training service differ.
    pub differs: bool,
}

/// State of a training job's bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Note {
    /// The job is ordered but does not exist yet; its maximum cost is reserved.
    Ordered,
    /// The job has not ended; its maximum cost is reserved.
    Running,
    /// The job has ended, but its bill is not booked yet.
    BillAwaited,
    /// The order was canceled; the job never started and costs nothing.
    NeverStarted,
    /// No bill arrived, so the whole reservation was booked.
    SettledInFull,
    /// The instances are kept for the next job; the maximum cost of that is reserved.
    InstancesKept,
    /// The time for which the instances were kept is unknown, so the whole reservation for it was booked.
    KeptSettledInFull,
    /// The ledger treats the job as never started, but the training service billed it.
    BilledThoughNeverStarted,
    /// The training service does not know the job any more.
    UnknownToService,
    /// The training service changed the billable seconds after they were booked.
    BillChanged,
}

/// A signed amount in micro-dollars, the difference of two amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SignedUsd {
    /// Whether the amount is below zero.
    pub negative: bool,
    /// The absolute amount.
    pub amount: MicroUsd,
}

impl SignedUsd {
    /// Returns `one` less `other`.
    pub fn between(one: MicroUsd, other: MicroUsd) -> Self {
        let negative = one < other;
        Self { negative, amount: if negative { other.minus(one) } else { one.minus(other) } }
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        if self.negative == other.negative {
            return Self { amount: self.amount.plus(other.amount), ..self };
        }
        let (up, down) = if self.negative { (other, self) } else { (self, other) };
        Self::between(up.amount, down.amount)
    }

    /// Returns whether the amount is zero.
    pub fn is_zero(self) -> bool {
        self.amount == MicroUsd::ZERO
    }
}

impl Serialize for SignedUsd {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let amount = crate::request::usd(self.amount);
        match amount.as_f64().filter(|_| self.negative) {
            Some(amount) => to.serialize_f64(-amount),
            None => amount.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for SignedUsd {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = serde_json::Number::deserialize(from)?.to_string();
        let negative = text.starts_with('-');
        let number: serde_json::Number =
            text.trim_start_matches('-').parse().map_err(serde::de::Error::custom)?;
        let micro = crate::request::micro_usd_down(&number);
        let amount = micro
            .ok_or_else(|| serde::de::Error::custom("expected an amount in US dollars, for example -0.02"))?;
        Ok(Self { negative: negative && amount > 0, amount: MicroUsd(amount) })
    }
}

/// Sums over training jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CostTotals {
    /// Number of training jobs.
    pub training_jobs: u64,
    /// Booked amount.
    #[serde(with = "dollars")]
    pub booked_usd: MicroUsd,
    /// Reserved amount.
    #[serde(with = "dollars")]
    pub reserved_usd: MicroUsd,
    /// Cost of the training service's billable seconds.
    #[serde(with = "dollars")]
    pub computed_usd: MicroUsd,
    /// Billable seconds by the training service.
    pub billable_seconds: u64,
    /// Seconds for which the training service kept instances that are now released.
    #[serde(default)]
    pub retained_seconds: u64,
    /// Training seconds of the jobs that have billable seconds.
    pub training_seconds: u64,
    /// Share of the training seconds that managed spot training saved, in whole percent; absent without spot instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_savings_percent: Option<u64>,
    /// Number of jobs for which ledger and training service differ.
    pub differing_jobs: u64,
    /// Booked less computed amount, summed over the jobs with both.
    pub difference_usd: SignedUsd,
    /// Spent and reserved amount of the ledger less the sum over the jobs; absent if a step was written between the
    /// pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger_difference_usd: Option<SignedUsd>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(one: u64, other: u64) -> SignedUsd {
        SignedUsd::between(MicroUsd(one), MicroUsd(other))
    }

    #[test]
    fn sums_of_differences_can_cross_zero() {
        assert_eq!(signed(7, 5).plus(signed(1, 4)), signed(0, 1));
        assert_eq!(signed(5, 7).plus(signed(4, 1)), signed(1, 0));
        assert_eq!(signed(5, 7).plus(signed(1, 4)), signed(0, 5));
        let nothing = signed(5, 7).plus(signed(7, 5));
        assert!(nothing.is_zero() && !nothing.negative);
    }

    #[test]
    fn a_difference_is_written_as_signed_dollars() {
        for (difference, text) in [
            (signed(0, 28_750), "-0.02875"),
            (signed(28_750, 0), "0.02875"),
            (signed(3, 3), "0"),
            (signed(0, 2_000_000), "-2.0"),
        ] {
            assert_eq!(serde_json::to_string(&difference).unwrap(), text);
            assert_eq!(serde_json::from_str::<SignedUsd>(text).unwrap(), difference);
        }
    }
}
