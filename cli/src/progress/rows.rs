//! The text of the rows: one per running job, then cost and the best value.

use std::collections::BTreeMap;

use console::style;
use tuning::definition::Definition;
use tuning::fact::JobPhase;
use tuning::ids::TrialId;
use tuning::state::{Job, State, Trial};

use crate::text::{maybe, usd, value};

/// Columns of a row without its bar.
const BESIDE_BAR: usize = 58;
const BAR_MIN: usize = 10;
const BAR_MAX: usize = 45;
/// Maximum number of job rows. Further jobs are counted in one row.
const JOBS_MAX: usize = 16;

/// Returns the rows for a terminal of `width` columns.
pub(super) fn rows(definition: &Definition, state: &State, width: usize) -> Vec<String> {
    let jobs: Vec<_> = state.jobs().filter(|(_, _, job)| job.holds_slot()).collect();
    let mut rows: Vec<String> = jobs
        .iter()
        .take(JOBS_MAX)
        .map(|(key, trial, job)| job_row(definition, key.trial, trial, job, width))
        .collect();
    if let Some(more) = jobs.len().checked_sub(JOBS_MAX).filter(|more| *more > 0) {
        rows.push(format!("and {more} more"));
    }
    rows.extend(waiting_row(definition, state));
    rows.push(money_row(definition, state));
    rows.push(best_row(state));
    rows.iter().map(|row| console::truncate_str(row, width.saturating_sub(1), "…").into_owned()).collect()
}

fn job_row(definition: &Definition, number: TrialId, trial: &Trial, job: &Job, width: usize) -> String {
    let plan = definition.plan();
    let resource = trial.resource().0;
    let best = best_of(definition, trial);
    let last = trial.last_line.as_ref().and_then(|(_, _, value)| *value);
    let bracket = plan.brackets().get(trial.bracket.index());
    let rungs = bracket.map(hyperband::plan::BracketPlan::rungs).unwrap_or_default();
    let levels: Vec<u32> = rungs.iter().map(|rung| rung.resource).collect();
    let max = plan.max_resource();
    let bar = if max == u32::MAX {
        format!("epoch {resource}")
    } else {
        let cells = width.saturating_sub(BESIDE_BAR).clamp(BAR_MIN, BAR_MAX);
        // With promotion, a job trains only to its rung. The bar shows all epochs of the trial.
        let goal = job.level.map_or(max, |level| level.0);
        let columns = max.to_string().len();
        format!("{} {resource:>4}/{goal:<columns$}", bar(resource, max, &levels, cells))
    };
    let phase = phase(job).unwrap_or_default();
    format!("trial {number:>4}  {bar}  last {:<10} best {:<10} {phase}", maybe(last), maybe(best))
}

/// Returns a bar of `cells` cells with marks at the rung levels.
fn bar(resource: u32, max: u32, levels: &[u32], cells: usize) -> String {
    let cell = |level: u32| {
        let total = u64::try_from(cells).unwrap_or(0);
        let place = u64::from(level).saturating_mul(total).div_ceil(u64::from(max.max(1)));
        usize::try_from(place).unwrap_or(cells).min(cells)
    };
    let done = cell(resource.min(max));
    let marks: Vec<usize> = levels.iter().filter(|level| **level < max).map(|level| cell(*level)).collect();
    let part = |range: std::ops::Range<usize>, line: char, mark: char| -> String {
        range.map(|index| if marks.contains(&(index + 1)) { mark } else { line }).collect()
    };
    let (done, left) = (part(0..done, '━', '┿'), part(done..cells, '─', '┼'));
    format!("{}{}", style(done).for_stderr().green(), style(left).for_stderr().dim())
}

fn best_of(definition: &Definition, trial: &Trial) -> Option<f64> {
    let values = trial.curve.values().flatten().copied();
    let better = |a: f64, b: f64| match definition.objective {
        tuning::definition::Objective::Maximize => a.max(b),
        tuning::definition::Objective::Minimize => a.min(b),
    };
    values.reduce(better)
}

/// Returns the state of a job that is not training.
fn phase(job: &Job) -> Option<&'static str> {
    if job.stop.is_some() {
        return Some("stopping");
    }
    match job.phase {
        JobPhase::Starting => Some("starting"),
        JobPhase::Downloading => Some("downloading"),
        JobPhase::Interrupted => Some("interrupted"),
        JobPhase::Stopping => Some("stopping"),
        JobPhase::Uploading => Some("uploading"),
        JobPhase::Training | JobPhase::Other | JobPhase::Ended(_) => None,
    }
}

/// Returns the row of the trials that wait for promotion, by epoch.
fn waiting_row(definition: &Definition, state: &State) -> Option<String> {
    definition.promotes()?;
    let mut by_level: BTreeMap<u32, u32> = BTreeMap::new();
    for trial in state.waiting.values() {
        let count = by_level.entry(definition.level(trial.bracket, trial.rung).0).or_default();
        *count = count.saturating_add(1);
    }
    Some(waiting_text(&by_level))
}

fn waiting_text(by_level: &BTreeMap<u32, u32>) -> String {
    let levels: Vec<_> = by_level.iter().map(|(level, count)| format!("{count} at epoch {level}")).collect();
    let all = if levels.is_empty() { "none".to_owned() } else { levels.join(", ") };
    format!("waiting for promotion: {all}")
}

fn money_row(definition: &Definition, state: &State) -> String {
    let jobs =
        format!("jobs {} of {}, {} running", state.launched, definition.planned_jobs(), state.running());
    let ledger = &state.ledger;
    // Without a price, costs are unknown, unless a stack reports them.
    if definition.job.rate.is_none() && ledger.cap.is_none() && ledger.spent.0 == 0 {
        return jobs;
    }
    let cap = ledger.cap.map_or_else(|| "(no cap)".to_owned(), |cap| format!("of {}", usd(cap)));
    format!("spent {} + reserved {} {cap}   {jobs}", usd(ledger.spent), usd(ledger.reserved))
}

fn best_row(state: &State) -> String {
    state.incumbent.as_ref().map_or_else(
        || "best so far: none yet".to_owned(),
        |best| {
            let number = style(value(best.value)).for_stderr().bold();
            format!("best so far: {number} (trial {}, epoch {})", best.trial, best.resource)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_trials_are_counted_by_epoch() {
        assert_eq!(waiting_text(&BTreeMap::new()), "waiting for promotion: none");
        let waiting = BTreeMap::from([(9, 1), (1, 4)]);
        assert_eq!(waiting_text(&waiting), "waiting for promotion: 4 at epoch 1, 1 at epoch 9");
    }

    #[test]
    fn a_bar_shows_progress_and_marks_rungs() {
        console::set_colors_enabled_stderr(false);
        assert_eq!(bar(0, 9, &[1, 3, 9], 9), "┼─┼──────");
        assert_eq!(bar(3, 9, &[1, 3, 9], 9), "┿━┿──────");
        assert_eq!(bar(9, 9, &[1, 3, 9], 9), "┿━┿━━━━━━");
        assert_eq!(bar(90, 9, &[], 10).chars().count(), 10);
        assert_eq!(bar(1, 20_000, &[1, 20_000], 10), "┿─────────");
    }
}
