//! The verdicts of the reference: the value with which a trial arrives at a rung, its rank, and whether it continues.
//!
//! Must never call the decider.

use tuning::definition::Objective;
use tuning::log::fact::JobEnd;
use tuning::log::ruling::Verdict;

use super::{Due, Phase, Reference, Trial};

impl Reference {
    /// Returns the epoch and value that count at the next rung of a trial, if a verdict is due.
    pub(super) fn due(&self, number: u32) -> Option<Due> {
        let trial = &self.trials[usize::try_from(number).unwrap()];
        let (_, level) = *self.table[trial.bracket].get(trial.next_rung)?;
        let over = trial.finished || trial.out || self.has_diverged(trial) || self.finalist.is_some();
        if over || level >= self.max_resource || self.phase != Phase::Active {
            return None;
        }
        let mut live = self.entries.iter().filter(|entry| entry.job.trial.0 == number && !entry.concluded);
        let completed =
            !self.is_median() && live.any(|entry| entry.is_closed() && entry.end == Some(JobEnd::Completed));
        let (last, value) = self.arrived_with(trial, level, completed)?;
        // The best epoch up to then counts, the first of equal ones.
        let up_to = trial.curve.iter().filter(|(epoch, _)| **epoch <= last);
        let mut best = up_to.filter_map(|(epoch, value)| Some((*epoch, (*value)?))).collect::<Vec<_>>();
        let sum = best.iter().fold(0.0, |sum, (_, value)| sum + value);
        let average = sum / f64::from(u32::try_from(best.len()).unwrap());
        best.sort_by(|a, b| match self.definition.objective {
            Objective::Maximize => b.1.total_cmp(&a.1),
            Objective::Minimize => a.1.total_cmp(&b.1),
        });
        let best = best.first().filter(|_| value.is_some());
        let average = Some(average).filter(|_| self.is_median());
        Some(best.map_or((last, None, None), |(epoch, value)| (*epoch, Some(*value), average)))
    }

    /// Returns the epoch and value that count at a level: the first finite value there or above, or a row without one.
    /// A completed program arrives with its last finite value.
    fn arrived_with(&self, trial: &Trial, level: u32, completed: bool) -> Option<(u32, Option<f64>)> {
        let most = usize::try_from(self.definition.settings.max_diverged_epochs).unwrap();
        let most = if most == 0 { 3 } else { most };
        let points: Vec<_> = trial.curve.iter().map(|(epoch, value)| (*epoch, *value)).collect();
        let is_row =
            |end: usize| end >= most && points[end - most..end].iter().all(|(_, value)| value.is_none());
        let counts = |n: &usize| points[*n].0 >= level && (points[*n].1.is_some() || is_row(n + 1));
        if let Some(n) = (0..points.len()).find(counts) {
            return Some(points[n]);
        }
        let last = points.last().filter(|_| completed)?;
        let finite = points.iter().rev().find(|(_, value)| value.is_some()).filter(|_| !is_row(points.len()));
        Some(*finite.unwrap_or(&(last.0, None)))
    }

    /// "P6 a rung never promotes more than it may, and never a failure."
    #[track_caller]
    pub(super) fn judged(
        &mut self,
        number: u32,
        place: (usize, usize),
        (value, average): (Option<f64>, Option<f64>),
        verdict: Verdict,
    ) {
        // An equal average is not better.
        let tie = if self.is_median() { 0 } else { number };
        let minimize = self.definition.objective == Objective::Minimize;
        let level_of = |(bracket, rung): (usize, usize)| self.table[bracket][rung].1;
        let at_level = self.arrived.iter().filter(|(other, _)| level_of(**other) == level_of(place));
        let others: Vec<_> = at_level.flat_map(|(_, list)| list.iter().copied()).collect();
        let ahead = others.iter().filter(|(trial, other, _)| match (*other, value) {
            (Some(other), Some(value)) if minimize => (other, *trial) < (value, tie),
            (Some(other), Some(value)) => (-other, *trial) < (-value, tie),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => *trial < tie,
        });
        let (rank, seen) = (ahead.count(), others.len() + 1);
        let allowed = match seen - 1 {
            others if self.is_median() => {
                if others < 5 {
                    seen
                } else {
                    others / 2 + 1
                }
            }
            _ => (seen / self.eta).max(1),
        };
        let continues = rank < allowed && value.is_some();
        let actual = (
            usize::try_from(verdict.rank).unwrap(),
            usize::try_from(verdict.seen).unwrap(),
            verdict.continues,
        );
        assert_eq!(actual, (rank, seen, continues), "P6: trial {number} at {place:?}");
        self.arrived.entry(place).or_default().push((number, average.or(value), continues));
        let trial = &mut self.trials[usize::try_from(number).unwrap()];
        assert_eq!((trial.bracket, trial.next_rung), place, "each rung judges a trial once");
        trial.next_rung += 1;
        trial.out = !continues;
    }
}
