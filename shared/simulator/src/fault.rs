//! Kinds of faults, their rates in one history, and how often each struck.
//!
//! Each kind has its own generator. Faults are off in the liveness phase; what belongs to a training program (its curve,
//! whether it logs at all) is drawn elsewhere and stays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dice::Dice;

macro_rules! kinds {
    ($($kind:ident $name:literal $rate:literal,)*) => {
        /// A kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Kind {
            $(#[doc = $name] $kind,)*
        }

        impl Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Its name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// The highest rate that a history draws for it.
            pub fn rate_max(self) -> f64 {
                match self { $(Self::$kind => $rate,)* }
            }
        }
    };
}

kinds! {
    TableThrottled "table: throttled" 0.1,
    TableLostRequest "table: unavailable, not done" 0.1,
    TableLostAnswer "table: unavailable, but done" 0.1,
    TransactionConflict "table: another transaction was at work" 0.2,
    TrainingThrottled "training service: throttled" 0.3,
    TrainingLostRequest "training service: unavailable, not done" 0.2,
    TrainingLostAnswer "training service: unavailable, but done" 0.2,
    CreateLimit "create: resource limit exceeded" 0.4,
    CreateRefused "create: refused for good" 0.2,
    BusUnavailable "bus: unavailable" 0.5,
    CrashBefore "process dies before a call's effect" 0.02,
    CrashAfter "process dies after a call's effect" 0.02,
    Freeze "process frozen for minutes after a call" 0.03,
    SlowCall "call takes up to 20 s" 0.05,
    ColdStart "cold start" 0.5,
    StreamDuplicated "stream batch delivered again later" 0.3,
    StreamDelayed "stream shard delayed" 0.05,
    StreamLost "stream record lost" 0.3,
    EventDuplicated "event duplicated" 0.5,
    EventDelayed "event delayed for up to 6 h" 0.3,
    EventLost "event lost" 0.4,
    LogDuplicated "log batch duplicated and cut anew" 0.5,
    LogDelayed "log batch delayed for up to 6 h" 0.3,
    LogLost "log batch lost" 0.4,
    Junk "junk delivered" 0.2,
    SweepSkipped "sweep skipped" 0.3,
    SweepLate "sweep late" 0.3,
    SweepOverlapping "two sweeps at once" 0.2,
    DescribeLag "describe lags behind" 0.5,
    LogReadLag "log read lags behind" 0.3,
    JobAlgorithmError "job: program fails" 0.3,
    JobServiceError "job: internal server error" 0.2,
    JobCapacityError "job: capacity error after create" 0.3,
    JobInterrupted "job: spot interruption" 0.7,
    RestartFromZero "job: restart without checkpoint" 0.5,
    JobHangs "job: hangs until its limit" 0.15,
    JobEndsEarly "job: program ends early" 0.2,
    StoppedOutside "job: stopped by somebody else" 0.1,
    StopSlow "job: stop takes minutes" 0.5,
    ProgramSilent "program: logs no metric" 0.2,
    ProgramDiverges "program: NaN" 0.3,
    ProgramFlat "program: flat curve" 0.3,
}

/// The rates of a history, and what struck.
#[derive(Debug)]
pub(crate) struct Faults {
    rates: BTreeMap<Kind, f64>,
    dice: BTreeMap<Kind, Dice>,
    hits: BTreeMap<Kind, u64>,
    on: bool,
}

impl Faults {
    pub(crate) fn new(seed: u64, rates: &BTreeMap<Kind, f64>) -> Self {
        let dice = rates.keys().map(|kind| (*kind, Dice::new(seed, kind.name(), 0))).collect();
        Self { rates: rates.clone(), dice, hits: BTreeMap::new(), on: true }
    }

    /// Whether a fault of this kind strikes now; counts it.
    pub(crate) fn strikes(&mut self, kind: Kind) -> bool {
        let rate = if self.on { self.rates.get(&kind).copied().unwrap_or(0.0) } else { 0.0 };
        let strikes = rate > 0.0 && self.dice.get_mut(&kind).is_some_and(|dice| dice.chance(rate));
        if strikes {
            self.count(kind);
        }
        strikes
    }

    /// The rate of a kind, whatever the phase.
    pub(crate) fn rate(&self, kind: Kind) -> f64 {
        self.rates.get(&kind).copied().unwrap_or(0.0)
    }

    pub(crate) fn count(&mut self, kind: Kind) {
        *self.hits.entry(kind).or_default() += 1;
    }

    /// The liveness phase begins.
    pub(crate) fn end(&mut self) {
        self.on = false;
    }

    pub(crate) fn hits(&self) -> &BTreeMap<Kind, u64> {
        &self.hits
    }
}
