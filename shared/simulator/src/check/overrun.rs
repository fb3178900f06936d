//! Jobs that last longer than their reservation pays for. They are stopped in time, and reserve more while they last.
//! If the cap does not pay for that, the youngest other jobs stop. Only amounts that the service billed above
//! reservations may exceed the cap.
//!
//! Computed from the recorded facts and the service's own books, with times and bounds of its own.

use tuning::log::fact::{Fact, JobKey, JobPhase, Recorded};
use tuning::log::reasons::StopWhy;

use super::{Book, JobBook, Money};
use crate::case::Case;
use crate::plan::MINUTE;
use crate::world::World;
use crate::world::training::{Job, Owner};

/// The time that a program gets after a stop, in seconds.
const GRACE_SECONDS: i64 = 120;
/// How late an order of the sweeper may be, in seconds.
const SWEEP_SECONDS: i64 = 60;
/// What a job past its reservation reserves more: at least so many seconds, or this part of the time so far.
const MORE_SECONDS: i64 = 240;
const MORE_PART: i64 = 20;
/// Longest time from the moment at which a job has to stop to the order, in ms.
const PATIENCE_MS: i64 = 15 * MINUTE;

/// What facts show of a job's billed time.
#[derive(Debug, Default)]
pub(super) struct Billed {
    /// When it began to be billed, in ms.
    started: Option<i64>,
    /// The latest sign of life, in ms.
    seen: i64,
    /// The seconds that its reservation pays for, with its limits and then with its extensions.
    paid_seconds: i64,
    /// The same without extensions.
    first_seconds: i64,
    /// The time and the rank of its latest state.
    state: (i64, u8),
    /// When its present interruption began, in ms.
    away: Option<i64>,
    /// The total time of its past interruptions, in ms.
    idle: i64,
    /// Whether it was seen to upload its model.
    uploads: bool,
    /// What its extensions added to its reservation, in micro-dollars.
    pub(super) extended: u64,
}

impl Billed {
    /// Records a state of the job. States count in the order of their times.
    fn enter(&mut self, at: i64, phase: JobPhase) {
        const ORDER: [fn(&JobPhase) -> bool; 7] = [
            |phase| matches!(phase, JobPhase::Other),
            |phase| matches!(phase, JobPhase::Starting),
            |phase| matches!(phase, JobPhase::Downloading),
            |phase| matches!(phase, JobPhase::Training),
            |phase| matches!(phase, JobPhase::Interrupted),
            |phase| matches!(phase, JobPhase::Stopping),
            |phase| matches!(phase, JobPhase::Uploading),
        ];
        let Some(rank) = (0..).zip(ORDER).find_map(|(rank, is)| is(&phase).then_some(rank)) else { return };
        if (at, rank) <= self.state {
            return;
        }
        self.state = (at, rank);
        let began = if phase == JobPhase::Interrupted { Some(at) } else { None };
        self.idle += self.away.filter(|_| began.is_none()).map_or(0, |began| at - began);
        self.away = began;
    }

    /// Returns the ms for which the job was billed up to `now`; 0 before its start.
    fn until(&self, now: i64) -> i64 {
        let now = self.away.map_or(now, |began| began.min(now));
        self.started.map_or(0, |started| now - started - self.idle)
    }
}

impl Case {
    /// Returns the seconds that a job reserves beyond its time limit: the start-up, the grace of a stop, and the upload.
    pub(crate) fn beyond_seconds(&self) -> i64 {
        self.startup_seconds() + GRACE_SECONDS + self.upload_seconds()
    }

    /// Returns the billed seconds at which a job that reserves `paid` has to stop.
    fn stop_seconds(&self, paid: i64) -> i64 {
        paid - GRACE_SECONDS - self.upload_seconds() - SWEEP_SECONDS
    }
}

impl Book {
    /// Returns what all jobs reserved more because they lasted longer than their reservation paid for, in micro-dollars.
    pub(crate) fn extended(&self) -> u64 {
        self.jobs.values().map(|job| job.billed.extended).sum()
    }

    /// Records the seconds that the reservation of a new job pays for.
    pub(super) fn open_billed(&mut self, key: JobKey, limit: u64) {
        let beyond = self.case.beyond_seconds();
        let ordered = self.clock();
        if let Some(job) = self.jobs.get_mut(&key) {
            job.billed.paid_seconds = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(beyond);
            job.billed.first_seconds = job.billed.paid_seconds;
            job.billed.seen = ordered;
        }
    }

    /// Records what a fact shows of a job's billed time.
    pub(super) fn billed_fact(&mut self, key: JobKey, recorded: &Recorded) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if matches!(
            recorded.fact,
            Fact::JobStateChanged { .. }
                | Fact::JobDescribed { .. }
                | Fact::JobStarted { .. }
                | Fact::JobSeen { .. }
                | Fact::StopAccepted { .. }
                | Fact::MetricsLogged { .. }
        ) {
            job.billed.seen = job.billed.seen.max(recorded.at.0);
        }
        if let Fact::JobStateChanged { phase, .. } = &recorded.fact {
            job.billed.uploads |= *phase == JobPhase::Uploading;
            if !job.end_seen {
                job.billed.enter(recorded.at.0, *phase);
            }
        }
        if let Fact::JobStateChanged { started, .. } | Fact::JobDescribed { started, .. } = &recorded.fact {
            job.billed.started = job.billed.started.or(started.map(|time| time.0));
        }
    }

    /// Checks that more is reserved for a job: facts show that it lasts, and the amount pays for the time to come.
    pub(super) fn check_extended(&mut self, key: JobKey, seconds: u64, amount: u64) -> Result<(), String> {
        let margin = self.margin;
        let job = self.jobs.get(&key).ok_or_else(|| format!("P2: job {key} was never ordered"))?;
        if job.billed.started.is_none() || job.billed.away.is_some() {
            return Err(format!("P1: job {key} was extended without instances"));
        }
        let so_far = (job.billed.until(job.billed.seen) + 999).div_euclid(1_000);
        let expected = so_far + MORE_SECONDS.max(so_far / MORE_PART);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let cost = self.case.cost(job.launch.instances, expected) + job.keeping;
        let more = cost.saturating_sub(job.reservation);
        let limited = self.limits.cap.is_some() || self.has_grants;
        let due =
            limited && !job.end_seen && job.money == Money::Reserved && so_far >= job.billed.paid_seconds;
        if !due || (seconds, amount) != (expected, more) {
            return Err(format!(
                "P1: the reservation of job {key} was extended by {amount} to {seconds} s, expected {more} and {expected} s \
                 after {so_far} s of {} s; margin {margin}",
                job.billed.paid_seconds
            ));
        }
        if let Some(job) = self.jobs.get_mut(&key) {
            job.billed.paid_seconds = seconds;
            job.billed.extended += amount;
            job.reservation += amount;
        }
        self.let_stand();
        Ok(())
    }

    /// Returns what a job needs without the margin: what its first reservation or its last extension pays for.
    fn needed(&self, job: &JobBook) -> u64 {
        self.case.cost(job.launch.instances, job.billed.paid_seconds)
    }

    /// Returns the part of that which a job does not use if its stop takes as long as a reservation allows.
    fn saved(&self, job: &JobBook) -> u64 {
        let used = job.billed.started.map_or(0, |_| {
            let so_far = (job.billed.until(self.clock()) + 999).div_euclid(1_000).max(0);
            self.case.cost(job.launch.instances, so_far + GRACE_SECONDS + self.case.upload_seconds())
        });
        self.needed(job).saturating_sub(used)
    }

    /// Returns how much of what extensions reserved the cap does not pay for, and what the stops ordered so far save of
    /// it.
    fn lacking(&self, except: Option<JobKey>) -> (u64, u64) {
        let open = || self.jobs.iter().filter(|(_, job)| job.money == Money::Reserved);
        let (spent, _) = self.money();
        let needed: u64 = open().map(|(_, job)| self.needed(job) + job.keeping).sum();
        let total = spent + needed + self.pools.money().1;
        let extended = open().map(|(_, job)| job.billed.extended).sum();
        let over = self.limits.cap.map_or(0, |cap| total.saturating_sub(cap)).min(extended);
        let stops = open().filter(|(key, job)| job.stop_ordered && !job.end_seen && Some(**key) != except);
        (over, stops.map(|(_, job)| self.saved(job)).sum())
    }

    /// Checks that no job runs on whose stop saves money that a job past its reservation takes from the cap.
    pub(super) fn check_others_stop(&self) -> Result<(), String> {
        let (over, stops) = self.lacking(None);
        if over <= stops || self.ended.is_some() {
            return Ok(());
        }
        let runs = |job: &JobBook| {
            let extended = job.billed.paid_seconds > job.billed.first_seconds;
            !job.stop_ordered && !job.end_seen && !job.billed.uploads && !extended
        };
        let open = self.jobs.iter().filter(|(_, job)| job.money == Money::Reserved);
        match open.clone().find(|(_, job)| runs(job) && self.saved(job) > 0) {
            None => Ok(()),
            Some((key, _)) => Err(format!(
                "P1: job {key} runs although the cap lacks {over} for a job past its reservation"
            )),
        }
    }

    /// Checks a stop because of money: the job has nearly used its reservation up, or the cap does not pay for another.
    pub(super) fn check_stop_for_money(&self, key: JobKey, why: StopWhy) -> Result<(), String> {
        let Some(job) = self.jobs.get(&key) else { return Ok(()) };
        let limited = self.limits.cap.is_some() || self.has_grants;
        match why {
            StopWhy::ReservationUsed { seconds } => {
                let due = self.case.stop_seconds(job.billed.first_seconds);
                let so_far = job.billed.until(self.clock());
                let fine = limited
                    && job.billed.away.is_none()
                    && i64::try_from(seconds) == Ok(due)
                    && so_far >= due * 1_000;
                fine.then_some(()).ok_or_else(|| {
                    format!(
                        "P1: job {key} was stopped after {so_far} ms for its reservation, not after {due} s"
                    )
                })
            }
            StopWhy::CapExceeded { by } => {
                let (over, stops) = self.lacking(Some(key));
                let extended = self.jobs.get(&by).is_some_and(|by| by.billed.extended > 0);
                let fine = over > stops && extended && by != key && self.saved(job) > 0;
                fine.then_some(()).ok_or_else(|| {
                    format!("P1: job {key} was stopped for job {by}; the cap lacks {over}, other stops save {stops}")
                })
            }
            _ => Ok(()),
        }
    }
}

impl World {
    /// Returns the amount that the service billed for a tuning's jobs above what was reserved for them, in micro-dollars.
    pub(crate) fn billed_above(&self, id: &str) -> u64 {
        let above = |job: &Job| {
            let case = &self.cases[job.case];
            let most = case.cost(job.choice, job.charged_seconds());
            most.saturating_sub(case.cost(job.choice, job.worst_seconds()))
        };
        self.training.of(id).map(above).sum()
    }

    /// Checks that a job that has nearly used its reservation up was ordered to stop, and that one that lasts longer reserves
    /// more. Called once no process of a faulty time can be left.
    pub(crate) fn watch_reservations(&mut self) {
        let calm_from = self.start + self.plan.outages_end();
        let mut wrong = Vec::new();
        for job in &self.training.jobs {
            let Some(book) = self.check.books.get(&job.id) else { continue };
            let Some(own) = book.jobs.get(&job.key).filter(|own| !own.concluded) else { continue };
            let limited = book.limits.cap.is_some() || book.has_grants;
            let (Some(started), Owner::Ours) = (job.now.started, job.owner) else { continue };
            let Billed { away: None, idle, .. } = own.billed else { continue };
            let started = started.0 + idle;
            // Without a cap, nothing is reserved.
            let watched_from = calm_from.max(book.limits.cap_changed_at());
            let paid_until = (started + own.billed.paid_seconds * 1_000).max(watched_from) + PATIENCE_MS;
            if !job.deleted && limited && !own.end_seen && self.now > paid_until && !job.is_ended() {
                wrong.push(format!("P1: job {} lasts longer than its reservation pays for", job.now.name));
            }
            let runs = job.now.status == "InProgress" && job.now.secondary_status != "Uploading";
            if job.deleted || !runs || !limited || own.end_seen || own.stop_ordered {
                continue;
            }
            let worst = job.worst_seconds();
            let due = (started + book.case.stop_seconds(worst) * 1_000).max(watched_from) + PATIENCE_MS;
            if self.now > due {
                wrong.push(format!("P1: job {} lasts, but its reservation is used up", job.now.name));
            }
        }
        for message in wrong {
            self.check.violation(self.now, &message);
        }
    }

    /// Returns the violation of a tuning whose bills exceed its highest cap by more than the service billed above
    /// reservations.
    pub(crate) fn exceeds_cap(&self, id: &str) -> Option<String> {
        let book = self.check.books.get(id)?;
        // Without a cap at the beginning, or with other prices, nothing was promised.
        let cap = book.limits.highest_cap?;
        let hidden = |job: &&Job| !(job.deleted && self.check.is_released(id, job.key));
        let jobs = self.training.of(id).filter(hidden);
        let billed: u64 = jobs.map(|job| self.cases[job.case].cost(job.choice, job.charged_seconds())).sum();
        let above = self.billed_above(id) + book.risen;
        (billed > cap + above).then(|| {
            format!("P1: the bills of {id} sum to {billed}, above the cap {cap} and the {above} above reservations")
        })
    }
}
