//! What the doctor saw: answers as they came, with this machine's time. Judges nothing.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use client::ServiceError;
use serde_json::Value;
use tuning::fact::{Fact, JobKey, Recorded};

use super::account::Answer;
use crate::page::milliseconds;

/// Everything that was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether the requests to the API were signed.
    pub(super) signed: bool,
    /// Whether spot instances were asked for.
    pub(super) spot: bool,
    /// The training image.
    pub(super) image: String,
    /// Why the stack has no price for the job, if it said so.
    pub(super) unpriced: Option<String>,
    /// This machine's time just before and just after the submission.
    pub(super) submitted: Option<(i64, i64)>,
    /// The tuning as it was described last.
    pub(super) tuning: Value,
    /// Whether it has ended.
    pub(super) over: bool,
    /// Facts of its steps, and when they were seen.
    pub(super) facts: Vec<(i64, Recorded)>,
    /// Its jobs.
    pub(super) jobs: BTreeMap<JobKey, Job>,
    /// A job that there is not: described, stopped.
    pub(super) absent: Option<(Answer, Answer)>,
    /// A job that has ended, stopped.
    pub(super) ended_stop: Option<Answer>,
    /// A job created under a name that is taken.
    pub(super) taken: Option<Answer>,
    /// Why that was not tried.
    pub(super) taken_not: Option<String>,
    /// Log streams of the first job that ended.
    pub(super) streams: Option<Answer>,
    /// The lines in them.
    pub(super) lines: Option<Answer>,
    /// What was listed, page by page, and after which second it was created.
    pub(super) listed: Option<(i64, Result<Vec<Value>, ServiceError>)>,
}

/// What was seen of one training job.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) name: String,
    /// When SageMaker first described it.
    pub(super) first: Option<i64>,
    /// As it was described last.
    pub(super) last: Value,
    /// Why it cannot be described.
    pub(super) hidden: Option<ServiceError>,
    /// When its bill was first there, and what it said.
    pub(super) bill: Option<(i64, u64)>,
    /// What its bill says in the end.
    pub(super) final_bill: Option<u64>,
    /// When it was first in the listing of running jobs; or what that said.
    pub(super) listed: Option<Result<i64, ServiceError>>,
    /// Its tags at the first look at them.
    pub(super) tags: Option<Answer>,
    /// When they were all there.
    pub(super) tagged: Option<i64>,
    /// As it was just before the tuning was ordered to stop.
    pub(super) before_stop: Option<Value>,
}

impl Job {
    /// A moment of its last description, in milliseconds.
    pub(super) fn time(&self, member: &str) -> Option<i64> {
        milliseconds(&self.last[member])
    }

    pub(super) fn text(&self, member: &str) -> &str {
        self.last[member].as_str().unwrap_or_default()
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.text("TrainingJobStatus"), "Completed" | "Failed" | "Stopped")
    }

    /// Whether there is nothing more to learn of its bill.
    pub(super) fn is_settled(&self) -> bool {
        self.hidden.is_some()
            || self.has_ended() && (self.bill.is_some() || self.last["TrainingStartTime"].is_null())
    }
}

impl Seen {
    /// The facts of jobs, with the time at which each was seen.
    pub(super) fn of_job(&self, key: JobKey) -> impl Iterator<Item = &(i64, Recorded)> {
        self.facts.iter().filter(move |(_, recorded)| recorded.fact.job() == Some(key))
    }

    /// When the stack's order to create the job was accepted.
    pub(super) fn accepted(&self, key: JobKey) -> Option<i64> {
        let mut facts = self.of_job(key);
        facts
            .find_map(|(_, recorded)| matches!(recorded.fact, Fact::JobStarted { .. }).then_some(recorded.at))
    }

    /// The first job that has ended, as it was described.
    pub(super) fn first_ended(&self) -> Option<(JobKey, &Job)> {
        self.jobs.iter().find(|(_, job)| job.has_ended()).map(|(key, job)| (*key, job))
    }
}

/// This machine's time.
pub(super) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
