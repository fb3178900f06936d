//! Who competes with whom: cohorts, rungs, and the trials that wait at them. Knows no money, time or job.

mod cohort;
mod rung;
mod waiting;

pub use cohort::Cohort;
pub(crate) use rung::rival;
pub use rung::{Arrival, Rung, judge};
pub use waiting::{Parked, ParkedTrials, Waiting};
