//! Everything that is written to standard output and standard error goes through here.
//!
//! What people read has parts from elsewhere (names, values, messages): nothing in it may move a terminal's cursor or change
//! its colours, unless it was put together here with its style. A reader that has gone away (`| head`) is no error: what it
//! did not want is dropped, and a tuning goes on.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value;

use crate::text::clean;

/// Writes text to standard output.
pub(crate) fn say(text: &str) {
    say_as_is(&clean(text));
}

/// Writes text to standard error.
pub(crate) fn tell(text: &str) {
    tell_as_is(&clean(text));
}

/// Writes to standard output what is not for a terminal, or has style and was cleaned part by part.
pub(crate) fn say_as_is(text: &str) {
    let mut out = io::stdout().lock();
    // Nobody is left to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes to standard error what has style and was cleaned part by part.
pub(crate) fn tell_as_is(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes JSON to standard output, for programs.
pub(crate) fn say_json(value: &Value) {
    say_as_is(&escaped(&format!("{value:#}\n")));
}

/// The same JSON without the control characters that JSON allows in a text.
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
    use serde_json::json;

    #[test]
    fn json_keeps_its_meaning_without_control_characters() {
        let value = json!({"a\u{9b}2J": "b\u{7f}\u{1b}\n\u{85}c"});
        let text = escaped(&format!("{value:#}\n"));
        assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
