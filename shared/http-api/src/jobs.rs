//! Pages of a tuning's training jobs.
//!
//! In the default order, by name, a page reads only the rows that it needs. Any other order reads all jobs of the
//! tuning. A page begins after the last position of the previous page, even if the job at that position has changed.

use tuning::log::fact::JobKey;
use use_cases::describe::{self, JobPage, Place};
use use_cases::ports::table::Table;
use use_cases::store::Store;
use wire::describe::{TrainingJobPage, TrainingJobSummary};
use wire::names::{parse_job_key, parse_training_job_name};

use crate::error::ApiError;
use crate::list::{self, JobOrder, JobsQuery};

/// Maximum number of jobs that a page with a status filter reads.
const LOOKED_MAX: usize = 1_000;
/// Maximum number of these jobs per query.
const LOOKED_AT_ONCE: usize = 100;

/// Returns one page of the training jobs of tuning `id`; `None` if the tuning was deleted.
pub(crate) async fn page<T: Table>(
    store: &Store<T>,
    place: &Place,
    id: &str,
    asked: &JobsQuery,
) -> Result<Option<TrainingJobPage>, ApiError> {
    let after = asked.after.as_deref().map(|content| list::place_of(content, id)).transpose()?;
    let answer = |(jobs, next): (Vec<TrainingJobSummary>, Option<String>)| TrainingJobPage {
        jobs,
        next_token: next.map(|next| list::token_of(&asked.list(), id, &next)),
    };
    if asked.order != JobOrder::Name {
        let jobs = describe::jobs(store, place, id).await?;
        return Ok(jobs.map(|jobs| answer(sorted(jobs, asked, after))));
    }
    let last = after.map(|text| parse_job_key(text).ok_or_else(list::wrong_token));
    let (mut last, mut looked, mut shown) = (last.transpose()?, 0_usize, Vec::new());
    let more = loop {
        let room = asked.limit.saturating_sub(shown.len());
        let limit = if asked.status.is_some() { LOOKED_AT_ONCE } else { room };
        let page = describe::jobs_after(store, place, id, last, asked.descending, limit).await?;
        let Some(JobPage { jobs, more }) = page else { return Ok(None) };
        looked = looked.saturating_add(jobs.len());
        let mut left = false;
        for (key, job) in jobs {
            if shown.len() >= asked.limit {
                left = true;
                break;
            }
            last = Some(key);
            if asked.status.is_none_or(|status| job.status == status) {
                shown.push(job);
            }
        }
        if !(more || left) || shown.len() >= asked.limit || looked >= LOOKED_MAX {
            break more || left;
        }
    };
    let next = last.filter(|_| more).map(|key| key.to_string());
    Ok(Some(answer((shown, next))))
}

/// Returns the jobs of the page after `after`, and the place of the next page.
fn sorted(
    jobs: Vec<TrainingJobSummary>,
    asked: &JobsQuery,
    after: Option<&str>,
) -> (Vec<TrainingJobSummary>, Option<String>) {
    let mut jobs: Vec<(String, TrainingJobSummary)> =
        jobs.into_iter().filter_map(|job| Some((position(&job, asked.order)?, job))).collect();
    jobs.sort_by(|(one, _), (other, _)| if asked.descending { other.cmp(one) } else { one.cmp(other) });
    if let Some(after) = after {
        let follows = |position: &str| if asked.descending { position < after } else { position > after };
        jobs.retain(|(position, _)| follows(position));
    }
    if let Some(status) = asked.status {
        jobs.retain(|(_, job)| job.status == status);
    }
    let more = jobs.len() > asked.limit;
    jobs.truncate(asked.limit);
    let next = jobs.last().filter(|_| more).map(|(position, _)| position.clone());
    (jobs.into_iter().map(|(_, job)| job).collect(), next)
}

/// Returns the position of a job as a text that sorts in the given order; `None` if the order omits the job.
fn position(job: &TrainingJobSummary, order: JobOrder) -> Option<String> {
    let (_, JobKey { trial, rung, attempt }) = parse_training_job_name(&job.name)?;
    let first = match order {
        JobOrder::Name => String::new(),
        JobOrder::CreationTime => format!("{:020}", job.created_ms),
        JobOrder::Status => job.status.clone(),
        JobOrder::FinalObjectiveMetricValue => sortable(job.final_objective.as_ref()?.value),
    };
    Some(format!("{first}/{trial:010}-{rung:010}-{attempt:010}"))
}

/// Returns a number as a text that sorts in numeric order.
fn sortable(number: f64) -> String {
    let bits = number.to_bits();
    let bits = if number.is_sign_negative() { !bits } else { bits | (1 << 63) };
    format!("{bits:016x}")
}

#[cfg(test)]
mod tests {
    use wire::describe::FinalObjective;

    use super::*;

    #[test]
    fn positions_sort_in_numeric_order() {
        let numbers = [-1e300, -2.5, -1e-9, 0.0, 1e-9, 0.1, 2.5, 10.0, 1e300];
        let texts: Vec<String> = numbers.iter().map(|number| sortable(*number)).collect();
        assert!(texts.is_sorted(), "{texts:?}");
    }

    #[test]
    fn regression_the_next_page_continues_after_the_last_job_left_the_list() {
        let job = |number: u32, value: Option<f64>| TrainingJobSummary {
            name: format!("hb1-abc123-{number}-0-1"),
            final_objective: FinalObjective::new("m", value),
            ..TrainingJobSummary::default()
        };
        let asked = JobsQuery {
            order: JobOrder::FinalObjectiveMetricValue,
            descending: true,
            status: None,
            after: None,
            limit: 2,
        };
        let names = |jobs: &[TrainingJobSummary]| -> Vec<String> {
            jobs.iter().map(|job| job.name.clone()).collect()
        };
        let jobs = vec![job(0, Some(0.5)), job(1, Some(-1.0)), job(2, Some(0.9)), job(3, Some(0.7))];
        let (first, next) = sorted(jobs.clone(), &asked, None);
        assert_eq!(names(&first), ["hb1-abc123-2-0-1", "hb1-abc123-3-0-1"]);
        let mut left = jobs;
        left[3] = job(3, None);
        let (second, next) = sorted(left, &asked, next.as_deref());
        assert_eq!(names(&second), ["hb1-abc123-0-0-1", "hb1-abc123-1-0-1"]);
        assert!(next.is_none());
    }
}
