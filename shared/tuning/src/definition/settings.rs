//! The numbers of `Controller` that only rules read. A row serves the request, its schema and the stored definition.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::unit::limits::MAX_DIVERGED_EPOCHS;

/// Defines [`Settings`]. A row has the stored field, its name in the request, its bounds, and the number where the request
/// sets none. A number without a default is an `Option<u64>`, `None` without the field.
///
/// A definition that was stored before its row exists gets the default of the row: the default of a new row must not
/// change the decisions of running tunings.
macro_rules! settings {
    ($($(#[$about:meta])* $field:ident: $type:ty = $member:literal, $least:literal..=$most:literal, else $usual:expr;)*) => {
        /// The numbers of `Controller` that only rules read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Settings {
            $($(#[$about])* pub $field: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $usual,)* }
            }
        }

        impl Settings {
            /// The path of each number in a request, and the bounds of the number.
            pub const ROWS: &[(&str, RangeInclusive<i64>)] = &[$((concat!("Controller.", $member), $least..=$most),)*];

            /// Returns the numbers that `given` returns for their names, and the default of each other one.
            pub fn given(given: impl Fn(&str) -> Option<u64>) -> Self {
                let usual = Self::default();
                Self { $($field: given($member).and_then(|number| number.try_into().ok()).unwrap_or(usual.$field),)* }
            }
        }
    };
}

settings! {
    /// Our own further attempts of one trial after a failure of the service, and the interruptions after which a spot
    /// job falls back on demand.
    max_interruptions: u32 = "MaxInterruptions", 0..=100, else 3;
    /// How long the tuning waits while no job gets instances, in seconds: an outage of a day is rare, and a tuning that
    /// waits costs nothing.
    capacity_wait_seconds: u64 = "MaxCapacityWaitSeconds", 60..=2_592_000, else 86_400;
    /// After how many epochs in a row without a finite value a trial is stopped; 0 = never.
    max_diverged_epochs: u32 = "MaxDivergedEpochs", 0..=1_000_000, else MAX_DIVERGED_EPOCHS;
}
