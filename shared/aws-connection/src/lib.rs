//! How a function reaches its AWS account: TLS, region and credentials of its environment, and limits of time and tries.
//!
//! Assumes the environment that Lambda gives. `AWS_ENDPOINT_URL_<SERVICE>` leads elsewhere, as in every AWS SDK. Must never
//! name the SDK of a service, so that a function builds only those it calls.

mod endpoint;
mod failure;
mod settings;

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
pub use settings::{SettingsError, flag, monthly_cap, setting};

/// Longest time for one call, its retries included; below every function's own time and every claim.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for one try of a call that may be tried again.
const TRY_TIMEOUT: Duration = Duration::from_secs(4);

/// The account of the environment, for one client or several. They share its connections, so it is asked for once a
/// process.
pub async fn account() -> SdkConfig {
    limited(aws_config::defaults(BehaviorVersion::latest()).http_client(https()).load().await)
}

/// An account whose calls go over TLS and end in time.
pub fn limited(account: SdkConfig) -> SdkConfig {
    let timeouts = TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).build();
    account.into_builder().http_client(https()).timeout_config(timeouts).build()
}

/// The limits of time of a client whose calls may be sent again: a kept connection that died unseen takes one try, and not all
/// of a call's time. Not for what is sent once: it would be cut short for nothing.
pub fn tried_again() -> TimeoutConfig {
    TimeoutConfig::builder().operation_timeout(CALL_TIMEOUT).operation_attempt_timeout(TRY_TIMEOUT).build()
}

/// At most `tries` tries of one call.
pub fn at_most(tries: u32) -> RetryConfig {
    RetryConfig::standard().with_max_attempts(tries)
}

fn https() -> SharedHttpClient {
    Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that was dead took all ten seconds, and the second try never came.
    #[test]
    fn regression_a_try_that_hangs_leaves_time_for_another() {
        let timeouts = tried_again();
        let (whole, one) = (timeouts.operation_timeout(), timeouts.operation_attempt_timeout());
        assert!(one.unwrap() * 2 < whole.unwrap(), "{timeouts:?}");
    }
}
