//! The state of a tuning: the sum of its steps so far. It holds live trials only; concluded jobs leave it.
//!
//! [`fold`](crate::change::fold::fold) (facts) and [`State::apply`] (rulings) change the state, and nothing else does. Its serialized form
//! is the snapshot: a field may be added with a default, but never renamed once released.

pub mod capacity;
pub mod changes;
pub mod failures;
pub mod front;
mod memory;
pub mod money;
pub mod results;
pub mod search;
pub(crate) mod streams;
mod waiting;

use std::collections::BTreeSet;

use capacity::Capacity;
use money::Money;
use results::Results;
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::job::Job;
use crate::log::fact::JobKey;
use crate::log::reasons::EndReason;
use crate::money::ledger::Ledger;
use crate::state::changes::Changes;
use crate::state::search::Search;
use crate::trial::Trial;
use crate::trial::live::LiveTrials;
use crate::unit::ids::{TrialId, count};
use crate::unit::time::Time;

/// The state of a tuning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The greatest time on a folded fact: the only clock of the decider.
    pub now: Time,
    /// The greatest time that the sweeper reported. Unlike `now`, it is never ahead of facts that were stored before.
    pub clock: Time,
    /// Whether the submission was folded: nothing is decided before.
    pub submitted: bool,
    /// Whether the tuning is active, ending or ended.
    pub status: Status,
    /// Who competes with whom, and what the sampler knows.
    pub search: Search,
    /// Live trials: those with a job that is not concluded, or that wait for a further attempt.
    pub trials: LiveTrials,
    /// Reserved, spent and granted money.
    pub money: Money,
    /// Why starts must wait.
    pub capacity: Capacity,
    /// Sums and best values of concluded jobs.
    pub results: Results,
    /// The index of the first epoch, which the first logged index shows; `None` before, or where the request sets it.
    pub epoch_base: Option<u32>,
    /// The trial that reached the target and trains to its end, and after that end.
    pub finalist: Option<TrialId>,
    /// Ordered notices that are not known to be published, by action. The notice of the end is not among them: no fact
    /// is folded after it.
    pub notices: BTreeSet<String>,
    /// The latest job of the refit; `None` until it is ordered.
    pub refit: Option<JobKey>,
    /// Limits that the user has changed.
    pub changes: Changes,
}

/// Whether a tuning is active.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Jobs may start.
    #[default]
    Active,
    /// No further job starts, and running jobs are being stopped.
    Ending(EndReason),
    /// The tuning has ended.
    Ended {
        /// The reason.
        why: EndReason,
        /// When it ended.
        at: Time,
    },
}

impl State {
    /// Returns the state before the first fact.
    pub fn new(definition: &Definition) -> Self {
        Self {
            now: definition.created,
            clock: definition.created,
            search: Search::new(definition),
            money: Money { ledger: Ledger::new(definition.cap, definition.grants), ..Money::default() },
            ..Self::default()
        }
    }

    /// Returns the live job `key`.
    pub fn job(&self, key: JobKey) -> Option<&Job> {
        self.trials.get(key.trial)?.job().filter(|job| job.is(key))
    }

    /// Returns the live jobs with their keys and trials, by trial number.
    pub fn jobs(&self) -> impl Iterator<Item = (JobKey, &Trial, &Job)> {
        self.trials.iter().filter_map(|(number, trial)| {
            let job = trial.job()?;
            Some((job.key(*number), trial, job))
        })
    }

    /// Returns the number of jobs that hold a slot: ordered and not seen to have ended.
    pub fn running(&self) -> u32 {
        count(self.jobs().filter(|(_, _, job)| job.holds_slot()).count())
    }

    /// Returns how many jobs can still be launched, without the one reserved for the refit.
    pub fn jobs_left(&self, definition: &Definition) -> u32 {
        let kept = definition.refit && self.refit.is_none();
        definition.limits.max_jobs.saturating_sub(u32::from(kept)).saturating_sub(self.results.launched)
    }

    /// Returns the maximum of jobs that run at once, as changed by the user.
    pub fn max_parallel(&self, definition: &Definition) -> u32 {
        let first = definition.limits.max_parallel;
        self.changes.max_parallel.as_ref().map_or(first, |change| change.value)
    }

    /// Returns whether the user has paused starts.
    pub fn is_paused(&self) -> bool {
        self.changes.paused.as_ref().is_some_and(|change| change.value)
    }

    /// Returns the number of instances of all jobs that hold a slot.
    pub fn instances(&self, definition: &Definition) -> u32 {
        let running = self.jobs().filter(|(_, _, job)| job.holds_slot());
        running.fold(0, |sum: u32, (_, _, job)| {
            sum.saturating_add(definition.job.instances(job.order.instances).count)
        })
    }

    /// Returns why the tuning failed; `None` unless it has failed or is about to. A tuning that found no capacity has
    /// failed if it has no value either.
    pub fn failure(&self) -> Option<&str> {
        let (Status::Ending(why) | Status::Ended { why, .. }) = &self.status else { return None };
        why.fails(self.search.incumbent.is_some()).then(|| why.message())
    }

    /// Returns whether the tuning has ended.
    pub fn is_ended(&self) -> bool {
        matches!(self.status, Status::Ended { .. })
    }
}

/// Returns when the latest job got its instances, of the jobs that run or ended a short time ago.
pub(crate) fn latest_start(state: &State) -> Option<Time> {
    state.billed_jobs().filter_map(|(_, job)| job.started()).max()
}
