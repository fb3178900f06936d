//! The checkers: one per promise, apart from the system. They read what is committed, keep books of their own, and never
//! change anything.
//!
//! [`Checker::committed`] sees every commit in order; [`end`] looks at the whole when a history is over.

mod actions;
mod bounds;
mod decisions;
pub(crate) mod end;
mod launch;
mod limits;
mod month;
mod owed;
mod pools;
mod promotion;
mod refit;
pub(crate) mod rules;
mod rungs;
mod silence;
mod steps;

pub(crate) use owed::sweeps_fail;

use std::collections::{BTreeMap, BTreeSet};

use search::Configuration;
use service::memory::Change;
use tuning::definition::Definition;
use tuning::fact::{Fact, JobEnd, JobKey};
use tuning::ruling::{EndReason, Launch, Ruling};
use tuning::state::State;
use wire::stored;

use crate::case::Case;

/// Messages kept of one history.
const VIOLATIONS_MAX: usize = 20;

/// All checkers with their books.
#[derive(Debug)]
pub(crate) struct Checker {
    cases: BTreeMap<String, Case>,
    pub(crate) books: BTreeMap<String, Book>,
    pub(crate) violations: Vec<String>,
    pub(crate) rulings: BTreeMap<&'static str, u64>,
    /// Changes of limits that were stored.
    changes: limits::Stored,
    /// Judgements by the value that the program logged at that epoch, and by another.
    pub(crate) judged_right: u64,
    pub(crate) judged_wrong: u64,
    pub(crate) steps: u64,
    /// Events of trials that went out, by what was decided; and of tunings that are being stopped.
    pub(crate) decisions_told: BTreeMap<String, u64>,
    /// Notices that went out, by tuning.
    pub(crate) notices: BTreeMap<String, Vec<String>>,
    /// The stack's cap of a month, micro-dollars.
    pub(crate) monthly_cap: Option<u64>,
    months: month::Months,
    /// Tunings that were not taken for lack of money in the month.
    pub(crate) turned_away: usize,
    /// Orders to stop since the last look at them.
    pub(crate) stops_ordered: Vec<(String, JobKey)>,
    /// Tunings on the list of active ones.
    pub(crate) active: usize,
    owed: owed::Owed,
}

/// What the checkers know of one tuning.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) definition: Definition,
    /// What was asked for.
    pub(crate) case: Case,
    pub(crate) limits: limits::Limits,
    /// What changes of limits changed, for the report.
    pub(crate) changed: BTreeMap<&'static str, u64>,
    launches: launch::Launches,
    pools: pools::Pools,
    /// The trial that trains the best configuration once more.
    pub(crate) refit: Option<u32>,
    pub(crate) steps: u64,
    /// The state as the steps tell it, by the system's own `load`; for the idempotence check and the comparison at the end.
    pub(crate) replica: State,
    pub(crate) jobs: BTreeMap<JobKey, JobBook>,
    pub(crate) trials: BTreeMap<u32, TrialBook>,
    /// Arrivals by bracket and rung, in their order.
    rungs: BTreeMap<(u32, u32), Vec<Arrival>>,
    /// Whether a bill was above its reservation, which is the service's breach, and whether people were to be told.
    pub(crate) overrun: bool,
    overrun_told: bool,
    pub(crate) ending: Option<EndReason>,
    pub(crate) ended: Option<(EndReason, i64)>,
    /// Notices that were ordered.
    notices: BTreeSet<String>,
    decisions: decisions::Decisions,
    /// Granted less given back, micro-dollars.
    granted: u64,
    /// The smallest worst case of a job that was started.
    pub(crate) least_reservation: Option<u64>,
    bounds: bounds::Bounds,
    pub(crate) promotions: promotion::Promotions,
}

/// A trial that arrived at a rung, with its value.
type Arrival = (u32, Option<f64>);

/// What the checkers know of one job.
#[expect(clippy::struct_excessive_bools, reason = "each says that one thing was seen, in any order")]
#[derive(Debug)]
pub(crate) struct JobBook {
    /// Its place in the order of all.
    order: usize,
    reservation: u64,
    /// What else it was ordered with.
    pub(crate) launch: Launch,
    /// The cap and the most jobs at once that were in force then.
    limits: (Option<u64>, u32),
    /// How it ended.
    end: Option<JobEnd>,
    /// Whether it was to stop for its interruptions.
    interrupted: bool,
    /// Whether its instances were seen to run, and when they ceased to.
    ran: bool,
    ended: Option<i64>,
    /// For how long its instances are kept afterwards, and what that may cost.
    keep_seconds: u64,
    keeping: u64,
    /// Whether a fact says that it exists.
    seen: bool,
    /// A quota keeps it from starting.
    limited: bool,
    /// It was called off for that: its trial goes on elsewhere, or later.
    elsewhere: bool,
    money: Money,
    pub(crate) stop_ordered: bool,
    bill_ordered: bool,
    pub(crate) end_seen: bool,
    /// Its program failed for good, or it was refused.
    pub(crate) hopeless: bool,
    /// Its program failed.
    failed: bool,
    /// The epochs it is to be told, where the ruling says so.
    pub(crate) level: Option<u32>,
    /// Epochs that its trial was promoted with.
    pub(crate) had: u32,
    /// From which epoch it began although its trial had more, as it was told.
    pub(crate) repeats_from: Option<u32>,
    /// Its bill never came.
    pub(crate) in_full: bool,
    pub(crate) created: bool,
    pub(crate) concluded: bool,
}

/// Where the money of a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Money {
    Reserved,
    Spent(u64),
    Released,
}

/// What the checkers know of one trial.
#[derive(Debug, Default)]
pub(crate) struct TrialBook {
    configuration: Configuration,
    attempts: u32,
    bracket: u32,
    judged: u32,
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
            judged_right: 0,
            judged_wrong: 0,
            steps: 0,
            decisions_told: BTreeMap::new(),
            notices: BTreeMap::new(),
            monthly_cap,
            months: month::Months::default(),
            turned_away: 0,
            stops_ordered: Vec::new(),
            active: 0,
            owed: owed::Owed::default(),
        }
    }

    /// A promise is broken.
    pub(crate) fn violation(&mut self, now: i64, message: &str) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(format!("at {} ms: {message}", now - crate::world::START));
        }
    }

    /// Changes were committed, all of one transaction.
    pub(crate) fn committed(&mut self, now: i64, changes: &[Change]) {
        for change in changes {
            if let Err(message) = self.change(now, change) {
                self.violation(now, &message);
            }
        }
        self.rows_of_rulings(now, changes);
        self.months(now, changes);
        self.owed.committed(now, changes);
    }

    fn change(&mut self, now: i64, change: &Change) -> Result<(), String> {
        let (pk, sk) = (change.key.pk.as_str(), change.key.sk.as_str());
        // The sweeper's own row lies there too.
        if pk == stored::ACTIVE && sk != stored::SweepRow::key().sk {
            let (was, is) = (change.old.is_some(), change.new.is_some());
            self.active = self.active + usize::from(is) - usize::from(was);
        }
        if let Some(id) = pk.strip_prefix("T#") {
            if sk == stored::META {
                return self.submitted(id, change);
            }
            if sk.starts_with("STEP#") {
                return self.step(id, change);
            }
        }
        if let Some(id) = pk.strip_prefix(stored::FACT_PREFIX) {
            let Some(new) = change.new.as_ref().filter(|_| change.old.is_none()) else {
                return Err(format!("fact {pk}/{sk} was changed after it was put"));
            };
            if let Ok(recorded) = stored::fact(new)
                && matches!(recorded.fact, Fact::LimitsChanged { .. })
            {
                self.changes.insert((id.to_owned(), recorded.key.clone()), (now, recorded));
            }
        }
        if let Some(id) = pk.strip_prefix(stored::ACTION_PREFIX) {
            return actions::changed(id, change);
        }
        Ok(())
    }

    fn submitted(&mut self, id: &str, change: &Change) -> Result<(), String> {
        if change.old.is_some() || change.new.is_none() {
            return Err(format!("the definition of {id} was changed"));
        }
        let item = change.new.as_ref().ok_or("no row")?;
        let (definition, _) = stored::meta(item).map_err(|error| error.to_string())?;
        if self.books.values().any(|book| book.definition.name == definition.name) {
            return Err(format!("a second tuning is named {}", definition.name));
        }
        let case = self.cases.get(&definition.name).cloned().ok_or("a tuning that nobody asked for")?;
        let book = Book {
            replica: State::new(&definition),
            definition,
            limits: limits::Limits::of(&case),
            case,
            changed: BTreeMap::new(),
            launches: launch::Launches::default(),
            pools: pools::Pools::default(),
            refit: None,
            steps: 0,
            jobs: BTreeMap::new(),
            trials: BTreeMap::new(),
            rungs: BTreeMap::new(),
            overrun: false,
            overrun_told: false,
            ending: None,
            ended: None,
            notices: BTreeSet::new(),
            decisions: decisions::Decisions::default(),
            granted: 0,
            least_reservation: None,
            bounds: bounds::Bounds::default(),
            promotions: promotion::Promotions::default(),
        };
        self.books.insert(id.to_owned(), book);
        Ok(())
    }

    fn step(&mut self, id: &str, change: &Change) -> Result<(), String> {
        let item = change.new.as_ref().ok_or_else(|| format!("a step of {id} was removed"))?;
        if change.old.is_some() {
            return Err(format!("P5: step {} of {id} was changed", change.key.sk));
        }
        let step = stored::step(item).map_err(|error| error.to_string())?;
        let book = self.books.get_mut(id).ok_or_else(|| format!("a step of {id}, which is unknown"))?;
        self.steps += 1;
        for ruling in &step.rulings {
            if let Ruling::StopOrdered { job, .. } = ruling {
                self.stops_ordered.push((id.to_owned(), *job));
            }
            *self.rulings.entry(rules::name(ruling)).or_default() += 1;
        }
        book.take(&step).map_err(|message| format!("step {} of {id}: {message}", step.n))
    }

    /// A job exists now.
    pub(crate) fn created(&mut self, now: i64, id: &str, key: JobKey) {
        let job = self.books.get_mut(id).and_then(|book| book.jobs.get_mut(&key));
        let wrong = match job {
            None => Some(format!("P7: job {key} is created, no step ordered it")),
            Some(job) if job.created => Some(format!("P2: job {key} is created twice")),
            Some(job) if job.money == Money::Released => {
                Some(format!("P1: job {key} is created, its reservation was released"))
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

    /// The cap and the most jobs at once that were in force when the last of these jobs was ordered. All of them were
    /// known then, so they keep within both.
    pub(crate) fn in_force(&self, id: &str, jobs: impl Iterator<Item = JobKey>) -> (Option<u64>, u32) {
        let books = self.books.get(id);
        let jobs = jobs.filter_map(|key| books?.jobs.get(&key));
        jobs.max_by_key(|job| job.order).map_or((None, u32::MAX), |job| job.limits)
    }

    /// Whether the books of a tuning say that a job never was. If somebody deleted it before anything was heard of it, nobody
    /// can tell that it was.
    pub(crate) fn never_was(&self, id: &str, key: JobKey) -> bool {
        let job = self.books.get(id).and_then(|book| book.jobs.get(&key));
        job.is_some_and(|job| job.money == Money::Released)
    }

    /// A trial was judged by the value that its program logged at that epoch, or by another.
    pub(crate) fn judged(&mut self, right: bool) {
        if right {
            self.judged_right += 1;
        } else {
            self.judged_wrong += 1;
        }
    }

    /// A notice went out: the action that orders it.
    pub(crate) fn notice(&mut self, now: i64, name: &str, notice: &str) {
        let book = self.books.values().find(|book| book.definition.name == name);
        if !book.is_some_and(|book| book.notices.contains(notice)) {
            self.violation(now, &format!("notice {notice} of {name} went out, no step ordered it"));
        }
        self.notices.entry(name.to_owned()).or_default().push(notice.to_owned());
    }

    /// Whether all of `count` tunings have ended.
    pub(crate) fn all_ended(&self, count: usize) -> bool {
        self.books.len() + self.turned_away >= count && self.books.values().all(|book| book.ended.is_some())
    }
}
