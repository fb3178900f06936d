//! P6 where trials are promoted: who waits, who goes on and with what job, counted anew from the recorded rulings.
//!
//! The brackets are computed here from the three numbers of the request; nothing of the decider is asked.

use std::collections::BTreeMap;

use tuning::definition::{Objective, RungExecution, Scheduling, Strategy};
use tuning::fact::JobKey;
use tuning::ruling::{EndReason, Ruling, StopWhy, TrialEnd};

use super::rungs::rank;
use super::{Arrival, Book, Money};

/// A bracket and its round.
type Place = (u32, u32);

/// What is counted of one tuning.
#[derive(Debug, Default)]
pub(crate) struct Promotions {
    cohorts: BTreeMap<Place, Cohort>,
    trials: BTreeMap<u32, Standing>,
    /// Trials that have joined each bracket.
    joined: BTreeMap<u32, u32>,
    /// Whether any trial was tried again.
    pub(super) tried_again: bool,
}

/// Trials that are promoted among each other.
#[derive(Debug, Default)]
struct Cohort {
    joined: usize,
    /// What has ended at each rung, and how many went on.
    rungs: BTreeMap<u32, (Vec<Arrival>, usize)>,
    /// Whether one of them failed.
    failed: bool,
    /// Whether a job was started for the last rung.
    at_the_top: bool,
}

/// Where a trial stands.
#[derive(Debug)]
struct Standing {
    place: Place,
    rung: u32,
    stage: Stage,
    /// Epochs that it was promoted with.
    had: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// It has a job, or is tried again.
    Trains,
    /// It was promoted; its job is not ordered yet.
    Promoted,
    Waits {
        value: Option<f64>,
        resource: u32,
    },
    Over,
}

impl Standing {
    /// Whether it may yet come to its rung.
    fn is_on_its_way(&self) -> bool {
        matches!(self.stage, Stage::Trains | Stage::Promoted)
    }
}

/// The brackets of Hyperband, as the article has them.
#[derive(Debug, Clone, Copy)]
struct Shape {
    max_resource: u32,
    eta: u32,
    /// Of the most exploring bracket.
    s_max: u32,
}

impl Shape {
    fn of(strategy: Strategy) -> Option<Self> {
        let Strategy::Hyperband { min_resource, max_resource, eta } = strategy else { return None };
        let fits = |s: &u32| u64::from(eta).pow(*s) * u64::from(min_resource) <= u64::from(max_resource);
        Some(Self { max_resource, eta, s_max: (0..20).take_while(fits).last()? })
    }

    fn last_rung(self, bracket: u32) -> u32 {
        self.s_max.saturating_sub(bracket)
    }

    fn level(self, bracket: u32, rung: u32) -> u32 {
        self.max_resource / self.eta.pow(self.last_rung(bracket).saturating_sub(rung))
    }

    /// Trials of one round.
    fn trials(self, bracket: u32) -> u32 {
        let s = self.last_rung(bracket);
        ((self.s_max + 1) * self.eta.pow(s)).div_ceil(s + 1)
    }

    /// How many of `joined` go on from a rung in the end.
    fn going_on(self, joined: usize, rung: u32) -> usize {
        let share = u64::from(self.eta).pow(rung + 1);
        (joined / usize::try_from(share).unwrap_or(usize::MAX)).max(1)
    }
}

impl Book {
    /// The brackets, where trials are promoted.
    fn shape(&self) -> Option<Shape> {
        Shape::of(self.definition.strategy).filter(|_| self.definition.rungs != RungExecution::Stop)
    }

    pub(super) fn promotes(&self) -> bool {
        self.shape().is_some()
    }

    /// The greatest worst case of a job that was started.
    pub(super) fn most_reservation(&self) -> Option<u64> {
        self.jobs.values().map(|job| job.reservation).max()
    }

    fn is_synchronous(&self) -> bool {
        self.definition.rungs == RungExecution::Promote(Scheduling::Synchronous)
    }

    /// Whether a job is for the last rung of its bracket.
    pub(crate) fn is_for_the_last_rung(&self, key: JobKey) -> bool {
        let standing = self.promotions.trials.get(&key.trial).zip(self.shape());
        standing.is_none_or(|(standing, shape)| key.rung >= shape.last_rung(standing.place.0))
    }

    /// A job is ordered: for the rung that its trial is to go to, told the level of that rung.
    pub(super) fn started_for(&mut self, key: JobKey, place: Place, told: Option<u32>) -> Result<(), String> {
        let Some(shape) = self.shape() else {
            let plain = told.is_none() && key.rung == 0 && place.1 == 0;
            return plain.then_some(()).ok_or_else(|| format!("P6: job {key} is told {told:?}"));
        };
        let level = shape.level(place.0, key.rung);
        if told != Some(level) {
            return Err(format!("P6: job {key} is told to train to {told:?}, its rung is at {level}"));
        }
        if let Some(job) = self.jobs.get_mut(&key) {
            job.level = told;
            job.had = self.promotions.trials.get(&key.trial).map_or(0, |standing| standing.had);
        }
        let promotions = &mut self.promotions;
        let cohort = promotions.cohorts.entry(place).or_default();
        cohort.at_the_top |= key.rung == shape.last_rung(place.0);
        if let Some(standing) = promotions.trials.get_mut(&key.trial) {
            let due = standing.is_on_its_way() && standing.rung == key.rung && standing.place == place;
            standing.stage = Stage::Trains;
            return due
                .then_some(())
                .ok_or_else(|| format!("P6: job {key} is ordered, its trial is not due"));
        }
        let joined = promotions.joined.entry(place.0).or_default();
        let round = *joined / shape.trials(place.0);
        *joined += 1;
        cohort.joined += 1;
        let first = Standing { place, rung: 0, stage: Stage::Trains, had: 0 };
        promotions.trials.insert(key.trial, first);
        let right = key.rung == 0 && place.1 == if self.is_synchronous() { round } else { 0 };
        right.then_some(()).ok_or_else(|| format!("P6: job {key} begins its trial in round {}", place.1))
    }

    /// The job that trains the best once more is of no rung: it is told the best resource.
    pub(super) fn refit_told(&mut self, key: JobKey, told: Option<u32>) -> Result<(), String> {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.level = told;
        }
        (key.rung == 0 && told.is_some())
            .then_some(())
            .ok_or_else(|| format!("Refit: job {key} is told {told:?}"))
    }

    /// A trial waits.
    pub(super) fn rung_reached(&mut self, ruling: &Ruling) -> Result<(), String> {
        let Ruling::RungReached { job, trial, bracket, round, rung, level, resource, value } = ruling else {
            return Ok(());
        };
        let shape = self.shape().ok_or("P6: a trial waits where none is promoted")?;
        let standing = self.promotions.trials.get_mut(trial).ok_or("P6: of a trial that never was")?;
        let due = standing.is_on_its_way() && (standing.rung, standing.place) == (*rung, (*bracket, *round));
        if !due || *rung >= shape.last_rung(*bracket) || *level != shape.level(*bracket, *rung) {
            return Err(format!("P6: trial {trial} waits at rung {rung}, level {level}; it is {standing:?}"));
        }
        standing.stage = Stage::Waits { value: *value, resource: *resource };
        if let Some(job) = job {
            let last = self.trials.get(trial).is_some_and(|book| book.attempts == job.attempt);
            let failed = self.jobs.get(job).is_some_and(|book| book.failed);
            if failed || !last || job.rung != *rung || job.trial != *trial {
                return Err(format!("P6: trial {trial} waits after job {job}, which failed or is another's"));
            }
        }
        self.arrive((*bracket, *round), *rung, (*trial, *value));
        Ok(())
    }

    fn arrive(&mut self, place: Place, rung: u32, arrival: Arrival) {
        let cohort = self.promotions.cohorts.entry(place).or_default();
        cohort.failed |= arrival.1.is_none();
        cohort.rungs.entry(rung).or_default().0.push(arrival);
    }

    /// A trial is over. One that was on its way to a rung keeps a place there, without a value.
    pub(super) fn ended_on_its_way(
        &mut self,
        job: Option<JobKey>,
        trial: u32,
        how: &TrialEnd,
    ) -> Result<(), String> {
        let (Some(shape), active) = (self.shape(), self.ending.is_none()) else { return Ok(()) };
        if self.refit == Some(trial) {
            return Ok(());
        }
        let standing = self.promotions.trials.get_mut(&trial).ok_or("P6: of a trial that never was")?;
        let (place, rung) = (standing.place, standing.rung);
        match std::mem::replace(&mut standing.stage, Stage::Over) {
            Stage::Trains | Stage::Promoted => {
                // One whose program went on beyond its level may have all epochs before it is promoted so far.
                let has_all = *how == TrialEnd::Stopped(StopWhy::MaxResource);
                if has_all && let Some(cohort) = self.promotions.cohorts.get_mut(&place) {
                    cohort.at_the_top = true;
                }
                let failed = matches!(how, TrialEnd::Failed(_) | TrialEnd::NeverStarted);
                if active && rung < shape.last_rung(place.0) {
                    self.arrive(place, rung, (trial, None));
                } else if failed && let Some(cohort) = self.promotions.cohorts.get_mut(&place) {
                    cohort.failed = true;
                }
                Ok(())
            }
            Stage::Waits { .. } => {
                let left = matches!(
                    how,
                    TrialEnd::Stopped(StopWhy::Rung { rung: at }) if *at == rung
                ) || *how == TrialEnd::Stopped(StopWhy::TuningEnding);
                (left && job.is_none())
                    .then_some(())
                    .ok_or_else(|| format!("P6: trial {trial} waits, and ends {how:?}"))
            }
            Stage::Over => Err(format!("P6: trial {trial} ends twice")),
        }
    }

    /// A trial goes on: counted anew.
    pub(super) fn promoted(&mut self, ruling: &Ruling) -> Result<(), String> {
        let Ruling::TrialPromoted { trial, bracket, round, rung, level, value, verdict } = ruling else {
            return Ok(());
        };
        let shape = self.shape().ok_or("P6: a promotion where there is none")?;
        let place = (*bracket, *round);
        let standing = self.promotions.trials.get(trial).ok_or("P6: of a trial that never was")?;
        let Stage::Waits { value: waits_with, resource } = standing.stage else {
            return Err(format!("P6: trial {trial} is promoted, it does not wait: {standing:?}"));
        };
        let same = waits_with.map(f64::to_bits) == value.map(f64::to_bits);
        if !same || (standing.place, standing.rung) != (place, *rung) || value.is_none() {
            return Err(format!("P6: trial {trial} is promoted with {value:?}, it is {standing:?}"));
        }
        if *level != shape.level(*bracket, *rung + 1) {
            return Err(format!("P6: trial {trial} is promoted to {level}"));
        }
        let cohort = self.promotions.cohorts.get(&place).ok_or("P6: of no cohort")?;
        let (ended, _) = cohort.rungs.get(rung).ok_or("P6: of a rung at which nobody is")?;
        let maximize = self.definition.objective == Objective::Maximize;
        let (rank, seen) = (rank(maximize, ended, (*trial, *value)), ended.len());
        let rank = rank.min(seen);
        let open = if self.is_synchronous() { 0 } else { seen / usize::try_from(shape.eta).unwrap_or(1) };
        let closed = shape.going_on(cohort.joined, *rung);
        let said =
            [verdict.rank, verdict.seen, verdict.allowed].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let early = said == [rank, seen, open] && rank < open;
        if !early {
            if said != [rank, seen, closed] || rank >= closed {
                return Err(format!(
                    "P6: trial {trial} at rung {rung}: rank {rank} of {seen}, {open} may go on, {closed} in the end; \
                     it says {verdict:?}"
                ));
            }
            self.closed(shape, place, *rung)?;
        }
        let below = shape.level(*bracket, *rung);
        if let Some(standing) = self.promotions.trials.get_mut(trial) {
            standing.stage = Stage::Promoted;
            standing.rung += 1;
            standing.had = below.min(resource);
        }
        if let Some((_, promoted)) =
            self.promotions.cohorts.get_mut(&place).and_then(|cohort| cohort.rungs.get_mut(rung))
        {
            *promoted += 1;
        }
        Ok(())
    }

    /// Why a rung is not closed; one is when nobody can come to it any more, or when nothing runs at all.
    fn closed(&self, shape: Shape, place: Place, rung: u32) -> Result<(), String> {
        let open = |why: &str| Err(format!("P6: rung {rung} of {place:?} is not closed: {why}"));
        let trials = &self.promotions.trials;
        if !trials.values().any(Standing::is_on_its_way) {
            return Ok(());
        }
        let members = trials.iter().filter(|(_, standing)| standing.place == place);
        if let Some((trial, _)) =
            members.clone().find(|(_, standing)| standing.is_on_its_way() && standing.rung <= rung)
        {
            return open(&format!("trial {trial} is on its way"));
        }
        let Some(cohort) = self.promotions.cohorts.get(&place) else { return open("nobody joined") };
        let maximize = self.definition.objective == Objective::Maximize;
        for (trial, standing) in members.filter(|(_, standing)| standing.rung < rung) {
            let Stage::Waits { value, .. } = standing.stage else { continue };
            let Some((ended, promoted)) = cohort.rungs.get(&standing.rung) else { continue };
            let most = shape.going_on(cohort.joined, standing.rung);
            if value.is_some() && *promoted < most && rank(maximize, ended, (*trial, value)) < most {
                return open(&format!("trial {trial} waits below and may go on"));
            }
        }
        let slots = usize::try_from(shape.trials(place.0)).unwrap_or(usize::MAX);
        if self.is_synchronous() && cohort.joined < slots && self.may_surely_join(shape, place) {
            return open("others may join");
        }
        Ok(())
    }

    /// Whether a new trial may join a cohort even if all that others could ever need is set aside.
    fn may_surely_join(&self, shape: Shape, place: Place) -> bool {
        let owed = |(of, cohort): (&Place, &Cohort)| {
            let joined = cohort.joined + usize::from(*of == place);
            (0..shape.last_rung(of.0)).map(|rung| shape.going_on(joined, rung)).sum::<usize>()
        };
        let owed: usize = self.promotions.cohorts.iter().map(owed).sum();
        let launched = self.jobs.values().filter(|job| !(job.money == Money::Released && job.concluded));
        let awaited = self.promotions.trials.values().filter(|standing| standing.is_on_its_way());
        let all = launched.count() + awaited.count() + owed + 1;
        let kept = usize::from(self.case.choices.refit && self.refit.is_none());
        !self.overrun && all + kept <= usize::try_from(self.definition.limits.max_jobs).unwrap_or(usize::MAX)
    }

    /// A job is told to repeat what its trial has.
    pub(super) fn repeated(&mut self, key: JobKey, had: u32, from: u32) -> Result<(), String> {
        let below = self.shape().map(|shape| {
            let bracket = self.promotions.trials.get(&key.trial).map_or(0, |standing| standing.place.0);
            key.rung.checked_sub(1).map_or(0, |below| shape.level(bracket, below))
        });
        let job = self.jobs.get_mut(&key).ok_or("P2: of a job that was never ordered")?;
        let promoted_with = job.had;
        let twice = job.repeats_from.replace(from).is_some();
        // A further attempt may have more than the first one at its rung had.
        let right = from < had && had >= promoted_with && below.is_some_and(|below| had <= below);
        (right && !twice && !job.concluded).then_some(()).ok_or_else(|| {
            format!("P6: job {key} is told to begin at {from} instead of {had}, it had {promoted_with}")
        })
    }

    /// Where nothing went wrong, every bracket that anybody joined has a job at its last rung.
    pub(super) fn short_of_the_top(&self, id: &str) -> Option<String> {
        self.shape()?;
        let plain = matches!(self.ended, Some((EndReason::MaxJobs, _)))
            && self.limits.cap.is_none()
            && !self.definition.grants
            && !self.promotions.tried_again
            && self.jobs.values().all(|job| job.money != Money::Released);
        let mut cohorts = self.promotions.cohorts.iter();
        let short = cohorts.find(|(_, cohort)| plain && !cohort.failed && !cohort.at_the_top);
        short.map(|(place, cohort)| {
            format!("P6: {} trials joined {place:?} of {id}, none got to its last rung", cohort.joined)
        })
    }
}
