//! Converts the response of `DescribeTrainingJob` to the port's description.
//!
//! Passes statuses on unchanged, unknown ones included. Must never replace a missing field with a value that looks
//! real.

use aws_sdk_sagemaker::operation::describe_training_job::DescribeTrainingJobOutput;
use aws_sdk_sagemaker::types::{MetricData, SecondaryStatus, TrainingJobStatus};
use aws_smithy_types::DateTime;
use tuning::unit::time::Time;
use use_cases::ports::training::{Description, TrainingJobsError, WarmPool};

/// The SDK's placeholder for a missing required field.
const FILLED_IN: &str = "no value was set";

pub(crate) fn description(
    name: &str,
    job: &DescribeTrainingJobOutput,
) -> Result<Description, TrainingJobsError> {
    let status = required(job.training_job_status().map(TrainingJobStatus::as_str), "TrainingJobStatus")?;
    let secondary = required(job.secondary_status().map(SecondaryStatus::as_str), "SecondaryStatus")?;
    let created = job.creation_time().and_then(time).filter(|created| *created > Time::EPOCH);
    let created = created.ok_or_else(|| lacks("CreationTime"))?;
    let ended = job.training_end_time().and_then(time);
    let interrupted = |status: Option<&SecondaryStatus>| status == Some(&SecondaryStatus::Interrupted);
    let transitions = job.secondary_status_transitions().iter();
    let interruptions = transitions.filter(|transition| interrupted(transition.status())).count();
    Ok(Description {
        name: name.to_owned(),
        status: status.to_owned(),
        secondary_status: secondary.to_owned(),
        created,
        started: job.training_start_time().and_then(time),
        ended,
        // Optional in the response.
        modified: job.last_modified_time().and_then(time).or(ended).unwrap_or(created),
        billable_seconds: job.billable_time_in_seconds().and_then(|seconds| u64::try_from(seconds).ok()),
        failure_reason: job.failure_reason().map(str::to_owned),
        interruptions: u32::try_from(interruptions).unwrap_or(u32::MAX),
        final_metrics: job.final_metric_data_list().iter().filter_map(final_metric).collect(),
        warm_pool: job.warm_pool_status().and_then(|pool| {
            let retained = pool.resource_retained_billable_time_in_seconds();
            Some(WarmPool {
                status: pool.status()?.as_str().to_owned(),
                retained_seconds: retained.and_then(|seconds| u64::try_from(seconds).ok()),
            })
        }),
    })
}

fn final_metric(metric: &MetricData) -> Option<(String, f64)> {
    // The shortest decimal of the 32-bit value, not its neighbour in 64 bits.
    let value = metric.value().filter(|value| value.is_finite())?.to_string().parse().ok()?;
    Some((metric.metric_name()?.to_owned(), value))
}

pub(crate) fn arn(job: &DescribeTrainingJobOutput) -> Result<&str, TrainingJobsError> {
    required(job.training_job_arn(), "TrainingJobArn")
}

/// Returns a time of the SDK, rounded to the nearest millisecond: the service sends seconds with a fraction, which the
/// SDK reads as a float.
pub(crate) fn time(sent: &DateTime) -> Option<Time> {
    let fraction = (sent.subsec_nanos() + 500_000) / 1_000_000;
    sent.secs().checked_mul(1_000)?.checked_add(i64::from(fraction)).map(Time)
}

/// Returns a required status of the response, or an error if it is missing.
fn required<'a>(word: Option<&'a str>, member: &str) -> Result<&'a str, TrainingJobsError> {
    word.filter(|word| !word.is_empty() && *word != FILLED_IN).ok_or_else(|| lacks(member))
}

/// A retry may succeed.
fn lacks(member: &str) -> TrainingJobsError {
    TrainingJobsError::Unavailable(format!("the response has no {member}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_time_is_rounded_to_the_nearest_millisecond() {
        for (sent, expected) in [
            (1_789_000_000.123, 1_789_000_000_123),
            (1_789_000_000.999, 1_789_000_000_999),
            (1_789_000_000.0, 1_789_000_000_000),
            // Rounds up to the next second.
            (1_788_999_999.999_9, 1_789_000_000_000),
        ] {
            assert_eq!(time(&DateTime::from_secs_f64(sent)), Some(Time(expected)), "{sent}");
        }
        assert_eq!(time(&DateTime::from_secs(i64::MAX)), None);
    }
}
