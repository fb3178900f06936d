//! The ports through which use cases access the outside world. Their errors are grouped by what the caller must do.
//!
//! A port contains what a use case needs, not what an SDK offers. Implementations: `shared/dynamodb` (AWS and the
//! embedded engine), `memory` (tests), the simulator's world, and `shared/local`. Every future is `Send`.

pub mod table;
pub mod training;
pub mod usage;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use search::Configuration;
use serde_json::Value;
use thiserror::Error;

pub use tuning::unit::time::{Millis, Time};

/// The current time. The only source of time for ingest, actuator and sweeper. The decider has none.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Time;
}

/// A clock that can also wait. Its time is virtual in the simulator, and real elsewhere.
pub trait Timer: Clock {
    /// Waits for at least `span` of this clock's time.
    fn pause(&self, span: Millis) -> impl Future<Output = ()> + Send;
}

/// The publisher of notices: the `source` of every event.
pub const SOURCE: &str = "custom.hyperband";

/// An event bus, which delivers notices to users and other programs.
pub trait Bus: Send + Sync {
    /// Publishes one event of detail type `detail_type`. `detail` is a JSON object of at most 200 KB.
    fn publish(&self, detail_type: &str, detail: &Value)
    -> impl Future<Output = Result<(), BusError>> + Send;
}

/// Why a notice was not published.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BusError {
    /// A retry may help.
    #[error("the event bus is unavailable: {0}")]
    Unavailable(String),
    /// Permanent: do not retry, but report the error.
    #[error("the event bus refused the event: {0}")]
    Refused(String),
}

/// Another invocation of the actuator's function, which the service queues and runs at least once, on its own.
pub trait HandOver: Send + Sync {
    /// Hands `payload` over to another invocation, and returns without waiting for it. After an error, the payload may
    /// have been handed over all the same.
    fn hand_over(&self, payload: &Value) -> impl Future<Output = Result<(), HandOverError>> + Send;
}

/// Why a payload was not handed over.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no other invocation took the starts: {0}")]
pub struct HandOverError(pub String);

/// On-demand prices of training instances.
pub trait Prices: Send + Sync {
    /// Returns the price of one instance of `instance_type`, in micro-dollars an hour. `None` if unknown (the caller
    /// must refuse the request).
    fn instance_hour(
        &self,
        instance_type: &str,
    ) -> impl Future<Output = Result<Option<u64>, PricesError>> + Send;
    /// Returns the price of training volumes, in micro-dollars per 1,000 gibibyte-hours. `None` if unknown (then a
    /// listed instance price does not cover the whole cost of a job).
    fn volume_kilo_gib_hour(&self) -> impl Future<Output = Result<Option<u64>, PricesError>> + Send;
}

/// Why a price could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PricesError {
    /// Temporary: the submission fails with a retryable error.
    #[error("the price list is unavailable: {0}")]
    Unavailable(String),
    /// Permanent until the permissions are changed. Contains the error code and message.
    #[error("the price list refused the request: {0}")]
    Refused(String),
}

/// Tuning jobs that another controller ran in the account, such as Automatic Model Tuning.
pub trait OtherTunings: Debug + Send + Sync {
    /// Returns the answer of `DescribeHyperParameterTuningJob`, which has the members of the request; `None` if there is
    /// no tuning job `name`.
    fn description<'a>(&'a self, name: &'a str) -> Read<'a, Option<Value>>;
    /// Returns the tuned hyperparameters and the final value of about `most` training jobs of tuning job `name`, the best
    /// ones first: of those that have a value and did not fail.
    fn trials<'a>(
        &'a self,
        name: &'a str,
        maximize: bool,
        most: usize,
    ) -> Read<'a, Vec<(Configuration, f64)>>;
}

/// The result of a read of [`OtherTunings`].
pub type Read<'a, T> = Pin<Box<dyn Future<Output = Result<T, OtherTuningsError>> + Send + 'a>>;

/// Why a tuning job of another controller was not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OtherTuningsError {
    /// Temporary: the submission fails with a retryable error.
    #[error("SageMaker did not return the tuning job: {0}")]
    Unavailable(String),
    /// Permanent until the permissions are changed.
    #[error("SageMaker refused to return the tuning job: {code}: {message}")]
    Refused {
        /// The error code.
        code: String,
        /// The service's message.
        message: String,
    },
}
