//! A trial: its position among the trials that compete with it, its log streams, its curve and its attempts.

pub(crate) mod diverged;
pub mod live;
pub(crate) mod log;
pub(crate) mod stream;
pub mod summary;
pub mod timing;

use std::collections::BTreeMap;

use search::Configuration;
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::job::Job;
use crate::job::inquiry::Asked;
use crate::log::fact::MetricLine;
use crate::log::reasons::StopWhy;
use crate::log::ruling::Judged;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, DefinitionId, Place, RungId, SizeId, TrialId};
use crate::unit::time::{Millis, Time};

/// A live trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What it is for.
    pub purpose: Purpose,
    /// Its hyperparameters.
    pub configuration: Configuration,
    /// Whether the model of the sampler drew them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_model: bool,
    /// Why it is stopped; `None` while it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_why: Option<StopWhy>,
    /// The comparison that stopped it or, until the service accepts a job of its next rung, that promoted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// The levels at which it was judged, and its values there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<(Epochs, f64)>,
    /// Whether a user asked to stop its job. It then gets no further attempt and is never promoted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_requested: bool,
    /// The first value at each epoch, by epoch; `None` = not a number.
    pub curve: BTreeMap<Epochs, Option<f64>>,
    /// Its log streams, oldest first.
    pub streams: Vec<Stream>,
    /// The reads of its stored log, by the number of its streams at the order.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub read: Asked<u32>,
    /// The latest line so far.
    pub last_line: Option<LastLine>,
    /// The latest lines that began an epoch without a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<Begun>,
    /// The latest lines without an index whose epoch has not begun in the known part of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnumbered: Vec<(String, MetricLine)>,
    /// Attempts ordered so far.
    pub attempts: u32,
    /// The rung of the last attempt: of its next rung, or of a lower one if that job trained past its level.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub last_attempt_rung: RungId,
    /// Attempts of rungs that it has passed: later facts about them change nothing.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub past_attempts: u32,
    /// Retries at this rung after a failure of the service.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub retries: u32,
    /// Switches to other instances since it last waited for capacity.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub instance_switches: u32,
    /// The running-time limit that ended its last job although the user's is longer, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_limit: Option<u64>,
    /// The longest time that it took for an epoch in one of its concluded jobs; `None` before the second line of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_ms: Option<Millis>,
    /// The running time of its latest job that completed, where trials run to their own end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_ms: Option<Millis>,
    /// Whether the next attempt runs on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Whether it has a job.
    pub stage: TrialStage,
}

/// What a trial is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// It searches. It competes in its cohort for the next rung: the first one at which it was not judged or, where
    /// trials are promoted, the one to which it trains.
    Search(Place),
    /// It trains the best configuration once more. It belongs to no bracket, and no trial is compared with it.
    Refit {
        /// The epoch up to which it trains.
        to: Epochs,
        /// Its training job definition.
        #[serde(default, skip_serializing_if = "crate::unit::is_default")]
        of: DefinitionId,
    },
}

/// Whether a trial has a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "nearly all live trials have a job")]
pub enum TrialStage {
    /// The job that is not concluded.
    Running(Job),
    /// It waits for a further attempt.
    Awaiting {
        /// The earliest start of that attempt.
        not_before: Time,
        /// Why its last job failed, if the service failed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
}

/// A log stream of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// The attempt that wrote it.
    #[serde(default)]
    pub attempt: u32,
    /// Epochs that the trial had before this stream began.
    pub offset: Epochs,
    /// Time and ID of the line that proved the offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<(Time, String)>,
    /// Time, ID and value of its lines, in order; kept only where the epoch is the rank of the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(Time, String, Option<f64>)>,
    /// Whether its offset is still unknown: its program resumed from a checkpoint and counts from there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unplaced: bool,
    /// The values of an unplaced stream, by their own epoch; used where the epoch is captured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unplaced_lines: BTreeMap<Epochs, Option<f64>>,
    /// The first value of its highest epoch, where the epoch is captured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<(Epochs, Option<f64>)>,
    /// Time and epoch of its first line and of its last line.
    pub span: Option<((Time, Epochs), (Time, Epochs))>,
    /// Whether all its lines at the epoch of the promotion repeat the value of the trial there, bit for bit; `None` =
    /// no line is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats_value: Option<bool>,
}

/// The latest line of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LastLine {
    /// The time.
    pub at: Time,
    /// The ID.
    pub id: String,
    /// The value of the objective; `None` = not a number.
    pub value: Option<f64>,
    /// The attempt that logged it.
    pub attempt: u32,
}

/// An epoch that a log line without a value began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The log stream.
    pub stream: String,
    /// The time of the line.
    pub at: Time,
    /// The index, as logged.
    pub index: u64,
}

impl TrialStage {
    /// Returns the job that is not concluded.
    pub(crate) fn job(&self) -> Option<&Job> {
        match self {
            Self::Running(job) => Some(job),
            Self::Awaiting { .. } => None,
        }
    }
}

impl Trial {
    /// Returns a trial whose first job starts not before this time.
    pub(crate) fn new(purpose: Purpose, configuration: &Configuration, not_before: Time) -> Self {
        Self {
            purpose,
            configuration: configuration.clone(),
            by_model: false,
            stop_why: None,
            judged: None,
            passed: Vec::new(),
            stop_requested: false,
            curve: BTreeMap::new(),
            streams: Vec::new(),
            read: Asked::Never,
            last_line: None,
            begun: Vec::new(),
            unnumbered: Vec::new(),
            attempts: 0,
            last_attempt_rung: RungId(0),
            past_attempts: 0,
            retries: 0,
            cut_limit: None,
            epoch_ms: None,
            whole_ms: None,
            instance_switches: 0,
            on_demand: false,
            stage: TrialStage::Awaiting { not_before, failure: None },
        }
    }

    /// Returns the job that is not concluded.
    pub fn job(&self) -> Option<&Job> {
        self.stage.job()
    }

    /// As [`Trial::job`], to change it.
    pub fn job_mut(&mut self) -> Option<&mut Job> {
        match &mut self.stage {
            TrialStage::Running(job) => Some(job),
            TrialStage::Awaiting { .. } => None,
        }
    }

    pub(crate) fn take_job(&mut self, now: Time) -> Option<Job> {
        self.job()?;
        match std::mem::replace(&mut self.stage, TrialStage::Awaiting { not_before: now, failure: None }) {
            TrialStage::Running(job) => Some(job),
            TrialStage::Awaiting { .. } => None,
        }
    }

    /// Returns the earliest start of its next attempt; `None` while it has a job.
    pub fn not_before(&self) -> Option<Time> {
        match self.stage {
            TrialStage::Running(_) => None,
            TrialStage::Awaiting { not_before, .. } => Some(not_before),
        }
    }

    /// Returns whether its next attempt may start at `now`.
    pub(crate) fn may_start(&self, now: Time) -> bool {
        self.not_before().is_some_and(|at| at <= now)
    }

    /// Returns the cohort in which it competes, and its next rung; `None` for the refit.
    pub fn place(&self) -> Option<Place> {
        match self.purpose {
            Purpose::Search(place) => Some(place),
            Purpose::Refit { .. } => None,
        }
    }

    /// Returns the epoch up to which the refit trains; `None` for a trial of the search.
    pub fn refit(&self) -> Option<Epochs> {
        match self.purpose {
            Purpose::Search(_) => None,
            Purpose::Refit { to, .. } => Some(to),
        }
    }

    /// Returns its next rung. The refit has a first one.
    pub fn next_rung(&self) -> RungId {
        self.place().map_or(RungId(0), |place| place.rung)
    }

    /// Returns its bracket. The steps of the refit name one beyond the last.
    pub fn bracket(&self, definition: &Definition) -> BracketId {
        match self.purpose {
            Purpose::Search(place) => place.cohort.bracket,
            Purpose::Refit { of, .. } => definition.refit_bracket(of),
        }
    }

    /// Returns its cluster size.
    pub fn size(&self, definition: &Definition) -> SizeId {
        if definition.has_definitions() {
            SizeId(definition.definition_of_bracket(self.bracket(definition)).0)
        } else {
            definition.size_of(TrialId(0), &self.configuration)
        }
    }

    /// Returns its latest line, if `attempt` logged it.
    pub(crate) fn last_line_of(&self, attempt: u32) -> Option<&LastLine> {
        self.last_line.as_ref().filter(|line| line.attempt == attempt)
    }

    /// Returns the rung for which its next job starts.
    pub fn start_rung(&self, definition: &Definition) -> RungId {
        if definition.promotes().is_some() { self.next_rung() } else { RungId(0) }
    }

    /// Returns the epoch at which its present job is done.
    pub fn goal(&self, definition: &Definition) -> Epochs {
        match self.purpose {
            Purpose::Search(place) => definition.goal(place.cohort.bracket, place.rung),
            Purpose::Refit { to, .. } => to,
        }
    }

    /// Returns whether it has logged a finite value, also at an epoch that is not known yet.
    pub fn has_value(&self) -> bool {
        let unplaced = self.streams.iter().filter(|stream| stream.unplaced);
        let unplaced = unplaced.flat_map(|stream| {
            stream.unplaced_lines.values().chain(stream.lines.iter().map(|(_, _, value)| value))
        });
        self.curve.values().chain(unplaced).any(Option::is_some)
    }

    /// Returns whether the value of its last epoch is not finite.
    pub fn ends_diverged(&self) -> bool {
        self.curve.last_key_value().is_some_and(|(_, value)| value.is_none())
    }

    /// Returns the final value of an attempt: the first value of the last epoch in its latest stream. After a restart, an
    /// epoch of an earlier stream may have another value.
    pub fn last_value(&self, attempt: u32) -> Option<f64> {
        let own = self.streams.iter().filter(|stream| stream.attempt == attempt);
        let latest = own.filter_map(|stream| Some((stream.span?.1, stream))).max_by_key(|(last, _)| *last)?.1;
        let ranked = || latest.lines.last().map(|(_, _, value)| *value);
        latest.last.map(|(_, value)| value).or_else(ranked).flatten()
    }

    /// Returns the highest epoch it has reached.
    pub fn resource(&self) -> Epochs {
        let placed = self.curve.last_key_value().map_or(Epochs::ZERO, |(resource, _)| *resource);
        // The first start of a trial begins at epoch 1, also while its stream is unplaced.
        let first = self
            .streams
            .first()
            .filter(|stream| stream.unplaced && self.next_rung() == RungId(0) && self.streams.len() == 1);
        placed.max(first.and_then(|stream| stream.span).map_or(Epochs::ZERO, |(_, (_, last))| last))
    }
}
