//! The checks of the doctor. Each id is also the id of its row in `docs/UNVERIFIED.md`.

use super::evidence::Evidence;
use super::verdict::Verdict;
use super::{jobs, money, stack};

#[derive(Debug)]
pub(super) struct Check {
    /// Id of its row in the document.
    pub(super) id: &'static str,
    pub(super) assumes: &'static str,
    /// The effect of a wrong assumption.
    pub(super) otherwise: &'static str,
    /// Judges the assumption by the observations.
    pub(super) judge: fn(&Evidence) -> Verdict,
}

/// Makes the table of checks: id and judge, what is assumed, and the effect of a wrong assumption.
macro_rules! checks {
    ($($id:literal: $judge:path, $assumes:literal, $otherwise:literal;)*) => {
        &[$(Check { id: $id, assumes: $assumes, otherwise: $otherwise, judge: $judge }),*]
    };
}

/// All checks, in the order of the document.
pub(super) const CHECKS: &[Check] = checks! {
    "spot-bill": money::spot_bill,
        "a spot job that is interrupted or reaches its limit is billed for at most MaxWaitTimeInSeconds",
        "a tuning can exceed its cap by the difference; OverrunAlarm reports it";
    "bill-past-limit": money::past_limit,
        "start-up, stop and upload are billed for at most 300 s beyond MaxRuntimeInSeconds",
        "a tuning can exceed its cap by the difference; OverrunAlarm reports it";
    "limit-start": money::limit_start,
        "MaxRuntimeInSeconds counts from TrainingStartTime, so it contains the download of the data",
        "SageMaker ends a job later, by its download; the controller's own clock still stops it in time";
    "bill-interval": money::interval,
        "billing starts at TrainingStartTime and ends at TrainingEndTime",
        "bills differ from estimates; the booked costs are still the billed ones";
    "bill-shows": money::shows,
        "BillableTimeInSeconds is available and final within an hour after the end",
        "a later bill: the whole reservation is booked; a changed bill: the ledger lacks the difference";
    "prices": money::prices,
        "the price list has the prices of the instance type and its volume",
        "requests with a cap need the parameter InstancePrices of the stack; a volume counts as 0.30 USD per GB and month";
    "events": jobs::events,
        "state changes arrive as events with the job's tags",
        "the sweeper finds starts, ends and stops minutes later";
    "event-times": jobs::event_times,
        "times in events equal those of DescribeTrainingJob",
        "events are rejected (DeliveryFailuresAlarm); the sweeper finds ends minutes later";
    "failure-class": jobs::failure_class,
        "FailureReason begins with a known class",
        "every failure counts as a failure of its trial, and the job is not retried";
    "name-taken": jobs::name_taken,
        "CreateTrainingJob rejects a name in use with ResourceInUse",
        "the rejection for a foreign job of the same name gets another message";
    "job-shows": jobs::job_shows,
        "a created job is described within 60 s and listed within 10 minutes",
        "a job whose create response was lost can be given up although it runs; the hourly listing stops it";
    "tags-show": jobs::tags_show,
        "a job's tags are available as soon as the job",
        "a job whose create response was lost is taken for a foreign job; the hourly listing stops it";
    "listing": jobs::listing,
        "ListTrainingJobs filters and sorts by CreationTime, page by page",
        "the hourly listing may not find unknown jobs";
    "objective-hyperparameter": jobs::objective_hyperparameter,
        "CreateTrainingJob accepts the hyperparameter _tuning_objective_metric for the built-in XGBoost",
        "its jobs are rejected, and tunings fail after five of them";
    "stop-ended": jobs::stop_ended,
        "StopTrainingJob rejects an ended job with \"in status ...\"",
        "the stop is retried until the job's end is known";
    "job-absent": jobs::job_absent,
        "SageMaker reports an unknown job as not found",
        "a failed start is not canceled; its money stays reserved for hours";
    "stop-starting": jobs::stop_starting,
        "stopping a starting job works and costs nothing",
        "the job costs money; its bill is booked as usual";
    "rights": stack::rights,
        "the stack's roles may create jobs with tags, and stop jobs by these tags",
        "no tuning starts, or jobs run to their time limits";
    "log-streams": stack::log_streams,
        "log streams are named <training job>/algo-<n>-<digits>",
        "no metric is found, and jobs without metrics are stopped";
    "log-ids": stack::log_ids,
        "a line has the same id in a subscription and in FilterLogEvents",
        "epochs that are counted by lines can count twice";
    "log-delivery": stack::log_delivery,
        "the subscription delivers lines within seconds",
        "jobs are stopped later by the same delay";
    "signature": stack::signature,
        "the API accepts requests that are signed for execute-api",
        "no one can submit a tuning";
    "tuning-ends": stack::tuning_ends,
        "the functions can read and write their rows and streams: a tuning runs from its submission to its end",
        "tunings do not progress (TableRefused in the logs)";
    "clocks": stack::clocks,
        "the clocks of the stack and of this machine differ by at most a minute",
        "a submission whose response was lost may be taken for another user's tuning";
};
