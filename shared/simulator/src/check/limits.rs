//! The limits in force: the cap, the maximum number of parallel jobs, and the pause, as the user changed them. The
//! latest change of each limit is in force, in whatever order changes arrive, and no accepted change is lost.
//!
//! Uses only facts: the facts of the steps define the limits in force, and the stored facts define those that must be
//! in force.

use std::collections::BTreeMap;

use tuning::log::fact::{Fact, Recorded};

use super::{Book, Money};
use crate::case::Case;

/// Time of a change, in ms, and the key of its fact. Of two changes at the same time, the one with the greater key is
/// later.
type Made = (i64, String);

/// The limits in force for one tuning, by the facts of its steps.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The cap, in micro-dollars. `None` = no cap.
    pub(crate) cap: Option<u64>,
    /// The highest cap so far, in micro-dollars. `None` = the tuning began without a cap.
    pub(crate) highest_cap: Option<u64>,
    /// The amount that was booked above the cap when the cap was lowered, in micro-dollars. It stays booked.
    standing: u64,
    /// Maximum number of parallel jobs.
    pub(crate) max_parallel: u32,
    /// Whether the tuning is paused: no job may be ordered.
    pub(crate) paused: bool,
    /// The latest change of the cap, of the parallel jobs and of the pause.
    made: [Option<Made>; 3],
}

/// Puts a change in force if it is later than the one in force. Returns whether it is.
fn supersede(place: &mut Option<Made>, made: &Made) -> bool {
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

    /// Returns when the cap was last changed, in ms; `i64::MIN` = never.
    pub(crate) fn cap_changed_at(&self) -> i64 {
        let [cap, ..] = &self.made;
        cap.as_ref().map_or(i64::MIN, |(at, _)| *at)
    }

    /// Applies a change; `booked` is the spent plus the reserved amount, in micro-dollars. Returns its effects, for
    /// the report.
    fn change(&mut self, recorded: &Recorded, booked: u64) -> Vec<&'static str> {
        let Fact::LimitsChanged { cap, max_parallel, paused } = &recorded.fact else { return Vec::new() };
        let made = (recorded.at.0, recorded.key.clone());
        let [cap_made, parallel_made, paused_made] = &mut self.made;
        let mut names = Vec::new();
        if let Some(new) = cap {
            if supersede(cap_made, &made) {
                names.push(match self.cap {
                    _ if booked > new.0 => "LimitsChanged, cap below the booked amount",
                    Some(old) if new.0 > old => "LimitsChanged, cap raised",
                    _ => "LimitsChanged, cap lowered",
                });
                self.cap = Some(new.0);
                self.highest_cap = self.highest_cap.map(|highest| highest.max(new.0));
                if booked > new.0 {
                    self.standing = booked;
                }
            } else {
                names.push("LimitsChanged, superseded by a later change");
            }
        }
        if let Some(new) = max_parallel {
            if supersede(parallel_made, &made) {
                let fewer = *new < self.max_parallel;
                names.push(if fewer { "LimitsChanged, fewer jobs" } else { "LimitsChanged, more jobs" });
                self.max_parallel = *new;
            } else {
                names.push("LimitsChanged, superseded by a later change");
            }
        }
        if let Some(new) = paused {
            if supersede(paused_made, &made) {
                names.push(if *new { "LimitsChanged, paused" } else { "LimitsChanged, resumed" });
                self.paused = *new;
            } else {
                names.push("LimitsChanged, superseded by a later change");
            }
        }
        names
    }

    /// Returns whether a change is missing: one of its limits is not in force and no later change is.
    pub(super) fn misses(&self, recorded: &Recorded) -> bool {
        let Fact::LimitsChanged { cap, max_parallel, paused } = &recorded.fact else { return false };
        let made = (recorded.at.0, recorded.key.clone());
        let given = [cap.is_some(), max_parallel.is_some(), paused.is_some()];
        given
            .iter()
            .zip(&self.made)
            .any(|(given, last)| *given && last.as_ref().is_none_or(|last| *last < made))
    }
}

impl Book {
    /// Applies the fact if it is a change of limits.
    pub(super) fn limits_changed(&mut self, recorded: &Recorded) {
        let (spent, reserved) = self.money();
        for name in self.limits.change(recorded, spent + reserved) {
            *self.changed.entry(name).or_default() += 1;
        }
    }

    /// Books that a bill was higher by `excess` than a reservation with the margin so far: every job whose bill is not
    /// known reserves that much more, and so do all later jobs.
    pub(super) fn book_excess(&mut self, excess: u64) {
        if excess == 0 {
            return;
        }
        self.margin += excess;
        for job in self.jobs.values_mut().filter(|job| job.money == Money::Reserved) {
            job.reservation += excess;
        }
        self.let_stand();
    }

    /// Lets the present sums stand, even above the cap: a bill was booked above what was reserved for it.
    pub(super) fn let_stand(&mut self) {
        let (spent, reserved) = self.money();
        self.limits.standing = spent + reserved;
    }

    /// Checks P1: the booked amount is within the cap and the grants. What was booked before the cap was lowered, or
    /// above a reservation, may stay above them, but it may not grow.
    pub(super) fn check_cap(&mut self) -> Result<(), String> {
        let (spent, reserved) = self.money();
        let granted = self.has_grants.then_some(self.granted);
        let bound = self.limits.cap.into_iter().chain(granted).min();
        self.limits.standing = self.limits.standing.min(spent + reserved);
        let most = bound.map(|bound| bound.max(self.limits.standing));
        most.is_none_or(|most| spent + reserved <= most).then_some(()).ok_or_else(|| {
            format!("P1: spent {spent} + reserved {reserved} exceeds the cap or the grants {bound:?}")
        })
    }

    /// Checks that the limits in force allow the job that was just ordered and is in these books.
    pub(super) fn check_start_limits(&self) -> Result<(), String> {
        if self.limits.paused {
            return Err("Pause: a job was ordered while the tuning was paused".to_owned());
        }
        let (spent, reserved) = self.money();
        if let Some(cap) = self.limits.cap.filter(|cap| spent + reserved > *cap) {
            return Err(format!(
                "P1: a job was ordered although spent {spent} + reserved {reserved} exceeds the cap {cap}"
            ));
        }
        let running = self.jobs.values().filter(|job| !job.end_seen).count();
        if running > usize::try_from(self.limits.max_parallel).unwrap_or(usize::MAX) {
            let most = self.limits.max_parallel;
            return Err(format!("MaxParallel: {running} jobs are ordered or run, {most} are allowed"));
        }
        Ok(())
    }
}

/// Stored changes with the time of their commit, by tuning and key of the fact.
pub(super) type Stored = BTreeMap<(String, String), (i64, Recorded)>;
