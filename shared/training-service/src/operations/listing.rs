//! `ListTrainingJobs`: filters, sort order and pages.
//!
//! A page starts after the sort key of the last job of the previous page. Jobs that are created or removed between two
//! pages therefore move no other job. A job whose sort key does not change is listed once.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use local::training::{Summary, TrainingService};
use serde_json::{Value, json};

use crate::protocol::{Answer, ApiError, lower_first, text, time, whole};
use use_cases::ports::Time;

const PAGE_JOBS_DEFAULT: usize = 10;
const PAGE_JOBS_MAX: usize = 100;
const NAME_LENGTH_MAX: usize = 63;

pub(super) async fn list(training: &TrainingService, members: &Value) -> Result<Answer, ApiError> {
    let query = Query::read(members)?;
    Ok(Some(query.page(training.summaries().await)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortBy {
    Name,
    CreationTime,
    Status,
}

/// The sort key of a job: status, creation time and name. Parts that the order does not compare are empty or 0.
type SortKey = (String, Time, String);

#[derive(Debug)]
struct Query {
    filter: Filter,
    by: SortBy,
    descending: bool,
    page_jobs: usize,
    after: Option<SortKey>,
}

#[derive(Debug)]
struct Filter {
    status: Option<String>,
    warm_pool: Option<String>,
    name_contains: Option<String>,
    created_after: Option<f64>,
    created_before: Option<f64>,
    modified_after: Option<f64>,
    modified_before: Option<f64>,
}

impl Filter {
    fn read(members: &Value) -> Result<Self, ApiError> {
        const STATUSES: &[&str] = &["InProgress", "Completed", "Failed", "Stopping", "Stopped", "Deleting"];
        const POOLS: &[&str] = &["Available", "Terminated", "Reused", "InUse"];
        let part = text(members, "NameContains")?;
        if let Some(part) = part.filter(|part| part.len() > NAME_LENGTH_MAX) {
            let rule = "have length less than or equal to 63";
            return Err(ApiError::constraint(part, "nameContains", rule));
        }
        Ok(Self {
            status: one_of(members, "StatusEquals", STATUSES)?.map(str::to_owned),
            warm_pool: one_of(members, "WarmPoolStatusEquals", POOLS)?.map(str::to_owned),
            name_contains: part.map(str::to_lowercase),
            created_after: time(members, "CreationTimeAfter")?,
            created_before: time(members, "CreationTimeBefore")?,
            modified_after: time(members, "LastModifiedTimeAfter")?,
            modified_before: time(members, "LastModifiedTimeBefore")?,
        })
    }

    fn matches(&self, job: &Summary) -> bool {
        let pool = || job.warm_pool.as_ref().and_then(|pool| pool["Status"].as_str());
        self.status.as_deref().is_none_or(|status| job.status == status)
            && self.warm_pool.as_deref().is_none_or(|status| pool() == Some(status))
            && self.name_contains.as_deref().is_none_or(|part| job.name.to_lowercase().contains(part))
            && within(job.created, self.created_after, self.created_before)
            && within(job.modified, self.modified_after, self.modified_before)
    }
}

/// Returns whether `time` is between the bounds, both exclusive.
fn within(time: Time, after: Option<f64>, before: Option<f64>) -> bool {
    // Exact: milliseconds have 41 bits.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since the epoch fit")]
    let time = time.0 as f64;
    after.is_none_or(|after| time > after) && before.is_none_or(|before| time < before)
}

impl Query {
    fn read(members: &Value) -> Result<Self, ApiError> {
        let by = match one_of(members, "SortBy", &["Name", "CreationTime", "Status"])? {
            Some("Name") => SortBy::Name,
            Some("Status") => SortBy::Status,
            _ => SortBy::CreationTime,
        };
        let descending = one_of(members, "SortOrder", &["Ascending", "Descending"])? == Some("Descending");
        let page_jobs = match whole(members, "MaxResults")? {
            None => PAGE_JOBS_DEFAULT,
            Some(asked) => {
                let jobs = usize::try_from(asked).ok().filter(|jobs| (1..=PAGE_JOBS_MAX).contains(jobs));
                let bound =
                    if asked < 1 { "greater than or equal to 1" } else { "less than or equal to 100" };
                let rule = format!("have value {bound}");
                jobs.ok_or_else(|| ApiError::constraint(&asked.to_string(), "maxResults", &rule))?
            }
        };
        let token = text(members, "NextToken")?.filter(|token| !token.is_empty());
        let after = token.map(|token| read_token(token, by, descending)).transpose()?;
        Ok(Self { filter: Filter::read(members)?, by, descending, page_jobs, after })
    }

    fn sort_key(&self, job: &Summary) -> SortKey {
        match self.by {
            SortBy::Name => (String::new(), Time(0), job.name.clone()),
            SortBy::CreationTime => (String::new(), job.created, job.name.clone()),
            SortBy::Status => (job.status.to_owned(), job.created, job.name.clone()),
        }
    }

    fn is_after(&self, key: &SortKey, other: &SortKey) -> bool {
        if self.descending { key < other } else { key > other }
    }

    fn page(&self, jobs: Vec<Summary>) -> Value {
        let jobs = jobs.into_iter().filter(|job| self.filter.matches(job));
        let mut found: Vec<(SortKey, Summary)> = jobs
            .map(|job| (self.sort_key(&job), job))
            .filter(|(key, _)| self.after.as_ref().is_none_or(|after| self.is_after(key, after)))
            .collect();
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        if self.descending {
            found.reverse();
        }
        let more = found.len() > self.page_jobs;
        found.truncate(self.page_jobs);
        let shown: Vec<Value> = found.iter().map(|(_, job)| job.json()).collect();
        let mut answer = json!({ "TrainingJobSummaries": shown });
        if let Some((key, _)) = found.last().filter(|_| more) {
            answer["NextToken"] = json!(token(key, self.by, self.descending));
        }
        answer
    }
}

fn one_of<'a>(members: &'a Value, name: &str, words: &[&str]) -> Result<Option<&'a str>, ApiError> {
    match text(members, name)? {
        Some(word) if !words.contains(&word) => {
            let rule = format!("satisfy enum value set: [{}]", words.join(", "));
            Err(ApiError::constraint(word, &lower_first(name), &rule))
        }
        word => Ok(word),
    }
}

/// Encodes a sort key together with its sort order.
fn token((status, time, name): &SortKey, by: SortBy, descending: bool) -> String {
    URL_SAFE_NO_PAD.encode(json!([order(by, descending), status, time, name]).to_string())
}

fn read_token(token: &str, by: SortBy, descending: bool) -> Result<SortKey, ApiError> {
    let read = || {
        let value: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let [of_order, status, time, name] = value.as_array()?.as_slice() else { return None };
        let key = (status.as_str()?.to_owned(), Time(time.as_i64()?), name.as_str()?.to_owned());
        (of_order.as_str()? == order(by, descending)).then_some(key)
    };
    let message = "Invalid NextToken: expected the token of a listing with the same SortBy and SortOrder";
    read().ok_or_else(|| ApiError::validation(message))
}

fn order(by: SortBy, descending: bool) -> String {
    format!("{by:?}{}", if descending { "-" } else { "+" })
}

#[cfg(test)]
mod tests;
