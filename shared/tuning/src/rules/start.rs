//! Starts jobs, as far as slots, instances and money allow: first retries and promoted trials, then new trials.
//!
//! Where money comes in grants, the grant for the next job is requested first.

use search::{Configuration, Origin};

use crate::definition::Definition;
use crate::log::fact::JobKey;
use crate::log::ruling::{Launch, Order, Ruling};
use crate::quote::{Quote, reserve};
use crate::rules::Outlook;
use crate::rules::{Rule, grant, nothing, pool, promote};
use crate::state::capacity::choice;
use crate::state::{State, Status};
use crate::trial::Trial;
use crate::unit::ids::{BracketId, RungId};

/// Orders the next job, or the money for it.
pub(crate) const START: Rule = Rule {
    next: |view| match view.outlook() {
        Outlook::Start(order) => Some(order.clone()),
        Outlook::Busy | Outlook::Deferred | Outlook::Over(_) => None,
    },
    wakes: |view| {
        let state = view.state;
        let retries = state.trials.values().filter_map(Trial::not_before);
        // Starts wait for both.
        let postponed =
            state.capacity.no_start_before.max(state.capacity.lack.as_ref().map(|lack| lack.until));
        view.by_facts(retries.chain(postponed).chain(grant::retry_at(state)))
    },
    folds_first: nothing,
};

/// Orders the next job, or requests the grant that it needs.
pub(crate) fn start(definition: &Definition, state: &State) -> Option<Ruling> {
    if !can_start(definition, state) {
        return None;
    }
    let mut continues = state.refit.is_none();
    if crate::planted!(SearchAfterRefit) {
        continues = true;
    }
    let mut next = further_attempt(definition, state)
        .or_else(|| next_of_search(definition, state).filter(|_| continues))?;
    pool::keep_instances(definition, state, &mut next);
    if let Ruling::Order(Order::Start { reservation, .. }) = &next
        && !state.money.ledger.fits(*reservation)
    {
        return grant::ask(definition, state, *reservation, state.refit.is_some());
    }
    draw(definition, state, &mut next);
    Some(next)
}

/// Draws the configuration of a new trial. This is done last: a draw of the model takes a thousand times longer than the
/// rest of a decision.
fn draw(definition: &Definition, state: &State, next: &mut Ruling) {
    if let Ruling::Order(Order::Start { job, configuration, origin, .. }) = next
        && job.trial == state.search.next_trial
    {
        let suggestion = state.draw(definition, job.trial);
        *configuration = suggestion.configuration;
        let recorded = definition.sampler.learns() || suggestion.origin == Origin::Initial;
        *origin = recorded.then_some(suggestion.origin);
    }
}

/// Returns whether the search has a further job that the cap allows, although starts may be held.
pub(crate) fn has_next(definition: &Definition, state: &State) -> bool {
    state.refit.is_none() && next_of_search(definition, state).is_some()
}

/// Returns whether enough jobs are left for a new trial in a bracket.
pub(crate) fn has_jobs(definition: &Definition, state: &State) -> bool {
    (0..definition.plan().brackets().len())
        .any(|index| promote::can_join(definition, state, BracketId::at(index)))
}

/// Returns the next job of the search: a promotion, a new trial, or at the end any promotion left. The search is over
/// once the refit was ordered, even if that frees money.
fn next_of_search(definition: &Definition, state: &State) -> Option<Ruling> {
    promote::next(definition, state, false)
        .or_else(|| {
            let free = state.finalist.is_none()
                && super::doubt(state).is_none()
                && !promote::lacks_money(definition, state)
                && !cut_trial_lacks_money(definition, state);
            new_trial(definition, state).filter(|_| free)
        })
        .or_else(|| {
            let over = state.trials.is_empty() && !state.money.awaits_bills();
            over.then(|| promote::next(definition, state, true))?
        })
}

/// Returns whether a trial whose running-time limit was cut waits for money that a running job, a bill or a warm pool may free.
/// No new trial starts with that money.
fn cut_trial_lacks_money(definition: &Definition, state: &State) -> bool {
    if !state.may_free_money() {
        return false;
    }
    let mut cut =
        state.trials.values().filter(|trial| trial.cut_limit.is_some() && trial.may_start(state.now));
    cut.any(|trial| {
        let amount = Quote::of_longest_attempt(definition, state, trial).worst_case;
        state.money.ledger.can_ever_fit(amount.plus(reserve(definition, state)))
    })
}

pub(crate) fn can_start(definition: &Definition, state: &State) -> bool {
    let limits = &definition.limits;
    let running = state.running();
    let next = definition.job.instances(choice(definition, state)).count;
    let instances = state.instances(definition).saturating_add(next);
    let refits = state.refit.is_some_and(|job| state.trials.contains_key(job.trial));
    (state.status == Status::Active || refits)
        && state.jobs_left(definition) > 0
        && running < state.max_parallel(definition)
        && (running == 0 || !state.is_deferred_long())
        && !state.is_paused()
        && !state.awaits_capacity()
        && limits.max_instances.is_none_or(|max| instances <= max)
        && state.capacity.no_start_before.is_none_or(|until| until <= state.now)
}

fn further_attempt(definition: &Definition, state: &State) -> Option<Ruling> {
    state.trials.iter().find_map(|(number, trial)| {
        let is_other = state.finalist.is_some_and(|finalist| finalist != *number);
        let waits_for_finalist = is_other && trial.refit().is_none();
        if waits_for_finalist || !trial.may_start(state.now) {
            return None;
        }
        let rung = trial.start_rung(definition);
        let Quote { limits, instances, worst_case: reservation } =
            Quote::of_next_attempt(definition, state, trial)?;
        let bracket = trial.bracket(definition);
        let level = definition.promotes().map(|_| definition.level(bracket, rung));
        Some(Ruling::Order(Order::Start {
            job: JobKey { trial: *number, rung, attempt: trial.attempts.saturating_add(1) },
            bracket,
            configuration: trial.configuration.clone(),
            origin: None,
            limits,
            reservation,
            round: trial.place().map_or(0, |place| place.cohort.round),
            launch: Launch {
                resource: trial.refit().or(level),
                on_demand: trial.on_demand,
                instances,
                refit: trial.refit().is_some(),
            },
            promoted: trial.judged,
        }))
    })
}

/// Orders the first job of a new trial, in the open bracket that has started the smallest share of its trials. When
/// money is short, the job may get a shorter limit than usual. [`draw`] adds the configuration.
fn new_trial(definition: &Definition, state: &State) -> Option<Ruling> {
    let trial = state.search.next_trial;
    let open = |index: usize| promote::can_join(definition, state, BracketId::at(index));
    let bracket = BracketId::at(definition.plan().next_bracket_of(&state.search.joined, open)?);
    let quote = Quote::of_new_trial(definition, state, bracket)?;
    Some(Ruling::Order(Order::Start {
        job: JobKey { trial, rung: RungId(0), attempt: 1 },
        bracket,
        configuration: Configuration::default(),
        origin: None,
        limits: quote.limits,
        reservation: quote.worst_case,
        round: state.search.next_cohort(definition, bracket).round,
        launch: Launch {
            resource: definition.promotes().map(|_| definition.level(bracket, RungId(0))),
            instances: quote.instances,
            ..Launch::default()
        },
        promoted: None,
    }))
}
