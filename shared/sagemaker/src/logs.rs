//! The stored log of a job, from CloudWatch Logs.
//!
//! The SDK of CloudWatch Logs is here for this one call: no other service gives back lines whose delivery was lost. Assumes
//! that a page's token goes with the same `from`. Must never show a line of another job or host: the prefix ends with the
//! dash before the stream's time.

use aws_sdk_cloudwatchlogs::types::FilteredLogEvent;
use service::ports::Millis;
use service::ports::training::{JobLogs, LogLine, Paged, TrainingJobsError};
use wire::events::logs::is_id;

use crate::{SageMaker, errors};

/// Where SageMaker puts the logs of all training jobs of an account.
const LOG_GROUP: &str = "/aws/sagemaker/TrainingJobs";

impl JobLogs for SageMaker {
    async fn read(
        &self,
        name: &str,
        host: &str,
        from: Millis,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        let call = self
            .logs
            .filter_log_events()
            .log_group_name(LOG_GROUP)
            .log_stream_name_prefix(format!("{name}/{host}-"))
            .start_time(from.max(0))
            .set_next_token(page.map(str::to_owned));
        let answer = call.send().await.map_err(|error| errors::of_job(&error))?;
        let mut items: Vec<LogLine> = answer.events().iter().filter_map(line).collect();
        // Times are in order from page to page; within one time only ids tell.
        items.sort_by(|a, b| (a.timestamp, &a.id).cmp(&(b.timestamp, &b.id)));
        Ok(Paged { items, next: answer.next_token().filter(|token| !token.is_empty()).map(str::to_owned) })
    }
}

/// One line. What has no proper id has no place in a row, however long it is asked for.
fn line(event: &FilteredLogEvent) -> Option<LogLine> {
    let id = event.event_id().filter(|id| is_id(id))?;
    Some(LogLine {
        stream: event.log_stream_name()?.to_owned(),
        id: id.to_owned(),
        timestamp: event.timestamp()?,
        message: event.message()?.to_owned(),
    })
}
