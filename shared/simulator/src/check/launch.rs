//! The launch of a job: spot or on demand, the choice of instances, its price; and the reason when it differs from the
//! request. Computed from the recorded facts and rulings, with times and bounds of its own.

use std::collections::{BTreeMap, BTreeSet};

use search::Configuration;
use tuning::definition::{INSTANCE_COUNT, JobLimits};
use tuning::log::fact::{JobEnd, JobKey};
use tuning::log::reasons::{RetryWhy, StopWhy};
use tuning::log::ruling::{AttemptRuling, Launch, Order, Ruling, SearchRuling};
use tuning::unit::ids::{ChoiceId, TrialId};

use super::Book;

/// How long a choice without capacity is not used, in ms.
const SHORT_MS: i64 = 600_000;

/// The books of one tuning's launches.
#[derive(Debug, Default)]
pub(super) struct Launches {
    /// The latest time of a fact, in ms.
    now: i64,
    /// Time until which each choice is not used, in ms.
    short_until: BTreeMap<ChoiceId, i64>,
    /// The choices whose quota is known to be too small for a job.
    below_need: BTreeSet<ChoiceId>,
    trials: BTreeMap<TrialId, Fallbacks>,
    /// A new trial that waits for its start, and its configuration.
    drawn: Option<(TrialId, Configuration)>,
}

/// The fallbacks of a trial.
#[derive(Debug, Default)]
struct Fallbacks {
    /// Whether its next jobs at this rung run on demand because spot capacity failed.
    on_demand: bool,
    /// Number of changes to other instances since the trial last waited.
    moves: u32,
}

impl Launches {
    /// Returns the latest time of a fact, in ms.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    fn is_short(&self, choice: ChoiceId) -> bool {
        self.short_until.get(&choice).is_some_and(|until| *until > self.now)
    }
}

impl Book {
    pub(super) fn falls_back(&self, trial: TrialId) -> bool {
        self.case.choices.spot_fallback && self.case.is_spot(trial)
    }

    /// Advances the clock to the time of a fact.
    /// Returns the greatest time on a fact, in ms.
    pub(super) fn clock(&self) -> i64 {
        self.launches.now
    }

    pub(super) fn advance_clock(&mut self, at: i64) {
        self.launches.now = self.launches.now.max(at);
    }

    /// Returns the first choice with capacity for a trial of this size, if possible one whose quota is not known to be too
    /// small for a job; without one, the choice that is usable first.
    fn next_choice(&self, size: Option<u32>) -> ChoiceId {
        let choices = || self.case.choices_of(size);
        let soonest = choices().min_by_key(|choice| self.launches.short_until.get(choice).copied());
        let free = || choices().filter(|choice| !self.launches.is_short(*choice));
        let fits = |choice: &ChoiceId| !self.launches.below_need.contains(choice);
        free().find(fits).or(free().next()).or(soonest).unwrap_or_default()
    }

    /// Marks the choice of a job as short. Records whether the answer shows that its quota is too small for a job.
    pub(super) fn note_quota(&mut self, key: JobKey, reason: &str) {
        let Some(launch) = self.jobs.get(&key).map(|job| job.launch) else { return };
        self.mark_short(launch.instances);
        // On demand, a tuning on spot has another quota.
        if launch.on_demand && self.case.is_spot(key.trial) {
            return;
        }
        self.launches.below_need.remove(&launch.instances);
        if reason.contains("request delta of") && self.case.quota(launch.instances).is_err() {
            self.launches.below_need.insert(launch.instances);
        }
    }

    /// Checks an ordered job: its choice of instances, spot or on demand, and its reservation.
    pub(super) fn check_launch(
        &self,
        key: JobKey,
        launch: Launch,
        limits: JobLimits,
        reservation: u64,
    ) -> Result<(), String> {
        let on_demand = self.launches.trials.get(&key.trial).is_some_and(|fallbacks| fallbacks.on_demand);
        if launch.on_demand != on_demand {
            let market = if launch.on_demand { "on demand" } else { "on spot" };
            return Err(format!(
                "SpotFallback: job {key} was ordered {market}, but its trial has no reason for that"
            ));
        }
        let spot = self.case.is_spot(key.trial) && !on_demand;
        if spot != limits.max_wait_seconds.is_some() {
            return Err(format!(
                "SpotFallback: job {key} (spot: {spot}) was ordered with the limits {limits:?}"
            ));
        }
        let size = self.trials.get(&key.trial).and_then(|trial| trial.configuration.get("InstanceCount"));
        let size = size.map(|size| size.parse().map_err(|_| format!("Size: job {key} has {size} instances")));
        let definition = (self.case.choices.definitions > 1).then(|| self.case.definition_of(key.trial));
        let choice = self.next_choice(size.transpose()?.or(definition));
        if launch.instances != choice {
            return Err(format!(
                "Instances: job {key} was ordered on choice {}, expected choice {choice}",
                launch.instances
            ));
        }
        self.check_runtime_limit(key, limits)?;
        let limit = limits.max_wait_seconds.unwrap_or(limits.max_runtime_seconds);
        let seconds = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(self.case.beyond_seconds());
        let keep = limits.keep_alive_seconds;
        if keep != 0 && (keep != self.case.kept_seconds(key.trial) || launch.refit) {
            return Err(format!(
                "P1: job {key} was ordered to keep its instances for {keep} s, which is not allowed"
            ));
        }
        let running = self.case.cost(choice, seconds);
        let worst = running + self.keeping_cost(choice, keep) + self.margin;
        (reservation == worst).then_some(()).ok_or_else(|| {
            format!("P1: job {key} on choice {choice} reserves {reservation}, its worst case is {worst}")
        })
    }

    /// Checks that a job without a cap or grants has the running-time limit of the request.
    fn check_runtime_limit(&self, key: JobKey, limits: JobLimits) -> Result<(), String> {
        let limited = self.limits.cap.is_some() || self.has_grants;
        let (sent, user) = (limits.max_runtime_seconds, self.case.runtime_limit(key.trial));
        (limited || i64::try_from(sent) == Ok(user)).then_some(()).ok_or_else(|| {
            format!(
                "MaxRuntime: job {key} was ordered with {sent} s, not {user} s, and nothing limits the money"
            )
        })
    }

    /// Checks a ruling that changes the launch of a trial; the ruling is already in the other books.
    pub(super) fn check_fallback(&mut self, ruling: &Ruling) -> Result<(), String> {
        match ruling {
            Ruling::Attempt(AttemptRuling::AttemptAwaited { job, why, .. }) => self.check_retry(*job, *why),
            Ruling::Order(Order::Stop { job, why: StopWhy::Interruptions { count }, .. }) => {
                let most = self.case.choices.max_interruptions;
                let falls_back = self.falls_back(job.trial);
                let book =
                    self.jobs.get_mut(job).ok_or_else(|| format!("P2: job {job} was never ordered"))?;
                book.interrupted = true;
                (falls_back && !book.launch.on_demand && *count > most).then_some(()).ok_or_else(|| {
                    format!(
                        "SpotFallback: job {job} was stopped after {count} interruptions, {most} are allowed"
                    )
                })
            }
            Ruling::Order(Order::Stop { job, why: StopWhy::NextInstances, .. }) => {
                self.check_move_for_quota(*job)
            }
            Ruling::Order(Order::Stop { job, why: StopWhy::Quota, .. }) => self.check_hold_for_quota(*job),
            Ruling::Order(Order::Stop { job, why: StopWhy::OutOfReach, .. }) => {
                let book = self.jobs.get(job).ok_or_else(|| format!("P2: job {job} was never ordered"))?;
                let right = book.limited && self.case.quota(book.launch.instances).is_err();
                right.then_some(()).ok_or_else(|| format!("Size: job {job} was stopped within its quota"))
            }
            Ruling::Search(SearchRuling::TrialDrawn { trial, configuration, .. }) => {
                let is_new = !self.trials.contains_key(trial) && !self.case.choices.sizes.is_empty();
                let earlier = self.launches.drawn.replace((*trial, configuration.clone()));
                let once = earlier.is_none_or(|(other, _)| other < *trial);
                (is_new && once).then_some(()).ok_or_else(|| format!("Size: trial {trial} was drawn twice"))
            }
            Ruling::Order(Order::Start { job, configuration, .. }) => {
                self.check_as_drawn(*job, configuration)
            }
            // Each rung starts with the launch of the request.
            Ruling::Search(SearchRuling::RungReached { trial, .. }) => {
                if let Some(fallbacks) = self.launches.trials.get_mut(trial) {
                    fallbacks.on_demand = false;
                }
                Ok(())
            }
            Ruling::Search(SearchRuling::TrialPromoted { trial, .. }) => {
                if let Some(fallbacks) = self.launches.trials.get_mut(trial) {
                    fallbacks.moves = 0;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks that a job has the configuration with which its trial waited. Only its cluster size may change.
    fn check_as_drawn(&self, key: JobKey, configuration: &Configuration) -> Result<(), String> {
        let Some((_, drawn)) = self.launches.drawn.as_ref().filter(|(trial, _)| *trial == key.trial) else {
            return Ok(());
        };
        let own = |configuration: &Configuration| {
            let mut own = configuration.clone();
            own.0.remove(INSTANCE_COUNT);
            own
        };
        (own(drawn) == own(configuration) || self.refit == Some(key.trial)).then_some(()).ok_or_else(|| {
            format!(
                "Size: job {key} has the configuration {configuration:?}, its trial waited with {drawn:?}"
            )
        })
    }

    /// Returns whether all choices of instances for a trial that ran on `choice` are short, or the only one.
    pub(super) fn all_short(&self, choice: ChoiceId) -> bool {
        let mut choices = self.case.choices_of(self.case.size_of(choice));
        self.case.types() < 2 || choices.all(|choice| self.launches.is_short(choice))
    }

    /// Returns whether another choice of instances is not short.
    fn has_other_choice(&self, choice: ChoiceId) -> bool {
        let mut choices = self.case.choices_of(self.case.size_of(choice));
        choices.any(|other| other != choice && !self.launches.is_short(other))
    }

    /// Marks a choice of instances as short of capacity or quota.
    pub(super) fn mark_short(&mut self, choice: ChoiceId) {
        if self.case.types() > 1 {
            self.launches.short_until.insert(choice, self.launches.now + SHORT_MS);
        }
    }

    /// Checks a job that was cancelled for a quota so that its trial moves to other instances: there must be instances
    /// that the trial has not tried.
    fn check_move_for_quota(&mut self, key: JobKey) -> Result<(), String> {
        let job = self.jobs.get_mut(&key).ok_or_else(|| format!("P2: job {key} was never ordered"))?;
        job.cancelled_for_quota = true;
        let (limited, choice) = (job.limited, job.launch.instances);
        let others = self.has_other_choice(choice);
        let moves = self.launches.trials.get(&key.trial).map_or(0, |fallbacks| fallbacks.moves);
        // A trial may always leave a quota that is smaller than its job.
        let right = limited && others && (moves + 1 < self.case.types() || self.case.quota(choice).is_err());
        right.then_some(()).ok_or_else(|| {
            format!(
                "Instances: job {key} was cancelled for other \
            instances (quota reached: {limited}, other choices: {others})"
            )
        })
    }

    /// Checks a job that was cancelled until the quota allows it: the quota must prevent it, another job must stay
    /// ordered, and no job may run.
    fn check_hold_for_quota(&mut self, key: JobKey) -> Result<(), String> {
        let runs = self.jobs.values().any(|job| job.seen && !job.end_seen);
        let stays = self.jobs.iter().any(|(other, job)| *other < key && !job.stop_ordered && !job.end_seen);
        let job = self.jobs.get_mut(&key).ok_or_else(|| format!("P2: job {key} was never ordered"))?;
        job.cancelled_for_quota = true;
        let right = job.limited && stays && !runs;
        right.then_some(()).ok_or_else(|| {
            format!("Quota: job {key} was cancelled (another stays ordered: {stays}, a job runs: {runs})")
        })
    }

    fn check_retry(&mut self, key: JobKey, why: RetryWhy) -> Result<(), String> {
        let (choices, falls_back) = (self.case.types(), self.falls_back(key.trial));
        let job = self.jobs.get(&key).ok_or_else(|| format!("P2: job {key} was never ordered"))?;
        let (end, launch, interrupted, moved, stop_why) =
            (job.end, job.launch, job.interrupted, job.cancelled_for_quota, job.stop_why);
        let others = self.has_other_choice(launch.instances);
        let fallbacks = self.launches.trials.entry(key.trial).or_default();
        let moves_on = fallbacks.moves + 1 < choices && others;
        let fallbacks_to_demand =
            falls_back && !launch.on_demand && (end == Some(JobEnd::MaxWait) || interrupted);
        let right = match why {
            RetryWhy::OnDemand => fallbacks_to_demand,
            RetryWhy::MaxWait => end == Some(JobEnd::MaxWait) && !fallbacks_to_demand && !moves_on,
            RetryWhy::NextInstances if moved => {
                !matches!(end, Some(JobEnd::Completed | JobEnd::AlgorithmError))
            }
            RetryWhy::Quota => moved && !matches!(end, Some(JobEnd::Completed | JobEnd::AlgorithmError)),
            RetryWhy::NextInstances => {
                let lacks = end == Some(JobEnd::CapacityError)
                    || (end == Some(JobEnd::MaxWait) && !fallbacks_to_demand);
                lacks && moves_on && !interrupted
            }
            RetryWhy::Capacity => end == Some(JobEnd::CapacityError) && !moves_on && !interrupted,
            RetryWhy::ServiceError => end == Some(JobEnd::ServiceError) && !interrupted,
            RetryWhy::RuntimeCutTooShort => {
                let by_clock = matches!(stop_why, Some(StopWhy::ReservationUsed { .. }));
                let by_limit = end == Some(JobEnd::MaxRuntime) || (by_clock && end == Some(JobEnd::Stopped));
                by_limit && !interrupted
            }
        };
        match why {
            RetryWhy::OnDemand => fallbacks.on_demand = true,
            RetryWhy::NextInstances => fallbacks.moves += 1,
            RetryWhy::Capacity | RetryWhy::MaxWait | RetryWhy::ServiceError => fallbacks.moves = 0,
            RetryWhy::RuntimeCutTooShort | RetryWhy::Quota => {}
        }
        right.then_some(()).ok_or_else(|| {
            format!(
                "Retry: {why:?} does not follow from the end {end:?} of job {key} on {launch:?} \
                (too many interruptions: {interrupted})"
            )
        })
    }
}
