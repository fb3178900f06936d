//! A job as `DescribeTrainingJob` answers, as the port's description.
//!
//! Words of the service are passed on as they are, those that this version does not know too. Must never fill in what the
//! answer lacks with something that looks like an answer.

use aws_sdk_sagemaker::operation::describe_training_job::DescribeTrainingJobOutput;
use aws_sdk_sagemaker::types::{SecondaryStatus, TrainingJobStatus};
use aws_smithy_types::DateTime;
use service::ports::Millis;
use service::ports::training::{Description, TrainingJobsError, WarmPool};

/// What the SDK puts where a word is missing.
const FILLED_IN: &str = "no value was set";

/// The description of job `name`.
pub(crate) fn description(
    name: &str,
    job: &DescribeTrainingJobOutput,
) -> Result<Description, TrainingJobsError> {
    let status = told(job.training_job_status().map(TrainingJobStatus::as_str), "TrainingJobStatus")?;
    let secondary = told(job.secondary_status().map(SecondaryStatus::as_str), "SecondaryStatus")?;
    let created = job.creation_time().and_then(millis).filter(|created| *created > 0);
    let created = created.ok_or_else(|| lacks("CreationTime"))?;
    let ended = job.training_end_time().and_then(millis);
    let interrupted = |status: Option<&SecondaryStatus>| status == Some(&SecondaryStatus::Interrupted);
    let transitions = job.secondary_status_transitions().iter();
    let interruptions = transitions.filter(|transition| interrupted(transition.status())).count();
    Ok(Description {
        name: name.to_owned(),
        status: status.to_owned(),
        secondary_status: secondary.to_owned(),
        created,
        started: job.training_start_time().and_then(millis),
        ended,
        // Not promised by the service.
        modified: job.last_modified_time().and_then(millis).or(ended).unwrap_or(created),
        billable_seconds: job.billable_time_in_seconds().and_then(|seconds| u64::try_from(seconds).ok()),
        failure_reason: job.failure_reason().map(str::to_owned),
        interruptions: u32::try_from(interruptions).unwrap_or(u32::MAX),
        warm_pool: job.warm_pool_status().and_then(|pool| {
            let retained = pool.resource_retained_billable_time_in_seconds();
            Some(WarmPool {
                status: pool.status()?.as_str().to_owned(),
                retained_seconds: retained.and_then(|seconds| u64::try_from(seconds).ok()),
            })
        }),
    })
}

/// The ARN of a described job.
pub(crate) fn arn(job: &DescribeTrainingJobOutput) -> Result<&str, TrainingJobsError> {
    told(job.training_job_arn(), "TrainingJobArn")
}

/// A time in milliseconds. It comes as seconds with a fraction, which the SDK reads as a float: the nearest is what was
/// sent.
pub(crate) fn millis(time: &DateTime) -> Option<Millis> {
    let fraction = (time.subsec_nanos() + 500_000) / 1_000_000;
    time.secs().checked_mul(1_000)?.checked_add(Millis::from(fraction))
}

/// A word of the answer. Where it lacks what the service promises, the SDK fills something in.
fn told<'a>(word: Option<&'a str>, member: &str) -> Result<&'a str, TrainingJobsError> {
    word.filter(|word| !word.is_empty() && *word != FILLED_IN).ok_or_else(|| lacks(member))
}

/// To ask again may help.
fn lacks(member: &str) -> TrainingJobsError {
    TrainingJobsError::Unavailable(format!("the answer has no {member}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_what_was_sent_though_it_came_as_a_float() {
        for (sent, expected) in [
            (1_789_000_000.123, 1_789_000_000_123),
            (1_789_000_000.999, 1_789_000_000_999),
            (1_789_000_000.0, 1_789_000_000_000),
            // The nearest is the next second.
            (1_788_999_999.999_9, 1_789_000_000_000),
        ] {
            assert_eq!(millis(&DateTime::from_secs_f64(sent)), Some(expected), "{sent}");
        }
        assert_eq!(millis(&DateTime::from_secs(i64::MAX)), None);
    }
}
