//! Reads the bill of an ended job, and before it the rest of its log.
//!
//! The bill concludes the job, so the log is read first. This finds lines whose delivery was lost, and no job is
//! concluded without its last value.

use tuning::fact::{Fact, JobEnd, JobKey, JobPhase, MetricLine, Recorded};
use wire::events::job_state::{classify, cut_message};
use wire::events::logs::{LogEvent, reread_to_facts};
use wire::names::training_job_name;

use super::{Actuator, Effect, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{Description, JobLogs, Paged, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Clock, Millis};
use crate::store::{StoreError, Tuning};

/// Most pages read of a log, so that a flooded log does not delay all other work. Twice this number (the tail is read
/// separately) must fit one sweep at the sweeper's pace, or the sweeper would never finish such a log.
pub(crate) const LOG_PAGES_MAX: usize = 100;
/// Number of tries to read a bill after which an incomplete log no longer delays it. These tries take about ten
/// minutes. After an hour without a bill, the decider would book the whole reservation.
const WHOLE_LOG_TRIES: i64 = 6;
/// Why the actuator does not read a long log in a batch of new actions.
const LEFT_TO_SWEEPER: &str = "the log is long: the sweeper reads it";
/// Length of the end of a flooded log that is read too, in ms.
const LOG_TAIL_MS: i64 = 300_000;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// Reads a bill and at most `pages` pages of the log. `tries` counts the tries to read this bill, this one
    /// included.
    pub(super) async fn bill(
        &self,
        id: &str,
        job: JobKey,
        (tries, pages): (i64, usize),
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        let description = match self.jobs.describe(&name).await {
            Ok(description) => description,
            Err(error) => return Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        };
        let Some(bill) = described(job, &description) else {
            return Ok(Outcome::Later("the bill is not available yet".to_owned()));
        };
        // The decider would reject this bill, and it would not receive another one.
        if is_zero_bill(&description) && self.has_run(id, job).await? {
            return Ok(Outcome::Later("the job has run, but its bill does not show this yet".to_owned()));
        }
        let ended = description.ended.unwrap_or(description.modified);
        if self.clock.now() < ended.saturating_add(self.log_lag_ms) {
            return Ok(Outcome::Later("the last log lines may not be available yet".to_owned()));
        }
        let log = Log { jobs: &self.jobs, tuning: &tuning, name: &name, job };
        if tries > WHOLE_LOG_TRIES && pages >= LOG_PAGES_MAX {
            return Ok(log.read_partially(&description, bill).await);
        }
        Ok(match log.read_completely(&description, pages).await {
            Ok(Some(mut facts)) => {
                facts.push(bill);
                Outcome::Done(facts)
            }
            Ok(None) => Outcome::Later(LEFT_TO_SWEEPER.to_owned()),
            // A bill without its log would lose metric lines for good, so even a refused read is retried a few times.
            Err(error) => later(&error).unwrap_or_else(|| Outcome::Later(error.to_string())),
        })
    }

    /// Returns whether the decider has seen job `job` run.
    async fn has_run(&self, id: &str, job: JobKey) -> Result<bool, StoreError> {
        let Some(loaded) = self.store.load(id).await? else { return Ok(false) };
        let started = loaded.state.job(job).is_some_and(|job| job.started.is_some());
        let trial = loaded.state.trials.get(&job.trial);
        Ok(started || trial.is_some_and(|trial| trial.streams.iter().any(|s| s.attempt == job.attempt)))
    }

    /// Reads a job's stored log from its beginning.
    pub(super) async fn read(
        &self,
        id: &str,
        job: JobKey,
        streams: u32,
        pages: usize,
    ) -> Result<Outcome, StoreError> {
        let Some(tuning) = self.store.tuning(id).await? else { return Ok(Outcome::Done(Vec::new())) };
        let name = training_job_name(id, job);
        match read_log(&self.jobs, &tuning, &name, job, (0, pages)).await {
            Ok((_, false)) if pages < LOG_PAGES_MAX => Ok(Outcome::Later(LEFT_TO_SWEEPER.to_owned())),
            Ok((mut facts, _)) => {
                let fact = Fact::LogRead { job, streams };
                facts.push(self.fact(format!("log-read#{job}#{streams}"), fact));
                Ok(Outcome::Done(facts))
            }
            Err(error) => Ok(later(&error).unwrap_or_else(|| Outcome::Later(error.to_string()))),
        }
    }
}

/// Returns the fact that concludes a job, or `None` while its bill is unknown. A job that never had an instance costs
/// nothing.
fn described(job: JobKey, description: &Description) -> Option<Recorded> {
    let JobPhase::Ended(end) = phase(description) else { return None };
    let billable_seconds = match (description.billable_seconds, description.started) {
        (Some(seconds), _) => seconds,
        // Such a job has run. Neither its start nor its bill is visible yet.
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

/// Returns the state in a description, as a fact.
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

/// Returns the phase in a description.
pub(crate) fn phase(description: &Description) -> JobPhase {
    classify(&description.status, &description.secondary_status, description.failure_reason.as_deref())
}

/// Returns whether a bill claims that the job never ran.
fn is_zero_bill(description: &Description) -> bool {
    description.started.is_none() && description.billable_seconds.unwrap_or(0) == 0
}

/// The log of an ended job.
struct Log<'a, J> {
    jobs: &'a J,
    tuning: &'a Tuning,
    name: &'a str,
    job: JobKey,
}

impl<J: JobLogs> Log<'_, J> {
    /// Reads the metric lines of the whole log. Returns `None` if it has more than `pages` pages and `pages` is less
    /// than [`LOG_PAGES_MAX`]. A flooded log is not read to its end, so its last minutes are read too, for the last
    /// value.
    async fn read_completely(
        &self,
        description: &Description,
        pages: usize,
    ) -> Result<Option<Vec<Recorded>>, TrainingJobsError> {
        let Self { jobs, tuning, name, job } = *self;
        let (mut facts, whole) = read_log(jobs, tuning, name, job, (description.created, pages)).await?;
        if !whole && pages < LOG_PAGES_MAX {
            return Ok(None);
        }
        if !whole {
            facts.extend(read_log(jobs, tuning, name, job, (tail(description), pages)).await?.0);
        }
        Ok(Some(facts))
    }

    /// Returns the bill of a job whose log could not be read completely in many tries, with the part of the log that
    /// can be read now, its end first. A known bill must not be treated as missing because a log is long.
    async fn read_partially(&self, description: &Description, bill: Recorded) -> Outcome {
        let Self { jobs, tuning, name, job } = *self;
        let from = |from: Millis| read_pages(jobs, tuning, name, job, (from, LOG_PAGES_MAX));
        let end = from(tail(description)).await;
        if let (0, Err(error)) = (end.pages, &end.whole) {
            return later(error).unwrap_or_else(|| Outcome::DoneAs(Effect::LogCut, vec![bill]));
        }
        let beginning = from(description.created).await;
        let mut facts = end.facts;
        facts.extend(beginning.facts);
        facts.push(bill);
        match (beginning.whole, end.whole) {
            (Ok(true), _) | (Ok(false), Ok(_)) => Outcome::Done(facts),
            (Ok(false) | Err(_), _) => Outcome::DoneAs(Effect::LogCut, facts),
        }
    }
}

/// Returns the time from which the end of a flooded log is read.
fn tail(description: &Description) -> Millis {
    description.ended.unwrap_or(description.modified).saturating_sub(LOG_TAIL_MS)
}

/// The part of a log that was read.
struct Excerpt {
    facts: Vec<Recorded>,
    /// Number of pages.
    pages: usize,
    /// Whether this is the rest of the log, or why reading stopped.
    whole: Result<bool, TrainingJobsError>,
}

/// Reads the metric lines of a job's log since a time, in at most a number of pages. Returns the facts, and whether the
/// end of the log was reached.
pub(crate) async fn read_log<J: JobLogs>(
    jobs: &J,
    tuning: &Tuning,
    name: &str,
    job: JobKey,
    from_and_pages: (Millis, usize),
) -> Result<(Vec<Recorded>, bool), TrainingJobsError> {
    let Excerpt { facts, whole, .. } = read_pages(jobs, tuning, name, job, from_and_pages).await;
    Ok((facts, whole?))
}

async fn read_pages<J: JobLogs>(
    jobs: &J,
    tuning: &Tuning,
    name: &str,
    job: JobKey,
    (from, pages): (Millis, usize),
) -> Excerpt {
    let mut read = Excerpt { facts: Vec::new(), pages: 0, whole: Ok(false) };
    let Some(pattern) = &tuning.pattern else { return Excerpt { whole: Ok(true), ..read } };
    let mut streams: std::collections::BTreeMap<String, Vec<MetricLine>> = std::collections::BTreeMap::new();
    let mut next: Option<String> = None;
    while read.pages < pages {
        let page = match jobs.read(name, tuning.request.metric_host(), from, next.as_deref()).await {
            Ok(page) => page,
            Err(TrainingJobsError::NotFound(_)) => Paged { items: Vec::new(), next: None },
            Err(error) => {
                read.whole = Err(error);
                break;
            }
        };
        read.pages += 1;
        for line in page.items {
            let event = LogEvent { id: line.id, timestamp: line.timestamp, message: line.message };
            if let Some(metric) = pattern.line(&event) {
                streams.entry(line.stream).or_default().push(metric);
            }
        }
        next = page.next;
        if next.is_none() {
            read.whole = Ok(true);
            break;
        }
    }
    let facts = streams.into_iter().flat_map(|(stream, lines)| reread_to_facts(job, &stream, lines));
    read.facts = facts.collect();
    read
}
