//! One answer of the API, as lines and metrics.
//!
//! Says who was refused what, by code, and what failed inside; never what a request said.

use function::told::type_of;
use http_api::{Answered, Cause};
use telemetry::metrics::REQUESTS_REFUSED;
use telemetry::{Entry, ErrorType, Report};

/// Tells of an answer.
pub(crate) fn answered(answered: &Answered, report: &mut Report) {
    let Some(error) = &answered.error else {
        // What is only shown is in API Gateway's access log.
        if matches!(
            answered.operation,
            "CreateHyperParameterTuningJob" | "StopHyperParameterTuningJob" | "ChangeLimits"
        ) {
            report.log(about(answered, Entry::info(answered.operation)));
        }
        return;
    };
    let (error_type, detail) = match &error.cause {
        None => {
            report.add(REQUESTS_REFUSED, 1_u64);
            let entry = Entry::info("a request was refused").because(ErrorType::RequestRefused, error.code);
            return report.log(about(answered, entry));
        }
        Some(Cause::Store(error)) => (type_of(error), error.to_string()),
        Some(Cause::Prices(error)) => (ErrorType::Prices, error.to_string()),
        Some(Cause::Time) => (ErrorType::Timeout, error.message.clone()),
    };
    report.log(about(answered, Entry::error("a request failed").because(error_type, &detail)));
}

/// The tuning by its name: its id is not known where it was refused.
fn about(answered: &Answered, entry: Entry) -> Entry {
    let entry = entry.action(answered.operation);
    match &answered.tuning {
        Some(name) => entry.tuning(name),
        None => entry,
    }
}
