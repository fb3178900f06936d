//! The connection to an AWS account: TLS, the environment's Region and credentials, time-outs and retries. Behind
//! features: the event bus (`event-bus`), invocations of a function (`invocation`) and the price list (`prices`).
//!
//! Assumes Lambda's environment. `AWS_ENDPOINT_URL_<SERVICE>` overrides an endpoint, as in every AWS SDK. Without
//! features, this crate must never depend on the SDK of a service, so that a program builds only the SDKs that it
//! calls.

mod endpoint;
#[cfg(feature = "event-bus")]
pub mod event_bus;
mod failure;
#[cfg(feature = "invocation")]
pub mod invocation;
#[cfg(feature = "prices")]
pub mod prices;

use std::time::Duration;

use aws_config::BehaviorVersion;
pub use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::http::SharedHttpClient;

pub use endpoint::account_at;
pub use failure::Failure;

/// Time-out of one call with its retries; below every function's time limit and every claim.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time-out of one attempt of a call that may be retried.
const TRY_TIMEOUT: Duration = Duration::from_secs(4);

/// Returns the configuration of the environment's account. Clients of one configuration share its connections, so call
/// this once a process.
pub async fn account() -> SdkConfig {
    limited(aws_config::defaults(BehaviorVersion::latest()).http_client(https()).load().await)
}

/// Returns `account` with TLS and time-outs for every call.
pub fn limited(account: SdkConfig) -> SdkConfig {
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    account.into_builder().http_client(https()).timeout_config(timeouts).build()
}

/// Returns the time-outs of a client whose calls may be retried: a dead kept-alive connection then costs one attempt and
/// not the whole time of the call. Not for calls that are sent once: a shorter time-out would only cut them off.
pub fn retried() -> TimeoutConfig {
    TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).operation_attempt_timeout(TRY_TIMEOUT).build()
}

/// Returns a retry policy of at most `tries` attempts.
pub fn at_most(tries: u32) -> RetryConfig {
    RetryConfig::standard().with_max_attempts(tries)
}

fn https() -> SharedHttpClient {
    Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dead connection used up all ten seconds, so that no second attempt followed.
    #[test]
    fn regression_a_hanging_attempt_leaves_time_for_a_retry() {
        let timeouts = retried();
        let (whole, one) = (timeouts.operation_timeout(), timeouts.operation_attempt_timeout());
        assert!(one.unwrap() * 2 < whole.unwrap(), "{timeouts:?}");
    }
}
