//! The actuator's batch: started and stopped jobs, deferred actions and failed ones.

use crate::telemetry::metrics::{
    ACTIONS_DEFERRED, ACTIONS_FAILED, ACTIONS_PERFORMED, EVENTS_UNREADABLE, JOBS_STARTED, JOBS_STOPPED,
};
use crate::telemetry::{Entry, ErrorType, Report};
use serde_json::Value;
use use_cases::perform::{ActionBatch, ActionResult, Effect, Performed};

use super::{assumed_started, bad_records, job_name, log_cut, not_done};

/// Reports a batch, and returns the response to Lambda.
pub fn acts(batch: &ActionBatch, report: &mut Report) -> Value {
    bad_records(batch, report);
    for part in &batch.parts {
        let ActionResult { action, performed, unpublished, kept, .. } = &part.done;
        let job = job_name(&part.tuning, action);
        let entry = |entry: Entry| {
            let entry = entry.tuning(&part.tuning).action(action);
            match &job {
                Some(name) => entry.job(name),
                None => entry,
            }
        };
        if let Some(why) = kept {
            let warning = Entry::warn("a start was not handed over").because(ErrorType::HandOver, why);
            report.log(entry(warning));
        }
        if let Some(performed) = performed {
            performed_one(performed, report, entry);
        }
        if let Some(why) = unpublished {
            let warning = Entry::warn("a trial event was not published").because(ErrorType::Bus, why);
            report.log(entry(warning));
        }
        if let Some(failed) = not_done(part, "an action was not completed") {
            report.add(ACTIONS_FAILED, 1_u64);
            report.log(entry(failed));
        }
    }
    batch.answer()
}

fn performed_one(performed: &Performed, report: &mut Report, entry: impl Fn(Entry) -> Entry) {
    match performed {
        Performed::NotNow | Performed::Done(Effect::AlreadySettled) => return,
        Performed::Deferred(why) => {
            report.add(ACTIONS_DEFERRED, 1_u64);
            report.log(entry(Entry::warn("an action was deferred").because(ErrorType::Deferred, why)));
            return;
        }
        Performed::Done(Effect::Started { .. }) => {
            report.add(JOBS_STARTED, 1_u64);
            report.log(entry(Entry::info("a training job was started")));
        }
        Performed::Done(Effect::Stopped { .. }) => {
            report.add(JOBS_STOPPED, 1_u64);
            report.log(entry(Entry::info("a training job was ordered to stop")));
        }
        Performed::Done(Effect::Refused(message)) => {
            let refused = Entry::error("a training job was refused");
            report.log(entry(refused.because(ErrorType::StartRefused, code_of(message))));
        }
        Performed::Done(Effect::AssumedStarted(why)) => {
            report.add(EVENTS_UNREADABLE, 1_u64);
            report.log(entry(assumed_started(why)));
        }
        Performed::Done(Effect::LogCut) => report.log(entry(log_cut())),
        Performed::Done(Effect::Other) => {}
    }
    report.add(ACTIONS_PERFORMED, 1_u64);
}

/// Returns the service's error code alone, since its message can repeat values of the request.
fn code_of(message: &str) -> &str {
    let code = message.split(':').next().unwrap_or_default();
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_code { code } else { "see describe" }
}
