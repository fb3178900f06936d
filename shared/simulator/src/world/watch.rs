//! Bounds in time, looked at once a minute: jobs that nobody knows (P7), orders to stop that nobody carries out, and what
//! an idle stack asks for (P8). Only reads the world, and plants the jobs that P7 is about.
//!
//! How faults are accounted for: only minutes count that begin [`GRACE_MINUTES`] or more after the last fault. While there
//! are faults, sweeps are skipped, listings fail and processes are frozen for as long as the plan likes, so no bound holds;
//! from then on it holds in full, however old the job is. A minute more than promised is allowed for clocks that differ.

use std::collections::BTreeMap;

use serde_json::json;
use tuning::fact::JobKey;
use wire::names::{TAG_DECISION, TAG_STACK, TAG_TUNING, training_job_name};

use super::World;
use super::life::Fate;
use super::program::Program;
use super::training::{Job, Owner};
use crate::dice::Dice;
use crate::fault::Kind;
use crate::plan::MINUTE;
use crate::site::{Function, Op, Site};

/// Name of the stack.
pub(crate) const STACK: &str = "simulated";
/// After the last fault a process of before may still hold what it holds.
const GRACE_MINUTES: i64 = 5;
/// P7: "for longer than the sweep interval + 10 minutes while a tuning is active".
const ORPHAN_ACTIVE_MINUTES: i64 = 12;
/// P7: "an hour otherwise".
const ORPHAN_MINUTES: i64 = 61;
/// A stop that was ordered among faults: the claim of a dead actuator, the longest wait after failures, and two sweeps.
const OLD_STOP_MINUTES: i64 = 13;
/// A stop that was ordered long after the last fault.
const FRESH_STOP_MINUTES: i64 = 4;
/// A frozen or late process of the time of faults may still sweep, or hold a batch of stream records, for so long.
const QUIET_MINUTES: i64 = 35;
/// P8: "one listing an hour": with the age of an orphan and a sweep not more than an hour apart, and no closer than this.
const LISTINGS_APART_MS: i64 = 46 * MINUTE;
/// Most planted jobs of a history.
const PLANTED_MAX: usize = 6;

/// The books of this file.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Minutes since the last fault.
    calm: i64,
    /// Planted jobs of this stack: index, minutes they ran, minutes in a row while a tuning was active.
    orphans: Vec<(usize, i64, i64)>,
    planted: usize,
    /// Orders to stop that were not carried out: minutes, and whether it was ordered long after the last fault.
    stops: BTreeMap<(String, JobKey), (i64, bool)>,
    /// Nothing is active.
    resting: bool,
    /// A job ran in the present minute: then the sweeper has something to look at.
    busy: bool,
    queries: u32,
    /// Writes and listings of the present minute.
    writes: u32,
    listings: u32,
    listed_at: Option<i64>,
    /// Idle minutes that were checked.
    pub(crate) idle_minutes: u64,
}

impl World {
    /// A minute is over; `resting` = no tuning is active.
    pub(crate) fn watch(&mut self, resting: bool) {
        self.watch.calm = if self.faults_on { 0 } else { self.watch.calm + 1 };
        self.plant(resting);
        self.watch_idle(resting);
        if self.watch.calm > GRACE_MINUTES {
            self.watch_orphans();
            self.watch_stops();
            if self.watch.calm > QUIET_MINUTES {
                self.watch_silence();
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
                    "P7: {} is known to no row and runs for {minutes} min, {in_a_row} of them with an active tuning",
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
                // It may not have been created yet.
                None => !over,
                Some(job) if job.now.status != "InProgress" => false,
                Some(job) => {
                    *minutes += 1;
                    let most = if *fresh { FRESH_STOP_MINUTES } else { OLD_STOP_MINUTES };
                    if *minutes > most {
                        wrong.push(format!("P2: {} was to be stopped {minutes} min ago", job.now.name));
                    }
                    *minutes <= most
                }
            }
        });
        self.watch.stops = open;
        self.violations(wrong);
    }

    /// P8: "no active tuning: one query a minute and one listing an hour, nothing else."
    fn watch_idle(&mut self, resting: bool) {
        let queries = std::mem::take(&mut self.watch.queries);
        let writes = std::mem::take(&mut self.watch.writes);
        let listings = std::mem::take(&mut self.watch.listings);
        let quiet = self.watch.resting && !self.watch.busy;
        if quiet && queries != 1 {
            self.violations(vec![format!("P8: {queries} queries in an idle minute")]);
        }
        // A listing is made under the sweeper's lease: taken, and given back with the time of the next one.
        if quiet && writes > 2 * listings {
            self.violations(vec![format!("P8: {writes} writes in an idle minute with {listings} listings")]);
        }
        self.watch.idle_minutes += u64::from(quiet);
        self.watch.resting = resting && self.watch.calm > QUIET_MINUTES;
        self.watch.busy = self.training.alive > 0;
    }

    /// The present function asks for something.
    pub(crate) fn watch_call(&mut self, op: Op) {
        let watch = &mut self.watch;
        watch.busy |= self.training.alive > 0;
        if !watch.resting || watch.busy || self.function != Function::Sweeper {
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
                        "P8: an idle stack lists jobs {} min after the last time",
                        (self.now - last) / MINUTE
                    )
                })
            }
            _ => Some(format!("P8: an idle sweep asks for {op:?}")),
        };
        self.violations(wrong.into_iter().collect());
    }

    fn violations(&mut self, messages: Vec<String>) {
        for message in messages {
            self.check.violation(self.now, &message);
        }
    }

    /// Jobs that no tuning ordered: of this stack (an actuator gone mad, a hand), or of others, named like ours.
    fn plant(&mut self, resting: bool) {
        if self.watch.planted >= PLANTED_MAX {
            return;
        }
        let owed = self.faults.rate(Kind::OrphanAppears) > 0.0;
        // One when the faults end, one when everything is at rest, besides those that strike.
        let due = owed
            && (self.watch.calm == 1 || (resting && !self.watch.resting && self.watch.calm > QUIET_MINUTES));
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
        let key = JobKey { trial: 9_000 + number, rung: 0, attempt: 1 };
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
            // Of no tuning that the checkers know.
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
