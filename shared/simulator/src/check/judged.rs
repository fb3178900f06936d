//! P6 without promotion: a trial is judged by a value that its program logged, at the epoch that counts.

use tuning::unit::ids::TrialId;

use crate::case::Epochs;
use crate::fault::Kind;
use crate::plan::Order;
use crate::world::World;
use crate::world::program::Program;

/// The number of values in a row that are not finite after which a trial has diverged. No case sets another one.
pub(crate) const DIVERGED_EPOCHS: u32 = 3;

/// The only faults with which the decider gets every line in order.
const IN_ORDER: [Kind; 12] = [
    Kind::BillLate,
    Kind::BillRises,
    Kind::BusUnavailable,
    Kind::CapacityShort,
    Kind::JobAlgorithmError,
    Kind::JobCapacityError,
    Kind::PricesUnavailable,
    Kind::ProgramAllHosts,
    Kind::ProgramDiverges,
    Kind::ProgramGlitches,
    Kind::ProgramOutOfMemory,
    Kind::ProgramSavesLong,
];

/// What a program logs up to an epoch, and how its values compare.
#[derive(Clone, Copy)]
struct Curve<'p> {
    program: &'p Program,
    maximize: bool,
    /// The last epoch that it has logged.
    furthest: u32,
}

impl Curve<'_> {
    fn finite(self, epoch: u32) -> Option<f64> {
        self.program.value(epoch).filter(|value| value.is_finite())
    }

    fn is_better(self, value: f64, than: f64) -> bool {
        if self.maximize { value > than } else { value < than }
    }

    /// Returns the first of the best epochs up to one, with its value.
    fn best_up_to(self, last: u32) -> Option<(u32, f64)> {
        let known = (1..=last).filter_map(|epoch| Some((epoch, self.finite(epoch)?)));
        known.reduce(|best, next| if self.is_better(next.1, best.1) { next } else { best })
    }

    /// Returns whether `epoch` ends a row of values that are not finite.
    fn has_diverged_at(self, epoch: u32) -> bool {
        let row = epoch.checked_sub(DIVERGED_EPOCHS).map(|before| before + 1..=epoch);
        row.is_some_and(|mut row| row.all(|epoch| self.finite(epoch).is_none()))
    }

    /// Returns the epoch and value with which the trial arrives at a level, if every line is known; `None` without a
    /// value there or above.
    fn arrives(self, level: u32) -> Option<(u32, Option<f64>)> {
        let counts = |epoch: &u32| self.finite(*epoch).is_some() || self.has_diverged_at(*epoch);
        let at = (level..=self.furthest).find(counts)?;
        let best = self.finite(at).and_then(|_| self.best_up_to(at));
        Some(best.map_or((at, None), |(epoch, value)| (epoch, Some(value))))
    }

    /// Returns whether a verdict at `level` may rest on this epoch and value, if some lines are unknown.
    fn may_arrive(self, level: u32, resource: u32, value: Option<f64>) -> bool {
        let Some(value) = value else {
            // Two of three lines in a row may be unknown.
            return (level..=self.furthest).any(|epoch| self.finite(epoch).is_none());
        };
        let logged = self.finite(resource).is_some_and(|logged| logged.to_bits() == value.to_bits());
        let counts = |epoch: u32| self.finite(epoch).is_some_and(|at| !self.is_better(at, value));
        logged && resource <= self.furthest && (level.max(resource)..=self.furthest).any(counts)
    }
}

impl World {
    /// Checks the epoch and the value by which a trial was judged at a level.
    pub(crate) fn check_judged(&mut self, id: &str, trial: TrialId, level: u32, at: (u32, Option<f64>)) {
        let (resource, value) = at;
        let jobs: Vec<_> = self.training.of(id).filter(|job| job.key.trial == trial).collect();
        let Some(job) = jobs.last() else {
            self.check.violation(self.now, &format!("P6: trial {trial} was judged, but it has no job"));
            return;
        };
        let case = &self.cases[job.case];
        let furthest = jobs.iter().filter_map(|job| job.logged).map(|(_, last)| last).max().unwrap_or(0);
        let curve = Curve { program: &job.program, maximize: case.choices.maximize, furthest };
        let bits = |value: Option<f64>| value.map(f64::to_bits);
        let exact = bits(curve.finite(resource)) == bits(value);
        let absolute = case.epochs == Epochs::Absolute;
        let completed = jobs.iter().any(|job| job.now.status == "Completed");
        let is_cut =
            jobs.iter().any(|job| job.now.status == "Completed" && self.check.may_lack_lines(id, job.key));
        let disturbs = |kind: &&Kind| self.faults.can_strike(**kind) && !IN_ORDER.contains(kind);
        let all_known = !Kind::ALL.iter().any(|kind| disturbs(&kind))
            && self.plan.order == Order::Natural
            && self.plan.stream_outage.is_none()
            && jobs.len() == 1;
        let right = if !absolute {
            // Where log lines do not contain the epoch, a later value can stand for it, but never an earlier one.
            let same = |epoch: u32| bits(curve.finite(epoch)) == bits(value);
            (resource..=job.program.epochs).any(same)
        } else if completed && curve.arrives(level).is_none() {
            // A program that completed below the level arrives with its best value.
            value.is_none() || exact
        } else if all_known {
            curve.arrives(level).map(|(epoch, value)| (epoch, bits(value))) == Some((resource, bits(value)))
        } else {
            curve.may_arrive(level, resource, value)
        };
        // A program that completed although its log could not be read is judged by the values that arrived.
        let right = right || is_cut && value.is_some() && exact && resource <= furthest;
        let expected = curve.arrives(level);
        self.check.count_judgement(exact);
        if !right {
            let message = format!(
                "P6: trial {trial} was judged at level {level} by the value {value:?} of epoch {resource}; its log up to \
                 epoch {furthest} gives {expected:?}"
            );
            self.check.violation(self.now, &message);
        }
    }
}
