//! Simulates a plan in whole milliseconds, to estimate its training jobs, epochs and time. `hyperband plan` shows the
//! estimate, and `RungExecution` `Auto` uses it for its decision.
//!
//! Assumes that all trials are equally likely to be the best, and that a trial's rank is the same at every rung. Also
//! assumes that no job fails, and that a stop takes no time. With `Promote`, a rung closes when all its slots have
//! ended. The simulation is deterministic: it reads no clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use hyperband::plan::Plan;
use hyperband::ranking::Direction;
use tuning::scheduler::{Rung, judge};
use tuning::unit::ids::TrialId;

use crate::request::RungExecution;

mod late_stop;

pub use late_stop::{Delay, MetricsFrom, Overrun, SILENCE_MS};

/// Maximum number of simulated runs. The result is their mean.
const RUNS_MAX: u32 = 20;
/// Maximum number of trials over all runs. Plans with many trials get fewer runs.
const TRIALS_SIMULATED: u32 = 20_000;

/// The times of a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// From the start of a job to its first epoch, in ms.
    pub startup_ms: u64,
    /// Of an epoch, in ms.
    pub epoch_ms: u64,
}

impl Times {
    /// What the controller assumes before the first job: the times of a small training on SageMaker.
    pub const ASSUMED: Self = Self { startup_ms: 180_000, epoch_ms: 60_000 };

    /// Returns the time of a job that trains `epochs` epochs, in ms.
    pub fn job_ms(self, epochs: u32) -> u64 {
        u64::from(epochs).saturating_mul(self.epoch_ms).saturating_add(self.startup_ms)
    }
}

/// The input of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Brackets and rungs.
    pub plan: &'a Plan,
    /// Maximum number of training jobs.
    pub jobs: u32,
    /// Maximum number of trials.
    pub trials: u32,
    /// Maximum number of parallel jobs.
    pub workers: u32,
    /// Start-up and epochs.
    pub times: Times,
    /// Whether a promoted trial continues from its checkpoint.
    pub resumes: bool,
}

/// The result of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Training jobs.
    pub jobs: u64,
    /// Epochs of all jobs.
    pub epochs: u64,
    /// Sum of the times of all jobs, including start-ups.
    pub billed_ms: u64,
    /// Time from the first start to the last end.
    pub wall_ms: u64,
}

/// Returns the mean outcome of several runs.
pub fn expected(execution: RungExecution, setting: &Setting<'_>) -> Outcome {
    let trials = setting.trials.min(setting.jobs).max(1);
    let runs = u64::from((TRIALS_SIMULATED / trials).clamp(1, RUNS_MAX));
    let mut sum = Outcome::default();
    for seed in 0..runs {
        let one = match execution {
            RungExecution::Stop => stopping(setting, seed),
            RungExecution::Promote => promoting(setting, seed),
        };
        sum.jobs += one.jobs;
        sum.epochs += one.epochs;
        sum.billed_ms += one.billed_ms;
        sum.wall_ms += one.wall_ms;
    }
    let mean = |total: u64| (total + runs / 2) / runs;
    Outcome {
        jobs: mean(sum.jobs),
        epochs: mean(sum.epochs),
        billed_ms: mean(sum.billed_ms),
        wall_ms: mean(sum.wall_ms),
    }
}

/// Running jobs, ordered by the time of their next event.
type Queue<T> = BinaryHeap<Reverse<(u64, u32, T)>>;

fn stopping(setting: &Setting<'_>, seed: u64) -> Outcome {
    let brackets = setting.plan.brackets();
    // The arrivals at each level, in all brackets.
    let mut rungs: BTreeMap<u32, Rung> = BTreeMap::new();
    let mut started = vec![0_u32; brackets.len()];
    let mut queue: Queue<(usize, usize, u64)> = BinaryHeap::new();
    let mut outcome = Outcome::default();
    let (mut trial, mut idle, mut now) = (0, setting.workers, 0_u64);
    let arrival = |at: u64, bracket: usize, rung: usize| {
        at.saturating_add(setting.times.job_ms(setting.plan.level(bracket, rung)))
    };
    loop {
        while idle > 0 && trial < setting.trials.min(setting.jobs) {
            let bracket = next_bracket(setting.plan, &mut started);
            queue.push(Reverse((arrival(now, bracket, 0), trial, (bracket, 0, now))));
            (trial, idle) = (trial + 1, idle - 1);
        }
        let Some(Reverse((at, who, (bracket, rung, began)))) = queue.pop() else { return outcome };
        now = at;
        let last = brackets.get(bracket).is_none_or(|bracket| rung + 1 >= bracket.rungs().len());
        let goes_on = !last && {
            let arrived = rungs.entry(setting.plan.level(bracket, rung)).or_default();
            let arrival = (TrialId(who), Some(quality(seed, who)));
            let verdict = judge([&*arrived], Direction::Maximize, setting.plan.rule(bracket, rung), arrival);
            arrived.arrive(Direction::Maximize, arrival);
            verdict.continues
        };
        if goes_on {
            queue.push(Reverse((arrival(began, bracket, rung + 1), who, (bracket, rung + 1, began))));
        } else {
            outcome.end(at, began, u64::from(setting.plan.level(bracket, rung)));
            idle += 1;
        }
    }
}

/// A job: its trial, bracket, number of the set of brackets, and rung.
type Job = (u32, usize, u32, usize);

fn promoting(setting: &Setting<'_>, seed: u64) -> Outcome {
    let plan = setting.plan;
    let mut started = vec![0_u32; plan.brackets().len()];
    let mut ended: BTreeMap<(usize, u32, usize), Vec<u32>> = BTreeMap::new();
    let mut promoted: VecDeque<Job> = VecDeque::new();
    let mut queue: Queue<(Job, u64)> = BinaryHeap::new();
    let mut outcome = Outcome::default();
    let (mut trial, mut jobs, mut idle, mut now) = (0, 0, setting.workers, 0_u64);
    loop {
        while idle > 0 && jobs < setting.jobs {
            // Promotions have precedence over new trials: they close a bracket.
            let job = promoted.pop_front().or_else(|| {
                (trial < setting.trials).then(|| {
                    let bracket = next_bracket(plan, &mut started);
                    let size = plan.brackets().get(bracket).map_or(1, |bracket| bracket.trials().max(1));
                    let set = started.get(bracket).map_or(0, |count| (count - 1) / size);
                    trial += 1;
                    (trial - 1, bracket, set, 0)
                })
            });
            let Some(job) = job else { break };
            queue.push(Reverse((now.saturating_add(setting.job_ms(job)), job.0, (job, now))));
            (jobs, idle) = (jobs + 1, idle - 1);
        }
        let Some(Reverse((at, _, (job, began)))) = queue.pop() else { return outcome };
        now = at;
        idle += 1;
        outcome.end(at, began, u64::from(setting.epochs_of(job)));
        let (who, bracket, set, rung) = job;
        let here = ended.entry((bracket, set, rung)).or_default();
        here.push(who);
        let slots = |rung: usize| plan.brackets().get(bracket)?.rungs().get(rung).map(|rung| rung.slots);
        if slots(rung).is_some_and(|slots| here.len() == count(slots)) {
            let mut ranked = Rung::default();
            for who in &*here {
                ranked.arrive(Direction::Maximize, (TrialId(*who), Some(quality(seed, *who))));
            }
            let best = ranked.arrivals.iter().take(slots(rung + 1).map_or(0, count));
            promoted.extend(best.map(|(who, _)| (who.0, bracket, set, rung + 1)));
        }
    }
}

impl Setting<'_> {
    fn job_ms(&self, job: Job) -> u64 {
        self.times.job_ms(self.epochs_of(job))
    }

    /// Returns how many epochs the job trains.
    fn epochs_of(&self, (_, bracket, _, rung): Job) -> u32 {
        let before = rung.checked_sub(1).filter(|_| self.resumes);
        self.plan.level(bracket, rung) - before.map_or(0, |before| self.plan.level(bracket, before))
    }
}

impl Outcome {
    fn end(&mut self, at: u64, began: u64, epochs: u64) {
        self.jobs += 1;
        self.epochs += epochs;
        self.billed_ms += at - began;
        self.wall_ms = self.wall_ms.max(at);
    }
}

/// Returns the number of training jobs of one full set of brackets.
pub fn full_set(plan: &Plan, execution: RungExecution) -> u32 {
    match execution {
        RungExecution::Stop => plan.trials(),
        RungExecution::Promote => plan.jobs(),
    }
}

/// Returns how many trials `jobs` training jobs suffice for, including promotions, in proportion to a full set.
pub fn trials_of(plan: &Plan, execution: RungExecution, jobs: u32) -> u32 {
    let trials = u64::from(jobs) * u64::from(plan.trials()) / u64::from(full_set(plan, execution).max(1));
    u32::try_from(trials).unwrap_or(u32::MAX)
}

/// Returns how many of the first `trials` each bracket gets.
pub fn shares(plan: &Plan, trials: u32) -> Vec<u32> {
    let mut started = vec![0; plan.brackets().len()];
    for _ in 0..trials {
        next_bracket(plan, &mut started);
    }
    started
}

fn next_bracket(plan: &Plan, started: &mut [u32]) -> usize {
    let bracket = plan.next_bracket(started);
    if let Some(count) = started.get_mut(bracket) {
        *count += 1;
    }
    bracket
}

fn count(slots: u32) -> usize {
    usize::try_from(slots).unwrap_or(usize::MAX)
}

/// Returns the pseudorandom value of a trial: `SplitMix64` of the seed and the trial.
fn quality(seed: u64, trial: u32) -> f64 {
    let mut bits = (seed << 32 | u64::from(trial)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    f64::from(u32::try_from((bits ^ (bits >> 31)) >> 32).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(plan: &Plan, workers: u32) -> Setting<'_> {
        let (jobs, trials) = (full_set(plan, RungExecution::Promote), plan.trials());
        let times = Times { startup_ms: 10, epoch_ms: 1 };
        Setting { plan, jobs, trials, workers, times, resumes: true }
    }

    #[test]
    fn promote_trains_exactly_the_epochs_of_the_plan() {
        let plan = Plan::hyperband(1, 9, 3).unwrap();
        // 9 x 1 + 3 x 2 + 1 x 6, 5 x 3 + 1 x 6, 3 x 9 epochs.
        let outcome = expected(RungExecution::Promote, &setting(&plan, 1));
        assert_eq!((outcome.jobs, outcome.epochs), (9 + 3 + 1 + 5 + 1 + 3, 9 + 6 + 6 + 15 + 6 + 27));
        assert_eq!(outcome.billed_ms, 22 * 10 + 69);
        assert_eq!(outcome.wall_ms, outcome.billed_ms, "one at a time");
        let restarted = expected(RungExecution::Promote, &Setting { resumes: false, ..setting(&plan, 1) });
        assert_eq!(
            restarted.epochs,
            9 + 9 + 9 + 15 + 9 + 27,
            "without a checkpoint, each job starts at its first epoch"
        );
    }

    #[test]
    fn stop_starts_each_trial_once_and_trains_at_least_the_epochs_of_promote() {
        let plan = Plan::hyperband(1, 9, 3).unwrap();
        let outcome = expected(RungExecution::Stop, &setting(&plan, 4));
        assert_eq!(outcome.jobs, 17);
        // At least the epochs of Promote, and fewer than all epochs of all trials.
        assert!((69..17 * 9).contains(&outcome.epochs), "{outcome:?}");
        assert_eq!(outcome.billed_ms, 17 * 10 + outcome.epochs);
        assert!(outcome.wall_ms >= outcome.billed_ms / 4);
    }

    #[test]
    fn the_job_limit_includes_promotions() {
        let plan = Plan::hyperband(1, 9, 3).unwrap();
        for jobs in [1, 5, 12, 40] {
            let limited = Setting { jobs, trials: jobs, ..setting(&plan, 3) };
            assert_eq!(expected(RungExecution::Stop, &limited).jobs, u64::from(jobs));
            assert_eq!(expected(RungExecution::Promote, &limited).jobs, u64::from(jobs));
        }
    }

    #[test]
    fn with_a_single_rung_stop_and_promote_are_the_same() {
        let plan = Plan::hyperband(9, 9, 3).unwrap();
        let stop = expected(RungExecution::Stop, &setting(&plan, 2));
        assert_eq!(stop, expected(RungExecution::Promote, &setting(&plan, 2)));
        assert_eq!(stop, Outcome { jobs: 1, epochs: 9, billed_ms: 19, wall_ms: 19 });
    }

    #[test]
    fn the_same_setting_gives_the_same_outcome() {
        let plan = Plan::hyperband(1, 81, 3).unwrap();
        for execution in [RungExecution::Stop, RungExecution::Promote] {
            assert_eq!(expected(execution, &setting(&plan, 7)), expected(execution, &setting(&plan, 7)));
        }
    }

    #[test]
    fn the_largest_tuning_can_be_simulated() {
        let plan = Plan::hyperband(1, 20_000, 2).unwrap();
        let largest = Setting { jobs: 10_000, trials: 10_000, ..setting(&plan, 100) };
        for execution in [RungExecution::Stop, RungExecution::Promote] {
            assert_eq!(expected(execution, &largest).jobs, 10_000);
        }
    }
}
