//! `hyperband explain`: prints all decisions about one trial and their reasons.
//!
//! `use_cases::explain` computes the explanation. This file only prints it.

use std::fmt::Write;

use console::style;
use serde_json::json;
use tuning::unit::epochs::Epochs;
use tuning::unit::ids::TrialId;
use tuning::unit::money::MicroUsd;
use use_cases::explain::{ExplainError, explain as explanation};
use wire::explain::{ArrivalView, Comparison, CostSoFar, Entry, ExplainedJob, Explanation};

use crate::arguments::{Explain, Named};
use crate::failure::{Exit, Failure};
use crate::output::show_styled;
use crate::stored_tuning::StoredTuning;
use crate::text::{clean, maybe, or_dash, short, table, usd, utc};

/// Longer lists of arrivals are shortened to those near the trial and near the cutoff.
const ARRIVALS_SHOWN: usize = 15;
/// Arrivals to show on each side of the trial and the cutoff.
const AROUND: u32 = 2;
/// Maximum characters of a reason or a hyperparameter.
const CHARACTERS: usize = 300;
/// Indentation of the details of an entry.
const INDENT: &str = "      ";

pub(crate) async fn explain(options: Explain) -> Result<Exit, Failure> {
    let Explain { tuning: Named { name, place, output }, trial } = options;
    let tuning = StoredTuning::open(&place, &name).await?;
    let explained =
        explanation(&tuning.store, &tuning.row.id, &trial).await.map_err(|error| match error {
            ExplainError::Store(error) => Failure::from(error),
            ExplainError::Malformed(_)
            | ExplainError::UnknownTrial { .. }
            | ExplainError::OtherTuning { .. }
            | ExplainError::UnknownJob { .. } => {
                let hint = format!(
                    "TRIAL is a trial number, which `hyperband describe {}{}` lists, or the name of a training job",
                    tuning.row.name, tuning.location_options
                );
                Failure::usage(error.to_string()).hint(hint)
            }
        })?;
    let explained = explained.ok_or_else(|| tuning.deleted())?;
    show_styled(output, || text(&explained), || json!(explained));
    Ok(Exit::Done)
}

fn text(explained: &Explanation) -> String {
    let Explanation { tuning, trial, bracket, .. } = explained;
    let definition = explained.definition.iter().map(|name| format!(", definition {}", clean(name)));
    let definition: String = definition.collect();
    let mut text = format!("trial {trial} of {}{definition}, bracket {bracket}\n\n", clean(tuning));
    let mut line = |label: &str, content: &str| {
        let _ = writeln!(text, "  {label:<12}{content}");
    };
    let parameters = explained.tuned_hyper_parameters.iter();
    for (index, (name, value)) in parameters.enumerate() {
        let label = if index == 0 { "parameters" } else { "" };
        line(label, &format!("{}={}", clean(name), short(value, CHARACTERS)));
    }
    line("drawn", &clean(&explained.drawn));
    line("objective", &format!("{}, {}", clean(&explained.metric_name), explained.direction));
    if let [rungs @ .., last] = explained.rungs.as_slice() {
        let levels: Vec<String> = rungs.iter().map(Epochs::to_string).collect();
        let compared =
            if levels.is_empty() { "none".to_owned() } else { format!("epochs {}", levels.join(", ")) };
        line("rungs", &format!("{compared}; last epoch {last}"));
    }
    if let Some(execution) = &explained.rung_execution {
        line("execution", &clean(execution));
    }
    let _ = writeln!(text, "\n{}", jobs(&explained.training_jobs));
    for entry in &explained.entries {
        text.push_str(&entry_text(entry, *trial));
    }
    if let Some(now) = &explained.now {
        let _ = writeln!(text, "now: {}", clean(now));
    }
    text
}

fn jobs(jobs: &[ExplainedJob]) -> String {
    let row = |job: &ExplainedJob| {
        let seconds = |seconds: Option<u64>| or_dash(seconds, |n| format!("{n} s"));
        let in_full = if job.settled_in_full { " (in full)" } else { "" };
        vec![
            clean(&job.training_job_name),
            job.attempt.to_string(),
            utc(job.ordered_time),
            seconds(Some(job.max_runtime_in_seconds)),
            seconds(job.max_wait_time_in_seconds),
            or_dash(job.reserved_usd, usd),
            job.interruptions.to_string(),
            or_dash(job.end.as_deref(), clean),
            seconds(job.billable_seconds),
            format!("{}{in_full}", or_dash(job.cost_usd, usd)),
            short(&job.why, CHARACTERS),
        ]
    };
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    let head = [
        "TRAINING JOB",
        "TRY",
        "ORDERED",
        "MAX RUN",
        "MAX WAIT",
        "RESERVED",
        "INTERRUPTED",
        "END",
        "BILLED",
        "COST",
        "WHY",
    ];
    table(&head, &rows, &[1, 3, 4, 5, 6, 8, 9])
}

fn entry_text(entry: &Entry, trial: TrialId) -> String {
    let step = entry.step.map_or_else(|| "no step".to_owned(), |step| format!("step {step}"));
    let mut text = format!("{}  {step:<9} {}\n", utc(entry.time), short(&entry.says, CHARACTERS));
    if let Some(compared) = &entry.rung {
        let value = maybe(compared.value);
        let _ = writeln!(text, "{INDENT}value {value}; cost so far {}", cost(&compared.cost));
        text.push_str(&arrivals(compared, trial));
    }
    if !entry.late_values.is_empty() {
        let value = |late: &wire::explain::EpochValue| match late.epoch {
            Some(epoch) => format!("epoch {epoch}: {}", maybe(late.value)),
            None => maybe(late.value),
        };
        let values: Vec<String> = entry.late_values.iter().map(value).collect();
        let _ = writeln!(text, "{INDENT}{}", short(&values.join(", "), CHARACTERS));
    }
    text
}

/// Returns the cost of a trial so far: billed, plus an estimate of the rest.
fn cost(cost: &CostSoFar) -> String {
    let part = |amount: Option<MicroUsd>, seconds: &str| {
        amount.map_or_else(|| seconds.to_owned(), |amount| format!("{} ({seconds})", usd(amount)))
    };
    let billed = part(cost.billed_usd, &format!("{} s billed", cost.billed_seconds));
    let Some(seconds) = cost.estimated_seconds else { return billed };
    let estimate = part(cost.estimated_usd, &format!("{seconds} s not billed yet, estimated"));
    // A job that is settled in full costs money without billed seconds.
    let nothing = cost.billed_seconds == 0 && cost.billed_usd.is_none_or(|billed| billed == MicroUsd::ZERO);
    if nothing { format!("about {estimate}") } else { format!("{billed} and about {estimate}") }
}

/// Returns the arrivals at a rung, best first, with the cutoff. Shortens long lists.
fn arrivals(compared: &Comparison, trial: TrialId) -> String {
    let Comparison { allowed, arrived, .. } = compared;
    let mut text = String::new();
    let mut left_out = false;
    for entry in &compared.arrivals {
        let place = entry.rank;
        // A single hidden arrival would take as much space as the ellipsis.
        let gap = is_shown(compared, place.saturating_sub(1)) && is_shown(compared, place.saturating_add(1));
        if gap || is_shown(compared, place) {
            let line = arrival(entry, trial);
            let line = if entry.trial == trial { style(line).bold().to_string() } else { line };
            let _ = writeln!(text, "{INDENT}{line}");
            left_out = false;
        } else if !std::mem::replace(&mut left_out, true) {
            let _ = writeln!(text, "{INDENT}    …");
        }
        // All of several arrivals: a level that does not predict, where earlier trials were stopped.
        if place == *allowed && (*allowed < *arrived || *arrived == 1) {
            let _ = writeln!(text, "{INDENT}----- best {allowed} of {arrived}");
        }
    }
    text
}

/// Returns whether the arrival with rank `place` is shown: the best, and those near the trial and the cutoff.
fn is_shown(compared: &Comparison, place: u32) -> bool {
    let Comparison { rank, allowed, arrivals, .. } = compared;
    let border = place.saturating_add(AROUND) > *allowed && place <= allowed.saturating_add(AROUND);
    arrivals.len() <= ARRIVALS_SHOWN || place == 1 || place.abs_diff(*rank) <= AROUND || border
}

fn arrival(entry: &ArrivalView, trial: TrialId) -> String {
    let ArrivalView { rank, trial: number, value, went_on } = entry;
    let own = if *number == trial { "  <- this trial" } else { "" };
    let fate = if *went_on { "continued" } else { "" };
    format!("{rank:>5}  trial {number:<5} {:>12}  {fate:<9}{own}", maybe(*value)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use tuning::unit::ids::{BracketId, RungId};
    use wire::explain::Compared;

    use super::*;

    fn compared(arrived: u32, rank: u32, allowed: u32) -> Comparison {
        let arrivals = (1..=arrived).map(|place| ArrivalView {
            rank: place,
            trial: TrialId(100 + place),
            value: Some(f64::from(arrived - place) / 4.0),
            went_on: place <= allowed,
        });
        Comparison {
            bracket: BracketId(0),
            rung: RungId(1),
            level: Epochs(3),
            epoch: Epochs(3),
            compared: Compared::AtLevel,
            value: Some(0.5),
            rank,
            arrived,
            allowed,
            went_on: rank <= allowed,
            rule: String::new(),
            arrivals: arrivals.collect(),
            cost: CostSoFar::default(),
        }
    }

    fn shown(arrived: u32, rank: u32, allowed: u32) -> Vec<String> {
        console::set_colors_enabled(false);
        let text = arrivals(&compared(arrived, rank, allowed), TrialId(100 + rank));
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn a_short_list_is_complete_and_has_the_cutoff() {
        let lines = shown(4, 3, 1);
        assert_eq!(
            lines,
            [
                "1  trial 101           0.75  continued",
                "----- best 1 of 4",
                "2  trial 102            0.5",
                "3  trial 103           0.25             <- this trial",
                "4  trial 104              0",
            ]
        );
    }

    #[test]
    fn a_long_list_is_shortened_to_the_trial_and_the_cutoff() {
        let ranks = |lines: Vec<String>| -> Vec<String> {
            lines.iter().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
        };
        let lines = ranks(shown(1_000, 700, 333));
        let expected =
            ["1", "…", "332", "333", "-----", "334", "335", "…", "698", "699", "700", "701", "702", "…"];
        assert_eq!(lines, expected);
        let lines = ranks(shown(16, 5, 5));
        assert_eq!(lines, ["1", "2", "3", "4", "5", "-----", "6", "7", "…"]);
        let lines = ranks(shown(16, 1, 5));
        assert_eq!(lines, ["1", "2", "3", "4", "5", "-----", "6", "7", "…"]);
    }

    #[test]
    fn unbilled_time_is_shown_as_an_estimate() {
        let mut so_far = CostSoFar { billed_usd: Some(MicroUsd(0)), ..CostSoFar::default() };
        assert_eq!(cost(&so_far), "$0.0000 (0 s billed)");
        so_far.estimated_seconds = Some(3);
        so_far.estimated_usd = Some(MicroUsd(30_000));
        assert_eq!(cost(&so_far), "about $0.0300 (3 s not billed yet, estimated)");
        so_far.billed_usd = Some(MicroUsd(50_000));
        let expected = "$0.0500 (0 s billed) and about $0.0300 (3 s not billed yet, estimated)";
        assert_eq!(cost(&so_far), expected);
        so_far = CostSoFar { billed_seconds: 5, estimated_seconds: Some(3), ..CostSoFar::default() };
        assert_eq!(cost(&so_far), "5 s billed and about 3 s not billed yet, estimated");
    }
}
