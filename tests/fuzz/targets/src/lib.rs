//! What is fuzzed: one function per reader of outside bytes, which panics when a property of that reader is broken.
//!
//! Called by the fuzzers in `tests/fuzz/libfuzzer` and, for every file of the corpus, by an ordinary test. Assumes nothing
//! of the bytes. Must never read a clock or a file, or keep anything from one input to the next.

mod bytes;
mod decider;
mod http;
mod job_state;
mod logs;
mod metric;
mod request;
mod service_events;
mod stored;
mod stream;
mod words;

/// A target: the name of its corpus folder, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 10] = [
    ("request", request::run),
    ("job_state", job_state::run),
    ("logs", logs::run),
    ("stream", stream::run),
    ("stored", stored::run),
    ("metric", metric::run),
    ("http", http::run),
    ("words", words::run),
    ("decider", decider::run),
    ("service", service_events::run),
];

/// Runs the target called `name` on `input`.
///
/// # Panics
/// If a property of the reader is broken, or if there is no such target.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, run) = target.unwrap_or_else(|| panic!("no target is called {name}"));
    run(input);
}

/// Stands in seeds and dictionaries for a user's data, which no error about a delivery may repeat.
const SECRET: &str = "hunter2";

/// The text of an error about a delivery: short, and without the user's data.
fn check_told(error: &impl std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() <= 1_000, "an error of {} bytes", text.len());
    assert!(!text.contains(SECRET), "an error repeats what may be a secret: {text}");
}

/// As [`check_told`]; only of an event that is another reader's the kind is told, and that is no user's data.
fn check_event_told(error: &wire::events::EventError) {
    match error {
        wire::events::EventError::NotOurs(kind) => assert!(kind.chars().count() <= 200, "{kind}"),
        error => check_told(error),
    }
}

/// A row that must fit the table: what DynamoDB allows of a sort key, and our own bound on the row.
fn check_row(item: &wire::item::Item) {
    const SORT_KEY_BYTES_MAX: usize = 1_024;
    let (key, size) = (item.key.sk.len(), item.size_bytes());
    assert!(key <= SORT_KEY_BYTES_MAX, "a sort key of {key} bytes");
    assert!(size <= wire::item::MAX_ITEM_BYTES, "a row of {size} bytes");
}
