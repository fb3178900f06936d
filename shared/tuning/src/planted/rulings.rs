//! Planted bugs in the rulings: the decider sees another definition or state, or its ruling is altered.

use super::{Mutation, is_on};
use crate::decide;
use crate::definition::Definition;
use crate::job::Job;
use crate::job::bill::Stage;
use crate::job::inquiry::Asked;
use crate::job::run::Run;
use crate::log::fact::{JobEnd, JobPhase};
use crate::log::reasons::{EndReason, RetryWhy, StopWhy};
use crate::log::ruling::{
    AttemptRuling, Booking, GrantOrder, NoticeOrder, Order, ReadOrder, Ruling, SearchRuling,
};
use crate::scheduler::Cohort;
use crate::state::{State, Status};
use crate::trial::{Trial, TrialStage};
use crate::unit::epochs::Epochs;
use crate::unit::ids::ChoiceId;
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// The rulings on which an altered view has an effect.
enum Part {
    /// A ruling on the altered view counts if it is of this kind.
    Makes(fn(&Ruling) -> bool),
    /// A ruling on the altered view replaces a usual ruling of this kind.
    Forgets(fn(&Ruling) -> bool),
}

use Part::{Forgets, Makes};

/// A bug by which the decider sees another definition or state.
type AlteredView = (Mutation, fn(&mut Definition, &mut State), Part);

/// All bugs by which the decider sees another definition or state.
const ALTERED_VIEWS: &[AlteredView] = &[
    (
        Mutation::BillHourByFacts,
        |_, state| state.clock = state.now,
        Makes(|ruling| matches!(ruling, Ruling::Booking(Booking::SettledInFull { .. }))),
    ),
    (
        Mutation::ConcludeUnbilled,
        |_, state| {
            for job in jobs(state).filter(|job| job.end().is_some() && job.bill.amount().is_none()) {
                job.bill.stage = Stage::InFull(MicroUsd::ZERO);
            }
        },
        Makes(|ruling| ruling.concludes().is_some()),
    ),
    (
        Mutation::OnDemandUnasked,
        |definition, _| (definition.spot_fallback, definition.settings.max_interruptions) = (true, u32::MAX),
        Makes(|ruling| {
            matches!(ruling, Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::OnDemand, .. }))
        }),
    ),
    (
        Mutation::KeepFailure,
        |_, state| change_end(state, JobEnd::AlgorithmError, JobEnd::ServiceError),
        Makes(is_retry),
    ),
    (
        Mutation::AttemptsWithoutLimit,
        |_, state| state.trials.values_mut().for_each(|trial| trial.retries = 0),
        Makes(is_retry),
    ),
    (
        Mutation::PromoteFailed,
        |_, state| {
            change_end(state, JobEnd::AlgorithmError, JobEnd::ServiceError);
            let rungs = |cohort: &mut Cohort| {
                for rung in &mut cohort.rungs {
                    let values = rung.arrivals.iter_mut().chain(&mut rung.waiting).map(|(_, value)| value);
                    values.for_each(|value| *value = value.or(Some(0.0)));
                }
            };
            state.cohorts.iter_mut().for_each(rungs);
        },
        Makes(|ruling| {
            matches!(
                ruling,
                Ruling::Search(SearchRuling::RungReached { .. } | SearchRuling::TrialPromoted { .. })
            )
        }),
    ),
    (Mutation::RefitJobUsed, |definition, _| definition.refit = false, Makes(is_start_of_search)),
    (
        Mutation::RefitMoneySpent,
        |definition, state| {
            if definition.refit && state.refit.is_none() {
                definition.limits.max_jobs = definition.limits.max_jobs.saturating_sub(1);
            }
            definition.refit = false;
        },
        Makes(is_start_of_search),
    ),
    (Mutation::RefitTwice, |_, state| state.refit = None, Makes(is_refit)),
    (
        Mutation::FewerJobsIgnored,
        |definition, state| {
            let first = definition.limits.max_parallel;
            state.changes.max_parallel.take_if(|change| change.value < first);
        },
        Makes(is_start),
    ),
    (Mutation::CapacityHoldIgnored, |_, state| state.lack = None, Makes(is_start)),
    (
        Mutation::CapacityFailsTrial,
        |_, state| {
            change_end(state, JobEnd::CapacityError, JobEnd::AlgorithmError);
        },
        Makes(|ruling| matches!(ruling, Ruling::Attempt(AttemptRuling::TrialFinished { .. }))),
    ),
    (
        Mutation::NoCapacityTooSoon,
        |definition, _| definition.settings.capacity_wait_seconds = 60,
        Makes(|ruling| matches!(ruling, Ruling::TuningEnding { .. })),
    ),
    (Mutation::ExcessForgotten, |_, state| state.ledger.margin = MicroUsd::ZERO, Makes(is_start)),
    (
        Mutation::ReservationClockIgnored,
        |_, state| {
            for job in jobs(state) {
                if let Run::Known(trace) = &mut job.run {
                    trace.phase = Some((job.order.at, JobPhase::Uploading));
                }
            }
        },
        Forgets(|ruling| {
            matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::ReservationUsed { .. }, .. }))
        }),
    ),
    (
        Mutation::OverrunNotReserved,
        |_, state| {
            for job in jobs(state) {
                if let Run::Known(trace) = &mut job.run {
                    trace.seen_at = Time::MIN;
                }
            }
        },
        Forgets(|ruling| matches!(ruling, Ruling::Booking(Booking::ReservationExtended { .. }))),
    ),
    (
        Mutation::OverrunStopsNothing,
        |_, state| state.ledger.cap = None,
        Forgets(|ruling| {
            matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::CapExceeded { .. }, .. }))
        }),
    ),
    (
        Mutation::CutTrialWaits,
        |_, state| {
            for trial in state.trials.values_mut().filter(|trial| trial.cut_limit.is_some()) {
                if let TrialStage::Awaiting { not_before, .. } = &mut trial.stage {
                    *not_before = Time::MAX;
                }
            }
        },
        Makes(is_start),
    ),
    (
        Mutation::DivergedTrains,
        |definition, _| definition.settings.max_diverged_epochs = 0,
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::Diverged { .. }, .. }))),
    ),
    (
        Mutation::DivergedAtOnce,
        |definition, _| definition.settings.max_diverged_epochs = 1,
        Makes(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::Diverged { .. }, .. }))),
    ),
    (
        Mutation::LastEpochStopped,
        |_, state| state.clock = Time::MAX,
        Makes(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::MaxResource, .. }))),
    ),
    (
        Mutation::GraceNeverEnds,
        |_, state| state.clock = Time::default(),
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::MaxResource, .. }))),
    ),
    (
        Mutation::EndingStopsLastEpoch,
        |_, state| {
            if matches!(state.status, Status::Ending(_)) {
                state.status = Status::Ending(EndReason::Stopped);
            }
        },
        Makes(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::TuningEnding, .. }))),
    ),
    (
        Mutation::LimitCutWithoutCap,
        |_, state| state.ledger.cap = state.ledger.cap.or(Some(MicroUsd(u64::MAX))),
        Makes(is_start),
    ),
    (Mutation::PauseIgnored, |_, state| state.changes.paused = None, Makes(is_start)),
    (Mutation::StopFreesSlot, |definition, state| free_stopped_slots(definition, state), Makes(is_start)),
    (Mutation::MaxInstancesIgnored, |definition, _| definition.limits.max_instances = None, Makes(is_start)),
    (
        Mutation::OthersPricedAsFirst,
        |definition, _| {
            let first = definition.job.instances(ChoiceId(0));
            definition.job.fallbacks.fill(first);
        },
        Makes(is_start),
    ),
    (Mutation::CapacityForgotten, |_, state| state.no_capacity_until.clear(), Makes(|_| true)),
    (
        Mutation::OnDemandTooSoon,
        |definition, _| definition.settings.max_interruptions = definition.settings.max_interruptions.saturating_sub(1),
        Makes(|ruling| {
            matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::Interruptions { .. }, .. }))
        }),
    ),
    (
        Mutation::SilenceNotLooked,
        |_, state| jobs(state).for_each(|job| job.silence_check = Asked::Answered(Time::MAX)),
        Makes(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::NoObjective { .. }, .. }))),
    ),
    (
        Mutation::SilenceNeverEnds,
        |_, state| jobs(state).for_each(|job| job.silence_check = Asked::Open(Time::MAX)),
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Read(ReadOrder::Silence { .. })))),
    ),
    (
        Mutation::RepeatUnreported,
        |_, state| jobs(state).for_each(|job| job.repeats_from = Some(Epochs::ZERO)),
        Forgets(|ruling| matches!(ruling, Ruling::Attempt(AttemptRuling::ResourceRepeated { .. }))),
    ),
    (
        Mutation::NoLogRead,
        |_, state| state.trials.values_mut().for_each(|trial| trial.read = Asked::Answered(u32::MAX)),
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Read(ReadOrder::Log { .. })))),
    ),
    (
        Mutation::CapLevelUnpublished,
        |_, state| state.cap_published_percent = u32::MAX,
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Notice(NoticeOrder::CapReached { .. })))),
    ),
    (
        Mutation::ReturnForgotten,
        |_, state| {
            let used = state.ledger.spent.plus(state.ledger.reserved);
            state.ledger.granted = state.ledger.granted.map(|_| used);
        },
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Grant(GrantOrder::Return { .. })))),
    ),
];

/// Returns the next ruling like [`decide::next`], with the bug that is on.
pub(crate) fn next(definition: &Definition, state: &State) -> Option<Ruling> {
    let usual = || decide::next(definition, state);
    let Some((_, alter, part)) = ALTERED_VIEWS.iter().find(|(mutation, ..)| is_on(*mutation)) else {
        return usual().map(|ruling| altered(definition, ruling));
    };
    let altered = || {
        let (mut definition, mut state) = (definition.clone(), state.clone());
        alter(&mut definition, &mut state);
        decide::next(&definition, &state)
    };
    match part {
        Makes(is_made) => altered().filter(is_made).or_else(usual),
        Forgets(is_forgotten) => {
            usual().and_then(|ruling| if is_forgotten(&ruling) { altered() } else { Some(ruling) })
        }
    }
}

/// Returns a ruling as the bug that is on alters it.
fn altered(definition: &Definition, mut ruling: Ruling) -> Ruling {
    if let Ruling::Search(SearchRuling::TrialJudged { value, verdict, .. }) = &mut ruling {
        if is_on(Mutation::OneMoreGoesOn) {
            verdict.allowed = verdict.allowed.saturating_add(1);
            verdict.continues = verdict.rank < verdict.allowed && value.is_some();
        }
        if is_on(Mutation::OneMoreStopped) {
            verdict.continues &= verdict.rank.saturating_add(1) < verdict.allowed;
        }
        if is_on(Mutation::PromoteDiverged) {
            verdict.continues = verdict.rank < verdict.allowed;
        }
    }
    if let Ruling::Order(Order::Start { job, bracket, limits, reservation, launch, .. }) = &mut ruling {
        if launch.on_demand && is_on(Mutation::OnDemandAtSpotLimits) {
            *limits = definition.limits_for(limits.max_runtime_seconds);
            *reservation = definition.worst_case(*limits, launch.instances).unwrap_or(MicroUsd::ZERO);
        }
        if job.attempt > 1 && is_on(Mutation::ReuseName) {
            job.attempt = job.attempt.saturating_sub(1);
        }
        if !launch.refit && definition.promotes().is_some() && is_on(Mutation::WrongLevel) {
            launch.resource = Some(definition.level(*bracket, job.rung.below().unwrap_or_default()));
        }
    }
    ruling
}

fn jobs(state: &mut State) -> impl Iterator<Item = &mut Job> {
    state.trials.values_mut().filter_map(Trial::job_mut)
}

fn change_end(state: &mut State, from: JobEnd, to: JobEnd) {
    for job in jobs(state) {
        if let Run::Ended { end, .. } = &mut job.run
            && *end == from
        {
            *end = to;
        }
    }
}

/// Raises the limits of parallel jobs by the jobs that were ordered to stop.
fn free_stopped_slots(definition: &mut Definition, state: &mut State) {
    let stopping: Vec<u32> = jobs(state)
        .filter(|job| job.stop.is_some() && job.holds_slot())
        .map(|job| definition.job.instances(job.order.instances).count)
        .collect();
    for instances in stopping {
        let limits = &mut definition.limits;
        limits.max_parallel = limits.max_parallel.saturating_add(1);
        limits.max_instances = limits.max_instances.map(|max| max.saturating_add(instances));
        if let Some(change) = &mut state.changes.max_parallel {
            change.value = change.value.saturating_add(1);
        }
    }
}

fn is_start(ruling: &Ruling) -> bool {
    matches!(ruling, Ruling::Order(Order::Start { .. }))
}

fn is_start_of_search(ruling: &Ruling) -> bool {
    is_start(ruling) && !is_refit(ruling)
}

fn is_refit(ruling: &Ruling) -> bool {
    matches!(ruling, Ruling::Order(Order::Start { launch, .. }) if launch.refit)
}

fn is_retry(ruling: &Ruling) -> bool {
    matches!(ruling, Ruling::Attempt(AttemptRuling::AttemptAwaited { .. }))
}
