//! The refit: with `Refit` `Best`, the best configuration is trained again after the search, at most once. A job and
//! money are reserved for it.

use search::Configuration;
use tuning::log::fact::{Fact, JobEnd, JobKey};
use tuning::log::reasons::EndReason;
use tuning::log::ruling::{Order, Ruling};

use super::Book;
use super::reasons::allows_refit;
use crate::case::Epochs;
use crate::fault::Kind;
use crate::world::World;
use crate::world::training::Job;

impl Book {
    /// Checks the order of a refit job.
    pub(super) fn check_refit(&mut self, key: JobKey) -> Result<(), String> {
        if !self.case.choices.refit {
            return Err(format!("Refit: job {key} is a refit, but the request has no Refit"));
        }
        if *self.refit.get_or_insert(key.trial) != key.trial {
            return Err(format!("Refit: job {key} starts a second refit"));
        }
        if self.ending.is_some() && !self.search_ended_by_itself() {
            return Err(format!(
                "Refit: job {key} was ordered although the tuning is ending: {:?}",
                self.ending
            ));
        }
        let searching = self.trials.iter().find(|(trial, book)| **trial != key.trial && !book.finished);
        searching.map_or(Ok(()), |(trial, _)| {
            Err(format!("Refit: job {key} was ordered while trial {trial} of the search is open"))
        })
    }

    /// A recorded stop request ends the search. After a search that ended by itself, it cancels the refit that is not
    /// ordered yet.
    pub(super) fn stop_requested(&mut self, fact: &Fact) {
        if *fact != Fact::StopRequested {
            return;
        }
        let refit_to_come = self.refit.is_none() && self.case.choices.refit && self.search_ended_by_itself();
        if self.ending.is_none() || refit_to_come {
            self.ending = Some(EndReason::Stopped);
        }
    }

    /// An ending never begins for `MaxJobs`: the tuning ends at once when its jobs are used up and nothing is live.
    fn search_ended_by_itself(&self) -> bool {
        self.ending.as_ref().is_some_and(allows_refit)
    }

    /// Returns whether the tuning may request a grant: it continues, or it still has a refit to do.
    pub(super) fn can_request_money(&self) -> bool {
        self.ending.is_none() || (self.search_ended_by_itself() && self.case.choices.refit)
    }

    /// Checks that a job is left for the refit after the search job that was just ordered.
    pub(super) fn check_job_left_for_refit(&self) -> Result<(), String> {
        if !self.case.choices.refit {
            return Ok(());
        }
        if self.refit.is_some() {
            return Err("Refit: the search continues after the refit".to_owned());
        }
        let launched = self.jobs.values().filter(|job| !job.is_uncounted()).count();
        let most = usize::try_from(self.case.counted_jobs()).unwrap_or(usize::MAX);
        (launched < most)
            .then_some(())
            .ok_or_else(|| "Refit: the search leaves no job for the refit".to_owned())
    }

    /// Returns whether the ended tuning must have had a refit: the search ended by itself, and neither changed limits
    /// nor the monthly cap can have taken the money.
    fn needs_refit(&self) -> bool {
        let own = self.ended.as_ref().is_some_and(|(why, _)| allows_refit(why));
        own && self.case.choices.refit && self.case.changes.is_empty() && !self.has_grants
    }
}

/// Returns the best finite value that a job logged up to epoch `most`, with its epoch.
fn best_of(job: &Job, maximize: bool, most: u32) -> Option<(f64, u32)> {
    let (first, last) = job.logged?;
    let values = (first..=last.min(most)).filter_map(|epoch| Some((job.program.value(epoch)?, epoch)));
    values.filter(|(value, _)| value.is_finite()).reduce(|best, new| {
        let better = if maximize { new.0 > best.0 } else { new.0 < best.0 };
        if better { new } else { best }
    })
}

impl World {
    /// Checks a refit job against the program logs. Returns a violation if its configuration is not the best, or if its
    /// value is not within the tolerance.
    pub(crate) fn wrong_refit(&self, id: &str, ruling: &Ruling) -> Option<String> {
        let Ruling::Order(Order::Start { job: key, configuration, launch, .. }) = ruling else {
            return None;
        };
        let book = self.check.books.get(id).filter(|_| launch.refit && key.attempt == 1)?;
        let maximize = book.case.choices.maximize;
        let search: Vec<&Job> = self.training.of(id).filter(|job| job.key.trial != key.trial).collect();
        let of_trial = |job: &Job| book.trials.get(&job.key.trial).map(|trial| &trial.configuration);
        if !search.iter().any(|job| of_trial(job) == Some(configuration)) {
            return Some(format!("Refit: {id} refits {configuration:?}, which no trial has"));
        }
        let readable = book.case.epochs == Epochs::Absolute && !self.faults.can_strike(Kind::LogReadLag);
        let unread =
            |job: &&Job| job.deleted || book.jobs.get(&job.key).is_none_or(|book| book.settled_in_full);
        if !readable || search.iter().any(unread) {
            return None;
        }
        // A trial counts up to its last job that had instances and has not failed.
        let counts = |job: &&&Job| {
            search.iter().any(|other| {
                let later = book.jobs.get(&other.key).filter(|later| !later.is_uncounted());
                other.key.trial == job.key.trial
                    && other.key.attempt >= job.key.attempt
                    && later.and_then(|later| later.end).is_some_and(JobEnd::counts)
            })
        };
        // The log of a job that trains beyond its last epoch is not read again, so its later lines may be lost.
        let most = book.case.choices.hyperband.map_or(u32::MAX, |(_, most, _)| most);
        let bests = search
            .iter()
            .filter(counts)
            .filter_map(|job| Some((best_of(job, maximize, most)?, of_trial(job)?)));
        let bests: Vec<((f64, u32), &Configuration)> = bests.collect();
        let best = bests
            .iter()
            .map(|((value, _), _)| *value)
            .reduce(|best, new| if maximize { best.max(new) } else { best.min(new) })?;
        let tolerance = book.case.choices.tolerance.unwrap_or(0.0);
        let resource = launch.resource.map_or(0, |epoch| epoch.0);
        // Beyond its last epoch, a trial may have had a better value.
        let is_better = |value: f64| resource > most && (value > best) == maximize;
        let is_close = |value: f64| is_better(value) || (value - best).abs() <= tolerance;
        let right = search.iter().any(|job| {
            of_trial(job) == Some(configuration) && job.program.value(resource).is_some_and(is_close)
        });
        (!right).then(|| {
            format!(
                "Refit: {id} refits {configuration:?} to epoch {:?}, but the best value is {best}",
                launch.resource
            )
        })
    }

    /// Returns a violation if a refit is missing at the end of a history without faults.
    pub(super) fn missing_refit(&self, id: &str) -> Option<String> {
        let book = self.check.books.get(id).filter(|book| book.needs_refit() && book.refit.is_none())?;
        let maximize = book.case.choices.maximize;
        // A trial whose job has failed does not count, whatever it logged.
        let counts =
            |job: &Job| book.jobs.get(&job.key).and_then(|known| known.end).is_some_and(JobEnd::counts);
        let any = self.training.of(id).any(|job| counts(job) && best_of(job, maximize, u32::MAX).is_some());
        (any && super::deadlines::is_faultless(&self.plan))
            .then(|| format!("Refit: {id} ended {:?} without a refit", book.ended))
    }
}
