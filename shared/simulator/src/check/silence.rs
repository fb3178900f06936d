//! Jobs without a value of the objective: a job is stopped only if it was silent for `NoObjectiveSeconds`. Without
//! faults, a silent job is stopped soon after this time, because its money is wasted.
//!
//! Uses the real logs of the program. The system knows only the lines that reached it.

use tuning::log::fact::JobKey;

use crate::plan::MINUTE;
use crate::world::World;
use crate::world::training::Job;

/// Tolerance, in ms: new log lines are not readable at once, and clocks differ.
const BLUR_MS: i64 = 2 * MINUTE;
/// Longest time from the end of the allowed silence to the order to stop, in ms: the sweeper records the time, then a
/// look is ordered and performed, each in the next sweep or the one after.
const PATIENCE_MS: i64 = 15 * MINUTE;

/// Returns the times at which the program started and at which the metric host logged a value, in ms and in order.
pub(super) fn signs_of_life(job: &Job) -> Vec<i64> {
    let starts =
        job.history.iter().filter(|(_, then)| then.secondary_status == "Training").map(|(at, _)| *at);
    let counted = job.streams.iter().filter(|stream| stream.name.contains("/algo-1-"));
    let lines = counted.flat_map(|stream| &stream.lines).filter(|line| line.message.contains("auc="));
    let mut signs: Vec<i64> = starts.chain(lines.map(|line| line.timestamp.0)).collect();
    signs.sort_unstable();
    signs
}

impl World {
    /// Checks an order to stop a job that was silent for `seconds`.
    pub(crate) fn check_silence(&mut self, id: &str, key: JobKey, seconds: u64) {
        let Some(job) = self.training.of(id).find(|job| job.key == key) else { return };
        let mut signs = signs_of_life(job);
        signs.push(self.now);
        let longest = signs.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let claimed_ms = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        if longest < claimed_ms - BLUR_MS {
            let message = format!(
                "P3: job {key} of {id} was stopped for {seconds} s without a value, but it was silent for {longest} ms"
            );
            self.check.violation(self.now, &message);
        }
    }

    /// Checks, without faults, that a silent job was ordered to stop.
    pub(crate) fn watch_silence(&mut self) {
        // During a stream outage the decider receives nothing and stops nothing.
        let outage_until = self.plan.stream_outage.map_or(0, |(_, to)| self.start + to + PATIENCE_MS);
        if self.now < outage_until {
            return;
        }
        let mut wrong = Vec::new();
        for job in
            self.training.jobs.iter().filter(|job| !job.deleted && job.now.secondary_status == "Training")
        {
            let Some(allowed) = self.cases.get(job.case).and_then(|case| case.silence_ms) else { continue };
            let book = self.check.books.get(&job.id).and_then(|book| book.jobs.get(&job.key));
            if book.is_none_or(|book| book.stop_ordered || book.concluded) || self.has_all_epochs(job) {
                continue;
            }
            let last = signs_of_life(job).last().copied().unwrap_or(self.now);
            if self.now - last > allowed + PATIENCE_MS {
                let minutes = (self.now - last) / MINUTE;
                wrong.push(format!(
                    "P3: job {} has logged no value for {minutes} min and was not stopped",
                    job.now.name
                ));
            }
        }
        for message in wrong {
            self.check.violation(self.now, &message);
        }
    }
}
