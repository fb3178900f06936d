//! The actuator's batch: jobs started and stopped, what was put off, and what failed.

use serde_json::Value;
use service::perform::{Act, Acts, Effect, Performed};
use telemetry::metrics::{ACTIONS_DEFERRED, ACTIONS_FAILED, ACTIONS_PERFORMED, JOBS_STARTED, JOBS_STOPPED};
use telemetry::{Entry, ErrorType, Report};

use super::{bad_records, job_name, log_cut, not_done};

/// Tells of a batch; the answer.
pub fn acts(batch: &Acts, report: &mut Report) -> Value {
    bad_records(batch, report);
    for part in &batch.parts {
        let Act { action, performed, unpublished } = &part.done;
        let job = job_name(&part.tuning, action);
        let entry = |entry: Entry| {
            let entry = entry.tuning(&part.tuning).action(action);
            match &job {
                Some(name) => entry.job(name),
                None => entry,
            }
        };
        if let Some(performed) = performed {
            performed_one(performed, report, entry);
        }
        if let Some(why) = unpublished {
            let told = Entry::warn("the event bus was not told of a trial").because(ErrorType::Bus, why);
            report.log(entry(told));
        }
        if let Some(failed) = not_done(part, "an action was not brought to its end") {
            report.add(ACTIONS_FAILED, 1_u64);
            report.log(entry(failed));
        }
    }
    batch.answer()
}

fn performed_one(performed: &Performed, report: &mut Report, entry: impl Fn(Entry) -> Entry) {
    match performed {
        Performed::NotNow | Performed::Done(Effect::Before) => return,
        Performed::PutOff(why) => {
            report.add(ACTIONS_DEFERRED, 1_u64);
            report.log(entry(Entry::warn("an action was put off").because(ErrorType::Deferred, why)));
            return;
        }
        Performed::Done(Effect::Started) => {
            report.add(JOBS_STARTED, 1_u64);
            report.log(entry(Entry::info("a training job was started")));
        }
        Performed::Done(Effect::Stopped { .. }) => {
            report.add(JOBS_STOPPED, 1_u64);
            report.log(entry(Entry::info("a training job was told to stop")));
        }
        Performed::Done(Effect::Refused(message)) => {
            let refused = Entry::error("a training job was refused");
            report.log(entry(refused.because(ErrorType::StartRefused, code_of(message))));
        }
        Performed::Done(Effect::LogCut) => report.log(entry(log_cut())),
        Performed::Done(Effect::Other) => {}
    }
    report.add(ACTIONS_PERFORMED, 1_u64);
}

/// The service's error code. Its message may repeat what is in the request.
fn code_of(message: &str) -> &str {
    let code = message.split(':').next().unwrap_or_default();
    let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_code { code } else { "see describe" }
}
