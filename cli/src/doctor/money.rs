//! Checks about bills and prices.

use tuning::limits::{STARTUP_ALLOWANCE_SECONDS, STOP_GRACE_SECONDS, UPLOAD_ALLOWANCE_SECONDS};

use super::request::{MAX_RUNTIME_SECONDS, MAX_WAIT_SECONDS};
use super::seen::{Job, Seen};
use super::verdict::{Verdict, tenths};
use crate::text::usd;

/// Maximum seconds that SageMaker may bill beyond the time limit.
const PAST_LIMIT_SECONDS: u64 = STARTUP_ALLOWANCE_SECONDS + STOP_GRACE_SECONDS + UPLOAD_ALLOWANCE_SECONDS;
/// Tolerance, because bills are in whole seconds.
const ROUNDING_MS: i64 = 2_000;
const HOUR_MS: i64 = 3_600_000;
const NO_BILL: &str = "no job had a bill";

/// Returns the jobs with a bill, and their billed seconds.
fn billed(seen: &Seen) -> impl Iterator<Item = (&Job, u64)> {
    seen.jobs
        .values()
        .filter_map(|job| job.final_bill.or(job.bill.map(|(_, bill)| bill)).map(|bill| (job, bill)))
}

pub(super) fn spot_bill(seen: &Seen) -> Verdict {
    if !seen.spot {
        return Verdict::not_tried("the doctor ran without --spot");
    }
    let Some(most) = billed(seen).map(|(_, bill)| bill).max() else { return Verdict::not_tried(NO_BILL) };
    let bill = format!("{most} s were billed, at most {MAX_WAIT_SECONDS} s are allowed");
    if most > MAX_WAIT_SECONDS {
        return Verdict::No(bill);
    }
    match billed(seen).find_map(|(job, _)| exceeding_cause(job)) {
        Some(cause) => Verdict::Yes(format!("{bill}; the job {cause}")),
        None => Verdict::not_tried(format!("{bill}, but no job was interrupted or reached its limit")),
    }
}

/// Returns why a bill could exceed the limit. `None` if nothing happened to the job: then a small bill proves nothing.
fn exceeding_cause(job: &Job) -> Option<&'static str> {
    let transitions = job.last["SecondaryStatusTransitions"].as_array().into_iter().flatten();
    let mut all = transitions.filter_map(|one| one["Status"].as_str()).chain([job.text("SecondaryStatus")]);
    all.find_map(|status| match status {
        "Interrupted" => Some("was interrupted"),
        "MaxWaitTimeExceeded" | "MaxRuntimeExceeded" => Some("reached its limit"),
        _ => None,
    })
}

pub(super) fn past_limit(seen: &Seen) -> Verdict {
    let limited = billed(seen).find(|(job, _)| job.text("SecondaryStatus") == "MaxRuntimeExceeded");
    limited.map_or_else(
        || {
            Verdict::not_tried(
                "no job reached its time limit; use an image that trains for more than a minute",
            )
        },
        |(_, bill)| {
            let seen = format!("{bill} s were billed, the time limit was {MAX_RUNTIME_SECONDS} s");
            Verdict::of(bill <= MAX_RUNTIME_SECONDS.saturating_add(PAST_LIMIT_SECONDS), seen)
        },
    )
}

pub(super) fn interval(seen: &Seen) -> Verdict {
    if seen.spot {
        return Verdict::not_tried("spot instances are billed at a discount");
    }
    let ran = billed(seen).filter_map(|(job, bill)| {
        let ms = job.time("TrainingEndTime")?.checked_sub(job.time("TrainingStartTime")?)?;
        Some((bill, ms))
    });
    let ran: Vec<(u64, i64)> = ran.collect();
    if ran.is_empty() {
        return Verdict::not_tried(NO_BILL);
    }
    let far = |(bill, ms): &&(u64, i64)| {
        let billed = i64::try_from(*bill).unwrap_or(i64::MAX).saturating_mul(1_000);
        billed.saturating_sub(*ms).saturating_abs() > ROUNDING_MS
    };
    let (bill, ms) = ran.iter().find(far).unwrap_or(&ran[0]);
    Verdict::of(
        ran.iter().find(far).is_none(),
        format!("{bill} s were billed, the job ran {} s", tenths(*ms)),
    )
}

pub(super) fn shows(seen: &Seen) -> Verdict {
    let mut latest = None;
    for job in seen.jobs.values() {
        let Some(end) = job.time("TrainingEndTime") else { continue };
        match (job.bill, job.final_bill) {
            (Some((_, first)), Some(last)) if first != last => {
                return Verdict::No(format!("{}: first {first} s, later {last} s", job.name));
            }
            (Some((at, _)), _) if at.saturating_sub(end) > HOUR_MS => {
                return Verdict::No(format!("the bill appeared {} s after the end", tenths(at - end)));
            }
            (Some((at, _)), Some(_)) => latest = latest.max(Some(at.saturating_sub(end).max(0))),
            (Some(_), None) | (None, _) => {}
        }
    }
    latest.map_or_else(
        || Verdict::not_tried(NO_BILL),
        |ms| {
            Verdict::Yes(format!(
                "all bills appeared within {} s after the end and did not change",
                tenths(ms)
            ))
        },
    )
}

pub(super) fn prices(seen: &Seen) -> Verdict {
    match &seen.unpriced {
        Some(message) => Verdict::No(message.clone()),
        None if seen.submitted.is_none() => Verdict::not_tried("nothing was submitted"),
        None => {
            // Without both prices, nothing would be booked.
            match seen.totals().filter(|totals| totals.spent_usd.0 > 0 && !totals.price_unknown) {
                Some(totals) => {
                    let spent = usd(totals.spent_usd);
                    Verdict::Yes(format!("{spent} were booked at prices of the price list"))
                }
                None => Verdict::not_tried("the request was accepted, but no cost was booked"),
            }
        }
    }
}
