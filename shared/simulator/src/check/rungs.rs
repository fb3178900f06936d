//! P6 without promotion: the rung rule, recounted from the recorded arrivals.

use tuning::log::ruling::{Ruling, SearchRuling};
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::{BracketId, RungId, TrialId};

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
        let Due { shape, max_resource, levels: [due, next] } = self.due(*trial, *bracket, *rung)?;
        let maximize = self.case.choices.maximize;
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
        let predicts = shape.is_none() || self.predicts(place);
        if let Some(value) = value.filter(|_| shape.is_some() && next >= max_resource) {
            self.last_arrivals.entry(place.0).or_default().push((*trial, value));
        }
        let arrivals = self.levels.entry(place).or_default();
        let (rank, allowed) = match shape {
            Some(shape) => {
                let arrived = arrivals.len() + 1;
                let allowed =
                    if predicts { shape.going_on(&self.case, arrived, *bracket, *rung) } else { arrived };
                (rank(maximize, arrivals, (*trial, *value)), allowed.max(1))
            }
            None => median_rank(maximize, arrivals, *value),
        };
        if average.is_some() != (shape.is_none() && value.is_some()) {
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

/// Where a judgement is due.
struct Due {
    /// The brackets; `None` with the median rule.
    shape: Option<Shape>,
    max_resource: u32,
    /// The level of the rung, and that of the next one.
    levels: [u32; 2],
}

impl Book {
    /// Returns where a judgement at a rung is due.
    fn due(&self, trial: TrialId, bracket: BracketId, rung: RungId) -> Result<Due, String> {
        let choices = &self.case.choices;
        match choices.hyperband {
            Some(_) if self.case.promotes() => {
                Err("P6: a trial was judged in a tuning with promotion".to_owned())
            }
            Some((_, max_resource, _)) => {
                let definition = self.case.definition_of(trial);
                let shape = Shape::of(&self.case).filter(|shape| shape.has(bracket, definition));
                let shape = shape.ok_or_else(|| format!("P6: the jobs do not fill bracket {bracket}"))?;
                let levels = [rung, rung.next()].map(|rung| shape.level(bracket, rung));
                Ok(Due { shape: Some(shape), max_resource, levels })
            }
            None if choices.median => {
                let levels = [rung.0 + 1, rung.0 + 2].map(|power| 2_u32.pow(power));
                Ok(Due { shape: None, max_resource: u32::MAX, levels })
            }
            None => Err("P6: a trial was judged in a tuning without rungs".to_owned()),
        }
    }

    /// Returns whether the values at a level agree with those at the last level, for the latest twenty trials there: of
    /// the pairs that differ there, those in the same order exceed those in the opposite order by a tenth at least.
    fn predicts(&self, place: (u32, Epochs)) -> bool {
        let last = self.last_arrivals.get(&place.0).map_or(&[][..], Vec::as_slice);
        let latest = &last[last.len().saturating_sub(20)..];
        let here = self.levels.get(&place).map_or(&[][..], Vec::as_slice);
        let value =
            |trial: TrialId| here.iter().find(|(other, _)| *other == trial).and_then(|(_, value)| *value);
        let both: Vec<(f64, f64)> =
            latest.iter().filter_map(|(trial, last)| Some((value(*trial)?, *last))).collect();
        if both.len() < 4 {
            return true;
        }
        let pairs = || (0..both.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        let count = |is: &dyn Fn(f64, f64) -> bool| {
            pairs().filter(|(i, j)| is(both[*i].0 - both[*j].0, both[*i].1 - both[*j].1)).count()
        };
        let same = count(&|here, last| (here > 0.0 && last > 0.0) || (here < 0.0 && last < 0.0));
        let opposite = count(&|here, last| (here > 0.0 && last < 0.0) || (here < 0.0 && last > 0.0));
        10 * same >= 10 * opposite + count(&|_, last| last != 0.0)
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
