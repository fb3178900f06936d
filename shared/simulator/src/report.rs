//! What came of a history, and of many.

use service::memory::Usage;
use std::collections::BTreeMap;
use std::fmt::Write;

use tuning::ruling::EndReason;

use crate::fault::Kind;
use crate::world::World;

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
    /// How often each kind of ruling was made.
    pub rulings: BTreeMap<&'static str, u64>,
    /// Stream records that never reached their consumer.
    pub records_lost: u64,
    /// Deliveries given up after many failures.
    pub given_up: u64,
    /// Judgements by the value that the program logged at that epoch.
    pub judged_right: u64,
    /// Judgements by another value (possible only where the log does not tell the epoch).
    pub judged_wrong: u64,
    /// Times that an action was taken up, by action.
    pub tries: Vec<(String, i64)>,
    /// Facts in the table that only tell the time.
    pub time_facts: usize,
    /// What was asked of the table, the fault-free part of a real one's bill.
    pub usage: Usage,
    /// The trace, if it was wanted.
    pub trace: Option<String>,
}

impl History {
    pub(crate) fn of(seed: u64, events: u64, world: &mut World) -> Self {
        let ended = |book: &crate::check::Book| {
            let why = match &book.ended {
                Some((EndReason::Failed(message), _)) => format!("Failed: {message}"),
                Some((why, _)) => why.word().to_owned(),
                None => "not ended".to_owned(),
            };
            (book.definition.name.clone(), why)
        };
        // Before anything here reads the table too.
        let usage = world.usage_at_end;
        let rows = world.table.rows();
        let actions = rows.iter().filter(|row| row.key.pk.starts_with(wire::stored::ACTION_PREFIX));
        let tries = actions.filter_map(|row| Some((row.key.sk.clone(), row.number("tries")?))).collect();
        let check = &world.check;
        Self {
            usage,
            seed,
            events,
            steps: check.steps,
            jobs: world.training.jobs.len(),
            virtual_ms: world.now - world.start,
            violations: check.violations.clone(),
            ended: check.books.values().map(ended).collect(),
            faults: world.faults.hits().clone(),
            rulings: check.rulings.clone(),
            records_lost: world.records_lost,
            given_up: world.given_up,
            judged_right: check.judged_right,
            judged_wrong: check.judged_wrong,
            tries,
            time_facts: rows.iter().filter(|row| row.key.sk.starts_with("-#time#")).count(),
            trace: world.trace.take(),
        }
    }

    /// A history that came to nothing, because the system or the simulator panicked.
    pub fn panicked(seed: u64, message: &str) -> Self {
        Self {
            usage: Usage::default(),
            seed,
            events: 0,
            steps: 0,
            jobs: 0,
            virtual_ms: 0,
            violations: vec![format!("panic: {message}")],
            ended: Vec::new(),
            faults: BTreeMap::new(),
            rulings: BTreeMap::new(),
            records_lost: 0,
            given_up: 0,
            judged_right: 0,
            judged_wrong: 0,
            tries: Vec::new(),
            time_facts: 0,
            trace: None,
        }
    }
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
    faults: BTreeMap<Kind, u64>,
    rulings: BTreeMap<&'static str, u64>,
    ends: BTreeMap<String, u64>,
    records_lost: u64,
    given_up: u64,
    judged_right: u64,
    judged_wrong: u64,
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
        self.records_lost += history.records_lost;
        self.given_up += history.given_up;
        self.judged_right += history.judged_right;
        self.judged_wrong += history.judged_wrong;
        for (kind, hits) in &history.faults {
            *self.faults.entry(*kind).or_default() += hits;
        }
        for (ruling, hits) in &history.rulings {
            *self.rulings.entry(ruling).or_default() += hits;
        }
        for (_, why) in &history.ended {
            let word = why.split(':').next().unwrap_or_default().to_owned();
            *self.ends.entry(word).or_default() += 1;
        }
    }

    /// Hits of every kind of fault and of ruling, those never hit included.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, count: u64| {
            let _ = writeln!(text, "{count:>12}  {name}");
        };
        line("steps", self.steps);
        line("training jobs", self.jobs);
        line("virtual hours", u64::try_from(self.virtual_ms / crate::plan::HOUR).unwrap_or(0));
        line("stream records lost", self.records_lost);
        line("deliveries given up", self.given_up);
        line("judgements by the epoch's own value", self.judged_right);
        line("judgements by another epoch's value (ranked or renumbered lines)", self.judged_wrong);
        for kind in Kind::ALL {
            line(kind.name(), self.faults.get(kind).copied().unwrap_or(0));
        }
        for (ruling, hits) in &self.rulings {
            line(ruling, *hits);
        }
        for (why, hits) in &self.ends {
            line(&format!("tunings: {why}"), *hits);
        }
        text
    }
}
