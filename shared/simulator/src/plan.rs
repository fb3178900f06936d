//! The fault plan of one history: which faults, how often, in what order things are delivered. Drawn from the seed, or
//! put together by a test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::fault::Kind;
use crate::site::{Function, Op, Site, all_calls};

/// An hour, ms.
pub const HOUR: i64 = 3_600_000;
/// A minute, ms.
pub const MINUTE: i64 = 60_000;

/// How long log lines are gathered, unless a plan says otherwise.
const LOG_GATHER_MS: (i64, i64) = (500, 10_000);

/// In which order deliveries come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// As they happened, but for delays.
    Natural,
    /// Within each window of so many ms the last comes first.
    Reversed(i64),
}

/// Which port calls kill their process once, after their effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrashOnce {
    /// None.
    Never,
    /// Those to the training service and the bus, each (operation, job) once: every action is performed again.
    Outside,
    /// All, each (function, operation, row or job) once.
    Every,
}

/// How the stream is cut into batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Batches {
    /// Anywhere, after less than a second.
    Anywhere,
    /// As these mappings do it.
    As {
        /// That of the decider.
        decider: Mapping,
        /// That of the actuator.
        actuator: Mapping,
    },
}

/// A mapping of the stream to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// Most records in a batch.
    pub size: usize,
    /// How long records are gathered, ms.
    pub window_ms: i64,
}

/// How long functions may run, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeLimits {
    /// Those that take requests, events and log lines, and the decider.
    pub short: i64,
    /// The actuator.
    pub actuator: i64,
    /// The sweeper.
    pub sweeper: i64,
}

/// The plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Rates of faults; a kind that is not here never strikes.
    pub rates: BTreeMap<Kind, f64>,
    /// How long faults go on, ms.
    pub safety_ms: i64,
    /// Shards of the stream.
    pub shards: usize,
    /// How they are cut into batches.
    pub batches: Batches,
    /// How long the lines of a log are gathered before they are delivered, ms: at least and at most.
    pub log_gather_ms: (i64, i64),
    /// Order of deliveries.
    pub order: Order,
    /// From when to when (ms since the start) stream records are lost.
    pub stream_outage: Option<(i64, i64)>,
    /// Which calls kill their process.
    pub crash_once: CrashOnce,
    /// How often a stream batch is delivered before it is given up.
    pub stream_tries_max: u32,
    /// Largest difference between a process's clock and the true time, ms.
    pub skew_ms_max: i64,
    /// Whether the training service tells times in whole seconds.
    pub whole_seconds: bool,
    /// Whether the running-time limit begins anew after an interruption (the waiting time then bounds the bill).
    pub runtime_per_attempt: bool,
    /// Mean time of one epoch, ms.
    pub epoch_ms: i64,
    /// The stack's cap of a month, micro-dollars.
    pub monthly_cap: Option<u64>,
    /// Time limits of functions.
    pub time_limits: Option<TimeLimits>,
    /// Most jobs of the account at once.
    pub account_jobs: Option<usize>,
    /// Whether the training service takes one create a second only.
    pub one_create_a_second: bool,
    /// A call site where faults are more frequent, and by how much.
    pub focus: Option<(Site, f64)>,
}

impl Plan {
    /// No faults.
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
            stream_tries_max: 50,
            skew_ms_max: 0,
            whole_seconds: true,
            runtime_per_attempt: false,
            epoch_ms: 20_000,
            monthly_cap: None,
            time_limits: None,
            account_jobs: None,
            one_create_a_second: false,
            focus: None,
        }
    }

    /// The plan with a fault's rate.
    #[must_use]
    pub fn with(mut self, kind: Kind, rate: f64) -> Self {
        self.rates.insert(kind, rate);
        self
    }

    /// The plan with faults at `site` frequent, and with what leads to calls there.
    #[must_use]
    pub(crate) fn focused(mut self, site: Site) -> Self {
        self.focus = Some((site, 0.15));
        for (kind, rate) in leads_to(site) {
            self.rates.insert(*kind, *rate);
        }
        self
    }

    /// The plan of `seed`: about half the kinds at all (swarm testing), each at its own rate.
    pub(crate) fn drawn(seed: u64) -> Self {
        let mut rates = BTreeMap::new();
        let busy = Dice::new(seed, "busy", 0).pick(&[0.1, 0.3, 0.5, 0.5, 0.8]);
        for kind in Kind::ALL {
            let mut dice = Dice::new(seed, "rate", crate::dice::fnv(kind.name()));
            if dice.chance(busy) {
                // Low rates are as telling as high ones.
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
        // Now and then for longer than stream records are kept.
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
            stream_tries_max: dice.pick(&[2, 5, 20, 1_000]),
            skew_ms_max: dice.pick(&[0, 0, 1_000, 20_000]),
            whole_seconds: dice.chance(0.7),
            runtime_per_attempt: dice.chance(0.5),
            epoch_ms: dice.pick(&[2_000, 10_000, 30_000, 60_000, 120_000]),
            // From what two small jobs may cost to what hardly binds.
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
            focus,
        }
    }
}

/// Troubles that leave a tuning no hope.
const HOPELESS: [Kind; 3] = [Kind::ProgramSilent, Kind::CreateRefused, Kind::JobAlgorithmError];

/// In half of the histories one call site is hit more often than all others, rare ones more than others, so that rare
/// calls are hit at all.
fn focus(seed: u64) -> Option<(Site, f64)> {
    let mut dice = Dice::new(seed, "focus", 0);
    let all: Vec<_> = all_calls().collect();
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

/// Troubles without which a call is hardly ever made.
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
