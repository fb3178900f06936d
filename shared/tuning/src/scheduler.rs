//! The competition between trials: cohorts, rungs, and the trials that wait at rungs. Contains no data about money,
//! time or jobs.

mod cohort;
mod rung;
mod waiting;

pub use cohort::Cohort;
pub(crate) use rung::rival;
pub use rung::{Arrival, Rung, judge};
pub use waiting::{Parked, ParkedTrials, Waiting};
