//! What a stack costs a month in which nobody tunes: each standing charge, its count and its price.
//!
//! What is deployed is read from the template, what the sweeper does is counted. Free tiers are left out.

use simulator::site::Function;
use stack_template::Template;

use crate::job::{Counted, number};
use crate::price;

/// Minutes at rest that a history counts.
const MINUTES: f64 = 120.0;
/// For so long DynamoDB uses a key of KMS without asking again, for each role, minutes.
const KEY_CACHED_MINUTES: f64 = 5.0;

/// A standing charge.
#[derive(Debug, Clone, PartialEq)]
pub struct Charge {
    /// What is charged.
    pub what: String,
    /// USD a month.
    pub month: f64,
    /// The parameter that turns it off, or what else does.
    pub off: &'static str,
}

/// A row of the list.
fn charge(what: String, month: f64, off: &'static str) -> Charge {
    Charge { what, month, off }
}

/// All standing charges of a stack at rest.
pub fn charges(template: &Template, counted: &Counted) -> Vec<Charge> {
    let resources = |kind: &str| template.of_type(kind).len();
    let (alarms, boards) = (resources("AWS::CloudWatch::Alarm"), resources("AWS::CloudWatch::Dashboard"));
    let of = |count: usize, each: f64| number(u64::try_from(count).unwrap()) * each;
    let sweeps = counted.history.tally.idle[&Function::Sweeper];
    let bill = counted.bill_of(Function::Sweeper, sweeps);
    let months = price::MONTH_MINUTES / MINUTES;
    let names: Vec<&str> = counted.metrics.idle.iter().map(String::as_str).collect();
    let keys = price::MONTH_MINUTES / KEY_CACHED_MINUTES;
    vec![
        charge(format!("{boards} dashboard"), of(boards, price::DASHBOARD), "`CreateDashboard=false`"),
        charge(format!("{alarms} alarms"), of(alarms, price::ALARM), "`CreateAlarms=false`"),
        charge(
            format!("{} metrics of a sweep: `{}`", names.len(), names.join("`, `")),
            of(names.len(), price::METRIC),
            "no",
        ),
        charge("the sweeper's ticks".to_owned(), bill.other * months, "no"),
        charge("its invocations".to_owned(), bill.functions * months, "no"),
        charge("its requests to the table".to_owned(), (bill.writes + bill.reads) * months, "no"),
        charge("its log".to_owned(), bill.logs * months, "no"),
        charge(format!("{keys:.0} uses of the table's key"), keys * price::KMS_REQUEST, "no"),
    ]
}
