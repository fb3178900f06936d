//! Running-time limits: how long a job needs. A limit close to that lets a small cap start jobs at all, and the
//! service itself enforces the cap. Without a cap or grants the user's limit is sent as it is.
//!
//! The limit of a running job cannot be changed. Once enough jobs are timed, the limit is three times the 95th
//! percentile of the seconds per epoch for the epochs left, plus start-up, and at most the user's limit. A job that
//! reaches such a limit is retried with a longer one.

use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::epochs::Epochs;
use crate::ids::{BracketId, RungId};
use crate::limits::{MIN_RUNTIME_SECONDS, TIMED_JOBS_NEEDED, TIMINGS_KEPT};
use crate::state::{Job, State, Trial};
use crate::time::Millis;

/// Timings of concluded jobs, the latest last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timings {
    /// The time of an epoch, one entry per job.
    pub epoch_ms: Vec<Millis>,
    /// The time from the start of billing to the line of the first epoch, one entry per job.
    pub startup_ms: Vec<Millis>,
}

impl Timings {
    /// Adds the timing of a concluded job that logged at least two epochs.
    pub fn record(&mut self, trial: &Trial, job: &Job) {
        let mut streams = trial.streams.iter().filter(|stream| stream.attempt == job.attempt);
        let Some(stream) = streams.next_back() else { return };
        let Some(((first_at, first), (last_at, last))) = stream.span else { return };
        let Some(per_epoch) = (last_at - first_at).divided((last - first).0) else { return };
        push(&mut self.epoch_ms, per_epoch);
        // After an interruption the first line of the last run does not show the start-up time.
        if let (Some(started), None) = (job.started, streams.next()) {
            push(&mut self.startup_ms, first_at - started);
        }
    }
}

fn push(list: &mut Vec<Millis>, time: Millis) {
    if list.len() >= TIMINGS_KEPT {
        list.remove(0);
    }
    list.push(time.or_zero());
}

/// Returns the 95th percentile by nearest rank; 0 for an empty list.
fn p95(list: &[Millis]) -> Millis {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    let rank = sorted.len().saturating_mul(95).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or_default()
}

/// Returns how many epochs the job of a trial of `bracket` trains for `rung`.
pub fn epochs_of(definition: &Definition, bracket: BracketId, rung: RungId) -> Epochs {
    definition.goal(bracket, rung) - definition.level_below(bracket, rung)
}

/// Returns the running-time limit to send with a job that trains `epochs` epochs, in seconds.
pub fn runtime_seconds(definition: &Definition, state: &State, epochs: Epochs) -> u64 {
    let user = definition.job.max_runtime_seconds;
    // A shorter limit lets a small cap start more jobs. Where nothing limits the money, it would only end slow
    // configurations.
    let is_limited = state.ledger.cap.is_some() || state.ledger.granted.is_some();
    if !is_limited || definition.compared().is_none() || state.timings.epoch_ms.len() < TIMED_JOBS_NEEDED {
        return user;
    }
    let usual = p95(&state.timings.epoch_ms) * epochs.0 + p95(&state.timings.startup_ms);
    (usual * 3).seconds_rounded_up().max(MIN_RUNTIME_SECONDS).min(user)
}

/// Returns the least running time worth sending when money runs out, in seconds: what a usual job needs for `epochs`
/// epochs (twice that while few jobs were timed), at most the user's limit.
///
/// `None` while no epoch was timed, or where every trial runs to its own end.
pub fn least_seconds(definition: &Definition, state: &State, epochs: Epochs) -> Option<u64> {
    definition.compared()?;
    let timings = &state.timings;
    let factor = match timings.epoch_ms.len() {
        0 => return None,
        timed if timed < TIMED_JOBS_NEEDED => 2,
        _ => 1,
    };
    let usual = p95(&timings.epoch_ms) * epochs.0 + p95(&timings.startup_ms);
    let user = definition.job.max_runtime_seconds;
    Some((usual * factor).seconds_rounded_up().max(MIN_RUNTIME_SECONDS).min(user))
}

/// Returns the usual times of an epoch and of a start-up (95th percentiles), once enough jobs were timed.
pub(crate) fn usual(state: &State) -> Option<(Millis, Millis)> {
    let Timings { epoch_ms, startup_ms } = &state.timings;
    (epoch_ms.len() >= TIMED_JOBS_NEEDED).then(|| (p95(epoch_ms), p95(startup_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_uses_the_nearest_rank() {
        assert_eq!(p95(&[]), Millis(0));
        assert_eq!(p95(&[Millis(7)]), Millis(7));
        let hundred: Vec<Millis> = (1..=100).rev().map(Millis).collect();
        assert_eq!(p95(&hundred), Millis(95));
    }

    #[test]
    fn only_the_latest_hundred_timings_are_kept() {
        let mut list = Vec::new();
        for milliseconds in 0..=100 {
            push(&mut list, Millis(milliseconds));
        }
        assert_eq!((list.len(), list[0], list[99]), (100, Millis(1), Millis(100)));
        push(&mut list, Millis(-5));
        assert_eq!(list[99], Millis(0), "a negative time counts as 0");
    }
}
