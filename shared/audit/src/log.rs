//! The steps: facts and rulings, as far as the audit reads them. An unknown one is an error: a newer release made it.

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct Job {
    pub(crate) trial: u32,
    pub(crate) rung: u32,
    pub(crate) attempt: u32,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.trial, self.rung, self.attempt)
    }
}

/// A step, whose facts were folded before its rulings were made.
#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    pub(crate) n: u64,
    pub(crate) at: i64,
    pub(crate) facts: Vec<Recorded>,
    pub(crate) rulings: Vec<Ruling>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) key: String,
    pub(crate) at: i64,
    pub(crate) fact: Fact,
}

#[derive(Debug, Deserialize)]
pub(crate) enum Fact {
    TuningSubmitted,
    StopRequested,
    LimitsChanged(Changed),
    TimePassed,
    JobStateChanged(StateChanged),
    MetricsLogged(Logged),
    LogProblemSeen(IgnoredAny),
    FinalMetricsSeen(FinalMetrics),
    JobDescribed(Described),
    BillsConfirmed(Bills),
    LogRead(OfJob),
    RestRead(OfJob),
    SilenceSeen(OfJob),
    BudgetGranted(Amount),
    GrantReturned(IgnoredAny),
    NoticeGiven(IgnoredAny),
    JobStarted(OfJob),
    JobSeen(OfJob),
    StartRefused(OfJob),
    JobNeverStarted(OfJob),
    StopAccepted(OfJob),
    JobStopRequested(OfJob),
    PoolSeen(OfJob),
    PoolOver(OfJob),
    ActionDeferred(OfJob),
}

impl Fact {
    /// Returns how a job ended, if the fact shows it. `None` for the end: it never started.
    pub(crate) fn end_of(&self) -> Option<(Job, Option<End>)> {
        match self {
            Self::JobStateChanged(changed) => match changed.phase {
                Phase::Ended { end } => Some((changed.job, Some(end))),
                Phase::Other(_) => None,
            },
            Self::JobDescribed(described) => Some((described.job, Some(described.end))),
            Self::StartRefused(of) | Self::JobNeverStarted(of) => Some((of.job, None)),
            _ => None,
        }
    }

    /// Returns the job whose order had its outcome, if the fact shows that.
    pub(crate) fn outcome_of(&self) -> Option<Job> {
        match self {
            Self::JobStateChanged(_)
            | Self::MetricsLogged(_)
            | Self::JobDescribed(_)
            | Self::JobStarted(_)
            | Self::JobSeen(_)
            | Self::StartRefused(_)
            | Self::JobNeverStarted(_) => self.job(),
            _ => None,
        }
    }

    /// Returns the job with whose facts the fact is stored. Two jobs may have facts of one key.
    pub(crate) fn job(&self) -> Option<Job> {
        match self {
            Self::JobStateChanged(changed) => Some(changed.job),
            Self::MetricsLogged(logged) => Some(logged.job),
            Self::FinalMetricsSeen(seen) => Some(seen.job),
            Self::JobDescribed(described) => Some(described.job),
            Self::LogRead(of)
            | Self::RestRead(of)
            | Self::SilenceSeen(of)
            | Self::JobStarted(of)
            | Self::JobSeen(of)
            | Self::StartRefused(of)
            | Self::JobNeverStarted(of)
            | Self::StopAccepted(of)
            | Self::JobStopRequested(of)
            | Self::PoolSeen(of)
            | Self::PoolOver(of)
            | Self::ActionDeferred(of) => Some(of.job),
            Self::TuningSubmitted
            | Self::StopRequested
            | Self::LimitsChanged(_)
            | Self::TimePassed
            | Self::LogProblemSeen(_)
            | Self::BillsConfirmed(_)
            | Self::BudgetGranted(_)
            | Self::GrantReturned(_)
            | Self::NoticeGiven(_) => None,
        }
    }
}

/// A limit that the user changes. The latest change counts, by its time and key, in whatever order the changes arrive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latest<T> {
    pub(crate) value: T,
    of: Option<(i64, String)>,
}

impl<T> Latest<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value, of: None }
    }

    pub(crate) fn change(&mut self, recorded: &Recorded, value: T) {
        let of = Some((recorded.at, recorded.key.clone()));
        if of > self.of {
            (self.value, self.of) = (value, of);
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Changed {
    pub(crate) cap: Option<u64>,
    pub(crate) max_parallel: Option<u32>,
    pub(crate) paused: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct StateChanged {
    pub(crate) job: Job,
    pub(crate) phase: Phase,
}

/// The state of a job: its name, or how it ended.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Phase {
    Ended {
        #[serde(rename = "Ended")]
        end: End,
    },
    Other(IgnoredAny),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum End {
    Completed,
    Stopped,
    MaxRuntime,
    MaxWait,
    AlgorithmError,
    CapacityError,
    ServiceError,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Logged {
    pub(crate) job: Job,
    pub(crate) lines: Vec<Line>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    pub(crate) value: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FinalMetrics {
    pub(crate) job: Job,
    pub(crate) values: Vec<(u8, f64)>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Described {
    pub(crate) job: Job,
    pub(crate) end: End,
    /// When the instances began to run; `None` = they never ran.
    pub(crate) started: Option<i64>,
    pub(crate) billable_seconds: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Bills {
    pub(crate) bills: Vec<(Job, u64)>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Amount {
    pub(crate) amount: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct OfJob {
    pub(crate) job: Job,
}

#[derive(Debug, Deserialize)]
pub(crate) enum Ruling {
    TuningEnding(IgnoredAny),
    TuningEnded(IgnoredAny),
    Start(Start),
    Stop(Stop),
    ReadBill(OfJob),
    ReadRest(OfJob),
    ReadLog(IgnoredAny),
    Look(IgnoredAny),
    ReadPool(IgnoredAny),
    ReleasePool(IgnoredAny),
    RequestGrant(IgnoredAny),
    ReturnGrant(Returned),
    CapReached(IgnoredAny),
    MonthCapReached(IgnoredAny),
    OverrunSeen,
    CapacityLacking(IgnoredAny),
    TrialDrawn(IgnoredAny),
    TrialJudged(Judged),
    RungReached(Reached),
    TrialPromoted(Promoted),
    ResourceRepeated(IgnoredAny),
    AttemptAwaited(OfJob),
    TrialFinished(Finished),
    BillBooked(Booked),
    SettledInFull(Settled),
    ReservationExtended(Settled),
    PoolClosed(Amount),
}

impl Ruling {
    /// Returns the name of the row in the outbox, if the audit follows orders of this kind.
    pub(crate) fn action(&self) -> Option<String> {
        match self {
            Self::Start(start) => Some(format!("start-{}", start.job)),
            Self::Stop(stop) => Some(format!("stop-{}", stop.job)),
            Self::ReadBill(of) => Some(format!("bill-{}", of.job)),
            Self::ReadRest(of) => Some(format!("rest-{}", of.job)),
            _ => None,
        }
    }

    /// Returns the name, as the rows have it.
    pub(crate) fn name(&self) -> String {
        let text = format!("{self:?}");
        text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default().to_owned()
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Start {
    pub(crate) job: Job,
    pub(crate) bracket: u32,
    #[serde(default)]
    pub(crate) round: u32,
    pub(crate) reservation: u64,
    pub(crate) limits: JobLimits,
    #[serde(default)]
    pub(crate) launch: Launch,
}

#[derive(Debug, Deserialize)]
pub(crate) struct JobLimits {
    pub(crate) max_runtime_seconds: u64,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Launch {
    #[serde(default)]
    pub(crate) instances: usize,
    #[serde(default)]
    pub(crate) refit: bool,
    /// The epoch to which the job trains, where each rung has a job.
    pub(crate) resource: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Stop {
    pub(crate) job: Job,
    pub(crate) because: Option<Because>,
}

/// The comparison that stops a job.
#[derive(Debug, Deserialize)]
pub(crate) struct Because {
    pub(crate) level: u32,
    pub(crate) verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Verdict {
    pub(crate) rank: u32,
    pub(crate) seen: u32,
    pub(crate) allowed: u32,
    pub(crate) continues: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Judged {
    pub(crate) trial: u32,
    pub(crate) bracket: u32,
    pub(crate) rung: u32,
    pub(crate) level: u32,
    pub(crate) value: Option<f64>,
    pub(crate) average: Option<f64>,
    pub(crate) verdict: Verdict,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Reached {
    pub(crate) job: Option<Job>,
    pub(crate) trial: u32,
    pub(crate) bracket: u32,
    pub(crate) round: u32,
    pub(crate) rung: u32,
    pub(crate) level: u32,
    pub(crate) value: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Promoted {
    pub(crate) trial: u32,
    pub(crate) bracket: u32,
    pub(crate) round: u32,
    pub(crate) rung: u32,
    pub(crate) value: Option<f64>,
    pub(crate) verdict: Verdict,
    #[serde(default)]
    pub(crate) reached_target: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Finished {
    pub(crate) job: Option<Job>,
    pub(crate) trial: u32,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Booked {
    pub(crate) job: Job,
    pub(crate) seconds: u64,
    pub(crate) amount: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Settled {
    pub(crate) job: Job,
    pub(crate) amount: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Returned {
    pub(crate) amount: u64,
    /// The month to which the money moves instead; it stays granted.
    pub(crate) moved_to: Option<String>,
}
