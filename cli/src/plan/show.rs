//! Formats the plan as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};
use wire::request::{RungExecution, RungsWhy, usd as dollars};

use super::late_stops::{LateStops, thousandths, time};
use super::{Brackets, Outcome, Outlook};
use crate::text::{clean, table, usd};
use crate::warning;

pub(super) fn text(outlook: &Outlook) -> String {
    let mut text = String::new();
    let name = clean(outlook.request.name());
    // Writing to a string cannot fail.
    match &outlook.hyperband {
        Some(brackets) => {
            let _ = writeln!(
                text,
                "{name}: Hyperband from {} to {} epochs, reduction factor {}\n\n{}",
                brackets.min_resource,
                brackets.plan.max_resource(),
                brackets.plan.eta(),
                rung_table(brackets)
            );
            text.push_str(&comparison(outlook, brackets));
            if let Some(late) = LateStops::forecast(outlook) {
                let _ = write!(text, "\n{}", late.text());
            }
        }
        None => {
            let _ = writeln!(
                text,
                "{name}: {} without brackets: each of the {} training jobs runs to its end{}",
                outlook.request.strategy().word(),
                outlook.request.max_jobs(),
                if outlook.request.stops_early() { ", unless the median rule stops it" } else { "" }
            );
        }
    }
    text.push('\n');
    text.push_str(&own(outlook));
    if !outlook.warnings.is_empty() {
        let _ = write!(text, "\n{}", warning::text(&outlook.warnings));
    }
    text
}

fn rung_table(brackets: &Brackets) -> String {
    let mut rows = Vec::new();
    for (number, bracket) in brackets.plan.brackets().iter().enumerate() {
        for (rung, (planned, trials)) in bracket.rungs().iter().zip(brackets.trials_at(number)).enumerate() {
            let bracket = if rung == 0 { number.to_string() } else { String::new() };
            rows.push(vec![bracket, rung.to_string(), planned.resource.to_string(), trials.to_string()]);
        }
    }
    table(&["BRACKET", "RUNG", "EPOCHS", "TRIALS"], &rows, &[0, 1, 2, 3])
}

/// Returns a comparison of Stop and Promote for one full set of brackets.
fn comparison(outlook: &Outlook, brackets: &Brackets) -> String {
    let times = match outlook.epoch_ms {
        Some(epoch) => format!("{} per start-up, {} per epoch", time(outlook.startup_ms), time(epoch)),
        None => "add --epoch-seconds for times".to_owned(),
    };
    let row = |execution: RungExecution, outcome: &Outcome| {
        let own = if execution == brackets.execution { " (this request)" } else { "" };
        let mut row =
            vec![format!("{execution:?}{own}"), outcome.jobs.to_string(), outcome.epochs.to_string()];
        if outlook.epoch_ms.is_some() {
            row.push(time(outcome.billed_ms));
            row.push(time(outcome.wall_ms));
        }
        row.extend(outlook.cost(outcome).map(usd));
        row
    };
    let rows = [row(RungExecution::Stop, &brackets.stop), row(RungExecution::Promote, &brackets.promote)];
    let head = ["RUNG EXECUTION", "JOBS", "EPOCHS", "BILLED", "WALL TIME", "EXPECTED COST"];
    let columns = head.iter().take(rows[0].len()).copied().collect::<Vec<_>>();
    format!(
        "one full set of these brackets, {}; {times}\n{}{}\n",
        at_once(outlook.request.max_parallel(), brackets),
        table(&columns, &rows, &[1, 2, 3, 4, 5]),
        brackets.verdict(outlook.startup_ms, outlook.epoch_ms.is_some())
    )
}

/// Returns how many jobs run at once, and the lowest limit below `MaxParallelTrainingJobs`.
fn at_once(parallel: u32, brackets: &Brackets) -> String {
    let Brackets { held, paid, .. } = *brackets;
    let jobs = if parallel == 1 { "job" } else { "jobs" };
    let limit = if paid < parallel.min(held) {
        format!(", the cap pays {paid}")
    } else if held < parallel {
        format!(", MaxInstances allows {held}")
    } else {
        String::new()
    };
    format!("at most {parallel} {jobs} at once (MaxParallelTrainingJobs){limit}")
}

/// Returns the lines about the request itself.
fn own(outlook: &Outlook) -> String {
    let mut lines = Vec::new();
    if let Some(brackets) = &outlook.hyperband {
        let shares: Vec<String> = brackets.shares.iter().map(u32::to_string).collect();
        let (all, full_set) = brackets.whole;
        let sets = format!("at most {} training jobs; a full set has {full_set}", brackets.jobs);
        lines.push(("this request", sets));
        let used = brackets.plan.brackets().len();
        let late = outlook.request.compares_late();
        let part = if late {
            " in one bracket that compares late".to_owned()
        } else if used < all {
            format!(" in the {used} of {all} brackets that they fill")
        } else {
            String::new()
        };
        lines.push(("brackets", format!("{} trials{part}", shares.join(" + "))));
        if late {
            lines.push(("", late_reason()));
        }
        if brackets.why != RungsWhy::Given {
            lines.push(("rungs", format!("Auto: {:?}, because {}", brackets.execution, brackets.why)));
        }
        lines.push(("expected", expected(outlook, &brackets.own)));
        for (prefer, outcome) in ["Cost", "Value"].iter().zip(brackets.preferences.iter().flatten()) {
            if *outcome != brackets.own {
                lines.push(("", format!("with Prefer {prefer}: {}", expected(outlook, outcome))));
            }
        }
    }
    let initial = outlook.request.initial_count();
    if initial > 0 {
        lines.push(("first trials", format!("{initial} of InitialConfigurations")));
    }
    let sizes: Vec<String> = outlook.definition.job.sizes.iter().map(u32::to_string).collect();
    if let Some(most) = sizes.last() {
        lines.push(("sizes", format!("{} instances a job; costs are those of {most}", sizes.join(", "))));
    }
    let names: Vec<String> = outlook.request.definition_names().map(clean).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        lines.push((
            "definitions",
            format!("{names}: each has brackets of its own; costs are of the dearest"),
        ));
    }
    let cap = outlook.cap.map_or_else(|| "no cap".to_owned(), |cap| format!("cap {}", usd(cap)));
    match outlook.worst {
        Some((one, all)) => {
            lines.push(("worst case", format!("{} per job, {} in total ({cap})", usd(one), usd(all))));
            if let Some(kept) = outlook.kept {
                let definition = &outlook.definition;
                let seconds = definition.greatest_limits(definition.dearest()).keep_alive_seconds;
                lines.push(("", format!("per job, {} of it for {seconds} s in a warm pool", usd(kept))));
            }
        }
        None => lines.push(("cost", format!("unknown: {}", missing_price(outlook)))),
    }
    let mut text = String::new();
    for (title, line) in lines {
        let _ = writeln!(text, "{title:<13} {line}");
    }
    text
}

fn late_reason() -> String {
    "because the model explores; set ReductionFactor for the brackets of Hyperband".to_owned()
}

fn expected(outlook: &Outlook, outcome: &Outcome) -> String {
    let mut text = format!("{} jobs, {} epochs", outcome.jobs, outcome.epochs);
    if outlook.epoch_ms.is_some() {
        let _ = write!(text, ", {} billed, {} wall time", time(outcome.billed_ms), time(outcome.wall_ms));
    }
    if let Some(cost) = outlook.cost(outcome) {
        let _ = write!(text, ", {}", usd(cost));
    }
    text
}

fn missing_price(outlook: &Outlook) -> String {
    let kind = clean(outlook.request.unpriced_type());
    format!("set Controller.InstancePricesUsdPerHour to {{\"{kind}\": <USD per hour>}}")
}

pub(super) fn json(outlook: &Outlook) -> Value {
    let request = &outlook.request;
    let mut shown = json!({
        "HyperParameterTuningJobName": request.name(),
        "Strategy": request.strategy(),
        "StartupSeconds": thousandths(outlook.startup_ms),
        "EpochSeconds": outlook.epoch_ms.map(thousandths),
        "MaxNumberOfTrainingJobs": request.max_jobs(),
        "MaxParallelTrainingJobs": request.max_parallel(),
        "MaxCostUsd": outlook.cap.map(dollars),
        "WorstCaseJobUsd": outlook.worst.map(|(one, _)| dollars(one)),
        "WorstCaseKeptUsd": outlook.kept.map(dollars),
        "WorstCaseUsd": outlook.worst.map(|(_, all)| dollars(all)),
        "InitialConfigurations": request.initial_count(),
        "Warnings": warning::json(&outlook.warnings),
    });
    let names: Vec<&str> = request.definition_names().collect();
    if !names.is_empty() {
        shown["Definitions"] = json!(names);
    }
    if let Some(brackets) = &outlook.hyperband {
        let plan = &brackets.plan;
        shown["MinResource"] = json!(brackets.min_resource);
        shown["MaxResource"] = json!(plan.max_resource());
        shown["ReductionFactor"] = json!(plan.eta());
        shown["BracketsReason"] = json!(request.compares_late().then(late_reason));
        shown["RungExecution"] = json!(brackets.execution);
        shown["RungExecutionReason"] = json!(brackets.why.to_string());
        shown["MaxNumberOfTrainingJobs"] = json!(brackets.jobs);
        shown["Brackets"] = bracket_list(brackets);
        shown["AllBrackets"] = json!(brackets.whole.0);
        shown["FullSetTrainingJobs"] = json!(brackets.whole.1);
        let outcome = |outcome: &Outcome| outcome_json(outlook, outcome);
        shown["FullSet"] = json!({"Stop": outcome(&brackets.stop), "Promote": outcome(&brackets.promote)});
        shown["Expected"] = outcome(&brackets.own);
        let preferences = brackets.preferences.as_ref();
        shown["Preferences"] = preferences
            .map_or(Value::Null, |[cost, value]| json!({"Cost": outcome(cost), "Value": outcome(value)}));
        shown["LateStops"] = json!(LateStops::forecast(outlook).map(|late| late.json()));
        shown["Verdict"] = json!(brackets.verdict(outlook.startup_ms, outlook.epoch_ms.is_some()));
    }
    shown
}

fn bracket_list(brackets: &Brackets) -> Value {
    let list = brackets.plan.brackets().iter().zip(&brackets.shares).enumerate().map(
        |(number, (bracket, share))| {
            let rungs = bracket.rungs().iter().zip(brackets.trials_at(number));
            let rungs: Vec<Value> =
                rungs.map(|(rung, trials)| json!({"Resource": rung.resource, "Trials": trials})).collect();
            json!({"Trials": bracket.trials(), "TrialsOfRequest": share, "Rungs": rungs})
        },
    );
    Value::Array(list.collect())
}

fn outcome_json(outlook: &Outlook, outcome: &Outcome) -> Value {
    let timed = |milliseconds: u64| outlook.epoch_ms.map(|_| thousandths(milliseconds));
    json!({
        "TrainingJobs": outcome.jobs,
        "Epochs": outcome.epochs,
        "BilledSeconds": timed(outcome.billed_ms),
        "WallSeconds": timed(outcome.wall_ms),
        "CostUsd": outlook.cost(outcome).map(dollars),
    })
}
