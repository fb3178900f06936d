//! The limits in force: the cap, the jobs at once, the pause, as the user changed them. Of each limit the change that was
//! made last stands, in whatever order changes arrive; none that was taken is lost.
//!
//! Kept from the facts alone: those that the steps hold say what is in force, those that were stored say what should be.

use std::collections::BTreeMap;

use tuning::fact::{Fact, Recorded};

use super::Book;
use crate::case::Case;

/// When a change was made, and the key of its fact: of two at one time the greater key is the later.
type Made = (i64, String);

/// What is in force for one tuning, as far as its steps have heard.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The cap, micro-dollars.
    pub(crate) cap: Option<u64>,
    /// The highest there ever was; `None` = there was a time without.
    pub(crate) highest_cap: Option<u64>,
    /// What was booked above a cap when it was lowered: that much stands.
    standing: u64,
    /// Most jobs at once.
    pub(crate) max_parallel: u32,
    /// Whether no further job may be ordered.
    pub(crate) paused: bool,
    made: [Option<Made>; 3],
}

/// Whether a change that was made then is later than what is in force; if so it is in force now.
fn later(place: &mut Option<Made>, made: &Made) -> bool {
    let later = place.as_ref().is_none_or(|old| old < made);
    if later {
        *place = Some(made.clone());
    }
    later
}

impl Limits {
    pub(super) fn of(case: &Case) -> Self {
        Self {
            cap: case.cap,
            highest_cap: case.cap,
            standing: 0,
            max_parallel: case.choices.max_parallel,
            paused: false,
            made: [None, None, None],
        }
    }

    /// Takes a change; `booked` is what is spent and reserved. What it changes, for the report.
    fn change(&mut self, recorded: &Recorded, booked: u64) -> Vec<&'static str> {
        let Fact::LimitsChanged { cap, max_parallel, paused } = &recorded.fact else { return Vec::new() };
        let made = (recorded.at, recorded.key.clone());
        let [cap_made, parallel_made, paused_made] = &mut self.made;
        let mut names = Vec::new();
        if let Some(new) = cap {
            if later(cap_made, &made) {
                names.push(match self.cap {
                    _ if booked > new.0 => "LimitsChanged, cap below what is booked",
                    Some(old) if new.0 > old => "LimitsChanged, cap raised",
                    _ => "LimitsChanged, cap lowered",
                });
                self.cap = Some(new.0);
                self.highest_cap = self.highest_cap.map(|highest| highest.max(new.0));
                self.standing = if booked > new.0 { booked } else { 0 };
            } else {
                names.push("LimitsChanged, overtaken by a later change");
            }
        }
        if let Some(new) = max_parallel {
            if later(parallel_made, &made) {
                let fewer = *new < self.max_parallel;
                names.push(if fewer { "LimitsChanged, fewer jobs" } else { "LimitsChanged, more jobs" });
                self.max_parallel = *new;
            } else {
                names.push("LimitsChanged, overtaken by a later change");
            }
        }
        if let Some(new) = paused {
            if later(paused_made, &made) {
                names.push(if *new { "LimitsChanged, paused" } else { "LimitsChanged, goes on" });
                self.paused = *new;
            } else {
                names.push("LimitsChanged, overtaken by a later change");
            }
        }
        names
    }

    /// Whether a change would change something: some limit of it was last changed before.
    pub(super) fn misses(&self, recorded: &Recorded) -> bool {
        let Fact::LimitsChanged { cap, max_parallel, paused } = &recorded.fact else { return false };
        let made = (recorded.at, recorded.key.clone());
        let given = [cap.is_some(), max_parallel.is_some(), paused.is_some()];
        given
            .iter()
            .zip(&self.made)
            .any(|(given, last)| *given && last.as_ref().is_none_or(|last| *last < made))
    }
}

impl Book {
    /// Takes a change of limits, if the fact is one.
    pub(super) fn limits_changed(&mut self, recorded: &Recorded) {
        let (spent, reserved) = self.money();
        for name in self.limits.change(recorded, spent + reserved) {
            *self.changed.entry(name).or_default() += 1;
        }
    }

    /// P1 after every fact and ruling: what is booked is within the cap, or stood when the cap was lowered.
    pub(super) fn within_cap(&self) -> Result<(), String> {
        let (spent, reserved) = self.money();
        if self.definition.grants && !self.overrun && spent + reserved > self.granted {
            return Err(format!("P1: spent {spent} + reserved {reserved} is above {} granted", self.granted));
        }
        match self.limits.cap {
            // The books tell the truth when the service has broken its word.
            Some(cap) if spent + reserved > cap.max(self.limits.standing) && !self.overrun => {
                Err(format!("P1: spent {spent} + reserved {reserved} is above the cap {cap}"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A job was ordered, and is in these books: whether the limits in force allow that.
    pub(super) fn allowed_to_start(&self) -> Result<(), String> {
        if self.limits.paused {
            return Err("Pause: a job is ordered while the tuning is paused".to_owned());
        }
        let (spent, reserved) = self.money();
        if let Some(cap) = self.limits.cap.filter(|cap| spent + reserved > *cap) {
            return Err(format!(
                "P1: a job is ordered, spent {spent} + reserved {reserved}, the cap is {cap}"
            ));
        }
        let running = self.jobs.values().filter(|job| !job.end_seen).count();
        if running > usize::try_from(self.limits.max_parallel).unwrap_or(usize::MAX) {
            return Err(format!("MaxParallel: {running} jobs hold slots, {}", self.limits.max_parallel));
        }
        Ok(())
    }
}

/// Changes that were stored, by tuning and key, and when.
pub(super) type Stored = BTreeMap<(String, String), (i64, Recorded)>;
