//! The fault plan of one history: fault rates, delivery order, quotas and time limits. Drawn from the seed, or written
//! by a test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::fault::Kind;
use crate::site::{Function, Op, Site, all_calls};

/// Start time of every history, in ms since the epoch.
pub(crate) const START: i64 = 1_790_000_000_000;
/// Two hours before the end of a month, in ms since the epoch.
const LATE_IN_MONTH: i64 = 1_790_805_600_000;
/// An hour, in ms.
pub const HOUR: i64 = 3_600_000;
/// A minute, in ms.
pub const MINUTE: i64 = 60_000;

/// Default time for which log lines are gathered before their delivery, in ms: minimum and maximum.
const LOG_GATHER_MS: (i64, i64) = (500, 10_000);

/// The order of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// In the order of their occurrence, apart from delays.
    Natural,
    /// In reverse order within each window of this many ms.
    Reversed(i64),
}

/// The port calls that kill their process once, after their effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrashOnce {
    /// None.
    Never,
    /// Calls to the training service and the bus, once for each (operation, job). Every action is then performed twice.
    Outside,
    /// All calls, once for each (function, operation, row or job).
    Every,
}

/// Which invocation of the actuator performs the starts of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Starts {
    /// The one that has the batch.
    #[default]
    Here,
    /// Another one, as deployed.
    HandedOver,
}

/// How the stream is divided into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Batches {
    /// At random places, after less than a second.
    Anywhere,
    /// As these event source mappings do it.
    As {
        /// The mapping of the decider.
        decider: Mapping,
        /// The mapping of the actuator.
        actuator: Mapping,
    },
}

/// An event source mapping from the stream to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// Maximum number of records in a batch.
    pub size: usize,
    /// Batching window, in ms.
    pub window_ms: i64,
}

/// Time limits of the functions, in ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimits {
    /// Limit of the API, of the functions that record events and log lines, and of the decider.
    pub short: i64,
    /// Limit of the actuator.
    pub actuator: i64,
    /// Limit of the sweeper.
    pub sweeper: i64,
}

/// How logs arrive, as far as the sweeper knows. They are delivered in either case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Logs {
    /// The sweeper reads them.
    #[default]
    Polled,
    /// They are delivered, so the sweeper only repairs losses.
    Delivered,
}

/// When a history begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Begin {
    /// In the course of a month.
    #[default]
    InMonth,
    /// Two hours before the end of a month.
    LateInMonth,
}

/// The fault plan of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Fault rates. A kind without a rate never strikes.
    pub rates: BTreeMap<Kind, f64>,
    /// Length of the phase with faults, in ms.
    pub safety_ms: i64,
    /// Number of shards of the stream.
    pub shards: usize,
    /// How the shards are divided into batches.
    pub batches: Batches,
    /// Time for which log lines are gathered before their delivery, in ms: minimum and maximum.
    pub log_gather_ms: (i64, i64),
    /// The order of deliveries.
    pub order: Order,
    /// Interval in which all stream records are lost, in ms since the start.
    pub stream_outage: Option<(i64, i64)>,
    /// The calls that kill their process.
    pub crash_once: CrashOnce,
    /// Times between which no instances are available at all, in ms since the start.
    #[serde(default)]
    pub capacity_outage: Option<(i64, i64)>,
    /// Number of deliveries of a failing stream batch before it is dropped.
    pub stream_tries_max: u32,
    /// Largest difference between a process's clock and the true time, in ms.
    pub skew_ms_max: i64,
    /// Whether the training service reports times in whole seconds.
    pub whole_seconds: bool,
    /// Whether the running-time limit starts again after an interruption. The waiting-time limit then bounds the bill.
    pub runtime_per_attempt: bool,
    /// Mean duration of an epoch, in ms.
    pub epoch_ms: i64,
    /// Monthly cap of the stack, in micro-dollars.
    pub monthly_cap: Option<u64>,
    /// Time limits of the functions. `None` = no limits.
    pub time_limits: Option<TimeLimits>,
    /// Account quota: maximum number of parallel jobs.
    pub account_jobs: Option<usize>,
    /// Whether the training service accepts only one create per second.
    pub one_create_a_second: bool,
    /// Which invocation of the actuator performs the starts of a batch.
    #[serde(default)]
    pub starts: Starts,
    /// How logs arrive, as far as the sweeper knows.
    #[serde(default)]
    pub logs: Logs,
    /// When it begins.
    #[serde(default)]
    pub begin: Begin,
    /// A call site where faults are more frequent, and the rate to add there.
    pub focus: Option<(Site, f64)>,
}

impl Plan {
    /// Returns when the last outage of the plan ends, in ms since the start; 0 without one.
    pub fn outages_end(&self) -> i64 {
        let outages = [self.stream_outage, self.capacity_outage];
        outages.into_iter().flatten().map(|(_, to)| to).max().unwrap_or(0)
    }

    /// Returns when it begins, in ms since the epoch.
    pub(crate) fn start(&self) -> i64 {
        match self.begin {
            Begin::InMonth => START,
            Begin::LateInMonth => LATE_IN_MONTH,
        }
    }

    /// Returns the plan without faults.
    pub fn calm() -> Self {
        Self {
            rates: BTreeMap::new(),
            safety_ms: 4 * HOUR,
            shards: 2,
            batches: Batches::Anywhere,
            log_gather_ms: LOG_GATHER_MS,
            order: Order::Natural,
            stream_outage: None,
            crash_once: CrashOnce::Never,
            capacity_outage: None,
            stream_tries_max: 50,
            skew_ms_max: 0,
            whole_seconds: true,
            runtime_per_attempt: false,
            epoch_ms: 20_000,
            monthly_cap: None,
            time_limits: None,
            account_jobs: None,
            one_create_a_second: false,
            starts: Starts::HandedOver,
            logs: Logs::Delivered,
            begin: Begin::InMonth,
            focus: None,
        }
    }

    /// Returns the plan with this rate for a fault.
    #[must_use]
    pub fn with(mut self, kind: Kind, rate: f64) -> Self {
        self.rates.insert(kind, rate);
        self
    }

    /// Returns the plan with frequent faults at `site`, and with the faults that lead to calls there.
    #[must_use]
    pub(crate) fn focused(mut self, site: Site) -> Self {
        self.focus = Some((site, 0.15));
        for (kind, rate) in leads_to(site) {
            self.rates.insert(*kind, *rate);
        }
        self
    }

    /// Draws the plan of `seed`. Most plans use only some kinds of faults (swarm testing), each at its own rate.
    pub(crate) fn drawn(seed: u64) -> Self {
        let mut rates = BTreeMap::new();
        let busy = Dice::new(seed, "busy", 0).pick(&[0.1, 0.3, 0.5, 0.5, 0.8]);
        for kind in Kind::ALL {
            let mut dice = Dice::new(seed, "rate", crate::dice::fnv(kind.seed_text()));
            if dice.chance(busy) {
                // Low rates find as many bugs as high ones.
                let rate = dice.unit() * dice.unit() * kind.rate_max();
                rates.insert(*kind, (rate * 10_000.0).ceil() / 10_000.0);
            }
        }
        let focus = focus(seed);
        for (kind, rate) in focus.iter().flat_map(|(site, _)| leads_to(*site)) {
            rates.insert(*kind, *rate);
        }
        let mut dice = Dice::new(seed, "plan", 0);
        if let Some(hopeless) = dice.chance(0.02).then(|| dice.pick(&HOPELESS)) {
            rates.insert(hopeless, 1.0);
        }
        // Sometimes longer than the retention of stream records.
        let safety_ms = if dice.chance(0.05) { 36 * HOUR } else { dice.between(1, 8) * HOUR };
        let order =
            if dice.chance(0.1) { Order::Reversed(dice.between(1, 20) * MINUTE) } else { Order::Natural };
        let outage_from = dice.between(0, safety_ms);
        let outage_ms = dice.between(MINUTE, 4 * HOUR);
        let crash_once = match dice.between(0, 19) {
            0 => CrashOnce::Every,
            1 => CrashOnce::Outside,
            _ => CrashOnce::Never,
        };
        Self {
            rates,
            safety_ms,
            shards: dice.index(4) + 1,
            batches: Batches::Anywhere,
            log_gather_ms: LOG_GATHER_MS,
            order,
            stream_outage: dice.chance(0.1).then_some((outage_from, outage_from + outage_ms)),
            crash_once,
            capacity_outage: capacity_outage(seed),
            stream_tries_max: dice.pick(&[2, 5, 20, 1_000]),
            skew_ms_max: dice.pick(&[0, 0, 1_000, 20_000]),
            whole_seconds: dice.chance(0.7),
            runtime_per_attempt: dice.chance(0.5),
            epoch_ms: dice.pick(&[2_000, 10_000, 30_000, 60_000, 120_000]),
            // From the worst case of two small jobs to a cap that hardly binds.
            monthly_cap: Dice::new(seed, "month", 0).chance(0.25).then(|| {
                let dollars = Dice::new(seed, "month", 1).between(2, 40);
                u64::try_from(dollars).unwrap_or(2) * 1_000_000
            }),
            time_limits: dice.chance(0.8).then(|| TimeLimits {
                short: dice.pick(&[20_000, 60_000]),
                actuator: dice.pick(&[30_000, 60_000, 120_000]),
                sweeper: dice.pick(&[60_000, 90_000, 120_000]),
            }),
            account_jobs: dice.chance(0.2).then(|| dice.index(6) + 1),
            one_create_a_second: dice.chance(0.5),
            starts: if Dice::new(seed, "hand over", 0).chance(0.7) {
                Starts::HandedOver
            } else {
                Starts::Here
            },
            logs: if Dice::new(seed, "delivered", 0).chance(0.5) { Logs::Delivered } else { Logs::Polled },
            begin: if Dice::new(seed, "month", 2).chance(0.5) { Begin::LateInMonth } else { Begin::InMonth },
            focus,
        }
    }
}

/// Draws a time without any capacity, with a generator of its own.
fn capacity_outage(seed: u64) -> Option<(i64, i64)> {
    let mut dice = Dice::new(seed, "outage", 0);
    let from = dice.between(0, 2 * HOUR);
    let to = from + dice.between(MINUTE, 8 * HOUR);
    dice.chance(0.12).then_some((from, to))
}

/// Faults that prevent a tuning from completing when they always strike.
const HOPELESS: [Kind; 3] = [Kind::ProgramSilent, Kind::CreateRefused, Kind::JobAlgorithmError];

/// Draws the focused call site. Half of the histories have one, mostly a rarely used call, so that faults hit rare
/// calls too.
fn focus(seed: u64) -> Option<(Site, f64)> {
    let mut dice = Dice::new(seed, "focus", 0);
    // The later operation is left out, so that old seeds keep their histories.
    let all: Vec<_> = all_calls().filter(|(_, op)| *op != Op::HandOver).collect();
    let rare: Vec<_> = all.iter().filter(|(function, op)| is_rare(Site::Call(*function, *op))).collect();
    let (focused, is_rare) = (dice.chance(0.5), dice.chance(0.7));
    let (function, op) = if is_rare { *rare[dice.index(rare.len())] } else { all[dice.index(all.len())] };
    let more = if is_rare { 0.1 + 0.15 * dice.unit() } else { 0.08 * dice.unit() };
    focused.then_some((Site::Call(function, op), more))
}

fn is_rare(site: Site) -> bool {
    matches!(site, Site::Call(Function::Api, _) | Site::Call(Function::Decider, Op::Write))
        || !leads_to(site).is_empty()
}

/// Returns the faults without which a call is hardly ever made.
fn leads_to(site: Site) -> &'static [(Kind, f64)] {
    match site {
        Site::Call(Function::Actuator | Function::Sweeper, Op::Transact) => {
            &[(Kind::CreateRefused, 0.3), (Kind::StreamLost, 0.1)]
        }
        Site::Call(Function::Actuator | Function::Sweeper, Op::Tags) => {
            &[(Kind::CreateLate, 0.3), (Kind::TrainingLostAnswer, 0.3), (Kind::StreamDuplicated, 0.5)]
        }
        Site::Call(Function::Sweeper, Op::Publish) => &[(Kind::BusUnavailable, 0.5), (Kind::StreamLost, 0.3)],
        Site::Call(Function::Actuator, Op::Publish) => &[(Kind::BusUnavailable, 0.5)],
        Site::Call(Function::Sweeper, Op::Create) => &[(Kind::CreateLimit, 0.4), (Kind::StreamLost, 0.3)],
        Site::World | Site::Function(_) | Site::Call(..) => &[],
    }
}
