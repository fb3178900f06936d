//! A trial: its position among the trials that compete with it, its log streams, its curve and its attempts.

pub(crate) mod diverged;
pub(crate) mod log;
pub(crate) mod stream;
pub mod summary;
pub mod timing;

use std::collections::BTreeMap;

use search::Configuration;
use serde::Deserialize;
use serde::Serialize;

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::MetricLine;
use crate::log::reasons::StopWhy;
use crate::trial::stream::Stream;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, CohortId, Place, RungId};
use crate::unit::time::{Millis, Time};

/// A live trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its bracket.
    pub bracket: BracketId,
    /// Its hyperparameters.
    pub configuration: Configuration,
    /// Whether the model of the sampler drew them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_model: bool,
    /// The round of its bracket, where rungs close.
    #[serde(default, skip_serializing_if = "crate::unit::is_zero")]
    pub round: u32,
    /// Set for the refit only: the epoch up to which it trains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refit: Option<Epochs>,
    /// The first rung at which it was not judged. Where trials are promoted: the rung to which it trains.
    pub next_rung: RungId,
    /// Why it is stopped; `None` while it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_why: Option<StopWhy>,
    /// Whether a user asked to stop its job. It then gets no further attempt and is never promoted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_requested: bool,
    /// The first value at each epoch, by epoch; `None` = not a number.
    pub curve: BTreeMap<Epochs, Option<f64>>,
    /// Its log streams, oldest first.
    pub streams: Vec<Stream>,
    /// How many streams it had when its stored log was last ordered to be read.
    #[serde(default, skip_serializing_if = "crate::unit::is_zero")]
    pub read_ordered: u32,
    /// How many streams it had at the order of the last completed read.
    #[serde(default, skip_serializing_if = "crate::unit::is_zero")]
    pub streams_read: u32,
    /// The latest line so far: time, ID and value.
    pub last_line: Option<(Time, String, Option<f64>)>,
    /// The attempt that logged it.
    #[serde(default)]
    pub last_line_attempt: u32,
    /// The latest lines that began an epoch without a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<Begun>,
    /// The latest lines without an index whose epoch has not begun in the known part of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnumbered: Vec<(String, MetricLine)>,
    /// Attempts ordered so far.
    pub attempts: u32,
    /// The rung of the last attempt: of its next rung, or of a lower one if that job trained past its level.
    #[serde(default, skip_serializing_if = "crate::trial::is_first")]
    pub last_attempt_rung: RungId,
    /// Attempts of rungs that it has passed: later facts about them change nothing.
    #[serde(default, skip_serializing_if = "crate::unit::is_zero")]
    pub past_attempts: u32,
    /// Retries at this rung after a failure of the service.
    #[serde(default, skip_serializing_if = "crate::unit::is_zero")]
    pub retries: u32,
    /// Switches to other instances since it last waited for capacity.
    #[serde(default, skip_serializing_if = "crate::unit::is_zero")]
    pub instance_switches: u32,
    /// The running-time limit that ended its last job although the user's is longer, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_limit: Option<u64>,
    /// The longest time that it took for an epoch in one of its concluded jobs; `None` before the second line of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_ms: Option<Millis>,
    /// Whether the next attempt runs on demand although the request asks for spot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Why its last job failed, if the service failed it and the trial waits for a further attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The earliest start of its next attempt; `None` while it has a job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
    /// The job that is not concluded.
    pub job: Option<Job>,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_first(rung: &RungId) -> bool {
    *rung == RungId(0)
}

impl Trial {
    pub(crate) fn new(bracket: BracketId, round: u32, configuration: &Configuration) -> Self {
        Self {
            bracket,
            round,
            refit: None,
            configuration: configuration.clone(),
            by_model: false,
            next_rung: RungId(0),
            stop_why: None,
            stop_requested: false,
            curve: BTreeMap::new(),
            streams: Vec::new(),
            read_ordered: 0,
            streams_read: 0,
            last_line: None,
            last_line_attempt: 0,
            begun: Vec::new(),
            unnumbered: Vec::new(),
            attempts: 0,
            last_attempt_rung: RungId(0),
            past_attempts: 0,
            retries: 0,
            cut_limit: None,
            epoch_ms: None,
            instance_switches: 0,
            on_demand: false,
            failure: None,
            retry_at: None,
            job: None,
        }
    }
}

impl Trial {
    /// Returns the trials that it is compared with.
    pub fn cohort(&self) -> CohortId {
        CohortId { bracket: self.bracket, round: self.round }
    }

    /// Returns its next rung.
    pub fn place(&self) -> Place {
        Place { cohort: self.cohort(), rung: self.next_rung }
    }

    /// Returns the rung for which its next job starts.
    pub fn start_rung(&self, definition: &Definition) -> RungId {
        if definition.promotes().is_some() { self.next_rung } else { RungId(0) }
    }

    /// Returns the epoch at which its present job is done.
    pub fn goal(&self, definition: &Definition) -> Epochs {
        self.refit.unwrap_or_else(|| definition.goal(self.bracket, self.next_rung))
    }

    /// Returns whether it has logged a finite value, also at an epoch that is not known yet.
    pub fn has_value(&self) -> bool {
        let held = self.streams.iter().filter(|stream| stream.unplaced);
        let held = held.flat_map(|stream| {
            stream.unplaced_lines.values().chain(stream.lines.iter().map(|(_, _, value)| value))
        });
        self.curve.values().chain(held).any(Option::is_some)
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
            .filter(|stream| stream.unplaced && self.next_rung == RungId(0) && self.streams.len() == 1);
        placed.max(first.and_then(|stream| stream.span).map_or(Epochs::ZERO, |(_, (_, last))| last))
    }
}
