//! What is owed is done in time once nothing goes wrong any more: an ordered stop reaches its job, and a bill that can be
//! read is read, never replaced by the whole reservation.
//!
//! A job ends by its own limits even if nobody stops it, and a reservation covers any bill, so no other checker would
//! miss either; but the user pays for both.

use std::collections::BTreeMap;

use service::memory::Change;
use tuning::fact::{Fact, JobKey};
use tuning::ruling::Ruling;
use wire::stored;

use crate::plan::{HOUR, MINUTE};
use crate::world::World;

/// A stop reaches its job within so long: the longest wait of a deferred action, a claim, and sweeps that are late.
const STOP_MS: i64 = 30 * MINUTE;
/// A bill that is stored is folded within so long, however slow the process that does it.
const STORED_MS: i64 = 30 * MINUTE;
/// What was delayed in the first phase arrives within so long after it.
const CALM_AFTER_MS: i64 = 3 * HOUR;
/// A bill that the training service shows is read within so long when nothing goes wrong.
const SHOWN_MS: i64 = 50 * MINUTE;

/// When things were ordered and done, by tuning and job.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    stops: BTreeMap<(String, JobKey), i64>,
    bills: BTreeMap<(String, JobKey), i64>,
    in_full: BTreeMap<(String, JobKey), i64>,
}

impl Owed {
    /// Changes were committed.
    pub(super) fn committed(&mut self, now: i64, changes: &[Change]) {
        for change in changes {
            let Some(new) = change.new.as_ref().filter(|_| change.old.is_none()) else { continue };
            if let Some(id) = stored::id_of(&change.key, stored::FACT_PREFIX) {
                if let Ok(Fact::JobDescribed { job, .. }) = stored::fact(new).map(|recorded| recorded.fact) {
                    self.bills.insert((id.to_owned(), job), now);
                }
            } else if let Some(id) =
                stored::id_of(&change.key, "T#").filter(|_| change.key.sk.starts_with("STEP#"))
            {
                for ruling in stored::step(new).map(|step| step.rulings).unwrap_or_default() {
                    match ruling {
                        Ruling::StopOrdered { job, .. } => _ = self.stops.insert((id.to_owned(), job), now),
                        Ruling::SettledInFull { job, .. } => {
                            _ = self.in_full.insert((id.to_owned(), job), now)
                        }
                        _ => {}
                    }
                }
            }
        }
    }
}

/// What was not done in time, when a history is over.
pub(super) fn overdue(world: &World, wrong: &mut Vec<String>) {
    let owed = &world.check.owed;
    let outage = world.plan.stream_outage.map_or(0, |(_, to)| to);
    let quiet = world.start + world.plan.safety_ms.max(outage);
    for ((id, key), ordered) in &owed.stops {
        let deadline = (*ordered).max(quiet) + STOP_MS;
        let ran_on = world.training.of(id).filter(|job| job.key == *key).any(|job| {
            let last = job.history.iter().rev().find(|(at, _)| *at <= deadline);
            last.is_some_and(|(_, description)| description.status == "InProgress")
        });
        if ran_on {
            let late = (deadline - ordered) / MINUTE;
            wrong.push(format!("P2: job {key} of {id} ran on for {late} minutes after its stop was ordered"));
        }
    }
    for (of, settled) in &owed.in_full {
        let (id, key) = of;
        if owed.bills.get(of).is_some_and(|stored| stored + STORED_MS < *settled) {
            wrong.push(format!("P2: job {key} of {id} was settled in full although its bill was stored"));
        }
        let shown = world.training.of(id).find(|job| job.key == *key).and_then(|job| {
            let mut shown =
                job.history.iter().filter(|(_, description)| description.billable_seconds.is_some());
            shown.next().map(|(at, _)| *at)
        });
        if shown.is_some_and(|shown| shown.max(quiet + CALM_AFTER_MS) + SHOWN_MS < *settled) {
            wrong.push(format!("P2: job {key} of {id} was settled in full although its bill could be read"));
        }
    }
}
