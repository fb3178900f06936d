//! Promotes waiting trials. A trial that reaches the level of its rung waits there. The best trials are started again
//! for the next rung, each in a new job, from the same checkpoints.
//!
//! Asynchronous (ASHA, Algorithm 2): whenever a job can start, promote the best waiting trial whose rank is within
//! `1/eta` of all trials that ended at its rung. The highest rung comes first. Without such a trial, start a new trial.
//! Synchronous (successive halving): a rung waits until all trials of its round have ended there, then promotes the
//! best and stops the rest.
//!
//! A [`Cohort`] holds the trials that compete. A rung closes by the number of ended trials, never by a count of running
//! jobs, so a lost job cannot block a rung.

use std::cmp::Reverse;

use hyperband::promotion::allowed;

use crate::definition::{Definition, Scheduling};
use crate::job::Job;
use crate::log::fact::JobEnd;
use crate::log::reasons::{StopWhy, TrialEnd};
use crate::log::ruling::{AttemptRuling, Ruling, SearchRuling, Verdict};
use crate::quote::runtime::Work;
use crate::quote::{Quote, is_out_of_reach};
use crate::rules::Outlook;
use crate::rules::judge::arrived_with;
use crate::rules::{Rule, never, nothing};
use crate::scheduler::{Arrival, Cohort, Rung, Waiting};
use crate::state::{State, Status};
use crate::trial::{Stream, Trial};
use crate::unit::epochs::Epochs;
use crate::unit::ids::{BracketId, CohortId, Place, RungId, SizeId, TrialId, count};

/// Records that a promoted job started below its checkpoint.
pub(crate) const RESOURCE_REPEATED: Rule =
    Rule { next: |view| resource_repeated(view.definition, view.state), wakes: never, folds_first: nothing };

pub(crate) const CLOSED_RUNG: Rule =
    Rule { next: |view| closed_rung(view.definition, view.state), wakes: never, folds_first: nothing };

/// Finishes waiting trials that can never be promoted.
pub(crate) const ELIMINATED: Rule = Rule {
    next: |view| eliminated(view.definition, view.state, view.outlook()),
    wakes: never,
    folds_first: nothing,
};

/// Returns the epoch and value with which a trial arrives at its rung once its job is closed; `None` if it does not
/// arrive.
pub(crate) fn arrival(
    definition: &Definition,
    trial: &Trial,
    place: Place,
    job: Option<&Job>,
) -> Option<(Epochs, Option<f64>)> {
    let level = definition.level(place.cohort.bracket, place.rung);
    if trial.stop_requested
        || definition.promotes().is_none()
        || place.rung >= definition.last_rung(place.cohort.bracket)
    {
        return None;
    }
    let (end, stop) = job.map_or((None, None), |job| (job.end_by_limit(), job.trial_stop()));
    // A failed program is a failure, whatever values it logged. So is a stopped one, unless it stopped for training
    // past its level or for its spot capacity.
    let failed = end == Some(JobEnd::AlgorithmError);
    // A job that did not end after its last epoch has trained it.
    let spared = matches!(
        stop,
        None | Some(StopWhy::PastLevel { .. } | StopWhy::Interruptions { .. } | StopWhy::MaxResource)
    );
    let stopped = !spared && end != Some(JobEnd::Completed);
    if failed || stopped {
        return None;
    }
    // A program that completed below its level arrives with its last value, if it logged one.
    let emitted = job.is_some_and(|job| {
        job.end() == Some(JobEnd::Completed) && trial.last_line_of(job.order.attempt).is_some()
    });
    let reached = trial.curve.last_key_value().is_some_and(|(last, _)| *last >= level);
    (reached || emitted).then(|| arrived_with(definition, trial, level, true))?
}

/// Records, once, that a promoted job started below the epoch of its checkpoint.
///
/// Some programs log the value of their checkpoint again, bit for bit, before they continue. That repeats no training
/// as far as the log shows.
pub(crate) fn resource_repeated(definition: &Definition, state: &State) -> Option<Ruling> {
    definition.promotes()?;
    state.jobs().find_map(|(key, trial, job)| {
        if job.order.checkpoint_epochs.is_zero() || job.repeats_from.is_some() {
            return None;
        }
        let own_streams =
            trial.streams.iter().filter(|stream| stream.attempt == job.order.attempt && !stream.unplaced);
        let first_of = |stream: &Stream| {
            let ((_, first), _) = stream.span?;
            let again = first == job.order.checkpoint_epochs && stream.repeats_value == Some(true);
            Some(if again { first + Epochs::ONE } else { first })
        };
        let first = own_streams.filter_map(first_of).min()?;
        let from = first - Epochs::ONE;
        (from < job.order.checkpoint_epochs).then_some(Ruling::Attempt(AttemptRuling::ResourceRepeated {
            job: key,
            had: job.order.checkpoint_epochs,
            from,
        }))
    })
}

/// Returns the stop reason of a job that trains past the level of its rung. Past the last epoch of all, it is
/// [`super::last_epoch::stop`].
pub(crate) fn past_level(definition: &Definition, trial: &Trial, job: &Job) -> Option<StopWhy> {
    let level = job
        .order
        .level
        .filter(|level| definition.promotes().is_some() && *level < definition.largest_resource())?;
    let own_streams = trial.streams.iter().filter(|stream| stream.attempt == job.order.attempt);
    let furthest = own_streams.filter_map(|stream| stream.span.map(|(_, (_, last))| last)).max()?;
    (furthest > level).then_some(StopWhy::PastLevel { level })
}

/// Synchronous only: promotes the next trial of a closed rung.
pub(crate) fn closed_rung(definition: &Definition, state: &State) -> Option<Ruling> {
    let is_synchronous = definition.promotes() == Some(Scheduling::Synchronous);
    if !is_synchronous || state.status != Status::Active || state.finalist.is_some() {
        return None;
    }
    let mut places = state
        .search
        .cohorts
        .iter()
        .flat_map(|cohort| cohort.rungs().rev().map(move |(rung, _)| (cohort, rung)));
    places.find_map(|(cohort, rung)| candidate(definition, state, cohort, rung, false))
}

/// Promotes the best trial whose job the cap allows, now that a job can start.
///
/// Synchronous rungs promote in [`closed_rung`] instead. With `at_end` no trial is live and none can join, so every
/// rung counts as closed, also a synchronous one.
pub(crate) fn next(
    definition: &Definition,
    state: &State,
    may_start: &dyn Fn(SizeId) -> bool,
    at_end: bool,
) -> Option<Ruling> {
    let scheduling = definition.promotes()?;
    let can_start = |ruling: &Ruling| {
        next_work(definition, state, ruling).is_some_and(|work| may_start(work.size))
            && fits(definition, state, ruling)
    };
    if state.finalist.is_some() {
        return finalist(definition, state).filter(can_start);
    }
    if scheduling == Scheduling::Synchronous && !at_end {
        return None;
    }
    let mut promotable = candidates(definition, state, at_end);
    promotable.find(can_start)
}

/// Returns the promotion of the trial that reached the target, whatever its rank: it trains to its end. `None` if it has
/// diverged since.
fn finalist(definition: &Definition, state: &State) -> Option<Ruling> {
    let trial = state.finalist?;
    let waiting = state.search.waiting.get(&trial)?;
    let rung = state.search.rung(waiting.place())?;
    let (_, value) =
        rung.waiting.iter().find(|(other, value)| *other == trial && value.is_some()).copied()?;
    let rank = rung.rank(definition.direction(), (trial, value));
    Some(Ruling::Search(SearchRuling::TrialPromoted {
        trial,
        bracket: waiting.bracket,
        round: waiting.round,
        rung: waiting.rung,
        level: definition.level(waiting.bracket, waiting.rung.next()),
        value,
        verdict: Verdict { rank, seen: rung.arrived(), allowed: rank.saturating_add(1), continues: true },
        reached_target: true,
    }))
}

/// Returns the trial that reached the target if it waits for money that nothing can free. Trials that wait for its end
/// would then wait without end.
fn unpaid_finalist(definition: &Definition, state: &State) -> Option<TrialId> {
    let blocked = state.status != Status::Active || state.is_paused() || state.may_free_money();
    let promotion = finalist(definition, state).filter(|_| !blocked)?;
    state.finalist.filter(|_| !fits(definition, state, &promotion))
}

/// Returns whether a promoted or promotable trial waits for money that a running job or a bill may free. No new trial is started
/// with that money.
pub(crate) fn lacks_money(definition: &Definition, state: &State) -> bool {
    if definition.promotes().is_none() || (state.jobs().next().is_none() && !state.money.awaits_bills()) {
        return false;
    }
    let waits = |trial: &Trial| trial.next_rung() > RungId(0) && trial.may_start(state.now);
    state.trials.values().any(waits)
        || candidates(definition, state, false).any(|ruling| {
            let work = next_work(definition, state, &ruling);
            !fits(definition, state, &ruling)
                && work.is_some_and(|work| !is_out_of_reach(definition, state, work))
        })
}

/// Returns whether the cap allows the job of a promoted trial.
fn fits(definition: &Definition, state: &State, promotion: &Ruling) -> bool {
    let work = next_work(definition, state, promotion);
    work.is_some_and(|work| Quote::of_promoted(definition, state, work).is_some())
}

/// Returns the work of the job of a promoted trial.
fn next_work(definition: &Definition, state: &State, promotion: &Ruling) -> Option<Work> {
    let Ruling::Search(SearchRuling::TrialPromoted { trial, .. }) = promotion else { return None };
    state.search.waiting.get(trial).map(|trial| work_after(definition, trial))
}

/// Returns the work of the next job of a waiting trial.
fn work_after(definition: &Definition, trial: &Waiting) -> Work {
    let work = Work::of_rung(definition, trial.bracket, trial.rung.next(), trial.size);
    Work { own: trial.epoch_ms, ..work }
}

/// Returns the best waiting trial of each rung that can be promoted: the highest level first, then by bracket and
/// round.
fn candidates<'a>(
    definition: &'a Definition,
    state: &'a State,
    at_end: bool,
) -> impl Iterator<Item = Ruling> {
    let has_waiting = |cohort: &'a Cohort| {
        let rungs = cohort.rungs().filter(|(_, rung)| !rung.waiting.is_empty());
        rungs.map(move |(rung, _)| (cohort, rung))
    };
    let mut places: Vec<_> = state.search.cohorts.iter().flat_map(has_waiting).collect();
    places.sort_by_key(|(cohort, rung)| (Reverse(definition.level(cohort.id.bracket, *rung)), cohort.id));
    places.into_iter().filter_map(move |(cohort, rung)| candidate(definition, state, cohort, rung, at_end))
}

/// Returns the promotion of the best trial waiting at a rung; `None` if it cannot be promoted. `at_end`: the rung is
/// closed.
fn candidate(
    definition: &Definition,
    state: &State,
    cohort: &Cohort,
    number: RungId,
    at_end: bool,
) -> Option<Ruling> {
    let rung = cohort.rung(number)?;
    let ((trial, value), _) = rung.best_and_worst_waiting()?;
    value?;
    let rank = rung.rank(definition.direction(), (trial, value));
    let mut allowed = allowed_at(definition, cohort, number, at_end);
    if rank >= allowed && !at_end && is_closed(definition, state, cohort, number) {
        allowed = allowed_at(definition, cohort, number, true);
    }
    let planned = allowed_at(definition, cohort, number, true);
    if rung.continued >= planned {
        // A rung that closed stays closed, although trials joined later because jobs were left over.
        if definition.promotes() == Some(Scheduling::Synchronous) {
            return None;
        }
        // It is better than trials that were promoted before it, so it is promoted too, but not with jobs that other
        // cohorts need.
        let needed = cohort.jobs_needed_after(definition.plan().eta(), number);
        if !jobs_are_left(definition, state, cohort.id, needed) {
            return None;
        }
    }
    if crate::planted!(OneMorePromoted) {
        allowed = allowed.saturating_add(u32::from(allowed > 0));
    }
    (rank < allowed).then(|| {
        Ruling::Search(SearchRuling::TrialPromoted {
            trial,
            bracket: cohort.id.bracket,
            round: cohort.id.round,
            rung: number,
            level: definition.level(cohort.id.bracket, number.next()),
            value,
            verdict: Verdict { rank, seen: rung.arrived(), allowed, continues: true },
            reached_target: false,
        })
    })
}

/// Returns how many trials of a rung can be promoted now.
fn allowed_at(definition: &Definition, cohort: &Cohort, rung: RungId, closed: bool) -> u32 {
    let ended = cohort.rung(rung).map_or(0, Rung::arrived);
    let allowed = allowed(cohort.joined, ended, definition.plan().eta(), rung.0, closed);
    if crate::planted!(PromoteBeforeClosed) {
        return allowed;
    }
    let synchronous = definition.promotes() == Some(Scheduling::Synchronous);
    if synchronous && !closed { 0 } else { allowed }
}

/// Returns whether no further trial can arrive at a rung: none can join the cohort, none is on its way, and none that
/// waits below can be promoted.
fn is_closed(definition: &Definition, state: &State, cohort: &Cohort, rung: RungId) -> bool {
    let on_its_way =
        |trial: &Trial| trial.place().is_some_and(|place| place.cohort == cohort.id && place.rung <= rung);
    !is_open_to_new_trials(definition, state, cohort.id)
        && !state.trials.values().any(on_its_way)
        && cohort
            .rungs()
            .take_while(|(below, _)| *below < rung)
            .all(|(below, _)| candidate(definition, state, cohort, below, true).is_none())
}

/// Returns whether a new trial can join a cohort.
fn is_open_to_new_trials(definition: &Definition, state: &State, cohort: CohortId) -> bool {
    state.search.next_cohort(definition, cohort.bracket) == cohort
        && can_join(definition, state, cohort.bracket)
}

/// Returns whether a new trial can join a bracket: enough of the tuning's jobs are left for all promotions that the
/// trials of the bracket then need.
pub(crate) fn can_join(definition: &Definition, state: &State, bracket: BracketId) -> bool {
    if state.status != Status::Active || state.search.all_started() >= definition.max_trials() {
        return false;
    }
    if definition.promotes().is_none() {
        return state.jobs_left(definition) > 0;
    }
    let eta = definition.plan().eta();
    let id = state.search.next_cohort(definition, bracket);
    let needed = match state.search.cohort(id) {
        Some(cohort) => cohort.jobs_needed(eta, 1),
        None => Cohort::new(definition, id).jobs_needed(eta, 1),
    };
    jobs_are_left(definition, state, id, needed)
}

/// Returns whether the tuning has one job left besides the `needed` promotions of a cohort, the promotions of all other
/// cohorts, and the jobs about to start.
fn jobs_are_left(definition: &Definition, state: &State, cohort: CohortId, needed: u32) -> bool {
    let eta = definition.plan().eta();
    let others = state.search.cohorts.iter().filter(|other| other.id != cohort);
    let about_to_start = count(state.trials.values().filter(|trial| trial.job().is_none()).count());
    let first = needed.saturating_add(about_to_start).saturating_add(1);
    let all = others.map(|other| other.jobs_needed(eta, 0)).fold(first, u32::saturating_add);
    all <= state.jobs_left(definition)
}

/// Finishes the next waiting trial that can never be promoted.
pub(crate) fn eliminated(definition: &Definition, state: &State, outlook: &Outlook) -> Option<Ruling> {
    definition.promotes()?;
    if let Some(trial) = unpaid_finalist(definition, state) {
        return Some(ended_waiting(trial, StopWhy::OutOfReach));
    }
    let mut places =
        state.search.cohorts.iter().flat_map(|cohort| cohort.rungs().map(move |place| (cohort, place)));
    places.find_map(|(cohort, (number, rung))| {
        let out_of_reach = |(trial, _): &&Arrival| {
            let trial = state.search.waiting.get(trial);
            trial.is_some_and(|trial| is_out_of_reach(definition, state, work_after(definition, trial)))
        };
        let is_active = state.status == Status::Active && state.finalist.is_none();
        if is_active && let Some((trial, _)) = rung.waiting.iter().find(out_of_reach) {
            return Some(ended_waiting(*trial, StopWhy::OutOfReach));
        }
        // The worst waiting trial is the first that can be ruled out.
        let (_, (trial, value)) = rung.best_and_worst_waiting()?;
        let is_over = state.status != Status::Active || matches!(outlook, Outlook::Over(_));
        if state.finalist == Some(trial) && value.is_some() && !is_over {
            return None;
        }
        let rank = rung.rank(definition.direction(), (trial, value));
        let why = if state.status != Status::Active {
            StopWhy::TuningEnding
        } else if value.is_none() || rank >= most_allowed(definition, state, cohort, number) {
            StopWhy::Rung { rung: number }
        } else if matches!(outlook, Outlook::Over(_)) {
            let among_best = rank < allowed_at(definition, cohort, number, true);
            if among_best { StopWhy::TuningEnding } else { StopWhy::Rung { rung: number } }
        } else {
            return None;
        };
        Some(ended_waiting(trial, why))
    })
}

fn ended_waiting(trial: TrialId, why: StopWhy) -> Ruling {
    Ruling::Attempt(AttemptRuling::TrialFinished { job: None, trial, how: TrialEnd::Stopped(why) })
}

/// Returns the most trials that can ever be promoted from a rung, as things stand; `None` if there is no such cohort, or
/// while a synchronous rung is open.
pub fn most_promoted(definition: &Definition, state: &State, place: Place) -> Option<u32> {
    let most = most_allowed(definition, state, state.search.cohort(place.cohort)?, place.rung);
    (most < u32::MAX).then_some(most)
}

/// Returns the most trials that can ever be promoted from a rung, whatever happens next; `u32::MAX` = no bound yet.
fn most_allowed(definition: &Definition, state: &State, cohort: &Cohort, rung: RungId) -> u32 {
    if definition.promotes() == Some(Scheduling::Synchronous) {
        return if is_closed(definition, state, cohort, rung) {
            allowed_at(definition, cohort, rung, true)
        } else {
            u32::MAX
        };
    }
    // Every job that is left can become a new trial of this bracket.
    let left = state.jobs_left(definition);
    let more = if is_open_to_new_trials(definition, state, cohort.id) { left } else { 0 };
    allowed(cohort.joined.saturating_add(more), 0, definition.plan().eta(), rung.0, true)
}
