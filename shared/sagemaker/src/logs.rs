//! The stored log of a job, from CloudWatch Logs.
//!
//! The SDK of CloudWatch Logs serves this one call: only the stored log returns lines whose delivery was lost.
//! Assumes that a page token is used with the same `from`. Must never return lines of another job or host: the stream
//! prefix ends with the dash before the stream's time.

use aws_sdk_cloudwatchlogs::types::FilteredLogEvent;
use tuning::unit::time::Time;
use use_cases::ports::training::{JobLogs, LogLine, Paged, TrainingJobsError};
use wire::events::logs::is_id;

use crate::{SageMaker, errors};

const LOG_GROUP: &str = "/aws/sagemaker/TrainingJobs";

impl JobLogs for SageMaker {
    async fn read(
        &self,
        name: &str,
        host: &str,
        from: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        let call = self
            .logs
            .filter_log_events()
            .log_group_name(LOG_GROUP)
            .log_stream_name_prefix(format!("{name}/{host}-"))
            .start_time(from.0.max(0))
            .set_next_token(page.map(str::to_owned));
        let answer = call.send().await.map_err(|error| errors::of(errors::Call::OfJob, &error))?;
        let mut items: Vec<LogLine> = answer.events().iter().filter_map(line).collect();
        // Pages are in order of time; lines of the same time are in order of their IDs.
        items.sort_by(|a, b| (a.timestamp, &a.id).cmp(&(b.timestamp, &b.id)));
        Ok(Paged { items, next: answer.next_token().filter(|token| !token.is_empty()).map(str::to_owned) })
    }
}

/// Converts an event to a line. An event without a valid ID cannot be ordered, so it is skipped.
fn line(event: &FilteredLogEvent) -> Option<LogLine> {
    let id = event.event_id().filter(|id| is_id(id))?;
    Some(LogLine {
        stream: event.log_stream_name()?.to_owned(),
        id: id.to_owned(),
        timestamp: Time(event.timestamp()?),
        message: event.message()?.to_owned(),
    })
}
