//! The verdict of a check, and helpers that all checks share.
//!
//! Must never be [`Verdict::Yes`] without an observation.

use api_client::ServiceError;

use super::account::Answer;

/// The result of a check, with the observation or the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The assumption holds.
    Yes(String),
    /// The assumption holds, with a drawback.
    Warning(String),
    /// The assumption is wrong.
    No(String),
    /// The result is unknown.
    NotTried(String),
}

impl Verdict {
    /// Returns [`Verdict::Yes`] if the assumption holds, else [`Verdict::No`].
    pub(super) fn yes_if(holds: bool, evidence: impl Into<String>) -> Self {
        if holds { Self::Yes(evidence.into()) } else { Self::No(evidence.into()) }
    }

    /// Returns [`Verdict::NotTried`].
    pub(super) fn not_tried(why: impl Into<String>) -> Self {
        Self::NotTried(why.into())
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Yes(_) => "yes",
            Self::Warning(_) => "warning",
            Self::No(_) => "no",
            Self::NotTried(_) => "not tried",
        }
    }

    /// Returns the observation, or why there is none.
    pub(super) fn evidence(&self) -> &str {
        match self {
            Self::Yes(text) | Self::Warning(text) | Self::No(text) | Self::NotTried(text) => text,
        }
    }
}

/// Returns [`Verdict::NotTried`] if there is no usable response: `why` if nothing was sent, else see [`not_answered`].
pub(super) fn missing_answer(answer: Option<&Answer>, why: &str) -> Option<Verdict> {
    match answer {
        None => Some(Verdict::not_tried(why)),
        Some(Err(error)) => not_answered(error),
        Some(Ok(_)) => None,
    }
}

/// Returns [`Verdict::NotTried`] if the call was denied or failed. Other errors are usable responses.
pub(super) fn not_answered(error: &ServiceError) -> Option<Verdict> {
    match error {
        ServiceError::Refused { .. } if error.is_denied() => {
            Some(Verdict::not_tried(format!("the caller has no permission: {error}")))
        }
        ServiceError::Refused { .. } => None,
        ServiceError::Failed(error) => Some(Verdict::not_tried(format!("the call failed: {error}"))),
    }
}

/// Returns milliseconds as seconds with one decimal.
pub(super) fn tenths(ms: i64) -> String {
    format!("{}.{}", ms.max(0) / 1_000, ms.max(0) % 1_000 / 100)
}
