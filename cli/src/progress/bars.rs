//! The bars: rows at the bottom of a terminal, redrawn several times a second.

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::rows::rows;
use crate::follow::Follower;

/// Maximum redraws per second.
const DRAWINGS_PER_SECOND: u8 = 5;
const COLUMNS_DEFAULT: u16 = 80;

/// Rows that are redrawn in place.
#[derive(Debug)]
pub(super) struct Bars {
    area: MultiProgress,
    rows: Vec<ProgressBar>,
}

impl Bars {
    pub(super) fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_SECOND);
        Self { area: MultiProgress::with_draw_target(target), rows: Vec::new() }
    }

    /// Prints a line above the rows.
    pub(super) fn print(&self, text: &str) {
        // A closed terminal is not an error.
        let _ = self.area.println(text);
    }

    /// Draws the current state.
    pub(super) fn draw(&mut self, follower: &Follower) {
        let width = Term::stderr().size_checked().map_or(COLUMNS_DEFAULT, |(_, columns)| columns);
        let lines = rows(&follower.tuning.definition, &follower.state, usize::from(width));
        while self.rows.len() > lines.len() {
            if let Some(row) = self.rows.pop() {
                self.area.remove(&row);
            }
        }
        while self.rows.len() < lines.len() {
            let row = self.area.add(ProgressBar::no_length());
            let style = ProgressStyle::with_template("{msg}");
            self.rows.push(row.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner())));
        }
        for (row, line) in self.rows.iter().zip(lines) {
            if row.message() != line {
                row.set_message(line);
            }
        }
    }

    /// Removes the rows.
    pub(super) fn clear(self) {
        let _ = self.area.clear();
    }
}
