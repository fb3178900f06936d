//! Exactly one parser accepts each file of `events/` that AWS delivers to a function.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use wire::events::http::HttpRequest;
use wire::events::job_state::JobStateChange;
use wire::events::logs::LogBatch;
use wire::events::{EventError, payload, stream};

/// A parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    JobState,
    Logs,
    Stream,
    Http,
}

const READERS: [Reader; 4] = [Reader::JobState, Reader::Logs, Reader::Stream, Reader::Http];

/// The payloads that AWS delivers to functions, with their parsers.
const INBOUND: [(&str, Reader); 24] = [
    ("aws.apigateway/http-request.change-limits.json", Reader::Http),
    ("aws.apigateway/http-request.create.json", Reader::Http),
    ("aws.apigateway/http-request.create-invalid.json", Reader::Http),
    ("aws.apigateway/http-request.describe.json", Reader::Http),
    ("aws.apigateway/http-request.stop.json", Reader::Http),
    ("aws.dynamodb/stream-records.actions.json", Reader::Stream),
    ("aws.dynamodb/stream-records.fact.json", Reader::Stream),
    ("aws.dynamodb/stream-records.ring.json", Reader::Stream),
    ("aws.apigateway/http-request.aws-json-create.json", Reader::Http),
    ("aws.logs/subscription.control-message.json", Reader::Logs),
    ("aws.logs/subscription.data-message.json", Reader::Logs),
    ("aws.dynamodb/stream-records.other-tables.json", Reader::Stream),
    ("aws.sagemaker/training-job-state-change.completed.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.string-times.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.downloading.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.failed.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.failed-capacity.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.interrupted.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.max-runtime.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.max-wait.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.starting.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.stopped.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.stopping.json", Reader::JobState),
    ("aws.sagemaker/training-job-state-change.training.json", Reader::JobState),
];

/// Published events, parts, responses and patterns, which are not the payload of any function.
const OTHERS: [&str; 25] = [
    // The sweeper takes any event as its tick.
    "aws.events/scheduled-event.minute.json",
    "custom.hyperband/cost-alarm.cap-reached.json",
    "custom.hyperband/capacity-alarm.no-capacity.json",
    "custom.hyperband/tuning-trial-decision.stopped.json",
    "custom.hyperband/cost-alarm.monthly-cap-reached.json",
    "custom.hyperband/cost-alarm.overrun.json",
    "custom.hyperband/hyperparameter-tuning-job-state-change.completed.json",
    "custom.hyperband/hyperparameter-tuning-job-state-change.in-progress.json",
    "custom.hyperband/hyperparameter-tuning-job-state-change.stopped.json",
    "custom.hyperband/hyperparameter-tuning-job-state-change.stopping.json",
    "custom.hyperband/tuning-trial-decision.promoted.json",
    "aws.sagemaker.api/create-hyper-parameter-tuning-job.request.json",
    "aws.sagemaker.api/create-hyper-parameter-tuning-job.response.json",
    "aws.sagemaker.api/describe-hyper-parameter-tuning-job.response.json",
    "aws.sagemaker.api/errors.bodies.json",
    "aws.sagemaker.api/list-training-jobs-for-hyper-parameter-tuning-job.response.json",
    "aws.sagemaker.api/list-hyper-parameter-tuning-jobs.response.json",
    "aws.apigateway/http-response.created.json",
    "aws.sagemaker.api/create-training-job.spot-multi-instance.json",
    "aws.logs/data-message.decoded.json",
    "aws.sagemaker.api/describe-training-job.completed-spot.json",
    "aws.events/rule-pattern.training-jobs.json",
    "aws.lambda/batch-response.partial.json",
    "aws.lambda/hand-over.starts.json",
    "aws.sagemaker/hyperparameter-tuning-job-state-change.in-progress.json",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../events")
}

/// Returns the text of a sample.
pub(crate) fn bytes(file: &str) -> Vec<u8> {
    std::fs::read(folder().join(file)).expect("a sample")
}

/// Returns a sample as JSON.
pub(crate) fn sample(file: &str) -> Value {
    payload(&bytes(file)).expect("JSON")
}

fn reads(reader: Reader, event: &Value) -> bool {
    match reader {
        Reader::JobState => JobStateChange::parse(event).is_ok(),
        Reader::Logs => LogBatch::parse(event).is_ok(),
        Reader::Stream => stream::parse(event).iter().all(Result::is_ok),
        Reader::Http => HttpRequest::parse(event).is_ok(),
    }
}

#[test]
fn each_file_is_listed_once() {
    let listed: Vec<&str> = INBOUND.into_iter().map(|(file, _)| file).chain(OTHERS).collect();
    let unique: BTreeSet<String> = listed.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(listed.len(), unique.len());
    let entries = |path: PathBuf| {
        std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path())
    };
    let name =
        |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let sources = entries(folder()).filter(|path| path.is_dir());
    let there: BTreeSet<String> = sources
        .flat_map(|source| {
            let files: Vec<String> = entries(source.clone()).map(|file| name(&file)).collect();
            files.into_iter().map(move |file| format!("{}/{file}", name(&source)))
        })
        .collect();
    assert_eq!(there, unique);
}

#[test]
fn only_one_parser_accepts_each_inbound_file() {
    for (file, expected) in INBOUND {
        let event = sample(file);
        for reader in READERS {
            assert_eq!(reads(reader, &event), reader == expected, "{file} by {reader:?}");
        }
    }
}

#[test]
fn no_parser_accepts_any_other_file() {
    for file in OTHERS {
        let event = sample(file);
        for reader in READERS {
            assert!(!reads(reader, &event), "{file} by {reader:?}");
        }
    }
}

#[test]
fn events_for_other_readers_are_dropped_without_an_error() {
    for file in [
        "aws.sagemaker/hyperparameter-tuning-job-state-change.in-progress.json",
        "aws.events/scheduled-event.minute.json",
    ] {
        assert!(matches!(JobStateChange::parse(&sample(file)), Err(EventError::NotOurs(_))), "{file}");
    }
}

#[test]
fn a_payload_above_lambdas_limit_is_rejected_before_parsing() {
    let large = vec![b' '; wire::events::MAX_PAYLOAD_BYTES + 1];
    assert!(matches!(payload(&large), Err(EventError::TooLarge { .. })));
    assert!(matches!(payload(b"{"), Err(EventError::Unreadable(_))));
    let deep = "[".repeat(100_000);
    assert!(matches!(payload(deep.as_bytes()), Err(EventError::Unreadable(_))));
}
