//! Every file of `events/` that is delivered to a function is read by exactly one parser.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use wire::events::http::HttpRequest;
use wire::events::job_state::JobStateChange;
use wire::events::logs::LogBatch;
use wire::events::schedule::Tick;
use wire::events::{EventError, payload, stream};

/// Who reads a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    JobState,
    Logs,
    Stream,
    Schedule,
    Http,
}

const READERS: [Reader; 5] = [Reader::JobState, Reader::Logs, Reader::Stream, Reader::Schedule, Reader::Http];

/// What is delivered to a function.
const INBOUND: [(&str, Reader); 17] = [
    ("apigw_v2_create_tuning_job.json", Reader::Http),
    ("cwlogs_control_message.json", Reader::Logs),
    ("cwlogs_subscription.json", Reader::Logs),
    ("dynamodb_stream.json", Reader::Stream),
    ("scheduled_event.json", Reader::Schedule),
    ("training_job_state_change_completed.json", Reader::JobState),
    ("training_job_state_change_docstyle_string_times.json", Reader::JobState),
    ("training_job_state_change_downloading.json", Reader::JobState),
    ("training_job_state_change_failed.json", Reader::JobState),
    ("training_job_state_change_failed_capacity.json", Reader::JobState),
    ("training_job_state_change_interrupted.json", Reader::JobState),
    ("training_job_state_change_maxruntime.json", Reader::JobState),
    ("training_job_state_change_maxwait.json", Reader::JobState),
    ("training_job_state_change_starting.json", Reader::JobState),
    ("training_job_state_change_stopped.json", Reader::JobState),
    ("training_job_state_change_stopping.json", Reader::JobState),
    ("training_job_state_change_training.json", Reader::JobState),
];

/// What we send, or what is a part, an answer or a pattern: no function is invoked with it.
const OTHERS: [&str; 13] = [
    "amt_create_request.json",
    "amt_create_response.json",
    "amt_describe_response.json",
    "amt_error_bodies.json",
    "amt_list_training_jobs_response.json",
    "amt_list_tuning_jobs_response.json",
    "apigw_v2_lambda_response.json",
    "create_training_job_request_spot_multi.json",
    "cwlogs_decoded.json",
    "describe_training_job_completed_spot.json",
    "eventbridge_rule_pattern.json",
    "lambda_partial_batch_response.json",
    "tuning_job_state_change.json",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../events")
}

/// A sample's text.
pub(crate) fn bytes(file: &str) -> Vec<u8> {
    std::fs::read(folder().join(file)).expect("a sample")
}

/// A sample.
pub(crate) fn sample(file: &str) -> Value {
    payload(&bytes(file)).expect("JSON")
}

fn reads(reader: Reader, event: &Value) -> bool {
    match reader {
        Reader::JobState => JobStateChange::parse(event).is_ok(),
        Reader::Logs => LogBatch::parse(event).is_ok(),
        Reader::Stream => stream::parse(event).iter().all(Result::is_ok),
        Reader::Schedule => Tick::parse(event).is_ok(),
        Reader::Http => HttpRequest::parse(event).is_ok(),
    }
}

#[test]
fn each_file_is_listed_once() {
    let listed: Vec<&str> = INBOUND.into_iter().map(|(file, _)| file).chain(OTHERS).collect();
    let unique: BTreeSet<String> = listed.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(listed.len(), unique.len());
    let there: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("the folder events")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    assert_eq!(there, unique);
}

#[test]
fn each_inbound_file_is_read_by_its_parser_alone() {
    for (file, expected) in INBOUND {
        let event = sample(file);
        for reader in READERS {
            assert_eq!(reads(reader, &event), reader == expected, "{file} by {reader:?}");
        }
    }
}

#[test]
fn no_other_file_is_taken_for_an_event() {
    for file in OTHERS {
        let event = sample(file);
        for reader in READERS {
            assert!(!reads(reader, &event), "{file} by {reader:?}");
        }
    }
}

#[test]
fn events_of_the_bus_that_are_for_others_are_dropped_and_not_failed() {
    for file in ["tuning_job_state_change.json", "scheduled_event.json"] {
        assert!(matches!(JobStateChange::parse(&sample(file)), Err(EventError::NotOurs(_))), "{file}");
    }
    let training = sample("training_job_state_change_training.json");
    assert!(matches!(Tick::parse(&training), Err(EventError::NotOurs(_))));
}

#[test]
fn a_tick_tells_its_time_and_is_read_as_it_was_written() {
    let tick = Tick::parse(&sample("scheduled_event.json")).unwrap();
    assert_eq!(tick.time, 1_789_000_200_000);
    assert_eq!(Tick::parse(&tick.encode()), Ok(tick));
    let mut scheduler = tick.encode();
    scheduler["source"] = "aws.scheduler".into();
    scheduler["detail"] = "{}".into();
    assert_eq!(Tick::parse(&scheduler), Ok(tick));
    scheduler["time"] = "soon".into();
    assert!(matches!(Tick::parse(&scheduler), Err(EventError::Unreadable(_))));
}

#[test]
fn a_payload_above_lambdas_limit_is_not_even_parsed() {
    let large = vec![b' '; wire::events::MAX_PAYLOAD_BYTES + 1];
    assert!(matches!(payload(&large), Err(EventError::TooLarge { .. })));
    assert!(matches!(payload(b"{"), Err(EventError::Unreadable(_))));
    let deep = "[".repeat(100_000);
    assert!(matches!(payload(deep.as_bytes()), Err(EventError::Unreadable(_))));
}
