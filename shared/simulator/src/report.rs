//! What came of a history, and of many.

use std::collections::BTreeMap;
use std::fmt::Write;

use tuning::definition::Strategy;
use tuning::fact::JobEnd;
use tuning::ruling::EndReason;
use wire::item::{EXPIRES_AT, Item};
use wire::stored;

use crate::access::{Accesses, kind_of};
use crate::check::rules::RULES;
use crate::check::{Book, Checker};
use crate::fault::Kind;
use crate::site::Site;
use crate::tally::{Kept, Tally};
use crate::world::World;
use crate::world::training::Owner;

/// What came of one history.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Its seed.
    pub seed: u64,
    /// Events taken.
    pub events: u64,
    /// Steps of all tunings.
    pub steps: u64,
    /// Training jobs created.
    pub jobs: usize,
    /// Virtual time it lasted, ms.
    pub virtual_ms: i64,
    /// Broken promises.
    pub violations: Vec<String>,
    /// How each tuning ended: name, why, trials.
    pub ended: Vec<(String, String)>,
    /// How often each kind of fault struck.
    pub faults: BTreeMap<Kind, u64>,
    /// How often, and where.
    pub sites: BTreeMap<(Kind, Site), u64>,
    /// How often each kind of ruling was made.
    pub rulings: BTreeMap<&'static str, u64>,
    /// How often the bus was told of a trial, by what was decided of it; and that a tuning is being stopped.
    pub decisions_told: BTreeMap<String, u64>,
    /// Tunings that neither their user nor their cap ended.
    pub unhindered: u64,
    /// Of these, how those ended that did not end Completed with a trial at `MaxResource` (without rungs: one that ran to
    /// its end).
    pub unreached: Vec<&'static str>,
    /// Stream records that never reached their consumer.
    pub records_lost: u64,
    /// Deliveries given up after many failures.
    pub given_up: u64,
    /// Judgements by the value that the program logged at that epoch.
    pub judged_right: u64,
    /// Judgements by another value (possible only where the log does not tell the epoch).
    pub judged_wrong: u64,
    /// Idle minutes in which the requests were counted.
    pub idle_minutes: u64,
    /// Times that an action was taken up, by action.
    pub tries: Vec<(String, i64)>,
    /// Facts in the table that only tell the time.
    pub time_facts: usize,
    /// What each function did to the table.
    pub accesses: Accesses,
    /// What the functions used.
    pub tally: Tally,
    /// The trace, if it was wanted.
    pub trace: Option<String>,
}

impl History {
    pub(crate) fn of(seed: u64, events: u64, world: &mut World) -> Self {
        let ended = |book: &Book| {
            let why = match &book.ended {
                Some((EndReason::Failed(message), _)) => format!("Failed: {message}"),
                Some((why, _)) => why.word().to_owned(),
                None => "not ended".to_owned(),
            };
            (book.definition.name.clone(), why)
        };
        let rows = world.table.rows();
        let tally = Tally { kept: kept(&rows), ..std::mem::take(&mut world.tally_at_end) };
        let actions = rows.iter().filter(|row| row.key.pk.starts_with(stored::ACTION_PREFIX));
        let tries = actions.filter_map(|row| Some((row.key.sk.clone(), row.number("tries")?))).collect();
        let check = &world.check;
        let free = check
            .books
            .values()
            .filter(|book| !matches!(book.ended, Some((EndReason::Stopped | EndReason::CostCap, _))));
        let reason = |book: &Book| book.ended.as_ref().map_or("not ended", |(why, _)| why.word());
        let reached = |book: &&Book| {
            let completed = matches!(&book.ended, Some((why, _)) if !matches!(why, EndReason::Failed(_)));
            completed && reached_max_resource(&rows, book)
        };
        Self {
            unhindered: free.clone().map(|_| 1).sum(),
            unreached: free.filter(|book| !reached(book)).map(reason).collect(),
            accesses: world.accesses.clone(),
            tally,
            seed,
            events,
            steps: check.steps,
            jobs: world.training.jobs.iter().filter(|job| job.owner == Owner::Ours).count(),
            virtual_ms: world.now - world.start,
            violations: check.violations.clone(),
            ended: check.books.values().map(ended).collect(),
            faults: by_kind(world.faults.hits()),
            sites: world.faults.hits().clone(),
            rulings: rulings(check),
            decisions_told: check.decisions_told.clone(),
            records_lost: world.records_lost,
            given_up: world.given_up,
            judged_right: check.judged_right,
            judged_wrong: check.judged_wrong,
            idle_minutes: world.watch.idle_minutes,
            tries,
            time_facts: rows.iter().filter(|row| row.key.sk.starts_with("-#time#")).count(),
            trace: world.trace.take(),
        }
    }

    /// A history that came to nothing, because the system or the simulator panicked.
    pub fn panicked(seed: u64, message: &str) -> Self {
        Self {
            unhindered: 0,
            unreached: Vec::new(),
            accesses: Accesses::new(),
            tally: Tally::default(),
            seed,
            events: 0,
            steps: 0,
            jobs: 0,
            virtual_ms: 0,
            violations: vec![format!("panic: {message}")],
            ended: Vec::new(),
            faults: BTreeMap::new(),
            sites: BTreeMap::new(),
            rulings: BTreeMap::new(),
            decisions_told: BTreeMap::new(),
            records_lost: 0,
            given_up: 0,
            judged_right: 0,
            judged_wrong: 0,
            idle_minutes: 0,
            tries: Vec::new(),
            time_facts: 0,
            trace: None,
        }
    }
}

/// The rows that are left, by kind.
fn kept(rows: &[Item]) -> BTreeMap<(String, bool), Kept> {
    let mut kept: BTreeMap<_, Kept> = BTreeMap::new();
    for row in rows {
        let kind = (kind_of(&row.key), row.number(EXPIRES_AT).is_some());
        let sum = kept.entry(kind).or_default();
        sum.rows += 1;
        sum.bytes += u64::try_from(row.size_bytes()).unwrap_or(0);
    }
    kept
}

/// How often each kind of ruling was made, and what changes of limits changed.
fn rulings(check: &Checker) -> BTreeMap<&'static str, u64> {
    let mut rulings = check.rulings.clone();
    for (name, count) in check.books.values().flat_map(|book| &book.changed) {
        *rulings.entry(name).or_default() += count;
    }
    rulings
}

/// Whether a trial of a tuning has all epochs, or, where there are no rungs, ended by itself.
fn reached_max_resource(rows: &[Item], book: &Book) -> bool {
    let partition = stored::tuning_partition(&book.definition.id());
    let jobs = rows.iter().filter(|row| row.key.pk == partition && row.key.sk.starts_with("JOB#"));
    let most = match book.definition.strategy {
        Strategy::Hyperband { max_resource, .. } => Some(max_resource),
        Strategy::Random => None,
    };
    jobs.filter_map(|row| stored::job(row).ok()).any(|job| match most {
        Some(most) => job.resource >= most,
        None => job.end == Some(JobEnd::Completed),
    })
}

/// Sums over histories.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Histories.
    pub histories: u64,
    /// Events.
    pub events: u64,
    /// Violations.
    pub violations: u64,
    steps: u64,
    jobs: u64,
    virtual_ms: i64,
    sites: BTreeMap<(Kind, Site), u64>,
    rulings: BTreeMap<&'static str, u64>,
    ends: BTreeMap<String, u64>,
    unhindered: u64,
    unreached: BTreeMap<&'static str, u64>,
    records_lost: u64,
    given_up: u64,
    judged_right: u64,
    judged_wrong: u64,
    idle_minutes: u64,
}

impl Report {
    /// Adds a history.
    pub fn add(&mut self, history: &History) {
        self.histories += 1;
        self.events += history.events;
        self.violations += u64::try_from(history.violations.len()).unwrap_or(u64::MAX);
        self.steps += history.steps;
        self.jobs += u64::try_from(history.jobs).unwrap_or(0);
        self.virtual_ms += history.virtual_ms;
        self.unhindered += history.unhindered;
        for how in &history.unreached {
            *self.unreached.entry(how).or_default() += 1;
        }
        self.records_lost += history.records_lost;
        self.given_up += history.given_up;
        self.judged_right += history.judged_right;
        self.judged_wrong += history.judged_wrong;
        self.idle_minutes += history.idle_minutes;
        for (at, hits) in &history.sites {
            *self.sites.entry(*at).or_default() += hits;
        }
        for (ruling, hits) in &history.rulings {
            *self.rulings.entry(ruling).or_default() += hits;
        }
        for (_, why) in &history.ended {
            let word = why.split(':').next().unwrap_or_default().to_owned();
            *self.ends.entry(word).or_default() += 1;
        }
    }

    /// Adds the histories of another report.
    pub fn merge(&mut self, other: &Self) {
        fn add<K: Ord + Clone>(sums: &mut BTreeMap<K, u64>, more: &BTreeMap<K, u64>) {
            for (key, count) in more {
                *sums.entry(key.clone()).or_default() += count;
            }
        }
        add(&mut self.sites, &other.sites);
        add(&mut self.rulings, &other.rulings);
        add(&mut self.ends, &other.ends);
        add(&mut self.unreached, &other.unreached);
        self.histories += other.histories;
        self.events += other.events;
        self.violations += other.violations;
        self.steps += other.steps;
        self.jobs += other.jobs;
        self.virtual_ms += other.virtual_ms;
        self.unhindered += other.unhindered;
        self.records_lost += other.records_lost;
        self.given_up += other.given_up;
        self.judged_right += other.judged_right;
        self.judged_wrong += other.judged_wrong;
        self.idle_minutes += other.idle_minutes;
    }

    /// Of the tunings that neither their user nor their cap ended, how many in a hundred ended Completed with a trial at
    /// `MaxResource`. Histories in which this is rare would test little of what comes after the first rung.
    pub fn percent_reached(&self) -> u64 {
        let unreached: u64 = self.unreached.values().sum();
        ((self.unhindered - unreached) * 100).checked_div(self.unhindered).unwrap_or(0)
    }

    /// A place where some kind of fault can strike and never did.
    pub fn missing_site(&self) -> Option<Site> {
        let mut sites = Kind::ALL.iter().flat_map(|kind| kind.sites().into_iter().map(|site| (*kind, site)));
        sites.find(|at| !self.sites.contains_key(at)).map(|(_, site)| site)
    }

    /// Every kind of fault at every place where it can strike, and every rule, that was never hit.
    pub fn missing(&self) -> Vec<String> {
        let sites = |kind: &Kind| kind.sites().into_iter().map(|site| (*kind, site)).collect::<Vec<_>>();
        let places = Kind::ALL.iter().flat_map(sites);
        let faults = places.filter(|at| !self.sites.contains_key(at)).map(|(kind, site)| match site {
            Site::World => kind.name().to_owned(),
            Site::Function(_) | Site::Call(..) => format!("{}: {site}", kind.name()),
        });
        let rules = RULES.iter().filter(|rule| !self.rulings.contains_key(*rule));
        faults.chain(rules.map(|rule| format!("rule {rule}"))).collect()
    }

    /// Hits of every kind of fault at every place and of every rule, those never hit included.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, count: u64| {
            let _ = writeln!(text, "{count:>12}  {name}");
        };
        line("steps", self.steps);
        line("training jobs", self.jobs);
        line("virtual hours", u64::try_from(self.virtual_ms / crate::plan::HOUR).unwrap_or(0));
        line("tunings that neither user nor cap ended", self.unhindered);
        line("of these in a hundred Completed with a trial at MaxResource", self.percent_reached());
        for (how, count) in &self.unreached {
            line(&format!("    not so, ended {how}"), *count);
        }
        line("stream records lost", self.records_lost);
        line("deliveries given up", self.given_up);
        line("idle minutes checked", self.idle_minutes);
        line("judgements by the epoch's own value", self.judged_right);
        line("judgements by another epoch's value (ranked or renumbered lines)", self.judged_wrong);
        let faults = by_kind(&self.sites);
        for kind in Kind::ALL {
            line(kind.name(), faults.get(kind).copied().unwrap_or(0));
            for site in kind.sites().into_iter().filter(|site| *site != Site::World) {
                line(&format!("    {site}"), self.sites.get(&(*kind, site)).copied().unwrap_or(0));
            }
        }
        for rule in RULES {
            line(rule, self.rulings.get(rule).copied().unwrap_or(0));
        }
        for (why, hits) in &self.ends {
            line(&format!("tunings: {why}"), *hits);
        }
        for missing in self.missing() {
            line(&format!("NEVER: {missing}"), 0);
        }
        text
    }
}

fn by_kind(sites: &BTreeMap<(Kind, Site), u64>) -> BTreeMap<Kind, u64> {
    let mut kinds = BTreeMap::new();
    for ((kind, _), hits) in sites {
        *kinds.entry(*kind).or_default() += hits;
    }
    kinds
}
