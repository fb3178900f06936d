//! Planted mutations: bugs of one line each, put where they would hurt, to see whether the checkers find them.
//!
//! Only with feature `planted`, which no other crate's default turns on: without it [`planted!`](crate::planted!) is the
//! word `false` and nothing else of this is compiled. One mutation at most is on, in the thread that turned it on.

/// Whether the mutation of that name is on; `false` at compile time without feature `planted`.
#[cfg(feature = "planted")]
#[macro_export]
macro_rules! planted {
    ($mutation:ident) => {
        $crate::planted::is_on($crate::planted::Mutation::$mutation)
    };
}

/// Whether the mutation of that name is on; `false` at compile time without feature `planted`.
#[cfg(not(feature = "planted"))]
#[macro_export]
macro_rules! planted {
    ($mutation:ident) => {
        false
    };
}

#[cfg(feature = "planted")]
pub use list::{Mutation, is_on, plant, struck};

#[cfg(feature = "planted")]
mod list {
    use std::cell::Cell;

    thread_local! {
        static ON: Cell<Option<Mutation>> = const { Cell::new(None) };
        static STRUCK: Cell<u64> = const { Cell::new(0) };
    }

    /// Turns `mutation` on in this thread, and any other off; from now on its uses are counted anew.
    pub fn plant(mutation: Option<Mutation>) {
        ON.set(mutation);
        STRUCK.set(0);
    }

    /// How often the code came to the place of the mutation that is on.
    pub fn struck() -> u64 {
        STRUCK.get()
    }

    /// Whether `mutation` is on in this thread; counts that it was asked for.
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
                /// All of them.
                pub const ALL: &[Self] = &[$(Self::$mutation,)*];

                /// Its name, as in `planted!(Name)`.
                pub fn name(self) -> &'static str {
                    match self { $(Self::$mutation => stringify!($mutation),)* }
                }

                /// What the code does when it is on.
                pub fn what(self) -> &'static str {
                    match self { $(Self::$mutation => $what,)* }
                }
            }
        };
    }

    mutations! {
        SkipConditionOnSave "a step is saved although another decider was first",
        TokenOfStepNumber "two deciders write different steps under one transaction token",
        DropOutbox "a step is saved without the rows of its actions",
        RowsBeforeStep "the rows of actions are written before the step that orders them",
        ForgetToSettle "a bill frees no reservation",
        StopFreesReservation "an accepted stop frees the job's reservation",
        CapWithoutReservations "the cap is compared with what is spent alone",
        RetryKeepsReservation "a further attempt leaves the former one's reservation standing",
        LateBillSettledAtZero "a bill that never came is settled at nothing",
        ZeroBillBelieved "a bill of nothing is taken for a job that was seen to run",
        LagBelieved "a description that lags behind is taken for the bill",
        OneMoreGoesOn "a rung lets one more trial go on than it may",
        OneMoreStopped "a rung lets one trial less go on than it may",
        PromoteDiverged "a trial whose value is not a number may go on",
        KeepFailure "a trial whose program failed is tried again",
        ReuseName "a further attempt has the name of the former one",
        AttemptsWithoutLimit "a trial is tried again without limit",
        CountEpochTwice "a line that comes twice counts as two epochs",
        InterruptionTwice "a state that is told twice is folded twice",
        NoLogRead "a trial is judged by rank after a restart although its log was not read",
        BillHourByFacts "the hour for a bill counts from the greatest time on a fact",
        CalledOffThoughSeen "a job that was seen is called off by a fact that came late",
        MaxInstancesIgnored "jobs are started above `MaxInstances`",
        FactWithoutCondition "a fact that is known is put again",
        RowWithoutRevision "an action's row is changed although another changed it meanwhile",
        CreateWithoutClaim "a job is created before its row says so",
        ClaimNeverExpires "an action whose performer died is never taken up again",
        ExpiredClaimGood "a job is created under a claim that has expired",
        CallOffAtOnce "a start is called off without waiting for what may be under way",
        CallOffStarted "a start that is done is called off",
        RefusalBelieved "a refusal is believed although an earlier try may have been accepted",
        RefusalInTwoWrites "a refused start frees its money before its row says so",
        StopFailureIsDone "a stop that was throttled counts as done",
        RingIgnored "a ring changes nothing",
        SnapshotLosesField "a snapshot forgets the timings",
        SnapshotOffByOne "a snapshot claims to hold one step more than it does",
        SnapshotWithoutSteps "a state is read from its snapshot without the later steps",
        ConcludeUnbilled "a job is concluded when its end is known, before its bill",
        StopFreesSlot "a job that is to stop holds no slot any more",
        OffsetUnproven "after a restart the epochs go on from the highest one, checkpoint or not",
        BillWithoutLog "a job is concluded without reading the rest of its log",
        BillBeforeFacts "a bill is folded before the stored facts of its job",
        UndoForgotten "a start that was called off while it was under way leaves its job running",
        ForeignJobAdopted "a job of our name without our tags is taken for ours",
        LoseSweep "the sweeper does nothing",
        SweeperStopsNothing "the sweeper performs no stop that is owed",
        SweeperStartsNothing "the sweeper performs no start that is owed",
        SweeperBillsNothing "the sweeper reads no bill that is owed",
        SweeperReadsNothing "the sweeper reads no log that is owed",
        SilentJobIgnored "a job that shows no sign of life is not looked at",
        SignOfLifeUntold "nobody is told that a job of which nothing is heard is still there",
        SilentTuningIgnored "a tuning without a step is not rung",
        DeadlineNeverTold "the decider is never told that its deadline has passed",
        OrphanNeverStopped "a running job that no row knows is left alone",
        ForeignJobStopped "a running job without our tag is stopped",
        GrantAnsweredTwice "an asking for money that is performed twice is granted twice",
        GrantAboveCap "the month's cap is not looked at when money is granted",
        ReturnForgotten "a tuning that ends gives back nothing",
        ReturnNotBooked "money that is given back is not booked at its month",
        NoticeForgotten "a notice whose stream record was lost is never given",
        SilenceNotLooked "a silent job is ended without a look at its log",
        SilenceNeverEnds "a silent job goes on",
        CapLevelUntold "nobody is told of a share of the cap",
        PromoteFailed "a trial that failed or diverged may be promoted",
        OneMorePromoted "a rung promotes one more trial than it may",
        PromoteBeforeClosed "a synchronous rung promotes although trials are on their way to it",
        ForgetFailedPlace "a trial that failed does not keep its place at its rung",
        WrongLevel "a promoted job is told the level of the rung before",
        RepeatUntold "nobody is told that a promoted job did not go on from its checkpoint",
        CheckpointPrefixOfAttempt "each job of a trial has checkpoints of its own",
        LinesPlacedAtZero "the lines of a promoted job that counts anew are placed at the beginning",
        PoolForgotten "instances that are kept after a job are reserved no more once it is billed",
        RefitTwice "the best configuration is trained once more although it was",
        RefitMoneySpent "no money is kept back for the job that trains the best configuration once more",
        RefitJobUsed "no job is kept back that trains the best configuration once more",
        SearchAfterRefit "the search goes on when the best configuration was trained once more",
        OnDemandUnasked "a job goes on on demand although nobody asked for that",
        OnDemandAtSpotLimits "a job on demand has the limits and the worst case of one on spot",
        OnDemandTooSoon "a job is stopped one interruption too early",
        OnDemandForgotten "a job that was interrupted too often is tried again on spot",
        OthersPricedAsFirst "the worst case of a job on other instances is that on the first",
        OthersBilledAsFirst "the bill of a job on other instances is reckoned at the price of the first",
        CapacityForgotten "instances that lacked capacity are asked for again at once",
        PauseIgnored "jobs are started although the tuning is paused",
        LoweredCapIgnored "a lower cap is not taken",
        FewerJobsIgnored "a lower number of jobs at once is not taken",
        OlderChangeStands "a change of limits that was made before another overrides it",
        EndedStaysActive "a tuning that has ended stays on the list of active ones",
    }
}
