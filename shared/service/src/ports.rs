//! The narrow ports through which use cases touch the world, and their errors, split by what the caller must do.
//!
//! A port is defined by what a use case needs, not by an SDK. Implementations: `shared/dynamodb` (AWS and the embedded
//! engine), `memory` (tests), the simulator's world, and `shared/local`. Every future is `Send`.

pub mod table;
pub mod training;

use std::future::Future;

use thiserror::Error;

/// Milliseconds since the Unix epoch.
pub type Millis = i64;

/// The current time. The only source of time for ingest, actuator and sweeper; the decider has none.
pub trait Clock: Send + Sync {
    /// Now, in milliseconds since the Unix epoch.
    fn now(&self) -> Millis;
}

/// A clock that one can wait on: virtual in the simulator, the runtime's elsewhere.
pub trait Timer: Clock {
    /// Waits for `ms` milliseconds of this clock's time, or a little longer.
    fn pause(&self, ms: Millis) -> impl Future<Output = ()> + Send;
}

/// Who publishes notices: the `source` of every event.
pub const SOURCE: &str = "custom.hyperband";

/// Where notices for people and other programs go (an event bus).
pub trait Bus: Send + Sync {
    /// Publishes one event of detail type `detail_type`; `detail` is a JSON object of at most 200 KB.
    fn publish(
        &self,
        detail_type: &str,
        detail: &serde_json::Value,
    ) -> impl Future<Output = Result<(), BusError>> + Send;
}

/// Why a notice was not published.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BusError {
    /// Try again later.
    #[error("the event bus is not available: {0}")]
    Unavailable(String),
    /// The bus will never take it: give up and say so.
    #[error("the event bus refused the event: {0}")]
    Refused(String),
}

/// On-demand prices of training instances.
pub trait Prices: Send + Sync {
    /// Micro-dollars an hour of one instance of `instance_type`, `None` when unknown (the caller must refuse).
    fn instance_hour(
        &self,
        instance_type: &str,
    ) -> impl Future<Output = Result<Option<u64>, PricesError>> + Send;
    /// Micro-dollars per 1,000 gibibyte-hours of training volume, `None` when unknown (then a listed price of an instance is
    /// not one of its job).
    fn volume_kilo_gib_hour(&self) -> impl Future<Output = Result<Option<u64>, PricesError>> + Send;
}

/// The price source told nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PricesError {
    /// For now: the submit fails with a retryable error.
    #[error("the price list is not available: {0}")]
    Unavailable(String),
    /// For good, until somebody changes a right: the error code and message.
    #[error("the price list refused: {0}")]
    Refused(String),
}
