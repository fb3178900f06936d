//! Checks of what is billed.

use super::request::{MAX_RUNTIME_SECONDS, MAX_WAIT_SECONDS};
use super::seen::{Job, Seen};
use super::verdict::Verdict;
use crate::page::dollars;
use crate::text::usd;

/// What may be billed beyond the time limit.
const PAST_LIMIT_SECONDS: u64 = tuning::limits::STOP_GRACE_SECONDS + tuning::limits::UPLOAD_ALLOWANCE_SECONDS;
/// Times are told to the millisecond, bills in whole seconds.
const ROUNDING_MS: i64 = 2_000;
const HOUR_MS: i64 = 3_600_000;
const NO_BILL: &str = "no job with a bill was seen";

/// The jobs whose bill was seen, with the seconds billed.
fn billed(seen: &Seen) -> impl Iterator<Item = (&Job, u64)> {
    seen.jobs
        .values()
        .filter_map(|job| job.final_bill.or(job.bill.map(|(_, bill)| bill)).map(|bill| (job, bill)))
}

pub(super) fn spot_bill(seen: &Seen) -> Verdict {
    if !seen.spot {
        return Verdict::not("no spot instances were asked for (--spot)");
    }
    let Some(most) = billed(seen).map(|(_, bill)| bill).max() else { return Verdict::not(NO_BILL) };
    let told = format!("{most} s of at most {MAX_WAIT_SECONDS}");
    if most > MAX_WAIT_SECONDS {
        return Verdict::No(told);
    }
    match billed(seen).find_map(|(job, _)| tried_the_limit(job)) {
        Some(how) => Verdict::Yes(format!("{told}, of a job that {how}")),
        None => Verdict::not(format!("{told}, but no job was interrupted or came to its limit")),
    }
}

/// What happened to a job after which it might have been billed for more than it may: without that, a short bill tells nothing.
fn tried_the_limit(job: &Job) -> Option<&'static str> {
    let transitions = job.last["SecondaryStatusTransitions"].as_array().into_iter().flatten();
    let mut all = transitions.filter_map(|one| one["Status"].as_str()).chain([job.text("SecondaryStatus")]);
    all.find_map(|status| match status {
        "Interrupted" => Some("was interrupted"),
        "MaxWaitTimeExceeded" | "MaxRuntimeExceeded" => Some("came to its limit"),
        _ => None,
    })
}

pub(super) fn past_limit(seen: &Seen) -> Verdict {
    let limited = billed(seen).find(|(job, _)| job.text("SecondaryStatus") == "MaxRuntimeExceeded");
    limited.map_or_else(
        || Verdict::not("no job ran to its time limit: an image that trains for more than a minute would"),
        |(_, bill)| {
            let seen = format!("{bill} s were billed for a limit of {MAX_RUNTIME_SECONDS} s");
            Verdict::of(bill <= MAX_RUNTIME_SECONDS.saturating_add(PAST_LIMIT_SECONDS), seen)
        },
    )
}

pub(super) fn interval(seen: &Seen) -> Verdict {
    if seen.spot {
        return Verdict::not("spot instances are billed less than that");
    }
    let ran = billed(seen).filter_map(|(job, bill)| {
        let ms = job.time("TrainingEndTime")?.checked_sub(job.time("TrainingStartTime")?)?;
        Some((bill, ms))
    });
    let ran: Vec<(u64, i64)> = ran.collect();
    if ran.is_empty() {
        return Verdict::not(NO_BILL);
    }
    let far = |(bill, ms): &&(u64, i64)| {
        let billed = i64::try_from(*bill).unwrap_or(i64::MAX).saturating_mul(1_000);
        billed.saturating_sub(*ms).saturating_abs() > ROUNDING_MS
    };
    let (bill, ms) = ran.iter().find(far).unwrap_or(&ran[0]);
    Verdict::of(ran.iter().find(far).is_none(), format!("{bill} s were billed of {} s", tenths(*ms)))
}

pub(super) fn shows(seen: &Seen) -> Verdict {
    let mut told = None;
    for job in seen.jobs.values() {
        let Some(end) = job.time("TrainingEndTime") else { continue };
        match (job.bill, job.final_bill) {
            (Some((_, first)), Some(last)) if first != last => {
                return Verdict::No(format!("{}: {first} s, and later {last} s", job.name));
            }
            (Some((at, _)), _) if at.saturating_sub(end) > HOUR_MS => {
                return Verdict::No(format!("it took {} s", tenths(at - end)));
            }
            (Some((at, _)), Some(_)) => told = told.max(Some(at.saturating_sub(end).max(0))),
            _ => {}
        }
    }
    told.map_or_else(
        || Verdict::not(NO_BILL),
        |ms| {
            Verdict::Yes(format!(
                "{} s after the end at the latest, and the same when read again",
                tenths(ms)
            ))
        },
    )
}

pub(super) fn prices(seen: &Seen) -> Verdict {
    match &seen.unpriced {
        Some(message) => Verdict::No(message.clone()),
        None if seen.submitted.is_none() => Verdict::not("nothing was submitted"),
        None => {
            // What a price list that was never asked, or knows one of the two only, would leave at nothing.
            let own = &seen.tuning["Controller"];
            match dollars(&own["SpentUsd"]).filter(|spent| spent.0 > 0 && own["PriceUnknown"].is_null()) {
                Some(spent) => {
                    Verdict::Yes(format!("what the jobs ran was booked at listed prices: {}", usd(spent)))
                }
                None => Verdict::not("the request was taken, but no job was booked at a price"),
            }
        }
    }
}

/// Seconds with one place.
pub(super) fn tenths(ms: i64) -> String {
    format!("{}.{}", ms.max(0) / 1_000, ms.max(0) % 1_000 / 100)
}
