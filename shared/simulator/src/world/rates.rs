//! The rates of calls that the whole account shares: all functions together keep to them.

use std::collections::VecDeque;

use super::World;
use crate::fault::Kind;
use crate::plan::MINUTE;

/// Most creates in a minute: one each 1,250 ms, and the three that come at once.
const CREATES_MAX: usize = 51;
/// Most pages of logs read in a minute: one each 400 ms, half of the account's rate, and the one that came first.
const LOG_READS_MAX: usize = 151;

/// The times of the calls of the last minute, in ms.
#[derive(Debug, Default)]
pub(super) struct Rates {
    creates: VecDeque<i64>,
    log_reads: VecDeque<i64>,
}

impl World {
    /// Counts a create. A late one comes beside the others.
    pub(super) fn check_create_rate(&mut self) {
        let creates = count(&mut self.training.rates.creates, self.now);
        if creates > CREATES_MAX && !self.clocks_differ() && !self.plan.rates.contains_key(&Kind::CreateLate)
        {
            self.check.violation(self.now, &format!("pace: {creates} jobs were created in a minute"));
        }
    }

    /// Counts a page of a log.
    pub(super) fn check_read_rate(&mut self) {
        let reads = count(&mut self.training.rates.log_reads, self.now);
        if reads > LOG_READS_MAX && !self.clocks_differ() {
            self.check.violation(self.now, &format!("pace: {reads} pages of logs were read in a minute"));
        }
    }

    /// Returns whether two functions may take the same turn.
    fn clocks_differ(&self) -> bool {
        self.plan.skew_ms_max > 0
    }
}

fn count(times: &mut VecDeque<i64>, now: i64) -> usize {
    times.push_back(now);
    times.retain(|at| *at > now - MINUTE);
    times.len()
}
