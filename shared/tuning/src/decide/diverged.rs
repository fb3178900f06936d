//! Diverged trials: a model whose objective is no finite number does not recover. Its trial is stopped in every bracket and
//! strategy, also where no rung is left that would judge it.

use crate::definition::Definition;
use crate::ids::count;
use crate::ruling::StopWhy;
use crate::state::Trial;

/// Returns the stop reason of a trial whose last epochs have no finite value.
pub(crate) fn diverged(definition: &Definition, trial: &Trial) -> Option<StopWhy> {
    let most = definition.max_diverged_epochs;
    let diverged = || count(trial.curve.values().rev().take_while(|value| value.is_none()).count());
    (most > 0 && diverged() >= most).then_some(StopWhy::Diverged { epochs: most })
}
