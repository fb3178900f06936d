//! Kinds of faults, their rates in one history, and how often each struck at each call site.
//!
//! Each kind has its own generator. Faults are off in the liveness phase. What belongs to a training program (its curve,
//! whether it logs at all) is drawn elsewhere and stays, and so do the account's quotas and the functions' time limits:
//! those of rate 0 here follow from the plan, and are only counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::site::{Op, Reach, Site};

macro_rules! kinds {
    ($($kind:ident $name:literal $rate:literal $reach:expr,)*) => {
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

            fn reach(self) -> Reach {
                match self { $(Self::$kind => $reach,)* }
            }
        }
    };
}

impl Kind {
    /// Everywhere it can strike.
    pub fn sites(self) -> Vec<Site> {
        self.reach().sites()
    }
}

kinds! {
    TableThrottled "table: throttled" 0.1 Reach::Table,
    TableLostRequest "table: unavailable, not done" 0.1 Reach::Table,
    TableLostAnswer "table: unavailable, but done" 0.1 Reach::Table,
    TransactionConflict "table: another transaction was at work" 0.2 Reach::Only(Op::Transact),
    TrainingThrottled "training service: throttled" 0.3 Reach::Training,
    TrainingLostRequest "training service: unavailable, not done" 0.2 Reach::Training,
    TrainingLostAnswer "training service: unavailable, but done" 0.2 Reach::Training,
    CreateLimit "create: resource limit exceeded" 0.4 Reach::Only(Op::Create),
    CreateRefused "create: refused for good" 0.2 Reach::Only(Op::Create),
    CreateLate "create: done up to 50 s after its caller died or gave up" 0.3 Reach::Only(Op::Create),
    CreateTooFast "create: more than one a second" 0.0 Reach::Only(Op::Create),
    AccountQuota "create: the account has its most jobs" 0.0 Reach::Only(Op::Create),
    NotVisibleYet "training service: a new job does not show for seconds" 0.5 Reach::World,
    BusUnavailable "bus: unavailable" 0.5 Reach::Only(Op::Publish),
    PricesUnavailable "price list: unavailable" 0.3 Reach::Only(Op::Price),
    CrashBefore "process dies before a call's effect" 0.02 Reach::Calls,
    CrashAfter "process dies after a call's effect" 0.02 Reach::Calls,
    Freeze "process frozen for minutes after a call" 0.03 Reach::Calls,
    SlowCall "call takes up to 20 s" 0.1 Reach::Calls,
    TimedOut "function ended at its time limit" 0.0 Reach::LongFunctions,
    ColdStart "cold start" 0.5 Reach::Functions,
    StreamDuplicated "stream batch delivered again later" 0.3 Reach::World,
    StreamDelayed "stream shard delayed" 0.05 Reach::World,
    StreamLost "stream record lost" 0.3 Reach::World,
    StreamExpired "stream record expired" 0.0 Reach::World,
    StreamGivenUp "stream batch given up after many failures" 0.0 Reach::World,
    StreamOutage "stream record lost in an outage" 0.0 Reach::World,
    EventDuplicated "event duplicated" 0.5 Reach::World,
    EventDelayed "event delayed for up to 6 h" 0.3 Reach::World,
    EventLost "event lost" 0.4 Reach::World,
    LogDuplicated "log batch duplicated and cut anew" 0.5 Reach::World,
    LogDelayed "log batch delayed for up to 6 h" 0.3 Reach::World,
    LogLost "log batch lost" 0.4 Reach::World,
    Junk "junk delivered" 0.2 Reach::World,
    SweepSkipped "sweep skipped" 0.3 Reach::World,
    SweepLate "sweep late" 0.3 Reach::World,
    SweepOverlapping "two sweeps at once" 0.2 Reach::World,
    DescribeLag "describe lags behind" 0.5 Reach::Only(Op::Describe),
    LogReadLag "log read lags behind" 0.3 Reach::Only(Op::ReadLog),
    JobAlgorithmError "job: program fails" 0.3 Reach::World,
    JobServiceError "job: internal server error" 0.2 Reach::World,
    JobCapacityError "job: capacity error after create" 0.3 Reach::World,
    JobPends "job: waits for its instances, for hours" 0.5 Reach::World,
    JobInterrupted "job: spot interruption" 0.7 Reach::World,
    RestartFromZero "job: restart without checkpoint" 0.5 Reach::World,
    CheckpointLost "job: the checkpoints of its trial are lost" 0.3 Reach::World,
    CheckpointOld "job: finds an older checkpoint of its trial only" 0.3 Reach::World,
    JobHangs "job: hangs until its limit" 0.15 Reach::World,
    JobEndsEarly "job: program ends early" 0.2 Reach::World,
    StoppedOutside "job: stopped by somebody else" 0.1 Reach::World,
    StopSlow "job: stop takes minutes" 0.5 Reach::World,
    JobDeleted "job: deleted by somebody" 0.05 Reach::World,
    BillLate "bill: comes minutes to hours after the end" 0.4 Reach::World,
    BillAboveReservation "bill: above the worst case" 0.02 Reach::World,
    OrphanAppears "a job of this stack that no row knows" 0.02 Reach::World,
    ForeignJob "a job of another stack, named like ours" 0.02 Reach::World,
    ProgramSilent "program: logs no metric" 0.2 Reach::World,
    ProgramDiverges "program: NaN" 0.3 Reach::World,
    ProgramFlat "program: flat curve" 0.3 Reach::World,
    ProgramAllHosts "program: every host logs" 0.9 Reach::World,
    CapacityShort "job: no capacity for its choice of instances for up to 2 h" 0.3 Reach::World,
    ProgramIgnoresEpochs "program: trains on beyond the epochs it was told" 0.15 Reach::World,
}

/// The rates of a history, and what struck.
#[derive(Debug)]
pub(crate) struct Faults {
    /// By kind, in their order.
    rates: Vec<f64>,
    dice: Vec<Dice>,
    hits: BTreeMap<(Kind, Site), u64>,
    /// Where faults are more frequent, by how much.
    focus: Option<(Site, f64)>,
    on: bool,
}

impl Faults {
    pub(crate) fn new(seed: u64, rates: &BTreeMap<Kind, f64>, focus: Option<(Site, f64)>) -> Self {
        let rate = |kind: &Kind| rates.get(kind).copied().unwrap_or(0.0);
        let dice = Kind::ALL.iter().map(|kind| Dice::new(seed, kind.name(), 0)).collect();
        Self { rates: Kind::ALL.iter().map(rate).collect(), dice, hits: BTreeMap::new(), focus, on: true }
    }

    /// Whether a fault of this kind strikes the world now; counts it.
    pub(crate) fn strikes(&mut self, kind: Kind) -> bool {
        self.strikes_at(kind, Site::World)
    }

    /// Whether a fault of this kind strikes at `site` now; counts it.
    pub(crate) fn strikes_at(&mut self, kind: Kind, site: Site) -> bool {
        if !self.on {
            return false;
        }
        let usual = self.rate(kind);
        let rate = match self.focus {
            Some((focus, more)) if focus == site => usual + more,
            Some(_) | None => usual,
        };
        let strikes = rate > 0.0 && self.dice[kind as usize].chance(rate);
        if strikes {
            self.count(kind, site);
        }
        strikes
    }

    /// The rate of a kind, whatever the phase.
    pub(crate) fn rate(&self, kind: Kind) -> f64 {
        self.rates[kind as usize]
    }

    pub(crate) fn count(&mut self, kind: Kind, site: Site) {
        *self.hits.entry((kind, site)).or_default() += 1;
    }

    /// The liveness phase begins.
    pub(crate) fn end(&mut self) {
        self.on = false;
    }

    pub(crate) fn hits(&self) -> &BTreeMap<(Kind, Site), u64> {
        &self.hits
    }
}
