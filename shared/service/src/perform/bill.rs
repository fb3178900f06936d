//! Reads an ended job's bill, and before it what its log still holds.
//!
//! The bill concludes the job, so the log comes first: lines whose delivery was lost are found here, and a job is never
//! concluded without its last value.

use tuning::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use wire::events::job_state::{classify, cut_message};
use wire::events::logs::{LogEvent, reread_to_facts};
use wire::names::training_job_name;

use super::{Actuator, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{Description, JobLogs, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Clock, Millis};
use crate::store::{StoreError, Tuning};

/// Pages of a log read at most, so that a flooded log cannot hold up everything else. Twice as many (the tail is apart)
/// must fit one sweep at the sweeper's pace, or it would never be done with it.
pub(crate) const LOG_PAGES_MAX: usize = 100;
/// Of a flooded log, the last so many milliseconds are read.
const LOG_TAIL_MS: i64 = 300_000;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    pub(super) async fn bill(&self, id: &str, job: JobKey) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let description = match self.jobs.describe(&name).await {
            Ok(description) => description,
            Err(error) => return Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        };
        if tuning::planted!(LagBelieved) && phase(&description) == JobPhase::Training {
            let guess =
                Description { billable_seconds: Some(0), status: "Stopped".to_owned(), ..description };
            return Ok(Outcome::Done(described(job, &guess).into_iter().collect()));
        }
        let Some(bill) = described(job, &description) else {
            return Ok(Outcome::Later("the bill is not there yet".to_owned()));
        };
        let ended = description.ended.unwrap_or(description.modified);
        if self.clock.now() < ended.saturating_add(self.log_lag_ms) {
            return Ok(Outcome::Later("its last log lines may still be on their way".to_owned()));
        }
        if tuning::planted!(BillWithoutLog) {
            return Ok(Outcome::Done(vec![bill]));
        }
        match read_whole_log(&self.jobs, &tuning, &name, job, &description).await {
            Ok(mut facts) => {
                facts.push(bill);
                Ok(Outcome::Done(facts))
            }
            Err(error) => Ok(later(&error).unwrap_or_else(|| Outcome::Done(vec![bill]))),
        }
    }

    /// Reads a job's stored log from its beginning.
    pub(super) async fn read(&self, id: &str, job: JobKey, streams: u32) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        match read_log(&self.jobs, &tuning, &name, job, (0, LOG_PAGES_MAX)).await {
            Ok((mut facts, _)) => {
                let fact = Fact::LogRead { job, streams };
                facts.push(self.fact(format!("log-read#{job}#{streams}"), fact));
                Ok(Outcome::Done(facts))
            }
            Err(error) => Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }
}

/// The fact that concludes a job, once its bill is known. A job that never had an instance costs nothing.
fn described(job: JobKey, description: &Description) -> Option<Recorded> {
    let JobPhase::Ended(end) = phase(description) else { return None };
    let billable_seconds = match (description.billable_seconds, description.started) {
        (Some(seconds), _) => seconds,
        // These have run: their start does not show yet, as their bill does not.
        (None, None) if matches!(end, JobEnd::Completed | JobEnd::AlgorithmError) => return None,
        (None, None) => 0,
        (None, Some(_)) => return None,
    };
    let fact = Fact::JobDescribed {
        job,
        end,
        started: description.started,
        ended: description.ended,
        billable_seconds,
        message: description.failure_reason.as_deref().filter(|_| end != JobEnd::Completed).map(cut_message),
        interruptions: description.interruptions,
    };
    Some(Recorded { key: format!("described#{job}"), at: description.modified, fact })
}

/// The state that a description shows, as a fact.
pub(crate) fn state_fact(job: JobKey, description: &Description) -> Recorded {
    let at = description.modified;
    let fact = Fact::JobStateChanged {
        job,
        phase: phase(description),
        started: description.started,
        ended: description.ended,
        message: description.failure_reason.as_deref().map(cut_message),
    };
    Recorded { key: format!("described-state#{}#{at}", description.secondary_status), at, fact }
}

/// The phase a description shows.
pub(crate) fn phase(description: &Description) -> JobPhase {
    classify(&description.status, &description.secondary_status, description.failure_reason.as_deref())
}

/// The metric lines in a job's whole log. Of a flooded log, which is not read to its end, the last minutes are read too,
/// so that the last value is there.
async fn read_whole_log<J: JobLogs>(
    jobs: &J,
    tuning: &Tuning,
    name: &str,
    job: JobKey,
    description: &Description,
) -> Result<Vec<Recorded>, TrainingJobsError> {
    let (mut facts, whole) = read_log(jobs, tuning, name, job, (description.created, LOG_PAGES_MAX)).await?;
    if !whole {
        let ended = description.ended.unwrap_or(description.modified);
        let tail = ended.saturating_sub(LOG_TAIL_MS);
        facts.extend(read_log(jobs, tuning, name, job, (tail, LOG_PAGES_MAX)).await?.0);
    }
    Ok(facts)
}

/// The metric lines in a job's log since `from`, in at most `pages` pages, as facts, and whether it was read to its end.
pub(crate) async fn read_log<J: JobLogs>(
    jobs: &J,
    tuning: &Tuning,
    name: &str,
    job: JobKey,
    (from, pages): (Millis, usize),
) -> Result<(Vec<Recorded>, bool), TrainingJobsError> {
    let Some(pattern) = &tuning.pattern else { return Ok((Vec::new(), true)) };
    let mut streams: std::collections::BTreeMap<String, Vec<MetricLine>> = std::collections::BTreeMap::new();
    let mut next: Option<String> = None;
    for _ in 0..pages {
        let page = match jobs.read(name, tuning.request.metric_host(), from, next.as_deref()).await {
            Ok(page) => page,
            Err(TrainingJobsError::NotFound(_)) => break,
            Err(error) => return Err(error),
        };
        for line in page.items {
            let event = LogEvent { id: line.id, timestamp: line.timestamp, message: line.message };
            if let Some(metric) = pattern.line(&event) {
                streams.entry(line.stream).or_default().push(metric);
            }
        }
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    let facts = streams.into_iter().flat_map(|(stream, lines)| reread_to_facts(job, &stream, lines));
    Ok((facts.collect(), next.is_none()))
}
