//! The reasons for which a tuning ends: the names of their rules, whether a refit follows, and the check of each end.

use tuning::log::reasons::EndReason;

use crate::world::World;

macro_rules! reasons {
    ($($why:pat => $ending:literal, $ended:literal, refit: $refit:literal;)*) => {
        /// Returns the name of the rule that ends the search for a reason.
        pub(super) fn ending(why: &EndReason) -> &'static str {
            match why { $($why => $ending,)* }
        }

        /// Returns the name of the rule that ends the tuning for a reason.
        pub(super) fn ended(why: &EndReason) -> &'static str {
            match why { $($why => $ended,)* }
        }

        /// Returns whether the search ended by itself, so that a refit follows.
        pub(super) fn allows_refit(why: &EndReason) -> bool {
            match why { $($why => $refit,)* }
        }

        /// All of these rules. No search ends early for a reason "without a rule".
        pub(super) const ENDS: &[&str] = &[$($ending, $ended,)*];
    };
}

reasons! {
    EndReason::CostCap => "TuningEnding CostCap", "TuningEnded CostCap", refit: true;
    EndReason::MaxJobs => "TuningEnding without a rule", "TuningEnded MaxJobs", refit: true;
    EndReason::Target => "TuningEnding Target", "TuningEnded Target", refit: true;
    EndReason::NotImproving => "TuningEnding NotImproving", "TuningEnded NotImproving", refit: true;
    EndReason::NoCapacity => "TuningEnding NoCapacity", "TuningEnded NoCapacity", refit: false;
    EndReason::MaxRuntime => "TuningEnding MaxRuntime", "TuningEnded MaxRuntime", refit: false;
    EndReason::Stopped => "TuningEnding without a rule", "TuningEnded Stopped", refit: false;
    EndReason::Failed(_) => "TuningEnding Failed", "TuningEnded Failed", refit: false;
}

impl World {
    /// Checks the end of a search against the truth of the world, as far as the books do not show it.
    pub(crate) fn check_ending(&mut self, id: &str, why: &EndReason) {
        match why {
            EndReason::Failed(message) => self.check_failing(id, message),
            EndReason::Target => self.check_target_ending(id),
            EndReason::CostCap
            | EndReason::MaxJobs
            | EndReason::NotImproving
            | EndReason::NoCapacity
            | EndReason::MaxRuntime
            | EndReason::Stopped => {}
        }
    }
}
