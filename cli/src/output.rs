//! Writes all text to standard output and standard error.
//!
//! Text can contain names, values and messages from outside the program. They must not move the terminal's cursor or
//! change its colors, so these functions remove control characters. Only the `_raw` functions keep them, for styled
//! text whose parts are already clean. A closed pipe (`| head`) is not an error: the output is dropped, and a tuning
//! continues.

use std::fmt::Write as _;
use std::io::{self, Write};

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::text::clean;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// Text
    #[default]
    Text,
    /// JSON
    Json,
}

/// Writes a result to standard output in the given format. Makes only the text or the JSON that the user wants.
pub(crate) fn show(output: Output, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) {
    show_styled(output, || clean(&text()), json);
}

/// Like [`show`], for styled text whose parts are already clean.
pub(crate) fn show_styled(output: Output, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) {
    match output {
        Output::Text => print_out_raw(&text()),
        Output::Json => print_json(&json()),
    }
}

/// Announces the URL of a server on one line, which a program can read before the server ends.
pub(crate) fn show_url(output: Output, doing: &str, url: &str) {
    match output {
        Output::Text => print_out(&format!("{doing} {url}\n")),
        Output::Json => print_out_raw(&json_line(&json!({ "Endpoint": url }))),
    }
}

/// Writes text to standard output.
pub(crate) fn print_out(text: &str) {
    print_out_raw(&clean(text));
}

/// Writes text to standard error.
pub(crate) fn print_err(text: &str) {
    print_err_raw(&clean(text));
}

/// Writes text to standard output unchanged. For styled text with clean parts, and for other formats than text.
pub(crate) fn print_out_raw(text: &str) {
    let mut out = io::stdout().lock();
    // A closed pipe is not an error.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes text to standard output unchanged. Returns false if standard output is closed.
pub(crate) fn write_out(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Returns JSON on one line, with its line end.
pub(crate) fn json_line(value: &Value) -> String {
    escaped(&format!("{value}\n"))
}

/// Writes text to standard error unchanged. For styled text with clean parts.
pub(crate) fn print_err_raw(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes JSON to standard output.
pub(crate) fn print_json(value: &Value) {
    print_out_raw(&escaped(&format!("{value:#}\n")));
}

/// Escapes the control characters that JSON allows in strings.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_control() && letter != '\n' {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(letter));
        } else {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_json_are_escaped() {
        let value = json!({"a\u{9b}2J": "b\u{7f}\u{1b}\n\u{85}c"});
        let text = escaped(&format!("{value:#}\n"));
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
