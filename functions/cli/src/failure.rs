//! What goes wrong, with its exit code and what to do about it.

use std::process::ExitCode;

use console::style;

use crate::output::tell_as_is;
use crate::text::clean;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The tuning failed, or a replay differs.
    Failed,
    /// Bad request or usage.
    Usage,
    /// Table or endpoint error.
    Endpoint,
    /// Interrupted by a signal.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Endpoint => 3,
            Exit::Interrupted => 130,
        })
    }
}

/// An error for the person at the terminal.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Exit code.
    pub(crate) exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// The person has to change something.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, error: anyhow::Error::msg(message.into()), hint: None }
    }

    /// The table, the disk or an endpoint did not do it.
    pub(crate) fn endpoint(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Endpoint, error: error.into(), hint: None }
    }

    /// With what was being done.
    pub(crate) fn context(mut self, doing: impl Into<String>) -> Self {
        self.error = self.error.context(doing.into());
        self
    }

    /// With what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With another exit code.
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Prints it on standard error.
    pub(crate) fn tell(&self) {
        let word = style("error:").for_stderr().red().bold();
        tell_as_is(&format!("{word} {}\n", clean(&format!("{:#}", self.error))));
        if let Some(hint) = &self.hint {
            let word = style("hint:").for_stderr().cyan().bold();
            tell_as_is(&format!("{word} {}\n", clean(hint)));
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::endpoint(error)
    }
}
