//! Promotes: a trial that has come to its rung's level waits there; the best are started again for the next rung, in a
//! job of their own, from the same checkpoints.
//!
//! Asynchronous (ASHA): whenever a job may start, the best of those waiting whose rank is within the share of all that
//! have ended at their rung goes on, highest rung first; only then a new trial joins. Synchronous (successive halving):
//! a rung waits until all of its round have ended, then the best go on and the others are over. What a trial needs to be
//! compared with is in its [`Cohort`]. A rung closes by what has ended, never by a count of what runs, so nothing that
//! dies can hold it open.

use std::cmp::Reverse;

use hyperband::promotion::allowed;

use crate::definition::{Definition, Scheduling};
use crate::fact::JobEnd;
use crate::limits::MAX_TRAINING_JOBS;
use crate::ruling::{Ruling, StopWhy, TrialEnd, Verdict};
use crate::state::{Cohort, Job, State, Status, Stream, Trial};

/// The epoch and value with which a trial whose job is closed arrives at its rung; `None` if it does not arrive.
pub(crate) fn arrival(
    definition: &Definition,
    trial: &Trial,
    job: Option<&Job>,
) -> Option<(u32, Option<f64>)> {
    let level = definition.level(trial.bracket, trial.next_rung);
    if definition.promotes().is_none() || trial.next_rung >= definition.last_rung(trial.bracket) {
        return None;
    }
    let (end, stop) = job.map_or((None, None), |job| (job.end, job.stop));
    // A program that failed is a failure, whatever it had shown. So is one that was stopped, but for going on too long or for
    // its spot capacity.
    let failed = end == Some(JobEnd::AlgorithmError) && !crate::planted!(PromoteFailed);
    let spared = matches!(stop, None | Some(StopWhy::PastLevel { .. } | StopWhy::Interruptions { .. }));
    let stopped = !spared && end != Some(JobEnd::Completed);
    if failed || stopped {
        return None;
    }
    if let Some((resource, value)) = trial.curve.range(level..).next() {
        return Some((*resource, *value));
    }
    // It ended well before its level: its last value counts, if it emitted one.
    let emitted = job.is_some_and(|job| {
        job.end == Some(JobEnd::Completed)
            && trial.last_line_attempt == job.attempt
            && trial.last_line.is_some()
    });
    trial.curve.last_key_value().filter(|_| emitted).map(|(resource, value)| (*resource, *value))
}

/// A job that began with fewer epochs than its trial had been promoted with: this is told, once. One that shows just the
/// value again with which it was promoted, bit for bit, has trained nothing twice as far as can be known.
pub(super) fn repeated(definition: &Definition, state: &State) -> Option<Ruling> {
    definition.promotes()?;
    if crate::planted!(RepeatUntold) {
        return None;
    }
    state.jobs().find_map(|(key, trial, job)| {
        if job.had == 0 || job.repeats_from.is_some() {
            return None;
        }
        let own = trial.streams.iter().filter(|stream| stream.attempt == job.attempt && !stream.unplaced);
        let first_of = |stream: &Stream| {
            let ((_, first), _) = stream.span?;
            let again = first == job.had && stream.shown_again == Some(true);
            Some(first.saturating_add(u32::from(again)))
        };
        let first = own.filter_map(first_of).min()?;
        let from = first.saturating_sub(1);
        (from < job.had).then_some(Ruling::ResourceRepeated { job: key, had: job.had, from })
    })
}

/// A job whose trial has gone beyond its rung's level.
pub(super) fn past_level(trial: &Trial, job: &Job) -> Option<StopWhy> {
    let level = job.level?;
    let own = trial.streams.iter().filter(|stream| stream.attempt == job.attempt);
    let furthest = own.filter_map(|stream| stream.span.map(|(_, (_, last))| last)).max()?;
    (furthest > level).then_some(StopWhy::PastLevel { level })
}

/// Where rungs close: the next trial of a closed rung that goes on.
pub(super) fn closing(definition: &Definition, state: &State) -> Option<Ruling> {
    if definition.promotes() != Some(Scheduling::Synchronous) || state.status != Status::Active {
        return None;
    }
    state.cohorts.iter().find_map(|cohort| {
        let mut rungs = rungs_of(cohort).rev();
        rungs.find_map(|rung| candidate(definition, state, cohort, rung, false))
    })
}

/// The trial that goes on next now that a job may start, if the cap allows its job. Where rungs close that was decided
/// when they did, unless `at_end`: nothing runs and nobody can join, so every rung is taken as closed.
pub(super) fn next(definition: &Definition, state: &State, at_end: bool) -> Option<Ruling> {
    let scheduling = definition.promotes()?;
    if scheduling == Scheduling::Synchronous && !at_end {
        return None;
    }
    let mut able = candidates(definition, state, at_end);
    able.find(|(cohort, rung, _)| fits(definition, state, cohort, *rung)).map(|(_, _, ruling)| ruling)
}

/// Whether a trial that was or would be promoted waits for money that what runs may free: then no new one is started
/// with it.
pub(super) fn lacks_money(definition: &Definition, state: &State) -> bool {
    if definition.promotes().is_none() || state.jobs().next().is_none() {
        return false;
    }
    let mut awaited = state.trials.values().filter(|trial| {
        trial.next_rung > 0 && trial.job.is_none() && trial.retry_at.is_some_and(|at| at <= state.now)
    });
    awaited.next().is_some()
        || candidates(definition, state, false)
            .any(|(cohort, rung, _)| !fits(definition, state, cohort, rung))
}

fn rungs_of(cohort: &Cohort) -> std::ops::Range<u32> {
    0..u32::try_from(cohort.rungs.len()).unwrap_or(u32::MAX)
}

fn fits(definition: &Definition, state: &State, cohort: &Cohort, rung: u32) -> bool {
    super::start::fits_promotion(definition, state, cohort.bracket, rung.saturating_add(1))
}

/// The best that waits at each rung, where it may go on: nearest to the largest resource first, then by bracket.
fn candidates<'a>(
    definition: &'a Definition,
    state: &'a State,
    at_end: bool,
) -> impl Iterator<Item = (&'a Cohort, u32, Ruling)> {
    let levels = |cohort: &'a Cohort| rungs_of(cohort).map(move |rung| (cohort, rung));
    let mut places: Vec<_> = state.cohorts.iter().flat_map(levels).collect();
    places.retain(|(cohort, rung)| cohort.waiting_at(*rung).is_some());
    places.sort_by_key(|(cohort, rung)| {
        (Reverse(definition.level(cohort.bracket, *rung)), cohort.bracket, cohort.round)
    });
    places.into_iter().filter_map(move |(cohort, rung)| {
        Some((cohort, rung, candidate(definition, state, cohort, rung, at_end)?))
    })
}

/// The best trial that waits at a rung, if it may go on. `at_end`: the rung is taken as closed.
fn candidate(
    definition: &Definition,
    state: &State,
    cohort: &Cohort,
    rung: u32,
    at_end: bool,
) -> Option<Ruling> {
    let ((trial, value), _) = cohort.waiting_at(rung)?;
    value.or(crate::planted!(PromoteFailed).then_some(0.0))?;
    let stored = cohort.rungs.get(usize::try_from(rung).ok()?)?;
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let rank = count(stored.position(definition.direction(), trial, value));
    let mut allowed = allowed_at(definition, cohort, rung, at_end);
    if rank >= allowed && !at_end && is_closed(definition, state, cohort, rung) {
        allowed = allowed_at(definition, cohort, rung, true);
    }
    let planned = allowed_at(definition, cohort, rung, true);
    if stored.went_on >= planned {
        // A rung that closed is not opened again, though others joined when jobs were left after all.
        if definition.promotes() == Some(Scheduling::Synchronous) {
            return None;
        }
        // Better than some that went on before it: it goes on, too, but not with the jobs that others need.
        let owed = cohort.jobs_owed_after(definition.plan().eta(), rung);
        if !are_left(definition, state, owed, |other| !std::ptr::eq(other, cohort)) {
            return None;
        }
    }
    if allowed > 0 && crate::planted!(OneMorePromoted) {
        allowed = allowed.saturating_add(1);
    }
    (rank < allowed).then(|| Ruling::TrialPromoted {
        trial,
        bracket: cohort.bracket,
        round: cohort.round,
        rung,
        level: definition.level(cohort.bracket, rung.saturating_add(1)),
        value,
        verdict: Verdict { rank, seen: count(stored.arrivals.len()), allowed, goes_on: true },
    })
}

/// How many of a rung may go on now.
fn allowed_at(definition: &Definition, cohort: &Cohort, rung: u32, closed: bool) -> u32 {
    let ended = usize::try_from(rung).ok().and_then(|index| cohort.rungs.get(index));
    let ended = ended.map_or(0, |rung| u32::try_from(rung.arrivals.len()).unwrap_or(u32::MAX));
    let synchronous = definition.promotes() == Some(Scheduling::Synchronous);
    if synchronous && !closed && !crate::planted!(PromoteBeforeClosed) {
        return 0;
    }
    allowed(cohort.joined, ended, definition.plan().eta(), rung, closed)
}

/// Whether no further trial can arrive at a rung: nobody joins any more, none is on its way, and none that waits below
/// will go on.
fn is_closed(definition: &Definition, state: &State, cohort: &Cohort, rung: u32) -> bool {
    if joins(definition, state, cohort) {
        return false;
    }
    let on_its_way = state.trials.values().any(|trial| {
        let of_cohort = trial.bracket == cohort.bracket && trial.round == cohort.round;
        of_cohort && trial.next_rung <= rung
    });
    !on_its_way && (0..rung).all(|below| candidate(definition, state, cohort, below, true).is_none())
}

/// Whether a new trial may still join a cohort.
fn joins(definition: &Definition, state: &State, cohort: &Cohort) -> bool {
    let open = state.next_round(definition, cohort.bracket) == cohort.round;
    open && may_join(definition, state, cohort.bracket)
}

/// Whether a new trial may join a bracket: then enough of the tuning's number of jobs is left for the promotions that all
/// who have joined need.
pub(super) fn may_join(definition: &Definition, state: &State, bracket: u32) -> bool {
    if state.status != Status::Active
        || state.ledger.overrun
        || state.next_trial >= MAX_TRAINING_JOBS.saturating_mul(2)
    {
        return false;
    }
    if definition.promotes().is_none() {
        return state.jobs_left(definition) > 0;
    }
    let eta = definition.plan().eta();
    let round = state.next_round(definition, bracket);
    let place = |cohort: &Cohort| cohort.bracket == bracket && cohort.round == round;
    let joining = match state.cohorts.iter().find(|cohort| place(cohort)) {
        Some(cohort) => cohort.jobs_owed(eta, 1),
        None => Cohort::new(definition, bracket, round).jobs_owed(eta, 1),
    };
    are_left(definition, state, joining, |cohort| !place(cohort))
}

/// Whether of the tuning's number of jobs one more is left besides `owed`, what the `other` cohorts need, and what is
/// about to start.
fn are_left(definition: &Definition, state: &State, owed: u32, other: impl Fn(&Cohort) -> bool) -> bool {
    let eta = definition.plan().eta();
    let others = state.cohorts.iter().filter(|cohort| other(cohort)).map(|cohort| cohort.jobs_owed(eta, 0));
    let awaited = state.trials.values().filter(|trial| trial.job.is_none()).count();
    let awaited = u32::try_from(awaited).unwrap_or(u32::MAX);
    let all = others.fold(owed.saturating_add(awaited).saturating_add(1), u32::saturating_add);
    all <= state.jobs_left(definition)
}

/// The next waiting trial that will not go on. `nothing_starts` = nothing runs, and nothing can be started.
pub(super) fn left_out(
    definition: &Definition,
    state: &State,
    nothing_starts: impl Fn() -> bool,
) -> Option<Ruling> {
    definition.promotes()?;
    let mut places = state.cohorts.iter().flat_map(|cohort| rungs_of(cohort).map(move |rung| (cohort, rung)));
    places.find_map(|(cohort, rung)| {
        // The last of those that wait is the first to be without hope.
        let (_, (trial, value)) = cohort.waiting_at(rung)?;
        let stored = cohort.rungs.get(usize::try_from(rung).ok()?)?;
        let rank = stored.position(definition.direction(), trial, value);
        let rank = u32::try_from(rank).unwrap_or(u32::MAX);
        let why = if state.status != Status::Active {
            StopWhy::TuningEnding
        } else if value.is_none() || rank >= most_allowed(definition, state, cohort, rung) {
            StopWhy::Rung { rung }
        } else if nothing_starts() {
            let among = rank < allowed_at(definition, cohort, rung, true);
            if among { StopWhy::TuningEnding } else { StopWhy::Rung { rung } }
        } else {
            return None;
        };
        Some(Ruling::TrialFinished { job: None, trial, how: TrialEnd::Stopped(why) })
    })
}

/// The most that may ever go on from a rung of a cohort, as things stand; `None` if there is no such cohort, or, where
/// rungs close, while this one is open.
pub fn most_promoted(definition: &Definition, state: &State, place: (u32, u32, u32)) -> Option<u32> {
    let (bracket, round, rung) = place;
    let most = most_allowed(definition, state, state.cohort(bracket, round)?, rung);
    (most < u32::MAX).then_some(most)
}

/// The most that may ever go on from a rung, whatever still happens.
fn most_allowed(definition: &Definition, state: &State, cohort: &Cohort, rung: u32) -> u32 {
    if definition.promotes() == Some(Scheduling::Synchronous) {
        return if is_closed(definition, state, cohort, rung) {
            allowed_at(definition, cohort, rung, true)
        } else {
            u32::MAX
        };
    }
    // Every job that is left might be a new trial of this bracket.
    let left = state.jobs_left(definition);
    let joined =
        if joins(definition, state, cohort) { cohort.joined.saturating_add(left) } else { cohort.joined };
    allowed(joined, 0, definition.plan().eta(), rung, true)
}
