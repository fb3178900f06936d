//! An emulated CloudWatch Logs that stores and returns lines, on loopback.

use std::collections::BTreeMap;
use std::sync::Mutex;

use loopback::{Answer, Call, Service};
use serde_json::{Value, json};

/// Lines by stream. A group is stored as a stream without lines.
type Streams = BTreeMap<String, Vec<Value>>;

/// Lines per page, few enough for several pages.
const PAGE_LINES: usize = 1;

/// Starts an empty store.
pub(crate) fn start() -> Service {
    let streams: Mutex<Streams> = Mutex::default();
    Service::start(move |call| answer(&mut streams.lock().unwrap(), call))
}

fn answer(streams: &mut Streams, call: &Call) -> Answer {
    let text = |name: &str| call.body[name].as_str().unwrap_or_default().to_owned();
    let (group, stream) = (text("logGroupName"), text("logStreamName"));
    let known = streams.contains_key(&group);
    match call.operation() {
        "CreateLogGroup" | "CreateLogStream" => {
            streams.entry(if stream.is_empty() { group } else { stream }).or_default();
            Answer::text(200, "")
        }
        "PutLogEvents" if known && streams.contains_key(&stream) => {
            let lines = call.body["logEvents"].as_array().unwrap().clone();
            streams.get_mut(&stream).unwrap().extend(lines);
            Answer::done(&json!({}))
        }
        "FilterLogEvents" if known => Answer::done(&filtered(streams, &call.body)),
        _ => Answer::error(400, "ResourceNotFoundException", "The specified log group does not exist."),
    }
}

fn filtered(streams: &Streams, asked: &Value) -> Value {
    let prefix = asked["logStreamNamePrefix"].as_str().unwrap();
    let from = asked["startTime"].as_i64().unwrap();
    let skip: usize = asked["nextToken"].as_str().map_or(0, |token| token.parse().unwrap());
    let mine = streams.iter().filter(|(name, _)| name.starts_with(prefix));
    let lines = mine.flat_map(|(name, lines)| {
        lines.iter().enumerate().map(move |(number, line)| {
            json!({
                "logStreamName": name,
                "eventId": format!("{number:020}"),
                "timestamp": line["timestamp"],
                "message": line["message"],
            })
        })
    });
    let mut lines = lines.filter(|line| line["timestamp"].as_i64().unwrap() >= from).skip(skip);
    let page: Vec<Value> = lines.by_ref().take(PAGE_LINES).collect();
    match lines.next() {
        Some(_) => json!({"events": page, "nextToken": (skip + PAGE_LINES).to_string()}),
        None => json!({"events": page}),
    }
}
