//! The names of the decision rules: every kind of ruling with its reason. The list is complete, so that the report
//! shows each rule that no history used.

use tuning::log::reasons::{RetryWhy, StopWhy, TrialEnd};
use tuning::log::ruling::{
    AttemptRuling, Booking, GrantOrder, NoticeOrder, Order, PoolOrder, ReadOrder, Ruling, SearchRuling,
};
use tuning::unit::epochs::Epochs;

use super::reasons;

macro_rules! rules {
    ($($pattern:pat $(if $guard:expr)? => $name:literal,)*; $never:pat => $not:literal; $($change:literal,)*) => {
        /// Returns the name of the rule that a ruling follows.
        pub(crate) fn name(ruling: &Ruling) -> &'static str {
            match ruling {
                $($pattern $(if $guard)? => $name,)*
                Ruling::TuningEnding { why } => reasons::ending(why),
                Ruling::Order(Order::Notice(NoticeOrder::TuningEnded { why })) => reasons::ended(why),
                $never => $not,
            }
        }

        /// Returns all rules, and the effects of changes of limits.
        pub(crate) fn all() -> impl Iterator<Item = &'static str> {
            [&[$($name,)*], reasons::ENDS, &[$($change,)*]].into_iter().flatten().copied().filter(|name| !name.ends_with(" without a rule"))
        }
    };
}

rules! {
    Ruling::Search(SearchRuling::TrialJudged { verdict, .. }) if verdict.continues => "TrialJudged continues",
    Ruling::Search(SearchRuling::TrialJudged { value: None, .. }) => "TrialJudged out, no value",
    Ruling::Search(SearchRuling::TrialJudged { .. }) => "TrialJudged out",
    Ruling::Search(SearchRuling::RungReached { resource, level, .. }) if resource > level => "RungReached, beyond its level",
    Ruling::Search(SearchRuling::RungReached { resource, level, .. }) if resource < level => "RungReached, ended before its level",
    Ruling::Search(SearchRuling::RungReached { value: None, .. }) => "RungReached, no value",
    Ruling::Search(SearchRuling::RungReached { .. }) => "RungReached",
    Ruling::Search(SearchRuling::TrialPromoted { reached_target: true, .. }) => "TrialPromoted, target reached",
    Ruling::Search(SearchRuling::TrialPromoted { .. }) => "TrialPromoted",
    Ruling::Search(SearchRuling::TrialDrawn { .. }) => "TrialDrawn",
    Ruling::Attempt(AttemptRuling::ResourceRepeated { from: Epochs::ZERO, .. }) => "ResourceRepeated from the beginning",
    Ruling::Attempt(AttemptRuling::ResourceRepeated { .. }) => "ResourceRepeated",
    Ruling::Order(Order::Start { launch, .. }) if launch.refit => "Start refit",
    Ruling::Order(Order::Start { launch, .. }) if launch.on_demand => "Start on demand",
    Ruling::Order(Order::Start { launch, .. }) if launch.instances.0 > 0 => "Start on other instances",
    Ruling::Order(Order::Start { job, .. }) if job.attempt > job.rung.next().0 => "Start further attempt",
    Ruling::Order(Order::Start { job, .. }) if job.rung.0 > 0 => "Start promoted",
    Ruling::Order(Order::Start { .. }) => "Start",
    Ruling::Order(Order::Stop { why: StopWhy::Rung { .. }, .. }) => "Stop Rung",
    Ruling::Order(Order::Stop { why: StopWhy::MaxResource, .. }) => "Stop MaxResource",
    Ruling::Order(Order::Stop { why: StopWhy::PastLevel { .. }, .. }) => "Stop PastLevel",
    Ruling::Order(Order::Stop { why: StopWhy::NextInstances, .. }) => "Stop NextInstances",
    Ruling::Order(Order::Stop { why: StopWhy::Quota, .. }) => "Stop Quota",
    Ruling::Order(Order::Stop { why: StopWhy::OutOfReach, .. }) => "Stop OutOfReach",
    Ruling::Order(Order::Stop { why: StopWhy::TuningEnding, .. }) => "Stop TuningEnding",
    Ruling::Order(Order::Stop { why: StopWhy::TargetReached { .. }, .. }) => "Stop TargetReached",
    Ruling::Order(Order::Stop { why: StopWhy::Requested, .. }) => "Stop Requested",
    Ruling::Order(Order::Stop { why: StopWhy::NoObjective { .. }, .. }) => "Stop NoObjective",
    Ruling::Order(Order::Stop { why: StopWhy::Diverged { .. }, .. }) => "Stop Diverged",
    Ruling::Order(Order::Stop { why: StopWhy::ReservationUsed { .. }, .. }) => "Stop ReservationUsed",
    Ruling::Order(Order::Stop { why: StopWhy::CapExceeded { .. }, .. }) => "Stop CapExceeded",
    Ruling::Order(Order::Stop { why: StopWhy::Interruptions { .. }, .. }) => "Stop Interruptions",
    Ruling::Order(Order::Read(ReadOrder::Bill { .. })) => "ReadBill",
    Ruling::Order(Order::Read(ReadOrder::Log { .. })) => "ReadLog",
    Ruling::Order(Order::Read(ReadOrder::Rest { at_once: true, .. })) => "ReadRest AtOnce",
    Ruling::Order(Order::Read(ReadOrder::Rest { at_once: false, .. })) => "ReadRest Whole",
    Ruling::Order(Order::Read(ReadOrder::Silence { .. })) => "Look",
    Ruling::Order(Order::Grant(GrantOrder::Request { .. })) => "RequestGrant",
    Ruling::Order(Order::Grant(GrantOrder::Return { .. })) => "ReturnGrant",
    Ruling::Order(Order::Notice(NoticeOrder::CapReached { percent: 50 })) => "CapReached 50",
    Ruling::Order(Order::Notice(NoticeOrder::CapReached { percent: 80 })) => "CapReached 80",
    Ruling::Order(Order::Notice(NoticeOrder::CapReached { .. })) => "CapReached 100",
    Ruling::Order(Order::Notice(NoticeOrder::MonthCapReached { percent: 50, .. })) => "MonthCapReached 50",
    Ruling::Order(Order::Notice(NoticeOrder::MonthCapReached { percent: 80, .. })) => "MonthCapReached 80",
    Ruling::Order(Order::Notice(NoticeOrder::MonthCapReached { .. })) => "MonthCapReached 100",
    Ruling::Booking(Booking::BillBooked { .. }) => "BillBooked",
    Ruling::Booking(Booking::SettledInFull { .. }) => "SettledInFull",
    Ruling::Booking(Booking::ReservationExtended { .. }) => "ReservationExtended",
    Ruling::Order(Order::Pool(PoolOrder::Read { last: true, .. })) => "ReadPool, keep-alive period over",
    Ruling::Order(Order::Pool(PoolOrder::Read { .. })) => "ReadPool",
    Ruling::Order(Order::Pool(PoolOrder::Release { .. })) => "ReleasePool",
    Ruling::Booking(Booking::PoolClosed { seconds: None, .. }) => "PoolClosed in full",
    Ruling::Booking(Booking::PoolClosed { .. }) => "PoolClosed",
    Ruling::Order(Order::Notice(NoticeOrder::OverrunSeen)) => "OverrunSeen",
    Ruling::Order(Order::Notice(NoticeOrder::CapacityLacking { .. })) => "CapacityLacking",
    Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::Capacity, .. }) => "AttemptAwaited Capacity",
    Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::MaxWait, .. }) => "AttemptAwaited MaxWait",
    Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::ServiceError, .. }) => "AttemptAwaited ServiceError",
    Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::RuntimeCutTooShort, .. }) => "AttemptAwaited RuntimeCutTooShort",
    Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::NextInstances, .. }) => "AttemptAwaited NextInstances",
    Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::Quota, .. }) => "AttemptAwaited Quota",
    Ruling::Attempt(AttemptRuling::AttemptAwaited { why: RetryWhy::OnDemand, .. }) => "AttemptAwaited OnDemand",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Completed, .. }) => "TrialFinished Completed",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::Rung { .. }), job: None, .. }) =>
        "TrialFinished Stopped Rung, waiting",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::TuningEnding), job: None, .. }) =>
        "TrialFinished Stopped TuningEnding, waiting",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::OutOfReach), .. }) =>
        "TrialFinished Stopped OutOfReach",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::PastLevel { .. }), .. }) =>
        "TrialFinished Stopped PastLevel",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::Rung { .. }), .. }) => "TrialFinished Stopped Rung",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::MaxResource), .. }) => "TrialFinished Stopped MaxResource",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::TuningEnding), .. }) => "TrialFinished Stopped TuningEnding",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::TargetReached { .. }), .. }) =>
        "TrialFinished Stopped TargetReached",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::Requested), .. }) => "TrialFinished Stopped Requested",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::NoObjective { .. }), .. }) =>
        "TrialFinished Stopped NoObjective",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::Diverged { .. }), .. }) =>
        "TrialFinished Stopped Diverged",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::Interruptions { .. }), .. }) =>
        "TrialFinished Stopped Interruptions",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::CapExceeded { .. }), .. }) =>
        "TrialFinished Stopped CapExceeded",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::StoppedOutside, .. }) => "TrialFinished StoppedOutside",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::MaxRuntime | TrialEnd::Stopped(StopWhy::ReservationUsed { .. }), .. }) => "TrialFinished MaxRuntime",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Failed(_), job: None, .. }) => "TrialFinished Failed, no further attempt",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Failed(_), .. }) => "TrialFinished Failed",
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::NeverStarted, .. }) => "TrialFinished NeverStarted",
    ;
    // Only if the tuning ends at the same time.
    Ruling::Attempt(AttemptRuling::TrialFinished { how: TrialEnd::Stopped(StopWhy::NextInstances | StopWhy::Quota), .. }) => "TrialFinished without a rule";
    "LimitsChanged, cap raised",
    "LimitsChanged, cap lowered",
    "LimitsChanged, cap below the booked amount",
    "LimitsChanged, more jobs",
    "LimitsChanged, fewer jobs",
    "LimitsChanged, paused",
    "LimitsChanged, resumed",
    "LimitsChanged, superseded by a later change",
}
