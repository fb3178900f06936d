//! Deadlines after the last fault: an ordered stop reaches its job, an ordered log read is performed, and a tuning ends
//! at its time limit. A readable bill is read: the full reservation is booked only for a job that no longer exists.
//!
//! No other checker notices a missed deadline: a job ends at its own limits even without a stop, and a reservation
//! covers every bill. But the user would pay for the missed stop and for the unread bill.

use std::collections::{BTreeMap, BTreeSet};

use port_tests::memory::Change;
use tuning::log::fact::{Fact, JobEnd, JobKey};
use tuning::log::ruling::{Booking, NoticeOrder, Order, ReadOrder, Ruling};
use tuning::trial::summary::JobSummary;
use wire::item::Item;
use wire::names::parse_job_key;
use wire::stored;

use crate::fault::Kind;
use crate::plan::{CrashOnce, HOUR, MINUTE, Plan};
use crate::world::World;
use crate::world::training::Job;

/// Time within which an ordered action is performed, in ms: the longest wait of a deferred action, a claim, and late
/// sweeps.
const PERFORMED_MS: i64 = 30 * MINUTE;
/// Time within which a stored bill is folded, in ms. It is long because a decider that read the facts before the bill
/// came can freeze several times and still be the first to save the step.
const STORED_MS: i64 = 2 * HOUR;
/// Time within which deliveries delayed in the fault phase arrive after it, in ms.
const CALM_AFTER_MS: i64 = 3 * HOUR;
/// Number of tries to read a log after which a part of it is enough.
const WHOLE_LOG_TRIES: i64 = 6;
/// Time within which a bill that the training service shows is read, without faults, in ms.
const SHOWN_MS: i64 = 50 * MINUTE;

/// A job of a tuning.
type JobId = (String, JobKey);

/// Times of orders and of their performance, in ms.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    stops: BTreeMap<JobId, i64>,
    bills: BTreeMap<JobId, i64>,
    in_full: BTreeMap<JobId, i64>,
    reads: BTreeMap<(JobId, u32), i64>,
    reads_done: BTreeMap<(JobId, u32), i64>,
    concluded: BTreeMap<JobId, JobSummary>,
    concluded_at: BTreeMap<JobId, i64>,
    endings: BTreeMap<String, i64>,
}

impl Deadlines {
    /// Records the times of committed changes.
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
                    self.concluded_at.entry((id.to_owned(), job.job)).or_insert(now);
                    self.concluded.insert((id.to_owned(), job.job), job);
                }
            }
        }
    }

    /// Returns when the summary of a concluded job was stored, in ms.
    pub(super) fn concluded_at(&self, id: &str, job: JobKey) -> Option<i64> {
        self.concluded_at.get(&(id.to_owned(), job)).copied()
    }

    fn ruling(&mut self, now: i64, id: &str, ruling: &Ruling) {
        let of = |job: &JobKey| (id.to_owned(), *job);
        match ruling {
            Ruling::Order(Order::Stop { job, .. }) => _ = self.stops.insert(of(job), now),
            Ruling::Booking(Booking::SettledInFull { job, .. }) => _ = self.in_full.insert(of(job), now),
            Ruling::Order(Order::Read(ReadOrder::Log { job, streams })) => {
                _ = self.reads.insert((of(job), *streams), now);
            }
            Ruling::TuningEnding { .. } | Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { .. })) => {
                self.endings.entry(id.to_owned()).or_insert(now);
            }
            _ => {}
        }
    }
}

/// Returns the times from the end of each job that ran to its conclusion, in ms and in order.
pub(crate) fn conclusions(world: &World) -> Vec<i64> {
    let deadlines = &world.check.deadlines;
    let delay = |(of, at): (&JobId, &i64)| {
        let job = job(world, of).filter(|job| job.now.started.is_some())?;
        let (ended, _) = job.history.iter().find(|(_, now)| now.ended.is_some())?;
        Some(at - ended)
    };
    let mut delays: Vec<i64> = deadlines.concluded_at.iter().filter_map(delay).collect();
    delays.sort_unstable();
    delays
}

/// Returns the time from which no fault strikes, in ms.
fn faults_end(world: &World) -> i64 {
    if is_undisturbed(&world.plan) {
        return world.start;
    }
    world.start + world.plan.safety_ms.max(world.plan.outages_end())
}

/// Returns whether the plan has no fault at any time.
pub(super) fn is_faultless(plan: &Plan) -> bool {
    is_undisturbed(plan) && plan.rates.is_empty()
}

/// Returns whether the plan disturbs neither calls nor deliveries. Bills may come late: the deadlines count from the
/// time a bill shows.
fn is_undisturbed(plan: &Plan) -> bool {
    let orderly = plan.order == crate::plan::Order::Natural && plan.crash_once == CrashOnce::Never;
    let calm = plan.rates.keys().all(|kind| *kind == Kind::BillLate);
    orderly && calm && plan.stream_outage.is_none() && plan.capacity_outage.is_none()
}

/// Returns whether so many sweeps can crash or be skipped that none checks a job within an hour. A job that waits for
/// its instances beyond its limits is then settled in full, which is an upper bound and breaks no cap.
pub(crate) fn can_sweeps_fail(plan: &Plan) -> bool {
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

/// Returns the job, if it exists.
fn job<'a>(world: &'a World, (id, key): &JobId) -> Option<&'a Job> {
    world.training.of(id).find(|job| job.key == *key)
}

/// Returns whether the job ran at that time and was neither stopping nor deleted.
fn was_running(world: &World, of: &JobId, at: i64) -> bool {
    let last = job(world, of)
        .filter(|job| !job.deleted)
        .and_then(|job| job.history.iter().rev().find(|(since, _)| *since <= at));
    last.is_some_and(|(_, description)| description.status == "InProgress")
}

/// Finds everything that was not done in time, at the end of a history.
pub(super) fn overdue(world: &World, wrong: &mut Vec<String>) {
    let deadlines = &world.check.deadlines;
    let calm_from = faults_end(world);
    let arrived = calm_from + if is_undisturbed(&world.plan) { 0 } else { CALM_AFTER_MS };
    for (of, ordered) in &deadlines.stops {
        let deadline = (*ordered).max(calm_from) + PERFORMED_MS;
        // No stop ends an upload.
        let uploads = job(world, of).is_some_and(|job| {
            let mut before = job.history.iter().rev().filter(|(since, _)| *since <= deadline);
            before.next().is_some_and(|(_, description)| description.secondary_status == "Uploading")
        });
        if was_running(world, of, deadline) && !uploads {
            let late = (deadline - ordered) / MINUTE;
            wrong.push(format!(
                "P2: job {} of {} kept running {late} min after its stop was ordered",
                of.1, of.0
            ));
        }
    }
    for (read, ordered) in &deadlines.reads {
        let deadline = (*ordered).max(calm_from) + PERFORMED_MS;
        let done = deadlines.reads_done.get(read).is_some_and(|done| *done <= deadline);
        let (id, key) = &read.0;
        if !done && was_running(world, &read.0, deadline) {
            wrong.push(format!("P2: the ordered log read of job {key} of {id} was not performed in time"));
        }
    }
    for (of, settled) in &deadlines.in_full {
        let (id, key) = of;
        if deadlines.bills.get(of).is_some_and(|stored| stored + STORED_MS < *settled) {
            wrong.push(format!("P2: job {key} of {id} was settled in full although its bill was stored"));
        }
        // A running job must never be taken for deleted.
        let lasts = |job: &Job| job.pended_ms > 0 || job.fate.is_unbounded();
        let excused = job(world, of).is_some_and(lasts) && can_sweeps_fail(&world.plan);
        if was_running(world, of, *settled) && !excused {
            wrong.push(format!("P2: job {key} of {id} was settled in full while it was waiting or running"));
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
        for (key, job) in &book.jobs {
            let since = job.ended().max(arrived);
            if job.log_given_up.is_some_and(|concluded| since + SHOWN_MS < concluded) {
                wrong.push(format!("P2: job {key} of {id} was concluded although its log could be read"));
            }
        }
        let Some(seconds) = book.case.max_runtime_seconds() else { continue };
        let time_up = book.created + seconds * 1_000;
        let due = time_up.max(arrived) + PERFORMED_MS;
        // A tuning that its user stops first ends when its jobs have.
        let is_stopped = book.case.stop_at.is_some_and(|at| at <= time_up);
        if !is_stopped && deadlines.endings.get(id).is_some_and(|ending| *ending > due) {
            wrong.push(format!("MaxRuntime: {id} did not end in time after its MaxRuntimeInSeconds"));
        }
    }
    check_last_values(world, wrong);
    check_limit_changes(world, arrived, wrong);
}

/// Checks that a stored change of limits is in force in time, unless a later one is.
fn check_limit_changes(world: &World, arrived: i64, wrong: &mut Vec<String>) {
    for ((id, key), (stored, recorded)) in &world.check.changes {
        let Some(book) = world.check.books.get(id) else { continue };
        let due = (*stored).max(arrived) + STORED_MS;
        let ended = world.check.deadlines.endings.get(id).copied().unwrap_or(i64::MAX);
        if ended > due && book.limits.misses(recorded) {
            wrong.push(format!("P2: the stored change {key} of {id} is not in force"));
        }
    }
}

/// Returns the jobs whose log could not be read completely in many tries, so that a part of it was enough.
fn cut_logs(world: &World) -> BTreeSet<JobId> {
    let rows = world.table.rows();
    let cut = rows.iter().filter(|row| row.number("tries").is_some_and(|tries| tries > WHOLE_LOG_TRIES));
    let job = |row: &Item| {
        let id = stored::id_of(&row.key, stored::ACTION_PREFIX)?;
        Some((id.to_owned(), parse_job_key(row.key.sk.strip_prefix("rest-")?)?))
    };
    cut.filter_map(job).collect()
}

/// Checks that a job is concluded with the last value that it logged, whatever deliveries were lost: its log is read
/// before.
fn check_last_values(world: &World, wrong: &mut Vec<String>) {
    if world.faults.can_strike(Kind::LogReadLag) {
        return;
    }
    let was_cut = cut_logs(world);
    for (of, summary) in &world.check.deadlines.concluded {
        let known = !summary.settled_in_full && !summary.never_started;
        let book = world.check.books.get(&of.0).and_then(|book| book.jobs.get(&of.1));
        let read = book.is_some_and(|book| book.log_given_up.is_none()) && !was_cut.contains(of);
        let Some(job) = job(world, of).filter(|job| known && read && !job.deleted) else { continue };
        // Only lines of the metric host count.
        let counted = job.streams.iter().filter(|stream| stream.name.contains("/algo-1-"));
        let lines = counted.flat_map(|stream| &stream.lines);
        let last = lines.filter_map(|line| line.message.split_once("auc=")?.1.strip_suffix(';')).next_back();
        let value = last.and_then(|value| value.parse::<f64>().ok()).filter(|value| value.is_finite());
        let is_found = |value: Option<f64>| value.map(f64::to_bits) == summary.last_value.map(f64::to_bits);
        // No value after the last epoch that the job was asked to train is awaited.
        let most = world.cases[job.case].choices.hyperband.map(|(_, most, _)| most);
        let asked = book.and_then(|book| book.level).or(job.epoch_limit).or(most);
        let completed = summary.end == Some(JobEnd::Completed) && summary.stop.is_none();
        let later = asked.filter(|_| completed).is_some_and(|asked| {
            (asked..=job.program.epochs).any(|epoch| is_found(job.program.value(epoch)))
        });
        if !is_found(value) && !later {
            let (id, key) = of;
            let found = summary.last_value;
            wrong.push(format!(
                "P3: job {key} of {id} was concluded with the value {found:?}, but its log ends with {value:?}"
            ));
        }
    }
}
