//! The bars: rows at the bottom of a terminal, redrawn after every change.
//!
//! All rows are one message of one bar, so that no row is older than another.

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use local::host::SystemClock;
use search::Configuration;
use tuning::state::State;
use tuning::unit::ids::TrialId;
use tuning::unit::time::Time;
use use_cases::ports::Clock;

use super::rows::{View, rows};
use crate::follow::Follower;

/// Maximum redraws per second: more than there are updates, since a skipped redraw shows old rows until the next one.
const DRAWINGS_PER_SECOND: u8 = 30;
/// Lines and columns of a terminal of unknown size.
const SIZE_DEFAULT: (u16, u16) = (24, 80);

/// Rows that are redrawn in place.
#[derive(Debug)]
pub(super) struct Bars {
    area: ProgressBar,
    /// The trial with the best value, and its configuration. The state forgets trials that have ended.
    best: Option<(TrialId, Configuration)>,
    /// When the display began, and the jobs that had ended by then.
    began: Option<(Time, u32)>,
}

impl Bars {
    pub(super) fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_SECOND);
        let area = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{msg}");
        Self {
            area: area.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())),
            best: None,
            began: None,
        }
    }

    /// Prints a line above the rows.
    pub(super) fn print(&self, text: &str) {
        self.area.println(text);
    }

    pub(super) fn draw(&mut self, follower: &Follower) {
        let (lines, columns) = Term::stderr().size_checked().unwrap_or(SIZE_DEFAULT);
        let Follower { tuning, state, .. } = follower;
        self.remember_best(state);
        let now = SystemClock.now();
        let ended = state.results.launched.saturating_sub(state.running());
        let (began, before) = *self.began.get_or_insert((now, ended));
        let view = View {
            definition: &tuning.definition,
            state,
            best: self.best.as_ref().map(|(_, configuration)| configuration),
            elapsed_ms: (now - tuning.definition.created).0,
            shown: ((now - began).0, before),
        };
        let lines = rows(&view, usize::from(columns), usize::from(lines));
        self.area.set_message(lines.join("\n"));
    }

    fn remember_best(&mut self, state: &State) {
        let Some(trial) = state.search.incumbent.as_ref().map(|best| best.trial) else { return };
        if self.best.as_ref().is_some_and(|(known, _)| *known == trial) {
            return;
        }
        let live = state.trials.get(trial).map(|trial| &trial.configuration);
        let concluded = state.results.best.as_deref().filter(|best| best.job.trial == trial);
        let found = live.or(concluded.map(|best| &best.configuration));
        self.best = found.map(|configuration| (trial, configuration.clone()));
    }

    pub(super) fn clear(self) {
        self.area.finish_and_clear();
    }
}
