//! The last job: with `Refit` `Best` the best configuration is trained once more, at most once, when the search is over, and
//! with a job and with money that were kept back for it.

use search::Configuration;
use tuning::fact::JobKey;
use tuning::ruling::{EndReason, Ruling};

use super::{Book, Money};
use crate::case::Epochs;
use crate::fault::Kind;
use crate::world::World;
use crate::world::training::Job;

impl Book {
    /// The job that trains the best configuration once more is ordered.
    pub(super) fn refit_ordered(&mut self, key: JobKey) -> Result<(), String> {
        if !self.case.choices.refit {
            return Err(format!("Refit: job {key} trains the best once more, nobody asked for that"));
        }
        if *self.refit.get_or_insert(key.trial) != key.trial {
            return Err(format!("Refit: job {key} trains the best a second time"));
        }
        if self.ending.is_some() && !self.search_ended_by_itself() {
            return Err(format!("Refit: job {key} is ordered, the tuning ends: {:?}", self.ending));
        }
        let searching = self.trials.iter().find(|(trial, book)| **trial != key.trial && !book.finished);
        searching.map_or(Ok(()), |(trial, _)| Err(format!("Refit: trial {trial} still searches")))
    }

    /// A recorded stop request ends the search. After a search that ended by itself, it cancels the refit that is not
    /// ordered yet.
    pub(super) fn stop_requested(&mut self) {
        let refit_to_come = self.refit.is_none() && self.case.choices.refit && self.search_ended_by_itself();
        if self.ending.is_none() || refit_to_come {
            self.ending = Some(EndReason::Stopped);
        }
    }

    fn search_ended_by_itself(&self) -> bool {
        matches!(self.ending, Some(EndReason::Target | EndReason::NotImproving | EndReason::CostCap))
    }

    /// Whether money may be asked for: the tuning goes on, or its best is trained once more.
    pub(super) fn may_ask(&self) -> bool {
        self.ending.is_none() || (self.search_ended_by_itself() && self.case.choices.refit)
    }

    /// A job of the search is ordered, and is in these books: one job is left for the refit.
    pub(super) fn leaves_one(&self) -> Result<(), String> {
        if !self.case.choices.refit {
            return Ok(());
        }
        if self.refit.is_some() {
            return Err("Refit: the search goes on after the best was trained once more".to_owned());
        }
        let launched = self.jobs.values().filter(|job| job.money != Money::Released).count();
        let most = usize::try_from(self.definition.limits.max_jobs).unwrap_or(usize::MAX);
        (launched < most).then_some(()).ok_or_else(|| "Refit: no job is left for it".to_owned())
    }

    /// Whether a refit is owed at the end: the search came to an end of its own, and nobody changed the limits meanwhile.
    /// (The month's cap may have nothing left, and a cap that was lowered too.)
    fn owes_refit(&self) -> bool {
        let own = matches!(
            self.ended,
            Some((EndReason::MaxJobs | EndReason::CostCap | EndReason::Target | EndReason::NotImproving, _))
        );
        own && self.case.choices.refit && self.case.changes.is_empty() && !self.definition.grants
    }
}

/// The best finite value that a job logged, with its epoch.
fn best_of(job: &Job, maximize: bool) -> Option<(f64, u32)> {
    let (first, last) = job.logged?;
    let values = (first..=last).filter_map(|epoch| Some((job.program.value(epoch)?, epoch)));
    values.filter(|(value, _)| value.is_finite()).reduce(|best, new| {
        let better = if maximize { new.0 > best.0 } else { new.0 < best.0 };
        if better { new } else { best }
    })
}

impl World {
    /// The job that trains the best once more is ordered: it is the best, by what the programs logged.
    pub(crate) fn wrongly_refitted(&self, id: &str, ruling: &Ruling) -> Option<String> {
        let Ruling::StartOrdered { job: key, configuration, launch, .. } = ruling else { return None };
        let book = self.check.books.get(id).filter(|_| launch.refit && key.attempt == 1)?;
        let maximize = book.case.choices.maximize;
        let search: Vec<&Job> = self.training.of(id).filter(|job| job.key.trial != key.trial).collect();
        let of_trial = |job: &Job| book.trials.get(&job.key.trial).map(|trial| &trial.configuration);
        if !search.iter().any(|job| of_trial(job) == Some(configuration)) {
            return Some(format!("Refit: {id} trains {configuration:?} once more, no trial has that"));
        }
        let told = book.case.epochs == Epochs::Absolute && self.faults.rate(Kind::LogReadLag) == 0.0;
        let unread = |job: &&Job| job.deleted || book.jobs.get(&job.key).is_none_or(|book| book.in_full);
        if !told || search.iter().any(unread) {
            return None;
        }
        let bests = search.iter().filter_map(|job| Some((best_of(job, maximize)?, of_trial(job)?)));
        let bests: Vec<((f64, u32), &Configuration)> = bests.collect();
        let best = bests
            .iter()
            .map(|((value, _), _)| *value)
            .reduce(|best, new| if maximize { best.max(new) } else { best.min(new) })?;
        let right = search.iter().any(|job| {
            let resource = launch.resource.unwrap_or(0);
            of_trial(job) == Some(configuration)
                && job.program.value(resource).map(f64::to_bits) == Some(best.to_bits())
        });
        (!right).then(|| {
            format!("Refit: {id} trains {configuration:?} to {:?}, the best is {best}", launch.resource)
        })
    }

    /// The best is trained once more whenever nothing was in its way.
    pub(super) fn owed_refit(&self, id: &str) -> Option<String> {
        let book = self.check.books.get(id).filter(|book| book.owes_refit() && book.refit.is_none())?;
        let maximize = book.case.choices.maximize;
        let any = self.training.of(id).any(|job| best_of(job, maximize).is_some());
        (any && super::owed::faultless(&self.plan))
            .then(|| format!("Refit: {id} ended {:?}, its best was not trained once more", book.ended))
    }
}
