//! A warning: what will happen, and how to avoid it. Its code is a stable name for programs.

use std::fmt::Write;

use console::style;
use serde_json::{Value, json};

use crate::text::clean;

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Stable name.
    pub(crate) code: &'static str,
    /// What will happen, as a sentence.
    pub(crate) message: String,
    /// How to avoid it, as a sentence.
    pub(crate) advice: String,
}

impl Warning {
    pub(crate) fn new(code: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { code, message: message.into(), advice: advice.into() }
    }
}

/// Returns the warnings as text.
pub(crate) fn text(warnings: &[Warning]) -> String {
    let mut text = String::new();
    for Warning { code, message, advice } in warnings {
        let word = style("warning:").yellow().bold();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{word} {} [{code}]\n  {}", clean(message), clean(advice));
    }
    text
}

/// Returns the warning as text without colors, for standard error.
pub(crate) fn plain(warning: &Warning) -> String {
    let Warning { code, message, advice } = warning;
    format!("warning: {message} [{code}]\n  {advice}")
}

/// Returns the warnings as a JSON array.
pub(crate) fn json(warnings: &[Warning]) -> Value {
    let shown = warnings
        .iter()
        .map(|warning| json!({"Code": warning.code, "Message": warning.message, "Advice": warning.advice}));
    Value::Array(shown.collect())
}
