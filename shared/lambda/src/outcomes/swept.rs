//! A sweep: what it did, left and failed to do. A sweep without work writes nothing.

use crate::telemetry::metrics::{
    ACTIONS_DEFERRED, ACTIONS_LEFT, ACTIONS_MISSED, ACTIONS_PERFORMED, DELIVERIES_MISSED, EVENTS_MISSED,
    EVENTS_UNREADABLE, JOBS_STARTED, JOBS_STOPPED, ORPHANS_STOPPED, SWEEP_FAILED, SWEEP_MS,
    TRAINING_SERVICE_CALLS, TUNINGS_ACTIVE, TUNINGS_STUCK,
};
use crate::telemetry::{Entry, ErrorType, Report};
use serde_json::{Value, json};
use tuning::unit::time::Millis;
use use_cases::store::StoreError;
use use_cases::sweep::{Counts, PerCallKind, Swept};

use super::{assumed_started, job_name, log_cut, type_of};
use crate::Failure;

/// Reports a sweep that took `time`, and returns the response to Lambda. `None`: the invocation ran out of time.
pub fn swept(
    result: Option<Result<Swept, StoreError>>,
    time: Millis,
    report: &mut Report,
) -> Result<Value, Failure> {
    let failure = match result {
        Some(Ok(swept)) => {
            count(&swept, time, report);
            failures(&swept, report);
            return Ok(answer(&swept));
        }
        Some(Err(error)) => Failure::new(type_of(&error), &error),
        None => Failure::timeout(),
    };
    report.add(SWEEP_FAILED, 1_u64);
    report.log(Entry::error("a sweep failed").because(failure.error_type, &failure.message));
    Err(failure)
}

fn count(swept: &Swept, time: Millis, report: &mut Report) {
    let PerCallKind { describe, tags, list, log, create, stop } = swept.calls;
    let Counts { done, started, stopped, deferred } = swept.performed;
    report.add(TRAINING_SERVICE_CALLS, [describe, tags, list, log, create, stop].iter().sum::<u32>());
    report.add(TUNINGS_ACTIVE, swept.tunings);
    report.add(ACTIONS_PERFORMED, done);
    report.add(ACTIONS_DEFERRED, deferred);
    report.add(JOBS_STARTED, started);
    report.add(JOBS_STOPPED, stopped);
    report.add(ACTIONS_LEFT, swept.left);
    report.add(TUNINGS_STUCK, swept.stuck);
    report.add(ACTIONS_MISSED, swept.missed);
    report.add(EVENTS_MISSED, swept.events_missed);
    report.add(DELIVERIES_MISSED, swept.deliveries_missed);
    report.add(EVENTS_UNREADABLE, swept.assumed_started.len());
    report.add(ORPHANS_STOPPED, swept.orphans_stopped);
    report.add(SWEEP_FAILED, swept.failed + usize::from(swept.listing_error.is_some()));
    if !report.metrics().is_empty() {
        report.add(SWEEP_MS, time.0);
    }
}

fn failures(swept: &Swept, report: &mut Report) {
    let failed = |error: &StoreError| {
        Entry::error("a sweep could not complete its work on a tuning or job")
            .because(type_of(error), &error.to_string())
    };
    for (id, error) in &swept.failures {
        report.log(failed(error).tuning(id));
    }
    // An error that concerns no tuning: of a listed job, a page of active tunings, or the lease.
    if let Some(error) = &swept.last_error
        && swept.failures.last().is_none_or(|(_, logged)| logged != error)
    {
        report.log(failed(error));
    }
    if let Some(error) = &swept.listing_error {
        let entry = Entry::error("running jobs could not be listed or stopped");
        report.log(entry.because(ErrorType::TrainingService, &error.to_string()));
    }
    for (id, why) in &swept.unpublished {
        let entry = Entry::warn("a trial event was not published").tuning(id);
        report.log(entry.because(ErrorType::Bus, why));
    }
    let cut = swept.logs_cut.iter().map(|(id, action)| (id, action, log_cut()));
    let assumed = swept.assumed_started.iter().map(|(id, action, why)| (id, action, assumed_started(why)));
    for (id, action, entry) in cut.chain(assumed) {
        let entry = entry.tuning(id).action(action);
        report.log(match job_name(id, action) {
            Some(name) => entry.job(&name),
            None => entry,
        });
    }
    if swept.orphans_stopped > 0 {
        report.log(Entry::warn("running jobs without a decision were stopped"));
    }
    if swept.lost {
        report.log(Entry::warn("the sweep's lease expired and passed to another sweeper"));
    }
}

/// Returns what a sweep did, and its last errors.
fn answer(swept: &Swept) -> Value {
    let settled = &swept.settled;
    json!({
        "busy": swept.busy,
        "lost": swept.lost,
        "tunings": swept.tunings,
        "looked": swept.looked,
        "settled": {
            "starts": settled.starts,
            "stops": settled.stops,
            "bills": settled.bills,
            "reads": settled.reads,
            "notices": settled.notices,
            "grants": settled.grants,
        },
        "left": swept.left,
        "stuck": swept.stuck,
        "missed": swept.missed,
        "eventsMissed": swept.events_missed,
        "deliveriesMissed": swept.deliveries_missed,
        "failed": swept.failed,
        "orphansStopped": swept.orphans_stopped,
        "lastError": swept.last_error.as_ref().map(ToString::to_string),
        "listingError": swept.listing_error.as_ref().map(ToString::to_string),
    })
}
