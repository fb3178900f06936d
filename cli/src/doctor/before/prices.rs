//! Checks whether AWS's price list has prices of the instance types and of their volumes.

use api_client::{Service, ServiceError};
use serde_json::json;
use tuning::unit::money::MicroUsd;
use wire::price_list::{self, SERVICE, Unit, VOLUME};

use super::finding::{Check, Finding};
use crate::doctor::verdict::Verdict;
use crate::text::usd;

const CHECK: Check = ("prices", "AWS's price list has prices of the instance types and of their volumes");
const ACTION: &str = "pricing:GetProducts";
/// The effect of prices that no list checks.
const WEAKER: &str =
    "a price that is too low then makes caps ineffective, so allow only trusted users to submit";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Price {
    Found(MicroUsd),
    Missing,
    Unreadable(String),
    Failed(ServiceError),
}

/// Looks up each of `types`, and then the volume. Queries exactly as the stack does. `None` if the usage types of the
/// Region are unknown.
pub(super) async fn read(
    service: &Service<'_>,
    types: &[String],
    region: &str,
) -> Option<Vec<(String, Price)>> {
    let prefixes = price_list::prefixes(region)?;
    let instances = types.iter().map(|kind| (kind.as_str(), price_list::instance(kind), Unit::Hour));
    let volume = ("volumes", VOLUME.to_owned(), Unit::GigabyteMonth);
    let mut found = Vec::new();
    for (of, usage, unit) in instances.chain([volume]) {
        let price = price(service, prefixes, &usage, unit).await;
        let failed = matches!(price, Price::Failed(_));
        found.push((of.to_owned(), price));
        // The next call would fail in the same way.
        if failed {
            break;
        }
    }
    Some(found)
}

async fn price(service: &Service<'_>, prefixes: &[&str], usage: &str, unit: Unit) -> Price {
    for prefix in prefixes {
        let usage = format!("{prefix}{usage}");
        let filter = json!({"Type": "TERM_MATCH", "Field": "usagetype", "Value": usage});
        let asked = json!({"ServiceCode": SERVICE, "Filters": [filter], "MaxResults": 100});
        let answer = match service.read("GetProducts", &asked).await {
            Ok(answer) => answer,
            Err(error) => return Price::Failed(error),
        };
        let rows = answer["PriceList"].as_array().into_iter().flatten().filter_map(|row| row.as_str());
        let prices: Result<Vec<Option<u64>>, _> =
            rows.map(|row| price_list::price(row, &usage, unit)).collect();
        match prices {
            Ok(prices) => {
                if let Some(price) = prices.into_iter().flatten().max() {
                    return Price::Found(MicroUsd(price));
                }
            }
            Err(error) => return Price::Unreadable(error.to_string()),
        }
    }
    Price::Missing
}

pub(super) fn judge(prices: Option<&[(String, Price)]>, region: &str) -> Finding {
    let Some(prices) = prices else {
        let seen = format!("the usage types of {region} in the price list are unknown");
        let fix = format!(
            "deploy with InstancePrices=TYPE=<USD per hour>,volume=<USD per GB and month> for each allowed type: the stack \
             refuses requests with a cap for other types; {WEAKER}"
        );
        return Finding::new(CHECK, Verdict::Warning(seen)).fix(fix);
    };
    for (_, price) in prices {
        match price {
            Price::Failed(error) => return failed(error),
            Price::Unreadable(problem) => return Finding::new(CHECK, Verdict::not_tried(problem.clone())),
            Price::Found(_) | Price::Missing => {}
        }
    }
    let missing: Vec<&str> =
        prices.iter().filter(|(_, price)| *price == Price::Missing).map(|(of, _)| of.as_str()).collect();
    if !missing.is_empty() {
        let fix = format!(
            "deploy with InstancePrices=TYPE=<USD per hour>: the stack refuses requests with a cap for types without a \
             listed price; {WEAKER}"
        );
        let seen = format!("the list has no price in {region} for: {}", missing.join(", "));
        return Finding::new(CHECK, Verdict::Warning(seen)).fix(fix);
    }
    let shown = prices.iter().map(|(of, price)| match price {
        Price::Found(price) if of == "volumes" => format!("volumes {} a GB and month", usd(*price)),
        Price::Found(price) => format!("{of} {} an hour", usd(*price)),
        Price::Missing | Price::Unreadable(_) | Price::Failed(_) => of.clone(),
    });
    Finding::new(CHECK, Verdict::Yes(shown.collect::<Vec<String>>().join(", ")))
}

/// Judges a failed look-up. The caller's own permissions prove nothing about the stack, whose role may read the list. A
/// policy of the organization denies the stack, too.
fn failed(error: &ServiceError) -> Finding {
    let any = format!(
        "deploy with PricesInRequests=Any, and set Controller.InstancePricesUsdPerHour in each request; {WEAKER}"
    );
    let is_for_all =
        matches!(error, ServiceError::Refused { message, .. } if message.contains("service control policy"));
    if error.is_denied() && is_for_all {
        let seen = format!("the organization denies {ACTION}, so the stack cannot read the list: {error}");
        return Finding::new(CHECK, Verdict::Warning(seen)).fix(any).set("PricesInRequests", "Any");
    }
    let finding = Finding::unanswered(CHECK, ACTION, error);
    let first = finding.fix.clone().map_or_else(String::new, |fix| format!("{fix}. "));
    finding.fix(format!("{first}The stack has its own permission. If it cannot reach the list either, {any}"))
}
