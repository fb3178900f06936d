//! The results of a history, and the sums over many histories.

use std::collections::BTreeMap;
use std::fmt::Write;

use tuning::log::fact::JobEnd;
use tuning::log::reasons::EndReason;
use wire::item::{EXPIRES_AT, Item};
use wire::stored;

use crate::access::{Accesses, kind_of};
use crate::check::rules;
use crate::check::{Book, Checker};
use crate::fault::Kind;
use crate::site::Site;
use crate::tally::{StoredRows, Tally};
use crate::world::World;
use crate::world::training::Owner;

/// The results of one history.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Its seed.
    pub seed: u64,
    /// Number of events.
    pub events: u64,
    /// Number of steps of all tunings.
    pub steps: u64,
    /// Number of training jobs that the tunings created.
    pub jobs: usize,
    /// Virtual duration, in ms.
    pub virtual_ms: i64,
    /// The largest number of training jobs that ran at once.
    pub most_running: usize,
    /// Times from the end of each job that ran to its conclusion, in ms and in order.
    pub conclusions_ms: Vec<i64>,
    /// Violated promises, one message each.
    pub violations: Vec<String>,
    /// The name of each tuning and the reason of its end.
    pub ended: Vec<(String, String)>,
    /// Hits by kind of fault.
    pub faults: BTreeMap<Kind, u64>,
    /// Hits by kind of fault and site.
    pub sites: BTreeMap<(Kind, Site), u64>,
    /// Number of rulings by decision rule.
    pub rulings: BTreeMap<&'static str, u64>,
    /// Published trial events by decision, and published status changes to `Stopping`.
    pub decisions_published: BTreeMap<String, u64>,
    /// Number of tunings that neither the user nor the cap ended.
    pub not_cut_short: u64,
    /// End reasons of those among them that did not complete with a trial at `MaxResource` (in random search: with a
    /// job that ran to its end).
    pub short_of_max_resource: Vec<&'static str>,
    /// Number of stream records that never reached their consumer.
    pub records_lost: u64,
    /// Number of deliveries dropped after many failures.
    pub deliveries_dropped: u64,
    /// Number of judgements by the value that the program logged at that epoch.
    pub judged_exactly: u64,
    /// Number of judgements by the value of another epoch. Only possible where log lines do not contain the epoch.
    pub judged_by_other_epoch: u64,
    /// Number of idle minutes in which requests were counted.
    pub idle_minutes: u64,
    /// Actions with the number of times that each was performed.
    pub tries: Vec<(String, i64)>,
    /// Number of `TimePassed` facts in the table.
    pub time_facts: usize,
    /// Table accesses of each function.
    pub accesses: Accesses,
    /// Resources that the functions used.
    pub tally: Tally,
    /// The trace, if tracing was on.
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
        let tally = Tally { stored: stored_rows(&rows), ..std::mem::take(&mut world.tally_at_end) };
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
            not_cut_short: free.clone().map(|_| 1).sum(),
            short_of_max_resource: free.filter(|book| !reached(book)).map(reason).collect(),
            accesses: world.accesses.clone(),
            tally,
            seed,
            events,
            steps: check.steps,
            jobs: world.training.jobs.iter().filter(|job| job.owner == Owner::Ours).count(),
            virtual_ms: world.now - world.start,
            most_running: most_running(world),
            conclusions_ms: crate::check::conclusions(world),
            violations: check.violations.clone(),
            ended: check.books.values().map(ended).collect(),
            faults: by_kind(world.faults.hits()),
            sites: world.faults.hits().clone(),
            rulings: rulings(check),
            decisions_published: check.decisions_published.clone(),
            records_lost: world.records_lost,
            deliveries_dropped: world.deliveries_dropped,
            judged_exactly: check.judged_exactly,
            judged_by_other_epoch: check.judged_by_other_epoch,
            idle_minutes: world.watch.idle_minutes,
            tries,
            time_facts: rows.iter().filter(|row| row.key.sk.starts_with("-#time#")).count(),
            trace: world.trace.take(),
        }
    }

    /// Returns the result of a history in which the system or the simulator panicked.
    pub fn panicked(seed: u64, message: &str) -> Self {
        Self {
            not_cut_short: 0,
            short_of_max_resource: Vec::new(),
            accesses: Accesses::new(),
            tally: Tally::default(),
            seed,
            events: 0,
            steps: 0,
            jobs: 0,
            virtual_ms: 0,
            most_running: 0,
            conclusions_ms: Vec::new(),
            violations: vec![format!("panic: {message}")],
            ended: Vec::new(),
            faults: BTreeMap::new(),
            sites: BTreeMap::new(),
            rulings: BTreeMap::new(),
            decisions_published: BTreeMap::new(),
            records_lost: 0,
            deliveries_dropped: 0,
            judged_exactly: 0,
            judged_by_other_epoch: 0,
            idle_minutes: 0,
            tries: Vec::new(),
            time_facts: 0,
            trace: None,
        }
    }
}

/// Returns the number and size of the rows, by kind of partition and by whether they expire.
fn stored_rows(rows: &[Item]) -> BTreeMap<(String, bool), StoredRows> {
    let mut stored: BTreeMap<_, StoredRows> = BTreeMap::new();
    for row in rows {
        let kind = (kind_of(&row.key), row.number(EXPIRES_AT).is_some());
        let sum = stored.entry(kind).or_default();
        sum.rows += 1;
        sum.bytes += u64::try_from(row.size_bytes()).unwrap_or(0);
    }
    stored
}

/// Returns the number of rulings by rule, and of changes of limits by effect.
fn rulings(check: &Checker) -> BTreeMap<&'static str, u64> {
    let mut rulings = check.rulings.clone();
    for (name, count) in check.books.values().flat_map(|book| &book.changed) {
        *rulings.entry(name).or_default() += count;
    }
    rulings
}

/// Returns the largest number of jobs between the start and the end of their programs.
fn most_running(world: &World) -> usize {
    let ran = world.training.jobs.iter().filter_map(|job| Some((job.now.started?, job.now.ended?)));
    let mut changes: Vec<_> = ran.flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
    changes.sort_unstable();
    let running = changes.iter().scan(0_i64, |running, (_, change)| {
        *running += change;
        Some(*running)
    });
    usize::try_from(running.max().unwrap_or(0)).unwrap_or(0)
}

/// Returns whether a trial of the tuning reached `MaxResource`, or, in random search, whether a job ran to its end.
fn reached_max_resource(rows: &[Item], book: &Book) -> bool {
    let partition = stored::tuning_partition(&book.definition.id());
    let jobs = rows.iter().filter(|row| row.key.pk == partition && row.key.sk.starts_with("JOB#"));
    let most = book.definition.max_resource();
    jobs.filter_map(|row| stored::job(row).ok()).any(|job| match most {
        Some(most) => job.resource >= most,
        None => job.end == Some(JobEnd::Completed),
    })
}

/// Sums over many histories.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of histories.
    pub histories: u64,
    /// Number of events.
    pub events: u64,
    /// Number of violations.
    pub violations: u64,
    steps: u64,
    jobs: u64,
    virtual_ms: i64,
    sites: BTreeMap<(Kind, Site), u64>,
    rulings: BTreeMap<&'static str, u64>,
    ends: BTreeMap<String, u64>,
    not_cut_short: u64,
    short_of_max_resource: BTreeMap<&'static str, u64>,
    records_lost: u64,
    deliveries_dropped: u64,
    judged_exactly: u64,
    judged_by_other_epoch: u64,
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
        self.not_cut_short += history.not_cut_short;
        for how in &history.short_of_max_resource {
            *self.short_of_max_resource.entry(how).or_default() += 1;
        }
        self.records_lost += history.records_lost;
        self.deliveries_dropped += history.deliveries_dropped;
        self.judged_exactly += history.judged_exactly;
        self.judged_by_other_epoch += history.judged_by_other_epoch;
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
        add(&mut self.short_of_max_resource, &other.short_of_max_resource);
        self.histories += other.histories;
        self.events += other.events;
        self.violations += other.violations;
        self.steps += other.steps;
        self.jobs += other.jobs;
        self.virtual_ms += other.virtual_ms;
        self.not_cut_short += other.not_cut_short;
        self.records_lost += other.records_lost;
        self.deliveries_dropped += other.deliveries_dropped;
        self.judged_exactly += other.judged_exactly;
        self.judged_by_other_epoch += other.judged_by_other_epoch;
        self.idle_minutes += other.idle_minutes;
    }

    /// Returns the percentage of tunings that completed with a trial at `MaxResource`, among those that neither the
    /// user nor the cap ended. Where this is low, histories hardly test anything after the first rung.
    pub fn percent_reached(&self) -> u64 {
        let short_of_max_resource: u64 = self.short_of_max_resource.values().sum();
        ((self.not_cut_short - short_of_max_resource) * 100).checked_div(self.not_cut_short).unwrap_or(0)
    }

    /// Returns a site where some kind of fault can strike but never did.
    pub fn missing_site(&self) -> Option<Site> {
        let mut sites = Kind::ALL.iter().flat_map(|kind| kind.sites().into_iter().map(|site| (*kind, site)));
        sites.find(|at| !self.sites.contains_key(at)).map(|(_, site)| site)
    }

    /// Returns every kind of fault and site where it can strike but never did, and every rule that was never used.
    pub fn missing(&self) -> Vec<String> {
        let sites = |kind: &Kind| kind.sites().into_iter().map(|site| (*kind, site)).collect::<Vec<_>>();
        let sites_of_kinds = Kind::ALL.iter().flat_map(sites);
        let faults =
            sites_of_kinds.filter(|at| !self.sites.contains_key(at)).map(|(kind, site)| match site {
                Site::World => kind.name().to_owned(),
                Site::Function(_) | Site::Call(..) => format!("{}: {site}", kind.name()),
            });
        let rules = rules::all().filter(|rule| !self.rulings.contains_key(rule));
        faults.chain(rules.map(|rule| format!("rule {rule}"))).collect()
    }

    /// Returns the report as text: all sums, the hits of every kind of fault at every site and of every rule,
    /// including 0.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, count: u64| {
            let _ = writeln!(text, "{count:>12}  {name}");
        };
        line("steps", self.steps);
        line("training jobs", self.jobs);
        line("virtual hours", u64::try_from(self.virtual_ms / crate::plan::HOUR).unwrap_or(0));
        line("tunings that neither the user nor the cap ended", self.not_cut_short);
        line("percent of these completed with a trial at MaxResource", self.percent_reached());
        for (how, count) in &self.short_of_max_resource {
            line(&format!("    others, ended {how}"), *count);
        }
        line("stream records lost", self.records_lost);
        line("deliveries dropped", self.deliveries_dropped);
        line("idle minutes checked", self.idle_minutes);
        line("judgements by the epoch's own value", self.judged_exactly);
        line(
            "judgements by the value of another epoch (lines without an absolute epoch)",
            self.judged_by_other_epoch,
        );
        let faults = by_kind(&self.sites);
        for kind in Kind::ALL {
            line(kind.name(), faults.get(kind).copied().unwrap_or(0));
            for site in kind.sites().into_iter().filter(|site| *site != Site::World) {
                line(&format!("    {site}"), self.sites.get(&(*kind, site)).copied().unwrap_or(0));
            }
        }
        for rule in rules::all() {
            line(rule, self.rulings.get(rule).copied().unwrap_or(0));
        }
        for (why, hits) in &self.ends {
            line(&format!("tunings: {why}"), *hits);
        }
        for missing in self.missing() {
            line(&format!("NEVER HIT: {missing}"), 0);
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
