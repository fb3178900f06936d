//! Rulings: the decisions of the decider, with the numbers they rest on. They form the log that can be read and
//! replayed.
//!
//! Each ruling changes the state in one way ([`crate::state::State::apply`]). An [`Order`] also makes a row of the
//! outbox: the action is performed later, possibly twice, under the name that [`Order::action`] returns.

use hyperband::rung::Verdict as RungVerdict;
use search::{Configuration, Origin};
use serde::{Deserialize, Serialize};

use crate::definition::JobLimits;
use crate::log::fact::JobKey;
use crate::log::reasons::{EndReason, RetryWhy, StopWhy, TrialEnd};
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, ChoiceId, RungId, TrialId};
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// A decision: a finding, which changes only the state, or an order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ruling {
    /// The tuning is ending: no further job is started, and running jobs are stopped.
    TuningEnding {
        /// The reason.
        why: EndReason,
    },
    /// An action outside is ordered.
    #[serde(untagged)]
    Order(Order),
    /// Trials were compared, or one continues.
    #[serde(untagged)]
    Search(SearchRuling),
    /// A job is concluded, or did not resume.
    #[serde(untagged)]
    Attempt(AttemptRuling),
    /// An amount is booked.
    #[serde(untagged)]
    Booking(Booking),
}

/// A decision of the search: who was compared, and who continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SearchRuling {
    /// A new trial waits for instances or money. Its configuration stays, so that it waits for its own cluster size.
    TrialDrawn {
        /// The trial.
        trial: TrialId,
        /// Its configuration.
        configuration: Configuration,
        /// How it was chosen, where the sampler does not imply it.
        origin: Option<Origin>,
    },
    /// A running trial arrived at a rung and was compared with all trials that arrived there before.
    TrialJudged {
        /// The trial.
        trial: TrialId,
        /// The bracket of the trial; 0 = the one that explores most.
        bracket: BracketId,
        /// The rung in the bracket; 0 = the lowest.
        rung: RungId,
        /// The level of the rung, in epochs.
        level: Epochs,
        /// The epoch of the compared value: that of the best value up to the level, up to the first epoch above it (late),
        /// or up to the last one (ended below).
        resource: Epochs,
        /// The value; `None` = that of the last of these epochs is not a number.
        value: Option<f64>,
        /// With the median rule: the mean of the values up to the level. Later trials are compared with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        average: Option<f64>,
        /// Rank and counts.
        verdict: Verdict,
    },
    /// A job has trained its trial to the level of its rung; the trial waits there to be promoted.
    RungReached {
        /// The concluded job; `None` if the trial was waiting for a further attempt when late lines completed the
        /// rung.
        job: Option<JobKey>,
        /// The trial.
        trial: TrialId,
        /// The bracket of the trial.
        bracket: BracketId,
        /// The round of the bracket.
        round: u32,
        /// The rung.
        rung: RungId,
        /// The level of the rung, in epochs.
        level: Epochs,
        /// The epoch of the value that counts: the level, the first epoch above it (late), or the last one (ended
        /// below).
        resource: Epochs,
        /// The value; `None` = not a number.
        value: Option<f64>,
    },
    /// A trial is promoted to the next rung, in a job of its own.
    TrialPromoted {
        /// The trial.
        trial: TrialId,
        /// The bracket of the trial.
        bracket: BracketId,
        /// The round of the bracket.
        round: u32,
        /// The rung at which the trial waited.
        rung: RungId,
        /// The level of the next rung, in epochs.
        level: Epochs,
        /// The value with which the trial waited.
        value: Option<f64>,
        /// Rank and counts.
        verdict: Verdict,
        /// Whether it is promoted because it reached the target, whatever its rank.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reached_target: bool,
    },
}

/// A finding about a training job and its trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptRuling {
    /// A promoted job did not resume its checkpoint: it trains, and pays for, epochs that its trial already had.
    ResourceRepeated {
        /// The job.
        job: JobKey,
        /// Epochs that the trial had when it was promoted.
        had: Epochs,
        /// The last epoch before the first that the job trained; 0 = it started from the beginning.
        from: Epochs,
    },
    /// A job is concluded, and its trial waits for a further attempt.
    AttemptAwaited {
        /// The concluded job.
        job: JobKey,
        /// Why the trial is retried.
        why: RetryWhy,
        /// The earliest start of the next attempt.
        not_before: Time,
    },
    /// A trial is finished, and its job with it.
    TrialFinished {
        /// The last job of the trial; `None` if the trial was waiting.
        job: Option<JobKey>,
        /// The trial.
        trial: TrialId,
        /// How the trial ended.
        how: TrialEnd,
    },
}

/// An entry of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Booking {
    /// The bill of a concluded job came, or a later reading of it was higher: the amount replaces the booked one.
    BillBooked {
        /// The job.
        job: JobKey,
        /// Billed seconds.
        seconds: u64,
        /// The amount.
        amount: MicroUsd,
    },
    /// The bill of a job never came: its whole reservation is booked as spent.
    SettledInFull {
        /// The job.
        job: JobKey,
        /// The amount.
        amount: MicroUsd,
    },
    /// A job lasts longer than its reservation pays for: more is reserved, even above the cap.
    ReservationExtended {
        /// The job.
        job: JobKey,
        /// The seconds that the reservation pays for now.
        seconds: u64,
        /// The amount added to the reservation.
        amount: MicroUsd,
    },
    /// The cost of the warm pool of a job is booked.
    PoolClosed {
        /// The job.
        job: JobKey,
        /// For how long the instances were kept; `None` = unknown: the whole reservation is booked.
        seconds: Option<u64>,
        /// The amount.
        amount: MicroUsd,
    },
}

/// An order of an action outside: a row of the outbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// A training job is ordered.
    Start {
        /// The job.
        job: JobKey,
        /// The bracket of its trial.
        bracket: BracketId,
        /// The hyperparameters.
        configuration: Configuration,
        /// How they were chosen, if the trial is new, and the sampler learns or the user gave them; else `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// The limits to send.
        limits: JobLimits,
        /// The reserved worst case.
        reservation: MicroUsd,
        /// The round of the bracket, where rungs close; 0 elsewhere.
        #[serde(default, skip_serializing_if = "crate::unit::is_default")]
        round: u32,
        /// How else the job differs from the request.
        #[serde(default, skip_serializing_if = "crate::unit::is_default")]
        launch: Launch,
        /// What promoted the trial, in the starts for its next rung up to the first that the service accepts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        promoted: Option<Judged>,
    },
    /// A training job is to be stopped.
    Stop {
        /// The job.
        job: JobKey,
        /// The reason.
        why: StopWhy,
        /// The comparison, if the reason is a rung.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<Judged>,
    },
    /// The bill or the log of a job is to be read.
    #[serde(untagged)]
    Read(ReadOrder),
    /// The warm pool of a job is to be read or released.
    #[serde(untagged)]
    Pool(PoolOrder),
    /// Money of the month's cap is requested or returned.
    #[serde(untagged)]
    Grant(GrantOrder),
    /// A notice is to be published.
    #[serde(untagged)]
    Notice(NoticeOrder),
}

/// An order to read from the training service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadOrder {
    /// The bill of an ended job is to be read.
    #[serde(rename = "ReadBill")]
    Bill {
        /// The job.
        job: JobKey,
    },
    /// The stored log of a restarted job is to be read before its trial is judged: a lost line would give all later
    /// lines too low a rank.
    #[serde(rename = "ReadLog")]
    Log {
        /// The job.
        job: JobKey,
        /// Log streams of the trial so far.
        streams: u32,
    },
    /// The log of an ended job is to be read before the job is concluded: lines whose delivery was lost can hold the
    /// value at its level, or its last value.
    #[serde(rename = "ReadRest")]
    Rest {
        /// The job.
        job: JobKey,
        /// When it was ordered: its log begins about then.
        ordered: Time,
        /// When it ended.
        ended: Time,
        /// Whether the read may be made before the last lines are sure to be readable: no decision needs them.
        at_once: bool,
    },
    /// A silent job is to be looked at, and its stored log read, before it is stopped for its silence.
    #[serde(rename = "Look")]
    Silence {
        /// The job.
        job: JobKey,
        /// The beginning of the silence.
        since: Time,
    },
}

/// An order about the warm pool of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolOrder {
    /// The warm pool of a job is to be read: its instances may have been taken, or its time is over.
    #[serde(rename = "ReadPool")]
    Read {
        /// The job.
        job: JobKey,
        /// The number of the read, from 1.
        n: u32,
        /// Whether the time of the pool is over: then it is read until it is gone.
        last: bool,
    },
    /// The warm pool of a job is of no more use and is to be released.
    #[serde(rename = "ReleasePool")]
    Release {
        /// The job.
        job: JobKey,
    },
}

/// An order about the month's cap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GrantOrder {
    /// Money is requested from the month's cap.
    #[serde(rename = "RequestGrant")]
    Request {
        /// The number of the request, from 1.
        n: u32,
        /// What the next job needs: a smaller grant is of no use.
        least: MicroUsd,
        /// What all free slots can use.
        wanted: MicroUsd,
    },
    /// Unused money is returned to its month, or unspent money moves on to a later month.
    #[serde(rename = "ReturnGrant")]
    Return {
        /// The number of the return, from 1.
        n: u32,
        /// The month that the money came from.
        month: String,
        /// The amount.
        amount: MicroUsd,
        /// The month that the money counts for from now on. `None`: the tuning holds it no more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moved_to: Option<String>,
    },
}

/// An order to publish an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoticeOrder {
    /// A level of the tuning's cap is spent: a notice is published. At 100, the rest pays for no further job.
    CapReached {
        /// 50, 80 or 100.
        percent: u32,
    },
    /// A level of a month's cap is granted: a notice is published.
    MonthCapReached {
        /// The month.
        month: String,
        /// 50, 80 or 100.
        percent: u32,
    },
    /// A bill was above its reservation: a notice is published, once for a tuning.
    OverrunSeen,
    /// Publish that no job has got instances for long.
    CapacityLacking {
        /// Since when no job has had instances, in ms since the epoch.
        since: Time,
    },
    /// The tuning has ended.
    TuningEnded {
        /// The reason.
        why: EndReason,
    },
}

/// How a job differs from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Launch {
    /// The level to which the job trains, in epochs: the value of the resource hyperparameter. `None` = the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Epochs>,
    /// Whether the job runs on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// The instance choice.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub instances: ChoiceId,
    /// Whether the job is the refit: it trains the best configuration once more and is compared with no trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refit: bool,
}

/// A comparison that stopped or promoted a trial. The event of the order needs no read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The bracket of the trial.
    pub bracket: BracketId,
    /// The rung where it was compared.
    pub rung: RungId,
    /// The level of that rung, in epochs.
    pub level: Epochs,
    /// The value; `None` = not a number.
    pub value: Option<f64>,
    /// Rank and counts.
    pub verdict: Verdict,
}

/// The rank and the counts of an arrival ([`hyperband::rung::Verdict`] in stored form).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Rank among the arrivals; 0 = best.
    pub rank: u32,
    /// Arrivals, this one included.
    pub seen: u32,
    /// How many of the arrivals may continue.
    pub allowed: u32,
    /// Whether this trial continues.
    pub continues: bool,
}

impl From<RungVerdict> for Verdict {
    fn from(verdict: RungVerdict) -> Self {
        let RungVerdict { rank, seen, allowed, continues } = verdict;
        Self { rank, seen, allowed, continues }
    }
}

impl From<Order> for Ruling {
    fn from(order: Order) -> Self {
        Self::Order(order)
    }
}

impl Order {
    /// Returns the natural ID of the action, unique in its tuning: the key of its row in the outbox.
    pub fn action(&self) -> String {
        match self {
            Self::Start { job, .. } => format!("start-{job}"),
            Self::Stop { job, .. } => format!("stop-{job}"),
            Self::Read(ReadOrder::Bill { job }) => format!("bill-{job}"),
            Self::Read(ReadOrder::Log { job, streams }) => format!("read-{job}-{streams}"),
            Self::Read(ReadOrder::Rest { job, .. }) => format!("rest-{job}"),
            Self::Read(ReadOrder::Silence { job, since }) => format!("look-{job}-{since}"),
            Self::Pool(PoolOrder::Read { job, n, .. }) => format!("pool-{job}-{n}"),
            Self::Pool(PoolOrder::Release { job }) => format!("release-{job}"),
            Self::Grant(GrantOrder::Request { n, .. }) => format!("grant-{n}"),
            Self::Grant(GrantOrder::Return { n, .. }) => format!("return-{n}"),
            Self::Notice(notice) => notice.action(),
        }
    }

    /// Returns the job that the order is about; `None` = the whole tuning.
    pub fn job(&self) -> Option<JobKey> {
        match self {
            Self::Start { job, .. }
            | Self::Stop { job, .. }
            | Self::Read(
                ReadOrder::Bill { job }
                | ReadOrder::Log { job, .. }
                | ReadOrder::Rest { job, .. }
                | ReadOrder::Silence { job, .. },
            )
            | Self::Pool(PoolOrder::Read { job, .. } | PoolOrder::Release { job }) => Some(*job),
            Self::Grant(_) | Self::Notice(_) => None,
        }
    }
}

impl NoticeOrder {
    /// Returns the natural ID of the action, as [`Order::action`].
    pub fn action(&self) -> String {
        match self {
            Self::CapReached { percent } => format!("notice-cap-{percent}"),
            Self::MonthCapReached { month, percent } => format!("notice-month-{month}-{percent}"),
            Self::OverrunSeen => "notice-overrun".to_owned(),
            Self::CapacityLacking { since } => format!("notice-capacity-{}", since.as_seconds()),
            Self::TuningEnded { .. } => "notice-ended".to_owned(),
        }
    }
}

impl Ruling {
    /// Returns the order of an action outside, if the ruling is one.
    pub fn order(&self) -> Option<&Order> {
        match self {
            Self::Order(order) => Some(order),
            Self::Search(_) | Self::Attempt(_) | Self::Booking(_) | Self::TuningEnding { .. } => None,
        }
    }

    /// Returns the job that leaves the state with this ruling and gets its summary row.
    pub fn concludes(&self) -> Option<JobKey> {
        match self {
            Self::Attempt(AttemptRuling::AttemptAwaited { job, .. }) => Some(*job),
            Self::Attempt(AttemptRuling::TrialFinished { job, .. })
            | Self::Search(SearchRuling::RungReached { job, .. }) => *job,
            Self::Search(
                SearchRuling::TrialDrawn { .. }
                | SearchRuling::TrialJudged { .. }
                | SearchRuling::TrialPromoted { .. },
            )
            | Self::Attempt(AttemptRuling::ResourceRepeated { .. })
            | Self::Booking(_)
            | Self::TuningEnding { .. }
            | Self::Order(_) => None,
        }
    }
}
