//! The outbox (P2): each order of the steps has its row, and no row is without an order.

use std::collections::BTreeSet;

use crate::Findings;
use crate::log::Ruling;
use crate::rows::Tuning;

/// The prefixes of rows that the audit derives from the rulings.
const DERIVED: [&str; 4] = ["start-", "stop-", "bill-", "rest-"];

pub(crate) fn check(tuning: &Tuning, findings: &mut Findings) {
    if tuning.actions.is_empty() {
        return;
    }
    let rulings = tuning.steps.iter().flat_map(|step| &step.rulings);
    let ordered: BTreeSet<String> = rulings.filter_map(Ruling::action).collect();
    let is_derived = |name: &&String| DERIVED.iter().any(|prefix| name.starts_with(prefix));
    // A running tuning may have later orders than the steps that were read.
    for name in tuning.actions.keys().filter(is_derived).filter(|_| tuning.is_ended) {
        findings.check("P2", ordered.contains(name), || {
            format!("no step orders the action {name} of the outbox")
        });
    }
    for name in &ordered {
        let is_there = tuning.actions.contains_key(name);
        findings.check("P2", is_there, || format!("the order {name} has no row in the outbox: it is lost"));
    }
    if !tuning.is_ended {
        return;
    }
    // The outcome can be known before the row is updated.
    let facts = tuning.steps.iter().flat_map(|step| &step.facts);
    let known: BTreeSet<String> =
        facts.filter_map(|recorded| recorded.fact.outcome_of()).map(|job| format!("start-{job}")).collect();
    for (name, status) in tuning.actions.iter().filter(|(name, _)| name.starts_with("start-")) {
        let is_over = matches!(status.as_str(), "Done" | "Cancelled") || known.contains(name);
        findings.check("P2", is_over, || {
            format!("the tuning has ended, and the order {name} is {status}: its outcome is unknown")
        });
    }
}
