//! The text of the rows: the totals, the best value, the reason why no job starts, and the jobs with the best values.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use console::style;
use search::Configuration;
use tuning::definition::{Definition, Objective};
use tuning::job::Job;
use tuning::log::fact::JobPhase;
use tuning::state::{State, Status};
use tuning::trial::Trial;
use tuning::unit::ids::TrialId;
use tuning::unit::limits::MIN_RUNTIME_SECONDS;
use tuning::unit::money::MicroUsd;

use crate::event_text::rounded;
use crate::text::{duration, maybe, usd, value};

/// Columns of a row without its bar.
const BESIDE_BAR: usize = 58;
/// The same on a narrow terminal, whose rows have no last value.
const BESIDE_BAR_NARROW: usize = 42;
/// Terminals with fewer columns are narrow.
const NARROW: usize = 90;
const BAR_MIN: usize = 8;
const BAR_MAX: usize = 45;
/// Maximum number of job rows. Further jobs are counted in one row.
const JOBS_MAX: usize = 16;
/// Maximum share of the terminal's lines. The other lines show events.
const LINES_SHARE: usize = 4;
/// Concluded jobs before a remaining time is shown.
const CONCLUDED_MIN: u32 = 3;

#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) definition: &'a Definition,
    pub(super) state: &'a State,
    /// The configuration of the best trial, if it is known.
    pub(super) best: Option<&'a Configuration>,
    /// Milliseconds since the submission.
    pub(super) elapsed_ms: i64,
    /// Milliseconds since the start of this display, and the jobs that had ended before it.
    pub(super) shown: (i64, u32),
}

/// Returns the rows for a terminal of `width` columns and `height` lines: at most `height` - 1, since a full terminal
/// scrolls.
pub(super) fn rows(view: &View<'_>, width: usize, height: usize) -> Vec<String> {
    let View { definition, state, .. } = view;
    let most = height.saturating_sub(height.div_ceil(LINES_SHARE)).max(1);
    let mut rows = vec![totals_row(view, width < NARROW), best_row(view)];
    rows.extend(standstill(definition, state).map(|reason| format!("no further job starts: {reason}")));
    rows.extend(waiting_row(definition, state));
    rows.truncate(most);
    let jobs: Vec<_> = state.jobs().filter(|(_, _, job)| job.holds_slot()).collect();
    let space = most.saturating_sub(rows.len());
    let shown =
        if jobs.len() <= space.min(JOBS_MAX) { jobs.len() } else { space.saturating_sub(1).min(JOBS_MAX) };
    let more = jobs.len().saturating_sub(shown);
    for (number, trial, job) in most_interesting(definition, jobs, shown) {
        rows.push(job_row(definition, number, trial, job, width));
    }
    if more > 0 && space > 0 {
        rows.push(format!("+{more} more"));
    }
    rows.iter().map(|row| console::truncate_str(row, width.saturating_sub(1), "…").into_owned()).collect()
}

/// Returns the `count` jobs with the best values, ordered by trial, so that a row rarely moves.
fn most_interesting<'a>(
    definition: &Definition,
    jobs: Vec<(tuning::log::fact::JobKey, &'a Trial, &'a Job)>,
    count: usize,
) -> Vec<(TrialId, &'a Trial, &'a Job)> {
    let mut ranked: Vec<_> = jobs
        .into_iter()
        .map(|(key, trial, job)| (best_of(definition, trial), (key.trial, trial, job)))
        .collect();
    let better = |a: f64, b: f64| match definition.objective {
        Objective::Maximize => b.total_cmp(&a),
        Objective::Minimize => a.total_cmp(&b),
    };
    ranked.sort_by(|(one, _), (other, _)| match (one, other) {
        (Some(one), Some(other)) => better(*one, *other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    let mut kept: Vec<_> = ranked.into_iter().take(count).map(|(_, job)| job).collect();
    kept.sort_by_key(|(number, ..)| *number);
    kept
}

/// Returns why no further job starts although jobs are left and slots are free.
fn standstill(definition: &Definition, state: &State) -> Option<String> {
    let free = state.running() < state.max_parallel(definition) && state.jobs_left(definition) > 0;
    match &state.status {
        Status::Active if state.is_paused() => {
            return Some(format!("paused by the user (hyperband change {} --resume)", definition.name));
        }
        Status::Ending(_) => return Some("the tuning is ending".to_owned()),
        Status::Active if free => {}
        Status::Active | Status::Ended { .. } => return None,
    }
    if let Some(lack) = state.lack(definition) {
        let wait = duration((lack.until - state.now).0);
        return Some(format!("no instances are available; next attempt in {wait}"));
    }
    if let Some(until) = state.capacity.no_start_before.filter(|until| *until > state.now) {
        return Some(format!(
            "the training service deferred a start; next attempt in {}",
            duration((until - state.now).0)
        ));
    }
    let limit = definition.limits.max_instances;
    let sizes = || definition.job.all_sizes().map(|size| definition.job.instances_of(size).count);
    let next = if definition.has_definitions() { sizes().min() } else { sizes().max() }.unwrap_or_default();
    if let Some(limit) = limit.filter(|limit| state.instances(definition).saturating_add(next) > *limit) {
        return Some(format!("MaxInstances {limit} are in use"));
    }
    let ledger = &state.money.ledger;
    let shortest = |size| {
        let choice = definition.job.choices_of(size).next()?;
        definition.worst_case(definition.limits_for(MIN_RUNTIME_SECONDS, size), choice)
    };
    let least = definition.job.all_sizes().filter_map(shortest).min()?;
    let left = ledger.cap?.0.saturating_sub(ledger.spent.0).saturating_sub(ledger.reserved.0);
    (left < least.0).then(|| format!("the cost cap leaves {}, less than a job can cost", usd(MicroUsd(left))))
}

fn job_row(definition: &Definition, number: TrialId, trial: &Trial, job: &Job, width: usize) -> String {
    let plan = definition.plan();
    let resource = trial.resource().0;
    let best = best_of(definition, trial);
    let last = trial.last_value(job.order.attempt);
    let bracket = plan.brackets().get(definition.in_plan(trial.bracket(definition)));
    let rungs = bracket.map(hyperband::plan::BracketPlan::rungs).unwrap_or_default();
    let levels: Vec<u32> = rungs.iter().map(|rung| rung.resource).collect();
    let max = plan.max_resource();
    let narrow = width < NARROW;
    let bar = if max == u32::MAX {
        format!("epoch {resource}")
    } else {
        let beside = if narrow { BESIDE_BAR_NARROW } else { BESIDE_BAR };
        let cells = width.saturating_sub(beside).clamp(BAR_MIN, BAR_MAX);
        // With promotion, a job trains only to its rung. The bar shows all epochs of the trial.
        let goal = job.order.level.map_or(max, |level| level.0);
        let columns = max.to_string().len();
        format!("{} {resource:>columns$}/{goal:<columns$}", bar(resource, max, &levels, cells))
    };
    let phase = phase(job).unwrap_or_default();
    if narrow {
        return format!("{number:>4}  {bar}  best {:<9} {phase}", maybe(best));
    }
    format!("trial {number:>4}  {bar}  last {:<10} best {:<10} {phase}", maybe(last), maybe(best))
}

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
        Objective::Maximize => a.max(b),
        Objective::Minimize => a.min(b),
    };
    values.reduce(better)
}

/// Returns the state of a job that is not training.
fn phase(job: &Job) -> Option<&'static str> {
    if job.stop.is_some() {
        return Some("stopping");
    }
    match job.phase() {
        // For a slot of this machine, or for instances.
        JobPhase::Starting => Some("waiting"),
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
    for trial in state.search.waiting.values() {
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

/// Returns the row of jobs, money and time. Without the reservations and the elapsed time on a narrow terminal.
fn totals_row(view: &View<'_>, narrow: bool) -> String {
    let View { definition, state, elapsed_ms, .. } = view;
    let planned = definition.planned_jobs();
    let jobs = state.jobs().filter(|(_, _, job)| job.holds_slot());
    let (waiting, running): (Vec<_>, Vec<_>) = jobs.partition(|(_, _, job)| phase(job) == Some("waiting"));
    let wait = if waiting.is_empty() { String::new() } else { format!(", {} waiting", waiting.len()) };
    let mut parts =
        vec![format!("jobs {} of {planned}, {} running{wait}", state.results.launched, running.len())];
    let ledger = &state.money.ledger;
    // Without a price, costs are unknown, unless a stack reports them.
    if definition.job.is_priced() || ledger.cap.is_some() || ledger.spent.0 != 0 {
        let cap = ledger.cap.map_or_else(String::new, |cap| format!(" of {}", usd(cap)));
        parts.push(if narrow {
            format!("{}{cap}", usd(ledger.spent))
        } else {
            format!("spent {} + reserved {}{cap}", usd(ledger.spent), usd(ledger.reserved))
        });
    }
    let elapsed = duration(*elapsed_ms);
    let ended = state.results.launched.saturating_sub(state.running());
    parts.push(match remaining_ms(ended, planned, view.shown) {
        Some(left) if narrow => format!("~{} left", duration(left)),
        Some(left) => format!("{elapsed}, about {} left", duration(left)),
        None => elapsed,
    });
    parts.join(if narrow { "  " } else { "   " })
}

/// Returns the remaining time if jobs end as often as they did since the display began. `None` while too few have ended.
fn remaining_ms(ended: u32, planned: u32, (shown_ms, before): (i64, u32)) -> Option<i64> {
    let since = ended.checked_sub(before).filter(|since| *since >= CONCLUDED_MIN)?;
    let left = planned.checked_sub(ended).filter(|left| *left > 0)?;
    shown_ms.checked_mul(i64::from(left))?.checked_div(i64::from(since))
}

fn best_row(view: &View<'_>) -> String {
    let Some(best) = &view.state.search.incumbent else { return "best: none yet".to_owned() };
    let number = style(value(best.value)).for_stderr().bold();
    let configuration = view.best.map_or_else(String::new, |best| format!(": {}", rounded(best)));
    format!("best {number} (trial {}, epoch {}){configuration}", best.trial, best.resource)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tuning::log::fact::{Fact, JobKey, Recorded};
    use tuning::step::advance;
    use tuning::unit::ids::RungId;
    use tuning::unit::time::Time;
    use wire::request::{PriceAnswer, Request};
    use wire::sample;

    use super::*;

    fn running(parallel: u32, controller: &Value) -> (Definition, State) {
        let limits = json!({"MaxNumberOfTrainingJobs": 100, "MaxParallelTrainingJobs": parallel});
        let changes =
            json!({"HyperParameterTuningJobConfig": {"ResourceLimits": limits}, "Controller": controller});
        let body = sample::with(sample::local_request("wide"), changes);
        let request = Request::check_local(body).unwrap();
        let definition = request.definition(Time(0), "3fa1c2", &PriceAnswer::default()).unwrap();
        let mut state = State::new(&definition);
        let fact = Recorded { key: "submitted".to_owned(), at: Time(0), fact: Fact::TuningSubmitted };
        advance(&definition, &mut state, 1, &[fact]);
        (definition, state)
    }

    #[test]
    fn rows_fit_every_terminal_and_begin_with_the_totals() {
        console::set_colors_enabled_stderr(false);
        let (definition, state) = running(40, &json!({}));
        assert_eq!(state.running(), 40);
        let view = View {
            definition: &definition,
            state: &state,
            best: None,
            elapsed_ms: 65_000,
            shown: (65_000, 0),
        };
        for (width, height, jobs) in [(60, 14, 7), (100, 15, 8), (200, 50, 16), (60, 4, 0), (60, 1, 0)] {
            let rows = rows(&view, width, height);
            let size = format!("{width}x{height}: {rows:#?}");
            assert!(rows.len() < height.max(2), "{size}");
            assert!(rows.iter().all(|row| row.chars().count() < width), "{size}");
            assert!(rows[0].starts_with("jobs 40 of 100, 0 running, 40 waiting"), "{size}");
            let shown = rows.iter().filter(|row| row.contains("─")).count();
            assert_eq!(shown, jobs, "{size}");
            if height > 4 {
                assert_eq!(rows.last().unwrap(), &format!("+{} more", 40 - jobs), "{size}");
            }
        }
    }

    #[test]
    fn a_job_without_a_process_waits() {
        let (definition, mut state) = running(3, &json!({}));
        let job = JobKey { trial: TrialId(1), rung: RungId(0), attempt: 1 };
        let (phase, started) = (JobPhase::Training, Some(Time(1)));
        let fact = Fact::JobStateChanged { job, phase, started, ended: None, message: None };
        advance(&definition, &mut state, 2, &[Recorded { key: "trains".to_owned(), at: Time(1), fact }]);
        let view = View { definition: &definition, state: &state, best: None, elapsed_ms: 0, shown: (0, 0) };
        let rows = rows(&view, 120, 50);
        assert!(rows[0].starts_with("jobs 3 of 100, 1 running, 2 waiting"), "{rows:#?}");
        let waits: Vec<bool> = rows.iter().skip(2).map(|row| row.ends_with("waiting")).collect();
        assert_eq!(waits, [true, false, true], "{rows:#?}");
    }

    #[test]
    fn a_standstill_names_its_reason() {
        let (definition, mut state) = running(2, &json!({}));
        assert_eq!(standstill(&definition, &state), None, "all slots are used");
        let change = |cap, paused| Recorded {
            key: format!("{cap:?}{paused:?}"),
            at: Time(1),
            fact: Fact::LimitsChanged { cap, max_parallel: None, paused },
        };
        advance(&definition, &mut state, 2, &[change(None, Some(true))]);
        let paused = standstill(&definition, &state).unwrap();
        assert_eq!(paused, "paused by the user (hyperband change wide --resume)");

        let cap = json!({"MaxCostUsd": 0.1, "InstancePricesUsdPerHour": {"ml.m5.large": 0.1}});
        let (definition, state) = running(40, &cap);
        assert!(state.running() < 40, "the cap pays only some jobs");
        let capped = standstill(&definition, &state).unwrap();
        assert!(capped.starts_with("the cost cap leaves $0.0"), "{capped}");
    }

    #[test]
    fn the_remaining_time_follows_the_rate_of_ended_jobs() {
        assert_eq!(remaining_ms(2, 10, (60_000, 0)), None, "too few jobs have ended");
        assert_eq!(remaining_ms(4, 10, (60_000, 0)), Some(90_000));
        assert_eq!(remaining_ms(10, 10, (60_000, 0)), None);
        // A tuning was continued after a night.
        assert_eq!(remaining_ms(9, 13, (20_000, 5)), Some(20_000));
    }

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
