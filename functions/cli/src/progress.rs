//! The progress of a run on standard error: bars on a terminal, else one line per event.

mod bars;
mod rows;

use std::io::IsTerminal;

use tuning::ruling::Ruling;

use crate::follow::{Event, Follower, What};
use crate::output::tell;
use crate::run::Since;
use crate::text::{clean, clock};
use crate::words::line;
use bars::Bars;

/// Where and how progress is shown.
#[derive(Debug)]
pub(crate) struct Progress {
    bars: Option<Bars>,
}

impl Progress {
    /// Begins to show a tuning.
    pub(crate) fn begin(follower: &Follower, since: Since) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let bars = (std::io::stderr().is_terminal() && !dumb).then(Bars::new);
        let progress = Self { bars };
        let definition = &follower.tuning.definition;
        let going_on = if since == Since::Now { "going on where it was; " } else { "" };
        progress.print(&format!(
            "{}: {going_on}up to {} training jobs, {} at a time",
            definition.name, definition.limits.max_jobs, definition.limits.max_parallel
        ));
        progress
    }

    /// Shows what happened and how things are now.
    pub(crate) fn show(&mut self, follower: &Follower, news: &[Event]) {
        let definition = &follower.tuning.definition;
        for event in news {
            if self.bars.is_some() && is_seen_in_bars(&event.what) {
                continue;
            }
            if let Some(text) = line(definition, &event.what) {
                let since = clock(event.at.saturating_sub(definition.created));
                self.print(&format!("{since:>7}  {text}"));
            }
        }
        if let Some(bars) = &mut self.bars {
            bars.draw(follower);
        }
    }

    /// Tells why nothing moves, or that it does again.
    pub(crate) fn warn(&self, trouble: Option<&str>) {
        let text = match trouble {
            Some(trouble) => format!(
                "warning: {trouble}\nhint: nothing is lost; the tuning goes on by itself when this is mended, or stop it with \
                 Ctrl-C and go on later"
            ),
            None => "the table works again".to_owned(),
        };
        self.print(&text);
    }

    /// Tells something beside what happened to the tuning.
    pub(crate) fn note(&self, text: &str) {
        self.print(text);
    }

    /// Takes the bars away.
    pub(crate) fn end(&mut self) {
        if let Some(bars) = self.bars.take() {
            bars.clear();
        }
    }

    /// Names and messages in it come from elsewhere.
    fn print(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.print(&clean(text)),
            None => tell(&format!("{text}\n")),
        }
    }
}

impl Drop for Progress {
    /// However it is left, no bars stay behind.
    fn drop(&mut self) {
        self.end();
    }
}

/// What the bars show by themselves.
fn is_seen_in_bars(what: &What) -> bool {
    match what {
        // A promotion is told by itself.
        What::Ruled(Ruling::StartOrdered { job, launch, .. }, _) => {
            job.attempt == 1 || launch.resource.is_some()
        }
        What::Ruled(Ruling::TrialJudged { verdict, .. }, _) => verdict.goes_on,
        What::Ruled(Ruling::StopOrdered { .. } | Ruling::RungReached { .. }, _) => true,
        What::Ruled(..)
        | What::Improved(_)
        | What::Interrupted(_)
        | What::Deferred(..)
        | What::LimitsChanged { .. }
        | What::StopRequested => false,
    }
}
