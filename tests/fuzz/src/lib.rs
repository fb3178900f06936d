//! The fuzz targets: one function per reader of outside bytes. Each function panics when a property of its reader is
//! broken.
//!
//! The fuzzers in `tests/fuzz/libfuzzer` call the targets; an ordinary test calls them with every file of the corpus.
//! The targets accept any bytes. They must not read a clock or a file, or keep state between inputs.

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

/// A target: the name of its corpus directory, and its function.
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

/// Runs the target `name` on `input`.
///
/// # Panics
/// If a property of the reader is broken, or if the target is unknown.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, run) = target.unwrap_or_else(|| panic!("unknown target {name}"));
    run(input);
}

/// Stands for a user's data in seeds and dictionaries. No error about a delivery may repeat it.
const SECRET: &str = "hunter2";

/// Checks that an error about a delivery is short and does not contain the user's data.
fn check_error_text(error: &impl std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.is_empty() && text.len() <= 1_000, "an error text of {} bytes", text.len());
    assert!(!text.contains(SECRET), "an error repeats user data: {text}");
}

/// Like [`check_error_text`], but an error about an event for another reader may contain the kind of the event, which
/// is not user data.
fn check_event_error(error: &wire::events::EventError) {
    match error {
        wire::events::EventError::NotOurs(kind) => assert!(kind.chars().count() <= 200, "{kind}"),
        error => check_error_text(error),
    }
}

/// Checks that a row fits the table: DynamoDB's limit of a sort key, and the project's limit of a row.
fn check_row(item: &wire::item::Item) {
    const SORT_KEY_BYTES_MAX: usize = 1_024;
    let (key, size) = (item.key.sk.len(), item.size_bytes());
    assert!(key <= SORT_KEY_BYTES_MAX, "a sort key of {key} bytes");
    assert!(size <= wire::item::MAX_ITEM_BYTES, "a row of {size} bytes");
}
