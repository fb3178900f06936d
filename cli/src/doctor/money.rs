//! Checks about bills and prices.

use std::fmt::Write;

use tuning::unit::limits::{STARTUP_ALLOWANCE_SECONDS, STOP_GRACE_SECONDS, UPLOAD_ALLOWANCE_SECONDS};

use super::evidence::{Evidence, Job};
use super::request::{MAX_RUNTIME_SECONDS, MAX_WAIT_SECONDS};
use super::verdict::{Verdict, tenths};
use crate::text::usd;

/// Maximum seconds that SageMaker may bill beyond the time limit.
const PAST_LIMIT_SECONDS: u64 = STARTUP_ALLOWANCE_SECONDS + STOP_GRACE_SECONDS + UPLOAD_ALLOWANCE_SECONDS;
/// Shortest download and upload that show whether they count.
const SHOWN_MS: i64 = 10_000;
/// Tolerance, because bills are in whole seconds.
const ROUNDING_MS: i64 = 2_000;
const HOUR_MS: i64 = 3_600_000;
const NO_BILL: &str = "no job had a bill";
const DISCOUNT: &str = "spot instances are billed at a discount";
const NO_LIMIT: &str = "no job reached its time limit; use a program that trains longer";
const HOW: &str = "use --input with some gigabytes, and a program that saves a model of some gigabytes";

/// Returns the jobs with a bill, and their billed seconds.
fn billed(seen: &Evidence) -> impl Iterator<Item = (&Job, u64)> {
    seen.jobs
        .values()
        .filter_map(|job| job.final_bill.or(job.bill.map(|(_, bill)| bill)).map(|bill| (job, bill)))
}

pub(super) fn spot_bill(seen: &Evidence) -> Verdict {
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

/// Returns the first job that reached its time limit.
fn limited(seen: &Evidence) -> Option<&Job> {
    seen.jobs.values().find(|job| job.text("SecondaryStatus") == "MaxRuntimeExceeded")
}

/// Durations of a job's phases, in ms.
struct Phases {
    /// From `TrainingStartTime` to the status `Training`.
    download: i64,
    program: i64,
    upload: i64,
    /// From `TrainingStartTime` to the end of the last phase.
    all: i64,
}

impl Phases {
    fn of(job: &Job) -> Option<Self> {
        let (started, (begun, ended)) = (job.time("TrainingStartTime")?, job.phase("Training")?);
        let (upload_start, upload_end) = job.phase("Uploading").unwrap_or((ended, ended));
        Some(Self {
            download: begun.saturating_sub(started),
            program: ended.saturating_sub(begun),
            upload: upload_end.saturating_sub(upload_start),
            all: upload_end.saturating_sub(started),
        })
    }
}

pub(super) fn past_limit(seen: &Evidence) -> Verdict {
    if seen.spot {
        return Verdict::not_tried(DISCOUNT);
    }
    let Some(job) = limited(seen) else { return Verdict::not_tried(NO_LIMIT) };
    let Some((_, bill)) = billed(seen).find(|(billed, _)| billed.name == job.name) else {
        return Verdict::not_tried(NO_BILL);
    };
    let mut found = format!("{bill} s were billed, the time limit was {MAX_RUNTIME_SECONDS} s");
    let phases = Phases::of(job);
    if let Some(Phases { download, program, upload, all }) = phases {
        let contains =
            if to_ms(bill).saturating_add(ROUNDING_MS) >= all { "contains" } else { "does not contain" };
        let [download, program, upload] = [download, program, upload].map(tenths);
        // Writing to a string cannot fail.
        let _ = write!(
            found,
            "; download {download} s, program {program} s, upload {upload} s; the bill {contains} the whole upload"
        );
    }
    if bill > MAX_RUNTIME_SECONDS.saturating_add(PAST_LIMIT_SECONDS) {
        return Verdict::No(found);
    }
    match phases {
        Some(phases) if phases.download.min(phases.upload) >= SHOWN_MS => Verdict::Yes(found),
        _ => Verdict::not_tried(format!("{found}; too short to show what is billed: {HOW}")),
    }
}

pub(super) fn limit_start(seen: &Evidence) -> Verdict {
    let Some(job) = limited(seen) else { return Verdict::not_tried(NO_LIMIT) };
    if job.phase("Training").is_none() && job.phase("Downloading").is_some() {
        return Verdict::Yes("the time limit ended the job during its download".to_owned());
    }
    let Some(Phases { download, program, .. }) = Phases::of(job) else {
        return Verdict::not_tried("the description of the job has no times of its phases");
    };
    let found = format!(
        "the time limit of {MAX_RUNTIME_SECONDS} s ended the program {} s after TrainingStartTime, {} s after the \
         download of {} s",
        tenths(download.saturating_add(program)),
        tenths(program),
        tenths(download)
    );
    if download < SHOWN_MS {
        return Verdict::not_tried(format!("{found}, too short to show it: {HOW}"));
    }
    Verdict::yes_if(program.saturating_add(ROUNDING_MS) < to_ms(MAX_RUNTIME_SECONDS), found)
}

/// Converts seconds to milliseconds.
fn to_ms(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

pub(super) fn interval(seen: &Evidence) -> Verdict {
    if seen.spot {
        return Verdict::not_tried(DISCOUNT);
    }
    let ran = billed(seen).filter_map(|(job, bill)| {
        let ms = job.time("TrainingEndTime")?.checked_sub(job.time("TrainingStartTime")?)?;
        Some((bill, ms))
    });
    let ran: Vec<(u64, i64)> = ran.collect();
    if ran.is_empty() {
        return Verdict::not_tried(NO_BILL);
    }
    let far = |(bill, ms): &&(u64, i64)| to_ms(*bill).saturating_sub(*ms).saturating_abs() > ROUNDING_MS;
    let (bill, ms) = ran.iter().find(far).unwrap_or(&ran[0]);
    Verdict::yes_if(
        ran.iter().find(far).is_none(),
        format!("{bill} s were billed, the job ran {} s", tenths(*ms)),
    )
}

pub(super) fn shows(seen: &Evidence) -> Verdict {
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

pub(super) fn prices(seen: &Evidence) -> Verdict {
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
