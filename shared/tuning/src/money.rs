//! The sums of a tuning: its ledger, and its grants from the month's cap. Contains no data about jobs.

pub mod grants;
pub mod ledger;

#[cfg(test)]
mod tests;
