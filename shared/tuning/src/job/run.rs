//! How far a training job has come, as far as facts show. Facts arrive in any order, so a run moves in one direction
//! only: `Waiting`, `Known`, `Ended`. A job that never starts becomes `Void` instead.

use serde::{Deserialize, Serialize};

use crate::log::fact::{JobEnd, JobPhase};
use crate::unit::time::{Millis, Time};

/// How far a training job has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Run {
    /// No fact shows that the service has the job.
    Waiting {
        /// Whether a quota of the account blocks its start.
        quota_exceeded: bool,
    },
    /// The service has the job, and no fact shows its end.
    Known(Trace),
    /// The job ended.
    Ended {
        /// The first end seen.
        end: JobEnd,
        /// When that end was.
        at: Time,
        /// What facts show.
        trace: Trace,
    },
    /// The job never runs. Later signs of it are ignored.
    Void {
        /// The answer of a service that refused it for good; `None` if it was cancelled before it started.
        refused: Option<String>,
    },
}

/// What facts show of a job that the service has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Trace {
    /// The latest state and when the job entered it; `None` before the first one.
    pub phase: Option<(Time, JobPhase)>,
    /// The latest sign of life of any kind.
    pub seen_at: Time,
    /// The first time reported by the sweeper after its own limits should have ended it, counted from that sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_since: Option<Time>,
    /// When its instances began to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    /// When its instances stopped running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
    /// The latest time at which facts show that it had instances; `None` = they show none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_at: Option<Time>,
    /// When it last lost its instances to an interruption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_at: Option<Time>,
    /// The total time of its interruptions that are over. It had no instances then.
    #[serde(default, skip_serializing_if = "Millis::is_zero")]
    pub idle: Millis,
    /// Interruptions so far.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub interruptions: u32,
}

impl Run {
    /// Returns what facts show of the job; `None` before the service is known to have it, and if it never runs.
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Self::Known(trace) | Self::Ended { trace, .. } => Some(trace),
            Self::Waiting { .. } | Self::Void { .. } => None,
        }
    }

    /// Records that the service has the job, which was ordered at `ordered`. Returns the trace; `None` if the job never
    /// runs.
    pub(crate) fn show(&mut self, ordered: Time) -> Option<&mut Trace> {
        if matches!(self, Self::Waiting { .. }) {
            *self = Self::Known(Trace::new(ordered));
        }
        match self {
            Self::Known(trace) | Self::Ended { trace, .. } => Some(trace),
            Self::Waiting { .. } | Self::Void { .. } => None,
        }
    }

    /// Records the end, if no end is known.
    pub(crate) fn end(&mut self, end: JobEnd, at: Time) {
        if let Self::Known(trace) = self {
            *self = Self::Ended { end, at, trace: trace.clone() };
        }
    }
}

impl Trace {
    fn new(ordered: Time) -> Self {
        Self { seen_at: ordered, ..Self::default() }
    }

    /// Records a sign of life.
    pub(crate) fn note_seen(&mut self, at: Time) {
        self.seen_at = self.seen_at.max(at);
    }

    /// Records that the job had instances at `at`.
    pub(crate) fn note_instances(&mut self, at: Time) {
        self.instances_at = self.instances_at.max(Some(at));
    }

    /// Records times of the instances and what the state `phase` shows of them.
    pub(crate) fn note_times(
        &mut self,
        at: Time,
        phase: JobPhase,
        started: Option<Time>,
        ended: Option<Time>,
    ) {
        self.started = self.started.or(started);
        self.ended = self.ended.or(ended);
        match phase {
            JobPhase::Downloading | JobPhase::Training | JobPhase::Uploading => self.note_instances(at),
            JobPhase::Interrupted => self.interrupted_at = self.interrupted_at.max(Some(at)),
            // Such a job had its instances up to its end.
            JobPhase::Ended(JobEnd::Completed | JobEnd::AlgorithmError | JobEnd::MaxRuntime) => {
                if let Some(ended) = ended.filter(|_| started.is_some()) {
                    self.note_instances(ended);
                }
            }
            JobPhase::Starting | JobPhase::Stopping | JobPhase::Other | JobPhase::Ended(_) => {}
        }
        if let Some(started) = started {
            self.note_instances(started);
        }
    }

    /// Enters `phase`, unless a later state is known.
    pub(crate) fn enter(&mut self, at: Time, phase: JobPhase) {
        let known = self.phase;
        if known.is_some_and(|(known_at, known)| (at, order(phase)) <= (known_at, order(known))) {
            return;
        }
        // Each return to `Interrupted` is one interruption. The same interruption reported by another source may have
        // another time.
        match known.filter(|(_, known)| *known == JobPhase::Interrupted) {
            None if phase == JobPhase::Interrupted => {
                self.interruptions = self.interruptions.saturating_add(1);
            }
            Some((since, _)) if phase != JobPhase::Interrupted => self.idle = self.idle + (at - since),
            None | Some(_) => {}
        }
        self.phase = Some((at, phase));
    }
}

/// The usual order of the states: events carry whole seconds, so two states can have the same time.
fn order(phase: JobPhase) -> u8 {
    match phase {
        JobPhase::Other => 0,
        JobPhase::Starting => 1,
        JobPhase::Downloading => 2,
        JobPhase::Training => 3,
        JobPhase::Interrupted => 4,
        JobPhase::Stopping => 5,
        JobPhase::Uploading => 6,
        JobPhase::Ended(_) => 7,
    }
}
