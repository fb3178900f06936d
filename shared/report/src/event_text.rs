//! Texts for events, decisions and reasons: one line each, for the progress of `run` and for reports.

use search::Configuration;
use tuning::definition::Definition;
use tuning::log::fact::JobEnd;
use tuning::log::reasons::{EndReason, StopWhy, TrialEnd};
use tuning::log::ruling::{AttemptRuling, Booking, NoticeOrder, Order, Ruling, SearchRuling};
use tuning::state::failures::cause;
use tuning::state::search::Incumbent;
use tuning::trial::summary::JobSummary;
use tuning::unit::money::MicroUsd;
use use_cases::describe::stop_word;
use use_cases::words;

use crate::follow::What;
use crate::text::{clean, maybe, short, usd, value};

/// Maximum characters of a message from outside the program.
const MESSAGE_CHARACTERS: usize = 160;

/// Maximum characters of a hyperparameter value.
const VALUE_CHARACTERS: usize = 40;

/// Returns the line for an event. `None` if users do not need to see it.
pub fn event_line(definition: &Definition, what: &What) -> Option<String> {
    match what {
        What::Ruled(ruling, job) => ruling_line(definition, ruling, job.as_deref()),
        What::Improved(best) => Some(improved(best)),
        What::Interrupted(job) => {
            Some(format!("trial {}: interrupted; its job continues when it has instances again", job.trial))
        }
        What::Deferred(job, reason) => {
            Some(format!("trial {}: waits: {}", job.trial, short(reason, MESSAGE_CHARACTERS)))
        }
        What::Noticed(notice) => {
            Some(format!("warning: {} {} [{}]", notice.message, notice.advice, notice.code))
        }
        What::StopRequested => Some("stop requested".to_owned()),
        What::LimitsChanged { cap, max_parallel, paused } => {
            Some(limits_changed(*cap, *max_parallel, *paused))
        }
    }
}

/// Like [`event_line`], but without the hyperparameters of started trials.
pub fn decision_line(definition: &Definition, what: &What) -> Option<String> {
    match what {
        What::Ruled(ruling @ Ruling::Order(Order::Start { .. }), _) => started(definition, ruling, false),
        What::Ruled(..)
        | What::Improved(_)
        | What::Interrupted(_)
        | What::Deferred(..)
        | What::Noticed(_)
        | What::StopRequested
        | What::LimitsChanged { .. } => event_line(definition, what),
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
    let Incumbent { value: best, trial, resource } = best;
    format!("best so far {} (trial {trial}, epoch {resource})", value(*best))
}

/// Returns the line for a decision. `None` for internal decisions.
fn ruling_line(definition: &Definition, ruling: &Ruling, job: Option<&JobSummary>) -> Option<String> {
    Some(match ruling {
        Ruling::Search(ruling) => search_line(definition, ruling, job),
        Ruling::Attempt(ruling) => attempt_line(definition, ruling, job),
        Ruling::Booking(booking) => booking_line(definition, booking),
        Ruling::TuningEnding { why } => format!("no more jobs: {}", why.message()),
        Ruling::Order(order) => return order_line(definition, ruling, order),
    })
}

fn search_line(definition: &Definition, ruling: &SearchRuling, job: Option<&JobSummary>) -> String {
    match ruling {
        SearchRuling::TrialDrawn { trial, configuration, .. } => {
            let size = definition.size_of(*trial, configuration);
            let count = definition.job.instances_of(size).count;
            format!("trial {trial}: drawn with {count} instances, which cannot start now")
        }
        SearchRuling::TrialJudged { trial, rung, level, resource, value, verdict, .. } => {
            let place = words::place(*rung, *level, *resource);
            let rule = words::rule(definition.plan(), *verdict, value.is_some());
            format!("trial {trial}: {place}: {}, {rule}", number(*value))
        }
        SearchRuling::RungReached { trial, rung, level, resource, value, .. } => {
            let waits = words::waits(*rung, *level, *resource);
            format!("trial {trial}: {waits}: {}{}{}", number(*value), billed(definition, job), remark(job))
        }
        SearchRuling::TrialPromoted { trial, rung, level, value, verdict, reached_target, .. } => {
            let promoted = words::promoted(*rung, *level);
            let why =
                if *reached_target { words::FOR_TARGET.to_owned() } else { words::promotion_rule(*verdict) };
            format!("trial {trial}: {promoted}: {}, {why}", number(*value))
        }
    }
}

fn attempt_line(definition: &Definition, ruling: &AttemptRuling, job: Option<&JobSummary>) -> String {
    match ruling {
        AttemptRuling::ResourceRepeated { job, had, from } => {
            format!("trial {}: {}", job.trial, words::repeated(*had, *from))
        }
        AttemptRuling::AttemptAwaited { job: key, why, not_before } => {
            let message = job.and_then(|job| job.message.as_deref());
            let awaited = clean(&words::awaited(*why, *not_before, message));
            format!("trial {}: {awaited}{}", key.trial, billed(definition, job))
        }
        AttemptRuling::TrialFinished { trial, how: TrialEnd::Stopped(StopWhy::Rung { rung }), job: None }
            if definition.promotes().is_some() =>
        {
            format!("trial {trial} is over: {}", words::not_promoted(*rung))
        }
        AttemptRuling::TrialFinished { trial, how, .. } => {
            let limit = job.map(|job| job.limits.max_runtime_seconds);
            let end = clean(&words::end(how, limit));
            format!("trial {trial} is over: {end}{}{}{}", values(job), billed(definition, job), remark(job))
        }
    }
}

fn booking_line(definition: &Definition, booking: &Booking) -> String {
    match booking {
        Booking::SettledInFull { job, amount } => {
            format!("trial {}: {}", job.trial, words::settled(definition, *amount))
        }
        Booking::ReservationExtended { job, seconds, amount } => {
            format!("trial {}: job {job}: {}", job.trial, words::extended(definition, *seconds, *amount))
        }
        Booking::BillBooked { job, seconds, amount } => {
            format!("trial {}: job {job}: {}", job.trial, words::booked(definition, *seconds, *amount))
        }
        Booking::PoolClosed { job, seconds, amount } => {
            format!("trial {}: job {job}: {}", job.trial, words::kept(definition, *seconds, *amount))
        }
    }
}

fn order_line(definition: &Definition, ruling: &Ruling, order: &Order) -> Option<String> {
    Some(match order {
        Order::Start { .. } => started(definition, ruling, true)?,
        // The comparison at the rung has its own line.
        Order::Stop { why: StopWhy::Rung { .. }, .. } | Order::Read(_) | Order::Pool(_) | Order::Grant(_) => {
            return None;
        }
        Order::Stop { job, why, .. } => format!("trial {}: {}", job.trial, words::stop(*why)),
        Order::Notice(NoticeOrder::CapReached { percent }) => words::cap_reached(*percent),
        Order::Notice(NoticeOrder::MonthCapReached { month, percent }) => {
            words::month_cap_reached(month, *percent)
        }
        Order::Notice(NoticeOrder::OverrunSeen) => words::OVERRUN.to_owned(),
        Order::Notice(NoticeOrder::CapacityLacking { .. }) => words::CAPACITY_LACKING.to_owned(),
        Order::Notice(NoticeOrder::TuningEnded { why }) => {
            format!("the tuning has ended: {}", why.message())
        }
    })
}

fn started(definition: &Definition, ruling: &Ruling, with_configuration: bool) -> Option<String> {
    let Ruling::Order(Order::Start { job, bracket, configuration, reservation, launch, .. }) = ruling else {
        return None;
    };
    let what = match (launch.resource, job.attempt) {
        _ if launch.refit => "training the best configuration once more".to_owned(),
        (_, 1) => "job ordered".to_owned(),
        // The previous line says whether it is a promotion or a retry.
        (Some(_), number) => format!("job {number} ordered"),
        (None, number) => format!("attempt {number}"),
    };
    let to = launch.resource.map_or_else(String::new, |level| format!(", to epoch {level}"));
    let worst =
        if definition.job.is_priced() { format!(", at most {}", usd(*reservation)) } else { String::new() };
    let how = if launch.on_demand { " on demand" } else { "" };
    let place = if launch.refit { String::new() } else { format!(" in bracket {bracket}") };
    let configuration =
        if with_configuration { format!(": {}", rounded(configuration)) } else { String::new() };
    Some(format!("trial {}: {what}{place}{how}{to}{worst}{configuration}", job.trial))
}

fn number(reached: Option<f64>) -> String {
    reached.map_or_else(|| "not a number".to_owned(), value)
}

fn values(job: Option<&JobSummary>) -> String {
    let Some(job) = job.filter(|job| !job.resource.is_zero()) else { return String::new() };
    format!(", epoch {}, last {}, best {}", job.resource, maybe(job.last_value), maybe(job.best_value))
}

/// Returns what the service remarks about the stop of a job, for example that its program ignored SIGTERM.
fn remark(job: Option<&JobSummary>) -> String {
    let stopped = job.filter(|job| matches!(job.end, Some(JobEnd::Stopped | JobEnd::MaxRuntime)));
    let message = stopped.and_then(|job| job.message.as_deref());
    message.map_or_else(String::new, |message| format!("; {}", short(&clean(message), MESSAGE_CHARACTERS)))
}

fn billed(definition: &Definition, job: Option<&JobSummary>) -> String {
    let Some(job) = job else { return String::new() };
    // Without a price, the cost is unknown.
    words::billed(job.billable_seconds, job.cost.filter(|_| definition.job.is_priced()))
}

/// Returns the hyperparameters on one line.
pub fn parameters(configuration: &Configuration) -> String {
    let text = |text: &str| short(text, MESSAGE_CHARACTERS);
    pairs(configuration, text)
}

/// Like [`parameters`], but rounds numbers to six digits.
pub fn rounded(configuration: &Configuration) -> String {
    let text = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() => value(number),
        Ok(_) | Err(_) => short(text, VALUE_CHARACTERS),
    };
    pairs(configuration, text)
}

/// Like [`rounded`], but cuts no text.
pub fn uncut(configuration: &Configuration) -> String {
    let text = |text: &str| match text.parse::<f64>() {
        Ok(number) if number.is_finite() => value(number),
        Ok(_) | Err(_) => clean(&text.replace('\n', " ")),
    };
    pairs(configuration, text)
}

fn pairs(configuration: &Configuration, text: impl Fn(&str) -> String) -> String {
    let pairs = configuration.0.iter().map(|(name, value)| format!("{}={}", clean(name), text(value)));
    pairs.collect::<Vec<_>>().join(" ")
}

/// Returns why a tuning ends, from the value of `Controller.EndReason` and the message of a failure.
pub fn end_words(word: &str, message: Option<&str>) -> String {
    match serde_json::from_value::<EndReason>(word.into()) {
        Ok(reason) => reason.message().to_owned(),
        Err(_) => message.unwrap_or(word).trim().to_owned(),
    }
}

/// Returns what stopped a job, and whether it ignored its checkpoint, in a few words for a table.
pub fn stop_reason(job: &JobSummary) -> String {
    let stop = job.stop.filter(|why| *why != StopWhy::MaxResource || job.end != Some(JobEnd::Completed));
    stop_words(
        stop.map(stop_word).as_deref(),
        job.message.as_deref(),
        job.repeats_from.map(|from| u64::from(from.0)),
    )
}

/// Like [`stop_reason`], but takes the values that `describe` shows.
pub fn stop_words(word: Option<&str>, message: Option<&str>, repeats_from: Option<u64>) -> String {
    let restarted = repeats_from.map(|from| format!("restarted after epoch {from}"));
    let why = match word {
        Some("PastLevel") => "past its level".to_owned(),
        Some("NextInstances") => "other instances".to_owned(),
        Some("Quota") => "quota".to_owned(),
        Some("OutOfReach") => "the cap or a quota is too small for its next training job".to_owned(),
        Some("Interruptions") => "interruptions".to_owned(),
        Some("MaxResource") => words::STOPPED_AFTER_LAST_EPOCH.to_owned(),
        Some("TuningEnding") => "tuning ending".to_owned(),
        Some("TargetReached") => "another trial reached the target".to_owned(),
        Some("NoObjective") => "no objective".to_owned(),
        Some("Diverged") => "diverged".to_owned(),
        Some("ReservationUsed") => "time limit".to_owned(),
        Some("CapExceeded") => "cap needed by another job".to_owned(),
        Some(word) => {
            word.strip_prefix("Rung").map_or_else(|| word.to_owned(), |rung| format!("rung {rung}"))
        }
        None => message.map_or_else(String::new, |message| short(&cause(message), MESSAGE_CHARACTERS)),
    };
    restarted.into_iter().chain(Some(why).filter(|why| !why.is_empty())).collect::<Vec<_>>().join(", ")
}
