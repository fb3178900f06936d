//! A log line: one JSON object with searchable fields.

use serde::Serialize;
use tuning::unit::time::Time;
use wire::events::timestamp::format_utc;

use crate::telemetry::errors::ErrorType;

/// Maximum length of a text field, in characters.
const TEXT_CHARS_MAX: usize = 400;

/// The severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// Information.
    #[default]
    Info,
    /// Work that is deferred, or a condition that an operator should check.
    Warn,
    /// A failure.
    Error,
}

/// A message with the tuning, job and action that it concerns.
#[must_use]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    level: Level,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_type: Option<ErrorType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Entry {
    fn new(level: Level, message: &str) -> Self {
        Self { level, message: cut(message), ..Self::default() }
    }

    /// Creates an entry of level `INFO`.
    pub fn info(message: &str) -> Self {
        Self::new(Level::Info, message)
    }

    /// Creates an entry of level `WARN`.
    pub fn warn(message: &str) -> Self {
        Self::new(Level::Warn, message)
    }

    /// Creates an entry of level `ERROR`.
    pub fn error(message: &str) -> Self {
        Self::new(Level::Error, message)
    }

    /// Sets the tuning ID.
    pub fn tuning(mut self, id: &str) -> Self {
        self.tuning = Some(cut(id));
        self
    }

    /// Sets the tuning name, if the ID is unknown.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(cut(name));
        self
    }

    /// Sets the name of the training job.
    pub fn job(mut self, name: &str) -> Self {
        self.job = Some(cut(name));
        self
    }

    /// Sets the action.
    pub fn action(mut self, action: &str) -> Self {
        self.action = Some(cut(action));
        self
    }

    /// Sets the step number.
    pub fn step(mut self, n: u64) -> Self {
        self.step = Some(n);
        self
    }

    /// Sets the error and its type.
    pub fn because(mut self, error_type: ErrorType, error: &str) -> Self {
        (self.error_type, self.error) = (Some(error_type), Some(cut(error)));
        self
    }

    /// Returns the line, without a line end.
    pub fn line(&self, function: &str, request: Option<&str>, at: Time) -> String {
        let request_id = request.map(cut);
        let line = Line { timestamp: time(at), function, request_id, entry: self };
        // Serialization of texts and numbers cannot fail.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    timestamp: String,
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(flatten)]
    entry: &'a Entry,
}

/// Always has milliseconds, so that the texts sort by time.
fn time(at: Time) -> String {
    let text = format_utc(at);
    match text.strip_suffix('Z') {
        Some(whole) if !whole.contains('.') => format!("{whole}.000Z"),
        _ => text,
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tuning::unit::time::Millis;

    use super::*;

    const AT: Time = Time(1_789_000_200_000);

    #[test]
    fn a_line_has_only_the_fields_that_are_set() {
        assert_eq!(
            Entry::info("a tuning ended").line("decider", None, AT),
            r#"{"timestamp":"2026-09-10T00:30:00.000Z","function":"decider","level":"INFO","message":"a tuning ended"}"#
        );
        let entry = Entry::error("a record was not done")
            .tuning("hb1-3fa1c2")
            .job("hb1-3fa1c2-0-0-1")
            .action("start-0-0-1")
            .step(7)
            .because(ErrorType::Table, "the table is \"throttling\"\n");
        assert_eq!(
            entry.line("actuator", Some("r-1"), AT + Millis(25)),
            r#"{"timestamp":"2026-09-10T00:30:00.025Z","function":"actuator","requestId":"r-1","level":"ERROR","message":"a record was not done","tuning":"hb1-3fa1c2","job":"hb1-3fa1c2-0-0-1","action":"start-0-0-1","step":7,"errorType":"Table","error":"the table is \"throttling\"\n"}"#
        );
        assert!(Entry::warn("w").line("f", None, AT).contains(r#""level":"WARN""#));
    }

    #[test]
    fn long_texts_are_truncated() {
        let long = "ä\u{1}".repeat(5_000);
        let entry = Entry::error(&long).tuning(&long).job(&long).action(&long);
        let line = entry.because(ErrorType::Panic, &long).line("f", Some(&long), AT);
        assert!(line.len() < 11_000, "{}", line.len());
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        let message = read["message"].as_str().unwrap();
        assert_eq!((message.chars().count(), message.ends_with('…')), (TEXT_CHARS_MAX + 1, true));
        assert_eq!(line.lines().count(), 1);
    }
}
