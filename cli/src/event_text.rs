//! Texts for events, decisions and reasons: one line each, for the progress of `run` and for reports.

use search::Configuration;
use tuning::definition::Definition;
use tuning::fact::JobKey;
use tuning::ids::{RungId, TrialId};
use tuning::money::MicroUsd;
use tuning::ruling::{EndReason, Order, RetryWhy, Ruling, StopWhy, TrialEnd, Verdict};
use tuning::state::Incumbent;
use tuning::summary::JobSummary;
use use_cases::describe::stop_word;

use crate::follow::What;
use crate::text::{clean, maybe, short, usd, value};

/// Maximum characters of a message from outside the program.
const MESSAGE_CHARACTERS: usize = 160;

/// Maximum characters of a hyperparameter value.
const VALUE_CHARACTERS: usize = 40;

/// Returns the line for an event. `None` if users do not need to see it.
pub(crate) fn event_line(definition: &Definition, what: &What) -> Option<String> {
    match what {
        What::Ruled(ruling, job) => ruling_line(definition, ruling, job.as_deref()),
        What::Improved(best) => Some(improved(best)),
        What::Interrupted(job) => {
            Some(format!("trial {}: interrupted, its spot instances were reclaimed", job.trial))
        }
        What::Deferred(job, reason) => {
            Some(format!("trial {}: waits: {}", job.trial, short(reason, MESSAGE_CHARACTERS)))
        }
        What::StopRequested => Some("stop requested".to_owned()),
        What::LimitsChanged { cap, max_parallel, paused } => {
            Some(limits_changed(*cap, *max_parallel, *paused))
        }
    }
}

fn limits_changed(cap: Option<MicroUsd>, max_parallel: Option<u32>, paused: Option<bool>) -> String {
    let cap = cap.map(|cap| format!("the cost cap is now {}", usd(cap)));
    let most = max_parallel.map(|most| format!("the maximum is now {most} parallel jobs"));
    let paused = paused.map(|paused| {
        let text = if paused { "paused: no more jobs start" } else { "resumed after the pause" };
        text.to_owned()
    });
    [cap, most, paused].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn improved(best: &Incumbent) -> String {
    let Incumbent { value: best, trial, resource, .. } = best;
    format!("best so far {} (trial {trial}, epoch {resource})", value(*best))
}

/// A job whose bill never arrived.
fn settled_in_full(job: JobKey, amount: MicroUsd) -> String {
    let amount = usd(amount);
    format!(
        "trial {}: its bill never arrived, so its whole reservation ({amount}) counts as spent",
        job.trial
    )
}

/// The end of a job's warm pool.
fn pool_closed(definition: &Definition, job: JobKey, seconds: Option<u64>, amount: MicroUsd) -> String {
    let seconds = seconds.map_or_else(|| "an unknown time".to_owned(), |seconds| format!("{seconds} s"));
    let amount = definition.job.rate.map(|_| format!(" ({})", usd(amount))).unwrap_or_default();
    format!("trial {}: the instances of job {job} stayed in the warm pool for {seconds}{amount}", job.trial)
}

/// Returns the line for a decision. `None` for internal decisions.
fn ruling_line(definition: &Definition, ruling: &Ruling, job: Option<&JobSummary>) -> Option<String> {
    Some(match ruling {
        Ruling::TrialJudged { .. } => judged(ruling)?,
        Ruling::RungReached { .. } => format!("{}{}", reached(ruling)?, billed(definition, job)),
        Ruling::TrialPromoted { .. } => promoted(definition, ruling)?,
        Ruling::ResourceRepeated { job, had, from } => repeated(*job, *had, *from),
        Ruling::Order(Order::StartOrdered { .. }) => started(definition, ruling)?,
        Ruling::Order(Order::StopOrdered { job, why }) => stopped(job.trial, *why)?,
        Ruling::Order(
            Order::BillOrdered { .. }
            | Order::LogReadOrdered { .. }
            | Order::LookOrdered { .. }
            | Order::PoolReadOrdered { .. }
            | Order::PoolReleaseOrdered { .. }
            | Order::GrantOrdered { .. }
            | Order::ReturnOrdered { .. },
        ) => return None,
        Ruling::Order(Order::CapReached { percent: 100 }) => {
            "the rest of the cost cap is too small for another job".to_owned()
        }
        Ruling::Order(Order::CapReached { percent }) => format!("{percent} % of the cost cap is spent"),
        Ruling::Order(Order::MonthCapReached { month, percent }) => {
            format!("{percent} % of the stack's cap for {month} is granted")
        }
        Ruling::SettledInFull { job, amount } => settled_in_full(*job, *amount),
        Ruling::PoolClosed { job, seconds, amount } => pool_closed(definition, *job, *seconds, *amount),
        Ruling::AttemptAwaited { job: key, why, .. } => {
            let why = match why {
                RetryWhy::Capacity => "no capacity",
                RetryWhy::NextInstances => "no capacity, the next attempt uses other instances",
                RetryWhy::Quota => "blocked by a quota",
                RetryWhy::OnDemand => "no spot capacity, the next attempt uses on-demand instances",
                RetryWhy::MaxWait => "no spot capacity within the waiting time",
                RetryWhy::ServiceError => "error of the training service",
                RetryWhy::RuntimeCutTooShort => "the adaptive time limit was too short",
            };
            let message = job.and_then(|job| job.message.as_deref());
            let message = message.map(|message| format!(" ({})", short(message, MESSAGE_CHARACTERS)));
            format!(
                "trial {}: {why}{}; retrying{}",
                key.trial,
                message.unwrap_or_default(),
                billed(definition, job)
            )
        }
        Ruling::TrialFinished { trial, how: TrialEnd::Stopped(why), job: None }
            if definition.promotes().is_some() =>
        {
            format!("trial {trial}: ended{}", not_promoted(*why))
        }
        Ruling::TrialFinished { trial, how, .. } => {
            format!("trial {trial}: {}{}{}", finished(how), values(job), billed(definition, job))
        }
        Ruling::Order(Order::OverrunSeen) => {
            "a bill exceeded the maximum cost of its job: no more jobs start".to_owned()
        }
        Ruling::TuningEnding { why } => format!("no more jobs: {}", end_reason(why)),
        Ruling::Order(Order::TuningEnded { why }) => format!("the tuning has ended: {}", end_reason(why)),
    })
}

/// Returns why the job of a trial is stopped. `None` for a rung, which has its own line.
fn stopped(trial: TrialId, why: StopWhy) -> Option<String> {
    let why = match why {
        StopWhy::Rung { .. } => return None,
        StopWhy::PastLevel { level } => format!("trained beyond the {level} epochs of its rung, stopping"),
        StopWhy::NextInstances => "blocked by a quota, the next attempt uses other instances".to_owned(),
        StopWhy::Quota => "blocked by a quota for too long, its job is canceled".to_owned(),
        StopWhy::Interruptions { count } => {
            format!("interrupted {count} times, the next attempt uses on-demand instances")
        }
        StopWhy::MaxResource => "reached its last epoch, stopping".to_owned(),
        StopWhy::TuningEnding => "stopping because the tuning ends".to_owned(),
        StopWhy::NoObjective { seconds } => {
            format!("no objective value for {seconds} s, stopping")
        }
    };
    Some(format!("trial {trial}: {why}"))
}

fn started(definition: &Definition, ruling: &Ruling) -> Option<String> {
    let Ruling::Order(Order::StartOrdered { job, bracket, configuration, reservation, launch, .. }) = ruling
    else {
        return None;
    };
    let what = match (launch.resource, job.attempt) {
        _ if launch.refit => "training the best configuration once more".to_owned(),
        (_, 1) => "job started".to_owned(),
        // The previous line says whether it is a promotion or a retry.
        (Some(_), number) => format!("job {number} started"),
        (None, number) => format!("attempt {number}"),
    };
    let to = launch.resource.map_or_else(String::new, |level| format!(", to epoch {level}"));
    let worst = definition.job.rate.map(|_| format!(", at most {}", usd(*reservation))).unwrap_or_default();
    let how = if launch.on_demand { " on demand" } else { "" };
    let place = if launch.refit { String::new() } else { format!(" in bracket {bracket}") };
    Some(format!("trial {}: {what}{place}{how}{to}{worst}: {}", job.trial, rounded(configuration)))
}

fn judged(ruling: &Ruling) -> Option<String> {
    let Ruling::TrialJudged { trial, rung, level, resource, value, verdict, .. } = ruling else {
        return None;
    };
    let fate = if verdict.continues { "continues" } else { "stopped" };
    let place = rung_at(*rung, *level, *resource);
    Some(format!("trial {trial}: {place}: {} {}: {fate}", number(*value), ranked(verdict)))
}

fn reached(ruling: &Ruling) -> Option<String> {
    let Ruling::RungReached { trial, rung, level, resource, value, .. } = ruling else { return None };
    Some(format!("trial {trial}: {}: {}, waits", rung_at(*rung, *level, *resource), number(*value)))
}

fn promoted(definition: &Definition, ruling: &Ruling) -> Option<String> {
    let Ruling::TrialPromoted { trial, bracket, rung, level, value, verdict, .. } = ruling else {
        return None;
    };
    let here = definition.level(*bracket, *rung);
    let place = rung_at(*rung, here, here);
    Some(format!("trial {trial}: {place}: {} {}: promoted to epoch {level}", number(*value), ranked(verdict)))
}

fn repeated(job: JobKey, had: u32, from: u32) -> String {
    let start = if from == 0 { "at the beginning".to_owned() } else { format!("after epoch {from}") };
    format!(
        "trial {}: did not continue from its checkpoint: restarted {start} although it had {had} epochs",
        job.trial
    )
}

fn rung_at(rung: RungId, level: u32, resource: u32) -> String {
    let late = if resource == level { String::new() } else { format!(" (reached epoch {resource})") };
    format!("rung {rung} at epoch {level}{late}")
}

fn ranked(verdict: &Verdict) -> String {
    let Verdict { rank, seen, allowed, .. } = verdict;
    format!("rank {} of {seen}, best {allowed} continue", rank.saturating_add(1))
}

fn number(reached: Option<f64>) -> String {
    reached.map_or_else(|| "not a number".to_owned(), value)
}

/// Returns why a trial that waited for promotion gets no further job.
fn not_promoted(why: StopWhy) -> String {
    match why {
        StopWhy::Rung { rung } => format!(", not promoted from rung {rung}"),
        StopWhy::TuningEnding => " with the tuning, while waiting for promotion".to_owned(),
        StopWhy::MaxResource => " at its last epoch".to_owned(),
        StopWhy::PastLevel { .. } => ", trained beyond its level".to_owned(),
        StopWhy::NextInstances | StopWhy::Quota => ", its job was blocked by a quota".to_owned(),
        StopWhy::Interruptions { .. } => ", interrupted too often".to_owned(),
        StopWhy::NoObjective { .. } => ", no objective value".to_owned(),
    }
}

fn finished(how: &TrialEnd) -> String {
    match how {
        TrialEnd::Completed => "completed".to_owned(),
        TrialEnd::Stopped(StopWhy::Rung { rung }) => format!("ended, stopped at rung {rung}"),
        TrialEnd::Stopped(StopWhy::PastLevel { .. }) => "ended, stopped beyond its level".to_owned(),
        TrialEnd::Stopped(StopWhy::NextInstances | StopWhy::Quota) => {
            "ended, its job was blocked by a quota".to_owned()
        }
        TrialEnd::Stopped(StopWhy::Interruptions { .. }) => "ended, interrupted too often".to_owned(),
        TrialEnd::Stopped(StopWhy::MaxResource) => "ended at its last epoch".to_owned(),
        TrialEnd::Stopped(StopWhy::TuningEnding) => "ended with the tuning".to_owned(),
        TrialEnd::Stopped(StopWhy::NoObjective { .. }) => "ended, no objective value".to_owned(),
        TrialEnd::StoppedOutside => "ended, stopped by another user or program".to_owned(),
        TrialEnd::MaxRuntime => "ended at its time limit".to_owned(),
        TrialEnd::Failed(message) => format!("failed: {}", short(message, MESSAGE_CHARACTERS)),
        TrialEnd::NeverStarted => "canceled before it started".to_owned(),
    }
}

fn values(job: Option<&JobSummary>) -> String {
    let Some(job) = job.filter(|job| job.resource > 0) else { return String::new() };
    format!(", epoch {}, last {}, best {}", job.resource, maybe(job.last_value), maybe(job.best_value))
}

fn billed(definition: &Definition, job: Option<&JobSummary>) -> String {
    let Some(job) = job else { return String::new() };
    let seconds = job.billable_seconds.map(|seconds| format!(", {seconds} s billed"));
    // Without a price, the cost is unknown.
    let cost = job.cost.filter(|_| definition.job.rate.is_some()).map(|cost| format!(", {}", usd(cost)));
    format!("{}{}", seconds.unwrap_or_default(), cost.unwrap_or_default())
}

/// Returns the hyperparameters on one line.
pub(crate) fn parameters(configuration: &Configuration) -> String {
    let text = |text: &str| short(text, MESSAGE_CHARACTERS);
    pairs(configuration, text)
}

/// Like [`parameters`], but rounds numbers to six digits.
pub(crate) fn rounded(configuration: &Configuration) -> String {
    let text = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() => value(number),
        Ok(_) | Err(_) => short(text, VALUE_CHARACTERS),
    };
    pairs(configuration, text)
}

fn pairs(configuration: &Configuration, text: impl Fn(&str) -> String) -> String {
    let pairs = configuration.0.iter().map(|(name, value)| format!("{}={}", clean(name), text(value)));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Returns why a tuning ends.
pub(crate) fn end_reason(why: &EndReason) -> String {
    let message = match why {
        EndReason::Failed(message) => Some(message.as_str()),
        _ => None,
    };
    end_words(why.word(), message)
}

/// Like [`end_reason`], but takes the value of `Controller.EndReason` and the message of a failure.
pub(crate) fn end_words(word: &str, message: Option<&str>) -> String {
    match word {
        "CostCap" => "no other job fits the cost cap",
        "MaxJobs" => "all training jobs were launched",
        "Target" => "the target value was reached",
        "NotImproving" => "the last trials did not improve the best value",
        "MaxRuntime" => "the time limit was reached",
        "Stopped" => "it was stopped",
        "Failed" => return message.unwrap_or("the reason is unknown").trim().to_owned(),
        other => other,
    }
    .to_owned()
}

/// Returns what stopped a job, and whether it ignored its checkpoint, in a few words for a table.
pub(crate) fn stop_reason(job: &JobSummary) -> String {
    stop_words(job.stop.map(stop_word).as_deref(), job.message.as_deref(), job.repeats_from.map(u64::from))
}

/// Like [`stop_reason`], but takes the values that `describe` shows.
pub(crate) fn stop_words(word: Option<&str>, message: Option<&str>, repeats_from: Option<u64>) -> String {
    let restarted = repeats_from.map(|from| format!("restarted after epoch {from}"));
    let why = match word {
        Some("PastLevel") => "past its level".to_owned(),
        Some("NextInstances") => "other instances".to_owned(),
        Some("Quota") => "quota".to_owned(),
        Some("Interruptions") => "interruptions".to_owned(),
        Some("MaxResource") => "all epochs".to_owned(),
        Some("TuningEnding") => "tuning ending".to_owned(),
        Some("NoObjective") => "no objective".to_owned(),
        Some(word) => {
            word.strip_prefix("Rung").map_or_else(|| word.to_owned(), |rung| format!("rung {rung}"))
        }
        None => message.map_or_else(String::new, |message| short(message, MESSAGE_CHARACTERS)),
    };
    restarted.into_iter().chain(Some(why).filter(|why| !why.is_empty())).collect::<Vec<_>>().join(", ")
}
