//! The rules of the decider, one topic a file. A rule reads the state and returns rulings.

pub(crate) mod bill;
pub(crate) mod conclude;
pub(crate) mod doubt;
pub(crate) mod final_log;
pub(crate) mod finish;
pub(crate) mod grant;
pub(crate) mod judge;
pub(crate) mod last_epoch;
pub(crate) mod notice;
pub(crate) mod outlook;
pub(crate) mod overrun;
pub(crate) mod pool;
pub(crate) mod promote;
pub(crate) mod refit;
pub(crate) mod silence;
pub(crate) mod spot;
pub(crate) mod start;
pub(crate) mod stop;

use std::cell::OnceCell;

pub use doubt::doubt;
pub use promote::most_promoted;

use crate::definition::Definition;
use crate::log::fact::JobKey;
use crate::log::reasons::EndReason;
use crate::log::ruling::Ruling;
use crate::state::State;
use crate::unit::time::Time;

/// One rule: which ruling is due, when the next one may be, and which stored facts may prevent it.
pub(crate) struct Rule {
    pub(crate) next: fn(&View<'_>) -> Option<Ruling>,
    /// Returns the next time at which a ruling may be due although no other fact arrives; [`never`] if only facts make
    /// one due.
    pub(crate) wakes: fn(&View<'_>) -> Option<Time>,
    /// Returns the jobs whose stored facts may prevent a ruling at a reported time; [`nothing`] if no fact can.
    pub(crate) folds_first: fn(&View<'_>, Time) -> Vec<JobKey>,
}

/// No time makes a ruling due.
pub(crate) fn never(_: &View<'_>) -> Option<Time> {
    None
}

/// No stored fact prevents a ruling.
pub(crate) fn nothing(_: &View<'_>, _: Time) -> Vec<JobKey> {
    Vec::new()
}

/// What can still happen.
pub(crate) enum Outlook {
    /// A job can start now; holds its order, or the request for its money.
    Start(Box<Ruling>),
    /// No job can start now, but a trial is live, or an open bill or a warm pool may free money for another job.
    Busy,
    /// Nothing is live. A start is deferred or waits for a grant.
    Deferred,
    /// Nothing is live or awaited: the search ends for this reason, and trials that wait at a rung are eliminated.
    Over(EndReason),
}

pub(crate) struct View<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) state: &'a State,
    outlook: OnceCell<Outlook>,
    compute_outlook: fn(&Definition, &State) -> Outlook,
}

impl<'a> View<'a> {
    /// Creates a view. `compute_outlook` comes from the caller, because it belongs to rules, which read views.
    pub(crate) fn new(
        definition: &'a Definition,
        state: &'a State,
        compute_outlook: fn(&Definition, &State) -> Outlook,
    ) -> Self {
        Self { definition, state, outlook: OnceCell::new(), compute_outlook }
    }

    /// Returns what can still happen. It is computed once, for the first rule that asks.
    pub(crate) fn outlook(&self) -> &Outlook {
        self.outlook.get_or_init(|| (self.compute_outlook)(self.definition, self.state))
    }

    /// Returns the next of `times`, which count by the greatest time on a fact.
    pub(crate) fn by_facts(&self, times: impl IntoIterator<Item = Time>) -> Option<Time> {
        times.into_iter().filter(|time| *time > self.state.now).min()
    }

    /// Returns the next of `times`, which count by the time that the sweeper reports.
    pub(crate) fn by_clock(&self, times: impl IntoIterator<Item = Time>) -> Option<Time> {
        times.into_iter().filter(|time| *time > self.state.clock).min()
    }
}
