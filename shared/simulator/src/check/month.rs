//! P1 for a stack, the monthly cap. The grants of all tunings together never exceed it, every grant is booked in
//! exactly one place, and unused money is returned at the end.

use std::collections::BTreeMap;

use port_tests::memory::Change;
use tuning::log::fact::Fact;
use tuning::log::ruling::{GrantOrder, Order, Ruling};
use wire::stored::{self, BUDGET, FACT_PREFIX, MonthRow};

use super::Checker;

/// The checker's books of the months.
#[derive(Debug, Default)]
pub(crate) struct Months {
    /// Granted minus returned money, in micro-dollars, by month.
    granted: BTreeMap<String, u64>,
    /// Ordered returns: (tuning, number) -> month, amount, and the month to which the money moves on.
    ordered: BTreeMap<(String, u32), (String, u64, Option<String>)>,
}

impl Checker {
    /// Checks the changes of one transaction: the facts and the month's row must agree.
    pub(super) fn months(&mut self, now: i64, changes: &[Change]) {
        let mut wrong = Vec::new();
        for change in changes {
            let Some(new) = &change.new else { continue };
            if let Some(id) = change.key.pk.strip_prefix(FACT_PREFIX).filter(|_| change.old.is_none()) {
                match stored::fact(new).map(|recorded| recorded.fact) {
                    Ok(Fact::BudgetGranted { month, amount, .. }) => {
                        let granted = self.months.granted.entry(month.clone()).or_default();
                        *granted += amount.0;
                        if amount.0 > 0 && self.monthly_cap.is_some_and(|cap| *granted > cap) {
                            wrong.push(format!(
                                "P1: {granted} granted in month {month} exceeds the monthly cap"
                            ));
                        }
                    }
                    Ok(Fact::GrantReturned { n }) => match self.months.ordered.get(&(id.to_owned(), n)) {
                        Some((month, amount, moved_to)) => {
                            let held = self.months.granted.entry(month.clone()).or_default();
                            *held = held.saturating_sub(*amount);
                            if let Some(month) = moved_to {
                                *self.months.granted.entry(month.clone()).or_default() += amount;
                            }
                        }
                        None => {
                            wrong.push(format!("P1: return {n} of {id} was booked, but no step ordered it"));
                        }
                    },
                    _ => {}
                }
            }
            if let Some(id) = change.key.pk.strip_prefix("T#").filter(|_| change.key.sk.starts_with("STEP#"))
            {
                let rulings = stored::step(new).map(|step| step.rulings).unwrap_or_default();
                for ruling in rulings {
                    if let Ruling::Order(Order::Grant(GrantOrder::Return { n, month, amount, moved_to })) =
                        ruling
                    {
                        self.months.ordered.insert((id.to_owned(), n), (month, amount.0, moved_to));
                    }
                }
            }
        }
        for change in changes.iter().filter(|change| change.key.pk == BUDGET) {
            let row = change.new.as_ref().map(MonthRow::read);
            let Some(Ok(row)) = row else {
                wrong.push(format!("P1: the row of a month is missing or unreadable: {row:?}"));
                continue;
            };
            let counted = self.months.granted.get(&row.month).copied().unwrap_or(0);
            if row.granted.0 != counted {
                wrong.push(format!(
                    "P1: the row of month {} has {} granted, the facts sum to {counted}",
                    row.month, row.granted.0
                ));
            }
        }
        for message in wrong {
            self.violation(now, &message);
        }
    }

    /// Checks that granted money that was not spent is returned at the end.
    pub(super) fn months_at_end(&self) -> Option<String> {
        let ended = self.books.values().filter(|book| book.has_grants);
        // What a bill exceeds its reservation by is not granted.
        if ended.clone().any(|book| book.ended.is_none() || book.money().0 > book.granted) {
            return None;
        }
        let spent: u64 = ended.map(|book| book.money().0).sum();
        let granted: u64 = self.months.granted.values().sum();
        (granted != spent)
            .then(|| format!("P1: {granted} is still granted at the end, but only {spent} was spent"))
    }
}
