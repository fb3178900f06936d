//! Planted mutations: bugs that the simulator's checkers must find.
//!
//! They exist only with the feature `planted`, which is in no crate's default features. Most of them alter the input or
//! output of a step: a fact before it is folded, the decider's view of the state, or a ruling. Others, in the
//! simulator, alter a call of a port. Without the feature, [`fold`] and `next` are the decider's unchanged functions,
//! and [`planted!`](crate::planted!) expands to `false`. At most one mutation is on, in the thread that turned it on.

/// Returns whether the mutation of that name is on; `false` at compile time without feature `planted`.
#[cfg(feature = "planted")]
#[macro_export]
macro_rules! planted {
    ($mutation:ident) => {
        $crate::planted::is_on($crate::planted::Mutation::$mutation)
    };
}

/// Returns whether the mutation of that name is on; `false` at compile time without feature `planted`.
#[cfg(not(feature = "planted"))]
#[macro_export]
macro_rules! planted {
    ($mutation:ident) => {
        false
    };
}

#[cfg(feature = "planted")]
mod facts;
#[cfg(feature = "planted")]
mod rulings;

#[cfg(not(feature = "planted"))]
pub use crate::change::fold::fold;
#[cfg(not(feature = "planted"))]
pub(crate) use crate::decide::next;
#[cfg(feature = "planted")]
pub use facts::fold;
#[cfg(feature = "planted")]
pub(crate) use rulings::next;

#[cfg(feature = "planted")]
pub use list::{Mutation, is_on, plant, struck};

#[cfg(feature = "planted")]
mod list {
    use std::cell::Cell;

    thread_local! {
        static ON: Cell<Option<Mutation>> = const { Cell::new(None) };
        static STRUCK: Cell<u64> = const { Cell::new(0) };
    }

    /// Turns `mutation` on in this thread and any other off, and resets the count of [`struck`].
    pub fn plant(mutation: Option<Mutation>) {
        ON.set(mutation);
        STRUCK.set(0);
    }

    /// Returns how many times the code has reached the mutation that is on.
    pub fn struck() -> u64 {
        STRUCK.get()
    }

    /// Returns whether `mutation` is on in this thread, and counts the call if it is.
    pub fn is_on(mutation: Mutation) -> bool {
        let on = ON.get() == Some(mutation);
        if on {
            STRUCK.set(STRUCK.get().saturating_add(1));
        }
        on
    }

    macro_rules! mutations {
        ($($mutation:ident $what:literal,)*) => {
            /// A mutation.
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
            pub enum Mutation {
                $(#[doc = $what] $mutation,)*
            }

            impl Mutation {
                /// All mutations.
                pub const ALL: &[Self] = &[$(Self::$mutation,)*];

                /// Returns its name, as in `planted!(Name)`.
                pub fn name(self) -> &'static str {
                    match self { $(Self::$mutation => stringify!($mutation),)* }
                }

                /// Returns what the code does while it is on.
                pub fn what(self) -> &'static str {
                    match self { $(Self::$mutation => $what,)* }
                }
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
        KeepFailure "a trial whose program failed is retried",
        ReuseName "a further attempt has the name of the former one",
        AttemptsWithoutLimit "a trial is retried without limit",
        CountEpochTwice "a duplicate line counts as another epoch",
        InterruptionTwice "a state that is reported twice is folded twice",
        NoLogRead "a trial is judged by rank after a restart although its log was not read",
        BillHourByFacts "the hour for a bill counts from the greatest time on a fact",
        CancelledThoughSeen "a job that was seen is cancelled by a late fact",
        MaxInstancesIgnored "jobs are started above `MaxInstances`",
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
        ConcludeUnbilled "a job is concluded when its end is known, before its bill",
        StopFreesSlot "a job that was ordered to stop holds no slot",
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
        ReturnForgotten "a tuning that ends returns no money",
        ReturnNotBooked "returned money is not booked at its month",
        NoticeForgotten "the sweeper settles notices without publishing them",
        SilenceNotLooked "a silent job is ended without a look at its log",
        SilenceNeverEnds "a silent job is never stopped",
        CapLevelUnpublished "no notice is published for a level of the cap",
        PromoteFailed "a trial that failed or diverged may be promoted",
        OneMorePromoted "a rung promotes one more trial than it may",
        PromoteBeforeClosed "a synchronous rung promotes although trials are on their way to it",
        ForgetFailedPlace "a trial that failed does not keep its place at its rung",
        ParkedLost "a promotion by a decider with a fresh memory has no configuration",
        WrongLevel "a promoted job is sent the level of the rung below",
        RepeatUnreported "a promoted job that did not resume its checkpoint is not reported",
        CheckpointPrefixOfAttempt "each job of a trial has checkpoints of its own",
        LinesPlacedAtZero "the lines of a promoted job whose count restarts are placed at the first epoch",
        PoolForgotten "the bill of a job also frees the money for its warm pool",
        PoolClosedFirst "the cost of a warm pool is booked before the row of its job is written",
        RefitTwice "the refit is ordered twice",
        RefitMoneySpent "no money is reserved for the refit",
        RefitJobUsed "no job is reserved for the refit",
        SearchAfterRefit "the search continues after the refit",
        OnDemandUnasked "a spot job is retried on demand although the request does not allow it",
        OnDemandAtSpotLimits "a job on demand has the limits and the worst case of a spot job",
        OnDemandTooSoon "a job is stopped one interruption too early",
        OnDemandForgotten "a job that was interrupted too often is retried on spot",
        OthersPricedAsFirst "the worst case of every instance choice is that of the first",
        OthersBilledAsFirst "every bill is computed at the price of the first instance choice",
        CapacityForgotten "instances that lacked capacity are requested again at once",
        CapacityHoldIgnored "jobs are started although jobs get no instances",
        CapacityFailsTrial "a trial fails because its job got no instances",
        NoCapacityTooSoon "a tuning without capacity ends before its wait is over",
        LimitCutWithoutCap "a job's running-time limit is shortened although nothing limits the money",
        ExcessNotRaised "after a bill above its reservation, running jobs reserve as much as before",
        ExcessForgotten "after a bill above its reservation, later jobs reserve as much as before",
        ReservationClockIgnored "a job that has nearly used its reservation up is not stopped",
        OverrunNotReserved "a job that lasts longer than its reservation pays for reserves no more",
        OverrunStopsNothing "no other job stops although the cap does not pay for one that lasts too long",
        CutTrialWaits "a trial whose limit was cut waits while new trials start",
        DivergedTrains "a trial whose objective is not finite trains to its end",
        DivergedAtOnce "one value that is not finite stops a trial",
        LastEpochStopped "a job with its last epoch is stopped at once",
        GraceNeverEnds "a job with its last epoch is never stopped",
        EndingStopsLastEpoch "a job with its last epoch is stopped because the tuning ends",
        RiseForgotten "a bill that rises after the conclusion of its job is not booked",
        FirstBillFinal "the first bill of a job counts as final",
        ArrivalFreesMoney "the arrival of a trial at its rung frees the reservation of its job",
        BillNotReadAgain "the sweeper confirms booked bills whatever a further reading shows",
        FailedJobCounts "a failed job counts as a result",
        PauseIgnored "jobs are started although the tuning is paused",
        LoweredCapIgnored "a lower cap is ignored",
        FewerJobsIgnored "a lower number of parallel jobs is ignored",
        OlderChangeStands "an older change of limits overrides a newer one",
        EndedStaysActive "an ended tuning stays on the list of active tunings",
    }
}
