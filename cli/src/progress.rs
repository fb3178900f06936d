//! Shows the progress of a tuning on standard error: bars on a terminal, else one line per event.

mod bars;
mod rows;

use std::io::IsTerminal;

use tuning::log::reasons::TrialEnd;
use tuning::log::ruling::{AttemptRuling, Order, Ruling, SearchRuling};
use wire::names::training_job_name;

use crate::event_text::event_line;
use crate::follow::{Event, Follower, Since, What};
use crate::log_hint::LogHint;
use crate::output::print_err;
use crate::text::{clean, clock};
use bars::Bars;

/// Aligns a line with the text of an event.
const MARGIN: &str = "         ";

/// The display of progress. `bars` is `None` outside a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bars: Option<Bars>,
    logs: LogHint,
}

impl Progress {
    /// Starts the display of a tuning, whose logs are at `logs`.
    pub(crate) fn begin(follower: &Follower, since: Since, logs: LogHint) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let bars = (std::io::stderr().is_terminal() && !dumb).then(Bars::new);
        let progress = Self { bars, logs };
        let definition = &follower.tuning.definition;
        let continuing = if since == Since::Now { "continuing; " } else { "" };
        progress.print(&format!(
            "{}: {continuing}up to {} training jobs, {} in parallel",
            definition.name,
            definition.planned_jobs(),
            definition.limits.max_parallel
        ));
        progress
    }

    pub(crate) fn show(&mut self, follower: &Follower, news: &[Event]) {
        let definition = &follower.tuning.definition;
        for event in news {
            if self.bars.is_some() && is_seen_in_bars(&event.what) {
                continue;
            }
            if let What::Noticed(notice) = &event.what {
                self.print(&notice.text());
            } else if let Some(text) = event_line(definition, &event.what) {
                let since = clock(event.at.saturating_sub(definition.created.0));
                let log = self.log_of_failed(follower, &event.what);
                self.print(format!("{since:>7}  {text}\n{log}").trim_end());
            }
        }
        if let Some(bars) = &mut self.bars {
            bars.draw(follower);
        }
    }

    /// Returns where the log of a failed job is, for the first job of each cause.
    fn log_of_failed(&self, follower: &Follower, what: &What) -> String {
        let What::Ruled(
            Ruling::Attempt(AttemptRuling::TrialFinished {
                job: Some(job), how: TrialEnd::Failed(_), ..
            }),
            _,
        ) = what
        else {
            return String::new();
        };
        let mut causes = follower.state.results.failures.causes.iter();
        if !causes.any(|cause| cause.by_program && cause.job == *job) {
            return String::new();
        }
        let (tuning, name) = (&follower.tuning, training_job_name(&follower.tuning.id, *job));
        self.logs.lines(&tuning.definition.name, job.trial.0, &name, MARGIN)
    }

    /// Shows a problem that blocks the tuning. `None` means that the problem is over.
    pub(crate) fn warn(&self, trouble: Option<&str>) {
        let text = match trouble {
            Some(trouble) => format!(
                "warning: {trouble}\nhint: no data is lost. The tuning continues once the problem is fixed. You can \
                 also interrupt it with Ctrl-C and continue later"
            ),
            None => "the table is available again".to_owned(),
        };
        self.print(&text);
    }

    /// Shows a message that is not an event.
    pub(crate) fn note(&self, text: &str) {
        self.print(text);
    }

    pub(crate) fn end(&mut self) {
        if let Some(bars) = self.bars.take() {
            bars.clear();
        }
    }

    /// Prints a line. Cleans it, because names and messages come from outside the program.
    fn print(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.print(&clean(text)),
            None => print_err(&format!("{text}\n")),
        }
    }
}

impl Drop for Progress {
    /// Removes the bars on every exit path.
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns whether the bars already show the event.
fn is_seen_in_bars(what: &What) -> bool {
    match what {
        // A promotion has its own line.
        What::Ruled(Ruling::Order(Order::Start { job, launch, .. }), _) => {
            job.attempt == 1 || launch.resource.is_some()
        }
        What::Ruled(Ruling::Search(SearchRuling::TrialJudged { verdict, .. }), _) => verdict.continues,
        What::Improved(_)
        | What::Ruled(
            Ruling::Order(Order::Stop { .. }) | Ruling::Search(SearchRuling::RungReached { .. }),
            _,
        ) => true,
        What::Ruled(..)
        | What::Interrupted(_)
        | What::Deferred(..)
        | What::Noticed(_)
        | What::LimitsChanged { .. }
        | What::StopRequested => false,
    }
}
