//! Entries about promotions: a trial waits at a rung, is promoted, is not promoted, or its job repeats epochs.

use std::collections::BTreeSet;

use tuning::log::fact::JobKey;
use tuning::log::reasons::{StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, Ruling, SearchRuling};
use tuning::rules::most_promoted;
use tuning::state::State;
use tuning::unit::ids::{Place, RungId, TrialId};
use wire::explain::{Comparison, Kind};

use super::entry::NewEntry;
use super::trail::Trail;
use super::{rung, words};

impl Trail<'_> {
    /// Returns the entry for a ruling about promotions, made in `state`, if it is about the trial.
    pub(super) fn promotion(&mut self, state: &State, ruling: &Ruling) -> Option<NewEntry> {
        let definition = &self.tuning.definition;
        match ruling {
            Ruling::Search(SearchRuling::RungReached { job, trial, rung, level, resource, .. })
                if *trial == self.trial =>
            {
                let ended = job.and_then(|key| self.jobs.concluded(definition, state, key));
                let says = words::waits(*rung, *level, *resource, ended.as_ref());
                Some(NewEntry::new(Kind::RungReached, *job, says))
            }
            Ruling::Search(SearchRuling::TrialPromoted {
                trial,
                bracket,
                rung,
                level,
                verdict,
                reached_target,
                ..
            }) => {
                self.promoted.entry((*bracket, *rung)).or_default().insert(*trial);
                let compared = self.waiting(state, *trial, (verdict.allowed, true))?;
                let says = if *reached_target {
                    words::promoted_for_target(&compared, *level)
                } else {
                    words::promoted(&compared, *level)
                };
                Some(NewEntry { rung: Some(Box::new(compared)), ..NewEntry::new(Kind::Promoted, None, says) })
            }
            Ruling::Attempt(AttemptRuling::ResourceRepeated { job, had, from })
                if job.trial == self.trial =>
            {
                Some(NewEntry::new(Kind::ResourceRepeated, Some(*job), words::repeated(*had, *from)))
            }
            Ruling::Search(
                SearchRuling::TrialDrawn { .. }
                | SearchRuling::RungReached { .. }
                | SearchRuling::TrialJudged { .. },
            )
            | Ruling::Attempt(_)
            | Ruling::Booking(_)
            | Ruling::TuningEnding { .. }
            | Ruling::Order(_) => None,
        }
    }

    pub(super) fn finished(&mut self, state: &State, job: Option<JobKey>, how: &TrialEnd) -> NewEntry {
        if let TrialEnd::Stopped(StopWhy::Rung { rung }) = how
            && let Some(entry) = self.not_promoted(state, *rung)
        {
            return entry;
        }
        let ended = job.and_then(|key| self.jobs.concluded(&self.tuning.definition, state, key));
        NewEntry::new(Kind::TrialFinished, job, words::finished(how, ended.as_ref()))
    }

    /// Returns the entry for a trial that waited at `rung` and was not promoted, or `None` if it was not waiting.
    fn not_promoted(&self, state: &State, rung: RungId) -> Option<NewEntry> {
        let waiting = state.search.waiting.get(&self.trial)?;
        let place = Place { cohort: waiting.cohort(), rung };
        let most = most_promoted(&self.tuning.definition, state, place).unwrap_or(0);
        let compared = self.waiting(state, self.trial, (most, false))?;
        let says = words::not_promoted(&compared);
        Some(NewEntry { rung: Some(Box::new(compared)), ..NewEntry::new(Kind::TrialFinished, None, says) })
    }

    /// Compares the trial, if it is `trial`, with those that have ended at the rung at which it waits.
    fn waiting(&self, state: &State, trial: TrialId, verdict: (u32, bool)) -> Option<Comparison> {
        let definition = &self.tuning.definition;
        let waiting = state.search.waiting.get(&trial).filter(|_| trial == self.trial)?;
        let none = BTreeSet::new();
        let went_on = self.promoted.get(&(waiting.bracket, waiting.rung)).unwrap_or(&none);
        let cost = self.jobs.cost_so_far(definition, state, trial);
        rung::waiting(state, definition, (trial, waiting), verdict, went_on, cost)
    }
}
