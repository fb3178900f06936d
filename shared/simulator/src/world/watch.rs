//! Bounds in time, checked once a minute: unknown jobs (P7), ordered stops that are not performed and accepted stops of
//! jobs that are not ordered (P2), and the requests of an idle stack (P8). Also plants the unknown jobs of P7;
//! otherwise it only reads the world.
//!
//! Only minutes that begin at least [`GRACE_MINUTES`] after the last fault count. While faults strike, sweeps are
//! skipped, listings fail and processes freeze without limit, so no bound holds. Afterwards the full bound holds,
//! however old the job is. Each bound is a minute longer than promised, because clocks differ.

use std::collections::BTreeMap;

use serde_json::json;
use tuning::log::fact::JobKey;
use wire::names::{TAG_DECISION, TAG_STACK, TAG_TUNING, training_job_name};

use super::World;
use super::fate::Fate;
use super::program::Program;
use super::training::{Job, Owner};
use crate::dice::Dice;
use crate::fault::Kind;
use crate::plan::MINUTE;
use crate::site::{Function, Op, Site};

/// Name of the simulated stack.
pub(crate) const STACK: &str = "simulated";
/// Minutes after the last fault in which older processes can still hold claims.
const GRACE_MINUTES: i64 = 5;
/// P7 while a tuning is active: the sweep interval + 10 minutes, and a minute of tolerance.
const ORPHAN_ACTIVE_MINUTES: i64 = 12;
/// P7 otherwise: an hour, and a minute of tolerance.
const ORPHAN_MINUTES: i64 = 61;
/// Bound for a stop that was ordered while faults struck, in minutes: the claim of a crashed actuator, the longest
/// wait after failures, and two sweeps.
const OLD_STOP_MINUTES: i64 = 13;
/// Bound for a stop that was ordered long after the last fault, in minutes.
const FRESH_STOP_MINUTES: i64 = 4;
/// Minutes after the last fault in which a frozen or late process can still sweep or hold a batch of stream records.
pub(crate) const QUIET_MINUTES: i64 = 35;
/// P8: shortest time between two listings, in ms. One listing an hour is due, reduced by the age of an orphan and a
/// sweep.
const LISTINGS_APART_MS: i64 = 46 * MINUTE;
/// Maximum number of planted jobs in a history.
const PLANTED_MAX: usize = 6;

/// The books of the bounds in time.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Minutes since the last fault.
    calm: i64,
    /// Planted jobs of this stack: index, running minutes, and consecutive minutes with an active tuning.
    orphans: Vec<(usize, i64, i64)>,
    planted: usize,
    /// Ordered stops that are not performed yet: minutes since, and whether the stop was ordered long after the last
    /// fault.
    stops: BTreeMap<(String, JobKey), (i64, bool)>,
    /// Jobs that a user stopped and whose stop is not ordered yet, in the same way.
    job_stops: BTreeMap<(String, JobKey), (i64, bool)>,
    /// Whether no tuning is active.
    idle: bool,
    /// Whether a job ran in the current minute, so that the sweeper has work.
    busy: bool,
    /// Queries of the current minute.
    queries: u32,
    /// Writes of the current minute.
    writes: u32,
    /// Listings of the current minute.
    listings: u32,
    listed_at: Option<i64>,
    /// Number of idle minutes that were checked.
    pub(crate) idle_minutes: u64,
}

impl World {
    /// Checks the past minute; `idle` = no tuning is active.
    pub(crate) fn watch(&mut self, idle: bool) {
        self.watch.calm = if self.faults_on { 0 } else { self.watch.calm + 1 };
        self.plant(idle);
        self.watch_idle(idle);
        if self.watch.calm > GRACE_MINUTES {
            self.watch_orphans();
            self.watch_stops();
            self.watch_job_stops();
            if self.watch.calm > QUIET_MINUTES {
                self.watch_silence();
                self.watch_diverged();
                self.watch_last_epoch();
                self.watch_reservations();
            }
        }
    }

    fn watch_orphans(&mut self) {
        let active = self.check.books.values().any(|book| book.ended.is_none());
        let mut wrong = Vec::new();
        for (index, minutes, in_a_row) in &mut self.watch.orphans {
            let job = &self.training.jobs[*index];
            if job.now.status != "InProgress" {
                continue;
            }
            *minutes += 1;
            *in_a_row = if active { *in_a_row + 1 } else { 0 };
            if *in_a_row > ORPHAN_ACTIVE_MINUTES || *minutes > ORPHAN_MINUTES {
                wrong.push(format!(
                    "P7: job {} has no row and has been running for {minutes} min, {in_a_row} of them \
                        with an active tuning",
                    job.now.name
                ));
            }
        }
        self.violations(wrong);
    }

    fn watch_stops(&mut self) {
        let fresh = self.watch.calm > OLD_STOP_MINUTES;
        for stop in std::mem::take(&mut self.check.stops_ordered) {
            self.watch.stops.insert(stop, (0, fresh));
        }
        let mut open = std::mem::take(&mut self.watch.stops);
        let mut wrong = Vec::new();
        open.retain(|(id, key), (minutes, fresh)| {
            let over = self.check.books.get(id).and_then(|book| book.jobs.get(key));
            let over = over.is_none_or(|job| job.end_seen);
            match self.training.of(id).find(|job| job.key == *key) {
                // The job may not be created yet.
                None => !over,
                // No stop ends an upload.
                Some(job) if job.now.status != "InProgress" || job.now.secondary_status == "Uploading" => {
                    false
                }
                Some(job) => {
                    *minutes += 1;
                    let most = if *fresh { FRESH_STOP_MINUTES } else { OLD_STOP_MINUTES };
                    if *minutes > most {
                        wrong.push(format!(
                            "P2: job {} kept running {minutes} min after its stop was ordered",
                            job.now.name
                        ));
                    }
                    *minutes <= most
                }
            }
        });
        self.watch.stops = open;
        self.violations(wrong);
    }

    /// Checks that the decider orders each stop of a job that a user was promised.
    fn watch_job_stops(&mut self) {
        let fresh = self.watch.calm > OLD_STOP_MINUTES;
        for stop in std::mem::take(&mut self.check.job_stops_accepted) {
            self.watch.job_stops.insert(stop, (0, fresh));
        }
        // During a stream outage the decider receives nothing.
        let outage_until = self.plan.stream_outage.map_or(0, |(_, to)| self.start + to);
        if self.now < outage_until {
            return;
        }
        let mut open = std::mem::take(&mut self.watch.job_stops);
        let mut wrong = Vec::new();
        open.retain(|(id, key), (minutes, fresh)| {
            let known = self.check.books.get(id).and_then(|book| book.jobs.get(key));
            let is_over = known.is_none_or(|job| job.stop_ordered || job.end_seen || job.concluded);
            let runs = self.training.of(id).any(|job| job.key == *key && job.now.status == "InProgress");
            if is_over || !runs {
                return false;
            }
            *minutes += 1;
            let most = if *fresh { FRESH_STOP_MINUTES } else { OLD_STOP_MINUTES };
            if *minutes > most {
                wrong.push(format!(
                    "P2: the accepted stop of job {key} of {id} was not ordered for {minutes} min"
                ));
            }
            *minutes <= most
        });
        self.watch.job_stops = open;
        self.violations(wrong);
    }

    /// Checks P8: without an active tuning, one query a minute, and one listing with a query an hour.
    fn watch_idle(&mut self, idle: bool) {
        let queries = std::mem::take(&mut self.watch.queries);
        let writes = std::mem::take(&mut self.watch.writes);
        let listings = std::mem::take(&mut self.watch.listings);
        let quiet = self.watch.idle && !self.watch.busy;
        // A query for deleted tunings follows a listing.
        if quiet && !(1..=1 + listings.min(1)).contains(&queries) {
            self.violations(vec![format!(
                "P8: the sweeper made {queries} queries in an idle minute with {listings} listings, expected 1, and 1 \
                 more after a listing"
            )]);
        }
        // A listing needs the sweeper's lease, which takes two writes: acquire and release.
        if quiet && writes > 2 * listings {
            self.violations(vec![format!(
                "P8: the sweeper made {writes} writes in an idle minute with {listings} listings"
            )]);
        }
        self.watch.idle_minutes += u64::from(quiet);
        self.watch.idle = idle && self.watch.calm > QUIET_MINUTES;
        self.watch.busy = self.training.alive > 0;
    }

    /// Counts a call of the running function.
    pub(crate) fn watch_call(&mut self, op: Op) {
        let watch = &mut self.watch;
        watch.busy |= self.training.alive > 0;
        if !watch.idle || watch.busy || self.function != Function::Sweeper {
            return;
        }
        let wrong = match op {
            Op::Query => {
                watch.queries += 1;
                None
            }
            Op::Write => {
                watch.writes += 1;
                None
            }
            Op::List => {
                watch.listings += 1;
                let last = watch.listed_at.replace(self.now);
                last.filter(|last| self.now - last < LISTINGS_APART_MS).map(|last| {
                    format!(
                        "P8: the sweeper of an idle stack listed jobs only {} min after the last listing",
                        (self.now - last) / MINUTE
                    )
                })
            }
            _ => Some(format!("P8: the sweeper of an idle stack called {op:?}")),
        };
        self.violations(wrong.into_iter().collect());
    }

    fn violations(&mut self, messages: Vec<String>) {
        for message in messages {
            self.check.violation(self.now, &message);
        }
    }

    /// Plants jobs that no tuning ordered: of this stack, for example started by hand, or of another stack with
    /// similar names.
    fn plant(&mut self, idle: bool) {
        if self.watch.planted >= PLANTED_MAX {
            return;
        }
        let enabled = self.faults.rate(Kind::OrphanAppears) > 0.0;
        // Besides random ones, plants a job when the faults end and one when the stack becomes idle.
        let due = enabled
            && (self.watch.calm == 1 || (idle && !self.watch.idle && self.watch.calm > QUIET_MINUTES));
        if due {
            self.faults.count(Kind::OrphanAppears, Site::World);
        }
        if due || self.faults.strikes(Kind::OrphanAppears) {
            self.plant_job(Owner::Orphan);
        }
        if self.faults.strikes(Kind::ForeignJob) {
            self.plant_job(Owner::Foreign);
        }
    }

    fn plant_job(&mut self, owner: Owner) {
        self.watch.planted += 1;
        let number = u32::try_from(self.watch.planted).unwrap_or(0);
        let known = self.check.books.keys().next().cloned();
        let known = known.filter(|_| self.dice.chance(0.5));
        let id = known.unwrap_or_else(|| format!("{}-abc{number:03}", self.cases[0].name));
        let key = JobKey::new(9_000 + number, 0, 1);
        let name = training_job_name(&id, key);
        let (stack, hours) = match owner {
            Owner::Orphan => (STACK, 12),
            Owner::Foreign | Owner::Ours => ("other", 2),
        };
        let tags = json!([
            {"Key": TAG_STACK, "Value": stack},
            {"Key": TAG_TUNING, "Value": id},
            {"Key": TAG_DECISION, "Value": key.to_string()},
        ]);
        let program = Program::long();
        let fate = Fate::calm(&program);
        let job = Job {
            // Belongs to no tuning that the checkers know.
            id: String::new(),
            owner,
            max_runtime_ms: hours * 60 * MINUTE,
            dice: Dice::new(self.seed, "planted", u64::from(number)),
            ..Job::new(&name, key, &tags, program, fate, self.now)
        };
        let index = self.training.enter(job);
        if owner == Owner::Orphan {
            self.watch.orphans.push((index, 0, 0));
        }
        self.enter(index, "InProgress", "Starting");
        self.begin_job(index);
    }
}
