//! Reads the stored log of a job, page by page, for the metric lines in it.

use std::collections::BTreeMap;
use std::ops::Range;

use tuning::log::fact::{JobKey, Recorded};
use tuning::log::problem::LogProblem;
use tuning::unit::time::{Millis, Time};
use wire::events::logs::{Explanation, Hints, LogEvent, Reading, StreamLines, problem_to_fact};
use wire::events::surplus::Surplus;
use wire::request::shortened;

use super::{Actuator, Effect, LOG_PAGES_MAX, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, LogLine, Paged, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Timer};
use crate::store::Tuning;

/// How far the clocks of the controller and of a job's instances may differ. A search from the beginning of time can
/// cost many empty pages.
const CLOCKS: Millis = Millis::from_seconds(3_600);
/// Length of the end of a flooded log that is read too.
const LOG_TAIL: Millis = Millis::from_seconds(300);

pub(crate) struct Log<'a, T, J, B, C> {
    pub(crate) actuator: &'a Actuator<T, J, B, C>,
    pub(crate) tuning: &'a Tuning,
    pub(crate) name: &'a str,
    pub(crate) job: JobKey,
}

impl<T: Table, J: TrainingJobs + JobLogs, B: Bus, C: Timer> Log<'_, T, J, B, C> {
    /// Reads the metric lines since `from`, in at most `pages` pages.
    pub(crate) async fn since(&self, from: Time, pages: usize) -> Result<Read, TrainingJobsError> {
        let Excerpt { facts, whole, search, .. } = self.excerpt(from, pages).await;
        Ok(Read { facts, is_whole: whole?, search })
    }

    async fn excerpt(&self, from: Time, pages: usize) -> Excerpt {
        let mut read = Excerpt { facts: Vec::new(), pages: 0, whole: Ok(false), search: Search::default() };
        let Some(pattern) = self.tuning.pattern(self.job.trial) else {
            return Excerpt { whole: Ok(true), ..read };
        };
        let host = self.tuning.request.metric_host();
        let mut streams: BTreeMap<String, StreamLines> = BTreeMap::new();
        let mut next: Option<String> = None;
        while read.pages < pages {
            let page = match self.page(host, from, next.as_deref()).await {
                Ok(page) => page,
                Err(TrainingJobsError::NotFound(_)) => Paged { items: Vec::new(), next: None },
                Err(error) => {
                    read.whole = Err(error);
                    break;
                }
            };
            read.pages += 1;
            for line in page.items {
                let event = LogEvent { id: line.id, timestamp: line.timestamp.0, message: line.message };
                let reading = pattern.read(&event.message);
                read.search.take(&event.message, &reading);
                streams.entry(line.stream).or_default().add(&event, &reading);
            }
            next = page.next;
            if next.is_none() {
                read.whole = Ok(true);
                break;
            }
        }
        read.search.has_epochs = streams.values().any(StreamLines::has_epochs);
        let surplus = Surplus::default();
        let facts = streams.into_iter().flat_map(|(stream, mut lines)| {
            lines.drop_surplus(&stream, pattern.epoch_source(), &surplus);
            lines.into_reread_facts(self.job, &stream)
        });
        read.facts = facts.collect();
        read
    }

    /// Reads a page of the log, after a wait for a turn.
    async fn page(
        &self,
        host: &str,
        from: Time,
        page: Option<&str>,
    ) -> Result<Paged<LogLine>, TrainingJobsError> {
        match self.actuator.has_turn(|pace| &pace.log_pages, None).await {
            Ok(true) => self.actuator.jobs.read(self.name, host, from, page).await,
            Ok(false) | Err(_) => Err(TrainingJobsError::Throttled),
        }
    }

    /// Returns the problem that the log of a job has no value with an epoch. The job must have ended by itself: one that
    /// failed or still runs may not have reached its first value.
    pub(crate) async fn missing_value(&self, search: &Search) -> Option<Recorded> {
        let request = self.tuning.request_of(self.job.trial);
        let is_lost = search.values > 0 && request.epoch_pattern().is_some() && !search.has_epochs;
        let (hint, is_cause) = if is_lost {
            (search.without_epoch(), true)
        } else if search.values > 0 || !search.has_lines {
            return None;
        } else {
            let (metric, regex) = (request.objective_metric(), request.metric_regex()?);
            if let Some(near) = search.hints.near_miss(metric, &regex) {
                (near, true)
            } else {
                let other = self.value_of_other_host().await;
                (other.unwrap_or_else(|| search.hints.about(metric, &regex)), false)
            }
        };
        let problem = LogProblem::NoValue { hint, is_cause };
        Some(problem_to_fact(self.job, self.actuator.clock.now(), problem))
    }

    /// Looks for a value in the beginning of another host's log.
    async fn value_of_other_host(&self) -> Option<String> {
        let request = self.tuning.request_of(self.job.trial);
        let (own, pattern) = (request.metric_host(), self.tuning.pattern(self.job.trial)?);
        let hosts = (1..=request.instance_count()).map(|number| format!("algo-{number}"));
        let other = hosts.take(2).find(|host| host != own)?;
        let page = self.page(&other, Time::EPOCH, None).await.ok()?;
        let has_value = |line: &LogLine| matches!(pattern.explain(&line.message), Explanation::Value { .. });
        page.items
            .iter()
            .any(has_value)
            .then(|| format!("the log of host {other} has values, but Controller.MetricHost is {own}"))
    }

    /// Reads the metric lines of the whole log. Returns `None` if it has more than `pages` pages and `pages` is less
    /// than [`LOG_PAGES_MAX`]. A flooded log is not read to its end, so its last minutes are read too, for the last
    /// value.
    pub(super) async fn read_completely(
        &self,
        life: Range<Time>,
        pages: usize,
    ) -> Result<Option<Read>, TrainingJobsError> {
        let mut read = self.since(life.start - CLOCKS, pages).await?;
        if !read.is_whole && pages < LOG_PAGES_MAX {
            return Ok(None);
        }
        if !read.is_whole {
            let end = self.since(life.end - LOG_TAIL, pages).await?;
            read.facts.extend(end.facts);
            read.search.values += end.search.values;
            read.search.has_epochs |= end.search.has_epochs;
        }
        Ok(Some(read))
    }

    /// Reads the part that can be read now of a log that could not be read completely in many tries, its end first.
    /// `complete` is the fact that ends the read.
    pub(super) async fn read_partially(&self, life: Range<Time>, complete: Recorded) -> Outcome {
        let end = self.excerpt(life.end - LOG_TAIL, LOG_PAGES_MAX).await;
        if let (0, Err(error)) = (end.pages, &end.whole) {
            return later(error).unwrap_or_else(|| Outcome::DoneAs(Effect::LogCut, vec![complete]));
        }
        let beginning = self.excerpt(life.start - CLOCKS, LOG_PAGES_MAX).await;
        let mut facts = end.facts;
        facts.extend(beginning.facts);
        facts.push(complete);
        match (beginning.whole, end.whole) {
            (Ok(true), _) | (Ok(false), Ok(_)) => Outcome::Done(facts),
            (Ok(false) | Err(_), _) => Outcome::DoneAs(Effect::LogCut, facts),
        }
    }
}

/// Metric lines of a log.
pub(crate) struct Read {
    pub(crate) facts: Vec<Recorded>,
    /// Whether the end of the log was reached.
    pub(crate) is_whole: bool,
    pub(crate) search: Search,
}

/// What the lines of a log show about missing values.
#[derive(Debug, Default)]
pub(crate) struct Search {
    hints: Hints,
    has_lines: bool,
    /// Number of lines with a value, and the first of them.
    values: usize,
    first: Option<String>,
    /// Whether a value has an epoch.
    has_epochs: bool,
}

impl Search {
    fn take(&mut self, line: &str, reading: &Reading) {
        self.has_lines = true;
        if reading.shown.iter().any(|shown| matches!(shown, Explanation::Value { .. })) {
            self.values += 1;
            self.first.get_or_insert_with(|| line.to_owned());
        }
        if self.values == 0 {
            self.hints.take(line);
        }
    }

    fn without_epoch(&self) -> String {
        let line = shortened(self.first.as_deref().unwrap_or_default().trim());
        format!(
            "{} lines match its Regex, but EpochPattern captures no epoch in them or before them: \"{line}\"",
            self.values
        )
    }
}

/// The part of a log that was read.
struct Excerpt {
    search: Search,
    facts: Vec<Recorded>,
    pages: usize,
    /// Whether this is the rest of the log, or why reading stopped.
    whole: Result<bool, TrainingJobsError>,
}
