//! The cost of a stack's training jobs in AWS's bill, from Cost Explorer.
//!
//! Requests the cost of each day, since Cost Explorer marks the days whose cost is not final. The tag alone selects the
//! training jobs, because no other resource has it. A filter by service would depend on the name of the service in
//! bills, and a wrong name returns 0.

use std::collections::BTreeMap;

use api_client::{ClientError, Service, ServiceError};
use serde_json::{Value, json};
use use_cases::describe::Place;
use wire::cost::SignedUsd;
use wire::names::TAG_STACK;

use crate::failure::Failure;

const OPERATION: &str = "GetCostAndUsage";
/// Cost at the rate of each line of the bill. AWS books discounts of a contract on lines of their own, or only in
/// `NetUnblendedCost`, which most accounts lack. The ledger knows neither.
const METRIC: &str = "UnblendedCost";
/// Lines of usage, also of usage that a savings plan covers. Credits, refunds, tax, and what a savings plan gives back are
/// lines of other types.
const USAGE: [&str; 3] = ["Usage", "DiscountedUsage", "SavingsPlanCoveredUsage"];
/// Maximum number of requests, each of which costs 0.01 USD. A month of one stack needs one.
const REQUESTS_MAX: u32 = 10;

#[derive(Debug)]
pub(super) struct Question<'a> {
    /// Value of the tag.
    pub(super) stack: &'a str,
    /// Account and Region: stacks in others can have the same name.
    pub(super) place: &'a Place,
    /// First day.
    pub(super) start: String,
    /// Day after the last day.
    pub(super) end: String,
}

/// The cost in AWS's bill.
#[derive(Debug, Default)]
pub(super) struct Bill {
    /// Costs by usage type, such as `USE1-Train:ml.m5.xlarge`.
    pub(super) by_usage: BTreeMap<String, SignedUsd>,
    /// Days whose cost is not final.
    pub(super) estimated: Vec<String>,
    pub(super) requests: u32,
}

impl Bill {
    pub(super) fn total(&self) -> SignedUsd {
        self.by_usage.values().fold(SignedUsd::default(), |sum, cost| sum.plus(*cost))
    }

    /// Reads the bill, page by page.
    pub(super) async fn read(service: &Service<'_>, question: &Question<'_>) -> Result<Self, Failure> {
        let mut asked = question.members();
        let mut bill = Self::default();
        while bill.requests < REQUESTS_MAX {
            // Each retry would cost another 0.01 USD.
            let page = service.once(OPERATION, &asked).await.map_err(|error| refused(service, error))?;
            bill.requests += 1;
            bill.add(&page)?;
            match page["NextPageToken"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => asked["NextPageToken"] = json!(token),
                None => return Ok(bill),
            }
        }
        Err(unreadable(&format!("its answer has more than {REQUESTS_MAX} pages")))
    }

    fn add(&mut self, page: &Value) -> Result<(), Failure> {
        let days = page["ResultsByTime"].as_array().ok_or_else(|| unreadable("no ResultsByTime"))?;
        for day in days {
            for group in day["Groups"].as_array().into_iter().flatten() {
                let (usage, cost) = cost(group)?;
                let sum = self.by_usage.entry(usage).or_default();
                *sum = sum.plus(cost);
            }
            let date = day["TimePeriod"]["Start"].as_str().unwrap_or_default();
            // The groups of a day can continue on the next page.
            if day["Estimated"] == true && self.estimated.last().is_none_or(|last| last != date) {
                self.estimated.push(date.to_owned());
            }
        }
        Ok(())
    }
}

impl Question<'_> {
    fn members(&self) -> Value {
        let is =
            |dimension: &str, values: &[&str]| json!({"Dimensions": {"Key": dimension, "Values": values}});
        json!({
            "TimePeriod": {"Start": self.start, "End": self.end},
            "Granularity": "DAILY",
            "Metrics": [METRIC],
            "Filter": {"And": [
                {"Tags": {"Key": TAG_STACK, "Values": [self.stack]}},
                is("LINKED_ACCOUNT", &[&self.place.account]),
                is("REGION", &[&self.place.region]),
                is("RECORD_TYPE", &USAGE),
            ]},
            "GroupBy": [{"Type": "DIMENSION", "Key": "USAGE_TYPE"}],
        })
    }
}

fn cost(group: &Value) -> Result<(String, SignedUsd), Failure> {
    let metric = &group["Metrics"][METRIC];
    let unit = metric["Unit"].as_str().unwrap_or_default();
    if unit != "USD" {
        return Err(unreadable(&format!("its costs are in '{unit}', and the ledger is in USD")));
    }
    let amount = metric["Amount"].as_str().and_then(|amount| serde_json::from_str(amount).ok());
    let usage = group["Keys"][0].as_str();
    usage.map(str::to_owned).zip(amount).ok_or_else(|| unreadable("a group has no usage type or no amount"))
}

fn unreadable(why: &str) -> Failure {
    Failure::endpoint(anyhow::anyhow!("cannot compare with Cost Explorer: {why}"))
}

fn refused(service: &Service<'_>, error: ServiceError) -> Failure {
    let action = service.action(OPERATION);
    let hint = match &error {
        ServiceError::Failed(error @ ClientError::Credentials(_)) => error.hint(),
        ServiceError::Failed(_) => {
            Some(format!("check whether this machine can reach {}", service.endpoint().authority()))
        }
        refused if refused.is_denied() => Some(format!(
            "allow {action} on all resources for this identity; Cost Explorer must be enabled, and in an organisation the \
             payer's account must allow it to member accounts"
        )),
        refused if refused.is("DataUnavailableException") => Some(
            "Cost Explorer has no data yet: it takes a day after it is enabled for the first time".to_owned(),
        ),
        refused if refused.is("ValidationException") => {
            Some("Cost Explorer has the days of this month and of the 13 months before".to_owned())
        }
        ServiceError::Refused { .. } => None,
    };
    let failure = Failure::endpoint(error).context(format!("cannot read AWS's bill with {action}"));
    failure.hint_if_any(hint)
}
