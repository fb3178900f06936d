//! Converts a response of the API to log lines and metrics.
//!
//! Logs rejections by code and internal failures with their cause, never the content of a request.

use http_api::{Answered, Cause};
use lambda::outcomes::type_of;
use lambda::telemetry::metrics::REQUESTS_REFUSED;
use lambda::telemetry::{Entry, ErrorType, Report};

use crate::calls::Calls;

pub(crate) fn answered(answered: &Answered, calls: &Calls, report: &mut Report) {
    let Some(error) = &answered.error else {
        // Reads through API Gateway are in its access log. Changes are here too, with the ID of their tuning.
        let is_logged = *calls == Calls::Invoke
            || matches!(
                answered.operation,
                "CreateHyperParameterTuningJob"
                    | "StopHyperParameterTuningJob"
                    | "DeleteHyperParameterTuningJob"
                    | "StopTrainingJob"
                    | "ChangeLimits"
                    | "AddTags"
            );
        if is_logged {
            report.log(about(answered, Entry::info(answered.operation)));
        }
        return;
    };
    let (error_type, detail) = match error.cause.as_deref() {
        None => {
            report.add(REQUESTS_REFUSED, 1_u64);
            let entry = Entry::info("a request was rejected").because(ErrorType::RequestRefused, error.code);
            return report.log(about(answered, entry));
        }
        Some(Cause::Store(error)) => (type_of(error), error.to_string()),
        Some(Cause::Prices(error)) => (ErrorType::Prices, error.to_string()),
        Some(Cause::OtherTunings(error)) => (ErrorType::TrainingService, error.to_string()),
        Some(Cause::Time) => (ErrorType::Timeout, error.message.clone()),
    };
    report.log(about(answered, Entry::error("a request failed").because(error_type, &detail)));
}

/// Adds the tuning's ID to an entry, or its name if the ID is unknown.
fn about(answered: &Answered, entry: Entry) -> Entry {
    let entry = entry.action(answered.operation);
    match (&answered.id, &answered.tuning) {
        (Some(id), _) => entry.tuning(id),
        (None, Some(name)) => entry.name(name),
        (None, None) => entry,
    }
}

#[cfg(test)]
mod tests {
    use http_api::ApiError;
    use tuning::unit::time::Time;

    use super::*;

    #[test]
    fn regression_a_line_has_the_id_of_the_tuning_or_else_its_name() {
        let nothing = Answered::error(ApiError::timed_out());
        let named = Answered { tuning: Some("hb1".to_owned()), ..nothing };
        let line = |answered: &Answered| about(answered, Entry::info("x")).line("api", None, Time(0));
        let text = line(&named);
        assert!(text.contains(r#""name":"hb1""#) && !text.contains(r#""tuning""#), "{text}");
        let text = line(&Answered { id: Some("hb1-3fa1c2".to_owned()), ..named });
        assert!(text.contains(r#""tuning":"hb1-3fa1c2""#) && !text.contains(r#""name""#), "{text}");
    }
}
