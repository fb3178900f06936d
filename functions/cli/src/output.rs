//! Everything that is written to standard output and standard error goes through here.
//!
//! A reader that has gone away (`| head`) is no error: what it did not want is dropped, and a tuning goes on.

use std::io::{self, Write};

use serde_json::Value;

/// Writes to standard output.
pub(crate) fn say(text: &str) {
    let mut out = io::stdout().lock();
    // Nobody is left to tell.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Writes to standard error.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes JSON to standard output, for programs.
pub(crate) fn say_json(value: &Value) {
    say(&format!("{value:#}\n"));
}
