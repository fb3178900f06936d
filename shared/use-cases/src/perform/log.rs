//! Reads the stored log of a job, page by page, for the metric lines in it.

use std::collections::BTreeMap;
use std::ops::Range;

use tuning::fact::{JobKey, MetricLine, Recorded};
use tuning::time::{Millis, Time};
use wire::events::logs::{LogEvent, reread_to_facts};

use super::{Actuator, Effect, Outcome, later};
use crate::ports::table::Table;
use crate::ports::training::{JobLogs, Paged, TrainingJobs, TrainingJobsError};
use crate::ports::{Bus, Timer};
use crate::store::Tuning;

/// Most pages read of a log, so that a flooded log does not delay all other work. Twice this number (the tail is read
/// separately) must fit one sweep at the sweeper's pace, or the sweeper would never finish such a log.
pub(crate) const LOG_PAGES_MAX: usize = 40;
/// How far the clocks of the controller and of a job's instances may differ. A search from the beginning of time can
/// cost many empty pages.
const CLOCKS: Millis = Millis::from_seconds(3_600);
/// Length of the end of a flooded log that is read too.
const LOG_TAIL: Millis = Millis::from_seconds(300);

/// The log of a job.
pub(crate) struct Log<'a, T, J, B, C> {
    pub(crate) actuator: &'a Actuator<T, J, B, C>,
    pub(crate) tuning: &'a Tuning,
    /// The name of the job.
    pub(crate) name: &'a str,
    pub(crate) job: JobKey,
}

impl<T, J, B, C> Log<'_, T, J, B, C>
where
    T: Table,
    J: TrainingJobs + JobLogs,
    B: Bus,
    C: Timer,
{
    /// Reads the metric lines since `from`, in at most `pages` pages. Returns the facts, and whether the end of the log
    /// was reached.
    pub(crate) async fn since(
        &self,
        from: Time,
        pages: usize,
    ) -> Result<(Vec<Recorded>, bool), TrainingJobsError> {
        let Excerpt { facts, whole, .. } = self.excerpt(from, pages).await;
        Ok((facts, whole?))
    }

    async fn excerpt(&self, from: Time, pages: usize) -> Excerpt {
        let mut read = Excerpt { facts: Vec::new(), pages: 0, whole: Ok(false) };
        let Some(pattern) = &self.tuning.pattern else { return Excerpt { whole: Ok(true), ..read } };
        let host = self.tuning.request.metric_host();
        let mut streams: BTreeMap<String, Vec<MetricLine>> = BTreeMap::new();
        let mut next: Option<String> = None;
        while read.pages < pages {
            let page = match self.actuator.log_page(self.name, host, from, next.as_deref()).await {
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
        let facts = streams.into_iter().flat_map(|(stream, lines)| reread_to_facts(self.job, &stream, lines));
        read.facts = facts.collect();
        read
    }

    /// Reads the metric lines of the whole log. Returns `None` if it has more than `pages` pages and `pages` is less
    /// than [`LOG_PAGES_MAX`]. A flooded log is not read to its end, so its last minutes are read too, for the last
    /// value.
    pub(super) async fn read_completely(
        &self,
        life: Range<Time>,
        pages: usize,
    ) -> Result<Option<Vec<Recorded>>, TrainingJobsError> {
        let (mut facts, whole) = self.since(life.start - CLOCKS, pages).await?;
        if !whole && pages < LOG_PAGES_MAX {
            return Ok(None);
        }
        if !whole {
            facts.extend(self.since(life.end - LOG_TAIL, pages).await?.0);
        }
        Ok(Some(facts))
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

/// The part of a log that was read.
struct Excerpt {
    facts: Vec<Recorded>,
    /// Number of pages.
    pages: usize,
    /// Whether this is the rest of the log, or why reading stopped.
    whole: Result<bool, TrainingJobsError>,
}
