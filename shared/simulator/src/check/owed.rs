//! What is owed is done in time once nothing goes wrong any more: an ordered stop reaches its job, an ordered reading
//! of a log is done, a bill that can be read is read, never replaced by the whole reservation (nor is that of a job that is
//! there), and a tuning ends when its time is up.
//!
//! A job ends by its own limits even if nobody stops it, and a reservation covers any bill, so no other checker would
//! miss either; but the user pays for both.

use std::collections::BTreeMap;

use service::memory::Change;
use tuning::fact::{Fact, JobKey};
use tuning::ruling::Ruling;
use tuning::summary::JobSummary;
use wire::stored;

use crate::fault::Kind;
use crate::plan::{CrashOnce, HOUR, MINUTE, Order, Plan};
use crate::world::World;
use crate::world::training::Job;

/// What is ordered is performed within so long: the longest wait of a deferred action, a claim, and sweeps that are late.
const PERFORMED_MS: i64 = 30 * MINUTE;
/// A bill that is stored is folded within so long, however slow the process that does it: a decider that read the facts
/// before the bill came may be frozen again and again, and still be the first to save the step.
const STORED_MS: i64 = 2 * HOUR;
/// What was delayed in the first phase arrives within so long after it.
const CALM_AFTER_MS: i64 = 3 * HOUR;
/// A bill that the training service shows is read within so long when nothing goes wrong.
const SHOWN_MS: i64 = 50 * MINUTE;

/// A job of a tuning.
type Of = (String, JobKey);

/// When things were ordered and done.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    stops: BTreeMap<Of, i64>,
    bills: BTreeMap<Of, i64>,
    in_full: BTreeMap<Of, i64>,
    reads: BTreeMap<(Of, u32), i64>,
    reads_done: BTreeMap<(Of, u32), i64>,
    concluded: BTreeMap<Of, JobSummary>,
    endings: BTreeMap<String, i64>,
}

impl Owed {
    /// Changes were committed.
    pub(super) fn committed(&mut self, now: i64, changes: &[Change]) {
        for change in changes {
            let Some(new) = change.new.as_ref().filter(|_| change.old.is_none()) else { continue };
            if let Some(id) = stored::id_of(&change.key, stored::FACT_PREFIX) {
                match stored::fact(new).map(|recorded| recorded.fact) {
                    Ok(Fact::JobDescribed { job, .. }) => _ = self.bills.insert((id.to_owned(), job), now),
                    Ok(Fact::LogRead { job, streams }) => {
                        self.reads_done.insert(((id.to_owned(), job), streams), now);
                    }
                    Ok(_) | Err(_) => {}
                }
            } else if let Some(id) = stored::id_of(&change.key, "T#") {
                if change.key.sk.starts_with("STEP#") {
                    let rulings = stored::step(new).map(|step| step.rulings).unwrap_or_default();
                    for ruling in rulings {
                        self.ruling(now, id, &ruling);
                    }
                } else if change.key.sk.starts_with("JOB#")
                    && let Ok(job) = stored::job(new)
                {
                    self.concluded.insert((id.to_owned(), job.job), job);
                }
            }
        }
    }

    fn ruling(&mut self, now: i64, id: &str, ruling: &Ruling) {
        let of = |job: &JobKey| (id.to_owned(), *job);
        match ruling {
            Ruling::StopOrdered { job, .. } => _ = self.stops.insert(of(job), now),
            Ruling::SettledInFull { job, .. } => _ = self.in_full.insert(of(job), now),
            Ruling::LogReadOrdered { job, streams } => _ = self.reads.insert((of(job), *streams), now),
            Ruling::TuningEnding { .. } | Ruling::TuningEnded { .. } => {
                self.endings.entry(id.to_owned()).or_insert(now);
            }
            _ => {}
        }
    }
}

/// From when on nothing goes wrong.
fn quiet(world: &World) -> i64 {
    if faultless(&world.plan) {
        return world.start;
    }
    let outage = world.plan.stream_outage.map_or(0, |(_, to)| to);
    world.start + world.plan.safety_ms.max(outage)
}

/// Whether nothing goes wrong at any time.
pub(super) fn faultless(plan: &Plan) -> bool {
    let orderly = plan.order == Order::Natural && plan.crash_once == CrashOnce::Never;
    orderly && plan.rates.is_empty() && plan.stream_outage.is_none()
}

/// Whether sweeps may die or be left out one after the other, so that none looks at a job in an hour. One that waits for its
/// instances beyond its own limits is then settled in full: an upper bound, and no cap is broken.
pub(crate) fn sweeps_fail(plan: &Plan) -> bool {
    let kinds = [
        Kind::CrashAfter,
        Kind::CrashBefore,
        Kind::SweepSkipped,
        Kind::SweepLate,
        Kind::Freeze,
        Kind::TableThrottled,
    ];
    plan.crash_once != CrashOnce::Never
        || kinds.iter().any(|kind| plan.rates.get(kind).is_some_and(|rate| *rate > 0.0))
}

/// The job, if it exists.
fn job<'a>(world: &'a World, (id, key): &Of) -> Option<&'a Job> {
    world.training.of(id).find(|job| job.key == *key)
}

/// Whether the job ran at that time, and nobody had stopped or deleted it.
fn ran(world: &World, of: &Of, at: i64) -> bool {
    let last = job(world, of)
        .filter(|job| !job.deleted)
        .and_then(|job| job.history.iter().rev().find(|(since, _)| *since <= at));
    last.is_some_and(|(_, description)| description.status == "InProgress")
}

/// What was not done in time, when a history is over.
pub(super) fn overdue(world: &World, wrong: &mut Vec<String>) {
    let owed = &world.check.owed;
    let quiet = quiet(world);
    let arrived = quiet + if faultless(&world.plan) { 0 } else { CALM_AFTER_MS };
    for (of, ordered) in &owed.stops {
        let deadline = (*ordered).max(quiet) + PERFORMED_MS;
        if ran(world, of, deadline) {
            let late = (deadline - ordered) / MINUTE;
            wrong.push(format!(
                "P2: job {} of {} ran on for {late} min after its stop was ordered",
                of.1, of.0
            ));
        }
    }
    for (read, ordered) in &owed.reads {
        let deadline = (*ordered).max(quiet) + PERFORMED_MS;
        let done = owed.reads_done.get(read).is_some_and(|done| *done <= deadline);
        let (id, key) = &read.0;
        if !done && ran(world, &read.0, deadline) {
            wrong.push(format!("P2: the log of job {key} of {id} was ordered to be read, and was not"));
        }
    }
    for (of, settled) in &owed.in_full {
        let (id, key) = of;
        if owed.bills.get(of).is_some_and(|stored| stored + STORED_MS < *settled) {
            wrong.push(format!("P2: job {key} of {id} was settled in full although its bill was stored"));
        }
        // Nobody could know that a job is gone which is there.
        let excused = job(world, of).is_some_and(|job| job.pended_ms > 0) && sweeps_fail(&world.plan);
        if ran(world, of, *settled) && !excused {
            wrong.push(format!("P2: job {key} of {id} was settled in full while it waited or ran"));
        }
        let shown = job(world, of).filter(|job| !job.deleted).and_then(|job| {
            let mut shown = job.history.iter().filter(|(_, shown)| shown.billable_seconds.is_some());
            shown.next().map(|(at, _)| job.bill_at.max(*at))
        });
        if shown.is_some_and(|shown| shown.max(arrived) + SHOWN_MS < *settled) {
            wrong.push(format!("P2: job {key} of {id} was settled in full although its bill could be read"));
        }
    }
    for (id, book) in &world.check.books {
        let Some(seconds) = book.definition.limits.max_runtime_seconds else { continue };
        let time_up = book.definition.created + i64::try_from(seconds).unwrap_or(0) * 1_000;
        let due = time_up.max(arrived) + PERFORMED_MS;
        if owed.endings.get(id).is_some_and(|ending| *ending > due) {
            wrong.push(format!("MaxRuntime: {id} went on after its time was up"));
        }
    }
    last_values(world, wrong);
    changes(world, arrived, wrong);
}

/// A change of limits that was stored is in force in time, unless a later one is.
fn changes(world: &World, arrived: i64, wrong: &mut Vec<String>) {
    for ((id, key), (stored, recorded)) in &world.check.changes {
        let Some(book) = world.check.books.get(id) else { continue };
        let due = (*stored).max(arrived) + STORED_MS;
        let ended = world.check.owed.endings.get(id).copied().unwrap_or(i64::MAX);
        if ended > due && book.limits.misses(recorded) {
            wrong.push(format!("P2: change {key} of {id} was stored, and is not in force"));
        }
    }
}

/// A job is concluded with the last value that it logged, whatever was lost on the way: its log is read before its bill.
fn last_values(world: &World, wrong: &mut Vec<String>) {
    if world.faults.rate(Kind::LogReadLag) > 0.0 {
        return;
    }
    for (of, summary) in &world.check.owed.concluded {
        let known = !summary.settled_in_full && !summary.never_started;
        let Some(job) = job(world, of).filter(|job| known && !job.deleted) else { continue };
        // Only the metric host's lines count.
        let counted = job.streams.iter().filter(|stream| stream.name.contains("/algo-1-"));
        let lines = counted.flat_map(|stream| &stream.lines);
        let told = lines.filter_map(|line| line.message.split_once("auc=")?.1.strip_suffix(';')).next_back();
        let value = told.and_then(|value| value.parse::<f64>().ok()).filter(|value| value.is_finite());
        if value.map(f64::to_bits) != summary.last_value.map(f64::to_bits) {
            let (id, key) = of;
            let found = summary.last_value;
            wrong.push(format!(
                "P3: job {key} of {id} is concluded with {found:?}, its last value is {value:?}"
            ));
        }
    }
}
