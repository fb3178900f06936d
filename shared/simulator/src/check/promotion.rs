//! P6 with promotion: the waiting trials, the promoted trials and their jobs, recounted from the recorded rulings.

use std::collections::BTreeMap;

use tuning::log::fact::JobKey;
use tuning::log::reasons::{EndReason, StopWhy, TrialEnd};
use tuning::log::ruling::{Ruling, SearchRuling};
use tuning::unit::ids::{BracketId, ChoiceId, CohortId, RungId, TrialId};

use super::brackets::Shape;
use super::rungs::rank;
use super::{Arrival, Book, Money};

/// The books of one tuning's promotions.
#[derive(Debug, Default)]
pub(crate) struct Promotions {
    cohorts: BTreeMap<CohortId, Cohort>,
    trials: BTreeMap<TrialId, Standing>,
    /// Number of trials that have joined each bracket.
    joined: BTreeMap<BracketId, u32>,
    /// Whether any trial had a further attempt.
    pub(super) has_retries: bool,
}

/// A cohort: the trials that compete with each other for promotion.
#[derive(Debug, Default)]
struct Cohort {
    joined: usize,
    /// The arrivals at each rung, and the number of promoted trials.
    rungs: BTreeMap<RungId, (Vec<Arrival>, usize)>,
    /// Whether a trial of the cohort failed.
    failed: bool,
    /// Whether a job was ordered for the last rung.
    has_last_rung_job: bool,
}

/// The progress of a trial.
#[derive(Debug)]
struct Standing {
    place: CohortId,
    rung: RungId,
    stage: Stage,
    /// Number of epochs that it was promoted with.
    promoted_with: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// It has a job, or its next attempt is awaited.
    Trains,
    /// It was promoted, but its job is not ordered yet.
    Promoted,
    /// It waits at its rung.
    Waits {
        value: Option<f64>,
        resource: u32,
    },
    Over,
}

impl Standing {
    /// Returns whether the trial has not reached its rung yet.
    fn is_on_its_way(&self) -> bool {
        matches!(self.stage, Stage::Trains | Stage::Promoted)
    }
}

impl Book {
    /// Returns the brackets, if trials are promoted.
    fn shape(&self) -> Option<Shape> {
        Shape::of(&self.case).filter(|_| self.case.promotes())
    }

    fn is_synchronous(&self) -> bool {
        self.case.closes_rungs()
    }

    /// Returns whether a job is for the last rung of its bracket.
    pub(crate) fn is_for_the_last_rung(&self, key: JobKey) -> bool {
        let standing = self.promotions.trials.get(&key.trial).zip(self.shape());
        standing.is_none_or(|(standing, shape)| key.rung >= shape.last_rung(standing.place.bracket))
    }

    /// Checks that an ordered job is for the next rung of its trial, with the level of that rung as its epoch limit.
    pub(super) fn check_rung_of_start(
        &mut self,
        key: JobKey,
        place: CohortId,
        limit: Option<u32>,
    ) -> Result<(), String> {
        let Some(shape) = self.shape() else {
            let plain = limit.is_none() && key.rung == RungId(0) && place.round == 0;
            return plain.then_some(()).ok_or_else(|| {
                format!("P6: job {key} has the epoch limit {limit:?} in a tuning without promotion")
            });
        };
        let level = shape.level(place.bracket, key.rung);
        if limit != Some(level) {
            return Err(format!("P6: job {key} has the epoch limit {limit:?}, its rung is at level {level}"));
        }
        if let Some(job) = self.jobs.get_mut(&key) {
            job.level = limit;
            job.promoted_with =
                self.promotions.trials.get(&key.trial).map_or(0, |standing| standing.promoted_with);
        }
        let promotions = &mut self.promotions;
        let cohort = promotions.cohorts.entry(place).or_default();
        cohort.has_last_rung_job |= key.rung == shape.last_rung(place.bracket);
        if let Some(standing) = promotions.trials.get_mut(&key.trial) {
            let due = standing.is_on_its_way() && standing.rung == key.rung && standing.place == place;
            standing.stage = Stage::Trains;
            return due
                .then_some(())
                .ok_or_else(|| format!("P6: job {key} was ordered, but its trial is not due at this rung"));
        }
        let joined = promotions.joined.entry(place.bracket).or_default();
        let round = *joined / shape.trials(place.bracket);
        *joined += 1;
        cohort.joined += 1;
        let first = Standing { place, rung: RungId(0), stage: Stage::Trains, promoted_with: 0 };
        promotions.trials.insert(key.trial, first);
        let right = key.rung == RungId(0) && place.round == if self.is_synchronous() { round } else { 0 };
        right
            .then_some(())
            .ok_or_else(|| format!("P6: job {key} starts its trial in the wrong round {}", place.round))
    }

    /// Checks the epoch limit of a refit job: it belongs to no rung and needs a limit.
    pub(super) fn check_refit_limit(&mut self, key: JobKey, limit: Option<u32>) -> Result<(), String> {
        if let Some(job) = self.jobs.get_mut(&key) {
            job.level = limit;
        }
        (key.rung == RungId(0) && limit.is_some())
            .then_some(())
            .ok_or_else(|| format!("Refit: job {key} has the epoch limit {limit:?}"))
    }

    /// Checks a trial that begins to wait at a rung.
    pub(super) fn check_rung_reached(&mut self, ruling: &Ruling) -> Result<(), String> {
        let Ruling::Search(SearchRuling::RungReached {
            job,
            trial,
            bracket,
            round,
            rung,
            level,
            resource,
            value,
        }) = ruling
        else {
            return Ok(());
        };
        let shape = self.shape().ok_or("P6: a trial waits in a tuning without promotion")?;
        let standing = self
            .promotions
            .trials
            .get_mut(trial)
            .ok_or_else(|| format!("P6: trial {trial} does not exist"))?;
        let due = standing.is_on_its_way()
            && (standing.rung, standing.place) == (*rung, CohortId { bracket: *bracket, round: *round });
        if !due || *rung >= shape.last_rung(*bracket) || level.0 != shape.level(*bracket, *rung) {
            return Err(format!(
                "P6: trial {trial} waits at rung {rung}, level {level}, but its progress is {standing:?}"
            ));
        }
        standing.stage = Stage::Waits { value: *value, resource: resource.0 };
        let place = standing.place;
        if let Some(job) = job {
            let last = self.trials.get(trial).is_some_and(|book| book.attempts == job.attempt);
            let failed = self.jobs.get(job).is_some_and(|book| book.failed);
            if failed || !last || job.rung != *rung || job.trial != *trial {
                return Err(format!(
                    "P6: trial {trial} waits after job {job}, which failed or does not belong to it"
                ));
            }
        }
        self.arrive(place, *rung, (*trial, *value));
        Ok(())
    }

    fn arrive(&mut self, place: CohortId, rung: RungId, arrival: Arrival) {
        let cohort = self.promotions.cohorts.entry(place).or_default();
        cohort.failed |= arrival.1.is_none();
        cohort.rungs.entry(rung).or_default().0.push(arrival);
    }

    /// Checks the end of a trial. A trial that had not reached its rung keeps a place there, without a value.
    pub(super) fn check_trial_end(
        &mut self,
        job: Option<JobKey>,
        trial: TrialId,
        how: &TrialEnd,
    ) -> Result<(), String> {
        let (Some(shape), active) = (self.shape(), self.ending.is_none()) else { return Ok(()) };
        if self.refit == Some(trial) {
            return Ok(());
        }
        let standing = self
            .promotions
            .trials
            .get_mut(&trial)
            .ok_or_else(|| format!("P6: trial {trial} does not exist"))?;
        let (place, rung) = (standing.place, standing.rung);
        match std::mem::replace(&mut standing.stage, Stage::Over) {
            Stage::Trains | Stage::Promoted => {
                // A program that trains beyond its level can have all epochs before its trial is promoted to the last
                // rung.
                let has_all = *how == TrialEnd::Stopped(StopWhy::MaxResource);
                if has_all && let Some(cohort) = self.promotions.cohorts.get_mut(&place) {
                    cohort.has_last_rung_job = true;
                }
                let failed = matches!(how, TrialEnd::Failed(_) | TrialEnd::NeverStarted);
                if active && rung < shape.last_rung(place.bracket) {
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
                ) || *how == TrialEnd::Stopped(StopWhy::TuningEnding)
                    || self.forfeits(place, rung, trial, how);
                (left && job.is_none())
                    .then_some(())
                    .ok_or_else(|| format!("P6: waiting trial {trial} ended with {how:?}"))
            }
            Stage::Over => Err(format!("P6: trial {trial} ended twice")),
        }
    }

    /// Ranks a waiting trial that no cap or quota allows to continue behind all others. Returns whether it is one. With
    /// one cluster size, it is the trial that reached the target (`world::truth` checks that), and nothing is reserved that
    /// could become free.
    fn forfeits(&mut self, place: CohortId, rung: RungId, trial: TrialId, how: &TrialEnd) -> bool {
        let right = self.case.size_of(ChoiceId(0)).is_some() || self.money().1 == 0;
        let forfeits = right && *how == TrialEnd::Stopped(StopWhy::OutOfReach);
        let rungs = self.promotions.cohorts.get_mut(&place).filter(|_| forfeits);
        if let Some((arrivals, _)) = rungs.and_then(|cohort| cohort.rungs.get_mut(&rung)) {
            arrivals.iter_mut().filter(|(other, _)| *other == trial).for_each(|(_, value)| *value = None);
        }
        forfeits
    }

    /// Checks a promotion against the recounted arrivals.
    pub(super) fn check_promotion(&mut self, ruling: &Ruling) -> Result<(), String> {
        let Ruling::Search(SearchRuling::TrialPromoted {
            trial,
            bracket,
            round,
            rung,
            level,
            value,
            verdict,
            reached_target,
        }) = ruling
        else {
            return Ok(());
        };
        let shape = self.shape().ok_or("P6: a trial was promoted in a tuning without promotion")?;
        let place = CohortId { bracket: *bracket, round: *round };
        let standing =
            self.promotions.trials.get(trial).ok_or_else(|| format!("P6: trial {trial} does not exist"))?;
        let Stage::Waits { value: waits_with, resource } = standing.stage else {
            return Err(format!("P6: trial {trial} was promoted, but it does not wait: {standing:?}"));
        };
        let same = waits_with.map(f64::to_bits) == value.map(f64::to_bits);
        if !same || (standing.place, standing.rung) != (place, *rung) || value.is_none() {
            return Err(format!(
                "P6: trial {trial} was promoted with the value {value:?}, but its progress is {standing:?}"
            ));
        }
        if level.0 != shape.level(*bracket, rung.next()) {
            return Err(format!("P6: trial {trial} was promoted to the wrong level {level}"));
        }
        let cohort = self
            .promotions
            .cohorts
            .get(&place)
            .ok_or_else(|| format!("P6: trial {trial} was promoted in the unknown cohort {place:?}"))?;
        let (ended, _) = cohort.rungs.get(rung).ok_or_else(|| {
            format!("P6: trial {trial} was promoted from rung {rung}, which no trial has reached")
        })?;
        let maximize = self.case.choices.maximize;
        let (rank, seen) = (rank(maximize, ended, (*trial, *value)), ended.len());
        let rank = rank.min(seen);
        let open = if self.is_synchronous() { 0 } else { seen / usize::try_from(shape.eta).unwrap_or(1) };
        let closed = shape.promoted_in_total(cohort.joined, *rung);
        let claimed =
            [verdict.rank, verdict.seen, verdict.allowed].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let early = claimed == [rank, seen, open] && rank < open;
        // `world::truth` checks that it reached the target. It takes the place of no other trial.
        if *reached_target {
            let right = claimed == [rank, seen, rank + 1];
            right.then_some(()).ok_or_else(|| format!("P6: wrong rank {rank} of {seen}: {verdict:?}"))?;
        } else if !early {
            if claimed != [rank, seen, closed] || rank >= closed {
                return Err(format!(
                    "P6: trial {trial} at rung {rung} has rank {rank} of {seen}, promoted are {open} now and {closed} \
                    after the rung is closed; the ruling has {verdict:?}"
                ));
            }
            self.check_closed(shape, place, *rung)?;
        }
        let below = shape.level(*bracket, *rung);
        if let Some(standing) = self.promotions.trials.get_mut(trial) {
            standing.stage = Stage::Promoted;
            standing.rung = standing.rung.next();
            standing.promoted_with = below.min(resource);
        }
        if let Some((_, promoted)) =
            self.promotions.cohorts.get_mut(&place).and_then(|cohort| cohort.rungs.get_mut(rung))
        {
            *promoted += usize::from(!*reached_target);
        }
        Ok(())
    }

    /// Checks that a rung is closed: no further trial can reach it, or no trial trains at all.
    fn check_closed(&self, shape: Shape, place: CohortId, rung: RungId) -> Result<(), String> {
        let open = |why: &str| {
            Err(format!("P6: a trial was promoted from rung {rung} of {place:?}, which is not closed: {why}"))
        };
        let trials = &self.promotions.trials;
        if !trials.values().any(Standing::is_on_its_way) {
            return Ok(());
        }
        let members = trials.iter().filter(|(_, standing)| standing.place == place);
        if let Some((trial, _)) =
            members.clone().find(|(_, standing)| standing.is_on_its_way() && standing.rung <= rung)
        {
            return open(&format!("trial {trial} has not reached it"));
        }
        let Some(cohort) = self.promotions.cohorts.get(&place) else { return open("no trial joined") };
        let maximize = self.case.choices.maximize;
        for (trial, standing) in members.filter(|(_, standing)| standing.rung < rung) {
            let Stage::Waits { value, .. } = standing.stage else { continue };
            let Some((ended, promoted)) = cohort.rungs.get(&standing.rung) else { continue };
            let most = shape.promoted_in_total(cohort.joined, standing.rung);
            if value.is_some() && *promoted < most && rank(maximize, ended, (*trial, value)) < most {
                return open(&format!("trial {trial} waits below and can be promoted"));
            }
        }
        let slots = usize::try_from(shape.trials(place.bracket)).unwrap_or(usize::MAX);
        if self.is_synchronous() && cohort.joined < slots && self.can_surely_join(shape, place) {
            return open("more trials can join");
        }
        Ok(())
    }

    /// Returns whether a new trial can join a cohort even after reserving all jobs that other cohorts may need.
    fn can_surely_join(&self, shape: Shape, place: CohortId) -> bool {
        let needed = |(of, cohort): (&CohortId, &Cohort)| {
            let joined = cohort.joined + usize::from(*of == place);
            (0..shape.last_rung(of.bracket).0)
                .map(|rung| shape.promoted_in_total(joined, RungId(rung)))
                .sum::<usize>()
        };
        let needed: usize = self.promotions.cohorts.iter().map(needed).sum();
        let launched = self.jobs.values().filter(|job| !(job.is_uncounted() && job.concluded));
        let awaited = self.promotions.trials.values().filter(|standing| standing.is_on_its_way());
        let all = launched.count() + awaited.count() + needed + 1;
        let kept = usize::from(self.case.choices.refit && self.refit.is_none());
        all + kept <= usize::try_from(self.case.counted_jobs()).unwrap_or(usize::MAX)
    }

    /// Checks the report that a job repeats epochs that its trial already has.
    pub(super) fn check_repeat(&mut self, key: JobKey, had: u32, from: u32) -> Result<(), String> {
        let below = self.shape().map(|shape| {
            let bracket = self
                .promotions
                .trials
                .get(&key.trial)
                .map_or(BracketId(0), |standing| standing.place.bracket);
            key.rung.below().map_or(0, |below| shape.level(bracket, below))
        });
        let job = self.jobs.get_mut(&key).ok_or_else(|| format!("P2: job {key} was never ordered"))?;
        let promoted_with = job.promoted_with;
        let twice = job.repeats_from.replace(from).is_some();
        // A further attempt can have more epochs than the first attempt at its rung.
        let right = from < had && had >= promoted_with && below.is_some_and(|below| had <= below);
        (right && !twice && !job.concluded).then_some(()).ok_or_else(|| {
            format!(
                "P6: job {key} was reported to start at epoch {from} instead of {had}, its trial \
                was promoted with {promoted_with}"
            )
        })
    }

    /// Returns a violation if nothing failed and a bracket with trials has no job for its last rung.
    pub(super) fn missing_last_rung(&self, id: &str) -> Option<String> {
        self.shape()?;
        let plain = matches!(self.ended, Some((EndReason::MaxJobs, _)))
            && self.limits.cap.is_none()
            && !self.has_grants
            && !self.promotions.has_retries
            && self.jobs.values().all(|job| job.money != Money::Released);
        let mut cohorts = self.promotions.cohorts.iter();
        let short = cohorts.find(|(_, cohort)| plain && !cohort.failed && !cohort.has_last_rung_job);
        short.map(|(place, cohort)| {
            format!(
                "P6: {} trials joined bracket and round {place:?} of {id}, but none reached its last rung",
                cohort.joined
            )
        })
    }
}
