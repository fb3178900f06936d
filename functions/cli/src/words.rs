//! Events and decisions in words, one line each: for the progress of `run` and the decisions of a report.

use search::Configuration;
use service::describe::stop_word;
use tuning::definition::Definition;
use tuning::fact::JobKey;
use tuning::money::MicroUsd;
use tuning::ruling::{EndReason, RetryWhy, Ruling, StopWhy, TrialEnd, Verdict};
use tuning::state::Incumbent;
use tuning::summary::JobSummary;

use crate::follow::What;
use crate::text::{clean, maybe, short, usd, value};

/// Characters of a message from elsewhere that fit a line.
const MESSAGE_CHARACTERS: usize = 160;

/// Characters of a hyperparameter that fit a line.
const VALUE_CHARACTERS: usize = 40;

/// A line that tells `what`; `None` for what only the machinery cares about.
pub(crate) fn line(definition: &Definition, what: &What) -> Option<String> {
    match what {
        What::Ruled(ruling, job) => decision(definition, ruling, job.as_deref()),
        What::Improved(best) => Some(improved(best)),
        What::Interrupted(job) => {
            Some(format!("trial {}: interrupted, its instances were taken away", job.trial))
        }
        What::Deferred(job, reason) => {
            Some(format!("trial {}: has to wait: {}", job.trial, short(reason, MESSAGE_CHARACTERS)))
        }
        What::StopRequested => Some("the order to stop was taken".to_owned()),
        What::LimitsChanged { cap, max_parallel, paused } => Some(changed(*cap, *max_parallel, *paused)),
    }
}

/// Limits were changed.
fn changed(cap: Option<MicroUsd>, max_parallel: Option<u32>, paused: Option<bool>) -> String {
    let cap = cap.map(|cap| format!("the cost cap is now {}", usd(cap)));
    let most = max_parallel.map(|most| format!("at most {most} jobs at once from now on"));
    let paused = paused.map(|paused| {
        let text = if paused { "paused: no further job is started" } else { "goes on after its pause" };
        text.to_owned()
    });
    [cap, most, paused].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn improved(best: &Incumbent) -> String {
    let Incumbent { value: best, trial, resource, .. } = best;
    format!("best so far {} (trial {trial}, epoch {resource})", value(*best))
}

/// A bill that never came.
fn settled(job: JobKey, amount: MicroUsd) -> String {
    let amount = usd(amount);
    format!("trial {}: its bill never came, all that was reserved ({amount}) counts as spent", job.trial)
}

/// What keeping a job's instances cost.
fn kept(definition: &Definition, job: JobKey, seconds: Option<u64>, amount: MicroUsd) -> String {
    let seconds =
        seconds.map_or_else(|| "nobody knows how long".to_owned(), |seconds| format!("for {seconds} s"));
    let amount = definition.job.rate.map(|_| format!(" ({})", usd(amount))).unwrap_or_default();
    format!("trial {}: its instances were kept after its job {job}, {seconds}{amount}", job.trial)
}

/// A decision in words.
fn decision(definition: &Definition, ruling: &Ruling, job: Option<&JobSummary>) -> Option<String> {
    Some(match ruling {
        Ruling::TrialJudged { .. } => judged(ruling)?,
        Ruling::RungReached { .. } => format!("{}{}", reached(ruling)?, billed(definition, job)),
        Ruling::TrialPromoted { .. } => promoted(definition, ruling)?,
        Ruling::ResourceRepeated { job, had, from } => repeated(*job, *had, *from),
        Ruling::StartOrdered { .. } => started(definition, ruling)?,
        Ruling::StopOrdered { job, why } => stopped(job.trial, *why)?,
        Ruling::BillOrdered { .. }
        | Ruling::LogReadOrdered { .. }
        | Ruling::LookOrdered { .. }
        | Ruling::PoolReadOrdered { .. }
        | Ruling::PoolReleaseOrdered { .. }
        | Ruling::GrantOrdered { .. }
        | Ruling::ReturnOrdered { .. } => return None,
        Ruling::CapReached { percent: 100 } => "what is left of the cost cap pays no further job".to_owned(),
        Ruling::CapReached { percent } => format!("{percent} % of the cost cap is spent"),
        Ruling::MonthCapReached { month, percent } => {
            format!("{percent} % of the stack's cap for {month} is granted")
        }
        Ruling::SettledInFull { job, amount } => settled(*job, *amount),
        Ruling::PoolClosed { job, seconds, amount } => kept(definition, *job, *seconds, *amount),
        Ruling::AttemptAwaited { job: key, why, .. } => {
            let why = match why {
                RetryWhy::Capacity => "there was no capacity",
                RetryWhy::NextInstances => "there was no capacity, other instances are next",
                RetryWhy::Quota => "a quota kept it from starting",
                RetryWhy::OnDemand => "spot capacity failed it, on demand is next",
                RetryWhy::MaxWait => "no spot capacity came in time",
                RetryWhy::ServiceError => "the training service failed",
                RetryWhy::RuntimeCutTooShort => "its running time had been cut too short",
            };
            let message = job.and_then(|job| job.message.as_deref());
            let message = message.map(|message| format!(" ({})", short(message, MESSAGE_CHARACTERS)));
            format!(
                "trial {}: {why}{}, is tried again{}",
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
        Ruling::OverrunSeen => {
            "a bill was above what its job could cost: no further job is started".to_owned()
        }
        Ruling::TuningEnding { why } => format!("no further job: {}", reason(why)),
        Ruling::TuningEnded { why } => format!("the tuning has ended: {}", reason(why)),
    })
}

/// Why the job of a trial is stopped; `None`: told with the judgement.
fn stopped(trial: u32, why: StopWhy) -> Option<String> {
    let why = match why {
        StopWhy::Rung { .. } => return None,
        StopWhy::PastLevel { level } => format!("trains beyond its rung's {level} epochs, is stopped"),
        StopWhy::NextInstances => "a quota keeps its job from starting, other instances are next".to_owned(),
        StopWhy::Quota => "a quota lets nothing start for long, its job is called off".to_owned(),
        StopWhy::Interruptions { count } => format!("interrupted {count} times, goes on on demand"),
        StopWhy::MaxResource => "has all its epochs, is stopped".to_owned(),
        StopWhy::TuningEnding => "is stopped, the tuning ends".to_owned(),
        StopWhy::NoObjective { seconds } => {
            format!("no value of the objective for {seconds} s, is stopped")
        }
    };
    Some(format!("trial {trial}: {why}"))
}

fn started(definition: &Definition, ruling: &Ruling) -> Option<String> {
    let Ruling::StartOrdered { job, bracket, configuration, reservation, launch, .. } = ruling else {
        return None;
    };
    let what = match (launch.resource, job.attempt) {
        _ if launch.refit => "the best configuration is trained once more".to_owned(),
        (_, 1) => "job started".to_owned(),
        // Whether it is promoted or tried again, the line before tells.
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
    let fate = if verdict.goes_on { "goes on" } else { "stopped" };
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
    let anew = if from == 0 { "anew".to_owned() } else { format!("again after epoch {from}") };
    format!(
        "trial {}: did not go on from its checkpoint: begins {anew} although it had {had} epochs",
        job.trial
    )
}

fn rung_at(rung: u32, level: u32, resource: u32) -> String {
    let late = if resource == level { String::new() } else { format!(" (seen at epoch {resource})") };
    format!("rung {rung} at epoch {level}{late}")
}

fn ranked(verdict: &Verdict) -> String {
    let Verdict { rank, seen, allowed, .. } = verdict;
    format!("ranks {} of {seen}, best {allowed} go on", rank.saturating_add(1))
}

fn number(reached: Option<f64>) -> String {
    reached.map_or_else(|| "not a number".to_owned(), value)
}

/// Why a trial that waited for a job of its own gets none.
fn not_promoted(why: StopWhy) -> String {
    match why {
        StopWhy::Rung { rung } => format!(", not promoted from rung {rung}"),
        StopWhy::TuningEnding => " with the tuning, while it waited".to_owned(),
        StopWhy::MaxResource => " with all its epochs".to_owned(),
        StopWhy::PastLevel { .. } => ", it trained beyond its level".to_owned(),
        StopWhy::NextInstances | StopWhy::Quota => ", a quota kept its job from starting".to_owned(),
        StopWhy::Interruptions { .. } => ", it was interrupted too often".to_owned(),
        StopWhy::NoObjective { .. } => ", it emitted nothing".to_owned(),
    }
}

fn finished(how: &TrialEnd) -> String {
    match how {
        TrialEnd::Completed => "completed".to_owned(),
        TrialEnd::Stopped(StopWhy::Rung { rung }) => format!("ended, stopped at rung {rung}"),
        TrialEnd::Stopped(StopWhy::PastLevel { .. }) => "ended, stopped beyond its level".to_owned(),
        TrialEnd::Stopped(StopWhy::NextInstances | StopWhy::Quota) => {
            "ended, a quota kept its job from starting".to_owned()
        }
        TrialEnd::Stopped(StopWhy::Interruptions { .. }) => "ended, interrupted too often".to_owned(),
        TrialEnd::Stopped(StopWhy::MaxResource) => "ended with all its epochs".to_owned(),
        TrialEnd::Stopped(StopWhy::TuningEnding) => "ended with the tuning".to_owned(),
        TrialEnd::Stopped(StopWhy::NoObjective { .. }) => "ended, stopped for its silence".to_owned(),
        TrialEnd::StoppedOutside => "ended, stopped by somebody else".to_owned(),
        TrialEnd::MaxRuntime => "ended at its running-time limit".to_owned(),
        TrialEnd::Failed(message) => format!("failed: {}", short(message, MESSAGE_CHARACTERS)),
        TrialEnd::NeverStarted => "called off before it started".to_owned(),
    }
}

fn values(job: Option<&JobSummary>) -> String {
    let Some(job) = job.filter(|job| job.resource > 0) else { return String::new() };
    format!(", epoch {}, last {}, best {}", job.resource, maybe(job.last_value), maybe(job.best_value))
}

fn billed(definition: &Definition, job: Option<&JobSummary>) -> String {
    let Some(job) = job else { return String::new() };
    let seconds = job.billable_seconds.map(|seconds| format!(", {seconds} s billed"));
    // Without a price there is no cost to tell.
    let cost = job.cost.filter(|_| definition.job.rate.is_some()).map(|cost| format!(", {}", usd(cost)));
    format!("{}{}", seconds.unwrap_or_default(), cost.unwrap_or_default())
}

/// Hyperparameters on one line.
pub(crate) fn parameters(configuration: &Configuration) -> String {
    let text = |text: &str| short(text, MESSAGE_CHARACTERS);
    pairs(configuration, text)
}

/// Hyperparameters on one line, numbers with a few digits.
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

/// Why a tuning ends.
pub(crate) fn reason(why: &EndReason) -> String {
    let message = match why {
        EndReason::Failed(message) => Some(message.as_str()),
        _ => None,
    };
    end_words(why.word(), message)
}

/// The same from the word of `Controller.EndReason` and the message of a failure.
pub(crate) fn end_words(word: &str, message: Option<&str>) -> String {
    match word {
        "CostCap" => "no further job fits the cost cap",
        "MaxJobs" => "all training jobs were launched",
        "Target" => "the target value was reached",
        "NotImproving" => "the last trials brought nothing better",
        "MaxRuntime" => "its time is up",
        "Stopped" => "it was stopped",
        "Failed" => return format!("it failed: {}", message.unwrap_or("no reason is told").trim()),
        other => other,
    }
    .to_owned()
}

/// What stopped a job, in a few words for a table; and that it did not go on from its checkpoint.
pub(crate) fn stop_reason(job: &JobSummary) -> String {
    stop_words(job.stop.map(stop_word).as_deref(), job.message.as_deref(), job.repeats_from.map(u64::from))
}

/// The same from what describe shows of a job.
pub(crate) fn stop_words(word: Option<&str>, message: Option<&str>, repeats_from: Option<u64>) -> String {
    let began_anew = repeats_from.map(|from| format!("began again after epoch {from}"));
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
    began_anew.into_iter().chain(Some(why).filter(|why| !why.is_empty())).collect::<Vec<_>>().join(", ")
}
