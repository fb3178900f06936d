//! The trials of the state that wait at a rung, and their parked parts.

use std::sync::Arc;

use crate::log::fact::JobKey;
use crate::log::ruling::{Judged, Ruling, SearchRuling};
use crate::scheduler::{Parked, Waiting};
use crate::state::search::Search;
use crate::trial::summary::thinned;
use crate::trial::{Purpose, Trial};
use crate::unit::epochs::Epochs;
use crate::unit::ids::{CohortId, Place, SizeId, TrialId};
use crate::unit::time::Time;

impl Search {
    /// Returns the last job of the trial that `ruling` promotes, if that trial is parked and not at hand. The row of the
    /// job has what [`Search::bring`] needs.
    pub fn lacks(&self, ruling: &Ruling) -> Option<JobKey> {
        let Ruling::Search(SearchRuling::TrialPromoted { trial, .. }) = ruling else { return None };
        let waiting = self.waiting.get(trial).filter(|_| self.parked.get(*trial).is_none())?;
        Some(waiting.last_job(*trial))
    }

    /// Returns the last job and the parked part of the trial that `ruling` makes wait without a job of its own, and that
    /// still waits. The row of that job must get the lines that arrived late.
    pub fn parked_late(&self, ruling: &Ruling) -> Option<(JobKey, &Parked)> {
        let Ruling::Search(SearchRuling::RungReached { job: None, trial, rung, .. }) = ruling else {
            return None;
        };
        let waiting = self.waiting.get(trial).filter(|waiting| waiting.rung == *rung)?;
        Some((waiting.last_job(*trial), self.parked.get(*trial)?))
    }

    /// Brings back the parked part of a waiting trial.
    pub fn bring(&mut self, trial: TrialId, parked: Arc<Parked>) {
        if self.waiting.contains_key(&trial) {
            self.parked.insert(trial, parked);
        }
    }

    /// Parks a trial that has reached the level of its rung with `resource` epochs.
    pub(crate) fn park(
        &mut self,
        number: TrialId,
        place: Place,
        (trial, size): (Trial, SizeId),
        resource: Epochs,
    ) {
        let Trial { attempts, last_attempt_rung, epoch_ms, .. } = trial;
        let Place { cohort: CohortId { bracket, round }, rung } = place;
        let waiting = Waiting { bracket, round, rung, resource, attempts, last_attempt_rung, epoch_ms, size };
        self.waiting.insert(number, waiting);
        let curve = thinned(&trial).into_iter().collect();
        let parked = Parked { configuration: trial.configuration, curve };
        self.parked.insert(number, Arc::new(parked));
    }
}

impl Trial {
    /// Returns a waiting trial that was `judged` and is promoted `now`. It has no job yet.
    pub(crate) fn promoted(waiting: Waiting, parked: &Parked, judged: Judged, now: Time) -> Self {
        let Waiting { bracket, round, rung, attempts, last_attempt_rung, epoch_ms, .. } = waiting;
        Self {
            curve: parked.curve.clone(),
            judged: Some(judged),
            attempts,
            last_attempt_rung,
            past_attempts: attempts,
            epoch_ms,
            ..Self::new(
                Purpose::Search(Place { cohort: CohortId { bracket, round }, rung: rung.next() }),
                &parked.configuration,
                now,
            )
        }
    }
}
