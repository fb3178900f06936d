//! Counts the entries of rungs that the decider reads, so that a test can bound the work of a step. A release build
//! counts nothing.
//!
//! All other data that a step reads belongs to live trials. Their number is at most the number of parallel jobs and of
//! trials about to start.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Counts a look at one entry.
pub(crate) fn look() {
    if cfg!(debug_assertions) {
        LOOKS.set(LOOKS.get().saturating_add(1));
    }
}

/// Returns how many entries this thread has looked at; 0 in a release build.
pub fn looks() -> u64 {
    LOOKS.get()
}
