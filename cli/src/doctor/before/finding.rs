//! The result of a check: its verdict, the fix, and the parameters of the stack that follow from it.

use api_client::ServiceError;

use crate::doctor::verdict::Verdict;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) id: &'static str,
    /// The condition that the check tests.
    pub(super) expects: &'static str,
    pub(super) verdict: Verdict,
    /// How to fix a no or a warning, or how to make a check that was not tried.
    pub(super) fix: Option<String>,
    /// Names and values of parameters.
    pub(super) parameters: Vec<(&'static str, String)>,
}

pub(super) type Check = (&'static str, &'static str);

impl Finding {
    pub(super) fn new((id, expects): Check, verdict: Verdict) -> Self {
        Self { id, expects, verdict, fix: None, parameters: Vec::new() }
    }

    /// Returns the finding of a check whose call to `action` failed. Names the missing permission.
    pub(super) fn unanswered(check: Check, action: &str, error: &ServiceError) -> Self {
        if error.is_denied() {
            let verdict = Verdict::not_tried(format!("the caller lacks the permission {action}: {error}"));
            return Self::new(check, verdict)
                .fix(format!("grant {action} to the caller, and repeat the command"));
        }
        Self::new(check, Verdict::not_tried(format!("{action} failed: {error}")))
    }

    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Adds a parameter of the stack.
    pub(super) fn set(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.parameters.push((name, value.into()));
        self
    }

    pub(super) fn is_no(&self) -> bool {
        matches!(self.verdict, Verdict::No(_))
    }
}
