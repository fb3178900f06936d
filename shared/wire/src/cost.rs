//! The ledger of a tuning against its training jobs, a page of jobs at a time.
//!
//! Plain data, to be filled by whoever reads the table and asks the training service. Money is in dollars.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tuning::money::MicroUsd;

use crate::shape::{dollars, maybe_dollars};

/// One page of a tuning's training jobs, with the ledger as of the same step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CostPage {
    /// Name of the tuning.
    #[serde(rename = "HyperParameterTuningJobName")]
    pub tuning: String,
    /// The step whose state this is: pages of different steps are of different moments.
    pub step: u64,
    /// The ledger.
    pub ledger: LedgerView,
    /// The training jobs, by trial and attempt.
    pub training_jobs: Vec<JobCost>,
    /// Where the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_token: Option<String>,
}

/// The ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct LedgerView {
    /// Hard cap; absent = none.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub cap_usd: Option<MicroUsd>,
    /// Booked bills.
    #[serde(with = "dollars")]
    pub spent_usd: MicroUsd,
    /// Worst cases of jobs whose bill is not booked.
    #[serde(with = "dollars")]
    pub reserved_usd: MicroUsd,
    /// What the cap leaves; absent without one.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub available_usd: Option<MicroUsd>,
    /// Whether a bill was above what its job could cost.
    pub overrun: bool,
    /// Granted out of the stack's month's cap, less what was given back; absent where there is no such cap.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub granted_usd: Option<MicroUsd>,
    /// The same by month.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub granted_usd_by_month: BTreeMap<String, Dollars>,
    /// Whether the request gives a price: without one only seconds are known.
    pub priced: bool,
    /// Managed spot training: billed seconds may be fewer than training seconds.
    pub spot: bool,
}

/// An amount by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Dollars(#[serde(with = "dollars")] pub MicroUsd);

/// What a training job cost by our books and by the training service's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct JobCost {
    /// Its name.
    pub training_job_name: String,
    /// Its trial.
    pub trial: u32,
    /// Which attempt of the trial it is.
    pub attempt: u32,
    /// Instance type.
    pub instance_type: String,
    /// Instances.
    pub instance_count: u32,
    /// Price of one instance; absent = unknown.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub price_usd_per_hour: Option<MicroUsd>,
    /// `TrainingJobStatus` now; absent = the service does not know the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_job_status: Option<String>,
    /// `BillableTimeInSeconds` now; absent while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub billable_seconds: Option<u64>,
    /// Seconds from the start of training to its end, where the service tells both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_seconds: Option<u64>,
    /// Billable seconds that were booked; absent where none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked_seconds: Option<u64>,
    /// Seconds for which its instances were kept afterwards, as the service says now; absent until that is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retained_seconds: Option<u64>,
    /// The same, as they were booked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booked_retained_seconds: Option<u64>,
    /// Amount that was booked; absent while none is.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub booked_usd: Option<MicroUsd>,
    /// Amount that is reserved because none is booked, or for its instances while they are kept.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub reserved_usd: Option<MicroUsd>,
    /// What the service's billable seconds cost at the price, with those for which its instances were kept.
    #[serde(with = "maybe_dollars", default, skip_serializing_if = "Option::is_none")]
    pub computed_usd: Option<MicroUsd>,
    /// Booked less computed, where both are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_usd: Option<SignedUsd>,
    /// What there is to say of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Whether the two books differ.
    pub differs: bool,
}

/// What there is to say of a job's bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// It is ordered, and the service has not made it yet: its worst case is reserved.
    Ordered,
    /// It has not ended: its worst case is reserved.
    Running,
    /// It has ended, and its bill is not booked yet.
    BillAwaited,
    /// It was called off: it never started and costs nothing.
    NeverStarted,
    /// Its bill never came: the whole reservation was booked.
    SettledInFull,
    /// Its instances are kept for the next job: what that may cost is reserved.
    InstancesKept,
    /// Nobody could tell how long its instances were kept: the whole reservation for that was booked.
    KeptSettledInFull,
    /// It was taken as never started, and the service has billed it.
    BilledThoughNeverStarted,
    /// The service no longer knows it.
    UnknownToService,
    /// The service tells other billable seconds than it did when they were booked.
    BillChanged,
}

/// A difference of two amounts: micro-dollars with a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SignedUsd {
    /// Whether it is below zero.
    pub negative: bool,
    /// How much.
    pub amount: MicroUsd,
}

impl SignedUsd {
    /// `one` less `other`.
    pub fn between(one: MicroUsd, other: MicroUsd) -> Self {
        let negative = one < other;
        Self { negative, amount: if negative { other.minus(one) } else { one.minus(other) } }
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        if self.negative == other.negative {
            return Self { amount: self.amount.plus(other.amount), ..self };
        }
        let (up, down) = if self.negative { (other, self) } else { (self, other) };
        Self::between(up.amount, down.amount)
    }

    /// Whether it is nothing.
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
        let amount = micro.ok_or_else(|| serde::de::Error::custom("an amount in dollars is wanted"))?;
        Ok(Self { negative: negative && amount > 0, amount: MicroUsd(amount) })
    }
}

/// Sums over training jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct CostTotals {
    /// Training jobs.
    pub training_jobs: u64,
    /// Booked.
    #[serde(with = "dollars")]
    pub booked_usd: MicroUsd,
    /// Reserved for those that are not booked.
    #[serde(with = "dollars")]
    pub reserved_usd: MicroUsd,
    /// What the service's billable seconds cost.
    #[serde(with = "dollars")]
    pub computed_usd: MicroUsd,
    /// The service's billable seconds.
    pub billable_seconds: u64,
    /// Seconds for which the service kept instances after jobs, where that is over.
    #[serde(default)]
    pub retained_seconds: u64,
    /// Training seconds of the jobs that have billable ones.
    pub training_seconds: u64,
    /// What managed spot training saved of them, whole percent; absent where nothing was trained on spot instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_savings_percent: Option<u64>,
    /// Jobs of which the two books differ.
    pub differing_jobs: u64,
    /// Sum of the differences where both amounts are known: booked less computed.
    pub difference_usd: SignedUsd,
    /// Spent and reserved by the ledger, less what the jobs add up to; absent if the tuning went on while it was read.
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
    fn differences_add_up_across_zero() {
        assert_eq!(signed(7, 5).plus(signed(1, 4)), signed(0, 1));
        assert_eq!(signed(5, 7).plus(signed(4, 1)), signed(1, 0));
        assert_eq!(signed(5, 7).plus(signed(1, 4)), signed(0, 5));
        let nothing = signed(5, 7).plus(signed(7, 5));
        assert!(nothing.is_zero() && !nothing.negative);
    }

    #[test]
    fn a_difference_is_dollars_with_a_sign() {
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
