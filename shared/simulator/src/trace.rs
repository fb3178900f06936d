//! The trace of a history: one line for everything that happens. Without `--trace` no line is built.

use std::fmt::Write;

/// The text of the trace; none when tracing is off.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    text: Option<String>,
}

impl Trace {
    pub(crate) fn new(on: bool) -> Self {
        Self { text: on.then(String::new) }
    }

    /// Appends a line with the time since the start, in ms.
    pub(crate) fn line(&mut self, now: i64, line: impl FnOnce() -> String) {
        if let Some(text) = &mut self.text {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:>12} {}", now - crate::plan::START, line());
        }
    }

    pub(crate) fn take(&mut self) -> Option<String> {
        self.text.take()
    }
}
