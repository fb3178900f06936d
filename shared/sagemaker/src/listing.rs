//! The running jobs of the account, oldest first.
//!
//! Assumes that a page token is used with the same `from`. Must include jobs created exactly at `from`: a caller that
//! continues from the last job it saw would miss other jobs of the same moment.

use aws_sdk_sagemaker::types::{SortBy, SortOrder, TrainingJobStatus};
use aws_smithy_types::DateTime;
use tuning::unit::time::Time;
use use_cases::ports::training::{Listed, Paged, TrainingJobListing, TrainingJobsError};

use crate::describe::time;
use crate::{SageMaker, errors};

/// Jobs on a page, the service's maximum.
const PAGE_JOBS: i32 = 100;

impl TrainingJobListing for SageMaker {
    async fn in_progress(&self, from: Time, page: Option<&str>) -> Result<Paged<Listed>, TrainingJobsError> {
        let call = self
            .reads
            .list_training_jobs()
            .status_equals(TrainingJobStatus::InProgress)
            .sort_by(SortBy::CreationTime)
            .sort_order(SortOrder::Ascending)
            .creation_time_after(before(from))
            .max_results(PAGE_JOBS)
            .set_next_token(page.map(str::to_owned));
        let answer = call.send().await.map_err(|error| errors::of(errors::Call::List, &error))?;
        let jobs = answer.training_job_summaries().iter().filter_map(|job| {
            let (name, created) = (job.training_job_name()?, job.creation_time().and_then(time)?);
            (created >= from).then(|| Listed { name: name.to_owned(), created })
        });
        Ok(Paged {
            items: jobs.collect(),
            next: answer.next_token().filter(|token| !token.is_empty()).map(str::to_owned),
        })
    }
}

/// Returns a whole second before `from`. AWS does not document whether the filter is inclusive and respects
/// fractions, so the caller drops jobs that are too early.
fn before(from: Time) -> DateTime {
    DateTime::from_secs(from.0.div_euclid(1_000).saturating_sub(1).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_a_second_earlier_and_not_before_the_epoch() {
        assert_eq!(before(Time(1_789_000_000_999)), DateTime::from_secs(1_788_999_999));
        assert_eq!(before(Time(1_789_000_000_000)), DateTime::from_secs(1_788_999_999));
        assert_eq!(before(Time::EPOCH), DateTime::from_secs(0));
        assert_eq!(before(Time::MIN), DateTime::from_secs(0));
    }
}
