//! Target `job_state`: state changes of training jobs, as EventBridge sends them.

use wire::events::job_state::JobStateChange;
use wire::events::payload;
use wire::names::parse_training_job_name;
use wire::stored;

use crate::{check_event_error, check_row};

/// Maximum length of a stored message, name or status, in characters.
const CHARS_MAX: usize = 1_000;
/// Maximum number of stored tags.
const TAGS_MAX: usize = 100;

pub(crate) fn run(input: &[u8]) {
    let event = match payload(input) {
        Ok(event) => event,
        Err(error) => return check_event_error(&error),
    };
    match JobStateChange::parse(&event) {
        Ok(change) => check(&change),
        Err(error) => check_event_error(&error),
    }
}

fn check(change: &JobStateChange) {
    let kept = [&change.training_job_name, &change.status, &change.secondary];
    let reason = change.failure_reason.as_ref();
    assert!(kept.into_iter().chain(reason).all(|text| text.chars().count() <= CHARS_MAX));
    assert!(change.tags.len() <= TAGS_MAX);
    let times = [change.started, change.ended, change.modified];
    assert!(
        times.into_iter().flatten().all(|time| time <= change.at),
        "the event is older than a time that it contains"
    );
    if let Some((id, job)) = parse_training_job_name(&change.training_job_name) {
        let recorded = change.to_recorded(job);
        assert_eq!((recorded.fact.job(), recorded.at), (Some(job), change.at));
        let row = stored::fact_row(&id, &recorded);
        check_row(&row);
        assert_eq!(stored::fact(&row), Ok(recorded), "the fact reads back the same");
    }
    // The encoding leaves out the time of the last transition, so only the second round trip is exact.
    let Ok(again) = JobStateChange::parse(&change.encode()) else {
        panic!("an encoded event must be readable")
    };
    assert_eq!((&again.training_job_name, &again.tags), (&change.training_job_name, &change.tags));
    assert_eq!((&again.status, &again.secondary), (&change.status, &change.secondary));
    assert_eq!((again.started, again.ended, again.modified), (change.started, change.ended, change.modified));
    assert_eq!(
        (again.billable_seconds, again.interruptions),
        (change.billable_seconds, change.interruptions)
    );
    assert_eq!(JobStateChange::parse(&again.encode()), Ok(again));
}
