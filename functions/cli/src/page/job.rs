//! A training job as an answer shows it.

use search::Configuration;
use serde_json::Value;
use tuning::money::MicroUsd;

use super::dollars;
use crate::words::stop_words;

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

    /// Epochs its trial has reached.
    pub(super) fn resource(self) -> u64 {
        self.number("Resource").unwrap_or(0)
    }

    /// Where trials are promoted, the epochs to which it trains.
    pub(super) fn level(self) -> Option<u64> {
        self.number("Level")
    }

    /// The epochs with which it began although its trial had been promoted with more.
    pub(super) fn repeated_from(self) -> Option<u64> {
        self.number("RepeatedFrom")
    }

    /// Seconds billed, once known.
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

    /// How it ended, or what it does now.
    pub(super) fn state(self) -> &'a str {
        let told = self.own()["State"].as_str().or_else(|| self.0["TrainingJobStatus"].as_str());
        told.unwrap_or_default()
    }

    pub(super) fn configuration(self) -> Configuration {
        let tuned = self.0["TunedHyperParameters"].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Configuration(tuned.map(|(name, value)| (name.clone(), text(value))).collect())
    }

    /// What stopped it or went wrong with it, in a few words.
    pub(super) fn why(self) -> String {
        let message = self.0["FailureReason"].as_str();
        stop_words(self.own()["StopReason"].as_str(), message, self.repeated_from())
    }

    /// Whether nothing more is heard of it.
    pub(super) fn is_over(self) -> bool {
        self.is_billed() || matches!(self.state(), "Refused" | "NotStarted")
    }

    /// Whether it ran and its bill is known.
    pub(super) fn is_billed(self) -> bool {
        self.own().get("CostUsd").is_some()
    }

    /// Whether it trained all that it could: stopped at its last epoch counts as well.
    pub(super) fn is_whole(self) -> bool {
        self.state() == "Completed" || self.own()["StopReason"] == "MaxResource"
    }

    /// Whether it was ordered to stop.
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
