//! What a job runs on: on spot or on demand, on which choice of instances, at which price; and why it is not as the request
//! says. Kept from the recorded facts and rulings, with times and bounds of its own.

use std::collections::BTreeMap;

use tuning::definition::JobLimits;
use tuning::fact::{JobEnd, JobKey};
use tuning::ruling::{Launch, RetryWhy, Ruling, StopWhy};

use super::Book;

/// "What lacked capacity is left out for ten minutes."
const SHORT_MS: i64 = 600_000;
/// What is billed beyond a job's limit at most: the grace of a stop, the upload.
const BEYOND_SECONDS: u64 = 300;

/// What is known of the instances of one tuning.
#[derive(Debug, Default)]
pub(super) struct Launches {
    /// Greatest time on a fact.
    now: i64,
    /// Until when a choice is left out.
    short_until: BTreeMap<u32, i64>,
    trials: BTreeMap<u32, Turns>,
}

/// What a trial has turned to.
#[derive(Debug, Default)]
struct Turns {
    /// Spot capacity has failed it: its next jobs at this rung run on demand.
    on_demand: bool,
    /// Choices left since it last waited.
    moves: u32,
}

impl Launches {
    fn is_short(&self, choice: u32) -> bool {
        self.short_until.get(&choice).is_some_and(|until| *until > self.now)
    }
}

impl Book {
    fn falls_back(&self) -> bool {
        self.case.choices.spot_fallback && self.case.choices.max_wait_seconds.is_some()
    }

    /// A fact was taken.
    pub(super) fn time_told(&mut self, at: i64) {
        self.launches.now = self.launches.now.max(at);
    }

    /// The first choice that lacks no capacity; if all do, the one that is soonest asked for again.
    fn next_choice(&self) -> u32 {
        let mut choices = 0..self.case.clusters();
        let soonest = choices.clone().min_by_key(|choice| self.launches.short_until.get(choice).copied());
        choices.find(|choice| !self.launches.is_short(*choice)).or(soonest).unwrap_or(0)
    }

    /// A job is ordered: it runs on what it should, and its worst case is that of what it runs on.
    pub(super) fn launched(
        &self,
        key: JobKey,
        launch: Launch,
        limits: JobLimits,
        reservation: u64,
    ) -> Result<(), String> {
        let on_demand = self.launches.trials.get(&key.trial).is_some_and(|turns| turns.on_demand);
        if launch.on_demand != on_demand {
            let said = if launch.on_demand { "on demand" } else { "on spot" };
            return Err(format!("SpotFallback: job {key} is to run {said}"));
        }
        let spot = self.case.choices.max_wait_seconds.is_some() && !on_demand;
        if spot != limits.max_wait_seconds.is_some() {
            return Err(format!("SpotFallback: job {key} is ordered with {limits:?}, spot: {spot}"));
        }
        let choice = self.next_choice();
        if launch.instances != choice {
            return Err(format!(
                "Instances: job {key} is to run on choice {}, not {choice}",
                launch.instances
            ));
        }
        let seconds = limits.max_wait_seconds.unwrap_or(limits.max_runtime_seconds) + BEYOND_SECONDS;
        let keep = limits.keep_alive_seconds;
        if keep != 0 && (keep != self.case.choices.keep_alive_seconds || launch.refit) {
            return Err(format!("P1: the instances of job {key} are kept for {keep} s"));
        }
        let running = self.case.cost(choice, i64::try_from(seconds).unwrap_or(i64::MAX));
        let worst = running + self.keeping_costs(choice, keep);
        (reservation == worst).then_some(()).ok_or_else(|| {
            format!("P1: {reservation} are reserved for job {key} on choice {choice}, it may cost {worst}")
        })
    }

    /// A ruling that says what a trial turns to, after it entered the other books.
    pub(super) fn turned(&mut self, ruling: &Ruling) -> Result<(), String> {
        match ruling {
            Ruling::AttemptAwaited { job, why, .. } => self.tried_again(*job, *why),
            Ruling::StopOrdered { job, why: StopWhy::Interruptions { count } } => {
                let most = self.case.choices.max_interruptions;
                let falls_back = self.falls_back();
                let book = self.jobs.get_mut(job).ok_or("P2: of a job that was never ordered")?;
                book.interrupted = true;
                (falls_back && !book.launch.on_demand && *count > most).then_some(()).ok_or_else(|| {
                    format!(
                        "SpotFallback: job {job} is stopped after {count} interruptions, {most} are allowed"
                    )
                })
            }
            Ruling::StopOrdered { job, why: StopWhy::NextInstances } => self.called_off_for_quota(*job),
            Ruling::StopOrdered { job, why: StopWhy::Quota } => self.called_off_until_there_is_room(*job),
            // Each rung begins as the request says.
            Ruling::RungReached { trial, .. } => {
                if let Some(turns) = self.launches.trials.get_mut(trial) {
                    turns.on_demand = false;
                }
                Ok(())
            }
            Ruling::TrialPromoted { trial, .. } => {
                if let Some(turns) = self.launches.trials.get_mut(trial) {
                    turns.moves = 0;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A choice of instances lacks capacity, or a quota.
    pub(super) fn lacking(&mut self, choice: u32) {
        if self.case.clusters() > 1 {
            self.launches.short_until.insert(choice, self.launches.now + SHORT_MS);
        }
    }

    /// A job is called off for a quota: there must be other instances that its trial has not tried.
    fn called_off_for_quota(&mut self, key: JobKey) -> Result<(), String> {
        let job = self.jobs.get_mut(&key).ok_or("P2: of a job that was never ordered")?;
        job.elsewhere = true;
        let (limited, choice) = (job.limited, job.launch.instances);
        let others = (0..self.case.clusters()).any(|other| other != choice && !self.launches.is_short(other));
        let moves = self.launches.trials.get(&key.trial).map_or(0, |turns| turns.moves);
        let right = limited && others && moves + 1 < self.case.clusters();
        right.then_some(()).ok_or_else(|| format!("Instances: job {key} is called off, limited: {limited}"))
    }

    /// A job is called off for a quota, until there is room: one that is limited, while another stays ordered and nothing runs.
    fn called_off_until_there_is_room(&mut self, key: JobKey) -> Result<(), String> {
        let runs = self.jobs.values().any(|job| job.seen && !job.end_seen);
        let stays = self.jobs.iter().any(|(other, job)| *other < key && !job.stop_ordered && !job.end_seen);
        let job = self.jobs.get_mut(&key).ok_or("P2: of a job that was never ordered")?;
        job.elsewhere = true;
        let right = job.limited && stays && !runs;
        right.then_some(()).ok_or_else(|| {
            format!("Quota: job {key} is called off, another stays: {stays}, something runs: {runs}")
        })
    }

    fn tried_again(&mut self, key: JobKey, why: RetryWhy) -> Result<(), String> {
        let (choices, falls_back) = (self.case.clusters(), self.falls_back());
        let job = self.jobs.get(&key).ok_or("P2: of a job that was never ordered")?;
        let (end, launch, interrupted, elsewhere) = (job.end, job.launch, job.interrupted, job.elsewhere);
        let others = (0..choices).any(|choice| choice != launch.instances && !self.launches.is_short(choice));
        let turns = self.launches.trials.entry(key.trial).or_default();
        let moves_on = turns.moves + 1 < choices && others;
        let turns_to_demand =
            falls_back && !launch.on_demand && (end == Some(JobEnd::MaxWait) || interrupted);
        let right = match why {
            RetryWhy::OnDemand => turns_to_demand,
            RetryWhy::MaxWait => end == Some(JobEnd::MaxWait) && !turns_to_demand,
            RetryWhy::NextInstances if elsewhere => {
                !matches!(end, Some(JobEnd::Completed | JobEnd::AlgorithmError))
            }
            RetryWhy::Quota => elsewhere && !matches!(end, Some(JobEnd::Completed | JobEnd::AlgorithmError)),
            RetryWhy::NextInstances => end == Some(JobEnd::CapacityError) && moves_on && !interrupted,
            RetryWhy::Capacity => end == Some(JobEnd::CapacityError) && !moves_on && !interrupted,
            RetryWhy::ServiceError => end == Some(JobEnd::ServiceError) && !interrupted,
            RetryWhy::RuntimeCutTooShort => end == Some(JobEnd::MaxRuntime) && !interrupted,
        };
        match why {
            RetryWhy::OnDemand => turns.on_demand = true,
            RetryWhy::NextInstances => turns.moves += 1,
            RetryWhy::Capacity | RetryWhy::MaxWait | RetryWhy::ServiceError => turns.moves = 0,
            RetryWhy::RuntimeCutTooShort | RetryWhy::Quota => {}
        }
        if matches!(why, RetryWhy::Capacity | RetryWhy::NextInstances) {
            self.lacking(launch.instances);
        }
        right.then_some(()).ok_or_else(|| {
            format!("Retry: job {key} ended {end:?} on {launch:?}, interrupted too often: {interrupted}")
        })
    }
}
