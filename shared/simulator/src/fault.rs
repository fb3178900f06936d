//! Kinds of faults, their rates in one history, and the number of hits at each call site.
//!
//! Each kind has its own generator. Faults are off in the liveness phase. The properties of a training program (its
//! curve, whether it logs) are drawn in `world::program` and stay for the whole history. Kinds with a maximum rate of
//! 0 follow from the plan (quotas, time limits, outages) and are only counted here.

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
            /// All kinds, in the order of the report.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns its name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns the highest rate that a history draws for it.
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
    /// Returns every site where it can strike.
    pub fn sites(self) -> Vec<Site> {
        self.reach().sites()
    }

    /// Returns the text that seeds the generator of the kind: the first name that it had. Another text would give
    /// every seed another history, and the pinned seeds would no longer reproduce the failures that they found.
    pub(crate) fn seed_text(self) -> &'static str {
        match self {
            Self::TransactionConflict => "table: another transaction was at work",
            Self::CreateLate => "create: done up to 50 s after its caller died or gave up",
            Self::AccountQuota => "create: the account has its most jobs",
            Self::NotVisibleYet => "training service: a new job does not show for seconds",
            Self::CrashBefore => "process dies before a call's effect",
            Self::CrashAfter => "process dies after a call's effect",
            Self::StreamGivenUp => "stream batch given up after many failures",
            Self::LogDuplicated => "log batch duplicated and cut anew",
            Self::StoppedOutside => "job: stopped by another user",
            Self::JobDeleted => "job: deleted by a user",
            Self::OrphanAppears => "a job of this stack that no row knows",
            Self::ForeignJob => "a job of another stack, named like ours",
            Self::ProgramIgnoresEpochs => "program: trains beyond the epochs of its channel",
            _ => self.name(),
        }
    }
}

kinds! {
    TableThrottled "table: throttled" 0.1 Reach::Table,
    TableLostRequest "table: unavailable, not done" 0.1 Reach::Table,
    TableLostAnswer "table: unavailable, but done" 0.1 Reach::Table,
    TransactionConflict "table: transaction conflict" 0.2 Reach::Only(Op::Transact),
    TrainingThrottled "training service: throttled" 0.3 Reach::Training,
    TrainingLostRequest "training service: unavailable, not done" 0.2 Reach::Training,
    TrainingLostAnswer "training service: unavailable, but done" 0.2 Reach::Training,
    CreateLimit "create: resource limit exceeded" 0.4 Reach::Only(Op::Create),
    CreateRefused "create: refused for good" 0.2 Reach::Only(Op::Create),
    CreateLate "create: takes effect up to 50 s after its caller crashed or timed out" 0.3 Reach::Only(Op::Create),
    CreateTooFast "create: more than one a second" 0.0 Reach::Only(Op::Create),
    AccountQuota "create: account quota reached" 0.0 Reach::Only(Op::Create),
    NotVisibleYet "training service: new job invisible for seconds" 0.5 Reach::World,
    BusUnavailable "bus: unavailable" 0.5 Reach::Only(Op::Publish),
    HandOverFails "invoke: unavailable, not done" 0.3 Reach::Only(Op::HandOver),
    HandOverLostAnswer "invoke: unavailable, but done" 0.3 Reach::Only(Op::HandOver),
    PricesUnavailable "price list: unavailable" 0.3 Reach::Only(Op::Price),
    CrashBefore "process crashes before a call's effect" 0.02 Reach::Calls,
    CrashAfter "process crashes after a call's effect" 0.02 Reach::Calls,
    Freeze "process frozen for minutes after a call" 0.03 Reach::Calls,
    SlowCall "call takes up to 20 s" 0.1 Reach::Calls,
    TimedOut "function ended at its time limit" 0.0 Reach::LongFunctions,
    ColdStart "cold start" 0.5 Reach::Functions,
    StreamDuplicated "stream batch delivered again later" 0.3 Reach::World,
    StreamDelayed "stream shard delayed" 0.05 Reach::World,
    StreamLost "stream record lost" 0.3 Reach::World,
    StreamExpired "stream record expired" 0.0 Reach::World,
    StreamGivenUp "stream batch dropped after many failures" 0.0 Reach::World,
    StreamOutage "stream record lost in an outage" 0.0 Reach::World,
    EventDuplicated "event duplicated" 0.5 Reach::World,
    EventDelayed "event delayed for up to 6 h" 0.3 Reach::World,
    EventLost "event lost" 0.4 Reach::World,
    LogDuplicated "log batch duplicated and split differently" 0.5 Reach::World,
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
    StoppedOutside "job: stopped outside the controller" 0.1 Reach::World,
    StopSlow "job: stop takes minutes" 0.5 Reach::World,
    JobDeleted "job: deleted outside the controller" 0.05 Reach::World,
    BillLate "bill: comes minutes to hours after the end" 0.4 Reach::World,
    BillAboveReservation "bill: above the worst case" 0.02 Reach::World,
    OrphanAppears "job of this stack without a row (orphan)" 0.02 Reach::World,
    ForeignJob "job of another stack with a name of ours" 0.02 Reach::World,
    ProgramSilent "program: logs no metric" 0.2 Reach::World,
    ProgramDiverges "program: NaN" 0.3 Reach::World,
    ProgramFlat "program: flat curve" 0.3 Reach::World,
    ProgramAllHosts "program: every host logs" 0.9 Reach::World,
    CapacityShort "job: no capacity for its choice of instances for up to 2 h" 0.3 Reach::World,
    ProgramIgnoresEpochs "program: trains beyond its epoch limit" 0.15 Reach::World,
    BillRises "bill: rises within a minute" 0.3 Reach::World,
    ProgramGlitches "program: one NaN" 0.5 Reach::World,
    ProgramOutOfMemory "program: a configuration fails at once" 0.8 Reach::World,
    ProgramSavesLong "program: saves its model for minutes" 0.5 Reach::World,
    UploadLong "job: uploads its model for up to 6 h" 0.1 Reach::World,
    DownloadLong "job: downloads for up to 20 min, which its limit does not count" 0.3 Reach::World,
    LimitLate "job: its time limit ends it up to an hour late" 0.1 Reach::World,
}

/// The fault rates of a history, and the hits so far.
#[derive(Debug)]
pub(crate) struct Faults {
    /// By kind, in the order of [`Kind::ALL`].
    rates: Vec<f64>,
    dice: Vec<Dice>,
    hits: BTreeMap<(Kind, Site), u64>,
    /// The site where faults are more frequent, and the rate to add there.
    focus: Option<(Site, f64)>,
    on: bool,
}

impl Faults {
    pub(crate) fn new(seed: u64, rates: &BTreeMap<Kind, f64>, focus: Option<(Site, f64)>) -> Self {
        let rate = |kind: &Kind| rates.get(kind).copied().unwrap_or(0.0);
        let dice = Kind::ALL.iter().map(|kind| Dice::new(seed, kind.seed_text(), 0)).collect();
        Self { rates: Kind::ALL.iter().map(rate).collect(), dice, hits: BTreeMap::new(), focus, on: true }
    }

    /// Returns whether a fault of this kind strikes the world now, and counts it.
    pub(crate) fn strikes(&mut self, kind: Kind) -> bool {
        self.strikes_at(kind, Site::World)
    }

    /// Returns whether a fault of this kind strikes at `site` now, and counts it.
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

    /// Returns the rate of a kind, also in the liveness phase.
    pub(crate) fn rate(&self, kind: Kind) -> f64 {
        self.rates[kind as usize]
    }

    /// Returns whether a kind can strike in this history: by its rate, or at the focused site.
    pub(crate) fn can_strike(&self, kind: Kind) -> bool {
        let is_focused = || self.focus.is_some_and(|(site, _)| kind.sites().contains(&site));
        self.rate(kind) > 0.0 || is_focused()
    }

    pub(crate) fn count(&mut self, kind: Kind, site: Site) {
        *self.hits.entry((kind, site)).or_default() += 1;
    }

    /// Turns all faults off: the liveness phase begins.
    pub(crate) fn end(&mut self) {
        self.on = false;
    }

    pub(crate) fn hits(&self) -> &BTreeMap<(Kind, Site), u64> {
        &self.hits
    }
}
