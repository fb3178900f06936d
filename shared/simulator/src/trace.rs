//! The trace of a history: a line for everything that happens. Lines are made only when they are wanted.

use std::fmt::Write;

/// The trace.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    text: Option<String>,
}

impl Trace {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { text: wanted.then(String::new) }
    }

    /// A line.
    pub(crate) fn line(&mut self, now: i64, line: impl FnOnce() -> String) {
        if let Some(text) = &mut self.text {
            // Writing to memory does not fail.
            let _ = writeln!(text, "{:>12} {}", now - crate::world::START, line());
        }
    }

    pub(crate) fn take(&mut self) -> Option<String> {
        self.text.take()
    }
}
