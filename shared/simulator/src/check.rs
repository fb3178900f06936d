//! The checkers of the promises. They share no code with the system: they read every commit, keep books of their own,
//! and change nothing.
//!
//! [`Checker::committed`] receives every commit in order; [`end`] checks the whole history when it is over.

mod actions;
mod asked;
mod bills;
mod bounds;
mod brackets;
mod capacity;
mod deadlines;
mod decisions;
mod diverged;
pub(crate) mod end;
mod failing;
pub(crate) mod judged;
mod last_epoch;
mod launch;
mod limits;
mod month;
mod overrun;
mod pools;
mod promotion;
mod reasons;
mod refit;
pub(crate) mod rules;
mod rungs;
mod silence;
mod steps;
mod target;

pub(crate) use deadlines::{can_sweeps_fail, conclusions};

use std::collections::{BTreeMap, BTreeSet};

use port_tests::memory::Change;
use search::Configuration;
use tuning::definition::Definition;
use tuning::log::fact::{Fact, JobEnd, JobKey};
use tuning::log::reasons::{EndReason, StopWhy};
use tuning::log::ruling::{Launch, Order, Ruling};
use tuning::state::State;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{BracketId, RungId, TrialId};
use wire::stored;

use crate::case::Case;

/// Maximum number of violations that are kept of one history.
const VIOLATIONS_MAX: usize = 20;

/// All checkers, with their books.
#[derive(Debug)]
pub(crate) struct Checker {
    cases: BTreeMap<String, Case>,
    pub(crate) books: BTreeMap<String, Book>,
    pub(crate) violations: Vec<String>,
    pub(crate) rulings: BTreeMap<&'static str, u64>,
    /// Changes of limits that are stored as facts.
    changes: limits::Stored,
    /// Jobs whose last bill a stored fact confirms.
    pub(crate) confirmed: BTreeSet<(String, JobKey)>,
    /// Number of judgements by the value that the program logged at that epoch.
    pub(crate) judged_exactly: u64,
    /// Number of judgements by the value of another epoch.
    pub(crate) judged_by_other_epoch: u64,
    pub(crate) steps: u64,
    /// Published trial events by decision, and published status changes to `Stopping`.
    pub(crate) decisions_published: BTreeMap<String, u64>,
    /// Published notices, by tuning name.
    pub(crate) notices: BTreeMap<String, Vec<String>>,
    /// Monthly cap of the stack, in micro-dollars.
    pub(crate) monthly_cap: Option<u64>,
    months: month::Months,
    /// Number of submissions that were refused because the monthly cap was used up.
    pub(crate) refused_for_month: usize,
    /// Stops that were ordered since the last minute.
    pub(crate) stops_ordered: Vec<(String, JobKey)>,
    /// Accepted requests to stop one job since the last check.
    pub(crate) job_stops_accepted: Vec<(String, JobKey)>,
    /// Number of tunings in the list of active tunings.
    pub(crate) active: usize,
    deadlines: deadlines::Deadlines,
}

/// The books of one tuning.
#[derive(Debug)]
pub(crate) struct Book {
    /// The stored definition, for the replica. The rules to check come from `case`.
    pub(crate) definition: Definition,
    /// The tuning that was requested.
    pub(crate) case: Case,
    /// When its definition was stored, in ms.
    created: i64,
    /// Whether its money comes in grants from the monthly cap.
    has_grants: bool,
    pub(crate) limits: limits::Limits,
    /// Effects of changes of limits, for the report.
    pub(crate) changed: BTreeMap<&'static str, u64>,
    launches: launch::Launches,
    capacity: capacity::Capacity,
    pools: pools::Pools,
    /// The trial of the refit.
    pub(crate) refit: Option<TrialId>,
    pub(crate) steps: u64,
    /// The state that the steps lead to, by the system's own `load`. Used for the idempotence check and the comparison
    /// at the end.
    pub(crate) replica: State,
    pub(crate) jobs: BTreeMap<JobKey, JobBook>,
    pub(crate) trials: BTreeMap<TrialId, TrialBook>,
    /// Arrivals in their order, by bracket and rung.
    levels: BTreeMap<(u32, Epochs), Vec<Arrival>>,
    /// Arrivals with a value at the last level of their bracket, in their order, by training job definition.
    last_arrivals: BTreeMap<u32, Vec<(TrialId, f64)>>,
    /// The largest excess of a bill above the worst case of its job, in micro-dollars. Only a fault of the training
    /// service can cause one.
    pub(crate) margin: u64,
    /// The sum of the rises of booked bills, in micro-dollars.
    pub(crate) risen: u64,
    /// Whether a ruling published the overrun.
    overrun_published: bool,
    pub(crate) ending: Option<EndReason>,
    pub(crate) ended: Option<(EndReason, i64)>,
    /// Ordered notices.
    notices: BTreeSet<String>,
    decisions: decisions::Decisions,
    /// Granted minus returned money, in micro-dollars.
    granted: u64,
    bounds: bounds::Bounds,
    pub(crate) promotions: promotion::Promotions,
}

/// A trial that reached a rung, with its value there.
type Arrival = (TrialId, Option<f64>);

/// The books of one job.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each flag records one observation, and they come in any order"
)]
#[derive(Debug)]
pub(crate) struct JobBook {
    /// Position in the order of all jobs of the tuning.
    order: usize,
    reservation: u64,
    /// The launch that was ordered.
    pub(crate) launch: Launch,
    /// The cap and the maximum number of parallel jobs that were in force when the job was ordered.
    limits: (Option<u64>, u32),
    /// How the job ended.
    end: Option<JobEnd>,
    /// Whether it was ordered to stop because of too many interruptions.
    interrupted: bool,
    /// Whether a fact shows that its instances ran.
    ran: bool,
    /// End of its instances' run, in ms.
    ended: Option<i64>,
    /// How long its instances are kept afterwards, in seconds.
    keep_seconds: u64,
    /// Worst-case cost of keeping them, in micro-dollars.
    keeping: u64,
    /// Whether a fact shows that the job exists.
    seen: bool,
    /// Whether a quota prevents its start.
    limited: bool,
    /// Whether it was cancelled because of the quota. Its trial continues on other instances, or later.
    cancelled_for_quota: bool,
    money: Money,
    /// The highest billed seconds that a fact shows.
    shown: Option<u64>,
    /// The billed seconds that are booked.
    booked: Option<u64>,
    /// The billed seconds that a further reading confirmed.
    confirmed: Option<u64>,
    /// The margin of reservations when its first bill was booked, in micro-dollars.
    margin_at_bill: u64,
    billed: overrun::Billed,
    pub(crate) stop_ordered: bool,
    /// Why it was ordered to stop.
    pub(crate) stop_why: Option<StopWhy>,
    bill_ordered: bool,
    pub(crate) end_seen: bool,
    /// Whether a user asked to stop it.
    pub(crate) stop_requested: bool,
    /// Whether no further attempt may follow: the job was refused, failed by its program, completed or was stopped.
    pub(crate) no_retry: bool,
    /// Whether its program failed.
    failed: bool,
    /// The latest time at which facts showed instances, in ms.
    instances_at: Option<i64>,
    /// The latest time of an interruption, in ms.
    interrupted_at: Option<i64>,
    /// The epoch limit to pass to the job, if the ruling has one.
    pub(crate) level: Option<u32>,
    /// Number of epochs that its trial was promoted with.
    pub(crate) promoted_with: u32,
    /// Epoch at which it started although its trial had more, if a ruling reported that.
    pub(crate) repeats_from: Option<u32>,
    /// Whether the whole reservation was booked because its bill never came.
    pub(crate) settled_in_full: bool,
    /// Whether the rest of its log was ordered to be read and is not known to be read.
    rest_open: bool,
    /// Whether the rest of its log was read.
    pub(crate) rest_read: bool,
    /// When it was concluded although its log could not be read for an hour, in ms.
    pub(crate) log_given_up: Option<i64>,
    pub(crate) created: bool,
    /// Whether it was deleted before any fact showed it.
    is_forgotten: bool,
    pub(crate) concluded: bool,
}

/// State of a job's money, in micro-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Money {
    Reserved,
    Spent(u64),
    Released,
}

/// The books of one trial.
#[derive(Debug, Default)]
pub(crate) struct TrialBook {
    pub(crate) configuration: Configuration,
    attempts: u32,
    bracket: BracketId,
    judged: RungId,
    /// Whether it was stopped at a rung.
    out: bool,
    finished: bool,
}

impl Checker {
    pub(crate) fn new(cases: &[Case], monthly_cap: Option<u64>) -> Self {
        Self {
            cases: cases.iter().map(|case| (case.name.clone(), case.clone())).collect(),
            books: BTreeMap::new(),
            violations: Vec::new(),
            rulings: BTreeMap::new(),
            changes: limits::Stored::new(),
            confirmed: BTreeSet::new(),
            judged_exactly: 0,
            judged_by_other_epoch: 0,
            steps: 0,
            decisions_published: BTreeMap::new(),
            notices: BTreeMap::new(),
            monthly_cap,
            months: month::Months::default(),
            refused_for_month: 0,
            stops_ordered: Vec::new(),
            job_stops_accepted: Vec::new(),
            active: 0,
            deadlines: deadlines::Deadlines::default(),
        }
    }

    /// Returns whether a promise was broken.
    pub(crate) fn is_violated(&self) -> bool {
        !self.violations.is_empty()
    }

    /// Records a violated promise.
    pub(crate) fn violation(&mut self, now: i64, message: &str) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(format!("at {} ms: {message}", now - crate::plan::START));
        }
    }

    /// Checks the changes of one committed transaction.
    pub(crate) fn committed(&mut self, now: i64, changes: &[Change]) {
        for change in changes {
            if let Err(message) = self.change(now, change) {
                self.violation(now, &message);
            }
        }
        self.rows_of_rulings(now, changes);
        self.months(now, changes);
        self.deadlines.committed(now, changes);
    }

    fn change(&mut self, now: i64, change: &Change) -> Result<(), String> {
        let (pk, sk) = (change.key.pk.as_str(), change.key.sk.as_str());
        // The sweeper's row is in the same partition.
        if pk == stored::ACTIVE && sk != stored::SweepRow::key().sk {
            let (was, is) = (change.old.is_some(), change.new.is_some());
            self.active = self.active + usize::from(is) - usize::from(was);
        }
        if let Some(id) = pk.strip_prefix("T#") {
            if sk == stored::META {
                return self.submitted(now, id, change);
            }
            if sk.starts_with("STEP#") {
                return self.step(id, change);
            }
        }
        if let Some(id) = pk.strip_prefix(stored::FACT_PREFIX) {
            let Some(new) = change.new.as_ref().filter(|_| change.old.is_none()) else {
                return Err(format!("fact {pk}/{sk} was changed or deleted after it was written"));
            };
            let Ok(recorded) = stored::fact(new) else { return Ok(()) };
            match &recorded.fact {
                Fact::LimitsChanged { .. } => {
                    self.changes.insert((id.to_owned(), recorded.key.clone()), (now, recorded));
                }
                Fact::BillsConfirmed { bills } => {
                    self.confirmed.extend(bills.iter().map(|(job, _)| (id.to_owned(), *job)));
                }
                _ => {}
            }
        }
        if let Some(id) = pk.strip_prefix(stored::ACTION_PREFIX) {
            return actions::changed(id, change);
        }
        Ok(())
    }

    fn submitted(&mut self, now: i64, id: &str, change: &Change) -> Result<(), String> {
        if change.old.is_some() || change.new.is_none() {
            return Err(format!("the definition of {id} was changed or deleted"));
        }
        let item = change.new.as_ref().ok_or("a definition without a row")?;
        let (definition, _) = stored::meta(item).map_err(|error| error.to_string())?;
        if self.books.values().any(|book| book.case.name == definition.name) {
            return Err(format!("a second tuning has the name {}", definition.name));
        }
        let case = self
            .cases
            .get(&definition.name)
            .cloned()
            .ok_or_else(|| format!("tuning {id} was never requested"))?;
        let book = Book {
            replica: State::new(&definition),
            definition,
            limits: limits::Limits::of(&case),
            case,
            created: now,
            has_grants: self.monthly_cap.is_some(),
            changed: BTreeMap::new(),
            launches: launch::Launches::default(),
            capacity: capacity::Capacity::default(),
            pools: pools::Pools::default(),
            refit: None,
            steps: 0,
            jobs: BTreeMap::new(),
            trials: BTreeMap::new(),
            levels: BTreeMap::new(),
            last_arrivals: BTreeMap::new(),
            margin: 0,
            risen: 0,
            overrun_published: false,
            ending: None,
            ended: None,
            notices: BTreeSet::new(),
            decisions: decisions::Decisions::default(),
            granted: 0,
            bounds: bounds::Bounds::default(),
            promotions: promotion::Promotions::default(),
        };
        self.books.insert(id.to_owned(), book);
        Ok(())
    }

    fn step(&mut self, id: &str, change: &Change) -> Result<(), String> {
        let item = change.new.as_ref().ok_or_else(|| format!("P5: a step of {id} was deleted"))?;
        if change.old.is_some() {
            return Err(format!("P5: step {} of {id} was changed", change.key.sk));
        }
        let step = stored::step(item).map_err(|error| error.to_string())?;
        let book =
            self.books.get_mut(id).ok_or_else(|| format!("a step of the unknown tuning {id} was written"))?;
        self.steps += 1;
        for ruling in &step.rulings {
            if let Ruling::Order(Order::Stop { job, .. }) = ruling {
                self.stops_ordered.push((id.to_owned(), *job));
            }
            *self.rulings.entry(rules::name(ruling)).or_default() += 1;
        }
        book.apply_step(&step).map_err(|message| format!("step {} of {id}: {message}", step.n))
    }

    /// Checks the creation of a training job.
    pub(crate) fn created(&mut self, now: i64, id: &str, key: JobKey) {
        let job = self.books.get_mut(id).and_then(|book| book.jobs.get_mut(&key));
        let wrong = match job {
            None => Some(format!("P7: job {key} was created, but no step ordered it")),
            Some(job) if job.created => Some(format!("P2: job {key} was created twice")),
            Some(job) if job.money == Money::Released => {
                Some(format!("P1: job {key} was created after its reservation was released"))
            }
            Some(job) => {
                job.created = true;
                None
            }
        };
        if let Some(message) = wrong {
            self.violation(now, &message);
        }
    }

    /// Records that a job was deleted. If no fact has shown it until now, no decision can know of it.
    pub(crate) fn deleted(&mut self, id: &str, key: JobKey) {
        let job = self.books.get_mut(id).and_then(|book| book.jobs.get_mut(&key));
        if let Some(job) = job.filter(|job| !job.seen) {
            job.is_forgotten = true;
        }
    }

    /// Returns the cap and the maximum number of parallel jobs that were in force when the last of these jobs was
    /// ordered. The decider knew all of them then, so together they must respect both.
    pub(crate) fn in_force(&self, id: &str, jobs: impl Iterator<Item = JobKey>) -> (Option<u64>, u32) {
        let books = self.books.get(id);
        let jobs = jobs.filter_map(|key| books?.jobs.get(&key));
        jobs.max_by_key(|job| job.order).map_or((None, u32::MAX), |job| job.limits)
    }

    /// Returns whether the reservation of a job was released. This is correct even for a job that existed, if it was
    /// deleted before any fact showed it.
    pub(crate) fn is_released(&self, id: &str, key: JobKey) -> bool {
        let job = self.books.get(id).and_then(|book| book.jobs.get(&key));
        job.is_some_and(|job| job.money == Money::Released)
    }

    /// Returns whether the whole reservation of a job was booked, because its bill never came.
    pub(crate) fn is_settled_in_full(&self, id: &str, key: JobKey) -> bool {
        let job = self.books.get(id).and_then(|book| book.jobs.get(&key));
        job.is_some_and(|job| job.settled_in_full)
    }

    /// Returns whether the decider may conclude a job without its last lines.
    pub(crate) fn may_lack_lines(&self, id: &str, key: JobKey) -> bool {
        let job = self.books.get(id).and_then(|book| book.jobs.get(&key));
        job.is_none_or(JobBook::has_unknown_lines)
    }

    /// Counts a judgement: by the value that the program logged at that epoch (`exact`), or by another value.
    pub(crate) fn count_judgement(&mut self, exact: bool) {
        if exact {
            self.judged_exactly += 1;
        } else {
            self.judged_by_other_epoch += 1;
        }
    }

    /// Checks a published notice; `notice` is the name of the action that orders it.
    pub(crate) fn notice_published(&mut self, now: i64, name: &str, notice: &str) {
        let book = self.books.values().find(|book| book.case.name == name);
        if !book.is_some_and(|book| book.notices.contains(notice)) {
            self.violation(
                now,
                &format!("P2: notice {notice} of {name} was published, but no step ordered it"),
            );
        }
        self.notices.entry(name.to_owned()).or_default().push(notice.to_owned());
    }

    /// Returns whether all of `count` tunings have ended.
    pub(crate) fn all_ended(&self, count: usize) -> bool {
        self.books.len() + self.refused_for_month >= count
            && self.books.values().all(|book| book.ended.is_some())
    }
}
