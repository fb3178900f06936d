//! What the sampler learns from the end of a trial: its values, that its configuration is bad, or nothing.

use crate::log::reasons::{StopWhy, TrialEnd};
use crate::trial::Trial;

/// What the sampler learns from the end of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lesson {
    Values,
    /// That its configuration is bad, whatever values it logged.
    Bad,
    /// Nothing: its end was no effect of its configuration, and it has no value.
    Nothing,
}

/// Returns the lesson of a trial that ended like `how`.
pub(crate) fn lesson(how: &TrialEnd, failed_by_program: bool, trial: &Trial) -> Lesson {
    let values = if trial.has_value() { Lesson::Values } else { Lesson::Nothing };
    match how {
        TrialEnd::Failed(_) if failed_by_program => Lesson::Bad,
        TrialEnd::Stopped(StopWhy::Diverged { .. }) => Lesson::Bad,
        // It was stopped for a value that is not finite.
        TrialEnd::Stopped(StopWhy::Rung { .. }) if trial.ends_diverged() => Lesson::Bad,
        TrialEnd::Completed
        | TrialEnd::MaxRuntime
        | TrialEnd::Stopped(
            StopWhy::Rung { .. }
            | StopWhy::MaxResource
            | StopWhy::PastLevel { .. }
            | StopWhy::NoObjective { .. }
            | StopWhy::ReservationUsed { .. },
        ) => Lesson::Values,
        TrialEnd::NeverStarted | TrialEnd::Stopped(StopWhy::Requested) => Lesson::Nothing,
        TrialEnd::Failed(_)
        | TrialEnd::StoppedOutside
        | TrialEnd::Stopped(
            StopWhy::TuningEnding
            | StopWhy::TargetReached { .. }
            | StopWhy::Interruptions { .. }
            | StopWhy::NextInstances
            | StopWhy::Quota
            | StopWhy::OutOfReach
            | StopWhy::CapExceeded { .. },
        ) => values,
    }
}
