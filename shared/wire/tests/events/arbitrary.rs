//! No parser panics on arbitrary input.

use proptest::prelude::*;
use serde_json::{Value, json};
use tuning::unit::time::Time;
use wire::events::http::{HttpRequest, HttpResponse};
use wire::events::job_state::{JobStateChange, classify};
use wire::events::logs::{LogBatch, MetricPattern};
use wire::events::{direct, payload, stream};
use wire::names::parse_training_job_name;

use crate::samples::{bytes, sample};

const FILES: [&str; 7] = [
    "aws.apigateway/http-request.aws-json-create.json",
    "aws.logs/subscription.data-message.json",
    "aws.dynamodb/stream-records.other-tables.json",
    "aws.events/scheduled-event.minute.json",
    "aws.sagemaker/training-job-state-change.failed.json",
    "aws.sagemaker/training-job-state-change.interrupted.json",
    "aws.sagemaker/training-job-state-change.string-times.json",
];

/// Passes a value to every parser, and each parsed value to its encoder.
fn parse_with_all(event: &Value) {
    if let Ok(change) = JobStateChange::parse(event) {
        if let Some((_, job)) = parse_training_job_name(&change.training_job_name) {
            let _ = change.to_recorded(job);
        }
        assert!(change.fact_key().len() < 1_024);
        let _ = JobStateChange::parse(&change.encode());
    }
    if let Ok(batch) = LogBatch::parse(event) {
        assert_eq!(LogBatch::parse(&batch.encode()), Ok(batch));
    }
    for record in stream::parse(event).into_iter().flatten() {
        let _ = stream::encode_record(1, record.kind, &record.key, record.new.as_ref());
    }
    let _ = HttpResponse::parse(event);
    let _ = direct::parse_result(event);
    if let Ok(request) = direct::parse(event) {
        let read = direct::parse(&direct::encode(&request)).expect("its own payload");
        assert_eq!((read.path, read.query), (request.path, request.query));
    }
    if let Ok(request) = HttpRequest::parse(event) {
        assert_eq!(HttpRequest::parse(&request.encode()).map(|read| read.body), Ok(request.body));
    }
}

/// Collects the JSON pointers of all values in `value`.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(name, value)| pointers(value, &format!("{at}/{}", escaped(name)), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, value)| pointers(value, &format!("{at}/{n}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!({"S": "x"})),
        Just(json!([null, 1, "x", {"Status": "Interrupted"}])),
    ]
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_without_a_panic(bytes in any::<Vec<u8>>()) {
        if let Ok(event) = payload(&bytes) {
            parse_with_all(&event);
        }
        let _ = LogBatch::from_json(&bytes);
    }

    #[test]
    fn samples_with_a_changed_byte_are_parsed_without_a_panic(
        file in 0..FILES.len(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = bytes(FILES[file]);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Ok(event) = payload(&bytes) {
            parse_with_all(&event);
        }
    }

    #[test]
    fn samples_with_changed_members_are_parsed_without_a_panic(
        file in 0..FILES.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any_value()), 1..4),
    ) {
        let mut event = sample(FILES[file]);
        for (place, value) in changes {
            let mut found = Vec::new();
            pointers(&event, "", &mut found);
            let place = place.get(&found).clone();
            *event.pointer_mut(&place).expect("a place") = value;
        }
        parse_with_all(&event);
    }

    #[test]
    fn any_statuses_are_classified(
        status in any::<String>(),
        secondary in any::<String>(),
        reason in any::<Option<String>>(),
    ) {
        let _ = classify(&status, &secondary, reason.as_deref());
    }

    #[test]
    fn any_pattern_is_applied_to_any_line(
        pattern in any::<String>(),
        epoch in any::<Option<String>>(),
        line in any::<String>(),
    ) {
        if let Ok(pattern) = MetricPattern::new(&pattern, epoch.as_deref()) {
            let _ = pattern.read(&line).lines("1", Time(1));
        }
    }

    #[test]
    fn a_value_is_finite_or_absent(text in "[-+0-9.eEnaif]{1,12}") {
        let pattern = MetricPattern::new(r"loss=(\S+)", None).expect("a pattern");
        for line in pattern.read(&format!("loss={text}")).lines("1", Time(1)) {
            prop_assert!(line.value.is_none_or(f64::is_finite));
        }
    }
}
