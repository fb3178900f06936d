//! A warning: what will hurt, and what to do. Codes are for programs and never change.

use std::fmt::Write;

use console::style;
use serde_json::{Value, json};

use crate::text::clean;

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Stable name.
    pub(crate) code: &'static str,
    /// What will hurt, as a sentence.
    pub(crate) message: String,
    /// What to do, as a sentence.
    pub(crate) advice: String,
}

impl Warning {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code, message: message.into(), advice: advice.into() }
    }
}

/// Warnings for people, one after the other.
pub(crate) fn text(warnings: &[Warning]) -> String {
    let mut text = String::new();
    for Warning { code, message, advice } in warnings {
        let word = style("warning:").yellow().bold();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{word} {} [{code}]\n  {}", clean(message), clean(advice));
    }
    text
}

/// Warnings for programs.
pub(crate) fn json(warnings: &[Warning]) -> Value {
    let shown = warnings
        .iter()
        .map(|warning| json!({"Code": warning.code, "Message": warning.message, "Advice": warning.advice}));
    Value::Array(shown.collect())
}
