//! Running-time limits, from the time that a job needs. A limit close to this time lets a small cap keep all slots
//! busy, and the service itself enforces the cap. Without a cap or grants, the user's limit is sent unchanged.
//!
//! The limit of a running job cannot be changed, so it has a margin: 280 % of the usual time after the first timed job,
//! 130 % after many. The usual time is the start-up, the epochs left and the tail from the last epoch to the end.
//! Start-up and epochs count at the 80th percentile of the timed jobs, tails at the 95th. A promoted trial that was
//! timed itself counts with its own epochs. Where a job's share of the remaining money pays for less time, the limit is
//! shorter, down to the least useful time. A job that reaches such a limit is retried with a longer one.

use crate::definition::Definition;
use crate::job::Job;
use crate::state::State;
use crate::trial::Trial;
use crate::trial::timing::{Goal, Timing, Timings, of_size};
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, RungId, SizeId, count};
use crate::unit::limits::{
    LEAST_EPOCHS_PERCENT, LEAST_PERCENT, LEAST_PERCENT_FEW, MARGIN_PERCENT, MARGIN_PERCENT_FEW,
    MIN_RUNTIME_SECONDS, TIMED_JOBS_ENOUGH, TIMED_JOBS_NEEDED, TIMED_JOBS_OWN, USUAL_PERCENTILE,
};
use crate::unit::time::Millis;

/// Returns the longest known tail of jobs with this goal; `None` while too few have one.
pub(crate) fn longest_tail(state: &State, goal: Goal, size: SizeId) -> Option<Millis> {
    let tails = state.results.timings.tails(goal, size);
    tails.iter().max().copied().filter(|_| tails.len() >= TIMED_JOBS_NEEDED)
}

/// The usual times of the jobs so far.
struct Pace {
    /// The usual time of an epoch, and how many jobs it is of.
    epoch: (Millis, usize),
    /// The same of start-ups.
    startup: (Millis, usize),
    /// The same of tails.
    tail: (Millis, usize),
}

impl Pace {
    /// Returns the pace of the concluded jobs and, while these are few, of the running ones; `None` before the first
    /// timed job.
    fn of(definition: &Definition, state: &State, Work { goal, size, .. }: Work) -> Option<Self> {
        let tail_ms = state.results.timings.tails(goal, size);
        let Timings { mut epoch_ms, mut epoch_sizes, mut startup_ms, mut startup_sizes, .. } =
            state.results.timings.clone();
        if epoch_ms.len() < TIMED_JOBS_ENOUGH {
            for (_, trial, job) in state.jobs().filter(|(_, trial, _)| !trial.streams.is_empty()) {
                let Timing { epoch, startup, .. } = Timing::of(definition, trial, job);
                epoch_ms.extend(epoch);
                let size = definition.job.size(job.order.instances);
                epoch_sizes.extend(epoch.map(|_| size));
                startup_sizes.extend(startup.map(|_| size));
                startup_ms.extend(startup);
            }
        }
        if definition.has_definitions() {
            // Other programs show nothing about this one.
            epoch_ms = of_size(&epoch_ms, &epoch_sizes, size);
            startup_ms = of_size(&startup_ms, &startup_sizes, size);
        } else if !definition.job.sizes.is_empty() {
            epoch_ms = at_size(&definition.job.sizes, &epoch_ms, &epoch_sizes, size);
            startup_ms = at_size(&definition.job.sizes, &startup_ms, &startup_sizes, size);
        }
        let (epochs, startups) = (epoch_ms.len(), startup_ms.len());
        let startup = percentile(startup_ms, USUAL_PERCENTILE);
        // The first epoch is part of a start-up.
        let epoch = match epochs {
            0 => (startup, startups),
            timed => (percentile(epoch_ms, USUAL_PERCENTILE), timed),
        };
        let tails = tail_ms.len();
        (epochs.max(startups) > 0).then_some(Self {
            epoch,
            startup: (startup, startups),
            tail: (percentile(tail_ms, 95), tails),
        })
    }

    /// Returns the time for `epochs` epochs of a trial that is known to take `own` for one, with a margin of
    /// `base` percent and `few` percent divided by the number of timed jobs.
    fn seconds(&self, epochs: Epochs, own: Option<Millis>, base: u32, few: u32) -> u64 {
        let with_margin = |(time, timed): (Millis, usize)| {
            let few = few.checked_div(count(timed)).unwrap_or(0);
            time.percent(base.saturating_add(few))
        };
        let (epoch, timed) = self.epoch;
        let epoch = own.map_or((epoch, timed), |own| (own, TIMED_JOBS_OWN));
        let around = with_margin(self.startup) + with_margin(self.tail);
        (with_margin(epoch) * epochs.0 + around).seconds_rounded_up()
    }
}

/// Returns the times of an epoch, or of a start-up with its first epoch, of jobs with this cluster size. While there are
/// none, returns those of all jobs: a smaller cluster may take longer by the ratio of the sizes, a larger one may be no
/// faster.
fn at_size(sizes: &[u32], times: &[Millis], of: &[SizeId], size: SizeId) -> Vec<Millis> {
    let all = || times.iter().copied().zip(of.iter().copied());
    let own: Vec<Millis> = all().filter(|(_, of)| *of == size).map(|(time, _)| time).collect();
    if !own.is_empty() {
        return own;
    }
    let instances = |size: SizeId| sizes.get(size.index()).copied().unwrap_or(1);
    let percent = |of| instances(of).saturating_mul(100).div_ceil(instances(size).max(1)).max(100);
    all().map(|(time, of)| time.percent(percent(of))).collect()
}

/// Returns a percentile of the times, interpolated between the two nearest ones; 0 for an empty list. So the largest
/// of a few times does not count alone.
fn percentile(mut times: Vec<Millis>, percent: u32) -> Millis {
    if times.is_empty() {
        return Millis::ZERO;
    }
    // In hundredths of a place in the sorted list.
    let place = times.len().saturating_sub(1).saturating_mul(usize::try_from(percent).unwrap_or(100));
    let (below, part) = (place.div_euclid(100), count(place.rem_euclid(100)));
    let (_, low, above) = times.select_nth_unstable(below);
    let high = above.iter().min().copied().unwrap_or(*low);
    *low + (high - *low).percent(part)
}

/// Returns how many epochs the job of a trial of `bracket` trains for `rung`.
pub fn epochs_of(definition: &Definition, bracket: BracketId, rung: RungId) -> Epochs {
    definition.goal(bracket, rung) - definition.level_below(bracket, rung)
}

/// The running times worth sending with a job, in seconds: `least <= usual <= most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runtime {
    /// The least, when money is short: what most jobs need. `None` before a job was timed, and where every trial runs to
    /// its own end.
    pub least: Option<u64>,
    /// The usual one.
    pub usual: u64,
    /// The longest, when money is plentiful: the usual one, or the user's limit while no job with all epochs has shown how
    /// long it saves its model.
    pub most: u64,
}

/// The work of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The epochs that it trains.
    pub epochs: Epochs,
    /// Where its training ends.
    pub goal: Goal,
    /// The time that an epoch of its trial is known to take.
    pub own: Option<Millis>,
    /// Its cluster size.
    pub size: SizeId,
}

impl Work {
    /// Returns the work of a job for a rung, in a trial of which nothing is known.
    pub(crate) fn of_rung(definition: &Definition, bracket: BracketId, rung: RungId, size: SizeId) -> Self {
        let epochs = epochs_of(definition, bracket, rung);
        Self { epochs, goal: Goal::of_rung(definition, bracket, rung), own: None, size }
    }
}

/// Returns the running times for a job.
pub fn runtime(definition: &Definition, state: &State, work: Work) -> Runtime {
    let user = definition.terms(work.size).max_runtime_seconds;
    // A shorter limit lets a small cap start more jobs. Where nothing limits the money, it would only end slow
    // configurations.
    let is_limited = state.money.ledger.cap.is_some() || state.money.ledger.granted.is_some();
    let Some(pace) =
        definition.compared().filter(|_| is_limited).and_then(|_| Pace::of(definition, state, work))
    else {
        return Runtime { least: None, usual: user, most: user };
    };
    let Work { epochs, goal, own, .. } = work;
    let seconds = |epochs, base, few| pace.seconds(epochs, own, base, few).max(MIN_RUNTIME_SECONDS).min(user);
    let usual = seconds(epochs, MARGIN_PERCENT, MARGIN_PERCENT_FEW);
    // A job that trains for one rung needs all its epochs. Others seldom do.
    let most = if definition.promotes().is_some() { epochs } else { epochs.percent(LEAST_EPOCHS_PERCENT) };
    let least = seconds(most, LEAST_PERCENT, LEAST_PERCENT_FEW).min(usual);
    let is_tail_unknown = goal == Goal::Last && state.results.timings.tails(goal, work.size).is_empty();
    Runtime { least: Some(least), usual, most: if is_tail_unknown { user } else { usual } }
}

/// Returns how long an epoch of a running job takes: its own, or else the longest of concluded jobs. `None` before
/// anything shows it.
pub fn usual_epoch(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> Option<Millis> {
    let own = Timing::of(definition, trial, job).epoch.max(trial.epoch_ms);
    let (known, _) = timed_alike(definition, state, trial.size(definition));
    own.or_else(|| known.into_iter().max())
}

/// Returns the times of an epoch and of a start-up, of all jobs; with several training job definitions, of the jobs of
/// one.
fn timed_alike(definition: &Definition, state: &State, size: SizeId) -> (Vec<Millis>, Vec<Millis>) {
    let timings = &state.results.timings;
    if definition.has_definitions() {
        timings.of_jobs(size)
    } else {
        (timings.epoch_ms.clone(), timings.startup_ms.clone())
    }
}

/// Returns the usual times of an epoch and of a start-up (95th percentiles), once enough jobs were timed.
pub(crate) fn usual(definition: &Definition, state: &State, size: SizeId) -> Option<(Millis, Millis)> {
    let (epoch_ms, startup_ms) = timed_alike(definition, state, size);
    (epoch_ms.len() >= TIMED_JOBS_NEEDED).then(|| (percentile(epoch_ms, 95), percentile(startup_ms, 95)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_lies_between_the_two_nearest_times() {
        let at = |times: &[i64], percent| percentile(times.iter().copied().map(Millis).collect(), percent);
        assert_eq!(at(&[], 80), Millis(0));
        assert_eq!(at(&[7], 80), Millis(7));
        assert_eq!(at(&[200, 100], 80), Millis(180));
        assert_eq!(at(&(0..=100).rev().collect::<Vec<_>>(), 95), Millis(95));
    }

    #[test]
    fn one_slow_configuration_among_few_does_not_size_every_limit() {
        let mut times = vec![Millis(100); 9];
        times.push(Millis(1_000));
        assert_eq!(percentile(times, USUAL_PERCENTILE), Millis(100));
    }
}
