//! Counts the entries of rungs that the decider looks at, so that a test can bound the work of a step. A release build
//! counts nothing.
//!
//! Everything else that a step looks at belongs to live trials, of which there are at most as many as parallel jobs and
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
