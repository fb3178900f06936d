//! Jobs that emit no value of the objective: one is ended only if it was silent for as long as its tuning says, and in
//! calm times none goes on for much longer (its money would be lost).
//!
//! Reads what the program really logged; the system knows only what reached it.

use tuning::fact::JobKey;

use crate::plan::MINUTE;
use crate::world::World;
use crate::world::training::Job;

/// A line is not seen at once when the log is read, and clocks differ.
const BLUR_MS: i64 = 2 * MINUTE;
/// From the end of what is allowed to the order to stop: the time is told, a look is ordered and performed, each with the
/// next sweep or the one after.
const PATIENCE_MS: i64 = 15 * MINUTE;

/// When the program began to run, each time, and when it logged a value where it counts.
fn signs_of_life(job: &Job) -> Vec<i64> {
    let begun = job.history.iter().filter(|(_, then)| then.secondary_status == "Training").map(|(at, _)| *at);
    let counted = job.streams.iter().filter(|stream| stream.name.contains("/algo-1-"));
    let lines = counted.flat_map(|stream| &stream.lines).filter(|line| line.message.contains("auc="));
    let mut signs: Vec<i64> = begun.chain(lines.map(|line| line.timestamp)).collect();
    signs.sort_unstable();
    signs
}

impl World {
    /// A job is to be stopped for its silence of `seconds`.
    pub(crate) fn check_silence(&mut self, id: &str, key: JobKey, seconds: u64) {
        let Some(job) = self.training.of(id).find(|job| job.key == key) else { return };
        let mut signs = signs_of_life(job);
        signs.push(self.now);
        let longest = signs.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let said = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000);
        if longest < said - BLUR_MS {
            let message = format!(
                "P3: job {key} of {id} is ended for {seconds} s of silence, it was silent for {longest} ms"
            );
            self.check.violation(self.now, &message);
        }
    }

    /// In calm times: a job that is silent for long was ordered to stop.
    pub(crate) fn watch_silence(&mut self) {
        // While the decider hears nothing it ends nothing.
        let deaf_until = self.plan.stream_outage.map_or(0, |(_, to)| self.start + to + PATIENCE_MS);
        if self.now < deaf_until {
            return;
        }
        let mut wrong = Vec::new();
        for job in
            self.training.jobs.iter().filter(|job| !job.deleted && job.now.secondary_status == "Training")
        {
            let Some(allowed) = self.cases.get(job.case).and_then(|case| case.silence_ms) else { continue };
            let book = self.check.books.get(&job.id).and_then(|book| book.jobs.get(&job.key));
            if book.is_none_or(|book| book.stop_ordered || book.concluded) {
                continue;
            }
            let last = signs_of_life(job).last().copied().unwrap_or(self.now);
            if self.now - last > allowed + PATIENCE_MS {
                let minutes = (self.now - last) / MINUTE;
                wrong.push(format!("P3: {} emits nothing for {minutes} min and goes on", job.now.name));
            }
        }
        for message in wrong {
            self.check.violation(self.now, &message);
        }
    }
}
