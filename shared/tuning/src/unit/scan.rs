//! Counts the entries of rungs that the decider reads, so that a test can bound the work of a step. A release build
//! counts nothing.
//!
//! All other data that a step reads belongs to live trials. Their number is at most the number of parallel jobs and of
//! trials about to start.

use std::cell::Cell;

thread_local! {
    static ENTRIES: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn count_entry() {
    if cfg!(debug_assertions) {
        ENTRIES.set(ENTRIES.get().saturating_add(1));
    }
}

/// Returns how many entries this thread has read; 0 in a release build.
pub fn entries() -> u64 {
    ENTRIES.get()
}
