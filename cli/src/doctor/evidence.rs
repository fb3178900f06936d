//! The observations of the doctor: responses with this machine's time, in milliseconds since 1970. Makes no judgements.

use std::collections::BTreeMap;

use api_client::ServiceError;
use local::host::SystemClock;
use serde_json::Value;
use tuning::log::fact::{Fact, JobKey, Recorded};
use tuning::unit::money::MicroUsd;
use use_cases::ports::Clock;
use wire::describe::{Totals, TuningJob};

use super::account::Answer;

#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// Whether the requests were signed for the HTTP API.
    pub(super) signed: bool,
    /// Whether the jobs use spot instances.
    pub(super) spot: bool,
    pub(super) image: String,
    /// The stack's message if it has no price for the jobs.
    pub(super) unpriced: Option<String>,
    /// Times just before and just after the submission.
    pub(super) submitted: Option<(i64, i64)>,
    /// The last description of the tuning; `None` before the first.
    pub(super) tuning: Option<TuningJob>,
    /// Whether the tuning has ended.
    pub(super) over: bool,
    /// The facts of the tuning, and when the doctor read them.
    pub(super) facts: Vec<(i64, Recorded)>,
    pub(super) jobs: BTreeMap<JobKey, Job>,
    /// Responses of `DescribeTrainingJob` and `StopTrainingJob` for a job that does not exist.
    pub(super) absent: Option<(Answer, Answer)>,
    /// Response of `StopTrainingJob` for a job that has ended.
    pub(super) ended_stop: Option<Answer>,
    /// Response of `CreateTrainingJob` for a name that is in use.
    pub(super) taken: Option<Answer>,
    /// Why `taken` was not tried.
    pub(super) taken_skipped: Option<String>,
    /// Log streams of the first job that ended.
    pub(super) streams: Option<Answer>,
    /// Log lines of the first job that ended.
    pub(super) lines: Option<Answer>,
    /// The `CreationTimeAfter` of a listing, in seconds since 1970, and its pages.
    pub(super) listed: Option<(i64, Result<Vec<Value>, ServiceError>)>,
}

#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) name: String,
    /// Time of the first successful description.
    pub(super) first: Option<i64>,
    /// The last description.
    pub(super) last: Value,
    /// Why it cannot be described.
    pub(super) hidden: Option<ServiceError>,
    /// Time of the first description with a bill, and the billed seconds.
    pub(super) bill: Option<(i64, u64)>,
    /// Billed seconds at the end of the examination.
    pub(super) final_bill: Option<u64>,
    /// Time when the listing of running jobs first contained it, or the error of the listing.
    pub(super) listed: Option<Result<i64, ServiceError>>,
    /// The first response of `ListTags`.
    pub(super) tags: Option<Answer>,
    /// Time when all tags were present.
    pub(super) tagged: Option<i64>,
    /// The description just before the tuning was stopped.
    pub(super) before_stop: Option<Value>,
}

impl Job {
    /// Returns a time of the last description, in milliseconds since 1970.
    pub(super) fn time(&self, member: &str) -> Option<i64> {
        milliseconds(&self.last[member])
    }

    pub(super) fn text(&self, member: &str) -> &str {
        self.last[member].as_str().unwrap_or_default()
    }

    /// Returns when the job was first in a secondary status and when it last left it, in milliseconds since 1970.
    pub(super) fn phase(&self, status: &str) -> Option<(i64, i64)> {
        let transitions = self.last["SecondaryStatusTransitions"].as_array().into_iter().flatten();
        let own = transitions.filter(|one| one["Status"] == status);
        let mut times =
            own.map(|one| Some((milliseconds(&one["StartTime"])?, milliseconds(&one["EndTime"])?)));
        let (start, end) = times.next()??;
        let end = times.next_back().unwrap_or(Some((start, end)))?.1;
        Some((start, end))
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.text("TrainingJobStatus"), "Completed" | "Failed" | "Stopped")
    }

    /// Returns whether no more information about its bill is expected.
    pub(super) fn is_settled(&self) -> bool {
        self.hidden.is_some()
            || self.has_ended() && (self.bill.is_some() || self.last["TrainingStartTime"].is_null())
    }
}

impl Evidence {
    /// Returns the totals of the last description of the tuning.
    pub(super) fn totals(&self) -> Option<&Totals> {
        self.tuning.as_ref().map(|tuning| &tuning.controller.totals)
    }

    /// Returns the sum of the booked bills.
    pub(super) fn spent(&self) -> Option<MicroUsd> {
        self.totals().map(|totals| totals.spent_usd)
    }

    /// Returns the facts of a job, with the time when the doctor read them.
    pub(super) fn of_job(&self, key: JobKey) -> impl Iterator<Item = &(i64, Recorded)> {
        self.facts.iter().filter(move |(_, recorded)| recorded.fact.job() == Some(key))
    }

    /// Returns when SageMaker accepted the job.
    pub(super) fn accepted(&self, key: JobKey) -> Option<i64> {
        let mut facts = self.of_job(key);
        facts.find_map(|(_, recorded)| {
            matches!(recorded.fact, Fact::JobStarted { .. }).then_some(recorded.at.0)
        })
    }

    pub(super) fn first_ended(&self) -> Option<(JobKey, &Job)> {
        self.jobs.iter().find(|(_, job)| job.has_ended()).map(|(key, job)| (*key, job))
    }
}

/// Converts a time in a response of SageMaker, in seconds since 1970, to milliseconds.
pub(super) fn milliseconds(seconds: &Value) -> Option<i64> {
    let seconds = seconds.as_f64().filter(|seconds| (0.0..253_402_300_800.0).contains(seconds))?;
    #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
    let milliseconds = (seconds * 1_000.0).round() as i64;
    Some(milliseconds)
}

/// Returns this machine's time, in milliseconds since 1970.
pub(super) fn now() -> i64 {
    SystemClock.now().0
}
