//! Tests of state changes of training jobs, and of the classification of SageMaker's statuses.

use serde_json::{Value, json};
use tuning::log::fact::{Fact, JobEnd, JobKey, JobPhase};
use tuning::unit::limits::MAX_MESSAGE_CHARS;
use tuning::unit::time::Time;
use wire::events::EventError;
use wire::events::job_state::{JobStateChange, classify, cut_message};

use crate::samples::sample;

const KEY: JobKey = JobKey::new(7, 1, 1);

fn event(name: &str) -> Value {
    sample(&format!("aws.sagemaker/training-job-state-change.{name}.json"))
}

fn change(name: &str) -> JobStateChange {
    JobStateChange::parse(&event(name)).expect("a state change")
}

/// Parses a sample with one member of its detail replaced.
fn with(name: &str, member: &str, value: Value) -> Result<JobStateChange, EventError> {
    let mut event = event(name);
    event["detail"][member] = value;
    JobStateChange::parse(&event)
}

#[test]
fn each_sample_has_its_phase() {
    for (name, phase) in [
        ("completed", JobPhase::Ended(JobEnd::Completed)),
        ("string-times", JobPhase::Ended(JobEnd::Completed)),
        ("downloading", JobPhase::Downloading),
        ("failed", JobPhase::Ended(JobEnd::AlgorithmError)),
        ("failed-capacity", JobPhase::Ended(JobEnd::CapacityError)),
        ("interrupted", JobPhase::Interrupted),
        ("max-runtime", JobPhase::Ended(JobEnd::MaxRuntime)),
        ("max-wait", JobPhase::Ended(JobEnd::MaxWait)),
        ("starting", JobPhase::Starting),
        ("stopped", JobPhase::Ended(JobEnd::Stopped)),
        ("stopping", JobPhase::Stopping),
        ("training", JobPhase::Training),
    ] {
        assert_eq!(change(name).phase, phase, "{name}");
    }
}

#[test]
fn every_field_is_parsed() {
    let failed = change("failed");
    assert_eq!(failed.training_job_name, "hb1-3fa1c2-7-1-1");
    assert_eq!(failed.tags["hyperband:tuning"], "hb1-3fa1c2");
    assert_eq!((failed.status.as_str(), failed.secondary.as_str()), ("Failed", "Failed"));
    assert_eq!(failed.created, Some(Time(1_789_000_000_000)));
    assert_eq!(failed.started, Some(Time(1_789_000_090_000)));
    assert_eq!(failed.ended, Some(Time(1_789_000_300_000)));
    assert_eq!(failed.modified, Some(Time(1_789_000_240_000)));
    assert_eq!(failed.event_time, Some(Time(1_788_999_968_000)));
    assert_eq!(failed.failure_reason.as_deref(), Some("AlgorithmError: example failure text, exit code: 1"));
    assert_eq!((failed.billable_seconds, failed.interruptions), (None, 0));
    assert_eq!(change("interrupted").interruptions, 1);
}

#[test]
fn times_can_be_strings_and_absent_members_null() {
    let docstyle = change("string-times");
    assert_eq!(docstyle.created, Some(Time(1_789_000_000_000)));
    assert_eq!(docstyle.modified, Some(Time(1_789_000_930_000)));
    assert_eq!((docstyle.started, docstyle.ended, docstyle.failure_reason), (None, None, None));
    let waiting = change("starting");
    assert_eq!((waiting.started, waiting.ended), (None, None));
}

#[test]
fn a_fact_has_the_latest_time_and_a_unique_key() {
    let recorded = change("failed").to_recorded(KEY);
    assert_eq!(recorded.at, Time(1_789_000_300_000));
    assert_eq!(recorded.key, "state#7-1-1#Failed#Failed#1789000240000");
    let Fact::JobStateChanged { job, phase, started, ended, message } = recorded.fact else {
        panic!("another fact")
    };
    assert_eq!((job, phase), (KEY, JobPhase::Ended(JobEnd::AlgorithmError)));
    assert_eq!((started, ended), (Some(Time(1_789_000_090_000)), Some(Time(1_789_000_300_000))));
    assert!(message.is_some());
    let mut keys: Vec<String> =
        ["training", "interrupted", "stopping", "stopped"].map(|name| change(name).fact_key()).to_vec();
    keys.push(with("interrupted", "LastModifiedTime", json!(1_789_000_500_000_u64)).unwrap().fact_key());
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 5);
}

#[test]
fn without_a_time_of_the_job_the_time_of_the_event_counts() {
    let mut event = event("starting");
    for member in ["LastModifiedTime", "SecondaryStatusTransitions"] {
        event["detail"][member] = Value::Null;
    }
    assert_eq!(JobStateChange::parse(&event).unwrap().at, Time(1_788_999_961_000));
    event["time"] = Value::Null;
    assert!(matches!(JobStateChange::parse(&event), Err(EventError::Unreadable(_))));
}

#[test]
fn epoch_seconds_and_invalid_times_are_rejected() {
    for time in [json!(1_789_000_240), json!("1789000240"), json!(1e30), json!(-1), json!("soon"), json!([1])]
    {
        let read = with("failed", "LastModifiedTime", time.clone());
        assert!(matches!(read, Err(EventError::Unreadable(_))), "{time}");
    }
    assert_eq!(
        with("failed", "LastModifiedTime", json!(1.789e12)).unwrap().modified,
        Some(Time(1_789_000_000_000))
    );
}

#[test]
fn an_event_without_job_name_or_status_is_unreadable() {
    for member in ["TrainingJobName", "TrainingJobStatus"] {
        for value in [Value::Null, json!(5)] {
            let error = with("training", member, value).unwrap_err();
            assert_eq!(error.to_string(), format!("invalid detail.{member}: expected a string"));
        }
    }
    let mut event = event("training");
    event["detail"] = json!("{}");
    assert!(matches!(JobStateChange::parse(&event), Err(EventError::Unreadable(_))));
    assert!(matches!(JobStateChange::parse(&json!({})), Err(EventError::Unreadable(_))));
}

#[test]
fn statuses_are_classified() {
    let ended = JobPhase::Ended;
    for (status, secondary, reason, phase) in [
        ("InProgress", "LaunchingMLInstances", None, JobPhase::Starting),
        ("InProgress", "PreparingTrainingStack", None, JobPhase::Starting),
        ("InProgress", "Pending", None, JobPhase::Starting),
        ("InProgress", "Restarting", None, JobPhase::Starting),
        ("InProgress", "DownloadingTrainingImage", None, JobPhase::Downloading),
        ("InProgress", "Uploading", None, JobPhase::Uploading),
        ("InProgress", "MaxRuntimeExceeded", None, JobPhase::Stopping),
        ("InProgress", "Updating", None, JobPhase::Other),
        ("InProgress", "Completed", None, JobPhase::Other),
        ("InProgress", "", None, JobPhase::Other),
        ("InProgress", "Levitating", None, JobPhase::Other),
        ("Levitating", "Completed", None, JobPhase::Other),
        ("", "", None, JobPhase::Other),
        ("Stopping", "Uploading", None, JobPhase::Stopping),
        ("Stopped", "Levitating", None, ended(JobEnd::Stopped)),
        ("Completed", "Levitating", None, ended(JobEnd::Completed)),
        ("Deleting", "MaxRuntimeExceeded", None, ended(JobEnd::MaxRuntime)),
        ("Deleting", "Failed", Some("CapacityError: x"), ended(JobEnd::CapacityError)),
        ("Deleting", "Deleting", None, JobPhase::Other),
        ("Failed", "Failed", None, ended(JobEnd::AlgorithmError)),
        ("Failed", "Failed", Some("something else"), ended(JobEnd::AlgorithmError)),
        ("Failed", "Failed", Some("ClientError: no such data"), ended(JobEnd::AlgorithmError)),
        ("Failed", "Failed", Some("AlgorithmError: CapacityError"), ended(JobEnd::AlgorithmError)),
        ("Failed", "Failed", Some(" CapacityError: Unable"), ended(JobEnd::CapacityError)),
        ("Failed", "Failed", Some("InternalServerError: We"), ended(JobEnd::ServiceError)),
    ] {
        assert_eq!(classify(status, secondary, reason), phase, "{status}/{secondary}: {reason:?}");
    }
}

#[test]
fn a_long_failure_reason_is_cut_between_characters() {
    let long = "é".repeat(5_000);
    let change = with("failed", "FailureReason", json!(long)).unwrap();
    assert_eq!(change.failure_reason.as_deref(), Some(cut_message(&long).as_str()));
    assert_eq!(cut_message(&long).chars().count(), MAX_MESSAGE_CHARS);
    assert_eq!(with("failed", "FailureReason", json!("")).unwrap().failure_reason, None);
}

#[test]
fn tags_can_be_a_list_and_values_of_other_types_are_ignored() {
    let list = json!([{"Key": "a", "Value": "b"}, {"Key": 1}, "x"]);
    let tags = with("training", "Tags", list).unwrap().tags;
    assert_eq!(tags.into_iter().collect::<Vec<_>>(), [("a".to_owned(), "b".to_owned())]);
    assert!(with("training", "Tags", Value::Null).unwrap().tags.is_empty());
    assert_eq!(with("training", "Tags", json!({"a": "b", "c": 1})).unwrap().tags.len(), 1);
}

#[test]
fn an_encoded_change_parses_to_itself() {
    for name in ["completed", "failed", "interrupted", "max-runtime", "starting", "stopping", "training"] {
        let change = change(name);
        // The encoder omits the times of transitions, which date the fact in some samples.
        let read = JobStateChange::parse(&change.encode()).unwrap();
        assert_eq!(JobStateChange { at: change.at, ..read }, change, "{name}");
    }
    let failed = change("failed");
    assert_eq!(JobStateChange::parse(&failed.encode()).unwrap().to_recorded(KEY), failed.to_recorded(KEY));
}

#[test]
fn long_statuses_fit_the_sort_key_of_a_fact() {
    let mut event = event("training");
    let word: Value = "\u{1F600}".repeat(1_000).into();
    event["detail"]["TrainingJobStatus"] = word.clone();
    event["detail"]["SecondaryStatus"] = word;
    let change = JobStateChange::parse(&event).unwrap();
    let job = JobKey::new(u32::MAX, u32::MAX, u32::MAX);
    let row = wire::stored::fact_row("hb1-3fa1c2", &change.to_recorded(job));
    assert!(row.key.sk.len() <= 1_024, "{} bytes", row.key.sk.len());
}
