//! P6 without promotion: the rung rule, recounted from the recorded arrivals.

use tuning::log::ruling::{Ruling, SearchRuling};

use super::brackets::Shape;
use super::{Arrival, Book};

impl Book {
    /// Checks a judgement and records the arrival.
    pub(super) fn check_judgement(&mut self, ruling: &Ruling) -> Result<(), String> {
        let Ruling::Search(SearchRuling::TrialJudged {
            trial,
            bracket,
            rung,
            level,
            value,
            average,
            verdict,
            ..
        }) = ruling
        else {
            return Ok(());
        };
        let choices = &self.case.choices;
        let (eta, max_resource, due) = match choices.hyperband {
            Some(_) if self.case.promotes() => {
                return Err("P6: a trial was judged in a tuning with promotion".to_owned());
            }
            Some((_, max_resource, eta)) => {
                let definition = self.case.definition_of(*trial);
                let shape = Shape::of(&self.case).filter(|shape| shape.has(*bracket, definition));
                let shape = shape.ok_or_else(|| format!("P6: the jobs do not fill bracket {bracket}"))?;
                (Some(eta), max_resource, shape.level(*bracket, *rung))
            }
            None if choices.median => (None, u32::MAX, 2_u32.pow(rung.0 + 1)),
            None => return Err("P6: a trial was judged in a tuning without rungs".to_owned()),
        };
        let maximize = choices.maximize;
        let book = self.trials.get_mut(trial).ok_or_else(|| format!("P6: trial {trial} does not exist"))?;
        if book.finished || book.out {
            return Err(format!("P6: trial {trial} was judged after it was stopped or ended"));
        }
        if book.bracket != *bracket || book.judged != *rung {
            return Err(format!(
                "P6: trial {trial} was judged at rung {rung} of bracket {bracket}, but it is due at \
                    bracket {}, rung {}",
                book.bracket, book.judged
            ));
        }
        book.judged = book.judged.next();
        book.out = !verdict.continues;
        if level.0 != due || due >= max_resource {
            return Err(format!(
                "P6: level {level} of rung {rung} is not {due}, or not below {max_resource}"
            ));
        }
        // The trials of all brackets of a training job definition compete at a level.
        let place = (self.case.definition_of(*trial), *level);
        let arrivals = self.levels.entry(place).or_default();
        let (rank, allowed) = match eta {
            Some(eta) => {
                let allowed = (arrivals.len() + 1) / usize::try_from(eta).unwrap_or(1);
                (rank(maximize, arrivals, (*trial, *value)), allowed.max(1))
            }
            None => median_rank(maximize, arrivals, *value),
        };
        if average.is_some() != (eta.is_none() && value.is_some()) {
            return Err(format!("P6: trial {trial} has the running average {average:?}"));
        }
        arrivals.push((*trial, average.or(*value)));
        let seen = arrivals.len();
        let continues = rank < allowed && value.is_some();
        let claimed =
            [verdict.rank, verdict.seen, verdict.allowed].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        if claimed != [rank, seen, allowed] || verdict.continues != continues {
            return Err(format!(
                "P6: trial {trial} at rung {rung} has rank {rank} of {seen}, {allowed} may continue; \
                    the ruling has {verdict:?}"
            ));
        }
        Ok(())
    }
}

/// Returns how many running averages are better than `value`, and how many trials would continue: all of up to six,
/// else those that are not behind half of the others.
fn median_rank(maximize: bool, averages: &[Arrival], value: Option<f64>) -> (usize, usize) {
    let better = |average: f64| match value {
        Some(value) if maximize => average > value,
        Some(value) => average < value,
        None => true,
    };
    let rank = averages.iter().filter(|(_, average)| average.is_some_and(better)).count();
    let others = averages.len();
    (rank, if others < 5 { others + 1 } else { others / 2 + 1 })
}

/// Returns how many of `arrivals` rank before `one`. Equal values rank in the order of their trials; missing values
/// rank last.
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
