//! An error message with its exit code and a hint.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use api_client::ServiceError;
use console::style;
use wire::request::{ErrorCode, RequestError};

use crate::output::print_err_raw;
use crate::text::clean;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// The tuning failed, a replay differs, or a check of the doctor says no.
    Failed,
    /// Invalid request or usage.
    Usage,
    /// Table or endpoint error.
    Endpoint,
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

/// An error to print for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

impl Failure {
    /// An error that the user must correct.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, error: anyhow::Error::msg(message.into()), hint: None }
    }

    /// An error of a file that the user has named. `doing` says what failed.
    pub(crate) fn file(doing: &str, path: &Path, error: &impl Display) -> Self {
        Self::usage(error.to_string()).context(format!("{doing} {}", path.display()))
    }

    /// Returns the error for an invalid request, with all violations.
    pub(crate) fn invalid_request(error: &RequestError) -> Self {
        // The message of invalid JSON names the file.
        if error.code == ErrorCode::SerializationException {
            return Self::usage(error.message.clone());
        }
        let mut text = "the request is invalid".to_owned();
        match error.violations.as_slice() {
            [] => {
                text.push_str(": ");
                text.push_str(&error.message);
            }
            violations => {
                for violation in violations {
                    text.push_str("\n  ");
                    text.push_str(&violation.message);
                }
            }
        }
        Self::usage(text)
    }

    /// An error of the table, the disk or an endpoint.
    pub(crate) fn endpoint(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Endpoint, error: error.into(), hint: None }
    }

    /// Adds the operation that failed.
    pub(crate) fn context(mut self, doing: impl Into<String>) -> Self {
        self.error = self.error.context(doing.into());
        self
    }

    /// Adds a hint on how to fix the problem.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        self.hint_if_any(Some(hint.into()))
    }

    /// Adds a hint if there is one. Otherwise an earlier one stays.
    pub(crate) fn hint_if_any(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }

    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// Returns the error with its hint, for a client of a server.
    pub(crate) fn message(&self) -> String {
        let hint = self.hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        format!("{:#}{hint}", self.error)
    }

    /// Returns whether AWS denied a call.
    pub(crate) fn is_denied(&self) -> bool {
        self.error.downcast_ref::<ServiceError>().is_some_and(ServiceError::is_denied)
    }

    /// Prints the error and its hint to standard error.
    pub(crate) fn print(&self) {
        let word = style("error:").for_stderr().red().bold();
        print_err_raw(&format!("{word} {}\n", clean(&format!("{:#}", self.error))));
        if let Some(hint) = &self.hint {
            let word = style("hint:").for_stderr().cyan().bold();
            print_err_raw(&format!("{word} {}\n", clean(hint)));
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::endpoint(error)
    }
}
