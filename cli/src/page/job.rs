//! A training job in a response of the API.

use search::Configuration;
use serde_json::Value;
use tuning::money::MicroUsd;

use super::dollars;
use crate::event_text::stop_words;

/// An entry of `TrainingJobSummaries`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<'a>(pub(super) &'a Value);

impl<'a> Job<'a> {
    pub(super) fn name(self) -> &'a str {
        self.0["TrainingJobName"].as_str().unwrap_or_default()
    }

    pub(super) fn trial(self) -> u64 {
        self.number("Trial").unwrap_or(0)
    }

    pub(super) fn attempt(self) -> u64 {
        self.number("Attempt").unwrap_or(0)
    }

    pub(super) fn bracket(self) -> u64 {
        self.number("Bracket").unwrap_or(0)
    }

    /// Returns the epoch that its trial has reached.
    pub(super) fn resource(self) -> u64 {
        self.number("Resource").unwrap_or(0)
    }

    /// Returns the epoch to which it trains. `None` unless trials are promoted.
    pub(super) fn level(self) -> Option<u64> {
        self.number("Level")
    }

    /// Returns the epoch after which it restarted although its trial had more epochs. `None` if it continued.
    pub(super) fn repeated_from(self) -> Option<u64> {
        self.number("RepeatedFrom")
    }

    /// Returns the billed seconds, once known.
    pub(super) fn billed(self) -> Option<u64> {
        self.number("BillableSeconds")
    }

    pub(super) fn cost(self) -> Option<MicroUsd> {
        dollars(&self.own()["CostUsd"])
    }

    pub(super) fn last_value(self) -> Option<f64> {
        self.0["FinalHyperParameterTuningJobObjectiveMetric"]["Value"].as_f64()
    }

    pub(super) fn best_value(self) -> Option<f64> {
        self.own()["BestValue"].as_f64()
    }

    /// Returns how it ended, or its current state.
    pub(super) fn state(self) -> &'a str {
        let state = self.own()["State"].as_str().or_else(|| self.0["TrainingJobStatus"].as_str());
        state.unwrap_or_default()
    }

    pub(super) fn configuration(self) -> Configuration {
        let tuned = self.0["TunedHyperParameters"].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Configuration(tuned.map(|(name, value)| (name.clone(), text(value))).collect())
    }

    /// Returns why it was stopped or failed, in a few words.
    pub(super) fn why(self) -> String {
        let message = self.0["FailureReason"].as_str();
        stop_words(self.own()["StopReason"].as_str(), message, self.repeated_from())
    }

    /// Returns whether it has ended and is settled.
    pub(super) fn is_over(self) -> bool {
        self.is_billed() || matches!(self.state(), "Refused" | "NotStarted")
    }

    /// Returns whether it ran and its bill is known.
    pub(super) fn is_billed(self) -> bool {
        self.own().get("CostUsd").is_some()
    }

    /// Returns whether it trained all its epochs, even if it was stopped at the last one.
    pub(super) fn is_whole(self) -> bool {
        self.state() == "Completed" || self.own()["StopReason"] == "MaxResource"
    }

    /// Returns whether the controller stopped it.
    pub(super) fn was_stopped(self) -> bool {
        self.own().get("StopReason").is_some()
    }

    fn own(self) -> &'a Value {
        &self.0["Controller"]
    }

    fn number(self, member: &str) -> Option<u64> {
        self.own()[member].as_u64()
    }
}
