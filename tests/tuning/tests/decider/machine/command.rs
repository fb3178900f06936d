//! The commands of the state machine test.

use proptest::prelude::*;
use tuning::log::fact::JobEnd;

/// A command. Its first number selects one of the valid targets, so every sequence and every part of it is valid.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// An ordered action is performed.
    Perform(usize),
    /// An ordered start is refused.
    Refuse(usize),
    /// An ordered action is deferred by a number of seconds, because of a quota if the flag is set.
    Defer(usize, i64, bool),
    /// A running job emits a number of further epochs.
    Emit(usize, u32),
    /// A running job changes its state: interrupted if the flag is set, else training.
    ChangeState(usize, bool),
    /// The service shows that a running job still exists.
    See(usize),
    /// A running job ends with an end and a number of billed seconds.
    End(usize, JobEnd, u64),
    /// The service describes an ended job without a request.
    Describe(usize),
    /// The bill of an ended job rises by a number of seconds, and the service describes it.
    Raise(usize, u64),
    /// The bill of an ended job is read once more.
    Confirm(usize),
    /// A number of facts in flight arrive in one delivery.
    Deliver(usize, usize),
    /// A delivered fact arrives again.
    Again(usize),
    /// A fact in flight is lost.
    Drop(usize),
    /// The user stops the tuning.
    Stop,
    /// Time passes, and the sweeper reports it.
    Pass(i64),
    /// Time passes without a report, so later facts may arrive first.
    Wait(i64),
    /// A fact denies the start of a job that was seen to exist.
    DenyStart(usize),
}

pub(crate) fn commands() -> impl Strategy<Value = Vec<Command>> {
    let ends = prop::sample::select(vec![
        JobEnd::Completed,
        JobEnd::AlgorithmError,
        JobEnd::CapacityError,
        JobEnd::ServiceError,
        JobEnd::MaxWait,
        JobEnd::Stopped,
        JobEnd::MaxRuntime,
    ]);
    let seconds = prop_oneof![30 => 0_u64..=420, 1 => 421_u64..900];
    let waits = prop_oneof![20 => 1_i64..100, 1 => 1_000_i64..9_000];
    let command = prop_oneof![
        12 => (0_usize..6).prop_map(Command::Perform),
        1 => (0_usize..6).prop_map(Command::Refuse),
        2 => (0_usize..6, 1_i64..300, any::<bool>()).prop_map(|(index, seconds, quota_exceeded)| {
            Command::Defer(index, seconds, quota_exceeded)
        }),
        12 => (0_usize..6, 1_u32..4).prop_map(|(index, epochs)| Command::Emit(index, epochs)),
        2 => (0_usize..6, any::<bool>()).prop_map(|(index, interrupted)| {
            Command::ChangeState(index, interrupted)
        }),
        2 => (0_usize..6).prop_map(Command::See),
        4 => (0_usize..6, ends, seconds).prop_map(|(index, end, seconds)| Command::End(index, end, seconds)),
        1 => (0_usize..6).prop_map(Command::Describe),
        1 => (0_usize..6, 1_u64..200).prop_map(|(index, seconds)| Command::Raise(index, seconds)),
        2 => (0_usize..6).prop_map(Command::Confirm),
        20 => (0_usize..12, 1_usize..4).prop_map(|(index, count)| Command::Deliver(index, count)),
        3 => (0_usize..40).prop_map(Command::Again),
        3 => (0_usize..12).prop_map(Command::Drop),
        1 => prop::bool::weighted(0.2).prop_map(|stop| if stop { Command::Stop } else { Command::Pass(5) }),
        4 => waits.clone().prop_map(Command::Pass),
        2 => waits.prop_map(Command::Wait),
        1 => (0_usize..6).prop_map(Command::DenyStart),
    ];
    prop::collection::vec(command, 1..250)
}
