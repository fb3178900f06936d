//! Places at which a test plants a bug, so that the simulator's checkers must find it.
//!
//! The bugs are in the simulator. They exist only with the feature `planted`, which is in no crate's default features.
//! Without it, [`fold`] and `next` are the decider's unchanged functions, and [`planted!`](crate::planted!) expands to
//! `false`. At most one bug is on, in the thread that turned it on.

/// Returns whether the bug of that name is on; `false` at compile time without feature `planted`.
#[cfg(feature = "planted")]
#[macro_export]
macro_rules! planted {
    ($name:ident) => {
        $crate::planted::is_on(stringify!($name))
    };
}

/// Returns whether the bug of that name is on; `false` at compile time without feature `planted`.
#[cfg(not(feature = "planted"))]
#[macro_export]
macro_rules! planted {
    ($name:ident) => {
        false
    };
}

#[cfg(not(feature = "planted"))]
pub use crate::change::fold::fold;
#[cfg(not(feature = "planted"))]
pub(crate) use crate::decide::next;
#[cfg(feature = "planted")]
pub(crate) use on::next;
#[cfg(feature = "planted")]
pub use on::{Bug, fold, is_on, plant, struck};

#[cfg(feature = "planted")]
mod on {
    use std::cell::Cell;

    use crate::change;
    use crate::decide;
    use crate::definition::Definition;
    use crate::log::fact::Recorded;
    use crate::log::ruling::Ruling;
    use crate::state::State;

    thread_local! {
        static ON: Cell<Option<Bug>> = const { Cell::new(None) };
        static STRUCK: Cell<u64> = const { Cell::new(0) };
    }

    /// A planted bug.
    #[derive(Debug, Clone, Copy)]
    pub struct Bug {
        /// Its name, as in `planted!(Name)`.
        pub name: &'static str,
        /// Replaces [`change::fold::fold`].
        pub fold: fn(&Definition, &mut State, &Recorded) -> bool,
        /// Replaces [`decide::next`].
        pub next: fn(&Definition, &State) -> Option<Ruling>,
    }

    /// Turns `bug` on in this thread and any other off, and resets the count of [`struck`].
    pub fn plant(bug: Option<Bug>) {
        ON.set(bug);
        STRUCK.set(0);
    }

    /// Returns how many times the code has reached the bug that is on.
    pub fn struck() -> u64 {
        STRUCK.get()
    }

    /// Returns whether the bug of that name is on in this thread, and counts the call if it is.
    pub fn is_on(name: &str) -> bool {
        let is_on = ON.get().is_some_and(|bug| bug.name == name);
        if is_on {
            STRUCK.set(STRUCK.get().saturating_add(1));
        }
        is_on
    }

    /// Folds a fact like [`change::fold::fold`], with the bug that is on.
    pub fn fold(definition: &Definition, state: &mut State, recorded: &Recorded) -> bool {
        match ON.get() {
            Some(bug) => (bug.fold)(definition, state, recorded),
            None => change::fold::fold(definition, state, recorded),
        }
    }

    /// Returns the next ruling like [`decide::next`], with the bug that is on.
    pub(crate) fn next(definition: &Definition, state: &State) -> Option<Ruling> {
        match ON.get() {
            Some(bug) => (bug.next)(definition, state),
            None => decide::next(definition, state),
        }
    }
}
