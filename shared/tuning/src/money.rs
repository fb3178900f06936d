//! The sums of a tuning: its ledger, and its grants from the month's cap. Knows no job.

pub mod grants;
pub mod ledger;
