//! Starts jobs, as far as slots, instances and money allow: first retries and promoted trials, then new trials.
//!
//! Where money comes in grants, the grant for the next job is requested first.

use search::{Configuration, Origin};

use crate::definition::{Definition, INSTANCE_COUNT};
use crate::log::fact::JobKey;
use crate::log::ruling::{Launch, Order, Ruling, SearchRuling};
use crate::quote::runtime::Work;
use crate::quote::{Quote, is_out_of_reach, reserve};
use crate::rules::Outlook;
use crate::rules::{Rule, grant, nothing, pool, promote};
use crate::state::capacity::choice;
use crate::state::{State, Status};
use crate::trial::Trial;
use crate::unit::ids::{BracketId, DefinitionId, RungId, SizeId, TrialId};

/// Orders the next job, or the money for it.
pub(crate) const START: Rule = Rule {
    next: |view| match view.outlook() {
        Outlook::Start(order) => Some(Ruling::clone(order)),
        Outlook::Busy | Outlook::Deferred | Outlook::Over(_) => None,
    },
    wakes: |view| {
        let state = view.state;
        let retries = state.trials.values().filter_map(Trial::not_before);
        // Starts wait for both.
        let capacity = &state.capacity;
        let lacking = capacity.lacks.iter().map(|lack| lack.until);
        let all_lack = view.definition.job.all_sizes().all(|size| capacity.lack_of(size).is_some());
        let postponed = lacking.chain(capacity.no_start_before.filter(|_| !all_lack));
        let postponed = postponed.map(|until| until.max(capacity.no_start_before.unwrap_or(until)));
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
    let may_start = |size| !state.awaits_capacity(definition, size);
    let mut next = further_attempt(definition, state, &may_start)
        .or_else(|| next_of_search(definition, state, &may_start).filter(|_| continues))?;
    // A job that lacks instances blocks the jobs behind it, so that small clusters never starve a large one.
    if lacks_instances(definition, state, &next) {
        return keep_draw(definition, state, next);
    }
    pool::keep_instances(definition, state, &mut next);
    if let Ruling::Order(Order::Start { reservation, .. }) = &next
        && !state.money.ledger.fits(*reservation)
    {
        return grant::ask(definition, state, *reservation, state.refit.is_some())
            .or_else(|| keep_draw(definition, state, next));
    }
    if let Ruling::Order(Order::Start { job, configuration, origin, launch, .. }) = &mut next
        && is_first(definition, state, *job, *launch)
        && definition.job.sizes.is_empty()
    {
        // This is done last: a draw of the model takes a thousand times longer than the rest of a decision.
        (*configuration, *origin) = draw(definition, state, job.trial);
    }
    Some(next)
}

/// Draws the configuration of a new trial. Its origin is recorded where the sampler does not imply it.
fn draw(definition: &Definition, state: &State, trial: TrialId) -> (Configuration, Option<Origin>) {
    let suggestion = state.draw(definition, trial);
    let recorded = definition.sampler.learns() || suggestion.origin == Origin::Initial;
    (suggestion.configuration, recorded.then_some(suggestion.origin))
}

/// Returns whether the job of an order must wait for instances that `MaxInstances` allows.
fn lacks_instances(definition: &Definition, state: &State, next: &Ruling) -> bool {
    let (Ruling::Order(Order::Start { launch, .. }), Some(most)) = (next, definition.limits.max_instances)
    else {
        return false;
    };
    let needed = definition.job.instances(launch.instances).count;
    state.instances(definition).saturating_add(needed) > most
}

/// Returns whether the search has a further job that the cap allows, although starts may be held.
pub(crate) fn has_next(definition: &Definition, state: &State) -> bool {
    state.refit.is_none() && next_of_search(definition, state, &|_| true).is_some()
}

/// Returns whether enough jobs are left for a new trial in a bracket.
pub(crate) fn has_jobs(definition: &Definition, state: &State) -> bool {
    definition.brackets().any(|bracket| promote::can_join(definition, state, bracket))
}

/// Returns the next job of the search: a promotion, a new trial, or at the end any promotion left. The search is over
/// once the refit was ordered, even if that frees money.
fn next_of_search(
    definition: &Definition,
    state: &State,
    may_start: &dyn Fn(SizeId) -> bool,
) -> Option<Ruling> {
    promote::next(definition, state, may_start, false)
        .or_else(|| {
            let free = state.finalist.is_none()
                && super::doubt(definition, state).is_none()
                && !promote::lacks_money(definition, state)
                && !cut_trial_lacks_money(definition, state);
            free.then(|| new_trial(definition, state, may_start))?
        })
        .or_else(|| {
            let over = state.trials.is_empty() && !state.money.awaits_bills();
            over.then(|| promote::next(definition, state, may_start, true))?
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
    let count = |size| definition.job.instances(choice(definition, state, size)).count;
    let smallest = definition.job.all_sizes().map(count).min().unwrap_or_default();
    let instances = state.instances(definition).saturating_add(smallest);
    let refits = state.refit.is_some_and(|job| state.trials.contains_key(job.trial));
    (state.status == Status::Active || refits)
        && state.jobs_left(definition) > 0
        && running < state.max_parallel(definition)
        && (running == 0 || !state.is_deferred_long())
        && !state.is_paused()
        && definition.job.all_sizes().any(|size| !state.awaits_capacity(definition, size))
        && limits.max_instances.is_none_or(|max| instances <= max)
        && state.capacity.no_start_before.is_none_or(|until| until <= state.now)
}

fn further_attempt(
    definition: &Definition,
    state: &State,
    may_start: &dyn Fn(SizeId) -> bool,
) -> Option<Ruling> {
    state.trials.iter().find_map(|(number, trial)| {
        let is_other = state.finalist.is_some_and(|finalist| finalist != *number);
        let waits_for_finalist = is_other && trial.refit().is_none();
        let size = trial.size(definition);
        if waits_for_finalist || !trial.may_start(state.now) || !may_start(size) {
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
/// money is short, the job may get a shorter limit than usual. [`start`] adds the configuration, unless that decides the
/// cluster size.
fn new_trial(definition: &Definition, state: &State, may_start: &dyn Fn(SizeId) -> bool) -> Option<Ruling> {
    let bracket = next_bracket(definition, state, may_start)?;
    let trial = state.search.next_trial_of(definition, definition.definition_of_bracket(bracket));
    let work = |size| Work::of_rung(definition, bracket, RungId(0), size);
    let (quote, configuration, origin) = if definition.job.sizes.is_empty() {
        let size = definition.size_of(trial, &Configuration::default());
        let quote = Quote::of_promoted(definition, state, work(size))?;
        (quote, Configuration::default(), None)
    } else {
        let Sized { quote, drawn, configuration, origin } = sized(definition, state, trial, may_start, work)?;
        if quote.is_none() || drawn != configuration {
            // An explanation compares both.
            let record = record_draw(state, trial, drawn, origin);
            if record.is_some() {
                return record;
            }
        }
        (quote?, configuration, origin)
    };
    Some(Ruling::Order(Order::Start {
        job: JobKey { trial, rung: RungId(0), attempt: 1 },
        bracket,
        configuration,
        origin,
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

/// Returns the bracket that the next trial joins; of several training job definitions, a bracket of the first one in
/// [`by_promise`](crate::state::search::Search::by_promise) whose jobs can start.
fn next_bracket(
    definition: &Definition,
    state: &State,
    may_start: &dyn Fn(SizeId) -> bool,
) -> Option<BracketId> {
    let can_start = |of: DefinitionId| {
        let size = SizeId(of.0);
        let work = Work::of_rung(definition, definition.bracket(of, 0), RungId(0), size);
        let combinations = definition.space_of(of).cardinality();
        let is_used_up =
            combinations.is_some_and(|all| u64::from(state.search.started(definition, of)) >= all);
        !definition.has_definitions()
            || (!is_used_up && may_start(size) && !is_out_of_reach(definition, state, work))
    };
    let in_order = state.search.by_promise(definition);
    in_order.into_iter().filter(|of| can_start(*of)).find_map(|of| {
        let open = |index: usize| promote::can_join(definition, state, definition.bracket(of, index));
        let own = state.search.joined.get(definition.bracket(of, 0).index()..).unwrap_or_default();
        let index = definition.plan().next_bracket_of(own, open)?;
        Some(definition.bracket(of, index))
    })
}

/// Returns whether a job is the first one of a new trial of the search. The number of a refit may be that of the next one.
fn is_first(definition: &Definition, state: &State, job: JobKey, launch: Launch) -> bool {
    !launch.refit && state.search.is_new(definition, job.trial)
}

/// Records the configuration of a new trial whose start must wait; `None` if it is recorded, or if only its start draws
/// it.
fn keep_draw(definition: &Definition, state: &State, start: Ruling) -> Option<Ruling> {
    let Ruling::Order(Order::Start { job, configuration, origin, launch, .. }) = start else { return None };
    let waits = !definition.job.sizes.is_empty() && is_first(definition, state, job, launch);
    waits.then(|| record_draw(state, job.trial, configuration, origin))?
}

/// Records the configuration with which a new trial was drawn; `None` if it is recorded.
fn record_draw(
    state: &State,
    trial: TrialId,
    configuration: Configuration,
    origin: Option<Origin>,
) -> Option<Ruling> {
    let is_known = state.search.drawn.as_ref().is_some_and(|(known, ..)| *known == trial);
    let drawn = SearchRuling::TrialDrawn { trial, configuration, origin };
    (!is_known).then_some(Ruling::Search(drawn))
}

/// A new trial of a search over cluster sizes.
struct Sized {
    /// `None`: it waits for money.
    quote: Option<Quote>,
    drawn: Configuration,
    /// The drawn configuration with the size that starts.
    configuration: Configuration,
    origin: Option<Origin>,
}

/// Draws a new trial with its cluster size, and quotes its job. A size that cannot start becomes the next smaller one that
/// can, else the next larger one: the rest of the cap or a quota is too small for it, or it lacks capacity. While the
/// month denies money, it becomes one that the granted money pays, else the smallest. Returns `None` while no size can
/// start.
fn sized(
    definition: &Definition,
    state: &State,
    trial: TrialId,
    may_start: &dyn Fn(SizeId) -> bool,
    work: impl Fn(SizeId) -> Work,
) -> Option<Sized> {
    let quote = |size| Quote::of_promoted(definition, state, work(size));
    let may = |size: &SizeId| may_start(*size) && !is_out_of_reach(definition, state, work(*size));
    let can_start = |size: &SizeId| may(size) && quote(*size).is_some();
    let smallest = definition.job.all_sizes().find(can_start)?;
    let known = state.search.drawn.clone().filter(|(known, ..)| *known == trial);
    let (drawn, origin) = match known {
        Some((_, configuration, origin)) => (configuration, origin),
        None => draw(definition, state, trial),
    };
    let preferred = definition.size_of(trial, &drawn);
    let smaller = definition.job.all_sizes().rev().filter(|size| *size <= preferred);
    // A small cluster whose times are unknown may reserve more than a large one.
    let mut sizes = smaller.chain(definition.job.all_sizes().filter(|size| *size > preferred));
    let is_paid = |size: &SizeId| {
        may(size) && quote(*size).is_some_and(|quote| state.money.ledger.fits(quote.worst_case))
    };
    let size = if state.money.grants.denied.is_some() {
        sizes.find(is_paid).unwrap_or(smallest)
    } else {
        sizes.find(|size| can_start(size) || (may(size) && state.may_free_money()))?
    };
    let mut configuration = drawn.clone();
    if let Some(count) = definition.job.sizes.get(size.index()).filter(|_| size != preferred) {
        configuration.0.insert(INSTANCE_COUNT.to_owned(), count.to_string());
    }
    Some(Sized { quote: quote(size), drawn, configuration, origin })
}
