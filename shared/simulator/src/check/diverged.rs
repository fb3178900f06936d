//! Diverged trials: a trial is stopped only if its program logged no finite value for `MaxDivergedEpochs`. Once the
//! faults are over, such a trial is stopped soon.

use tuning::log::fact::JobKey;

use crate::case::{Case, Epochs};
use crate::fault::Kind;
use crate::plan::MINUTE;
use crate::world::World;
use crate::world::training::{Job, LogStream};
use crate::world::watch::QUIET_MINUTES;

/// Longest time from a log line to the order to stop, in ms.
const PATIENCE_MS: i64 = 15 * MINUTE;

impl World {
    /// Checks an order to stop a job whose trial had no finite value for `epochs` epochs.
    pub(crate) fn check_diverged(&mut self, id: &str, key: JobKey, epochs: u32) {
        let jobs: Vec<_> = self.training.of(id).filter(|job| job.key.trial == key.trial).collect();
        let furthest = jobs.iter().filter_map(|job| job.logged).map(|(_, last)| last).max().unwrap_or(0);
        let first = (furthest + 1).saturating_sub(epochs);
        let finite = |epoch: u32| jobs.iter().any(|job| job.program.value(epoch).is_none_or(f64::is_finite));
        let case = self.check.books.get(id).map(|book| &book.case);
        let asked = case.map(Case::max_diverged_epochs);
        // A line that is late or lost can hide a finite value between a glitch and other epochs. Where lines do not
        // contain the epoch, it also moves a glitch.
        let hides = self.faults.can_strike(Kind::LogLost) || self.faults.can_strike(Kind::LogDelayed);
        let moves = hides || case.is_some_and(|case| case.epochs != Epochs::Absolute);
        let diverged = (1..=furthest).filter(|epoch| !finite(*epoch)).count();
        let scattered = moves && diverged >= usize::try_from(epochs).unwrap_or(usize::MAX);
        let in_a_row = first > 0 && !(first..=furthest).any(finite);
        if asked != Some(epochs) || !(in_a_row || scattered) {
            let message = format!(
                "Diverged: job {key} of {id} was stopped after {epochs} epochs, but its program logged up to {furthest}"
            );
            self.check.violation(self.now, &message);
        }
    }

    /// Checks that a diverged trial was ordered to stop. Called once no process of a faulty time can be left.
    pub(crate) fn watch_diverged(&mut self) {
        let calm_from = (self.now - QUIET_MINUTES * MINUTE).max(self.start + self.plan.outages_end());
        let old = |at: i64| (calm_from..self.now - PATIENCE_MS).contains(&at);
        let lines = |job: &Job| {
            let counted = job.streams.iter().filter(|stream| stream.name.contains("/algo-1-"));
            let diverged = |stream: &LogStream| {
                let lines = stream.lines.iter();
                lines.filter(|line| line.message.contains("auc=nan") && old(line.timestamp.0)).count()
            };
            let by_stream: Vec<_> = counted.map(diverged).collect();
            // A restarted program logs epochs again, and its epochs are not always known while it runs.
            let restarted = by_stream.len() > 1 && self.cases[job.case].epochs != Epochs::Absolute;
            by_stream.into_iter().max().filter(|_| !restarted).unwrap_or(0)
        };
        let mut wrong = Vec::new();
        // The epochs of a job that continues another are not always known while it runs.
        let first = |job: &&Job| job.key.attempt == 1 && !job.deleted && !job.is_ended();
        for job in self.training.jobs.iter().filter(first) {
            let Some(book) = self.check.books.get(&job.id) else { continue };
            let most = usize::try_from(book.case.max_diverged_epochs()).unwrap_or(usize::MAX);
            let stops = book.jobs.get(&job.key).is_none_or(|job| job.stop_ordered || job.concluded);
            let lines = lines(job);
            if !stops && !self.has_all_epochs(job) && lines >= most {
                wrong.push(format!(
                    "Diverged: job {} logged {lines} values that are not finite",
                    job.now.name
                ));
            }
        }
        for message in wrong {
            self.check.violation(self.now, &message);
        }
    }
}
