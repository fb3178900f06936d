//! The fault plan of one history: which faults, how often, in what order things are delivered. Drawn from the seed, or
//! put together by a test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::fault::Kind;

/// An hour, ms.
pub const HOUR: i64 = 3_600_000;
/// A minute, ms.
pub const MINUTE: i64 = 60_000;

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

/// The plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Rates of faults; a kind that is not here never strikes.
    pub rates: BTreeMap<Kind, f64>,
    /// How long faults go on, ms.
    pub safety_ms: i64,
    /// Shards of the stream.
    pub shards: usize,
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
}

impl Plan {
    /// No faults.
    pub fn calm() -> Self {
        Self {
            rates: BTreeMap::new(),
            safety_ms: 4 * HOUR,
            shards: 2,
            order: Order::Natural,
            stream_outage: None,
            crash_once: CrashOnce::Never,
            stream_tries_max: 50,
            skew_ms_max: 0,
            whole_seconds: true,
            runtime_per_attempt: false,
            epoch_ms: 20_000,
        }
    }

    /// The plan with a fault's rate.
    #[must_use]
    pub fn with(mut self, kind: Kind, rate: f64) -> Self {
        self.rates.insert(kind, rate);
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
        let mut dice = Dice::new(seed, "plan", 0);
        let safety_ms = dice.between(1, 8) * HOUR;
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
            order,
            stream_outage: dice.chance(0.1).then_some((outage_from, outage_from + outage_ms)),
            crash_once,
            stream_tries_max: dice.pick(&[2, 5, 20, 1_000]),
            skew_ms_max: dice.pick(&[0, 0, 1_000, 20_000]),
            whole_seconds: dice.chance(0.7),
            runtime_per_attempt: dice.chance(0.5),
            epoch_ms: dice.pick(&[2_000, 10_000, 30_000, 60_000, 120_000]),
        }
    }
}
