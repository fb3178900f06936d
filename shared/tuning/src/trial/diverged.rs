//! Diverged trials: a model whose objective is not a finite number does not recover. Its trial is stopped in every
//! bracket and strategy, even if no remaining rung would judge it.

use crate::definition::Definition;
use crate::log::reasons::StopWhy;
use crate::trial::Trial;
use crate::unit::ids::count;

/// Returns the stop reason of a trial whose last epochs have no finite value. Lines whose epochs are not known while the
/// job runs count within their stream.
pub(crate) fn diverged(definition: &Definition, trial: &Trial) -> Option<StopWhy> {
    let most = definition.settings.max_diverged_epochs;
    let unplaced = trial.streams.iter().filter(|stream| stream.unplaced).map(|stream| {
        let ranked = stream.lines.iter().map(|(_, _, value)| value);
        trailing(stream.unplaced_lines.values().chain(ranked))
    });
    let diverged = || unplaced.fold(trailing(trial.curve.values()), u32::max);
    (most > 0 && diverged() >= most).then_some(StopWhy::Diverged { epochs: most })
}

/// Returns how many values at the end are not finite.
fn trailing<'v>(values: impl DoubleEndedIterator<Item = &'v Option<f64>>) -> u32 {
    count(values.rev().take_while(|value| value.is_none()).count())
}
