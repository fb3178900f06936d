//! How long jobs take: the times that the log of a job shows, and those of all concluded jobs.

use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::JobEnd;
use crate::log::reasons::StopWhy;
use crate::trial::Trial;
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, RungId, SizeId};
use crate::unit::limits::{TAIL_FACTOR, TIMINGS_KEPT};
use crate::unit::time::{Millis, Time};

/// Timings of concluded jobs, the latest last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timings {
    /// The time of an epoch, one entry per job.
    pub epoch_ms: Vec<Millis>,
    /// The cluster size of each of these jobs, where the search chooses it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epoch_sizes: Vec<SizeId>,
    /// The time from the start of billing to the line of the first epoch, one entry per job.
    pub startup_ms: Vec<Millis>,
    /// The cluster size of each of these jobs, where the search chooses it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub startup_sizes: Vec<SizeId>,
    /// The time from the line of the last epoch to the end, one entry per job that was to train to `MaxResource` and
    /// completed or was ended there.
    pub tail_ms: Vec<Millis>,
    /// The same of jobs that were to train to a lower rung: a program may save its model only at the last epoch.
    pub rung_tail_ms: Vec<Millis>,
    /// The training job definition of each of the jobs of `tail_ms`, where there are several. Clusters of different sizes
    /// save the same model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail_sizes: Vec<SizeId>,
    /// The same of `rung_tail_ms`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rung_tail_sizes: Vec<SizeId>,
}

/// Where the training of a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// At `MaxResource`, or where its program ends.
    Last,
    /// At a lower rung.
    Rung,
}

impl Goal {
    pub(crate) fn of_rung(definition: &Definition, bracket: BracketId, rung: RungId) -> Self {
        Self::at(definition, definition.goal(bracket, rung))
    }

    /// Returns the goal of a job that is ordered or runs.
    pub(crate) fn of_job(definition: &Definition, job: &Job) -> Self {
        job.order.level.map_or(Self::Last, |level| Self::at(definition, level))
    }

    fn at(definition: &Definition, level: Epochs) -> Self {
        if level < definition.largest_resource() { Self::Rung } else { Self::Last }
    }
}

impl Timings {
    /// Adds the timing of a concluded job; `size` = its cluster size, where jobs have several. `are_tails_apart`: jobs of
    /// different sizes have different tails.
    pub(crate) fn record(
        &mut self,
        goal: Goal,
        size: Option<SizeId>,
        are_tails_apart: bool,
        Timing { epoch, startup, tail }: Timing,
    ) {
        if let Some(time) = epoch {
            push(&mut self.epoch_ms, time);
        }
        if let Some(time) = startup {
            push(&mut self.startup_ms, time);
        }
        if let Some(size) = size.filter(|_| epoch.is_some()) {
            push(&mut self.epoch_sizes, size);
        }
        if let Some(size) = size.filter(|_| startup.is_some()) {
            push(&mut self.startup_sizes, size);
        }
        if let Some(time) = tail {
            let (times, sizes) = match goal {
                Goal::Last => (&mut self.tail_ms, &mut self.tail_sizes),
                Goal::Rung => (&mut self.rung_tail_ms, &mut self.rung_tail_sizes),
            };
            push(times, time);
            if let Some(size) = size.filter(|_| are_tails_apart) {
                push(sizes, size);
            }
        }
    }

    /// Returns the median time of an epoch on a cluster size; `None` before a job has shown it.
    pub fn epoch(&self, size: SizeId) -> Option<Millis> {
        median(of_size(&self.epoch_ms, &self.epoch_sizes, size))
    }

    /// Returns the median time of a start-up with its first epoch on a cluster size; `None` before a job has shown it.
    pub fn startup(&self, size: SizeId) -> Option<Millis> {
        median(of_size(&self.startup_ms, &self.startup_sizes, size))
    }

    /// Returns the median time from the line of the last epoch to the end, on a cluster size; 0 before a job has shown it.
    pub fn tail(&self, size: SizeId) -> Millis {
        median(self.tails(Goal::Last, size)).unwrap_or(Millis::ZERO)
    }

    pub(crate) fn tails(&self, goal: Goal, size: SizeId) -> Vec<Millis> {
        match goal {
            Goal::Last => of_size(&self.tail_ms, &self.tail_sizes, size),
            Goal::Rung => of_size(&self.rung_tail_ms, &self.rung_tail_sizes, size),
        }
    }

    /// Returns the times of an epoch and of a start-up with its first epoch, of jobs of a cluster size.
    pub(crate) fn of_jobs(&self, size: SizeId) -> (Vec<Millis>, Vec<Millis>) {
        let epochs = of_size(&self.epoch_ms, &self.epoch_sizes, size);
        (epochs, of_size(&self.startup_ms, &self.startup_sizes, size))
    }
}

/// Returns the times of a cluster size. Where all jobs have one size, `sizes` is empty.
pub(crate) fn of_size(times: &[Millis], sizes: &[SizeId], size: SizeId) -> Vec<Millis> {
    let own = times.iter().enumerate().filter(|(index, _)| sizes.get(*index).is_none_or(|of| *of == size));
    own.map(|(_, time)| *time).collect()
}

fn median(mut times: Vec<Millis>) -> Option<Millis> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

fn push<T>(list: &mut Vec<T>, time: T) {
    if list.len() >= TIMINGS_KEPT {
        list.remove(0);
    }
    list.push(time);
}

/// What the log of one job shows of its times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    /// The time of an epoch; `None` before the second line.
    pub(crate) epoch: Option<Millis>,
    /// The time from the start of billing to the line of the first epoch.
    pub(crate) startup: Option<Millis>,
    /// The time from the line of the last epoch to the end; `None` if the job ended before.
    tail: Option<Millis>,
}

impl Timing {
    /// Returns the times of `job`, which may still run.
    pub(crate) fn of(definition: &Definition, trial: &Trial, job: &Job) -> Self {
        let mut streams = trial.streams.iter().filter(|stream| stream.attempt == job.order.attempt);
        let Some(stream) = streams.next_back() else { return Self::default() };
        let Some(((first_at, first), (last_at, last))) = stream.span else { return Self::default() };
        // After an interruption the first line of the last run does not show the start-up time.
        let started = job.started().filter(|_| streams.next().is_none());
        Self {
            epoch: (last_at - first_at).divided((last - first).0).map(Millis::or_zero),
            startup: started.map(|started| (first_at - started).or_zero()),
            tail: tail(definition, trial, job, last_at),
        }
    }
}

/// Returns the time from the last line of a job to its end.
///
/// A job that its limit ended after its last epoch needed longer than it had. It counts with a factor, so that the limits
/// of later jobs contain such a tail. A job that was stopped there counts without: the next grace is three times as long.
/// A job that trained beyond `MaxResource` was not in its tail.
fn tail(definition: &Definition, trial: &Trial, job: &Job, last_line: Time) -> Option<Millis> {
    let tail = (job.ended()? - last_line).or_zero();
    let has_all = trial.resource() >= trial.goal(definition);
    let is_beyond = trial.resource() > definition.largest_resource();
    match job.end_by_limit()? {
        JobEnd::Completed => Some(tail),
        JobEnd::MaxRuntime => has_all.then_some(tail * TAIL_FACTOR),
        JobEnd::Stopped => (job.stop_why() == Some(StopWhy::MaxResource) && !is_beyond).then_some(tail),
        JobEnd::MaxWait | JobEnd::AlgorithmError | JobEnd::CapacityError | JobEnd::ServiceError => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_hundred_timings_are_kept() {
        let mut list = Vec::new();
        for milliseconds in 0..=100 {
            push(&mut list, Millis(milliseconds));
        }
        assert_eq!((list.len(), list[0], list[99]), (100, Millis(1), Millis(100)));
    }

    #[test]
    fn the_usual_times_of_a_cluster_size_are_the_medians_of_its_jobs() {
        let times = |list: &[i64]| list.iter().copied().map(Millis).collect::<Vec<_>>();
        let (small, large) = (SizeId(0), SizeId(1));
        let timings = Timings {
            epoch_ms: times(&[10, 500, 30, 20, 50, 40]),
            epoch_sizes: vec![small, large, small, small, small, small],
            startup_ms: times(&[7, 9]),
            startup_sizes: vec![small, large],
            // All clusters save the same model.
            tail_ms: times(&[1, 5, 3]),
            ..Timings::default()
        };
        assert_eq!((timings.epoch(small), timings.epoch(large)), (Some(Millis(30)), Some(Millis(500))));
        assert_eq!((timings.startup(small), timings.startup(large)), (Some(Millis(7)), Some(Millis(9))));
        assert_eq!((timings.tail(small), timings.tail(large)), (Millis(3), Millis(3)));
        assert_eq!(timings.of_jobs(small), (times(&[10, 30, 20, 50, 40]), times(&[7])));
        let none = Timings::default();
        assert_eq!((none.epoch(small), none.startup(small), none.tail(small)), (None, None, Millis::ZERO));
    }
}
