//! A warning: what will happen, and how to avoid it. Its code is a stable name for programs.

use std::fmt::Write;

use console::style;
use serde_json::{Value, json};
use wire::notice::Notice;

use crate::text::clean;

/// Defines [`Code`] with the list of its values, so that no value is missing from the list.
macro_rules! codes {
    ($($name:ident,)*) => {
        /// The kind of a warning. Its name is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code {
            $($name,)*
        }

        impl Code {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

codes! {
    NoCostCap,
    CapAdmitsFewerJobs,
    CapEndsEarly,
    SpotWithoutCheckpoint,
    PromoteWithoutCheckpoint,
    SpotWaitShort,
    SpotWaitAboveHour,
    InstanceQuota,
    InstancesPerJobQuota,
    WarmPoolQuota,
    KeepAliveLong,
    EpochsCountedOnSpot,
    ShardedNeedsObjects,
    ShardedValidation,
    MaxJobsCompareNothing,
    NoRungBeforeEnd,
    MaxResourceNotReached,
    JobsCutByMaxRuntime,
    TuningCutByMaxRuntime,
    StartupAboveTraining,
    RungExecutionDiffers,
    RangeOfOneValue,
    CategoryRepeated,
    LinearOverOrders,
    LinearRate,
    ObjectiveDirection,
    NoValuesPerEpoch,
    ResourceIsCheckpoints,
    ObjectiveAtEnd,
    ResumeBroken,
    NoCheckpoints,
    StoppedJobsLeaveNoModel,
    BuiltInDefinitions,
    LineNotCertain,
    RegexRequiredByStack,
    NumberCut,
    NumberCutInLog,
    FirstGroupIsName,
    EpochCutInLog,
    LineRedrawn,
    LineEndsLate,
    SeveralValuesInLine,
    EpochRepeated,
    ObjectiveConstant,
    ObjectiveNotInLog,
    ObjectiveOnceInLog,
    EpochNotInLog,
    EpochBelowBase,
    EpochAboveBase,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) code: Code,
    /// What will happen, as a sentence.
    pub(crate) message: String,
    /// How to avoid it, as a sentence.
    pub(crate) advice: String,
}

impl Warning {
    /// Returns the warning about a problem that running tunings report too.
    pub(crate) fn of_notice(code: Code, notice: Notice) -> Self {
        debug_assert_eq!(code.name(), notice.code);
        Self::new(code, notice.message, notice.advice)
    }

    pub(crate) fn new(code: Code, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code, message: message.into(), advice: advice.into() }
    }

    /// Returns the warning about one of several training job definitions.
    pub(crate) fn of_definition(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name {
            self.message = format!("definition '{name}': {}", self.message);
        }
        self
    }

    /// Returns the warning if `condition` holds.
    pub(crate) fn when(
        condition: bool,
        code: Code,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Option<Self> {
        condition.then(|| Self::new(code, message, advice))
    }
}

pub(crate) fn text(warnings: &[Warning]) -> String {
    let mut text = String::new();
    for Warning { code, message, advice } in warnings {
        let (word, code) = (style("warning:").yellow().bold(), code.name());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{word} {} [{code}]\n  {}", clean(message), clean(advice));
    }
    text
}

/// Returns the warning as text without colors, for standard error.
pub(crate) fn plain(warning: &Warning) -> String {
    let Warning { code, message, advice } = warning;
    let code = code.name();
    format!("warning: {message} [{code}]\n  {advice}")
}

pub(crate) fn json(warnings: &[Warning]) -> Value {
    let shown = warnings.iter().map(
        |warning| json!({"Code": warning.code.name(), "Message": warning.message, "Advice": warning.advice}),
    );
    Value::Array(shown.collect())
}
