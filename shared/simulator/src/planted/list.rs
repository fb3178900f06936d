//! All planted bugs. A bug by which the decider sees another definition or state has its view in its row.

use std::cell::Cell;

use tuning::definition::Definition;
use tuning::job::Job;
use tuning::job::bill::Stage;
use tuning::job::inquiry::Asked;
use tuning::job::run::Run;
use tuning::log::fact::{JobEnd, JobPhase};
use tuning::log::reasons::{EndReason, RetryWhy, StopWhy};
use tuning::log::ruling::{
    AttemptRuling, Booking, GrantOrder, NoticeOrder, Order, ReadOrder, Ruling, SearchRuling,
};
use tuning::planted;
use tuning::scheduler::Cohort;
use tuning::state::{State, Status};
use tuning::trial::{Trial, TrialStage};
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::ChoiceId;
use tuning::unit::money::MicroUsd;
use tuning::unit::time::Time;

thread_local! {
    pub(super) static ON: Cell<Option<Mutation>> = const { Cell::new(None) };
}

/// Returns whether `mutation` is on in this thread, and counts the call if it is.
pub fn is_on(mutation: Mutation) -> bool {
    planted::is_on(mutation.name())
}

/// The rulings on which an altered view has an effect.
pub(super) enum Part {
    /// A ruling on the altered view counts if it is of this kind.
    Makes(fn(&Ruling) -> bool),
    /// A ruling on the altered view replaces a usual ruling of this kind.
    Forgets(fn(&Ruling) -> bool),
}

use Part::{Forgets, Makes};

/// A bug by which the decider sees another definition or state.
pub(super) type AlteredView = (fn(&mut Definition, &mut State), Part);

macro_rules! mutations {
    ($($mutation:ident $what:literal $(=> $alter:expr, $part:expr)?,)*) => {
        /// A mutation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutation {
            $(#[doc = $what] $mutation,)*
        }

        impl Mutation {
            /// All mutations.
            pub const ALL: &[Self] = &[$(Self::$mutation,)*];

            /// Returns its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$mutation => stringify!($mutation),)* }
            }

            /// Returns what the code does while it is on.
            pub fn what(self) -> &'static str {
                match self { $(Self::$mutation => $what,)* }
            }
        }

        /// Returns the view of the mutation that is on, and counts the call; `None` if the bug is elsewhere.
        pub(super) fn altered_view() -> Option<&'static AlteredView> {
            let mutation = ON.get()?;
            let view: &'static [AlteredView] = match mutation {
                $(Mutation::$mutation => const { &[$(($alter, $part))?] },)*
            };
            view.first().filter(|_| is_on(mutation))
        }
    };
}

mutations! {
    SkipConditionOnSave "a step is saved although another decider saved it first",
    TokenOfStepNumber "two deciders write different steps under one transaction token",
    DropOutbox "a step is saved without the rows of its actions",
    RowsBeforeStep "the rows of actions are written before the step that orders them",
    ForgetToSettle "a bill frees no reservation",
    StopFreesReservation "an accepted stop frees the job's reservation",
    CapWithoutReservations "the cap is compared with the spent money alone",
    CapHalfUsed "no job starts that half of the cap does not pay",
    RetryKeepsReservation "a further attempt keeps the reservation of the former one",
    LateBillSettledAtZero "a bill that never came is settled at zero",
    ZeroBillBelieved "a bill of zero is accepted for a job that ran",
    LagBelieved "an outdated description is accepted as the bill",
    OneMoreGoesOn "a rung lets one trial too many continue",
    OneMoreStopped "a rung lets one trial too few continue",
    PromoteDiverged "a trial whose value is not a number may continue",
    EvidenceForgotten "a level that does not predict stops trials" =>
        |_, state| state.search.passages.clear(),
        Makes(|ruling| matches!(ruling, Ruling::Search(SearchRuling::TrialJudged { .. }))),
    KeepFailure "a trial whose program failed is retried" =>
        |_, state| change_end(state, JobEnd::AlgorithmError, JobEnd::ServiceError),
        Makes(is_retry),
    ReuseName "a further attempt has the name of the former one",
    AttemptsWithoutLimit "a trial is retried without limit" =>
        |_, state| state.trials.values_mut().for_each(|trial| trial.retries = 0),
        Makes(is_retry),
    CountEpochTwice "a duplicate line counts as another epoch",
    InterruptionTwice "a state that is reported twice is folded twice",
    NoLogRead "a trial is judged by rank after a restart although its log was not read" =>
        |_, state| state.trials.values_mut().for_each(|trial| trial.read = Asked::Answered(u32::MAX)),
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Read(ReadOrder::Log { .. })))),
    BillHourByFacts "the hour for a bill counts from the greatest time on a fact" =>
        |_, state| state.clock = state.now,
        Makes(|ruling| matches!(ruling, Ruling::Booking(Booking::SettledInFull { .. }))),
    CancelledThoughSeen "a job that was seen is cancelled by a late fact",
    MaxInstancesIgnored "jobs are started above `MaxInstances`" =>
        |definition, _| definition.limits.max_instances = None, Makes(is_start),
    FactWithoutCondition "a known fact is put again",
    RowWithoutRevision "an action's row is changed although another changed it meanwhile",
    CreateWithoutClaim "a job is created before its row is claimed",
    ClaimNeverExpires "an action whose performer died is never performed",
    ExpiredClaimGood "a job is created under a claim that has expired",
    CancelAtOnce "a start is cancelled without waiting for a request that may be in flight",
    CancelStarted "a completed start is cancelled",
    RefusalBelieved "a refusal counts although an earlier request may have been accepted",
    RefusalInTwoWrites "a refused start frees its money before its row is updated",
    StopFailureIsDone "a stop that was throttled counts as done",
    RingIgnored "a ring changes nothing",
    SnapshotLosesField "a snapshot forgets the timings",
    SnapshotOffByOne "a snapshot lacks the last step that it claims to hold",
    SnapshotWithoutSteps "a state is read from its snapshot with only the last of the later steps",
    ConcludeUnbilled "a job is concluded when its end is known, before its bill" =>
        |_, state| {
            for job in jobs(state).filter(|job| job.end().is_some() && job.bill.amount().is_none()) {
                job.bill.stage = Stage::InFull(MicroUsd::ZERO);
            }
        },
        Makes(|ruling| ruling.concludes().is_some()),
    StopFreesSlot "a job that was ordered to stop holds no slot" =>
        |definition, state| free_stopped_slots(definition, state), Makes(is_start),
    OffsetUnproven "after a restart the epochs continue from the highest one, with or without a checkpoint",
    RestNotRead "a job is concluded without reading the rest of its log",
    BillBeforeFacts "a bill is folded before the stored facts of its job",
    UndoForgotten "a start that was cancelled in flight leaves its job running",
    ForeignJobAdopted "a job with our name but without our tags is adopted",
    LoseSweep "the sweeper does nothing",
    SweeperStopsNothing "the sweeper performs no pending stop",
    SweeperStartsNothing "the sweeper performs no pending start",
    SweeperBillsNothing "the sweeper reads no pending bill",
    SweeperReadsNothing "the sweeper reads no pending log",
    SilentJobIgnored "a job that shows no sign of life is not looked at",
    SignOfLifeUnreported "the sweeper does not report that a quiet job is still present",
    SilentTuningIgnored "no ring of the sweeper has an effect",
    DeadlineUnreported "the sweeper never reports that a deadline has passed",
    JobStopUnlisted "a user's stop of a job is not stored for the sweeper",
    OrphanNeverStopped "a running job without a row is never stopped",
    ForeignJobStopped "a running job without our tag is stopped",
    GrantAnsweredTwice "a request for money that is performed twice is granted twice",
    GrantAboveCap "money is granted without a check of the month's cap",
    ReturnForgotten "a tuning that ends returns no money" =>
        |_, state| {
            let used = state.money.ledger.spent.plus(state.money.ledger.reserved);
            state.money.ledger.granted = state.money.ledger.granted.map(|_| used);
        },
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Grant(GrantOrder::Return { .. })))),
    ReturnNotBooked "returned money is not booked at its month",
    NoticeForgotten "the sweeper settles notices without publishing them",
    SilenceNotLooked "a silent job is ended without a look at its log" =>
        |_, state| jobs(state).for_each(|job| job.silence_check = Asked::Answered(Time::MAX)),
        Makes(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::NoObjective { .. }, .. }))),
    SilenceNeverEnds "a silent job is never stopped" =>
        |_, state| jobs(state).for_each(|job| job.silence_check = Asked::Open(Time::MAX)),
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Read(ReadOrder::Silence { .. })))),
    CapLevelUnpublished "no notice is published for a level of the cap" =>
        |_, state| state.money.cap_published_percent = u32::MAX,
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Notice(NoticeOrder::CapReached { .. })))),
    PromoteFailed "a trial that failed or diverged may be promoted" =>
        |_, state| {
            change_end(state, JobEnd::AlgorithmError, JobEnd::ServiceError);
            let rungs = |cohort: &mut Cohort| {
                for rung in &mut cohort.rungs {
                    let values = rung.arrivals.iter_mut().chain(&mut rung.waiting).map(|(_, value)| value);
                    values.for_each(|value| *value = value.or(Some(0.0)));
                }
            };
            state.search.cohorts.iter_mut().for_each(rungs);
        },
        Makes(|ruling| {
            matches!(
                ruling,
                Ruling::Search(SearchRuling::RungReached { .. } | SearchRuling::TrialPromoted { .. })
            )
        }),
    OneMorePromoted "a rung promotes one more trial than it may",
    PromoteBeforeClosed "a synchronous rung promotes although trials are on their way to it",
    ForgetFailedPlace "a trial that failed does not keep its place at its rung",
    ParkedLost "a promotion by a decider with a fresh memory has no configuration",
    WrongLevel "a promoted job is sent the level of the rung below",
    RepeatUnreported "a promoted job that did not resume its checkpoint is not reported" =>
        |_, state| jobs(state).for_each(|job| job.repeats_from = Some(Epochs::ZERO)),
        Forgets(|ruling| matches!(ruling, Ruling::Attempt(AttemptRuling::ResourceRepeated { .. }))),
    CheckpointPrefixOfAttempt "each job of a trial has checkpoints of its own",
    LinesPlacedAtZero "the lines of a promoted job whose count restarts are placed at the first epoch",
    PoolForgotten "the bill of a job also frees the money for its warm pool",
    PoolClosedFirst "the cost of a warm pool is booked before the row of its job is written",
    RefitTwice "the refit is ordered twice" =>
        |_, state| state.refit = None, Makes(is_refit),
    RefitMoneySpent "no money is reserved for the refit" =>
        |definition, state| {
            if definition.refit && state.refit.is_none() {
                definition.limits.max_jobs = definition.limits.max_jobs.saturating_sub(1);
            }
            definition.refit = false;
        },
        Makes(is_start_of_search),
    RefitJobUsed "no job is reserved for the refit" =>
        |definition, _| definition.refit = false, Makes(is_start_of_search),
    SearchAfterRefit "the search continues after the refit",
    OnDemandUnasked "a spot job is retried on demand although the request does not allow it" =>
        |definition, _| (definition.spot_fallback, definition.settings.max_interruptions) = (true, u32::MAX),
        Makes(|ruling| {
            matches!(ruling, Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::OnDemand, .. }))
        }),
    OnDemandAtSpotLimits "a job on demand has the limits and the worst case of a spot job",
    OnDemandTooSoon "a job is stopped one interruption too early" =>
        |definition, _| {
            definition.settings.max_interruptions = definition.settings.max_interruptions.saturating_sub(1);
        },
        Makes(|ruling| {
            matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::Interruptions { .. }, .. }))
        }),
    OnDemandForgotten "a job that was interrupted too often is retried on spot",
    OthersPricedAsFirst "the worst case of every instance choice is that of the first" =>
        |definition, _| {
            let first = definition.job.instances(ChoiceId(0));
            definition.job.fallbacks.fill(first);
        },
        Makes(is_start),
    OthersBilledAsFirst "every bill is computed at the price of the first instance choice",
    SizeForgotten "a further attempt of a trial has the smallest cluster size",
    CapacityForgotten "instances that lacked capacity are requested again at once" =>
        |_, state| state.capacity.no_capacity_until.clear(), Makes(|_| true),
    CapacityHoldIgnored "jobs are started although jobs get no instances" =>
        |_, state| state.capacity.lacks.clear(), Makes(is_start),
    CapacityFailsTrial "a trial fails because its job got no instances" =>
        |_, state| {
            change_end(state, JobEnd::CapacityError, JobEnd::AlgorithmError);
        },
        Makes(|ruling| matches!(ruling, Ruling::Attempt(AttemptRuling::TrialFinished { .. }))),
    NoCapacityTooSoon "a tuning without capacity ends before its wait is over" =>
        |definition, _| definition.settings.capacity_wait_seconds = 60,
        Makes(|ruling| matches!(ruling, Ruling::TuningEnding { .. })),
    LimitCutWithoutCap "a job's running-time limit is shortened although nothing limits the money" =>
        |_, state| state.money.ledger.cap = state.money.ledger.cap.or(Some(MicroUsd(u64::MAX))),
        Makes(is_start),
    ExcessNotRaised "after a bill above its reservation, running jobs reserve as much as before",
    ExcessForgotten "after a bill above its reservation, later jobs reserve as much as before" =>
        |_, state| state.money.ledger.margin = MicroUsd::ZERO, Makes(is_start),
    ReservationClockIgnored "a job that has nearly used its reservation up is not stopped" =>
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
    OverrunNotReserved "a job that lasts longer than its reservation pays for reserves no more" =>
        |_, state| {
            for job in jobs(state) {
                if let Run::Known(trace) = &mut job.run {
                    trace.seen_at = Time::MIN;
                }
            }
        },
        Forgets(|ruling| matches!(ruling, Ruling::Booking(Booking::ReservationExtended { .. }))),
    OverrunStopsNothing "no other job stops although the cap does not pay for one that lasts too long" =>
        |_, state| state.money.ledger.cap = None,
        Forgets(|ruling| {
            matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::CapExceeded { .. }, .. }))
        }),
    CutTrialWaits "a trial whose limit was cut waits while new trials start" =>
        |_, state| {
            for trial in state.trials.values_mut().filter(|trial| trial.cut_limit.is_some()) {
                if let TrialStage::Awaiting { not_before, .. } = &mut trial.stage {
                    *not_before = Time::MAX;
                }
            }
        },
        Makes(is_start),
    DivergedTrains "a trial whose objective is not finite trains to its end" =>
        |definition, _| definition.settings.max_diverged_epochs = 0,
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::Diverged { .. }, .. }))),
    DivergedAtOnce "one value that is not finite stops a trial" =>
        |definition, _| definition.settings.max_diverged_epochs = 1,
        Makes(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::Diverged { .. }, .. }))),
    LastEpochStopped "a job with its last epoch is stopped at once" =>
        |_, state| state.clock = Time::MAX,
        Makes(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::MaxResource, .. }))),
    GraceNeverEnds "a job with its last epoch is never stopped" =>
        |_, state| state.clock = Time::default(),
        Forgets(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::MaxResource, .. }))),
    EndingStopsLastEpoch "a job with its last epoch is stopped because the tuning ends" =>
        |_, state| {
            if matches!(state.status, Status::Ending(_)) {
                state.status = Status::Ending(EndReason::Stopped);
            }
        },
        Makes(|ruling| matches!(ruling, Ruling::Order(Order::Stop { why: StopWhy::TuningEnding, .. }))),
    RiseForgotten "a bill that rises after the conclusion of its job is not booked",
    FirstBillFinal "the first bill of a job counts as final",
    ArrivalFreesMoney "the arrival of a trial at its rung frees the reservation of its job",
    BillNotReadAgain "the sweeper confirms booked bills whatever a further reading shows",
    FailedJobCounts "a failed job counts as a result",
    PauseIgnored "jobs are started although the tuning is paused" =>
        |_, state| state.changes.paused = None, Makes(is_start),
    LoweredCapIgnored "a lower cap is ignored",
    FewerJobsIgnored "a lower number of parallel jobs is ignored" =>
        |definition, state| {
            let first = definition.limits.max_parallel;
            state.changes.max_parallel.take_if(|change| change.value < first);
        },
        Makes(is_start),
    OlderChangeStands "an older change of limits overrides a newer one",
    EndedStaysActive "an ended tuning stays on the list of active tunings",
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
