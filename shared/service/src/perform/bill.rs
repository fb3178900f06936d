//! Reads an ended job's bill, and before it what its log still holds.
//!
//! The bill concludes the job, so the log comes first: lines whose delivery was lost are found here, and a job is never
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

/// Pages of a log read at most, so that a flooded log cannot hold up everything else. Twice as many (the tail is apart)
/// must fit one sweep at the sweeper's pace, or it would never be done with it.
pub(crate) const LOG_PAGES_MAX: usize = 100;
/// After so many tries to read a bill, a log that cannot be read whole keeps it no longer: they take about ten minutes, and after
/// an hour the whole reservation would be booked.
const WHOLE_LOG_TRIES: i64 = 6;
/// Why a long log is not read among new actions.
const LEFT_TO_SWEEPER: &str = "its log is long: the sweeper reads it";
/// Of a flooded log, the last so many milliseconds are read.
const LOG_TAIL_MS: i64 = 300_000;

impl<T, J, B, C> Actuator<T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Clock,
{
    /// `tries` tells how often this bill was to be read, this time included; of its log at most `pages` pages are read at once.
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
        if tuning::planted!(LagBelieved) && phase(&description) == JobPhase::Training {
            let guess =
                Description { billable_seconds: Some(0), status: "Stopped".to_owned(), ..description };
            return Ok(Outcome::Done(described(job, &guess).into_iter().collect()));
        }
        let Some(bill) = described(job, &description) else {
            return Ok(Outcome::Later("the bill is not there yet".to_owned()));
        };
        // The decider would not believe it, and would not be told again.
        if is_bill_of_nothing(&description) && self.has_run(id, job).await? {
            return Ok(Outcome::Later("it was seen to run, and its bill does not show it yet".to_owned()));
        }
        let ended = description.ended.unwrap_or(description.modified);
        if self.clock.now() < ended.saturating_add(self.log_lag_ms) {
            return Ok(Outcome::Later("its last log lines may still be on their way".to_owned()));
        }
        if tuning::planted!(BillWithoutLog) {
            return Ok(Outcome::Done(vec![bill]));
        }
        let log = Log { jobs: &self.jobs, tuning: &tuning, name: &name, job };
        if tries > WHOLE_LOG_TRIES && pages >= LOG_PAGES_MAX {
            return Ok(log.what_can_be_had(&description, bill).await);
        }
        Ok(match log.whole(&description, pages).await {
            Ok(Some(mut facts)) => {
                facts.push(bill);
                Outcome::Done(facts)
            }
            Ok(None) => Outcome::Later(LEFT_TO_SWEEPER.to_owned()),
            Err(error) => later(&error).unwrap_or_else(|| Outcome::Done(vec![bill])),
        })
    }

    /// Whether the decider has seen job `job` run.
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

/// Whether a job's bill says that it never ran.
fn is_bill_of_nothing(description: &Description) -> bool {
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
    /// The metric lines of all of it; `None` if it has more than `pages` pages and these are few. Of a flooded log, which is
    /// not read to its end, the last minutes are read too, so that the last value is there.
    async fn whole(
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

    /// The bill of a job whose log could not be read whole in many tries, with as much of the log as can be read now, its end
    /// first: a bill that is known must not be taken for missing since a log is long.
    async fn what_can_be_had(&self, description: &Description, bill: Recorded) -> Outcome {
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

/// From where on a flooded log is read too.
fn tail(description: &Description) -> Millis {
    description.ended.unwrap_or(description.modified).saturating_sub(LOG_TAIL_MS)
}

/// What was read of a log.
struct Excerpt {
    facts: Vec<Recorded>,
    /// How many.
    pages: usize,
    /// Whether these were all, or why no more could be read.
    whole: Result<bool, TrainingJobsError>,
}

/// The metric lines in a job's log since `from`, in at most `pages` pages, as facts, and whether it was read to its end.
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
