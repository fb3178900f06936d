//! Starts that must wait: the training service defers them ([`Deferral`]), or jobs get no instances ([`Lack`]).
//!
//! A tuning that waits must not block other tunings. After a while it keeps only one job ordered, as a probe, and
//! the money for it. Only a person can raise a quota, so the wait for one expires. The hold ends when the service
//! accepts a job.
//!
//! Lack of capacity is no fault of a trial. The trial is retried without limit, and no other trial takes its slot.
//! Starts wait, and each probe without instances doubles the wait. The hold ends when a job gets instances.

use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::job::instances::Instances;
use crate::job::{Job, Ordered};
use crate::log::fact::JobKey;
use crate::state::State;
use crate::trial::Trial;
use crate::unit::ids::{ChoiceId, SizeId, count};
use crate::unit::limits::{CAPACITY_MEMORY, IDLE, QUOTA_WAIT_MAX, RETRY_BACKOFF, RETRY_BACKOFF_MAX};
use crate::unit::time::{Millis, Time};

/// Why starts must wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    /// Refused starts in a row.
    pub refusals: u32,
    /// No job starts before this time: the service throttles, or a quota is used up.
    pub no_start_before: Option<Time>,
    /// Set while starts are deferred and nothing runs.
    pub deferral: Option<Deferral>,
    /// The cluster sizes whose jobs get no instances, once each.
    pub lacks: Vec<Lack>,
    /// Until when each instance choice counts as lacking capacity, by index.
    pub no_capacity_until: Vec<Time>,
    /// The instance choices whose quota is smaller than one job, by the latest answer about each. Jobs on demand in a
    /// tuning on spot have another quota, and do not count.
    pub below_need: Vec<ChoiceId>,
}

/// No job runs, and starts are deferred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferral {
    /// When a start was first deferred.
    pub since: Time,
    /// When a start was first deferred for a quota; `None` = no quota is exceeded.
    pub quota_since: Option<Time>,
    /// The latest answer of the training service about the quota.
    pub last_answer: Option<String>,
}

/// Jobs of a cluster size get no instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    /// The cluster size.
    pub size: SizeId,
    /// Since when no job has had instances, if none has them now.
    pub since: Time,
    /// How many probes in a row got no instances; 1 for the jobs with which the lack began.
    pub probes: u32,
    /// When a job last ended without instances. A job that was ordered later is a probe.
    pub failed_at: Time,
    /// No job starts before.
    pub until: Time,
    /// Whether the notice of this lack was ordered.
    pub published: bool,
}

impl Capacity {
    /// Returns when the deferral of starts counts as long.
    pub(crate) fn long_hold_at(&self) -> Option<Time> {
        self.deferral.as_ref().map(|deferral| deferral.since + IDLE)
    }

    /// Returns when the wait for a quota expires.
    pub(crate) fn quota_expires_at(&self) -> Option<Time> {
        let since = self.deferral.as_ref().and_then(|deferral| deferral.quota_since);
        since.map(|since| since + QUOTA_WAIT_MAX)
    }

    /// Returns the answer of the service if a quota is smaller than what one job needs. New accounts have a quota of 0 for
    /// most instance types, and no wait helps. A tuning with several instance types tries them all.
    pub(crate) fn insufficient_quota(&self, definition: &Definition) -> Option<&str> {
        let answer = self.deferral.as_ref()?.last_answer.as_deref()?;
        let mut choices = definition.job.choices();
        // With one size, the latest answer is about all jobs, also those on demand.
        let none_fits = choices.all(|choice| self.is_below_need(choice))
            || (!definition.job.has_sizes() && is_below_need(answer));
        (!definition.job.has_fallbacks() && none_fits).then_some(answer)
    }

    fn is_below_need(&self, choice: ChoiceId) -> bool {
        self.below_need.contains(&choice)
    }

    /// Returns whether quotas are too small for a cluster size on every instance type, but not for all sizes.
    pub(crate) fn is_out_of_reach(&self, definition: &Definition, size: SizeId) -> bool {
        let below = |size| definition.job.choices_of(size).all(|choice| self.is_below_need(choice));
        !self.below_need.is_empty() && below(size) && !definition.job.all_sizes().all(below)
    }

    /// Records the latest answer about the quota of a job; `None` = the job was accepted.
    pub(crate) fn note_quota(&mut self, definition: &Definition, order: &Ordered, answer: Option<&str>) {
        if definition.terms_on(order.instances).spot && order.on_demand {
            return;
        }
        let choice = order.instances;
        self.below_need.retain(|other| *other != choice);
        if answer.is_some_and(is_below_need) {
            self.below_need.push(choice);
        }
    }

    /// Returns the lack of capacity of a cluster size.
    pub(crate) fn lack_of(&self, size: SizeId) -> Option<&Lack> {
        self.lacks.iter().find(|lack| lack.size == size)
    }

    /// Begins the wait for capacity anew at `at`, unless it began later.
    pub(crate) fn wait_from(&mut self, at: Time) {
        for lack in &mut self.lacks {
            lack.since = lack.since.max(at);
        }
    }

    /// Records that an instance choice lacks capacity, for a while; only where there is another choice.
    pub(crate) fn note_lack_of_capacity(&mut self, definition: &Definition, choice: ChoiceId, at: Time) {
        if !definition.job.has_fallbacks() {
            return;
        }
        self.no_capacity_until.resize(definition.job.choices().count(), Time::MIN);
        if let Some(until) = self.no_capacity_until.get_mut(choice.index()) {
            *until = at + CAPACITY_MEMORY;
        }
    }
}

impl State {
    /// Returns whether a job has instances now.
    fn has_instances(&self) -> bool {
        self.jobs().any(|(_, _, job)| job.has_instances())
    }

    /// Updates the lack of capacity after a fact of time `at` changed job `key`, which had these instances before.
    pub(crate) fn note_instances(
        &mut self,
        definition: &Definition,
        key: JobKey,
        before: Instances,
        at: Time,
    ) {
        let Some(job) = self.job(key) else { return };
        let (after, instances_at) = (Instances::of(job), job.instances_at());
        let size = definition.job.size(job.order.instances);
        let gained = (!before.had && after.had) || (!before.regained && after.regained);
        let ends = |lack: &Lack| lack.size == size && instances_at >= Some(lack.failed_at);
        self.capacity.lacks.retain(|lack| !(gained && ends(lack)));
        if let Some(shown) = instances_at {
            self.capacity.wait_from(shown);
        }
        if before.has && !after.has {
            self.capacity.wait_from(at);
        }
    }

    /// Holds the starts of a cluster size, since a job that was ordered at `ordered` has just ended for lack of capacity.
    ///
    /// Only a probe doubles the wait: the jobs with which a lack begins end at about the same time.
    pub(crate) fn hold_for_capacity(&mut self, size: SizeId, ordered: Time) {
        let at = self.now;
        let (since, probes, published) = match self.capacity.lack_of(size) {
            Some(lack) => {
                let probe = ordered > lack.failed_at;
                (lack.since, lack.probes.saturating_add(u32::from(probe)), lack.published)
            }
            None => (at, 1, false),
        };
        let wait = RETRY_BACKOFF.doubled(probes.saturating_sub(1)).min(RETRY_BACKOFF_MAX);
        self.capacity.lacks.retain(|lack| lack.size != size);
        self.capacity.lacks.push(Lack { size, since, probes, failed_at: at, until: at + wait, published });
    }

    /// Returns whether lack of capacity holds the starts of a cluster size now: until the next probe is due, and while a
    /// job of this size still waits for its instances.
    pub(crate) fn awaits_capacity(&self, definition: &Definition, size: SizeId) -> bool {
        let waits = |job: &Job| {
            job.holds_slot() && !job.has_instances() && definition.job.size(job.order.instances) == size
        };
        let waiting = || self.jobs().any(|(_, _, job)| waits(job));
        self.capacity.lack_of(size).is_some_and(|lack| lack.until > self.now || waiting())
    }

    /// Returns the lack of capacity that has lasted longest; `None` while a job of a cluster size without one holds a slot.
    pub fn lack(&self, definition: &Definition) -> Option<&Lack> {
        let lacks = |job: &Job| self.capacity.lack_of(definition.job.size(job.order.instances)).is_some();
        let all_lack = || self.jobs().all(|(_, _, job)| !job.holds_slot() || lacks(job));
        self.capacity.lacks.iter().min_by_key(|lack| lack.since).filter(|_| all_lack())
    }

    /// Returns this lack if no job of the tuning has instances.
    fn lack_without_instances(&self, definition: &Definition) -> Option<&Lack> {
        self.lack(definition).filter(|_| !self.has_instances())
    }

    /// Returns when the wait for capacity expires; `None` while a job has instances.
    pub(crate) fn capacity_wait_expires_at(&self, definition: &Definition) -> Option<Time> {
        // Nothing is tried while starts are paused.
        let lack = self.lack_without_instances(definition).filter(|_| !self.is_paused())?;
        Some(lack.since + Millis::from_seconds(definition.settings.capacity_wait_seconds))
    }

    /// Returns whether the wait for capacity has expired, by the time that the sweeper reports: a stored fact that a
    /// job got instances may not be folded yet.
    pub(crate) fn capacity_wait_has_expired(&self, definition: &Definition) -> bool {
        self.capacity_wait_expires_at(definition).is_some_and(|at| at <= self.clock)
    }

    /// Returns when the wait for capacity counts as long.
    pub(crate) fn long_lack_at(&self, definition: &Definition) -> Option<Time> {
        self.lack_without_instances(definition).map(|lack| lack.since + IDLE)
    }

    /// Returns whether the tuning has waited long for capacity.
    pub(crate) fn lacks_capacity_long(&self, definition: &Definition) -> bool {
        self.long_lack_at(definition).is_some_and(|at| at <= self.now)
    }

    /// Returns since when the tuning waits for capacity, once that is long and while no notice of it was ordered.
    pub(crate) fn unpublished_lack(&self, definition: &Definition) -> Option<Time> {
        let is_long = self.lacks_capacity_long(definition);
        self.lack(definition).filter(|lack| !lack.published && is_long).map(|lack| lack.since)
    }

    fn runs(&self) -> bool {
        self.jobs().any(|(_, _, job)| job.is_accepted() && job.holds_slot())
    }

    /// Records that a start was deferred at `at`; `quota_answer` = for a quota, with this answer of the service.
    pub(crate) fn note_deferred_start(&mut self, at: Time, quota_answer: Option<String>) {
        if self.runs() {
            return;
        }
        let deferral = self.capacity.deferral.get_or_insert(Deferral {
            since: at,
            quota_since: None,
            last_answer: None,
        });
        if quota_answer.is_some() {
            deferral.quota_since = deferral.quota_since.or(Some(at));
            deferral.last_answer = quota_answer;
        }
    }

    /// Ends the hold if a job runs now.
    pub(crate) fn clear_hold(&mut self) {
        if self.capacity.deferral.is_some() && self.runs() {
            self.capacity.deferral = None;
        }
    }

    /// Returns whether starts have been deferred for long.
    pub(crate) fn is_deferred_long(&self) -> bool {
        self.capacity.long_hold_at().is_some_and(|at| at <= self.now)
    }

    /// Returns whether the wait for a quota has expired.
    ///
    /// Counts by the time that the sweeper reports: a stored fact that a job was accepted may not be folded yet.
    pub(crate) fn quota_has_expired(&self) -> bool {
        self.capacity.quota_expires_at().is_some_and(|at| at <= self.clock)
    }
}

/// Returns whether SageMaker's answer shows a limit below the request, as in "service limit '...' is 0 Instances, with
/// current utilization of 0 Instances and a request delta of 1 Instances".
fn is_below_need(answer: &str) -> bool {
    let number = |before: &str| {
        let (_, rest) = answer.split_once(before)?;
        rest.split(' ').next()?.parse::<u64>().ok()
    };
    number("' is ").zip(number("request delta of ")).is_some_and(|(limit, needed)| limit < needed)
}

/// Returns whether the trial of a job continues on demand when spot capacity fails.
pub(crate) fn falls_back(definition: &Definition, job: &Job) -> bool {
    definition.terms_on(job.order.instances).spot && definition.spot_fallback && !job.order.on_demand
}

/// Returns the instance choice for the next job of a cluster size: the first that does not lack capacity, if possible
/// one whose quota is not known to be too small; else the one that is asked again soonest.
pub(crate) fn choice(definition: &Definition, state: &State, size: SizeId) -> ChoiceId {
    let until = |choice: &ChoiceId| {
        state.capacity.no_capacity_until.get(choice.index()).copied().unwrap_or(Time::MIN)
    };
    let available = || definition.job.choices_of(size).filter(|choice| until(choice) <= state.now);
    // The memory of a refused start may end before the next type was tried.
    let fits = |choice: &ChoiceId| !state.capacity.is_below_need(*choice);
    available()
        .find(fits)
        .or_else(|| available().next())
        .or_else(|| definition.job.choices_of(size).min_by_key(until))
        .unwrap_or_default()
}

/// Returns whether there are several instance choices and `choice` is not known to lack capacity.
pub(crate) fn is_available(definition: &Definition, state: &State, choice: ChoiceId) -> bool {
    definition.job.has_fallbacks() && !lacks_capacity(state, choice)
}

fn lacks_capacity(state: &State, choice: ChoiceId) -> bool {
    state.capacity.no_capacity_until.get(choice.index()).is_some_and(|until| *until > state.now)
}

/// Returns whether the trial of a job without capacity continues at once on other instances: some are not known to
/// lack capacity, and the trial has not tried all since it last waited.
pub(crate) fn can_switch_instances(definition: &Definition, state: &State, trial: &Trial, job: &Job) -> bool {
    let tried = job.order.instances;
    let others = || definition.job.choices_of(definition.job.size(tried)).filter(|choice| *choice != tried);
    trial.instance_switches < count(others().count()) && others().any(|choice| !lacks_capacity(state, choice))
}

/// Returns whether the quota for a job's instances is too small for it, and other instances may have room. This has no
/// bound on the moves: a trial moves back only while all others lack capacity. The quotas of jobs that fell back to on-demand
/// capacity are not known.
pub(crate) fn must_leave_small_quota(definition: &Definition, state: &State, job: &Job) -> bool {
    let used = job.order.instances;
    let capacity = &state.capacity;
    let may_have_room = |choice| !capacity.is_below_need(choice) && !lacks_capacity(state, choice);
    let is_known = !(job.order.on_demand && definition.terms_on(used).spot);
    let is_too_small = is_known && capacity.is_below_need(used);
    is_too_small && definition.job.choices_of(definition.job.size(used)).any(may_have_room)
}
