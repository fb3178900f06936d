//! The monthly cost of an idle stack: each standing charge with its count and price.
//!
//! The resources come from the template; the work of the sweeper is counted. Free tiers are not considered.

use simulator::site::Function;
use stack_template::{Template, metrics};

use crate::job::{Counted, number};
use crate::price;

/// Idle minutes that a history counts.
const MINUTES: f64 = 120.0;
/// Time for which DynamoDB caches a KMS key per role, in minutes.
const KEY_CACHED_MINUTES: f64 = 5.0;

/// A standing charge.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// Name of the charge.
    pub what: String,
    /// Amount, in USD per month.
    pub month: f64,
    /// The parameter that decides about the charge, with its default, or the option of `deploy.sh` that adds it; empty if
    /// none does.
    pub parameter: &'static str,
}

/// Returns a charge.
fn charge(what: String, month: f64, parameter: &'static str) -> Charge {
    Charge { what, month, parameter }
}

impl Charge {
    /// Returns whether a stack without this parameter has the charge.
    pub fn is_default(&self) -> bool {
        !self.parameter.starts_with("--overlay")
    }
}

/// Returns all standing charges of an idle stack.
pub fn charges(template: &Template, counted: &Counted) -> Vec<Charge> {
    let alarms = template.of_type("AWS::CloudWatch::Alarm");
    let watched: usize = alarms.values().map(|alarm| metrics(alarm).len()).sum();
    let boards = Template::with(&["dashboard"]).of_type("AWS::CloudWatch::Dashboard").len();
    let secrets = template.of_type("AWS::SecretsManager::Secret").len();
    let of = |count: usize, each: f64| number(u64::try_from(count).unwrap()) * each;
    let sweeps = counted.history.tally.idle[&Function::Sweeper];
    let bill = counted.bill_of(Function::Sweeper, sweeps);
    let months = price::MONTH_MINUTES / MINUTES;
    let names: Vec<&str> = counted.metrics.idle.iter().map(String::as_str).collect();
    let keys = price::MONTH_MINUTES / KEY_CACHED_MINUTES;
    vec![
        charge(format!("{boards} dashboard"), of(boards, price::DASHBOARD), "--overlay dashboard"),
        charge(
            format!("{} alarms on {watched} metrics", alarms.len()),
            of(watched, price::ALARM),
            "CreateAlarms=true",
        ),
        charge(format!("{secrets} secret, of API Gateway"), of(secrets, price::SECRET), ""),
        charge(
            format!("{} metrics of a sweep: `{}`", names.len(), names.join("`, `")),
            of(names.len(), price::METRIC),
            "",
        ),
        charge("ticks of the sweeper".to_owned(), bill.other * months, ""),
        charge("invocations of the sweeper".to_owned(), bill.functions * months, ""),
        charge("table requests of the sweeper".to_owned(), (bill.writes + bill.reads) * months, ""),
        charge("log of the sweeper".to_owned(), bill.logs * months, ""),
        charge(format!("{keys:.0} uses of the table's key"), keys * price::KMS_REQUEST, ""),
    ]
}
