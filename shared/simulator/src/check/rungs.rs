//! P6: the rung rule, counted anew from the recorded arrivals.

use tuning::definition::{Objective, RungExecution, Strategy};
use tuning::ruling::Ruling;

use super::{Arrival, Book};

impl Book {
    /// Checks a judgement and enters the arrival.
    pub(super) fn judged(&mut self, ruling: &Ruling) -> Result<(), String> {
        let Ruling::TrialJudged { trial, bracket, rung, level, value, verdict, .. } = ruling else {
            return Ok(());
        };
        let Strategy::Hyperband { min_resource, max_resource, eta } = self.definition.strategy else {
            return Err("P6: a judgement without rungs".to_owned());
        };
        if self.definition.rungs != RungExecution::Stop {
            return Err("P6: a judgement where trials are promoted".to_owned());
        }
        let maximize = self.definition.objective == Objective::Maximize;
        let book = self.trials.get_mut(trial).ok_or("P6: of a trial that never was")?;
        if book.finished || book.out {
            return Err(format!("P6: trial {trial} is out"));
        }
        if book.bracket != *bracket || book.judged != *rung {
            return Err(format!(
                "P6: trial {trial} of bracket {} is due at rung {}",
                book.bracket, book.judged
            ));
        }
        book.judged += 1;
        book.out = !verdict.goes_on;
        if *level < min_resource || *level >= max_resource {
            return Err(format!("P6: level {level} is no rung of {min_resource} to {max_resource}"));
        }
        let arrivals = self.rungs.entry((*bracket, *rung)).or_default();
        let rank = rank(maximize, arrivals, (*trial, *value));
        arrivals.push((*trial, *value));
        let seen = arrivals.len();
        let allowed = (seen / usize::try_from(eta).unwrap_or(1)).max(1);
        let goes_on = rank < allowed && value.is_some();
        let said =
            [verdict.rank, verdict.seen, verdict.allowed].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        if said != [rank, seen, allowed] || verdict.goes_on != goes_on {
            return Err(format!(
                "P6: trial {trial} at rung {rung}: rank {rank} of {seen}, {allowed} may go on; it says {verdict:?}"
            ));
        }
        Ok(())
    }
}

/// How many of `arrivals` are better than `one`; the same values in the order of their trials, none last.
pub(super) fn rank(maximize: bool, arrivals: &[Arrival], one: Arrival) -> usize {
    let ahead = |other: &&Arrival| match (other.1, one.1) {
        (Some(theirs), Some(ours)) => {
            let better = if maximize { theirs > ours } else { theirs < ours };
            better || (theirs.total_cmp(&ours).is_eq() && other.0 < one.0)
        }
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => other.0 < one.0,
    };
    arrivals.iter().filter(ahead).count()
}
